//! What is written: verdicts and the avoid list, the tables with their columns, the summary, and the commit.

pub mod arrived;
pub mod avoid;
pub mod avoid_table;
pub mod by_domain;
pub mod by_first;
pub mod by_host;
pub mod contents;
pub mod drafts;
pub mod exports;
pub mod files;
pub mod kept;
pub mod kept_before;
pub mod paper_tables;
pub mod pins;
pub mod prefix_roots;
pub(crate) mod rejected;
pub mod report;
pub mod resemblance;
pub mod sorted;
pub mod substitutes;
pub mod summarise;
pub mod summary;
pub mod tables;
pub mod url_rules;
pub mod ways;
pub mod write;
