//! All integration tests in one binary, for dataflow code is slow to link many times.

// Damaged and hostile WARC files: what survives, and what is said of the rest.
mod bad_warc;

// Every wired step equals its plain function, at 1, 2 and 3 workers.
mod dataflow;

// Who may take part in a run, what the primitives of the engine move, and how runs end.
mod rendezvous;
