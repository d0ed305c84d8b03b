//! A finished run as a service: its index, look-ups in it, and those over HTTP.

use webtwin_base::{build, error, ids, job, leftovers, threads};
#[cfg(feature = "serve")]
use webtwin_base::{console, key_file};
use webtwin_pages::pages;
#[cfg(feature = "serve")]
use webtwin_report::report;
#[cfg(feature = "serve")]
use webtwin_results::explain;
use webtwin_results::results;
#[cfg(feature = "search")]
use webtwin_search::search;
use webtwin_stages::{chunks, hamming, overlap, text, url_rules};
use webtwin_storage::storage;

#[path = "../../src/lookup/mod.rs"]
pub mod lookup;
#[cfg(feature = "serve")]
#[path = "../../src/serve/mod.rs"]
pub mod serve;
