//! All-pairs overlap in bounded memory: `FPrint-DocID` rows in any order become similar pairs.
//!
//! 1. Rows go to the owners of their fingerprints, who lay them in buckets (on disk where memory ends).
//! 2. Bucket by bucket they are sorted; a chunk that counts and stands on two pages or more becomes a run on a tape.
//! 3. Pages that cannot be in a similar pair are taken out ([`prune`]), in a few rounds over the tape.
//! 4. The way to count is chosen ([`planner`]); for coarse counting the tape is scanned for heavy buckets first.
//! 5. Pairs go to the owners of their smaller page, who lay them in buckets of pages.
//! 6. Bucket by bucket they are counted, and those that are similar are handed on.
//!
//! Nothing but counts of pages, two bytes a page and worker and five more where resemblance matters, has to stay in memory.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use super::counts::Counts;
use super::page_counts::sum;
use crate::engine::Net;
use crate::error::{Error, Result};
use crate::ids::{FPrint, HostId, Rank, mix};
use crate::job::{Guard, Overlap};
use crate::overlap::coarse_count::{CoarseCounter, HeavyBuckets, Layout};
use crate::overlap::count_pairs::{self, count, pair_key};
use crate::overlap::filter::{Verdict, judge};
use crate::overlap::planner::{self, Load, Method};
use crate::overlap::prune::{self, PageSet, SharedChunks};
use crate::overlap::rows::{Row, Shares, sort_bucket};
use crate::overlap::runs::{Runs, pairs_of, record};
use crate::overlap::{SimilarPair, is_pairwise_similar};
use crate::storage::spill::{BLOCK_BYTES, Buckets, Disk, Tape};

/// Bytes of a bucket that is sorted at once: within a core's share of the cache, with its scratch.
const BUCKET_BYTES: u64 = 4 << 20;

/// Most buckets of a worker, as a power of two: their open blocks take 64 MiB.
const MOST_BUCKET_BITS: u32 = 10;

/// Bytes of a worker that are on their way to others, or from them.
const ON_THE_WAY: u64 = 40 << 20;

/// Bytes that a worker with many rows needs so that what it spills is written in pieces worth a seek.
const LEAST_BYTES: u64 = 64 << 20;

/// Rows or pairs that are sent before what has arrived is looked at.
const BATCH: usize = 1 << 15;

/// Rounds of pruning after which no more is hoped for.
const MOST_ROUNDS: usize = 6;

/// What is known of the pages.
pub struct Pages<'a> {
    /// Number of pages.
    pub count: usize,
    /// Host of each, or nothing when no filter asks for it.
    pub hosts: &'a [HostId],
    /// Exact copies of others, which count as pages of a chunk and then are left out.
    pub copies: &'a PageSet,
}

/// What may be used.
#[derive(Debug, Clone)]
pub struct Room {
    /// Memory of a process beyond what it holds already; 0 sets no bound.
    pub memory_bytes: u64,
    /// Folder for what does not fit.
    pub spill: PathBuf,
    /// Disk that a process may use for it; 0 sets no bound.
    pub disk_bytes: u64,
    /// A way of counting that is taken without asking the planner.
    pub method: Option<Method>,
}

/// What one worker did, and how all counted.
#[derive(Debug, Clone, Default)]
pub struct Work {
    /// Rows and pairs, this worker's.
    pub counts: Counts,
    /// Rows left after pruning, this worker's.
    pub core_rows: u64,
    /// Pages left after pruning, of all.
    pub core_pages: u64,
    /// Of these, pages of the most frequent chunk, of all.
    pub longest: u64,
    /// Rounds of pruning.
    pub rounds: u32,
    /// Pairs handed to their owners, after the selection of candidates; this worker's.
    pub sent: u64,
    /// Distinct pairs that were counted here; how many light ones are among them depends on the method.
    pub candidates: u64,
    /// The planner's reason.
    pub why: String,
    /// Bytes written to disk.
    pub spilled_bytes: u64,
    /// Stages with their seconds, by this worker's clock.
    pub seconds: Vec<(&'static str, f64)>,
}

/// What is known when all pairs have been handed on.
pub struct AllPairs {
    /// What was done.
    pub work: Work,
    /// Chunks that count of every page; empty when neither resemblance nor guard asks for them.
    pub chunks: Arc<Vec<u32>>,
    stripes: Stripes,
}

impl AllPairs {
    /// Worker that has the pairs whose smaller page is `a`.
    pub fn owner(&self, a: Rank) -> usize {
        self.stripes.worker(pair_key(a, a))
    }
}

/// Bytes that one worker may fill with rows, a tape and pairs.
struct Allowance {
    /// For rows, and later for pairs.
    buckets: u64,
    /// For a tape.
    tape: u64,
}

/// Bytes of a process that cannot be spilled, for so many pages, and bytes of rows of each worker.
pub fn fixed_bytes(pages: usize, workers: usize, row_bytes: u64, with_chunks: bool) -> u64 {
    let (pages, workers) = (pages as u64, workers as u64);
    let a_page = if with_chunks { 6 * workers + 5 } else { 2 * workers + 1 };
    let blocks = (BLOCK_BYTES as u64 * 2) << bucket_bits(row_bytes);
    let a_worker = (2 * row_bytes).min(ON_THE_WAY) + row_bytes.min(4 * BUCKET_BYTES) + row_bytes.min(blocks);
    pages * a_page + pages / 4 * (workers + 1) + workers * a_worker
}

/// The least memory of a process: with less there is no run.
pub fn least_bytes(pages: usize, workers: usize, row_bytes: u64, with_chunks: bool) -> u64 {
    fixed_bytes(pages, workers, row_bytes, with_chunks) + workers as u64 * (row_bytes / 8).min(LEAST_BYTES)
}

/// Whether counts of chunks are needed for every page.
pub fn with_chunks(settings: &Overlap) -> bool {
    settings.min_resemblance > 0.0 || settings.guard != Guard::None
}

impl Room {
    /// A worker's share of the disk.
    pub fn disk(&self, net: &Net<'_>) -> Disk {
        Disk::new(&self.spill, self.disk_bytes / net.workers_per_process() as u64)
    }

    /// A worker's share of the memory; more than there can be where there is no bound.
    pub fn of_worker(&self, net: &Net<'_>) -> u64 {
        if self.memory_bytes == 0 { u64::MAX } else { self.memory_bytes / net.workers_per_process() as u64 }
    }

    /// One of equal parts.
    pub fn parted(&self, parts: u64) -> Room {
        let part = |bytes: u64| if bytes == 0 { 0 } else { (bytes / parts).max(1) };
        Room { memory_bytes: part(self.memory_bytes), disk_bytes: part(self.disk_bytes), ..self.clone() }
    }

    fn allowance(&self, workers: usize, pages: usize, row_bytes: u64, with_chunks: bool) -> Result<Allowance> {
        if self.memory_bytes == 0 {
            return Ok(Allowance { buckets: u64::MAX, tape: u64::MAX });
        }
        let fixed = fixed_bytes(pages, workers, row_bytes, with_chunks);
        let least = least_bytes(pages, workers, row_bytes, with_chunks);
        if self.memory_bytes < least {
            return Err(Error::Space {
                what: "all-pairs overlap in the memory of a process".into(),
                needed_bytes: least,
                allowed_bytes: self.memory_bytes,
            });
        }
        let each = (self.memory_bytes - fixed) / workers as u64;
        let allowance = Allowance { buckets: each / 10 * 7, tape: each / 10 * 3 };
        let spilled = workers as u64 * row_bytes.saturating_sub(allowance.buckets);
        if self.disk_bytes > 0 && spilled > self.disk_bytes {
            return Err(Error::Space {
                what: format!("what does not fit in memory, spilled to {} (effort.spill),", self.spill.display()),
                needed_bytes: spilled,
                allowed_bytes: self.disk_bytes,
            });
        }
        Ok(allowance)
    }
}

/// Finds the similar pairs of a duplicate-free `FPrint-DocID` table of which each worker gives a part.
///
/// `source` hands rows to its argument and is called again while it returns true, as in [`Net::exchange`]; `rows` is about
/// how many it will give here. `found` gets the pairs that this worker owns, ascending: all pairs of a page are with one
/// worker. It gets no pair twice. The guard ([`crate::overlap::guard`]) is not applied.
///
/// # Errors
/// [`Error::Space`] before anything is read when the memory does not suffice for what cannot be spilled;
/// [`Error::Storage`] when the disk for the rest is full; or when the run has ended.
///
/// # Cost
/// Each row is sent, laid down, sorted and scanned once; each pair left after pruning is sent, laid down and counted.
pub fn similar_pairs<R: Row>(
    net: &mut Net<'_>,
    rows: u64,
    source: impl FnMut(&mut dyn FnMut(FPrint, Rank)) -> bool,
    pages: &Pages<'_>,
    settings: &Overlap,
    room: &Room,
    mut found: impl FnMut(SimilarPair),
) -> Result<AllPairs> {
    let with_chunks = with_chunks(settings);
    let rows = net.all_gather("rows to come", rows)?.iter().sum::<u64>() / net.peers() as u64;
    let row_bytes = rows * size_of::<R>() as u64;
    let allowance = room.allowance(net.workers_per_process(), pages.count, row_bytes, with_chunks);
    let allowance = net.agree("memory for overlap", allowance)?;
    let mut work = Work::default();
    let mut clock = Clock(Instant::now());

    let disk = room.disk(net);
    let mut table: Buckets<R> = laid_down(net, row_bytes, source, &allowance, &disk)?;
    clock.stage(&mut work, "exchange rows");
    let shares = Shares::new(net.peers(), table.count().trailing_zeros());
    let mut runs = Runner {
        tape: Tape::new(allowance.tape, &disk),
        shared: SharedChunks::new(pages.count),
        chunks: vec![0; if with_chunks { pages.count } else { 0 }],
        counts: Counts::default(),
    };
    let grouped = group(net, &mut table, shares, pages, settings, &allowance, &mut runs);
    net.agree("group rows", grouped)?;
    work.spilled_bytes += table.spilled_bytes();
    drop(table);
    clock.stage(&mut work, "sort rows");

    let Runner { mut tape, mut shared, chunks, counts } = runs;
    work.counts = counts;
    let chunks = sum(net, "chunks a page", &chunks)?;
    let chunks_of = |page: usize| if with_chunks { chunks[page] } else { 0 };
    let mut rows_left: u64 = u64::MAX;
    loop {
        let of_all = sum(net, "shared chunks a page", shared.finish())?;
        let core = net.once(|| prune::core(&of_all, chunks_of, settings))?;
        work.rounds += 1;
        let pruned = pruned(&mut tape, &core, &mut shared, allowance.tape, &disk);
        let Pruned { tape: next, rows, pairs, longest } = net.agree("prune", pruned)?;
        work.spilled_bytes += tape.spilled_bytes();
        tape = next;
        (work.core_rows, work.counts.left, work.core_pages) = (rows, pairs, core.count());
        let left = net.all_gather("rows left", (rows, longest))?;
        let all: u64 = left.iter().map(|of_worker| of_worker.0).sum();
        work.longest = left.iter().map(|of_worker| of_worker.1).max().unwrap_or(0);
        // A round that takes away less than a sixteenth does not pay for the next one.
        if all >= rows_left / 16 * 15 || work.rounds as usize == MOST_ROUNDS {
            break;
        }
        rows_left = all;
    }
    drop(shared);
    clock.stage(&mut work, "prune");

    // Pairs may have what the tape does not need.
    let spare = allowance.tape.saturating_sub(tape.held_bytes());
    let allowance = Allowance { buckets: allowance.buckets.saturating_add(spare), ..allowance };
    let mut load = load(net, work.counts.left, settings, &allowance, room)?;
    if room.method.is_none() && planner::pilot_decides(&load) {
        load.heavy_thousandths = pilot(net, &tape, planner::pilot_rate(load.pairs), settings.min_shared)?;
    }
    let (method, why) = match room.method {
        Some(method) => (method, "as asked for".to_string()),
        None => planner::choose(&load),
    };
    work.why = why;
    let on_disk = load.spilled_bytes();
    if room.method.is_none() && method == Method::SortBased && on_disk > load.disk_bytes {
        let (pairs, longest) = (load.pairs, work.longest);
        return Err(Error::Space {
            what: format!(
                "{pairs} pairs of pages, of a chunk on {longest} pages among others (overlap.max_documents), spilled to {} \
                 (effort.spill),",
                room.spill.display()
            ),
            needed_bytes: on_disk,
            allowed_bytes: load.disk_bytes,
        });
    }
    let heavy = match method {
        Method::SortBased => None,
        Method::CoarseCount(layout) => Some(heavy_buckets(net, &tape, layout, settings.min_shared)?),
    };
    clock.stage(&mut work, "coarse count");

    let stripes = Stripes::new(pages.count, net.peers(), &load);
    let mut pairs = by_pair(net, &tape, heavy.as_deref(), stripes, &allowance, &disk, &mut work)?;
    work.spilled_bytes += tape.spilled_bytes();
    drop((tape, heavy));
    clock.stage(&mut work, "emit pairs");

    let (mut bucket, mut scratch) = (Vec::new(), count_pairs::Scratch::default());
    let mut counted = Ok(());
    for number in 0..pairs.count() {
        counted = net.check().and_then(|()| pairs.take(number, &mut bucket));
        if counted.is_err() {
            break;
        }
        let pages = stripes.pages(net.index(), number, pages.count);
        let least = settings.min_shared;
        work.candidates += count(&bucket, pages.start, pages.len(), least, &mut scratch, |a, b, value| {
            if !with_chunks || is_pairwise_similar(value, chunks[a as usize], chunks[b as usize], settings) {
                work.counts.similar += 1;
                found(SimilarPair { a, b, value });
            }
        });
    }
    net.agree("count pairs", counted)?;
    work.spilled_bytes += pairs.spilled_bytes();
    clock.stage(&mut work, "count pairs");
    Ok(AllPairs { work, chunks, stripes })
}

struct Clock(Instant);

impl Clock {
    fn stage(&mut self, work: &mut Work, name: &'static str) {
        work.seconds.push((name, self.0.elapsed().as_secs_f64()));
        self.0 = Instant::now();
    }
}

/// Step 1: rows with the owners of their fingerprints, in buckets.
fn laid_down<R: Row>(
    net: &mut Net<'_>,
    row_bytes: u64,
    mut source: impl FnMut(&mut dyn FnMut(FPrint, Rank)) -> bool,
    allowance: &Allowance,
    disk: &Disk,
) -> Result<Buckets<R>> {
    let bits = bucket_bits(row_bytes);
    let shares = Shares::new(net.peers(), bits);
    let mut table = Buckets::new(1 << bits, allowance.buckets, disk);
    let mut laid = Ok(());
    net.exchange(
        "FPrint-DocID",
        |send: &mut dyn FnMut(R)| source(&mut |fprint, doc| send(R::new(fprint, doc))),
        |row| shares.worker(row.key()),
        |rows| {
            if laid.is_ok() {
                laid = rows.iter().try_for_each(|row| table.push(shares.bucket(row.key()), *row));
            }
        },
    )?;
    net.agree("lay down rows", laid)?;
    Ok(table)
}

/// Buckets for so many bytes, as a power of two.
pub fn bucket_bits(bytes: u64) -> u32 {
    (bytes / BUCKET_BYTES + 1).next_power_of_two().trailing_zeros().min(MOST_BUCKET_BITS)
}

/// What grouping writes.
struct Runner {
    tape: Tape<u32>,
    shared: SharedChunks,
    /// Chunks that count of each page, where they matter.
    chunks: Vec<u32>,
    counts: Counts,
}

/// Sees to it that the memory suffices for a bucket, which is larger than others where one chunk is on very many pages.
fn make_room_for<R: Row>(
    table: &mut Buckets<R>,
    bucket: usize,
    allowance: &Allowance,
    settings: &Overlap,
) -> Result<()> {
    // The rows, twice; their pages, and hosts.
    let row_bytes = 2 * size_of::<R>() as u64 + 8;
    let (rows, foreseen) = (table.rows_of(bucket), 4 * BUCKET_BYTES);
    let beyond = (rows * row_bytes).saturating_sub(foreseen);
    if beyond == 0 || allowance.buckets == u64::MAX {
        return Ok(());
    }
    if beyond > allowance.buckets {
        let limit = match settings.max_documents {
            0 => "overlap.max_documents sets no limit to the pages of a chunk".to_string(),
            limit => format!("overlap.max_documents = {limit} leaves such a chunk out once it has been sorted"),
        };
        return Err(Error::Space {
            what: format!(
                "a chunk on up to {rows} pages, or few of that kind that fall together ({limit}; more words a chunk make                  it rarer), in the memory of a worker"
            ),
            needed_bytes: rows * row_bytes,
            allowed_bytes: allowance.buckets + foreseen,
        });
    }
    table.hold_at_most(allowance.buckets - beyond)
}

/// Step 2: sorts the buckets and writes the chunks that count as runs.
fn group<R: Row>(
    net: &Net<'_>,
    table: &mut Buckets<R>,
    shares: Shares,
    pages: &Pages<'_>,
    settings: &Overlap,
    allowance: &Allowance,
    into: &mut Runner,
) -> Result<()> {
    let (mut rows, mut room, mut docs, mut scratch) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let counts = &mut into.counts;
    for bucket in 0..table.count() {
        net.check()?;
        make_room_for(table, bucket, allowance, settings)?;
        table.take(bucket, &mut rows)?;
        sort_bucket(&mut rows, &mut room, shares);
        counts.tuples += rows.len() as u64;
        for run in rows.chunk_by(|x, y| x.key() == y.key()) {
            counts.chunks += 1;
            if run.len() == 1 && into.chunks.is_empty() {
                continue;
            }
            docs.clear();
            docs.extend(run.iter().map(Row::doc));
            match judge(&docs, pages.hosts, settings, &mut scratch) {
                Verdict::Counts => {}
                Verdict::Template => {
                    counts.template_chunks += 1;
                    counts.template_tuples += docs.len() as u64;
                    continue;
                }
                Verdict::Frequent => {
                    counts.frequent_chunks += 1;
                    counts.frequent_tuples += docs.len() as u64;
                    continue;
                }
            }
            docs.retain(|&doc| !pages.copies.contains(doc));
            if !into.chunks.is_empty() {
                docs.iter().for_each(|&doc| into.chunks[doc as usize] += 1);
            }
            if docs.len() > 1 {
                counts.emitted += pairs_of(&docs);
                into.shared.count(&docs);
                into.tape.push(record(&docs))?;
            }
        }
    }
    into.tape.finish()
}

/// A tape with its rows and the pairs they make.
struct Pruned {
    tape: Tape<u32>,
    rows: u64,
    pairs: u64,
    /// Pages of the most frequent chunk.
    longest: u64,
}

/// Step 3, one round: the runs of a tape without the pages that are not in the core; `shared` is counted anew.
fn pruned(
    from: &mut Tape<u32>,
    core: &PageSet,
    shared: &mut SharedChunks,
    allowed_bytes: u64,
    disk: &Disk,
) -> Result<Pruned> {
    shared.clear();
    let mut into = Pruned { tape: Tape::new(allowed_bytes, disk), rows: 0, pairs: 0, longest: 0 };
    let (mut words, mut docs) = (Vec::new(), Vec::new());
    for block in 0..from.blocks() {
        from.read(block, &mut words)?;
        from.forget(block);
        for run in Runs(&words) {
            docs.clear();
            docs.extend(run.iter().filter(|&&doc| core.contains(doc)));
            if docs.len() > 1 {
                shared.count(&docs);
                into.rows += docs.len() as u64;
                into.pairs += pairs_of(&docs);
                into.longest = into.longest.max(docs.len() as u64);
                into.tape.push(record(&docs))?;
            }
        }
    }
    into.tape.finish()?;
    Ok(into)
}

fn load(net: &mut Net<'_>, pairs: u64, settings: &Overlap, allowance: &Allowance, room: &Room) -> Result<Load> {
    // The least of all workers' bytes, so that all choose alike.
    let all = net.all_gather("pairs to come", (pairs, allowance.buckets))?;
    let pairs = all.iter().map(|of_worker| of_worker.0).sum();
    let worker_bytes = all.iter().map(|of_worker| of_worker.1).min().unwrap_or(0);
    let disk_bytes = if room.disk_bytes == 0 { u64::MAX } else { room.disk_bytes * net.processes() as u64 };
    Ok(Load {
        pairs,
        heavy_thousandths: 0,
        min_shared: settings.min_shared,
        worker_bytes,
        workers: net.peers() as u64,
        disk_bytes,
    })
}

/// Step 4, first: of a thousand pairs, those of pairs that occur T times, by the pages of a sample.
fn pilot(net: &mut Net<'_>, tape: &Tape<u32>, rate: u64, min_shared: u32) -> Result<u64> {
    let (mut words, mut mine, mut scanned) = (Vec::new(), Vec::new(), Ok(()));
    for block in 0..tape.blocks() {
        scanned = net.check().and_then(|()| tape.read(block, &mut words));
        if scanned.is_err() {
            break;
        }
        for docs in Runs(&words) {
            for (at, &a) in docs.iter().enumerate().filter(|&(_, &a)| mix(u64::from(a)).is_multiple_of(rate)) {
                mine.extend(docs[at + 1..].iter().map(|&b| pair_key(a, b)));
            }
        }
    }
    net.agree("pilot sample", scanned)?;
    let peers = net.peers() as u64;
    let mut pairs = net.exchange_all("pilot sample", mine, |&pair| (mix(pair) % peers) as usize)?;
    let heavy = planner::heavy_thousandths(&mut pairs, min_shared) * pairs.len() as u64;
    let all = net.all_gather("heavy pairs", (heavy, pairs.len() as u64))?;
    let (heavy, pairs) = all.iter().fold((0, 0), |(heavy, pairs), more| (heavy + more.0, pairs + more.1));
    Ok(heavy / u64::max(pairs, 1))
}

/// Step 4: the heavy buckets of all pairs, one copy a process.
fn heavy_buckets(net: &mut Net<'_>, tape: &Tape<u32>, layout: Layout, min_shared: u32) -> Result<Arc<HeavyBuckets>> {
    let mut counter = CoarseCounter::new(layout);
    let mut heavy = HeavyBuckets::new(layout);
    let mut words = Vec::new();
    for part in 0..layout.parts {
        counter.begin(part);
        let mut scanned = Ok(());
        for block in 0..tape.blocks() {
            scanned = net.check().and_then(|()| tape.read(block, &mut words));
            if scanned.is_err() {
                break;
            }
            for docs in Runs(&words) {
                for (at, &a) in docs.iter().enumerate() {
                    docs[at + 1..].iter().for_each(|&b| counter.add(pair_key(a, b)));
                }
            }
        }
        net.agree("hashing scan", scanned)?;
        heavy.judge(&sum(net, "counters", counter.finish())?, min_shared);
    }
    net.once(|| heavy)
}

/// Who owns which pages as the smaller ones of pairs: stripes of a power of two, dealt out to the workers.
#[derive(Debug, Clone, Copy)]
struct Stripes {
    shift: u32,
    peers: u32,
    count: usize,
}

impl Stripes {
    fn new(pages: usize, peers: usize, load: &Load) -> Stripes {
        // Open blocks take a quarter of what there is at most.
        let most = (load.worker_bytes / 4 / BLOCK_BYTES as u64).max(1).ilog2();
        let wanted = peers << bucket_bits(load.pairs / load.workers * 8).min(most);
        let shift = pages.div_ceil(wanted).next_power_of_two().trailing_zeros();
        Stripes { shift, peers: peers as u32, count: (pages >> shift) / peers + 1 }
    }

    #[inline]
    fn worker(&self, pair: u64) -> usize {
        ((pair >> 32 >> self.shift) as u32 % self.peers) as usize
    }

    #[inline]
    fn bucket(&self, pair: u64) -> usize {
        ((pair >> 32 >> self.shift) as u32 / self.peers) as usize
    }

    /// Pages of a worker's bucket.
    fn pages(&self, worker: usize, bucket: usize, pages: usize) -> std::ops::Range<Rank> {
        let stripe = bucket * self.peers as usize + worker;
        let start = |stripe: usize| (stripe << self.shift).min(pages) as Rank;
        start(stripe)..start(stripe + 1)
    }
}

/// Step 5: every pair that the runs make (or every candidate) as often as they do, with its owner.
fn by_pair(
    net: &mut Net<'_>,
    tape: &Tape<u32>,
    heavy: Option<&HeavyBuckets>,
    stripes: Stripes,
    allowance: &Allowance,
    disk: &Disk,
    work: &mut Work,
) -> Result<Buckets<u64>> {
    let mut pairs = Buckets::new(stripes.count, allowance.buckets, disk);
    let (mut words, mut next_word, mut next_block, mut at) = (Vec::new(), 0, 0, 0);
    let (mut emitted, mut laid, mut total) = (Ok(()), Ok(()), 0u64);
    let source = |send: &mut dyn FnMut(u64)| {
        let (mut looked_at, mut sent) = (0, 0u64);
        while looked_at < BATCH {
            if next_word == words.len() {
                if next_block == tape.blocks() {
                    break;
                }
                emitted = tape.read(next_block, &mut words);
                if emitted.is_err() {
                    return false;
                }
                (next_block, next_word, at) = (next_block + 1, 0, 0);
                continue;
            }
            let docs = Runs(&words[next_word..]).next().expect("there are words left");
            let (a, rest) = (docs[at], &docs[at + 1..]);
            match heavy {
                None => {
                    rest.iter().for_each(|&b| send(pair_key(a, b)));
                    sent += rest.len() as u64;
                }
                Some(heavy) => {
                    rest.iter().map(|&b| pair_key(a, b)).filter(|&pair| heavy.may_hold(pair)).for_each(|pair| {
                        send(pair);
                        sent += 1;
                    })
                }
            }
            looked_at += rest.len() + 1;
            at += 1;
            if at + 1 == docs.len() {
                (next_word, at) = (next_word + docs.len() + 1, 0);
            }
        }
        total += sent;
        looked_at > 0
    };
    net.exchange(
        "pairs",
        source,
        |&pair| stripes.worker(pair),
        |rows: &[u64]| {
            if laid.is_ok() {
                laid = rows.iter().try_for_each(|&pair| pairs.push(stripes.bucket(pair), pair));
            }
        },
    )?;
    work.sent = total;
    net.agree("emit pairs", emitted.and(laid))?;
    Ok(pairs)
}
