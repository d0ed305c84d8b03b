//! Comparison of finished crawl results: two crawls page by page ([`two_crawls`]), and the
//! collections of any number of crawls in their order ([`many_crawls`]).
//!
//! The command `webtwin diff` does both and writes a single result: [`two_crawls::diff`].

// Shared by both comparisons: input results and the output writer.
mod merge;
pub mod same_settings;
mod summary;
pub mod writer;

// Two crawls: pages, sites and the avoid list.
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

// Many crawls: collections that live on, mirrors that lag behind, and pages to visit again.
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

pub use summary::CompareSummary;

#[cfg(test)]
mod tests;
