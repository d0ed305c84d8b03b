//! Foundation of all other crates: identifiers, errors, threads, and memory of the process.

pub mod build_info;
pub mod by_hash;
pub mod console;
pub mod error;
pub mod exit_codes;
pub mod heap;
pub mod huge;
pub mod ids;
pub mod key_file;
pub mod leftovers;
pub mod open_files;
pub mod progress;
pub mod read_at;
pub mod threads;
