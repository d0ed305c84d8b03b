//! Building blocks of all steps: ownership of rows, counts and components over all workers, and the
//! memory budget.

pub mod components;
pub mod directory;
pub mod gather;
pub mod groups;
pub mod hash_partitions;
pub mod memory;
pub mod packed;
pub mod packed_links;
pub mod page_counts;
pub mod page_ranges;
pub mod page_set;
pub mod roots;
pub mod sorted_ranges;
