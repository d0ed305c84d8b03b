//! Live index: finds mirrors while a crawl is running. It takes pages as they are fetched and
//! advises the crawler which URLs not to fetch.
//!
//! ```text
//! page ──▶ PageDigest ──▶ LiveIndex::add ──▶ exact copy? shared chunks? (near.rs) ──▶ cluster
//!                               │                                                        │
//!                               ▼                                                        ▼
//!                           log (log.rs)                             Advice (advice/): mirrors,
//!                                                                    aliases, URL rules, traps
//! ```
//!
//! \[CSG00\] asks in section 1 "should a crawler try to identify replicas as it performs its first
//! crawl", and leaves the question open. This crate is one answer. The whole state of an index
//! follows from its log, replayed in order: an index that is opened again reads the log and gives
//! the same answers, and the same advice under the same sequence numbers.

pub mod advice;
mod agreement;
mod answer;
mod digest;
mod folder;
mod index;
mod log;
mod near;
mod pages;
mod postings;
mod record;
#[cfg(feature = "serve")]
pub mod serve;
#[cfg(test)]
mod tests;

pub use agreement::Agreement;
pub use answer::{AddedPageAnswer, Figures, OriginalPage, PageState, UrlAnswer, UrlVerdict};
pub use digest::{Digester, PageDigest};
pub use index::{LiveIndex, UnsyncedWrites};
