//! The engine: runs one program on the workers of one or more processes, and moves rows between them.
//!
//! A program is a function of a [`Net`]; [`run()`] runs it on every worker of a [`Cluster`]. The rows travel by timely; what
//! timely leaves open - who may join, whether all compute the same, what happens when one fails, how much may be on its
//! way - is settled here:
//!
//! | file | question |
//! |---|---|
//! | `cluster_file`, `launch`, `key` | where does the job run, and who may take part? |
//! | `handshake`, `rendezvous` | who is at the other end, and do we compute the same thing? |
//! | `frames`, `link` | is what arrives what was sent, and who can read it? |
//! | `heartbeat`, `listener`, `stop`, `panics`, `interrupt` | is everybody there, and how do all end alike when one fails? |
//! | `owners` | which worker is a row for? |
//! | `block`, `buffers`, `mail`, `carry`, `exchange`, `share`, `net` | how do rows get to their workers, in bounds? |
//! | `dataflow` | what when rows are a stream, and not one step after the other? |
//! | `run` | how do these play together? |

// Where the job runs, and who may take part.
pub mod cluster_file;
pub mod key;
pub mod launch;

// The processes find and check each other.
pub mod handshake;
pub mod rendezvous;

// Failure: noticed, passed on, the same for all.
pub mod heartbeat;
mod interrupt;
mod listener;
pub mod panics;
mod stop;

// Rows on their way.
mod block;
mod buffers;
#[doc(hidden)] // for fuzz/
pub mod frames;
mod link;
mod mail;

// What a program sees and how it is run.
mod carry;
mod dataflow;
mod exchange;
mod net;
mod owners;
mod row;
mod run;
mod share;

pub use cluster_file::Cluster;
pub use dataflow::{Failures, Fallible, Position, Rows};
pub use interrupt::interrupt;
pub use launch::Launcher;
pub use net::Net;
pub use owners::{HashOwners, Owners, RoundRobin};
pub use row::IntoRow;
pub use run::run;
pub use share::AT_ONCE_BYTES;
