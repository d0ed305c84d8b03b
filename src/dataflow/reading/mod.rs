//! Reading: work items of the input become captures on the workers, which are deduplicated into
//! numbered pages.

pub mod addresses;
mod arrived_captures;
pub mod capture;
pub mod capture_rows;
pub mod captures;
pub mod features;
pub mod first_inspection;
pub mod foreign_rows;
pub mod idf;
pub mod ingest;
pub mod item_part;
pub mod item_record;
pub mod known_pages;
pub mod least_pages;
pub mod other_records;
pub mod rejection;
pub mod resume;
pub mod revisits;
pub mod segments;
pub mod shingle_sets;
mod tools;
pub mod work_queue;
pub mod worker_pages;
