//! Crawl input becomes pages with text and links; and a crawl made on the fly, with the truth about it.

use webtwin_base::{by_hash, error, ids, job, read_at, threads};
use webtwin_storage::storage;

#[path = "../../src/pages/mod.rs"]
pub mod pages;
#[path = "../../src/synth/mod.rs"]
pub mod synth;
