//! Two crawls compared, and many of them as a history.

pub mod history;
pub mod recrawl;
