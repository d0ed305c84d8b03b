//! Assignment of partitions to files: adjacent partitions share a file until it is large.
//!
//! A run has many partitions, so that many workers share the work. With one file for each
//! partition, most tables of most crawls would be dozens of files of a few kilobytes. So the
//! partitions of a table are combined, starting with the first one, while the file stays below
//! `FILE_BYTES`. The size of a partition is estimated from its rows alone, so the files are the
//! same with any number of workers.
//!
//! # Memory
//! Takes one row group of a file at a time ([`encode_into`](webtwin_storage::table::encode_into)).
//! A partition with a file of its own stays at its owner, and is built when its turn comes. Other
//! partitions are sent in rounds; a round has the bytes of one file for each worker. If memory is
//! limited, arrived rows wait on the local disk.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::arrived::{self, IncomingRows, slices};
use super::drafts::{Draft, PartRows};
use super::stage::put_pieces;
use crate::memory_estimate::TABLE_FILE_BYTES;
use webtwin_base::build_info;
use webtwin_base::error::Result;
use webtwin_base::heap::release_free_memory;
use webtwin_engine::Net;
use webtwin_job::Job;
use webtwin_storage::manifest::FileEntry;
use webtwin_storage::output::Attempt;
use webtwin_storage::table::Table;

/// Approximate bytes of a file on disk at which the next partition of the table starts another
/// file.
const FILE_BYTES: u64 = 64_000_000;

/// Approximate bytes on disk of the rows that were built to estimate their size and are kept, if
/// memory is not limited. They take about 40 MB in memory.
const HELD_BYTES: u64 = 16_000_000;

/// Partition with its place and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WeighedPart {
    partition: usize,
    worker: usize,
    bytes: u64,
}

/// Parameters for building tables.
pub struct TableMaker<'t> {
    /// Names of the tables that have a file even without rows; worker 0 writes it then.
    always: &'t [&'static str],
    /// Function that returns the table of a name without rows.
    empty: &'t dyn Fn(&str) -> Result<Table>,
    /// Bytes of built rows that are kept after their size has been estimated. 0 if memory is
    /// limited; rows are built twice then.
    held_bytes: u64,
    /// Turns of the workers of the process.
    turns: Arc<Turns>,
}

/// Turns of the workers of a process, each for a file that is built. As many workers build files at
/// the same time as fit in memory.
#[derive(Debug)]
struct Turns {
    free: Mutex<u64>,
    released: Condvar,
}

impl Turns {
    /// Creates the turns for a process with `workers` workers within a memory limit (0: no limit).
    /// There is at least one turn.
    fn within(memory_bytes: u64, workers: usize) -> Turns {
        let mut free = workers as u64;
        if memory_bytes > 0 {
            release_free_memory();
            free = (memory_bytes.saturating_sub(build_info::memory_bytes()) / TABLE_FILE_BYTES).clamp(1, free);
        }
        Turns { free: Mutex::new(free), released: Condvar::new() }
    }

    /// Waits for a turn.
    fn take(&self) -> Turn<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        *self.released.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner) -= 1;
        Turn(self)
    }
}

/// Turn of a worker, which ends on drop.
struct Turn<'a>(&'a Turns);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.released.notify_one();
    }
}

impl<'t> TableMaker<'t> {
    /// Creates the parameters for the tables of a job. The tables in `always` are written even
    /// without rows. If memory is limited, no built rows are kept.
    ///
    /// # Errors
    /// Returns an error only if the run has ended.
    pub fn by(
        net: &mut Net<'_>,
        job: &Job,
        always: &'t [&'static str],
        empty: &'t dyn Fn(&str) -> Result<Table>,
    ) -> Result<TableMaker<'t>> {
        let (memory_bytes, workers) = (job.effort.memory_bytes, net.workers_per_process());
        let turns = net.once_per_process(|| Turns::within(memory_bytes, workers))?;
        let held_bytes = if net.memory.is_bounded() { 0 } else { HELD_BYTES };
        Ok(TableMaker { always, empty, held_bytes, turns })
    }
}

/// Stages tables, given in parts of one partition each, at any workers. Returns the files that this
/// worker has staged. The files of a table are numbered from 0 in the order of its rows.
///
/// Takes one collective call, and one for each round of parts that are sent.
pub(crate) fn put_tables(
    net: &mut Net<'_>,
    attempt: &Attempt,
    mut parts: Vec<Draft<'_>>,
    making: TableMaker<'_>,
) -> Result<Vec<FileEntry>> {
    let tables = plans(net, &mut parts, &making)?;
    let turns = making.turns;
    let place = |part: &Draft<'_>| {
        let table = tables.binary_search_by(|table| table.0.as_str().cmp(part.name)).expect("all tables were weighed");
        Place { table, file: tables[table].1.file(part.partition), partition: part.partition }
    };
    let file_of = |place: &Place| tables[place.table].1.files[place.file];
    let mut parts: Vec<(Place, Draft<'_>)> = parts.into_iter().map(|part| (place(&part), part)).collect();
    parts.sort_by_key(|part| part.0);
    let (travelling, whole): (Vec<_>, Vec<_>) = parts.into_iter().partition(|part| file_of(&part.0).travels);

    let mut files = Vec::new();
    let mut travelling = travelling.into_iter().peekable();
    for (table, file) in rounds(&tables, FILE_BYTES * net.peers() as u64) {
        let round_parts =
            std::iter::from_fn(|| travelling.next_if(|part| (part.0.table, part.0.file) <= (table, file)));
        let (own_parts, go): (Vec<_>, Vec<_>) = round_parts.partition(|part| file_of(&part.0).owner == net.index());
        let rows = go.into_iter().flat_map(|(place, part)| {
            let to = file_of(&place).owner;
            part.pieces().map(move |piece| piece.map(|rows| slices(rows).map(move |rows| (to, (place, rows)))))
        });
        let IncomingRows { in_memory: rows_in_memory, stored } = arrived::bring(net, rows)?;
        let name = |place: &Place| tables[place.table].0.as_str();
        let mut drafts: Vec<(Place, Draft<'_>)> = own_parts;
        drafts.extend(
            rows_in_memory
                .into_iter()
                .map(|(place, rows)| (place, Draft::with_rows(name(&place), place.partition, rows))),
        );
        drafts.extend(stored.slices().map(|(place, rows, make)| {
            (place, Draft { name: name(&place), partition: place.partition, rows: PartRows::Unbuilt(rows, make) })
        }));
        // The sort is stable: the slices of a partition come from one worker, in order.
        drafts.sort_by_key(|part| part.0);
        put_files(net, attempt, drafts, &turns, &mut files)?;
    }
    put_files(net, attempt, whole, &turns, &mut files)?;
    Ok(files)
}

/// Returns the plan of each table, ordered by name, the same on every worker. If no worker has rows
/// of a table that is always written, worker 0 gets a part without rows. Takes one collective call.
fn plans(net: &mut Net<'_>, parts: &mut Vec<Draft<'_>>, making: &TableMaker<'_>) -> Result<Vec<(String, Plan)>> {
    let mut budget = making.held_bytes;
    let mut own_sizes: Vec<(String, (u64, u64))> = Vec::with_capacity(parts.len());
    for part in &mut *parts {
        let bytes = part.weigh(&mut budget)?;
        own_sizes.push((part.name.to_string(), (part.partition as u64, bytes)));
    }
    let mut weighed: BTreeMap<String, Vec<WeighedPart>> = BTreeMap::new();
    for (worker, parts) in net.all_gather("sizes of partitions", own_sizes)?.into_iter().enumerate() {
        for (name, (partition, bytes)) in parts {
            weighed.entry(name).or_default().push(WeighedPart { partition: partition as usize, worker, bytes });
        }
    }
    for &name in making.always {
        if !weighed.contains_key(name) {
            weighed.insert(name.into(), vec![WeighedPart { partition: 0, worker: 0, bytes: 0 }]);
            if net.index() == 0 {
                parts.push(Draft::with_rows(name, 0, (making.empty)(name)?));
            }
        }
    }
    let plan = |(number, (name, partitions)): (usize, (String, Vec<WeighedPart>))| {
        (name, Plan::from_weights(number, partitions, net.peers()))
    };
    Ok(weighed.into_iter().enumerate().map(plan).collect())
}

/// Place of a part. Ordered by table, then file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Place {
    table: usize,
    file: usize,
    partition: usize,
}

/// Combines parts, which are ascending by place, and stages each file when it is complete.
fn put_files(
    net: &mut Net<'_>,
    attempt: &Attempt,
    parts: Vec<(Place, Draft<'_>)>,
    turns: &Turns,
    files: &mut Vec<FileEntry>,
) -> Result<()> {
    let mut parts = parts.into_iter().peekable();
    while let Some((place, part)) = parts.next() {
        net.check()?;
        let name = part.name;
        let same_file = |next: &(Place, Draft<'_>)| (next.0.table, next.0.file) == (place.table, place.file);
        let later_pieces = std::iter::from_fn(|| parts.next_if(same_file)).flat_map(|(_, part)| part.pieces());
        let pieces = part.pieces().chain(later_pieces);
        let turn = turns.take();
        files.push(put_pieces(attempt, name, place.file, pieces)?);
        drop(turn);
    }
    Ok(())
}

/// Returns the last file of each round. A round consists of files that are sent, in their order,
/// until they have `max_bytes` bytes together.
fn rounds(tables: &[(String, Plan)], max_bytes: u64) -> Vec<(usize, usize)> {
    let mut ends: Vec<(usize, usize)> = Vec::new();
    let mut bytes = max_bytes;
    for (table, (_, plan)) in tables.iter().enumerate() {
        for (number, file) in plan.files.iter().enumerate().filter(|(_, file)| file.travels) {
            if bytes < max_bytes {
                ends.pop();
            } else {
                bytes = 0;
            }
            bytes += file.bytes;
            ends.push((table, number));
        }
    }
    ends
}

/// Assignment of the partitions of a table to files, and of files to workers.
struct Plan {
    /// Partitions in ascending order, each with its file.
    partitions: Vec<(usize, usize)>,
    files: Vec<File>,
}

/// File of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct File {
    /// Worker that stages the file.
    owner: usize,
    /// True if several workers have partitions of the file.
    travels: bool,
    bytes: u64,
}

impl Plan {
    fn from_weights(table: usize, mut weighed: Vec<WeighedPart>, workers: usize) -> Plan {
        weighed.sort_unstable_by_key(|part| part.partition);
        let numbers = share(&weighed, FILE_BYTES);
        let files = files_of(&weighed, &numbers, table, workers);
        Plan { partitions: weighed.iter().map(|part| part.partition).zip(numbers).collect(), files }
    }

    fn file(&self, partition: usize) -> usize {
        let at = self.partitions.binary_search_by_key(&partition, |part| part.0);
        self.partitions[at.expect("all partitions have been weighed")].1
    }
}

/// Returns the file of each partition of a table, given in ascending order. A partition is added to
/// the current file unless the file would exceed `max_bytes` bytes.
fn share(partitions: &[WeighedPart], max_bytes: u64) -> Vec<usize> {
    let (mut file, mut bytes) = (0, 0);
    let place = |(at, part): (usize, &WeighedPart)| {
        if at > 0 && bytes + part.bytes > max_bytes {
            (file, bytes) = (file + 1, 0);
        }
        bytes += part.bytes;
        file
    };
    partitions.iter().enumerate().map(place).collect()
}

/// Returns the files of a table; `numbers` has the file of each partition. If one worker has all
/// partitions of a file, it stages the file. Other files are dealt out in turn, starting with a
/// worker that depends on the table.
fn files_of(partitions: &[WeighedPart], numbers: &[usize], table: usize, workers: usize) -> Vec<File> {
    let mut lies_with: Vec<(BTreeSet<usize>, u64)> =
        vec![Default::default(); numbers.last().map_or(0, |last| last + 1)];
    for (part, &file) in partitions.iter().zip(numbers) {
        lies_with[file].0.insert(part.worker);
        lies_with[file].1 += part.bytes;
    }
    let file = |(number, (lies_with, bytes)): (usize, &(BTreeSet<usize>, u64))| match lies_with.first() {
        Some(&only) if lies_with.len() == 1 => File { owner: only, travels: false, bytes: *bytes },
        _ => File { owner: (table + number) % workers, travels: true, bytes: *bytes },
    };
    lies_with.iter().enumerate().map(file).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn weighed(bytes: &[u64]) -> Vec<WeighedPart> {
        bytes.iter().enumerate().map(|(at, &bytes)| WeighedPart { partition: 2 * at, worker: at % 3, bytes }).collect()
    }

    #[test]
    fn a_small_table_is_one_file_and_a_large_partition_has_one_of_its_own() {
        assert_eq!(share(&weighed(&[1; 64]), 64), [0; 64]);
        assert_eq!(share(&weighed(&[100, 1, 1, 100, 100, 1]), 64), [0, 1, 1, 2, 3, 4]);
        assert_eq!(share(&weighed(&[0]), 64), [0]);
        let files = files_of(&weighed(&[100, 1, 1, 100]), &[0, 1, 1, 2], 4, 3);
        let file = |owner, travels, bytes| File { owner, travels, bytes };
        assert_eq!(files, [file(0, false, 100), file((4 + 1) % 3, true, 2), file(0, false, 100)]);
    }

    #[test]
    fn files_are_sent_in_rounds_of_bounded_size_and_no_round_is_empty() {
        let plan = |bytes: &[u64]| {
            let file = |&bytes| File { owner: 0, travels: bytes % 2 == 1, bytes };
            (String::new(), Plan { partitions: Vec::new(), files: bytes.iter().map(file).collect() })
        };
        assert_eq!(rounds(&[plan(&[2, 4]), plan(&[6])], 10), []);
        assert_eq!(rounds(&[plan(&[1, 2, 3])], 10), [(0, 2)]);
        assert_eq!(rounds(&[plan(&[1, 9]), plan(&[20, 7, 5]), plan(&[1])], 10), [(0, 1), (1, 2), (2, 0)]);
    }

    proptest! {
        #[test]
        fn files_are_runs_of_partitions_and_no_two_neighbours_fit_into_one(
            bytes in prop::collection::vec(0u64..40, 0..50), most in 1u64..100
        ) {
            let files = share(&weighed(&bytes), most);
            let bytes_of_file = |file: usize| files.iter().zip(&bytes).filter(move |row| *row.0 == file).map(|row| *row.1);
            prop_assert!(files.first().is_none_or(|first| *first == 0) && files.windows(2).all(|w| w[1] - w[0] <= 1));
            for file in 0..files.last().map_or(0, |last| last + 1) {
                prop_assert!(bytes_of_file(file).count() == 1 || bytes_of_file(file).sum::<u64>() <= most);
                let next = bytes_of_file(file + 1).next();
                prop_assert!(next.is_none_or(|next| bytes_of_file(file).sum::<u64>() + next > most));
            }
        }
    }
}
