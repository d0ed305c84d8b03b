//! State of a scheduled job: records of the input that it has read, kept from run to run.
//!
//! ```text
//! STATE/gen-000017.json           a generation: the live inputs, and the position of the record
//!                                 of each of their work items
//! STATE/copies/gen-000017.json    a copy of it, read if the first file is damaged or missing
//! STATE/ahead/3fa9….json          records that were read ahead of any run
//! STATE/runs/3f/3fa9….run         records one after another, or a worker's result; named by the
//!                                 hash of its content
//! ```
//!
//! Files of records never change and are shared by generations. A generation is created under a
//! name that must not exist, after the result that it belongs to. So of two overlapping runs one
//! wins, and a crash between the two writes leaves a valid result and the previous state. Every
//! record and every generation has a checksum. A damaged or missing record costs the time to read
//! its input again, but never changes a result. A damaged generation is read from its copy, which
//! is written after the generation was committed. If both are damaged, the live inputs are unknown,
//! and continuing from an older generation would give another result. So that is refused until a
//! person removes the generation ([`JobState::drop_damaged`]).

mod ahead;
mod generation;
mod records;
mod shares;

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

pub use ahead::ReadAhead;
pub use generation::{Generation, PageTotals, RecordAt, RecordFile};
pub use records::StateRecords;

use crate::location::Location;
use webtwin_base::error::{Error, Result};

/// Folder of the files of records.
const RUNS: &str = "runs";

/// Folder of the copies of generations.
const COPIES: &str = "copies";

/// Extension of the files of records.
const RUN: &str = ".run";

/// Prefix and extension of the names of generations.
const GENERATION: (&str, &str) = ("gen-", ".json");

/// Minimum age of a file of records that is removed because no generation names it. A running job
/// may still commit a generation with a younger one.
const MIN_REMOVAL_AGE: Duration = Duration::from_secs(24 * 3600);

/// Folder with the state of a scheduled job.
#[derive(Debug, Clone)]
pub struct JobState {
    folder: Location,
}

/// Outcome of [`JobState::check`].
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct StateCheck {
    /// Number of intact generations.
    pub generations: usize,
    /// Number of records of work items that these generations name, each counted once.
    pub records: usize,
    /// Total size of these records and of the workers' results, in bytes.
    pub bytes: u64,
    /// Names of the damaged or missing files.
    pub damaged: Vec<String>,
    /// Number of generations among these.
    pub damaged_generations: usize,
}

/// Numbers of what [`JobState::prune`] has removed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct PruneReport {
    /// Number of generations.
    pub generations: usize,
    /// Number of files of records that no kept generation names.
    pub files: usize,
    /// Total size of these files in bytes.
    pub bytes: u64,
}

impl JobState {
    /// Returns the state in a folder, which may be empty or missing.
    pub fn at(folder: Location) -> JobState {
        JobState { folder }
    }

    /// Returns the folder of the state.
    pub fn folder(&self) -> &Location {
        &self.folder
    }

    /// Returns the numbers of the generations, ascending. A generation with only a copy is
    /// included.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] if the folder cannot be listed.
    pub fn generations(&self) -> Result<Vec<u64>> {
        let number = |name: &String| -> Option<u64> {
            let digits = name.strip_prefix(GENERATION.0)?.strip_suffix(GENERATION.1)?;
            digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
        };
        let mut numbers = BTreeSet::new();
        for folder in [self.folder.clone(), self.folder.join(COPIES)?] {
            numbers.extend(folder.entries()?.iter().filter_map(number));
        }
        Ok(numbers.into_iter().collect())
    }

    /// Returns the newest generation, if there is one.
    ///
    /// # Errors
    /// Returns the errors of [`JobState::generation`]. A damaged generation is not skipped, because
    /// an older one has other live inputs.
    pub fn newest(&self) -> Result<Option<Generation>> {
        self.generations()?.last().map(|&number| self.generation(number)).transpose()
    }

    /// Returns a generation. Reads its copy if the first file is damaged or missing.
    ///
    /// # Errors
    /// Returns [`Error::Input`], with the command to continue, if neither file is intact and of
    /// this format; and [`Error::Storage`] if they cannot be read.
    pub fn generation(&self, number: u64) -> Result<Generation> {
        let first = self.generation_at(number)?;
        let fault = match read(&first, number)? {
            Ok(generation) => return Ok(generation),
            Err(fault) => fault,
        };
        read(&self.copy_at(number)?, number)?.map_err(|copy_fault| {
            let folder = self.folder.name();
            let reason = format!(
                "{fault}, and so is its copy ({copy_fault}), so its live inputs are unknown; to continue from the \
                 previous generation, run `webtwin state prune {folder} --damaged`, and name all live inputs with --input in \
                 the next run"
            );
            Error::input(first.name(), reason)
        })
    }

    /// Returns the reason why a generation was read from its copy, or `None` if it was not.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] if it cannot be read.
    pub fn fault(&self, number: u64) -> Result<Option<String>> {
        let first = self.generation_at(number)?;
        Ok(read(&first, number)?.err().map(|fault| format!("{first}: {fault}")))
    }

    /// Makes `generation` the newest one. All files of records that it names must have been
    /// written.
    ///
    /// # Errors
    /// Returns [`Error::LostGeneration`] if another run was first, and otherwise the errors of
    /// [`Location::put_if_absent`].
    pub fn commit(&self, generation: &Generation) -> Result<()> {
        let bytes = generation.encode();
        match self.generation_at(generation.number)?.put_if_absent(&bytes, |stored| stored == bytes) {
            Err(Error::LostCommit(name)) => return Err(Error::LostGeneration(name)),
            done => done?,
        }
        // A failure is ignored: the generation is valid without a copy, only less safe.
        let _ = self.copy_at(generation.number)?.put(&bytes);
        Ok(())
    }

    fn generation_at(&self, number: u64) -> Result<Location> {
        self.folder.join(&format!("{}{number:06}{}", GENERATION.0, GENERATION.1))
    }

    fn copy_at(&self, number: u64) -> Result<Location> {
        self.folder.join(&format!("{COPIES}/{}{number:06}{}", GENERATION.0, GENERATION.1))
    }

    /// Removes a generation. The copy is removed first, because it would replace the generation.
    fn remove(&self, number: u64) -> Result<()> {
        self.copy_at(number)?.remove()?;
        self.generation_at(number)?.remove()
    }

    /// Returns the location of a file of records.
    fn run_at(&self, name: &str) -> Result<Location> {
        self.folder.join(&format!("{RUNS}/{}/{name}{RUN}", name.get(..2).unwrap_or_default()))
    }

    /// Reads everything that the generations name, and compares the checksums.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] if the folder cannot be listed. Damage is not an error but part
    /// of the outcome.
    pub fn check(&self) -> Result<StateCheck> {
        let mut checked = StateCheck::default();
        let mut checked_records = BTreeSet::new();
        // Returns the number of records that no other file has named. Generations share files, so
        // each record is checked only once.
        let mut check_file = |file: &RecordFile, checked: &mut StateCheck| {
            let is_new = |record: &&RecordAt| checked_records.insert((file.name.clone(), record.offset));
            let records: Vec<&RecordAt> = file.records.iter().filter(is_new).collect();
            let bytes = self.run_at(&file.name)?;
            checked.bytes += records.iter().map(|record| record.bytes).sum::<u64>();
            checked.damaged.extend(records::damaged(&bytes, &records).then(|| bytes.name().to_string()));
            Ok::<usize, Error>(records.len())
        };
        for number in self.generations()? {
            match self.generation(number) {
                Ok(generation) => {
                    checked.generations += 1;
                    checked.damaged.extend(self.fault(number)?.map(|fault| format!("{fault}; its copy is intact")));
                    let copy = self.copy_at(number)?;
                    // States of older builds have no copies.
                    let is_damaged = copy.exists()? && read(&copy, number)?.is_err();
                    checked.damaged.extend(is_damaged.then(|| copy.name().to_string()));
                    for (nth, file) in generation.all_files().enumerate() {
                        let n_records = check_file(file, &mut checked)?;
                        checked.records += if nth < generation.files.len() { n_records } else { 0 };
                    }
                }
                Err(error) => {
                    checked.damaged.push(error.to_string());
                    checked.damaged_generations += 1;
                }
            }
        }
        for file in self.ahead()?.iter().flat_map(|list| &list.files) {
            checked.records += check_file(file, &mut checked)?;
        }
        checked.damaged.dedup();
        Ok(checked)
    }

    /// Removes the generations that are damaged in both files, so that the next run continues from
    /// an intact one. Returns their number.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] if they cannot be read or removed.
    pub fn drop_damaged(&self) -> Result<usize> {
        let mut dropped = 0;
        for number in self.generations()? {
            if let Err(Error::Input { .. }) = self.generation(number) {
                self.remove(number)?;
                dropped += 1;
            }
        }
        Ok(dropped)
    }

    /// Removes all generations except the newest `keep`, and every file of records that none of
    /// these names and that is more than a day old.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] if the folder cannot be listed, and [`Error::Input`] if a
    /// generation that is kept is damaged, because the files that it names are unknown.
    pub fn prune(&self, keep: usize) -> Result<PruneReport> {
        let numbers = self.generations()?;
        let (old, kept_numbers) = numbers.split_at(numbers.len().saturating_sub(keep.max(1)));
        if let Some(&newest) = kept_numbers.last() {
            self.prune_ahead(&self.generation(newest)?)?;
        }
        let named_files = self.named_files(kept_numbers)?;
        let mut pruned = PruneReport::default();
        for &number in old {
            self.remove(number)?;
            pruned.generations += 1;
        }
        let now = SystemTime::now();
        let is_old = |changed: SystemTime| now.duration_since(changed).is_ok_and(|age| age > MIN_REMOVAL_AGE);
        for file in self.folder.join(RUNS)?.into_folder().list(None)? {
            let name = file.location.file_name().strip_suffix(RUN).map(str::to_string);
            let is_unnamed = name.is_some_and(|name| !named_files.contains(&name));
            if is_unnamed && file.location.changed()?.is_some_and(is_old) {
                file.location.remove()?;
                pruned.files += 1;
                pruned.bytes += file.stamp.bytes;
            }
        }
        Ok(pruned)
    }

    /// Removes those of the given files that no generation names.
    fn discard(&self, files: &[RecordFile]) -> Result<()> {
        let named_files = self.named_files(&self.generations()?)?;
        let mut unnamed = files.iter().filter(|file| !named_files.contains(&file.name));
        unnamed.try_for_each(|file| self.run_at(&file.name)?.remove())
    }

    /// Returns the names of the files of records that the given generations name, and of those that
    /// were read ahead.
    fn named_files(&self, generations: &[u64]) -> Result<BTreeSet<String>> {
        let mut file_names = BTreeSet::new();
        for &number in generations {
            file_names.extend(self.generation(number)?.all_files().map(|file| file.name.clone()));
        }
        file_names.extend(self.ahead()?.into_iter().flat_map(|list| list.files).map(|file| file.name));
        Ok(file_names)
    }
}

/// Reads the file of a generation. The inner error describes its fault, as a part of a sentence.
fn read(location: &Location, number: u64) -> Result<std::result::Result<Generation, String>> {
    let decode = |bytes: Vec<u8>| match Generation::decode(&bytes) {
        Ok(generation) if generation.number == number => Ok(generation),
        Ok(other) => Err(format!("it is generation {}", other.number)),
        Err(fault) => Err(fault),
    };
    Ok(location.get_as(decode)?.unwrap_or_else(|| Err("there is no such file".into())))
}

#[cfg(test)]
mod tests;
