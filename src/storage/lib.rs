//! Storage: locations, reading and writing of files, and the commit that makes a folder of tables a
//! result.
//!
//! A [`location::Location`] is a local path or an object of a store. All code above this crate sees
//! only locations, files opened for positional reading, and tables. No caller uses async:
//! `blocking` is the only module that waits for a future.

pub mod blocking;

// Locations: paths and URLs, the stores behind URLs, and the expansion of a user's inputs.
#[cfg(feature = "cloud")]
mod clouds;
pub mod expand;
pub mod location;
pub mod relative;
pub mod stores;

// Reading, writing and listing of whole files.
pub mod files;

// Positional reading, pinned to the version seen first, and Parquet files of unknown origin.
pub mod open;
pub mod parquet_file;

// Files in memory, mapped or loaded.
pub mod mapped;

// Atomic writing: of one file, of a name that two runs compete for, and of all files of a run.
pub mod commit;
pub mod new_file;
pub mod output;

// Saved work of an interrupted run, and of the previous run of a scheduled job.
pub mod records;
pub mod state;
pub mod step_records;

// Output tables, and the manifest that makes a folder of them a result.
pub mod manifest;
pub mod table;
pub mod table_encoder;
pub mod table_rows;
pub mod texts;
