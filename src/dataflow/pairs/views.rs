//! Finds views of pages ([`webtwin_core::overlap::views`]). Texts with the same title or the same
//! notice on one host are compared by their chunks. So are texts with the same path on the hosts of
//! a domain, and texts of which one declares the URL of the other canonical.
//!
//! 1. The domains with several hosts are computed. The owner of a page sends its title and text to
//!    the owner of the title on its host, which finds equal texts. In the same way it sends the
//!    notice of the page, its path if the domain has several hosts, its URL, and the URL that it
//!    declares canonical. The following steps are the same for each group of texts.
//! 2. The number of texts of every host is computed, and the hosts that have texts with the same
//!    title.
//! 3. The owner of a title requests chunks from the holders of its texts: of a sample of the host's
//!    texts, to find boilerplate, and of the texts that are compared.
//! 4. Chunks of the samples are partitioned by host and chunk. The boilerplate among them is
//!    broadcast.
//! 5. Chunks of texts to be compared, marked as own or boilerplate, are partitioned by block, and
//!    each block is compared separately.
//!
//! # Memory
//! Takes, in each process, 8 bytes for each host, 8 for each slot of the table of domains, of which
//! there are up to eight for each host and a million in all, and 8 for each chunk of boilerplate.
//! Takes, at each worker, 8 bytes for each host, 40 for each text and value by which it is grouped,
//! 32 for each text that is requested, and 16 for each chunk of these. Data beyond the budget of
//! the step is on disk, except for requested texts.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use itertools::Itertools;
use serde::{Deserialize, Serialize};

use super::domains::Domains;
use super::kinds::PairKind;
use super::packed_rows::{RowPacker, each_row, first_row};
use super::view_groups::{TextRow, ViewGroup, each_group, rows_of};
use crate::reading::captures::Crawl;
use crate::reading::worker_pages::WorkerPages;
use crate::shuffle::hash_partitions::{CommonPartitions, HashPartitions};
use crate::shuffle::packed::PackedRow;
use crate::shuffle::page_counts::sum;
use webtwin_base::by_hash::Hashes;
use webtwin_base::error::Result;
use webtwin_base::ids::{HostId, Number, Page, splitmix64};
use webtwin_core::overlap::SimilarPair;
use webtwin_core::overlap::rows::{FPrintRow, KeyShares, Row64};
use webtwin_core::overlap::views::{
    BLOCK, Kin, TitledText, UNCOUNTED_TEXTS, agree, blocks, is_boilerplate, is_sampled, join, marked, on_host,
};
use webtwin_engine::{Net, Owners};
use webtwin_job::{Job, OverlapSettings};
use webtwin_spill::partition_bits;

/// Counts of the search for views, over all workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewCounts {
    /// Texts that are compared, for example because they share their title with another text of
    /// their host.
    pub texts: u64,
    /// Boilerplate chunks, counted once for each host.
    pub boilerplate: u64,
    /// Pairs of views.
    pub pairs: u64,
    /// Pairs of placeholders.
    pub placeholders: u64,
    /// Pairs of a page and a page that declares its URL canonical, whose texts agree.
    #[serde(default)]
    pub declared: u64,
    /// Texts that declare the URL of a page canonical although their text does not agree with that
    /// page.
    #[serde(default)]
    pub contradicted: u64,
}

impl ViewCounts {
    /// Returns the number of pairs of all kinds.
    pub fn total(&self) -> u64 {
        self.pairs + self.placeholders + self.declared
    }
}

/// Kinds of the pairs that [`views`] finds, in their order.
pub const KINDS: [PairKind; 3] = [PairKind::Views, PairKind::Placeholder, PairKind::Declared];

/// Result of [`views`] on this worker.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ViewPairs {
    /// Pairs of each of [`KINDS`], ascending, at the owners of their smaller pages.
    pub pairs: [Vec<SimilarPair>; 3],
    /// Pages that other pages declare canonical and whose text they have, in any order. May contain
    /// repetitions.
    pub originals: Vec<Page>,
    /// Counts over all workers.
    pub counts: ViewCounts,
}

/// Text whose chunks are requested, in 24 bytes. Ordered by slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct TextRequest {
    slot: u32,
    page: Page,
    host: HostId,
    /// Worker that holds the chunks.
    worker: u32,
    /// Key of the block in which the text is compared, or [`SAMPLE_KEY`] if the text is inspected
    /// for boilerplate.
    block: u64,
}

/// Key of texts that are inspected for boilerplate.
const SAMPLE_KEY: u64 = 0;

/// Returns the key of a block of texts, given a hash. The last three bits encode the kin of the
/// texts.
fn block_key(hash: u64, kin: Kin) -> u64 {
    hash & !7 | (kin as u64 + 1)
}

/// Returns the key of a block of texts that declare the URL of a page canonical.
fn canonical_key(original: Page, number: u64) -> u64 {
    block_key(u64::from(original.0) << 32 | number << 3, Kin::Canonical)
}

/// Returns the kind of texts in a block.
fn kin_of(block: u64) -> Kin {
    [Kin::Title, Kin::CommonTitle, Kin::Path, Kin::Notice, Kin::Canonical][(block & 7) as usize - 1]
}

/// Maximum number of chunks of a [`ChunkRow`].
const CHUNKS_OF_A_ROW: usize = 12;

/// Some chunks of a page in a block, in 64 bytes.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct ChunkRow {
    block: u64,
    page: Page,
    count: u32,
    chunks: [u32; CHUNKS_OF_A_ROW],
}

impl ChunkRow {
    fn chunks(&self) -> &[u32] {
        &self.chunks[..self.count as usize]
    }
}

/// Finds the pairs of views, placeholders and declared copies among the pages of all workers.
///
/// # Errors
/// Returns any error of [`HashPartitions::new`].
pub fn views(net: &mut Net<'_>, local_pages: &WorkerPages, crawl: &Crawl, job: &Job) -> Result<ViewPairs> {
    let mut result = ViewPairs::default();
    let settings = &job.overlap;
    if !job.with_views() {
        return Ok(result);
    }
    let mut texts = texts(net, crawl)?;
    let hosts = Hosts::count(net, crawl, &texts)?;
    let [text_count] = net.all_sum("texts to compare", [hosts.texts_to_compare])?;
    result.counts.texts = text_count;
    let requests = requests(net, &mut texts, &hosts, &mut result.originals)?;
    drop(texts);
    if text_count == 0 {
        return Ok(result);
    }
    let boilerplate = boilerplate(net, local_pages, &requests, &hosts)?;
    result.counts.boilerplate = boilerplate.len() as u64;
    let mut contradicted = 0;
    let compared = ComparisonInput { requests: &requests, boilerplate: &boilerplate, settings };
    let rows = compare(net, local_pages, &compared, &mut result.originals, &mut contradicted)?;
    let mut rows = net.exchange("views", rows, |&[_, a, ..]| crawl.directory.owner(Page(a)))?;
    rows.sort_unstable();
    result.pairs = KINDS.map(|kind| {
        let rows = rows.iter().filter(|row| row[0] == kind as u32);
        let mut pairs: Vec<SimilarPair> =
            rows.map(|&[_, a, b, value]| SimilarPair { a: Page(a), b: Page(b), value }).collect();
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    });
    let [views, placeholders, declared] = result.pairs.each_ref().map(|pairs| pairs.len() as u64);
    let sums = net.all_sum("pairs of views", [views, placeholders, declared, contradicted])?;
    [result.counts.pairs, result.counts.placeholders, result.counts.declared, result.counts.contradicted] = sums;
    Ok(result)
}

/// Step 1: groups texts by title, notice, path and canonical URL.
fn texts(net: &mut Net<'_>, crawl: &Crawl) -> Result<HashPartitions<TextRow>> {
    let mut domains = Domains::learn(net, crawl)?;
    let are_declared = domains.are_declared;
    let hosts = &crawl.directory.hosts;
    let rows = crawl.pages.map(|row| {
        let host = hosts[row.page];
        rows_of(&row, host, domains.with_more_hosts(host, row.url()), are_declared)
    });
    {
        let count = crawl.pages.len() as u64 * if are_declared { 2 } else { 1 };
        HashPartitions::new(net, "titles", count, rows.flatten_ok(), |row| row.key)
    }
}

/// Numbers of texts of every host.
struct Hosts {
    /// Number of texts.
    texts: Arc<Vec<u32>>,
    /// Number of texts that are compared.
    compared: Arc<Vec<u32>>,
    /// Number of texts that are compared in the groups of this worker.
    texts_to_compare: u64,
}

impl Hosts {
    /// Step 2: counts the texts of every host.
    fn count(net: &mut Net<'_>, crawl: &Crawl, all_texts: &HashPartitions<TextRow>) -> Result<Hosts> {
        let host_names = &crawl.directory.hosts;
        let hosts = net.once_per_process(|| host_names.iter().max().map_or(0, |host| host.index() + 1))?;
        let (mut texts, mut compared, mut rows) = (vec![0u32; *hosts], vec![0u32; *hosts], Vec::new());
        for share in 0..all_texts.count() {
            net.check()?;
            all_texts.read(share, &mut rows)?;
            let add = |to: &mut [u32], some: &[TextRow]| some.iter().for_each(|text| to[text.host.index()] += 1);
            each_group(&mut rows, |group| match group {
                ViewGroup::Title(title_texts, are_compared) => {
                    add(&mut texts, title_texts);
                    add(&mut compared, if are_compared { title_texts } else { &[] });
                }
                ViewGroup::Notice(some) | ViewGroup::Path(some) => add(&mut compared, some),
                ViewGroup::Canonical(original, copies) => {
                    add(&mut compared, &[original]);
                    add(&mut compared, copies);
                }
                ViewGroup::CanonicalCopy(_) => {}
            });
        }
        let texts_to_compare = compared.iter().map(|&count| u64::from(count)).sum();
        let texts = sum(net, "texts a host", &texts)?;
        let compared = sum(net, "texts to compare a host", &compared)?;
        Ok(Hosts { texts, compared, texts_to_compare })
    }

    fn texts(&self, host: HostId) -> u32 {
        self.texts[host.index()]
    }

    /// True if boilerplate is searched on a host.
    fn is_inspected(&self, host: HostId) -> bool {
        self.compared[host.index()] > 0 && self.texts(host) > UNCOUNTED_TEXTS
    }
}

/// Step 3: requests the chunks of texts. Returns the texts requested from this worker, in the order
/// of slots. Pages that exact copies declare canonical are added to `originals`.
fn requests(
    net: &mut Net<'_>,
    texts: &mut HashPartitions<TextRow>,
    hosts: &Hosts,
    originals: &mut Vec<Page>,
) -> Result<Vec<TextRequest>> {
    let (mut share, mut rows, mut requests) = (0, Vec::new(), Vec::new());
    let source = |send: &mut dyn FnMut(TextRequest)| {
        if share == texts.count() {
            return Ok(false);
        }
        texts.take(share, &mut rows)?;
        share += 1;
        each_group(&mut rows, |group| match group {
            ViewGroup::CanonicalCopy(original) => originals.push(original),
            group => ask_for(&group, hosts, &mut *send),
        });
        Ok(true)
    };
    net.exchange_from(
        "texts to compare",
        source,
        |row| row.worker as usize,
        |rows| {
            requests.extend_from_slice(rows);
            Ok(())
        },
    )?;
    requests.sort_unstable();
    Ok(requests)
}

/// Requests the chunks of the texts of a group.
fn ask_for(group: &ViewGroup<'_>, hosts: &Hosts, send: &mut dyn FnMut(TextRequest)) {
    let request = |row: &TextRow, block| TextRequest {
        slot: row.slot,
        page: row.page,
        host: row.host,
        worker: row.worker,
        block,
    };
    let (texts, kin) = match *group {
        ViewGroup::Title(texts, are_compared) => {
            let (host, count) = (texts[0].host, hosts.texts(texts[0].host));
            if hosts.is_inspected(host) {
                texts.iter().filter(|row| is_sampled(row.exact, count)).for_each(|row| send(request(row, SAMPLE_KEY)));
            }
            if !are_compared {
                return;
            }
            (texts, Kin::of_title(texts.len(), count))
        }
        ViewGroup::Notice(texts) => (texts, Kin::Notice),
        ViewGroup::Path(texts) => (texts, Kin::Path),
        ViewGroup::Canonical(original, copies) => {
            for (block_rows, number) in copies.chunks(BLOCK).zip(0..) {
                let key = canonical_key(original.page, number);
                std::iter::once(&original).chain(block_rows).for_each(|row| send(request(row, key)));
            }
            return;
        }
        ViewGroup::CanonicalCopy(_) => return,
    };
    let mut ordered: Vec<TitledText> =
        texts.iter().map(|&TextRow { chunks, exact, page, .. }| TitledText { chunks, exact, page }).collect();
    for (block, number) in blocks(&mut ordered).zip(0u64..) {
        let key = block_key(splitmix64(texts[0].key.wrapping_add(number)), kin);
        for text in block {
            let at = texts.partition_point(|row| row.exact < text.exact);
            send(request(&texts[at], key));
        }
    }
}

/// Step 4: finds the boilerplate chunks of hosts. Returns one set in each process.
fn boilerplate(
    net: &mut Net<'_>,
    local_pages: &WorkerPages,
    requests: &[TextRequest],
    hosts: &Hosts,
) -> Result<Arc<Hashes>> {
    let sampled = || requests.iter().filter(|row| row.block == SAMPLE_KEY);
    let count = sampled().map(|row| local_pages.fprints.size(row.slot as usize) as u64).sum();
    let mut fprints = local_pages.fprints.reader();
    let rows = sampled().map(|row| {
        let host_row = |&fprint: &u64| [(fprint >> 32) as u32, fprint as u32, row.host.0];
        Ok(fprints.get(row.slot as usize)?.iter().map(host_row).collect::<Vec<[u32; 3]>>())
    });
    let mut shares = match net.processes() {
        1 => {
            let key = |&row: &[u32; 3]| sampled_on_host(row);
            HashPartitions::new(net, "chunks of samples", count, rows.flatten_ok(), key)?
        }
        _ => packed_samples(net, count, rows)?,
    };
    let (mut rows, mut boilerplate_chunks) = (Vec::new(), Vec::new());
    for share in 0..shares.count() {
        net.check()?;
        shares.take(share, &mut rows)?;
        rows.sort_unstable();
        for run in rows.chunk_by(|x, y| x == y) {
            if is_boilerplate(run.len() as u32, hosts.texts(HostId(run[0][2]))) {
                boilerplate_chunks.push(sampled_on_host(run[0]));
            }
        }
    }
    let shared_chunks = net.broadcast("boilerplate", boilerplate_chunks)?;
    net.once_per_process(|| shared_chunks.iter().copied().collect())
}

/// Partitions chunks by chunk and host, and sends them packed. `count` is the number of chunks of
/// this worker. Takes two rounds.
fn packed_samples(
    net: &mut Net<'_>,
    count: u64,
    mut rows: impl Iterator<Item = Result<Vec<[u32; 3]>>>,
) -> Result<HashPartitions<[u32; 3]>> {
    let [total_chunks] = net.all_sum("number of chunks of samples", [count])?;
    let partitioning =
        CommonPartitions { bits: partition_bits::<[u32; 3]>(total_chunks / net.peers() as u64), kinds: 1 };
    let (mut partitions, mut packer) = (HashPartitions::empty(net, partitioning), RowPacker::new(net.peers()));
    let shares = KeyShares::new(net.peers(), partitioning.bits);
    let hash = |row: &Row64| splitmix64(on_host(row.key(), HostId(row.doc().0)));
    let source = |send: &mut dyn FnMut(PackedRow)| {
        let mut sent_rows = 0;
        while let Some(page_rows) = rows.next().transpose()? {
            sent_rows += page_rows.len();
            for [high, low, host] in page_rows {
                let row = Row64::of_key(u64::from(high) << 32 | u64::from(low), Page(host));
                packer.push(shares.owner(hash(&row)), &row, &mut *send);
            }
            if sent_rows >= 1 << 15 {
                return Ok(true);
            }
        }
        packer.finish(send);
        Ok(false)
    };
    let mut put_row = |row: Row64| {
        let key = row.key();
        partitions.push(shares.bucket(hash(&row)), [(key >> 32) as u32, key as u32, row.doc().0])
    };
    let take = |packed: &[PackedRow]| packed.iter().try_for_each(|packed| each_row(packed, &mut put_row));
    net.exchange_from("chunks of samples", source, |packed| shares.owner(hash(&first_row(packed))), take)?;
    Ok(partitions)
}

/// Returns the key of a chunk on a host, like [`on_host`], given the halves of the fingerprint, and
/// the host.
fn sampled_on_host([high, low, host]: [u32; 3]) -> u64 {
    on_host(u64::from(high) << 32 | u64::from(low), HostId(host))
}

/// Input of the comparison of texts.
struct ComparisonInput<'c> {
    requests: &'c [TextRequest],
    boilerplate: &'c Hashes,
    settings: &'c OverlapSettings,
}

/// Step 5: compares the texts of this worker's blocks. Returns pairs, each as its kind, its pages
/// and its value. Pages that are rightly declared canonical are added to `originals`, and texts
/// that declare another page wrongly are counted.
fn compare(
    net: &mut Net<'_>,
    local_pages: &WorkerPages,
    &ComparisonInput { requests, boilerplate, settings }: &ComparisonInput<'_>,
    originals: &mut Vec<Page>,
    contradicted: &mut u64,
) -> Result<Vec<[u32; 4]>> {
    let compared = || requests.iter().filter(|row| row.block != SAMPLE_KEY);
    let rows_of = |row: &TextRequest| local_pages.fprints.size(row.slot as usize).div_ceil(CHUNKS_OF_A_ROW) as u64;
    let count = compared().map(rows_of).sum();
    let mut fprints = local_pages.fprints.reader();
    let rows = compared().map(|&TextRequest { slot, page, host, block, .. }| {
        let row = |piece: &[u64]| {
            let mut row = ChunkRow { block, page, count: piece.len() as u32, chunks: [0; CHUNKS_OF_A_ROW] };
            for (chunk, &fprint) in row.chunks.iter_mut().zip(piece) {
                *chunk = marked(fprint, !boilerplate.contains(&on_host(fprint, host)));
            }
            row
        };
        Ok(fprints.get(slot as usize)?.chunks(CHUNKS_OF_A_ROW).map(row).collect::<Vec<ChunkRow>>())
    });
    let mut shares = HashPartitions::new(net, "chunks to compare", count, rows.flatten_ok(), |row| row.block)?;
    let (mut rows, mut chunks, mut lengths, mut view_pairs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for share in 0..shares.count() {
        net.check()?;
        shares.take(share, &mut rows)?;
        rows.sort_unstable_by_key(|row: &ChunkRow| (row.block, row.page));
        chunks.clear();
        lengths.clear();
        for page_rows in rows.chunk_by(|x, y| (x.block, x.page) == (y.block, y.page)) {
            let start = chunks.len();
            page_rows.iter().for_each(|row| chunks.extend_from_slice(row.chunks()));
            chunks[start..].sort_unstable();
            lengths.push(chunks.len() - start);
        }
        let (mut remaining, mut lengths) = (&chunks[..], lengths.iter());
        for block in rows.chunk_by(|x, y| x.block == y.block) {
            let texts: Vec<(Page, &[u32])> = block
                .chunk_by(|x, y| x.page == y.page)
                .map(|page_rows| {
                    let length = *lengths.next().expect("each page of a block has chunks");
                    let (page_chunks, later_chunks) = remaining.split_at(length);
                    remaining = later_chunks;
                    (page_rows[0].page, page_chunks)
                })
                .collect();
            let kin = kin_of(block[0].block);
            let kind = match kin {
                Kin::Title | Kin::CommonTitle | Kin::Path => PairKind::Views,
                Kin::Notice => PairKind::Placeholder,
                Kin::Canonical => PairKind::Declared,
            };
            let mut add = |pair: SimilarPair| view_pairs.push([kind as u32, pair.a.0, pair.b.0, pair.value]);
            if kin != Kin::Canonical {
                join(&texts, kin, settings, add);
                continue;
            }
            let original = Page((block[0].block >> 32) as u32);
            let previous_count = *contradicted;
            agree(original, &texts, settings, |pair| pair.map_or_else(|| *contradicted += 1, &mut add));
            // At least one of the texts other than the original agrees with it.
            if *contradicted - previous_count + 1 < texts.len() as u64 {
                originals.push(original);
            }
        }
    }
    Ok(view_pairs)
}
