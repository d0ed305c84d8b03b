//! Containers in bounded memory.
//!
//! A container is made from a [`MemoryPool`] and decides alone what stays in memory and what waits on the local disk; whoever
//! fills and reads it sees rows and errors. What is read back from the disk is held against checksums that stayed in memory.
//!
//! | container | holds | is read |
//! |---|---|---|
//! | [`Column`] | plain rows in the order they came | from the front, by range, by group |
//! | [`Array`] | plain items, with a share of the memory | by position |
//! | [`Lists`] | lists of plain items | by number of the list |
//! | [`Rows`] | serialised rows | by number of the row |
//! | [`Partitions`] | plain rows by partition | one partition at a time |
//! | [`Arena`] | the same, for readers that share it | one partition at a time, without forgetting it |
//! | [`RunLog`] | records in the order they came | block by block |
//! | [`RowSorter`], [`SortedRows`] | plain rows | in their order, once |
//! | [`Sorter`], [`Sorted`] | serialised rows | in their order |

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
pub use column::Column;
pub use disk::{SPILL, free_bytes, no_room_on_disk, spilled_bytes, taken_at_once_bytes, taken_bytes};
pub use lists::{ListReader, Lists};
pub use partitions::{BLOCK_BYTES, Partitions};
pub use pool::{Bounds, GiveBack, MemoryPool, ON_THE_WAY, PARTITION_BYTES, partition_bits};
pub use row_sorter::{RowSorter, SortedRows};
pub use rows::{RowReader, Rows, codec};
pub use run_log::{RunLog, TAPE_BLOCK_BYTES};
pub use sorter::{Sorted, Sorter};
