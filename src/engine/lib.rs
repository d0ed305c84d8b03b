//! Execution engine: runs one program on the workers of one or more processes and moves rows
//! between them.
//!
//! A program is a function of a [`Net`]. [`run()`] runs it on every worker of a [`ClusterLayout`].
//! timely transports the rows. This crate adds what timely leaves open: which processes may join, a
//! check that all of them compute the same job, common termination after a failure, and a bound on
//! the rows in flight.
//!
//! | file | content |
//! |---|---|
//! | `cluster_file`, `launch`, `key` | place where the job runs, and the processes that may take part |
//! | `identity`, `handshake`, `timed_stream`, `rendezvous` | identity of the peer, and the check that both sides compute the same job |
//! | `frames`, `link` | integrity and encryption of the transported bytes |
//! | `heartbeat`, `listener`, `stop`, `panics`, `interrupt` | detection of lost peers, and one common end of all processes |
//! | `owners` | mapping from a key to the worker that owns it |
//! | `block`, `buffers`, `mail`, `carry`, `exchange`, `share`, `net` | collective calls: rows to their workers, in bounded memory |
//! | `dataflow` | rows as a stream, instead of one step after the other |
//! | `run` | the combination of all of these |

// Place of the job and its participants.
pub mod cluster_file;
pub mod key;
pub mod launch;

// Mutual discovery and checks of the processes.
pub mod handshake;
pub mod identity;
pub mod rendezvous;
mod timed_stream;

// Failures: detection, propagation, and the same outcome on all processes.
pub mod heartbeat;
mod interrupt;
mod listener;
pub mod panics;
mod stop;

// Rows in transit.
mod block;
mod buffers;
#[doc(hidden)] // for fuzz/
pub mod frames;
mod link;
mod mail;

// Interface of a program, and its execution.
mod carry;
mod dataflow;
mod exchange;
mod net;
mod owners;
mod row;
mod run;
mod share;

pub use cluster_file::ClusterLayout;
pub use dataflow::{Failures, Fallible, Position, RowStream};
pub use interrupt::interrupt;
pub use launch::Launcher;
pub use net::Net;
pub use owners::{HashOwners, Owners, RoundRobin};
pub use row::TryIntoRow;
pub use run::run;
pub use share::IMMEDIATE_BYTES;
