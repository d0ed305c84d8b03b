//! A result made to be looked at: a report, an index of look-ups, a service over HTTP and a search.

pub mod lookup;
pub mod report;
pub mod search;
#[cfg(feature = "serve")]
pub mod serve;
