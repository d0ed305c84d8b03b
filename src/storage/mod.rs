//! Bytes: where they lie, how they are read and written, and what makes a folder of tables a result.
//!
//! A [`location::Location`] is a local path or an object of a store; everything above this module sees only locations, files
//! opened for positional reading, and tables. No caller awaits: `blocking` is the one place that waits on a future.

pub(crate) mod blocking;

// Where: a path or URL, the stores behind URLs, and what a user's inputs stand for.
pub mod expand;
pub mod location;
pub mod stores;

// Reading: positional, pinned to the version seen first; Parquet of unknown origin.
pub mod open;
pub(crate) mod parquet_file;

// In memory, mapped or loaded.
pub mod mapped;

// Writing: all of a file or nothing, one winner where two runs want the same name, and all files of one run together.
pub mod commit;
pub mod output;

// What does not fit in memory for a while.
pub mod spill;

// What an interrupted run has finished.
pub mod records;

// The tables that people take home, and what makes a folder of them a result.
pub mod manifest;
pub mod table;

// Fingerprints, in the forms in which people have them.
pub mod fingerprints;
pub mod online_index;
