//! F joined with itself: each distinct fingerprint gets a number, and near ones become pairs of numbers.
//!
//! For every group of design keys with a block in common ([`crate::hamming::close_pairs`]) one exchange brings those that
//! agree on the block to one worker, which joins them.
//!
//! # Memory
//! 72 bytes a fingerprint, over all workers, of which 24 stay; 12 a near pair; 8 a fingerprint that more than one document has,
//! in each process.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Work;
use crate::dataflow::components::components;
use crate::dataflow::memory::hold_bytes_against_bound;
use crate::engine::Net;
use crate::error::{Error, Result};
use crate::hamming::close_pairs::{Joiner, Numbered};
use crate::hamming::design::width_mask;
use crate::hamming::kernels::Level;
use crate::hamming::postings::distinct;
use crate::ids::{DocId, mix};
use crate::job::Job;

/// Near fingerprints of F, and what is needed to tell their documents.
pub struct Found<'a> {
    /// (number, number, distance), each pair once; this worker's share.
    pub near: Vec<[u32; 3]>,
    work: &'a Work,
    /// Chunks that this worker owns, with the rows' ends of their distinct fingerprints.
    owned: Vec<(usize, Vec<u32>)>,
    numbers: Numbers,
    /// (number, documents) of fingerprints with more than one, by number.
    repeated: Arc<Vec<[u32; 2]>>,
}

/// Which chunk the numbers belong to.
struct Numbers {
    /// First number of each chunk, and at the end how many there are.
    firsts: Vec<u32>,
    peers: usize,
}

impl Numbers {
    fn chunk(&self, number: u32) -> usize {
        self.firsts.partition_point(|first| *first <= number) - 1
    }

    fn owner(&self, number: u32) -> usize {
        self.chunk(number) % self.peers
    }
}

/// Finds the near fingerprints of F.
///
/// # Errors
/// [`Error::Input`] when a chunk is damaged; [`Error::Space`] for more than 2^32 distinct fingerprints.
pub(super) fn of_set<'a>(net: &mut Net<'_>, job: &Job, work: &'a Work) -> Result<Found<'a>> {
    let chunks = work.set.manifest.chunks.len();
    let (me, peers) = (net.index(), net.peers());
    let own = work.set.manifest.chunks.iter().skip(me).step_by(peers).map(|chunk| chunk.count).sum::<u64>();
    // Read: 8 and 4 for its rows' end; numbered: 12; by block, with room to partition: 24, and to arrive: as much again.
    hold_bytes_against_bound(net, "fingerprints to be joined", 72 * own, job.effort.memory_bytes)?;
    let read = || {
        let mut owned = Vec::new();
        for chunk in (me..chunks).step_by(peers) {
            net.check()?;
            let (mut fingerprints, mut ends) = (Vec::new(), Vec::new());
            work.set.chunk(chunk)?.decode_all(&mut fingerprints)?;
            work.progress.records.fetch_add(fingerprints.len() as u64, Ordering::Relaxed);
            distinct(&mut fingerprints, &mut ends);
            owned.push((chunk, fingerprints, ends));
        }
        Ok(owned)
    };
    let owned = read();
    let owned: Vec<(usize, Vec<u64>, Vec<u32>)> = owned?;
    let mine: Vec<(u64, u64)> = owned.iter().map(|(chunk, all, _)| (*chunk as u64, all.len() as u64)).collect();
    let mut counts: Vec<_> = net.all_gather("distinct fingerprints", mine)?.into_iter().flatten().collect();
    counts.sort_unstable();
    let sum: u64 = counts.iter().map(|count| count.1).sum();
    if u32::try_from(sum).is_err() {
        let what = "distinct fingerprints of F, to be joined with themselves,".into();
        return Err(Error::Space { what, needed_bytes: 12 * sum, allowed_bytes: 12 * u64::from(u32::MAX) });
    }
    let mut firsts = vec![0];
    counts.iter().for_each(|count| firsts.push(firsts[firsts.len() - 1] + count.1 as u32));
    let numbers = Numbers { firsts, peers };

    let mut repeated = Vec::new();
    for (chunk, _, ends) in &owned {
        let first = numbers.firsts[*chunk];
        let mut start = 0;
        for (number, &end) in (first..).zip(ends) {
            if end - start > 1 {
                repeated.push([number, end - start]);
            }
            start = end;
        }
    }
    let repeated = net.share("repeated fingerprints", repeated)?;
    let repeated = net.once(|| {
        let mut all = repeated.to_vec();
        all.sort_unstable();
        all
    })?;
    let items = owned.iter().flat_map(|(chunk, all, _)| (numbers.firsts[*chunk]..).zip(all));
    let items: Vec<Numbered> = items.map(|(number, fingerprint)| Numbered::new(*fingerprint, number)).collect();
    let owned = owned.into_iter().map(|(chunk, _, ends)| (chunk, ends)).collect();
    work.progress.enter("joining");
    let near = within(net, items, width_mask(work.set.manifest.f), job.hamming.k)?;
    Ok(Found { near, work, owned, numbers, repeated })
}

/// All pairs of `items`, of all workers, that differ in at most `k` of the bits in `bits`, each once: (number, number,
/// distance), wherever they were found. Items do not differ in other bits.
pub fn within(net: &mut Net<'_>, items: Vec<Numbered>, bits: u64, k: u32) -> Result<Vec<[u32; 3]>> {
    let all: u64 = net.all_gather("items", items.len() as u64)?.iter().sum();
    let mut joiner = Joiner::new(k, Level::best());
    let groups = joiner.groups(all as usize, bits);
    let mut near = Vec::new();
    let mut sink = |x: &Numbered, y: &Numbered, distance: u32| {
        near.push([x.number.min(y.number), x.number.max(y.number), distance]);
    };
    if groups.is_empty() {
        let mut items = net.exchange_all("fingerprints", items, |_| 0)?;
        let mut scratch = items.clone();
        joiner.within(&mut items, &mut scratch, &mut sink);
        return Ok(near);
    }
    let peers = net.peers() as u64;
    for (place, group) in groups.iter().enumerate() {
        let owner = |item: &Numbered| {
            (mix(crate::hamming::close_pairs::Item::fingerprint(item) & group.block) % peers) as usize
        };
        let mut mine = net.exchange_all("fingerprints by block", items.iter().copied(), owner)?;
        let mut scratch = vec![Numbered::default(); mine.len()];
        joiner.within_group(&groups, place, &mut mine, &mut scratch, &mut sink);
    }
    Ok(near)
}

impl Found<'_> {
    /// Bytes that this worker holds of it.
    pub fn bytes(&self) -> u64 {
        let rows: usize = self.owned.iter().map(|(_, ends)| ends.len()).sum();
        12 * self.near.len() as u64 + 4 * rows as u64 + 8 * self.repeated.len() as u64
    }

    fn documents(&self, number: u32) -> u64 {
        match self.repeated.binary_search_by_key(&number, |row| row[0]) {
            Ok(place) => u64::from(self.repeated[place][1]),
            Err(_) => 1,
        }
    }

    /// Fingerprints of this worker's chunks that have more than one document, with their rows.
    fn own_repeated(&self) -> impl Iterator<Item = (u32, Range<usize>)> {
        self.owned.iter().flat_map(|(chunk, ends)| {
            let first = self.numbers.firsts[*chunk];
            let start = |place: usize| place.checked_sub(1).map_or(0, |before| ends[before] as usize);
            let rows = move |place: usize| start(place)..ends[place] as usize;
            (first..).zip((0..ends.len()).map(rows)).filter(|(_, rows)| rows.len() > 1)
        })
    }

    /// (distance, pairs of documents), piece by piece.
    pub fn tally(&self) -> impl Iterator<Item = (u32, u64)> {
        let between = self.near.iter().map(|&[x, y, distance]| (distance, self.documents(x) * self.documents(y)));
        let within = self.own_repeated().map(|(_, rows)| (0, rows.len() as u64 * (rows.len() as u64 - 1) / 2));
        between.chain(within)
    }

    /// Pairs of documents, (one, other, distance), wherever they were made.
    ///
    /// Two exchanges: to the owner of the one fingerprint, and to that of the other.
    pub(super) fn pairs(self, net: &mut Net<'_>) -> Result<Vec<[u64; 3]>> {
        let near = net.exchange_all("near", self.near.iter().copied(), |row| self.numbers.owner(row[0]))?;
        let mut half: Vec<[u64; 3]> = Vec::new();
        let expanded = self.with_documents(
            net,
            near,
            |row| row[0],
            |row, documents| {
                half.extend(
                    documents.iter().map(|&document| [u64::from(row[1]) << 32 | u64::from(row[2]), document, 0]),
                );
            },
        );
        expanded?;
        let number = |row: &[u64; 3]| (row[0] >> 32) as u32;
        let half = net.exchange_all("near documents", half, |row| self.numbers.owner(number(row)))?;
        let mut pairs = Vec::new();
        let expanded = self.with_documents(net, half, number, |row, documents| {
            pairs.extend(documents.iter().map(|&document| [row[1], document, row[0] & u64::from(u32::MAX)]));
        });
        expanded?;
        let repeated: Vec<u32> = self.own_repeated().map(|(number, _)| number).collect();
        let expanded = self.with_documents(
            net,
            repeated,
            |number| *number,
            |_, documents| {
                for (at, a) in documents.iter().enumerate() {
                    pairs.extend(documents[at + 1..].iter().map(|b| [*a, *b, 0]));
                }
            },
        );
        expanded?;
        Ok(pairs)
    }

    /// (group, document, 0) of every document that is near another; a group has the name of its smallest document.
    ///
    /// The rounds of the union-find, and two exchanges.
    pub(super) fn members(self, net: &mut Net<'_>) -> Result<Vec<[u64; 3]>> {
        let all = *self.numbers.firsts.last().expect("there is always an end") as usize;
        let labels = components(net, "groups", all, self.near.iter().map(|row| (row[0], row[1])))?;
        let mut in_group = vec![false; all];
        for number in (0..all).filter(|&number| labels[number] as usize != number) {
            in_group[number] = true;
            in_group[labels[number] as usize] = true;
        }
        self.own_repeated().for_each(|(number, _)| in_group[number as usize] = true);
        let own = self.owned.iter().flat_map(|(chunk, ends)| {
            let first = self.numbers.firsts[*chunk];
            first..first + ends.len() as u32
        });
        let mine: Vec<u32> = own.filter(|&number| in_group[number as usize]).collect();
        let mut rows: Vec<[u64; 3]> = Vec::new();
        let read = self.with_documents(
            net,
            mine,
            |number| *number,
            |number, documents| {
                rows.extend(documents.iter().map(|&document| [u64::from(labels[*number as usize]), document, 0]));
            },
        );
        read?;
        let peers = net.peers() as u64;
        let mut rows = net.exchange_all("members by label", rows, |row| (mix(row[0]) % peers) as usize)?;
        rows.sort_unstable();
        for members in rows.chunk_by_mut(|x, y| x[0] == y[0]) {
            let name = members[0][1];
            members.iter_mut().for_each(|row| row[0] = name);
        }
        Ok(rows)
    }

    /// Calls `take` with each row and the documents of its number, which is this worker's; chunk by chunk.
    fn with_documents<R>(
        &self,
        net: &Net<'_>,
        mut rows: Vec<R>,
        number: impl Fn(&R) -> u32,
        mut take: impl FnMut(&R, &[DocId]),
    ) -> Result<()> {
        rows.sort_unstable_by_key(|row| number(row));
        for of_chunk in rows.chunk_by(|x, y| self.numbers.chunk(number(x)) == self.numbers.chunk(number(y))) {
            net.check()?;
            let chunk = self.numbers.chunk(number(&of_chunk[0]));
            let own = self.owned.iter().find(|own| own.0 == chunk);
            let (_, ends) = own.ok_or_else(|| Error::Invariant(format!("chunk {chunk} is another worker's")))?;
            let count = self.work.set.manifest.chunks[chunk].count as usize;
            let documents = self.work.set.documents(chunk, 0..count)?;
            for row in of_chunk {
                let place = (number(row) - self.numbers.firsts[chunk]) as usize;
                let start = place.checked_sub(1).map_or(0, |before| ends[before] as usize);
                take(row, &documents[start..ends[place] as usize]);
            }
        }
        Ok(())
    }
}
