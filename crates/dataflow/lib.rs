//! The wiring, one file for each step: exchanges between the functions of the stages.

use webtwin_base::{build, by_hash, error, heap, ids, job, progress};
use webtwin_engine::engine;
use webtwin_pages::pages;
use webtwin_results::results;
use webtwin_stages::{applications, chunks, clusters, hamming, minhash, overlap, signatures, study, text, url_rules};
use webtwin_storage::storage;

#[path = "../../src/dataflow/mod.rs"]
pub mod dataflow;
