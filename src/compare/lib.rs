//! Finished results of crawls, compared: two of them page by page ([`two_crawls`]), and all that are known of, one after the other, by
//! their collections ([`many_crawls`]).
//!
//! Both are one command, `webtwin diff`, which writes one result: [`two_crawls::diff`].

// Of both: the results, and what is written.
mod merge;
pub mod same_settings;
mod summary;
pub mod writer;

// Two crawls: pages, sites, the avoid list.
mod avoid;
mod changes;
mod exports;
mod gather;
mod in_force;
mod matrix;
mod moved;
mod moves;
pub mod overlap;
pub mod pages;
pub mod past_texts;
mod refused;
mod servers;
mod sites;
mod standing;
mod stood;
mod texts;
pub mod two_crawls;
mod url_rules;

// Many crawls: which collections live on, which mirrors lag behind, and what to visit again.
mod carried_over;
pub mod chronicle;
pub mod collections;
pub mod fates;
pub mod history;
pub mod history_tables;
mod kept;
pub mod lag;
pub mod lifelines;
pub mod lives;
pub mod many_crawls;
pub mod matching;
mod parts;
pub mod rates;
pub mod revisit;
pub mod saved;
pub mod visits;
pub mod worthwhile;

pub use summary::Summary;

#[cfg(test)]
mod tests;
