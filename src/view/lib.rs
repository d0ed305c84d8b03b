//! Presentation of a result: a report, an index for look-ups, an HTTP service, and full-text
//! search.

pub mod lookup;
pub mod report;
pub mod search;
#[cfg(feature = "serve")]
pub mod serve;
