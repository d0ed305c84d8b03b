//! The state of a scheduled job: records of what it has read, kept from run to run.
//!
//! ```text
//! STATE/gen-000017.json       a generation: the live inputs, and for each of their work items where its record is
//! STATE/copies/gen-000017.json    the same bytes again, read where the first file is damaged or missing
//! STATE/ahead/3fa9….json      records that were read ahead of any run
//! STATE/runs/3f/3fa9….run     records one after another, under the hash of the file's bytes; or what a worker has found
//! ```
//!
//! Files of records never change and are shared by generations. A generation is created under a name that must not exist, after
//! the result that it belongs to, so of two runs that overlap one wins, and a crash between the two leaves a good result and
//! the state before it. Every record and every generation carries a checksum; a record that is damaged or missing costs the
//! time to read its input again, never an answer. A generation that is damaged is read from its copy, which is written once the
//! generation is committed. Where neither is whole nobody knows what was live, and going on from an older generation would give
//! another answer; so that is refused, until a person removes the generation ([`State::drop_damaged`]).

mod ahead;
mod generation;
mod records;
mod shares;

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

pub use ahead::ReadAhead;
pub use generation::{Generation, Pages, RecordAt, RecordFile};
pub use records::StateRecords;

use crate::location::Location;
use webtwin_base::error::{Error, Result};

/// Folder of the files of records.
const RUNS: &str = "runs";

/// Folder of the copies of generations.
const COPIES: &str = "copies";

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

    /// Numbers of the generations, ascending. One of which only the copy is there counts, too.
    ///
    /// # Errors
    /// [`Error::Storage`] when the folder cannot be listed.
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

    /// The newest generation, if there is one.
    ///
    /// # Errors
    /// As [`State::generation`]; one that is damaged is not passed over, because an older one has other live inputs.
    pub fn newest(&self) -> Result<Option<Generation>> {
        self.generations()?.last().map(|&number| self.generation(number)).transpose()
    }

    /// A generation, from its copy if the first file is damaged or missing.
    ///
    /// # Errors
    /// [`Error::Input`], with the command that goes on, when neither is whole or of this format; [`Error::Storage`] when they
    /// cannot be read.
    pub fn generation(&self, number: u64) -> Result<Generation> {
        let first = self.generation_at(number)?;
        let fault = match read(&first, number)? {
            Ok(generation) => return Ok(generation),
            Err(fault) => fault,
        };
        read(&self.copy_at(number)?, number)?.map_err(|of_copy| {
            let folder = self.folder.name();
            let why = format!(
                "{fault}, and so is its copy ({of_copy}): nobody knows what was live; to go on from the generation before, whose live \
                 inputs may be others: webtwin state prune {folder} --damaged, and then name all live inputs in the next run, with --input"
            );
            Error::input(first.name(), why)
        })
    }

    /// Why a generation was read from its copy, if it was.
    ///
    /// # Errors
    /// [`Error::Storage`] when it cannot be read.
    pub fn fault(&self, number: u64) -> Result<Option<String>> {
        let first = self.generation_at(number)?;
        Ok(read(&first, number)?.err().map(|fault| format!("{first}: {fault}")))
    }

    /// Makes a generation the newest one; all files of records that it names must be written.
    ///
    /// # Errors
    /// [`Error::LostGeneration`] when another run was first; else as [`Location::put_if_absent`].
    pub fn commit(&self, generation: &Generation) -> Result<()> {
        let bytes = generation.encode();
        match self.generation_at(generation.number)?.put_if_absent(&bytes, |stored| stored == bytes) {
            Err(Error::LostCommit(name)) => return Err(Error::LostGeneration(name)),
            done => done?,
        }
        // Without it the generation is as good, only less safe.
        let _ = self.copy_at(generation.number)?.put(&bytes);
        Ok(())
    }

    fn generation_at(&self, number: u64) -> Result<Location> {
        self.folder.join(&format!("{}{number:06}{}", GENERATION.0, GENERATION.1))
    }

    fn copy_at(&self, number: u64) -> Result<Location> {
        self.folder.join(&format!("{COPIES}/{}{number:06}{}", GENERATION.0, GENERATION.1))
    }

    /// Removes a generation: its copy first, which would stand for it.
    fn remove(&self, number: u64) -> Result<()> {
        self.copy_at(number)?.remove()?;
        self.generation_at(number)?.remove()
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
                    checked.damaged.extend(self.fault(number)?.map(|fault| format!("{fault}; its copy is whole")));
                    let copy = self.copy_at(number)?;
                    // States of older builds have none.
                    let is_damaged = copy.exists()? && read(&copy, number)?.is_err();
                    checked.damaged.extend(is_damaged.then(|| copy.name().to_string()));
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
        for file in self.ahead()?.iter().flat_map(|list| &list.files) {
            let records: Vec<&RecordAt> =
                file.records.iter().filter(|record| seen.insert((file.name.clone(), record.offset))).collect();
            let bytes = self.run_at(&file.name)?;
            checked.records += records.len();
            checked.bytes += records.iter().map(|record| record.bytes).sum::<u64>();
            checked.damaged.extend(records::damaged(&bytes, &records).then(|| bytes.name().to_string()));
        }
        checked.damaged.dedup();
        Ok(checked)
    }

    /// Removes the generations of which nothing is whole, so that the next run goes on from one that is. Returns their number.
    ///
    /// # Errors
    /// [`Error::Storage`] when they cannot be read or removed.
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

    /// Removes all generations but the newest `keep`, and every file of records that none of them names and that is more than
    /// a day old.
    ///
    /// # Errors
    /// [`Error::Storage`] when the folder cannot be listed; [`Error::Input`] when a generation that is to be kept is damaged: what
    /// it names is not known.
    pub fn prune(&self, keep: usize) -> Result<Pruned> {
        let numbers = self.generations()?;
        let (old, kept) = numbers.split_at(numbers.len().saturating_sub(keep.max(1)));
        if let Some(&newest) = kept.last() {
            self.prune_ahead(&self.generation(newest)?)?;
        }
        let named = self.named(kept)?;
        let mut pruned = Pruned::default();
        for &number in old {
            self.remove(number)?;
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

    /// Names of the files of records that these generations, and lists of what was read ahead, name.
    fn named(&self, generations: &[u64]) -> Result<BTreeSet<String>> {
        let mut named = BTreeSet::new();
        for &number in generations {
            named.extend(self.generation(number)?.all_files().map(|file| file.name.clone()));
        }
        named.extend(self.ahead()?.into_iter().flat_map(|list| list.files).map(|file| file.name));
        Ok(named)
    }
}

/// Reads a file of a generation, or tells what is wrong with it, as a part of a sentence.
fn read(location: &Location, number: u64) -> Result<std::result::Result<Generation, String>> {
    let decode = |bytes: Vec<u8>| match Generation::decode(&bytes) {
        Ok(generation) if generation.number == number => Ok(generation),
        Ok(other) => Err(format!("is generation {}", other.number)),
        Err(fault) => Err(fault),
    };
    Ok(location.get_as(decode)?.unwrap_or_else(|| Err("there is no such file".into())))
}

#[cfg(test)]
mod tests;
