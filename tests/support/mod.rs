//! Helpers of the tests of several modules.

// Calls of the program.
pub(crate) mod program;

// Ports to listen on.
pub(crate) mod ports;

// Pages of a made-up crawl in the form in which the workers of a run have read them.
pub(crate) mod crawl;

// A crawl of three sites with one manual.
pub(crate) mod manual;

// Made-up crawls in files, and the agreement of runs with the planted truth.
pub(crate) mod planted;

// Servers and clients.
#[cfg(feature = "serve")]
pub(crate) mod server;

// Access to reports.
pub(crate) mod report;

// Runs over documents made for print, such as PDF.
pub(crate) mod printed;

// Streams without a reader, and streams that cannot be written.
pub(crate) mod streams;
