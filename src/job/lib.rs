//! What to compute: job files, their defaults, and the digest that tells runs apart.
//!
//! A job file never says where the work is done (that is the cluster file's business), so the same job under any
//! cluster gives the same bytes.

mod as_text;
mod digest;
pub mod languages;
mod merge;
mod quantity;
mod recipes;
mod settings;
mod shingling;

pub use digest::{Digest, PAIRING, READING};
pub use merge::resolve;
pub use quantity::quantity;
pub use recipes::READS_PDF;
pub use settings::*;
pub use shingling::Shingling;
