//! A corpus of texts in, the same corpus without its duplicates out.

use webtwin_base::{build, error, job, progress, read_at, threads};
use webtwin_pages::pages;
use webtwin_results::{explain, results};
use webtwin_stages::minhash;
use webtwin_storage::storage;

#[path = "../../src/dedup/mod.rs"]
pub mod dedup;
