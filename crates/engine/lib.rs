//! The engine: runs one program on the workers of one or more processes, and moves rows between them.

use webtwin_base::{console, error, heap, ids, key_file, leftovers, open_files, progress, threads};

#[path = "../../src/engine/mod.rs"]
pub mod engine;
