//! The results of two crawls compared.

use webtwin_base::{by_hash, error, ids, job, leftovers, threads};
use webtwin_pages::pages;
use webtwin_results::results;
use webtwin_stages::{applications, chunks, url_rules};
use webtwin_storage::storage;

#[path = "../../src/recrawl/mod.rs"]
pub mod recrawl;
