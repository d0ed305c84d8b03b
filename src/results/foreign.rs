//! Tables of other programs or of a run: their files, and the digest of the files that `pairs.from`
//! names.

use sha2::{Digest as _, Sha256};

use super::FinishedRun;
use super::decisions::other_content;
use webtwin_base::error::{Error, Result};
use webtwin_base::read_at::RandomAccess;
use webtwin_job::{Job, JobKind, RecordLimits};
use webtwin_pages::foreign_table::ForeignTable;
use webtwin_storage::expand::expand;
use webtwin_storage::location::Location;
use webtwin_storage::manifest::NAME;
use webtwin_storage::open::open;

/// Number of bytes of a file that are read together.
const PIECE_BYTES: usize = 4 << 20;

/// A file of a table.
struct Part {
    location: Location,
    /// Length and checksum in the manifest of its result; `None` for a file outside of a result.
    entry: Option<String>,
}

/// Returns the files that names denote, in the order of the names and then of the files. The name
/// of a result denotes the files of its table `table`. Other names are expanded like names of
/// inputs.
fn parts(sources: &[String], table: &str) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    for name in sources {
        let is_pattern = name.starts_with('@') || name.contains(['*', '?', '[']);
        if !is_pattern && Location::parse(name)?.join(NAME)?.exists()? {
            let run = FinishedRun::open(name)?;
            let n_before = parts.len();
            for file in run.manifest.table(table) {
                let entry = Some(format!("{} {}\n", file.bytes, file.xxh3));
                parts.push(Part { location: run.folder.join(&file.path)?, entry });
            }
            if parts.len() == n_before {
                return Err(Error::input(
                    name,
                    format!("the result has no table `{table}`; name the folder of another of its tables"),
                ));
            }
            continue;
        }
        let inputs = expand(std::slice::from_ref(name), |_| false)?;
        let mut locations: Vec<Location> = inputs.into_iter().flat_map(|one| one.locations).collect();
        locations.sort_unstable();
        parts.extend(locations.into_iter().map(|location| Part { location, entry: None }));
    }
    Ok(parts)
}

/// Sets the digest of the tables that `pairs.from` of a job names, so that a change of their
/// content makes another job. Files are read to compute it. For a result, its manifest suffices.
///
/// # Errors
/// Returns [`Error::Input`] for a file that does not exist. Returns [`Error::Setting`] if the job
/// already has a digest and the files have another.
pub fn bind(job: &mut Job) -> Result<()> {
    if job.pairs.from.is_empty() {
        job.pairs.from_sha256.clear();
        return Ok(());
    }
    let mut hash = Sha256::new();
    for Part { location, entry } in parts(&job.pairs.from, table_of(job))? {
        match entry {
            Some(entry) => hash.update(entry),
            None => {
                let file = open(&location)?;
                hash.update(format!("{}\n", file.len()));
                for offset in (0..file.len()).step_by(PIECE_BYTES) {
                    hash.update(file.read_at(offset, PIECE_BYTES)?);
                }
            }
        }
    }
    let actual = data_encoding::HEXLOWER.encode(&hash.finalize());
    if !job.pairs.from_sha256.is_empty() && job.pairs.from_sha256 != actual {
        return Err(other_content("pairs.from_sha256", &job.pairs.from.join(", "), &job.pairs.from_sha256, &actual));
    }
    job.pairs.from_sha256 = actual;
    Ok(())
}

/// Returns the table that is read from a result in `pairs.from`.
fn table_of(job: &Job) -> &'static str {
    if job.kind == JobKind::Grow { "clusters" } else { "pairs" }
}

/// Opens the tables that names denote. From a result, `table` is opened.
///
/// # Errors
/// Returns any error of [`ForeignTable::open`], and an error for a name that denotes no file.
pub fn tables(sources: &[String], table: &str, limits: &RecordLimits) -> Result<Vec<ForeignTable>> {
    parts(sources, table)?.into_iter().map(|part| ForeignTable::open(&part.location, limits)).collect()
}
