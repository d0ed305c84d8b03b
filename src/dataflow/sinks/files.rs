//! Which partitions share a file: neighbours, until the file is large.
//!
//! A run has many partitions, so that many workers share the work, and most tables of most crawls would be dozens of files of
//! a few kilobytes. So the partitions of a table are put together, from the first on, while the file stays below
//! `FILE_BYTES`. How large a partition will be is computed from its rows alone, so the files are the same at any number
//! of workers.
//!
//! # Memory
//! This worker's partitions, as before; while they travel, those that are sent make way for those that arrive. A partition
//! that has a file of its own stays with its owner.

use std::collections::{BTreeMap, BTreeSet};

use super::tables::Part;
use super::write::put_part;
use crate::engine::Net;
use crate::error::Result;
use crate::storage::manifest::FileEntry;
use crate::storage::output::Attempt;
use crate::storage::table::Table;

/// Bytes of a file on disk, about, before the next partition of its table gets another.
const FILE_BYTES: u64 = 64_000_000;

/// Rows that travel together.
const SLICE_ROWS: usize = 256;

/// A partition: where it is, and how large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Weighed {
    partition: usize,
    worker: usize,
    bytes: u64,
}

/// Stages tables, given in parts of a partition each that lie with any worker; returns the files that this worker has staged.
/// Those of a table are numbered from 0 in the order of its rows.
///
/// Two collective calls.
pub(super) fn put_tables(net: &mut Net<'_>, attempt: &Attempt, parts: Vec<Part>) -> Result<Vec<FileEntry>> {
    let mine: Vec<(String, (u64, u64))> =
        parts.iter().map(|(name, partition, table)| (name.to_string(), (*partition as u64, table.weight()))).collect();
    let mut weighed: BTreeMap<String, Vec<Weighed>> = BTreeMap::new();
    for (worker, parts) in net.all_gather("sizes of partitions", mine)?.into_iter().enumerate() {
        for (name, (partition, bytes)) in parts {
            weighed.entry(name).or_default().push(Weighed { partition: partition as usize, worker, bytes });
        }
    }
    let plan = |(number, (name, partitions)): (usize, (String, Vec<Weighed>))| {
        (name, Plan::of(number, partitions, net.peers()))
    };
    let tables: Vec<(String, Plan)> = weighed.into_iter().enumerate().map(plan).collect();
    let number = |name: &str| {
        let at = tables.binary_search_by(|table| table.0.as_str().cmp(name));
        at.expect("all tables have been weighed")
    };
    let me = net.index();
    let numbered = parts.into_iter().map(|(name, partition, table)| (number(name), partition, table));
    let (mut here, go): (Vec<_>, Vec<_>) = numbered.partition(|part| tables[part.0].1.owner(part.1) == me);
    let rows = go.into_iter().flat_map(|(number, partition, table)| {
        let to = tables[number].1.owner(partition);
        slices(table).map(move |slice| (to, (number as u64, partition as u64, slice)))
    });
    let sent: Vec<(u64, u64, Table)> = net.exchange_rows("tables", rows)?;
    here.extend(sent.into_iter().map(|(number, partition, slice)| (number as usize, partition as usize, slice)));
    // Stable: the slices of a partition come from one worker, in order.
    here.sort_by_key(|part| (part.0, part.1));
    let mut files = Vec::new();
    let mut here = here.into_iter().peekable();
    while let Some((number, partition, mut table)) = here.next() {
        net.check()?;
        let (name, plan) = &tables[number];
        let file = plan.file(partition);
        while let Some((.., more)) = here.next_if(|next| next.0 == number && plan.file(next.1) == file) {
            table.append(more)?;
        }
        files.push(put_part(attempt, name, file, &table)?);
    }
    Ok(files)
}

/// Which file each partition of a table is put in, and by whom.
struct Plan {
    /// Ascending.
    partitions: Vec<Weighed>,
    /// The file of each.
    files: Vec<usize>,
    /// The worker of each file.
    owners: Vec<usize>,
}

impl Plan {
    fn of(number: usize, mut partitions: Vec<Weighed>, workers: usize) -> Plan {
        partitions.sort_unstable_by_key(|part| part.partition);
        let files = share(&partitions, FILE_BYTES);
        let owners = owners(&partitions, &files, number, workers);
        Plan { partitions, files, owners }
    }

    fn file(&self, partition: usize) -> usize {
        let at = self.partitions.binary_search_by_key(&partition, |part| part.partition);
        self.files[at.expect("all partitions have been weighed")]
    }

    fn owner(&self, partition: usize) -> usize {
        self.owners[self.file(partition)]
    }
}

/// The file of each partition of a table, given ascending: the first, and the next while the file has less than `most` bytes.
fn share(partitions: &[Weighed], most: u64) -> Vec<usize> {
    let (mut file, mut bytes) = (0, 0);
    let place = |(at, part): (usize, &Weighed)| {
        if at > 0 && bytes + part.bytes > most {
            (file, bytes) = (file + 1, 0);
        }
        bytes += part.bytes;
        file
    };
    partitions.iter().enumerate().map(place).collect()
}

/// The worker that puts each file together: where all of it is, or dealt out in turn from one that differs by table.
fn owners(partitions: &[Weighed], files: &[usize], table: usize, workers: usize) -> Vec<usize> {
    let mut of_file: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); files.last().map_or(0, |last| last + 1)];
    for (part, &file) in partitions.iter().zip(files) {
        of_file[file].insert(part.worker);
    }
    let owner = |(file, at): (usize, &BTreeSet<usize>)| match at.first() {
        Some(&only) if at.len() == 1 => only,
        _ => (table + file) % workers,
    };
    of_file.iter().enumerate().map(owner).collect()
}

/// A table cut into pieces that are sent by themselves.
fn slices(table: Table) -> impl Iterator<Item = Table> {
    let rows: Vec<usize> = (0..table.rows()).collect();
    (0..rows.len()).step_by(SLICE_ROWS).map(move |start| table.pick(&rows[start..rows.len().min(start + SLICE_ROWS)]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn weighed(bytes: &[u64]) -> Vec<Weighed> {
        bytes.iter().enumerate().map(|(at, &bytes)| Weighed { partition: 2 * at, worker: at % 3, bytes }).collect()
    }

    #[test]
    fn a_small_table_is_one_file_and_a_large_partition_has_one_of_its_own() {
        assert_eq!(share(&weighed(&[1; 64]), 64), [0; 64]);
        assert_eq!(share(&weighed(&[100, 1, 1, 100, 100, 1]), 64), [0, 1, 1, 2, 3, 4]);
        assert_eq!(share(&weighed(&[0]), 64), [0]);
        assert_eq!(owners(&weighed(&[100, 1, 1, 100]), &[0, 1, 1, 2], 4, 3), [0, (4 + 1) % 3, 0]);
    }

    proptest! {
        #[test]
        fn files_are_runs_of_partitions_of_which_no_two_neighbours_would_fit_into_one(
            bytes in prop::collection::vec(0u64..40, 0..50), most in 1u64..100
        ) {
            let files = share(&weighed(&bytes), most);
            let of = |file: usize| files.iter().zip(&bytes).filter(move |row| *row.0 == file).map(|row| *row.1);
            prop_assert!(files.first().is_none_or(|first| *first == 0) && files.windows(2).all(|w| w[1] - w[0] <= 1));
            for file in 0..files.last().map_or(0, |last| last + 1) {
                prop_assert!(of(file).count() == 1 || of(file).sum::<u64>() <= most);
                let next = of(file + 1).next();
                prop_assert!(next.is_none_or(|next| of(file).sum::<u64>() + next > most));
            }
        }
    }
}
