//! A result made to be looked at.

#[path = "../../src/report/mod.rs"]
pub mod report;
