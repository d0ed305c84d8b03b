//! Ids, errors, jobs, and what people are told: what everything else needs.

#[path = "../../src/build.rs"]
pub mod build;
#[path = "../../src/by_hash.rs"]
pub mod by_hash;
#[path = "../../src/console.rs"]
pub mod console;
#[path = "../../src/error.rs"]
pub mod error;
#[path = "../../src/heap.rs"]
pub mod heap;
#[path = "../../src/huge.rs"]
pub mod huge;
#[path = "../../src/ids.rs"]
pub mod ids;
#[path = "../../src/job/mod.rs"]
pub mod job;
#[path = "../../src/key_file.rs"]
pub mod key_file;
#[path = "../../src/leftovers.rs"]
pub mod leftovers;
#[path = "../../src/progress.rs"]
pub mod progress;
#[path = "../../src/read_at.rs"]
pub mod read_at;
#[path = "../../src/threads.rs"]
pub mod threads;
