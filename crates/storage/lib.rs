//! Bytes: files, stores, tables, and what makes a folder of them a result.

use webtwin_base::{build, error, heap, huge, leftovers, read_at, threads};

#[path = "../../src/storage/mod.rs"]
pub mod storage;
