//! Steps of all jobs, one file for each step. A step consists of a few exchanges between plain
//! functions of the stage folders.
//!
//! [`replicas`] is the main job, [`find`] is its steps after reading, and [`recrawl`] is the
//! scheduled variant of the main job. These jobs are bulk-synchronous: each step needs the complete
//! result of the previous step (page numbers, the directory, one choice of the planner for all
//! workers), borrows its input, fails with `?`, and produces the same bytes with any number of
//! workers. As a differential dataflow the overlap took seven times as long as on operators of
//! timely, and twice the memory. Operators of timely have not been measured against the collective
//! calls used here. The joins of fingerprints ([`hamming`]) are map, broadcast and reduce, and so
//! each is one dataflow of timely operators.

// Jobs.
pub mod batch;
pub mod enough_memory;
pub mod find;
pub mod graph;
pub mod grow;
pub mod hamming;
pub mod memory_estimate;
pub mod recrawl;
pub mod replicas;
pub mod run;
pub mod study;
pub mod web;

// Steps of the jobs, in the order of the data.
pub mod reading;

pub mod pairs;

pub mod clusters;

pub mod sinks;

// Shared building blocks.
pub mod parts;
pub mod shuffle;
pub mod steps;
