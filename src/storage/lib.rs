//! Bytes: where they are, how they are read and written, and what makes a folder of tables a result.
//!
//! A [`location::Location`] is a local path or an object of a store; everything above this module sees only locations, files
//! opened for positional reading, and tables. No caller awaits: `blocking` is the one place that waits on a future.

pub mod blocking;

// Where: paths and URLs, the stores behind URLs, and the expansion of a user's inputs.
#[cfg(feature = "cloud")]
mod clouds;
pub mod expand;
pub mod location;
pub mod relative;
pub mod stores;

// Reading, writing and listing whole files.
pub mod files;

// Reading: positional, pinned to the version seen first; Parquet of unknown origin.
pub mod open;
pub mod parquet_file;

// In memory, mapped or loaded.
pub mod mapped;

// Writing: all of a file or nothing, one winner where two runs want the same name, and all files of one run together.
pub mod commit;
pub mod new_file;
pub mod output;

// Finished work: of an interrupted run, and of the run before a scheduled one.
pub mod records;
pub mod state;
pub mod step_records;

// The tables that people take home, and what makes a folder of them a result.
pub mod manifest;
pub mod table;
pub mod table_encoder;
pub mod table_rows;
pub mod texts;
