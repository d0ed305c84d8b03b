//! A result made to be looked at.

use webtwin_base::{error, ids, job, read_at};
use webtwin_dedup::dedup;
use webtwin_results::{explain, results};
use webtwin_stages::{chunks, clusters};
use webtwin_storage::storage;

#[path = "../../src/report/mod.rs"]
pub mod report;
