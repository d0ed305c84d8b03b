//! What the tests of several modules use.

// The program as people call it.
pub(crate) mod program;

// Ports to listen on.
pub(crate) mod ports;

// Pages of a made-up crawl, as the workers of a run have read them.
pub(crate) mod crawl;

// Three sites with one manual.
pub(crate) mod manual;

// Made-up crawls in files, and how far runs are from what was planted in them.
pub(crate) mod planted;

// Servers, and who asks them.
#[cfg(feature = "serve")]
pub(crate) mod server;

// What a report has.
pub(crate) mod report;

// Runs over documents made for paper.
pub(crate) mod printed;

// Streams without a reader, and those that cannot be written.
pub(crate) mod streams;
