//! The papers: plain functions over slices, which know nothing of threads, files or networks.

use webtwin_base::{by_hash, error, huge, ids, job, read_at};

#[path = "../../src/applications/mod.rs"]
pub mod applications;
#[path = "../../src/chunks/mod.rs"]
pub mod chunks;
#[path = "../../src/clusters/mod.rs"]
pub mod clusters;
#[path = "../../src/hamming/mod.rs"]
pub mod hamming;
#[path = "../../src/minhash/mod.rs"]
pub mod minhash;
#[path = "../../src/overlap/mod.rs"]
pub mod overlap;
#[path = "../../src/signatures/mod.rs"]
pub mod signatures;
#[path = "../../src/study/mod.rs"]
pub mod study;
#[path = "../../src/text/mod.rs"]
pub mod text;
#[path = "../../src/url_rules/mod.rs"]
pub mod url_rules;
