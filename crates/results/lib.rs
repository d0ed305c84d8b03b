//! A finished run: read again, compared with a truth, explained; and an archive that keeps payloads once.

use webtwin_base::{error, ids, job, progress, read_at, threads};
use webtwin_pages::{pages, synth};
use webtwin_stages::{chunks, clusters, hamming, minhash, overlap, url_rules};
use webtwin_storage::storage;

#[path = "../../src/archive/mod.rs"]
pub mod archive;
#[path = "../../src/evaluate/mod.rs"]
pub mod evaluate;
#[path = "../../src/explain/mod.rs"]
pub mod explain;
#[path = "../../src/results/mod.rs"]
pub mod results;
