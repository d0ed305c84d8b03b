//! The state of a scheduled job: records of what it has read, kept from run to run.
//!
//! ```text
//! STATE/gen-000017.json       a generation: the live inputs, and for each of their work items where its record is
//! STATE/runs/3f/3fa9….run     records one after another, under the hash of the file's bytes; or what a worker has found
//! ```
//!
//! Files of records never change and are shared by generations. A generation is created under a name that must not exist, after
//! the result that it belongs to, so of two runs that overlap one wins, and a crash between the two leaves a good result and
//! the state before it. Every record and every generation carries a checksum; a record that is damaged or missing costs the
//! time to read its input again, never an answer.

mod generation;
mod records;
mod shares;

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

pub use generation::{Generation, Pages, RecordAt, RecordFile};
pub use records::StateRecords;

use crate::error::{Error, Result};
use crate::storage::location::Location;

/// Folder of the files of records.
const RUNS: &str = "runs";

/// Ending of their names.
const RUN: &str = ".run";

/// How the names of generations begin and end.
const GENERATION: (&str, &str) = ("gen-", ".json");

/// Files of records are removed once they are older than this, if no generation names them: a run may be about to.
const STILL_WRITTEN: Duration = Duration::from_secs(24 * 3600);

/// A folder with the state of a scheduled job.
#[derive(Debug, Clone)]
pub struct State {
    folder: Location,
}

/// What [`State::check`] has found.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Generations that are whole.
    pub generations: usize,
    /// Records of work items that they name, each once.
    pub records: usize,
    /// Bytes of these, and of what workers have found.
    pub bytes: u64,
    /// What is damaged or missing, by name.
    pub damaged: Vec<String>,
    /// Generations among these.
    pub damaged_generations: usize,
}

/// What [`State::prune`] has removed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Pruned {
    /// Generations.
    pub generations: usize,
    /// Files of records that no kept generation names.
    pub files: usize,
    /// Bytes of these.
    pub bytes: u64,
}

impl State {
    /// The state in a folder, which may be empty or missing.
    pub fn at(folder: Location) -> State {
        State { folder }
    }

    /// Where it is.
    pub fn folder(&self) -> &Location {
        &self.folder
    }

    /// Numbers of the generations, ascending.
    ///
    /// # Errors
    /// [`Error::Storage`] when the folder cannot be listed.
    pub fn generations(&self) -> Result<Vec<u64>> {
        let number = |name: &String| {
            let digits = name.strip_prefix(GENERATION.0)?.strip_suffix(GENERATION.1)?;
            digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
        };
        let mut numbers: Vec<u64> = self.folder.entries()?.iter().filter_map(number).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The newest generation, if there is one.
    ///
    /// # Errors
    /// As [`State::generation`]; one that is damaged is not passed over, because an older one has other live inputs.
    pub fn newest(&self) -> Result<Option<Generation>> {
        self.generations()?.last().map(|&number| self.generation(number)).transpose()
    }

    /// A generation.
    ///
    /// # Errors
    /// [`Error::Storage`] when it is missing, damaged, or of another format.
    pub fn generation(&self, number: u64) -> Result<Generation> {
        let location = self.generation_at(number)?;
        let bytes = location.get()?.ok_or_else(|| Error::storage(location.name(), "there is no such generation"))?;
        Generation::decode(&bytes).map_err(|why| {
            let remedy = "remove it to go on from the generation before it, or begin another state";
            Error::storage(location.name(), format!("{why}; {remedy}"))
        })
    }

    /// Makes a generation the newest one; all files of records that it names must be written.
    ///
    /// # Errors
    /// [`Error::LostGeneration`] when another run was first; else as [`Location::put_if_absent`].
    pub fn commit(&self, generation: &Generation) -> Result<()> {
        let bytes = generation.encode();
        match self.generation_at(generation.number)?.put_if_absent(&bytes, |stored| stored == bytes) {
            Err(Error::LostCommit(name)) => Err(Error::LostGeneration(name)),
            done => done,
        }
    }

    fn generation_at(&self, number: u64) -> Result<Location> {
        self.folder.join(&format!("{}{number:06}{}", GENERATION.0, GENERATION.1))
    }

    /// Location of a file of records.
    fn run_at(&self, name: &str) -> Result<Location> {
        self.folder.join(&format!("{RUNS}/{}/{name}{RUN}", name.get(..2).unwrap_or_default()))
    }

    /// Reads all that the generations name, and compares checksums.
    ///
    /// # Errors
    /// [`Error::Storage`] when the folder cannot be listed; damage is no error but told.
    pub fn check(&self) -> Result<Checked> {
        let mut checked = Checked::default();
        let mut seen = BTreeSet::new();
        for number in self.generations()? {
            match self.generation(number) {
                Ok(generation) => {
                    checked.generations += 1;
                    for (nth, file) in generation.all_files().enumerate() {
                        let records: Vec<&RecordAt> = file
                            .records
                            .iter()
                            .filter(|record| seen.insert((file.name.clone(), record.offset)))
                            .collect();
                        let bytes = self.run_at(&file.name)?;
                        let damaged = records::damaged(&bytes, &records);
                        checked.records += if nth < generation.files.len() { records.len() } else { 0 };
                        checked.bytes += records.iter().map(|record| record.bytes).sum::<u64>();
                        checked.damaged.extend(damaged.then(|| bytes.name().to_string()));
                    }
                }
                Err(error) => {
                    checked.damaged.push(error.to_string());
                    checked.damaged_generations += 1;
                }
            }
        }
        checked.damaged.dedup();
        Ok(checked)
    }

    /// Removes all generations but the newest `keep`, and every file of records that none of them names and that is more than
    /// a day old.
    ///
    /// # Errors
    /// [`Error::Storage`] when the folder cannot be listed, or a generation that is to be kept is damaged: what it names is
    /// not known.
    pub fn prune(&self, keep: usize) -> Result<Pruned> {
        let numbers = self.generations()?;
        let (old, kept) = numbers.split_at(numbers.len().saturating_sub(keep.max(1)));
        let named = self.named(kept)?;
        let mut pruned = Pruned::default();
        for &number in old {
            self.generation_at(number)?.remove()?;
            pruned.generations += 1;
        }
        let now = SystemTime::now();
        let is_old = |changed: SystemTime| now.duration_since(changed).is_ok_and(|age| age > STILL_WRITTEN);
        for file in self.folder.join(RUNS)?.into_folder().list(None)? {
            let name = file.location.file_name().strip_suffix(RUN).map(str::to_string);
            let is_unnamed = name.is_some_and(|name| !named.contains(&name));
            if is_unnamed && file.location.changed()?.is_some_and(is_old) {
                file.location.remove()?;
                pruned.files += 1;
                pruned.bytes += file.stamp.bytes;
            }
        }
        Ok(pruned)
    }

    /// Removes those of these files of records that no generation names.
    fn discard(&self, files: &[RecordFile]) -> Result<()> {
        let named = self.named(&self.generations()?)?;
        let mut unnamed = files.iter().filter(|file| !named.contains(&file.name));
        unnamed.try_for_each(|file| self.run_at(&file.name)?.remove())
    }

    /// Names of the files of records that these generations name.
    fn named(&self, generations: &[u64]) -> Result<BTreeSet<String>> {
        let mut named = BTreeSet::new();
        for &number in generations {
            named.extend(self.generation(number)?.all_files().map(|file| file.name.clone()));
        }
        Ok(named)
    }
}

#[cfg(test)]
mod tests;
