//! Output of a run: verdicts and the avoid list, the tables with their columns, the summary, and
//! the commit.

pub mod arrived;
pub mod avoid;
pub mod avoid_table;
pub mod by_domain;
pub mod by_first;
pub mod by_host;
mod by_key;
pub mod collection_rows;
pub mod contents;
pub mod drafts;
pub mod exports;
pub mod files;
pub mod found;
pub mod hosts;
pub mod kept;
pub mod kept_before;
pub mod largest;
mod packed_triples;
pub mod pins;
pub mod prefix_roots;
pub mod reachability;
pub(crate) mod rejected;
pub mod report;
pub mod resemblance;
pub mod skip_lists;
pub mod stage;
pub mod substitutes;
pub mod summarise;
pub mod summary;
pub mod tables;
pub mod url_rules;
pub mod verdict;
pub mod write;
