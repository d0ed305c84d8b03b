//! Deduplicates captures: the newest capture of a canonical URL wins. Every canonical URL becomes
//! one page with a number.
//!
//! A conversion, such as a record of a WET file, is a capture with the fetch time of its original,
//! but with less information. It does not become a page if its original does.
//!
//! There are two exchanges: one sends captures to the owners of their doc ids, the other sends the
//! page numbers of the captures that are kept back to the local pages. Then the directory is
//! broadcast.
//!
//! # Memory
//! Takes 28 bytes for each capture, 12 for each page in each process, and twice the memory limit of
//! a worker's captures, which are held as they arrived and in the order of pages. In addition takes
//! up to 64 MiB for captures from the disk, in the order of doc ids. On disk captures take their
//! bytes once, and those of one range twice.

use std::cmp::Reverse;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::reading::addresses::HostAddress;
use crate::reading::arrived_captures::ArrivedCaptures;
use crate::reading::capture_rows::{CaptureReader, CaptureRow, CaptureRows, captures_in};
use crate::reading::rejection::Rejection;
use crate::reading::worker_pages::{NOT_KEPT, WorkerPages};
use crate::shuffle::directory::{Directory, DirectoryEntry, Entries, TablePartitions, first_pages};
use webtwin_base::by_hash::HashKeyMap;
use webtwin_base::error::Result;
use webtwin_base::ids::{DocId, HostId, Number, Page};
use webtwin_engine::{HashOwners, Net, Owners};
use webtwin_pages::record::Reason;
use webtwin_spill::SpillRows;

/// Words of captures that are sent before their memory is released.
const WORDS_PER_RELEASE: u64 = 1 << 19;

/// Words of captures that are sent in one message.
const PARCEL_WORDS: usize = 1 << 13;

/// Hosts with hashes of addresses that they answered from.
pub type HostAddresses = Vec<(HostId, u64)>;

/// Deduplicated and numbered pages of the run.
#[derive(Debug)]
pub struct Crawl {
    /// All pages by number.
    pub directory: Arc<Directory>,
    /// Pages that this worker owns, ascending.
    pub pages: CaptureRows,
    /// Hosts of pages with their addresses, as this worker has read them. Ascending and without
    /// repetitions.
    pub addresses: HostAddresses,
    /// Number of records that were read twice, because a work item began inside a record of another
    /// one.
    pub overlapping: u64,
}

impl Crawl {
    /// Returns a reader of the pages that this worker owns.
    pub fn reader(&self) -> PageReader<'_> {
        PageReader { directory: &self.directory, rows: self.pages.reader() }
    }
}

/// Reader of the pages that a worker owns.
#[derive(Debug)]
pub struct PageReader<'a> {
    directory: &'a Directory,
    rows: CaptureReader<'a>,
}

impl PageReader<'_> {
    /// Returns the capture of a page.
    ///
    /// # Errors
    /// Returns any error of [`CaptureReader::get`].
    pub fn page(&mut self, page: Page) -> Result<CaptureRow<'_>> {
        self.rows.get(self.directory.place(page))
    }
}

/// Doc id with a number: first the number of a capture in the order of arrival, later the number of
/// its page. Ordered by doc id. Takes 12 bytes, which an aligned `u64` would make 16.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ordered {
    doc_id_high: u32,
    doc_id_low: u32,
    number: u32,
}

impl Ordered {
    fn new(doc_id: DocId, number: u32) -> Ordered {
        Ordered { doc_id_high: (doc_id >> 32) as u32, doc_id_low: doc_id as u32, number }
    }

    fn doc_id(&self) -> DocId {
        DocId::from(self.doc_id_high) << 32 | DocId::from(self.doc_id_low)
    }
}

/// Numbers for the hosts of a worker's pages, in the order of first appearance.
struct HostNumbers {
    /// Number of each host, by the hash of its name.
    of_keys: HashKeyMap<u32>,
    of_pages: Vec<u32>,
}

impl HostNumbers {
    /// Adds the host of the next page.
    fn push(&mut self, key: u64) {
        let next = self.of_keys.len() as u32;
        self.of_pages.push(*self.of_keys.entry(key).or_insert(next));
    }
}

/// One of several captures with the same doc id. Captures are ordered by content, and by place only
/// if everything else is equal. So the first capture is the same page for any distribution of
/// records over files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Rival {
    url: String,
    /// True for a conversion whose original record is a capture of the URL, too.
    is_covered: bool,
    newest: Reverse<i64>,
    /// 0 for a response, 1 for a revisit, 2 for a conversion. Smaller ranks come first.
    rank: u8,
    content: u64,
    /// URL of the original of a revisit; otherwise empty.
    original: String,
    /// Length of the record. It comes before the place in the order, because the summary reports
    /// the bytes that were kept.
    bytes: u64,
    /// Number of the input, offset, and number of the work item.
    place: (u32, u64, u32),
    number: u32,
    record: u32,
}

impl Rival {
    fn from_capture(row: CaptureRow<'_>, number: u32) -> Rival {
        let original = row.rare_fields().original;
        let rank = if row.is_conversion() { Rival::CONVERSION } else { u8::from(original.is_some()) };
        Rival {
            url: row.url().to_string(),
            is_covered: false,
            newest: Reverse(row.fetch_time),
            rank,
            content: row.content_hash(),
            original: original.map_or(String::new(), |original| original.url),
            bytes: row.length,
            place: (row.source, row.offset, row.item),
            number,
            record: row.record,
        }
    }

    const CONVERSION: u8 = 2;
}

/// Marks the conversions whose original records are captures, too. A conversion is marked if it
/// names the record of a capture of its URL, has the fetch time of such a capture, or names no
/// record while its URL has such a capture.
fn mark_covered(rivals: &mut [Rival]) {
    let (conversions, originals): (Vec<&mut Rival>, Vec<&mut Rival>) =
        rivals.iter_mut().partition(|rival| rival.rank == Rival::CONVERSION);
    if conversions.is_empty() || originals.is_empty() {
        return;
    }
    let records: HashSet<(&str, u32)> = originals.iter().map(|other| (&*other.url, other.record)).collect();
    let times: HashSet<(&str, i64)> = originals.iter().map(|other| (&*other.url, other.newest.0)).collect();
    let urls: HashSet<&str> = originals.iter().map(|other| &*other.url).collect();
    for conversion in conversions {
        let url = &*conversion.url;
        conversion.is_covered = match conversion.record {
            0 => urls.contains(url),
            record => records.contains(&(url, record)) || times.contains(&(url, conversion.newest.0)),
        };
    }
}

/// Deduplicates the captures of all workers and numbers the pages. `floors[item]` is the offset
/// from which the records of a work item are valid.
///
/// # Errors
/// Returns any error of the disk, to which captures beyond the memory limit are written.
pub fn settle(
    net: &mut Net<'_>,
    local_pages: &mut WorkerPages,
    floors: &[u64],
    partitions: TablePartitions,
) -> Result<Crawl> {
    let previous_rejections = local_pages.rejections.len();
    local_pages.rejections.retain(|rejection| rejection.offset >= floors[rejection.item as usize])?;
    let mut overlapping = (previous_rejections - local_pages.rejections.len()) as u64;

    let mut pages = local_pages.captures.like();
    let mut order: Vec<Ordered> = Vec::new();
    let mut captures = to_owners(net, &mut local_pages.captures, partitions, |number, capture| {
        match capture.offset < floors[capture.item as usize] {
            true => overlapping += 1,
            false => order.push(Ordered::new(capture.doc_id, number)),
        }
    })?;
    order.sort_unstable();
    reject_others(&mut order, &captures, &mut local_pages.rejections)?;

    // Page numbers ascend by partition and doc id, so they do not depend on the number of workers.
    let mut counts = vec![0u64; partitions.count()];
    order.iter().for_each(|kept| counts[partitions.partition(kept.doc_id())] += 1);
    let add = |x: Vec<u64>, y: Vec<u64>| x.iter().zip(y).map(|(x, y)| x + y).collect();
    let counts = net.all_reduce("pages a partition", counts, add)?;
    let mut next = first_pages(&counts)?;
    let counts: Vec<u32> = counts.into_iter().map(|count| count as u32).collect();
    // Visits captures in the order of doc ids: numbers each page, copies its capture, and reports
    // the number to the worker that read it.
    let mut scratch = Vec::new();
    let mut hosts = HostNumbers { of_keys: HashKeyMap::default(), of_pages: Vec::with_capacity(order.len()) };
    let replies = order.iter_mut().map(|capture| {
        let next = &mut next[partitions.partition(capture.doc_id())];
        let page = Page(*next);
        *next += 1;
        let row = captures.take(capture.doc_id(), std::mem::replace(&mut capture.number, page.0), &mut scratch)?;
        hosts.push(host_key(row.url()));
        pages.push_page(row, page)?;
        Ok([row.worker, row.slot, page.0])
    });
    let mut slots = vec![NOT_KEPT; local_pages.slots()];
    net.exchange_into(
        "pages of slots",
        replies,
        |reply| reply[0] as usize,
        |replies: &[[u32; 3]]| {
            replies.iter().for_each(|&[_, slot, page]| slots[slot as usize] = Page(page));
            Ok(())
        },
    )?;
    local_pages.pages = slots;
    drop(captures);
    let address_rows = std::mem::take(&mut local_pages.addresses);
    let (directory, addresses) = directory(net, &order, &hosts, &address_rows, &counts, partitions)?;
    Ok(Crawl { directory, pages, addresses, overlapping })
}

/// Captures in transit, back to back.
struct Parcel(Vec<u64>);

/// Serialized as bytes, which is faster than a sequence of numbers.
impl Serialize for Parcel {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.serialize_bytes(bytemuck::cast_slice(&self.0))
    }
}

impl<'de> Deserialize<'de> for Parcel {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Parcel, D::Error> {
        <&[u8]>::deserialize(from).map(|bytes| Parcel(bytemuck::pod_collect_to_vec(bytes)))
    }
}

/// Sends captures to the owners of their doc ids. Captures that have been sent release their
/// memory. Calls `visit` for each capture that arrives, with its number in its range.
fn to_owners(
    net: &mut Net<'_>,
    captures: &mut CaptureRows,
    partitions: TablePartitions,
    mut visit: impl FnMut(u32, CaptureRow<'_>),
) -> Result<ArrivedCaptures> {
    let (mut next, mut arrived_captures) = (0, ArrivedCaptures::like(captures, partitions));
    let (mut open, mut parcels) = (vec![Vec::new(); net.peers()], VecDeque::new());
    let mut next_parcel = || {
        while parcels.is_empty() && next < captures.len() {
            next = captures.pass(next, WORDS_PER_RELEASE, |capture, words| {
                let to = partitions.owner(capture.doc_id);
                open[to].extend_from_slice(words);
                if open[to].len() >= PARCEL_WORDS {
                    parcels.push_back((to, Parcel(std::mem::take(&mut open[to]))));
                }
                Ok(())
            })?;
        }
        if next == captures.len() {
            let last = open.iter_mut().enumerate().filter(|(_, words)| !words.is_empty());
            parcels.extend(last.map(|(to, words)| (to, Parcel(std::mem::take(words)))));
        }
        Ok(parcels.pop_front())
    };
    net.stream_values("captures", std::iter::from_fn(|| next_parcel().transpose()), |Parcel(words)| {
        captures_in(&words).try_for_each(|words| {
            visit(arrived_captures.push(words)?, CaptureRow::from_words(words));
            Ok(())
        })
    })?;
    *captures = captures.like();
    Ok(arrived_captures)
}

/// Keeps the [first](Rival) of the captures with the same doc id, which must be adjacent in
/// `order`, and rejects the others.
fn reject_others(
    order: &mut Vec<Ordered>,
    captures: &ArrivedCaptures,
    rejections: &mut SpillRows<Rejection>,
) -> Result<()> {
    let mut scratch = Vec::new();
    for duplicates in order.chunk_by_mut(|x, y| x.doc_id() == y.doc_id()).filter(|same| same.len() > 1) {
        let mut rivals = Vec::with_capacity(duplicates.len());
        for capture in &*duplicates {
            rivals.push(Rival::from_capture(
                captures.get(capture.doc_id(), capture.number, &mut scratch)?,
                capture.number,
            ));
        }
        mark_covered(&mut rivals);
        rivals.sort_unstable();
        duplicates.iter_mut().zip(&rivals).for_each(|(row, rival)| row.number = rival.number);
        let mut rivals = rivals.into_iter();
        let kept_url = rivals.next().expect("there are two").url;
        rejections.extend(rivals.map(|Rival { url, is_covered, place: (source, offset, item), bytes, .. }| {
            let reason = match (url == kept_url, is_covered) {
                (false, _) => Reason::DocIdCollision,
                (true, true) => Reason::Conversion,
                (true, false) => Reason::OlderCapture,
            };
            Rejection { source, offset, reason, detail: url, item, bytes }
        }))?;
    }
    order.dedup_by_key(|row| row.doc_id());
    Ok(())
}

/// Builds the directory of all pages, and assigns host numbers to the addresses that this worker
/// has read. `counts` are the numbers of pages in each partition, `pages` are this worker's pages
/// in ascending order of doc ids, and `own_hosts` are the hosts of these pages.
fn directory(
    net: &mut Net<'_>,
    pages: &[Ordered],
    own_hosts: &HostNumbers,
    addresses: &[HostAddress],
    counts: &[u32],
    partitions: TablePartitions,
) -> Result<(Arc<Directory>, HostAddresses)> {
    // Host numbers ascend by the hash of the name, so that every process computes the same numbers
    // from the broadcast hashes.
    let owners = HashOwners::new(net);
    let keys = own_hosts.of_keys.keys().copied();
    let mut owned = net.exchange("hosts", keys, |key| owners.owner(*key))?;
    owned.sort_unstable();
    owned.dedup();
    let hosts = net.broadcast("all hosts", owned)?;
    let hosts = net.once_per_process(|| {
        let mut hosts = hosts.to_vec();
        hosts.sort_unstable();
        hosts
    })?;
    let mut global_hosts = vec![HostId(0); own_hosts.of_keys.len()];
    for (key, &own_number) in &own_hosts.of_keys {
        global_hosts[own_number as usize] = HostId::from_index(hosts.partition_point(|other| other < key));
    }
    let address = |row: &HostAddress| Some((HostId::from_index(hosts.binary_search(&row.host).ok()?), row.address));
    let mut addresses: HostAddresses = addresses.iter().filter_map(address).collect();
    addresses.sort_unstable();
    addresses.dedup();
    let host = |at: usize| global_hosts[own_hosts.of_pages[at] as usize];
    let entries = (0..pages.len()).map(|at| DirectoryEntry::new(pages[at].doc_id(), host(at)));
    let no_entries = || Entries::new(counts, partitions);
    let filled = net.broadcast_into("directory", entries, no_entries, |all, worker, entry| all.put(worker, entry))?;
    let filled = net.take_back(filled)?;
    let directory = net.once_per_process(|| filled.expect("it has taken it back").finish())?;
    Ok((directory, addresses))
}

/// Returns the host (with port) of a canonical URL.
pub fn host(canonical_url: &str) -> &str {
    host_and_path(canonical_url).0
}

/// Returns the hash of the name of a canonical URL's host.
pub(crate) fn host_key(canonical_url: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64(host(canonical_url).as_bytes())
}

/// Returns path and query of a canonical URL.
pub fn path(canonical_url: &str) -> &str {
    host_and_path(canonical_url).1
}

fn host_and_path(canonical_url: &str) -> (&str, &str) {
    let schemes = ["http://", "https://"];
    let without_scheme = schemes.iter().find_map(|scheme| canonical_url.strip_prefix(scheme)).unwrap_or(canonical_url);
    without_scheme
        .split_at(without_scheme.bytes().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(without_scheme.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_is_the_url_after_the_host_with_its_query() {
        assert_eq!(path("http://h.example:8080/a/b?c=d"), "/a/b?c=d");
        assert_eq!(path("https://h.example/"), "/");
    }
}
