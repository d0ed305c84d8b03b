//! Errors of a run: one variant for each condition that a caller or operator can act on.

use std::io::ErrorKind;

/// Result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Error of a run. [`Error::exit_code`] maps it to the exit code of the program.
///
/// Bad *content* of a crawl is never an `Error`: it becomes a row of the `rejected` table.
#[derive(Debug, Clone, thiserror::Error, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum Error {
    /// The command line is invalid or requests something impossible.
    #[error("{0}")]
    Usage(String),

    /// A setting of a job or cluster file has a value out of range, or is unknown.
    #[error("{file}: {setting} is {got}, but must be {must_be}")]
    Setting {
        /// File, or `--set` for the command line.
        file: String,
        /// Dotted name of the setting.
        setting: String,
        /// Value as written.
        got: String,
        /// Description of the accepted values.
        must_be: String,
    },

    /// The processes cannot run together.
    #[error("rendezvous: {0}")]
    Handshake(String),

    /// An input is missing, unreadable as a whole, or changed while it was read.
    #[error("input {input}: {reason}")]
    Input {
        /// URL or path of the input.
        input: String,
        /// Description of the problem, and the remedy.
        reason: String,
    },

    /// A scheduled job has no work, because nothing has changed since the last run.
    #[error("nothing to do: {0}")]
    NothingToDo(String),

    /// Another run committed to this output first.
    #[error("output {0}: another run has already been committed here; choose a new --output")]
    LostCommit(String),

    /// Another run created this generation of a state first.
    #[error(
        "state {0}: another run has written this generation in the meantime; the result is valid, \
         and the next run continues from the generation of the other run"
    )]
    LostGeneration(String),

    /// One file has more bad records than `--max-bad` allows.
    #[error(
        "input {input}: {bad} of {read} records are damaged, more than the allowed fraction \
         {allowed}: {reasons}; the first is {example}; repair the input, or allow more with \
         --max-bad"
    )]
    TooManyBad {
        /// File with the bad records.
        input: String,
        /// Number of damaged records.
        bad: u64,
        /// Number of records read of the input.
        read: u64,
        /// Allowed fraction, as set.
        allowed: String,
        /// Most frequent reasons with counts.
        reasons: String,
        /// First bad record: reason, offset, detail.
        example: String,
    },

    /// A scheduled crawl has too few pages compared with the previous crawl.
    #[error(
        "input {inputs}: {pages} pages, less than the fraction {share} (recrawl.least_pages) of the \
         {before}: the crawl is incomplete, or most of it failed; no result was written, and the \
         state is unchanged; to accept the crawl, --set recrawl.least_pages=0"
    )]
    TooFewPages {
        /// Names of the first few inputs.
        inputs: String,
        /// Number of pages of the crawl.
        pages: u64,
        /// Number of pages that the crawl was compared with, and the crawl they belong to.
        before: String,
        /// Minimum fraction of these pages, as set.
        share: String,
    },

    /// The store did not report if the manifest was written.
    #[error(
        "output {0}: the store did not confirm whether the result was committed; run again, which \
         completes a committed result"
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
        /// Response of the store or the system.
        reason: String,
    },

    /// A process would need more memory than a setting allows.
    #[error(
        "{what}: {} of memory needed in a process, but {setting} allows {}; set {setting} to {needed_bytes} or more, or split the input",
        size(*needed_bytes), size(*allowed_bytes)
    )]
    MemoryLimit {
        /// Data that takes the memory.
        what: String,
        /// Value of `setting` that would suffice, as estimated.
        needed_bytes: u64,
        /// Current value of `setting`.
        allowed_bytes: u64,
        /// Dotted name of the setting, or an option of the command line.
        setting: String,
    },

    /// The system has no memory left.
    #[error(
        "{what}: the system cannot allocate {} of memory; end other programs, raise the limit of \
         this process (ulimit -v) or use a larger machine",
        size(*needed_bytes)
    )]
    NoMemory {
        /// Purpose of the memory.
        what: String,
        /// Number of bytes requested.
        needed_bytes: u64,
    },

    /// The system cannot start another thread.
    #[error(
        "the system cannot start another thread: {0}; use fewer --workers, end other programs, or \
         raise the limits of this process (ulimit -u and -v, pids.max of its control group)"
    )]
    NoThread(String),

    /// A process would write more to its disk than a setting allows.
    #[error(
        "{what}: {} or more of disk needed in {folder}, but {setting} allows {}; set {setting} to {needed_bytes} or more, or split the input",
        size(*needed_bytes), size(*allowed_bytes)
    )]
    DiskLimit {
        /// Data that is written.
        what: String,
        /// Folder of the files.
        folder: String,
        /// Value of `setting` that would suffice, as estimated.
        needed_bytes: u64,
        /// Current value of `setting`.
        allowed_bytes: u64,
        /// Dotted name of the setting.
        setting: String,
    },

    /// A device is full, or has less free space than is going to be written.
    #[error("{path}: {cause}: {} or more needed; {remedy}", size(*needed_bytes))]
    DiskFull {
        /// Path of the file or folder.
        path: String,
        /// Number of bytes to be written.
        needed_bytes: u64,
        /// Message of the system, and the free space.
        cause: String,
        /// Remedy.
        remedy: String,
    },

    /// More pairs than a setting allows were counted. The check precedes their creation.
    #[error(
        "{found} {what} and take {}, but {limit}; {remedy}",
        size(found * pair_bytes)
    )]
    TooManyPairs {
        /// Description of the pairs, for example "pairs of pages that collide".
        what: String,
        /// Number of pairs.
        found: u64,
        /// Size of each pair in memory, in bytes.
        pair_bytes: u64,
        /// Allowed number, and the setting that defines it.
        limit: String,
        /// Way to reduce the number.
        remedy: String,
    },

    /// More rows than can be numbered.
    #[error("{found} {what}, but at most {allowed} can be numbered; split the input")]
    TooManyRows {
        /// Description of the rows.
        what: String,
        /// Number of rows.
        found: u64,
        /// Maximum number of rows.
        allowed: u64,
    },

    /// A signal ended this process or one of its peers.
    #[error("{by}; {left}")]
    Stopped {
        /// Name of the signal, and the process that received it.
        by: String,
        /// Remaining files, and the way to continue.
        left: String,
        /// Exit code by the convention of shells: 128 plus the number of the signal.
        code: u8,
    },

    /// An internal invariant does not hold, which is a defect of this program.
    #[error("broken invariant, a defect of webtwin; report it with this message: {0}")]
    Invariant(String),
}

impl Error {
    /// Returns the exit code, as documented for users.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Usage(_) | Error::Setting { .. } | Error::Handshake(_) => 2,
            Error::Input { .. } => 3,
            Error::LostCommit(_) | Error::LostGeneration(_) => 4,
            Error::TooManyBad { .. } | Error::TooFewPages { .. } => 5,
            Error::CommitUnknown(_) => 6,
            Error::PeerLost(_) => 7,
            Error::Storage { .. } => 8,
            Error::MemoryLimit { .. }
            | Error::NoMemory { .. }
            | Error::NoThread(_)
            | Error::DiskLimit { .. }
            | Error::DiskFull { .. }
            | Error::TooManyPairs { .. }
            | Error::TooManyRows { .. } => 9,
            Error::NothingToDo(_) => 10,
            Error::Invariant(_) => 70,
            Error::Stopped { code, .. } => *code,
        }
    }

    /// Creates an [`Error::Storage`] from any displayable cause.
    pub fn storage(url: impl Into<String>, cause: impl std::fmt::Display) -> Error {
        let cause = cause.to_string();
        // Stores respond with multi-line XML, but an error is one line.
        let words: Vec<&str> = cause.split_whitespace().collect();
        Error::Storage { url: url.into(), reason: words.join(" ") }
    }

    /// Creates an [`Error::Input`] from any displayable cause.
    pub fn input(input: impl Into<String>, cause: impl std::fmt::Display) -> Error {
        Error::Input { input: input.into(), reason: cause.to_string() }
    }

    /// Adds the name of the input to an [`Error::Input`] from a reader that does not have the name.
    #[must_use]
    pub fn of_input(self, name: &str) -> Error {
        match self {
            Error::Input { input, reason } if input.is_empty() => Error::Input { input: name.into(), reason },
            other => other,
        }
    }

    /// Returns the error of a failed write to a local disk. It is [`Error::DiskFull`] with `remedy`
    /// if there is no space for `bytes` more, [`Error::Usage`] if there is a file in place of a
    /// folder or the reverse, and [`Error::Storage`] otherwise.
    pub fn write(path: impl Into<String>, cause: &std::io::Error, bytes: u64, remedy: &str) -> Error {
        let cause = match cause.kind() {
            ErrorKind::StorageFull => "no space left on device".into(),
            ErrorKind::QuotaExceeded => "disk quota exceeded".into(),
            ErrorKind::NotADirectory => {
                let why = "a parent folder of this path is a file; choose another path, or move that file \
                     away";
                return Error::Usage(format!("{}: {why}", path.into()));
            }
            ErrorKind::IsADirectory => {
                return Error::Usage(format!(
                    "{}: is a folder, but a file is needed; name a file in it or elsewhere",
                    path.into()
                ));
            }
            _ => return Error::storage(path, cause),
        };
        Error::DiskFull { path: path.into(), needed_bytes: bytes, cause, remedy: remedy.into() }
    }
}

/// Formats a number of bytes for people, with one decimal from 1 KiB up. Messages that ask for a
/// number to be typed contain it in full as well.
pub fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.into_iter().find(|(unit, _)| bytes >= *unit) {
        None => format!("{bytes} bytes"),
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / unit as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_error_names_the_setting_and_the_required_value() {
        let error = Error::MemoryLimit {
            what: "pages and chunks".into(),
            needed_bytes: 74_690_123,
            allowed_bytes: 38_417_000,
            setting: "effort.memory_bytes".into(),
        };
        let line = "pages and chunks: 71.2 MiB of memory needed in a process, but effort.memory_bytes allows 36.6 MiB; \
                    set effort.memory_bytes to 74690123 or more, or split the input";
        assert_eq!((error.to_string().as_str(), error.exit_code()), (line, 9));
    }

    #[test]
    fn too_many_pairs_are_rejected_with_their_number_and_a_remedy() {
        let error = Error::TooManyPairs {
            what: "pairs of pages collide".into(),
            found: 100_000_000,
            pair_bytes: 60,
            limit: "batch.max_pairs allows 50000000".into(),
            remedy: "a smaller k makes fewer, or set batch.max_pairs to 100000000 or more".into(),
        };
        let line = "100000000 pairs of pages collide and take 5.6 GiB, but batch.max_pairs allows 50000000; a smaller \
                    k makes fewer, or set batch.max_pairs to 100000000 or more";
        assert_eq!((error.to_string().as_str(), error.exit_code()), (line, 9));
    }

    #[test]
    fn full_disk_is_reported_without_advice_to_raise_a_limit() {
        let write_error = |kind: ErrorKind| Error::write("out/a", &kind.into(), 74_460, "free some space there");
        let line = write_error(ErrorKind::StorageFull).to_string();
        assert_eq!(line, "out/a: no space left on device: 72.7 KiB or more needed; free some space there");
        assert!(write_error(ErrorKind::QuotaExceeded).to_string().contains("disk quota exceeded"));
        assert_eq!(
            (write_error(ErrorKind::StorageFull).exit_code(), write_error(ErrorKind::PermissionDenied).exit_code()),
            (9, 8)
        );
        assert_eq!(
            (write_error(ErrorKind::NotADirectory).exit_code(), write_error(ErrorKind::IsADirectory).exit_code()),
            (2, 2)
        );
    }

    #[test]
    fn sizes_have_one_decimal() {
        let message = [0, 1023, 1024, 38_417_000, 36_238_786_560, 4 << 40].map(size);
        assert_eq!(message, ["0 bytes", "1023 bytes", "1.0 KiB", "36.6 MiB", "33.8 GiB", "4.0 TiB"]);
    }
}
