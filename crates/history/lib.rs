//! One crawl after another: which collections live on, which mirrors lag, and what to visit again.

use webtwin_base::{error, ids, job, threads};
use webtwin_results::results;
use webtwin_stages::clusters;
use webtwin_storage::storage;

#[path = "../../src/history/mod.rs"]
pub mod history;
