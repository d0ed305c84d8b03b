//! The papers' published tables and figures, computed again.

use webtwin_base::{build, error, huge, ids, job, threads};
use webtwin_dataflow::dataflow;
use webtwin_dedup::dedup;
use webtwin_engine::engine;
use webtwin_history::history;
use webtwin_pages::{pages, synth};
use webtwin_recrawl::recrawl;
use webtwin_results::{evaluate, results};
use webtwin_serve::lookup;
use webtwin_stages::{clusters, hamming, minhash, overlap, signatures, study};
use webtwin_storage::storage;

#[path = "../../src/reproduce/mod.rs"]
pub mod reproduce;
