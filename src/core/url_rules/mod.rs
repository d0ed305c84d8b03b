//! URL rules: which spellings of a URL show the page of another spelling, learned from the trivial clusters of a crawl.
//!
//! A page's content is known, and so is the trivial cluster of every page. So the support of a rule and its
//! violations are
//! counted: the rule is applied to the URLs of a site, and pages that get one URL must be of one cluster.
//!
//! | step | where |
//! |---|---|
//! | split a URL into origin, path and parameters | [`address`] |
//! | propose edits that turn a copy's URL into that of the page that stays | [`propose`] |
//! | add URLs that redirect to pages for good | [`redirects`] |
//! | join pages by their edited URLs, and count by scope | [`evidence`] |
//! | choose the most general scope, apply the rule, repeat | [`learn`] |
//! | apply rules to any URL | [`rules`] |
//!
//! # Source
//! Bar-Yossef, Keidar, Schonfeld: *Do not crawl in the DUST* (2007), section 5, for likely substitutions and their
//! support;
//! Dasgupta, Kumar, Sasturkar: *De-duping URLs via rewrite rules* (2008), section 3, for rules over the parts of a URL.
//!
//! # Deviations
//! The first validates rules by fetching pages again, and the second counts a rule's pairs within clusters only. Here
//! both kinds of
//! pairs are counted, for all pages of the crawl are at hand.

pub mod address;
pub mod edit;
pub mod evidence;
pub mod learn;
pub mod propose;
pub mod redirects;
pub mod rows;
pub mod rules;
pub mod scope;
