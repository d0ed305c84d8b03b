//! All integration tests in one binary, for dataflow code is slow to link many times.

// Every wired step equals its plain function, at 1, 2 and 3 workers.
mod dataflow;

// Who may take part in a run, what the primitives of the engine move, and how runs end.
mod rendezvous;
