//! Containers in bounded memory.
//!
//! A container is made from a [`MemoryPool`] and decides by itself what stays in memory and what is
//! written to the local disk. Its users see only rows and errors. Everything read back from the
//! disk is compared with checksums that stayed in memory.
//!
//! | container | content | access |
//! |---|---|---|
//! | [`SpillColumn`] | plain rows in insertion order | from the front, by range, by group |
//! | [`Array`] | plain items, partly in memory | by position |
//! | [`SpillLists`] | lists of plain items | by number of the list |
//! | [`SpillRows`] | serialised rows | by number of the row |
//! | [`Partitions`] | plain rows by partition | one partition at a time |
//! | [`Arena`] | plain rows by partition, for concurrent readers | one partition at a time, which is kept |
//! | [`RunLog`] | records in insertion order | block by block |
//! | [`RowSorter`], [`SortedRows`] | plain rows | in ascending order, once |
//! | [`Sorter`], [`SortedOutput`] | serialised rows | in ascending order |

mod arena;
mod array;
mod column;
mod disk;
mod lists;
mod partitions;
mod pool;
mod row_sorter;
mod rows;
mod run_log;
mod sorter;

pub use arena::Arena;
pub use array::{Array, ArrayReader};
pub use column::SpillColumn;
pub use disk::{SPILL, disk_too_small, free_bytes, spilled_bytes, taken_at_once_bytes, taken_bytes};
pub use lists::{ListReader, SpillLists};
pub use partitions::{BLOCK_BYTES, Partitions};
pub use pool::{MemoryPool, PARTITION_BYTES, ProcessBounds, ReleaseOnDrop, TRANSIT_BYTES, partition_bits};
pub use row_sorter::{RowSorter, SortedRows};
pub use rows::{RowReader, SpillRows, codec};
pub use run_log::{RUN_LOG_BLOCK_BYTES, RunLog};
pub use sorter::{SortedOutput, Sorter};
