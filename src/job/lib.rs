//! Definition of a job: job files, default settings, and the digest that distinguishes jobs.
//!
//! A job file never describes where the work is done, which is the purpose of the cluster file. So
//! a job gives the same bytes on any cluster.

mod as_text;
mod digest;
pub mod languages;
mod merge;
mod quantity;
mod recipes;
mod settings;
mod shingling;

pub use digest::{JobDigest, PAIRING, READING};
pub use merge::resolve;
pub use quantity::quantity;
pub use recipes::READS_PDF;
pub use settings::*;
pub use shingling::Shingling;
