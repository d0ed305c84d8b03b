//! Search that shows each thing once: \[CSG00\] section 5.2.
//!
//! ```text
//!  words ──▶ texts that have them all, each with a score (texts.rs) ──▶ pages that say them, all of them
//!      ──▶ groups, exact counts, the best first (rollup.rs) ──▶ on request, what says the same again moves down (reorder.rs)
//! ```
//!
//! Postings, scores and snippets are those of `tantivy`, which is built with the cargo feature `search` only. What a page, a
//! collection or a mirror is, the caller knows: here are numbers.
//!
//! # Deviations
//! The paper rolls up what an engine returned. An engine that rolls up its first results alone finds fewer groups than there are,
//! and cannot count them; here all pages that match are grouped before any is left out.

pub mod reorder;
pub mod rollup;
#[cfg(feature = "search")]
mod sealed_folder;
#[cfg(feature = "search")]
pub mod texts;
pub mod words;
#[cfg(feature = "search")]
pub mod write;
