//! URL rules: rewrites of URLs to the URL of a copy of the page, learned from the trivial clusters
//! of a crawl.
//!
//! The content of every page is known, and so is its trivial cluster. So the support of a rule and
//! its violations are counted: the rule is applied to the URLs of a site, and pages that are
//! rewritten to one URL must be of one cluster.
//!
//! | step | module |
//! |---|---|
//! | split a URL into origin, path and parameters | [`address`] |
//! | propose edits that turn a copy's URL into that of the page that stays | [`propose`] |
//! | add URLs that redirect permanently to pages | [`redirects`] |
//! | join pages by their edited URLs, and count by scope | [`evidence`] |
//! | choose the most general scope, apply the rule, repeat | [`learn`] |
//! | apply rules to any URL | [`rules`] |
//!
//! # Source
//! Bar-Yossef, Keidar, Schonfeld: *Do not crawl in the DUST* (2007), section 5, for likely
//! substitutions and their support; Dasgupta, Kumar, Sasturkar: *De-duping URLs via rewrite rules*
//! (2008), section 3, for rules over the parts of a URL.
//!
//! # Deviations
//! The first paper validates rules by fetching pages again, and the second counts a rule's pairs
//! within clusters only. Here both kinds of pairs are counted, because all pages of the crawl are
//! available.

pub mod address;
pub mod edit;
pub mod evidence;
pub mod learn;
pub mod propose;
pub mod redirects;
pub mod rows;
pub mod rules;
pub mod scope;
