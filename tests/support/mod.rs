//! What the tests of several modules use.

// The program as people call it.
pub(crate) mod program;

// Ports to listen on.
pub(crate) mod ports;

// Pages of a made-up crawl, as the workers of a run have read them.
pub(crate) mod crawl;
