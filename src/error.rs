//! What can go wrong in a run: one variant for each thing a caller or operator can act on.

/// Result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong in a run; [`Error::exit_code`] is the program's answer to the shell.
///
/// Bad *content* of a crawl is never an `Error`: it becomes a row of the `rejected` table.
#[derive(Debug, Clone, thiserror::Error, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum Error {
    /// The command line asks for something that cannot be done as written.
    #[error("{0}")]
    Usage(String),

    /// A setting of a job or cluster file has a value out of range, or is unknown.
    #[error("{file}: {setting} is {got}, but must be {must_be}")]
    Setting {
        /// File, or `--set` for the command line.
        file: String,
        /// Dotted name of the setting.
        setting: String,
        /// The value as written.
        got: String,
        /// What would be accepted.
        must_be: String,
    },

    /// Processes could not agree to run together.
    #[error("rendezvous: {0}")]
    Handshake(String),

    /// An input is missing, unreadable as a whole, or changed while it was read.
    #[error("input {input}: {reason}")]
    Input {
        /// URL or path of the input.
        input: String,
        /// What is wrong and what to do.
        reason: String,
    },

    /// Another run committed to this output first.
    #[error("output {0}: another run has already been committed here; choose a new --output")]
    LostCommit(String),

    /// More records of one file were bad than `--max-bad` allows.
    #[error(
        "input {input}: {bad} of {read} records are bad, more than the allowed share {allowed}; see the reasons: {reasons}"
    )]
    TooManyBad {
        /// File with the bad records.
        input: String,
        /// Bad records.
        bad: u64,
        /// Records read.
        read: u64,
        /// Allowed share, as set.
        allowed: String,
        /// Commonest reasons with counts.
        reasons: String,
    },

    /// The store did not tell whether the manifest was written.
    #[error(
        "output {0}: the store did not tell whether the result was committed; run again: what was committed is completed"
    )]
    CommitUnknown(String),

    /// A peer was lost or a deadline passed.
    #[error("peer lost: {0}")]
    PeerLost(String),

    /// Reading or writing a store failed.
    #[error("storage {url}: {reason}")]
    Storage {
        /// URL or path of the object.
        url: String,
        /// The store's answer.
        reason: String,
    },

    /// Memory or disk would not suffice.
    #[error(
        "{what} needs {needed_bytes} bytes, but {allowed_bytes} are allowed; raise it to at least the former or split the input"
    )]
    Space {
        /// What needs the space.
        what: String,
        /// Bytes that would fit.
        needed_bytes: u64,
        /// Bytes allowed by settings or free on the device.
        allowed_bytes: u64,
    },

    /// One of our own invariants does not hold: a defect of this program.
    #[error("broken invariant: {0}")]
    Invariant(String),
}

impl Error {
    /// Returns the exit code of the contract.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Usage(_) | Error::Setting { .. } | Error::Handshake(_) => 2,
            Error::Input { .. } => 3,
            Error::LostCommit(_) => 4,
            Error::TooManyBad { .. } => 5,
            Error::CommitUnknown(_) => 6,
            Error::PeerLost(_) => 7,
            Error::Storage { .. } => 8,
            Error::Space { .. } => 9,
            Error::Invariant(_) => 70,
        }
    }

    /// Makes an [`Error::Storage`] from any displayable cause.
    pub fn storage(url: impl Into<String>, cause: impl std::fmt::Display) -> Error {
        Error::Storage { url: url.into(), reason: cause.to_string() }
    }

    /// Makes an [`Error::Input`] from any displayable cause.
    pub fn input(input: impl Into<String>, cause: impl std::fmt::Display) -> Error {
        Error::Input { input: input.into(), reason: cause.to_string() }
    }
}
