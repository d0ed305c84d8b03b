//! Full-text search that shows replicated content once: \[CSG00\] section 5.2.
//!
//! ```text
//!  words ──▶ texts that have all of them, each with a score (texts.rs) ──▶ all pages with these texts
//!      ──▶ groups, exact counts, the best first (rollup.rs) ──▶ on request, repeated content moves down (reorder.rs)
//! ```
//!
//! Postings, scores and snippets come from `tantivy`, which is compiled with the cargo feature
//! `search` only. This module handles numbers; the caller knows which pages, collections and
//! mirrors they denote.
//!
//! # Deviations
//! The paper rolls up the results that an engine returned. An engine that rolls up its first
//! results only finds fewer groups than there are and cannot count them. Here all matching pages
//! are grouped before any are left out.

pub mod reorder;
pub mod rollup;
#[cfg(feature = "search")]
mod sealed_folder;
#[cfg(feature = "search")]
pub mod texts;
pub mod words;
#[cfg(feature = "search")]
pub mod write;
