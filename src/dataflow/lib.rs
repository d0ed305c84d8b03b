//! The wiring: one file for each step, each a few exchanges between plain functions of the stage folders.
//!
//! [`replicas`] is the main job, [`find`] its steps after reading, and [`recrawl`] the same on schedule. They are bulk-synchronous:
//! each step needs all of the step before (page numbers, the directory, one choice of the planner for all), borrows what it likes,
//! fails with `?`, and leaves the same bytes at any number of workers. As a differential dataflow the overlap took seven times as
//! long as on operators of timely, and twice the memory; operators have not been measured against these collective calls. The joins
//! of fingerprints ([`hamming`]) are map, broadcast and reduce, and so each is one dataflow of timely operators.

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

// Their steps, in the order of the data,
pub mod reading;

pub mod pairs;

pub mod clusters;

pub mod sinks;

// and what all of them stand on.
pub mod parts;
pub mod shuffle;
pub mod steps;
