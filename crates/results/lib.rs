//! A finished run: read again, compared with a truth, explained.

use webtwin_base::{error, ids, job, read_at};
use webtwin_pages::{pages, synth};
use webtwin_stages::{chunks, hamming, overlap};
use webtwin_storage::storage;

#[path = "../../src/evaluate/mod.rs"]
pub mod evaluate;
#[path = "../../src/explain/mod.rs"]
pub mod explain;
#[path = "../../src/results/mod.rs"]
pub mod results;
