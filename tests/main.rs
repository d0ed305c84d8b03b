//! All integration tests in one binary, for dataflow code is slow to link many times.

// Every wired step equals its plain function, at 1, 2 and 3 workers.
mod dataflow;
