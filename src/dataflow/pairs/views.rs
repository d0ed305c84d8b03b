//! Views of pages ([`crate::overlap::views`]): texts with one title or one
//! notice on one host meet, with their chunks.
//!
//! 1. The owner of a page sends its title and text to the owner of the title on its host, who finds equal texts; likewise its notice,
//!    if it has one. What follows is the same for titles and notices.
//! 2. All learn how many texts every host has, and which hosts have texts with one title.
//! 3. The owner of a title asks the holders of its texts for chunks: of a sample of the host's texts, to find boilerplate, and
//!    of the texts that are to be compared.
//! 4. Chunks of the samples meet by host and chunk. What is boilerplate is shared.
//! 5. Chunks of texts to be compared, marked as own or boilerplate, meet by block, and each block is compared by itself.
//!
//! # Memory
//! 8 bytes a host and 8 for each chunk of boilerplate in each process; 40 bytes a text, 32 a text that is asked for and 16 a chunk of
//! these with its worker, of which what `room` does not allow is on disk, but for texts that are asked for.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::by_hash::Hashes;
use crate::dataflow::reading::captures::Crawl;
use crate::dataflow::reading::lists::until_failure;
use crate::dataflow::reading::worker_pages::WorkerPages;
use crate::dataflow::shuffle::hash_partitions::HashPartitions;
use crate::dataflow::shuffle::memory_budget::MemoryBudget;
use crate::dataflow::shuffle::page_counts::sum;
use crate::engine::{Net, Owners};
use crate::error::Result;
use crate::ids::{HostId, Number, Page, splitmix64};
use crate::job::{Job, Overlap};
use crate::overlap::SimilarPair;
use crate::overlap::views::{
    FEW, Kin, LEAST_PLACEHOLDERS, Titled, blocks, is_boilerplate, is_sampled, join, marked, on_host,
};

/// Counts of the search for views, over all workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewCounts {
    /// Texts that share their title with another text of their host.
    pub texts: u64,
    /// Chunks that are boilerplate, once for each host.
    pub boilerplate: u64,
    /// Pairs of views.
    pub pairs: u64,
    /// Pairs of placeholders.
    pub placeholders: u64,
}

/// A page with its title and text: 40 bytes. Rows order by title, then text, then page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct TitleRow {
    /// Hash of title or notice, and host.
    title: u64,
    exact: u64,
    page: Page,
    host: HostId,
    worker: u32,
    slot: u32,
    chunks: u32,
    kind: u16,
    /// 1 if the URL has a query.
    has_query: u16,
}

/// Kinds of [`TitleRow`]: pages with a title, without one, and with a notice.
const TITLED: u16 = 0;
const UNTITLED: u16 = 1;
const NOTICED: u16 = 2;

/// A text whose chunks are asked for: 24 bytes. Rows order by slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Wanted {
    slot: u32,
    page: Page,
    host: HostId,
    /// Worker that holds the chunks.
    worker: u32,
    /// Key of the block that compares the text; [`SAMPLED`] to look for boilerplate.
    block: u64,
}

/// Stands for a block where a text is inspected for boilerplate.
const SAMPLED: u64 = 0;

/// Key of a block of texts, given a hash: the last two bits are for their kin.
fn block_key(hash: u64, kin: Kin) -> u64 {
    hash & !3 | (kin as u64 + 1)
}

/// Kin of the texts in a block.
fn kin_of(block: u64) -> Kin {
    [Kin::Title, Kin::CommonTitle, Kin::Notice][(block & 3) as usize - 1]
}

/// A chunk of a page in a block: 16 bytes. Rows order by block, page and chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct ChunkRow {
    block: u64,
    page: Page,
    chunk: u32,
}

/// Finds the pairs of views and those of placeholders among the pages of all workers. They lie ascending with the owners of their
/// smaller pages.
///
/// # Errors
/// As [`HashPartitions::laid_down`].
pub fn views(
    net: &mut Net<'_>,
    shelf: &WorkerPages,
    crawl: &Crawl,
    job: &Job,
    room: &MemoryBudget,
) -> Result<([Vec<SimilarPair>; 2], ViewCounts)> {
    let mut counts = ViewCounts::default();
    let settings = &job.overlap;
    if !job.with_views() {
        return Ok(([Vec::new(), Vec::new()], counts));
    }
    let mut titles = titles(net, crawl, room)?;
    let hosts = Hosts::count(net, crawl, &titles)?;
    let [texts] = net.sum("texts with the title of another", [hosts.texts_to_compare])?;
    if texts == 0 {
        return Ok(([Vec::new(), Vec::new()], counts));
    }
    counts.texts = texts;
    let wanted = wanted(net, &mut titles, &hosts)?;
    drop(titles);
    let boilerplate = boilerplate(net, shelf, &wanted, &hosts, room)?;
    counts.boilerplate = boilerplate.len() as u64;
    let found = compare(net, shelf, &wanted, &boilerplate, settings, room)?;
    let mut rows = net.exchange_all("views", found, |&[_, a, ..]| crawl.directory.owner(Page(a)))?;
    rows.sort_unstable();
    let of_kind = |are_placeholders: bool| {
        let rows = rows.iter().filter(|row| (row[0] == Kin::Notice as u32) == are_placeholders);
        let mut pairs: Vec<SimilarPair> =
            rows.map(|&[_, a, b, value]| SimilarPair { a: Page(a), b: Page(b), value }).collect();
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    };
    let pairs = [false, true].map(of_kind);
    [counts.pairs, counts.placeholders] =
        net.sum("pairs of views", pairs.each_ref().map(|pairs| pairs.len() as u64))?;
    Ok((pairs, counts))
}

/// Step 1.
fn titles(net: &mut Net<'_>, crawl: &Crawl, room: &MemoryBudget) -> Result<HashPartitions<TitleRow>> {
    let hosts = &crawl.directory.hosts;
    let rows = crawl.pages.map(|row| {
        let host = hosts[row.page];
        let has_query = u16::from(row.url().contains('?'));
        let of = |kind: u16, hash: u64| TitleRow {
            title: splitmix64(hash ^ splitmix64(u64::from(host) << 2 | u64::from(kind))),
            exact: row.exact,
            page: row.page,
            host,
            worker: row.worker,
            slot: row.slot,
            chunks: row.chunks,
            kind,
            has_query,
        };
        let (title, notice) = (row.title(), row.rest().notice);
        let titled = of(if title.is_empty() { UNTITLED } else { TITLED }, xxh3_64(title.as_bytes()));
        [Some(titled), (notice != 0).then(|| of(NOTICED, notice))]
    });
    until_failure(rows, |rows| {
        let with_text = rows.flatten().flatten().filter(|row| row.chunks > 0);
        HashPartitions::laid_down(net, "titles", crawl.pages.len() as u64, with_text, |row| row.title, room)
    })
}

/// The texts with one title: the first row of each text, from rows in order.
fn texts_of(rows: &[TitleRow]) -> Vec<TitleRow> {
    rows.chunk_by(|x, y| x.exact == y.exact).map(|pages| pages[0]).collect()
}

/// Calls `each` with the texts of every title and notice of a host, and with whether they are to be compared.
///
/// Pages without a query are files, as those of a manual are, of which several may have one title and nearly one text; so of texts with one
/// title some page must have a query.
fn each_title(rows: &mut [TitleRow], mut each: impl FnMut(&[TitleRow], bool)) {
    rows.sort_unstable();
    for rows in rows.chunk_by(|x, y| (x.title, x.host) == (y.title, y.host)) {
        let texts = texts_of(rows);
        let are_compared = match texts[0].kind {
            TITLED => texts.len() > 1 && rows.iter().any(|row| row.has_query == 1),
            NOTICED => texts.len() >= LEAST_PLACEHOLDERS,
            _ => false,
        };
        each(&texts, are_compared);
    }
}

/// Texts of every host.
struct Hosts {
    /// Number of texts.
    texts: Arc<Vec<u32>>,
    /// Number of texts that are to be compared.
    compared: Arc<Vec<u32>>,
    /// Those of this worker's titles.
    texts_to_compare: u64,
}

impl Hosts {
    /// Step 2.
    fn count(net: &mut Net<'_>, crawl: &Crawl, titles: &HashPartitions<TitleRow>) -> Result<Hosts> {
        let of = &crawl.directory.hosts;
        let hosts = net.once(|| of.iter().max().map_or(0, |host| host.index() + 1))?;
        let (mut texts, mut compared, mut rows) = (vec![0u32; *hosts], vec![0u32; *hosts], Vec::new());
        for share in 0..titles.count() {
            net.check()?;
            titles.read(share, &mut rows)?;
            each_title(&mut rows, |of_title, are_compared| {
                let (host, count) = (of_title[0].host.index(), of_title.len() as u32);
                if of_title[0].kind != NOTICED {
                    texts[host] += count;
                }
                if are_compared {
                    compared[host] += count;
                }
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

    /// True if boilerplate is looked for on a host.
    fn is_inspected(&self, host: HostId) -> bool {
        self.compared[host.index()] > 0 && self.texts(host) > FEW
    }
}

/// Step 3; in the order of slots.
fn wanted(net: &mut Net<'_>, titles: &mut HashPartitions<TitleRow>, hosts: &Hosts) -> Result<Vec<Wanted>> {
    let (mut share, mut rows, mut wanted) = (0, Vec::new(), Vec::new());
    let source = |send: &mut dyn FnMut(Wanted)| {
        if share == titles.count() {
            return Ok(false);
        }
        titles.take(share, &mut rows)?;
        share += 1;
        each_title(&mut rows, |texts, are_compared| ask_for(texts, are_compared, hosts, &mut *send));
        Ok(true)
    };
    net.exchange_from(
        "texts to compare",
        source,
        |row| row.worker as usize,
        |rows| {
            wanted.extend_from_slice(rows);
            Ok(())
        },
    )?;
    wanted.sort_unstable();
    Ok(wanted)
}

/// Asks for the chunks of texts with one title.
fn ask_for(texts: &[TitleRow], are_compared: bool, hosts: &Hosts, send: &mut dyn FnMut(Wanted)) {
    let TitleRow { host, title, kind, .. } = texts[0];
    let count = hosts.texts(host);
    let want = |row: &TitleRow, block| Wanted { slot: row.slot, page: row.page, host, worker: row.worker, block };
    if kind != NOTICED && hosts.is_inspected(host) {
        texts.iter().filter(|row| is_sampled(row.exact, count)).for_each(|row| send(want(row, SAMPLED)));
    }
    if !are_compared {
        return;
    }
    let kin = if kind == NOTICED { Kin::Notice } else { Kin::of_title(texts.len(), count) };
    let mut ordered: Vec<Titled> =
        texts.iter().map(|&TitleRow { chunks, exact, page, .. }| Titled { chunks, exact, page }).collect();
    for (block, number) in blocks(&mut ordered).zip(0u64..) {
        let key = block_key(splitmix64(title.wrapping_add(number)), kin);
        for text in block {
            let at = texts.partition_point(|row| row.exact < text.exact);
            send(want(&texts[at], key));
        }
    }
}

/// Step 4; one set in each process.
fn boilerplate(
    net: &mut Net<'_>,
    shelf: &WorkerPages,
    wanted: &[Wanted],
    hosts: &Hosts,
    room: &MemoryBudget,
) -> Result<Arc<Hashes>> {
    let sampled = || wanted.iter().filter(|row| row.block == SAMPLED);
    let count = sampled().map(|row| shelf.fprints.size(row.slot as usize) as u64).sum();
    let mut fprints = shelf.fprints.reader();
    let rows = sampled().map(|row| {
        let of_host = |&fprint: &u64| [fprint, u64::from(row.host)];
        Ok(fprints.get(row.slot as usize)?.iter().map(of_host).collect::<Vec<[u64; 2]>>())
    });
    let mut shares = until_failure(rows, |rows| {
        let key = |&[fprint, host]: &[u64; 2]| on_host(fprint, HostId(host as u32));
        HashPartitions::laid_down(net, "chunks of samples", count, rows.flatten(), key, room)
    })?;
    let (mut rows, mut found) = (Vec::new(), Vec::new());
    for share in 0..shares.count() {
        net.check()?;
        shares.take(share, &mut rows)?;
        rows.sort_unstable();
        for run in rows.chunk_by(|x, y| x == y) {
            let [fprint, host] = run[0];
            let host = HostId(host as u32);
            if is_boilerplate(run.len() as u32, hosts.texts(host)) {
                found.push(on_host(fprint, host));
            }
        }
    }
    let found = net.share("boilerplate", found)?;
    net.once(|| found.iter().copied().collect())
}

/// Step 5; pairs of this worker's blocks, each as its kin, its pages and its value.
fn compare(
    net: &mut Net<'_>,
    shelf: &WorkerPages,
    wanted: &[Wanted],
    boilerplate: &Hashes,
    settings: &Overlap,
    room: &MemoryBudget,
) -> Result<Vec<[u32; 4]>> {
    let compared = || wanted.iter().filter(|row| row.block != SAMPLED);
    let count = compared().map(|row| shelf.fprints.size(row.slot as usize) as u64).sum();
    let mut fprints = shelf.fprints.reader();
    let rows = compared().map(|&Wanted { slot, page, host, block, .. }| {
        let row = |&fprint: &u64| {
            let is_own = !boilerplate.contains(&on_host(fprint, host));
            ChunkRow { block, page, chunk: marked(fprint, is_own) }
        };
        Ok(fprints.get(slot as usize)?.iter().map(row).collect::<Vec<ChunkRow>>())
    });
    let mut shares = until_failure(rows, |rows| {
        HashPartitions::laid_down(net, "chunks to compare", count, rows.flatten(), |row| row.block, room)
    })?;
    let (mut rows, mut chunks, mut found) = (Vec::new(), Vec::new(), Vec::new());
    for share in 0..shares.count() {
        net.check()?;
        shares.take(share, &mut rows)?;
        rows.sort_unstable();
        chunks.clear();
        chunks.extend(rows.iter().map(|row: &ChunkRow| row.chunk));
        let mut rest = &chunks[..];
        for block in rows.chunk_by(|x, y| x.block == y.block) {
            let texts: Vec<(Page, &[u32])> = block
                .chunk_by(|x, y| x.page == y.page)
                .map(|of_page| {
                    let (these, others) = rest.split_at(of_page.len());
                    rest = others;
                    (of_page[0].page, these)
                })
                .collect();
            let kin = kin_of(block[0].block);
            join(&texts, kin, settings, |pair| found.push([kin as u32, pair.a.0, pair.b.0, pair.value]));
        }
    }
    Ok(found)
}
