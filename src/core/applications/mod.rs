//! Applications of the results: the page of a set of copies to keep, and the pages that a crawler
//! may skip.
//!
//! \[SGM98\] section 3 and \[CSG00\] section 5.1: "if a page has 10 copies, on its next crawl the
//! system need only visit and index one of those pages".

pub mod entry_points;
pub mod exports;
pub mod file_part;
pub mod heritrix;
pub mod keep;
pub mod never_skipped;
pub mod part_links;
pub mod prefixes;
pub mod reachability;
pub mod rule_exports;
pub mod substitutes;
pub mod substitutions;
