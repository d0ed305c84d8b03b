//! Groups `FPrint-DocID` rows, which arrive in any order, into runs on a log, and prunes runs that
//! cannot produce a similar pair. These are steps 1 to 3 of [`crate::pairs::overlap_join`].

use std::collections::BTreeMap;

use super::allowance::Allowance;
use super::packed_rows::{RowPacker, each_row, first_row};
use crate::pairs::counts::OverlapCounts;
use crate::pairs::overlap_work::OverlapPages;
use crate::shuffle::packed::PackedRow;
use webtwin_base::error::Result;
use webtwin_base::ids::{FPrint, HostId, Number, Page};
use webtwin_core::overlap::chunk_counts::ChunkCounter;
use webtwin_core::overlap::filter::{ChunkVerdict, judge, judge_too_many};
use webtwin_core::overlap::prune::PageSet;
use webtwin_core::overlap::rows::{FPrintRow, KeyShares, sort_bucket};
use webtwin_core::overlap::runs::{RecordRuns, pairs_of, record};
use webtwin_engine::Net;
use webtwin_job::OverlapSettings;
use webtwin_spill::{MemoryPool, PARTITION_BYTES, Partitions, RunLog};

/// Step 1, one pass: partitions the rows of this pass by fingerprint into `2^bits` buckets at the
/// owners of the fingerprints.
pub(crate) fn partitioned<R: FPrintRow>(
    net: &mut Net<'_>,
    shares: KeyShares,
    bits: u32,
    pass: u64,
    mut source: impl FnMut(&mut dyn FnMut(FPrint, Page)) -> Result<bool>,
    allowance: &Allowance,
) -> Result<Partitions<R>> {
    let mut table = Partitions::new(1 << bits, &allowance.for_buckets());
    let mut put_row = |row: R| table.push(shares.bucket(row.key()), row);
    if net.processes() == 1 {
        net.exchange_from(
            "FPrint-DocID",
            |send: &mut dyn FnMut(R)| {
                source(&mut |fprint, doc| {
                    let row = R::new(fprint, doc);
                    if shares.pass(row.key()) == pass {
                        send(row);
                    }
                })
            },
            |row| shares.owner(row.key()),
            |rows| rows.iter().try_for_each(|row| put_row(*row)),
        )?;
        return Ok(table);
    }
    let mut packer = RowPacker::new(net.peers());
    net.exchange_from(
        "FPrint-DocID",
        |send: &mut dyn FnMut(PackedRow)| {
            let has_more = source(&mut |fprint, doc| {
                let row = R::new(fprint, doc);
                if shares.pass(row.key()) == pass {
                    packer.push(shares.owner(row.key()), &row, &mut *send);
                }
            })?;
            if !has_more {
                packer.finish(&mut *send);
            }
            Ok(has_more)
        },
        |packed| shares.owner(first_row::<R>(packed).key()),
        |packed| packed.iter().try_for_each(|packed| each_row(packed, &mut put_row)),
    )?;
    Ok(table)
}

/// Output of grouping.
pub(crate) struct RunBuilder {
    pub(crate) run_log: RunLog<u32>,
    /// Number of chunks of each page that another page has, too.
    pub(crate) shared: ChunkCounter<u8>,
    /// Number of counting chunks of each page, if these numbers are needed.
    pub(crate) chunks: Option<ChunkCounter<u32>>,
    pub(crate) counts: OverlapCounts,
}

/// Reduces the memory of the table so that `bytes` bytes are free for a bucket. Only bytes beyond
/// those that are planned for every bucket are taken from the table. `rows` is the number of rows
/// of the bucket.
fn reserve_memory_for<R: FPrintRow>(
    table: &mut Partitions<R>,
    rows: u64,
    bytes: u64,
    allowance: &Allowance,
    settings: &OverlapSettings,
) -> Result<()> {
    let excess_bytes = bytes.saturating_sub(PLANNED_BYTES);
    if excess_bytes == 0 || allowance.buckets == u64::MAX {
        return Ok(());
    }
    if excess_bytes > allowance.buckets {
        let limit = match settings.max_documents {
            0 => "overlap.max_documents = 0 does not limit the pages of a chunk".to_string(),
            limit => format!("overlap.max_documents = {limit} excludes such a chunk after its pages are counted"),
        };
        let purpose = format!(
            "a chunk on up to {rows} pages, or several frequent chunks in one bucket ({limit}; more words in a \
            chunk make it less frequent)"
        );
        return Err(allowance.too_little_for_buckets(purpose, excess_bytes));
    }
    table.hold_at_most(allowance.buckets - excess_bytes)
}

/// Bytes that are planned for every bucket.
const PLANNED_BYTES: u64 = 4 * PARTITION_BYTES;

/// Bytes for each page of a frequent chunk that is handled separately, with its host.
const CHUNK_PAGE_BYTES: u64 = 8;

/// Maximum number of keys of a bucket that are treated as possibly frequent.
const MAX_FREQUENT_KEYS: usize = 64;

/// One of the most frequent chunks of a bucket.
enum Frequent {
    /// Pages that contain the chunk.
    Pages(Vec<Page>),
    /// Number of pages with the chunk, which exceeds `max_documents`, and the number of them on
    /// each host if the boilerplate filter needs it.
    TooMany(u64, Vec<u32>),
}

/// Reads the rows of a bucket into `rows`. If the bucket does not fit in memory, its most frequent
/// chunks are separated and returned; the bucket is then read three times.
fn take<R: FPrintRow>(
    table: &mut Partitions<R>,
    bucket: usize,
    rows: &mut Vec<R>,
    buffer: &mut Vec<R>,
    pages: &OverlapPages<'_>,
    allowance: &Allowance,
    settings: &OverlapSettings,
) -> Result<Vec<Frequent>> {
    // The rows, twice; and their pages with hosts.
    let row_bytes = 2 * size_of::<R>() as u64 + CHUNK_PAGE_BYTES;
    let row_count = table.rows_of(bucket);
    if (row_count * row_bytes).saturating_sub(PLANNED_BYTES) <= allowance.buckets {
        reserve_memory_for(table, row_count, row_count * row_bytes, allowance, settings)?;
        table.take(bucket, rows)?;
        return Ok(Vec::new());
    }
    // A frequent chunk is kept as pages or counts, which take less memory than rows.
    let mut frequent = frequent_keys(table, bucket, buffer)?;
    let infrequent_rows: u64 = row_count - frequent.values().sum::<u64>();
    let are_too_many = |count: u64| settings.max_documents > 0 && count > u64::from(settings.max_documents);
    let hosts = match settings.template_pages {
        0 => 0,
        _ => pages.hosts.iter().max().map_or(0, |host| host.index() + 1),
    };
    let bytes = |&count: &u64| match are_too_many(count) {
        true => (hosts * size_of::<u32>()) as u64,
        false => count * CHUNK_PAGE_BYTES,
    };
    let bytes = infrequent_rows * row_bytes + frequent.values().map(bytes).sum::<u64>();
    reserve_memory_for(table, row_count, bytes, allowance, settings)?;
    let empty_frequent = |&count: &u64| match are_too_many(count) {
        true => Frequent::TooMany(0, vec![0; hosts]),
        false => Frequent::Pages(Vec::with_capacity(count as usize)),
    };
    let mut frequent_chunks: Vec<Frequent> = frequent.values().map(empty_frequent).collect();
    frequent.values_mut().zip(0..).for_each(|(place, at)| *place = at);
    rows.clear();
    table.each_piece(bucket, buffer, |piece| {
        for row in piece {
            match frequent.get(&row.key()).map(|&at| &mut frequent_chunks[at as usize]) {
                None => rows.push(*row),
                Some(Frequent::Pages(pages)) => pages.push(row.doc()),
                Some(Frequent::TooMany(count, pages_by_host)) => {
                    *count += 1;
                    if hosts > 0 {
                        pages_by_host[pages.hosts[row.doc()]] += 1;
                    }
                }
            }
        }
    })?;
    table.forget(bucket);
    Ok(frequent_chunks)
}

/// Returns the keys of a bucket that occur in more than one row in [`MAX_FREQUENT_KEYS`], and
/// perhaps some others, with their exact numbers of rows. A pass with the counters of Misra and
/// Gries (1982) finds candidates, and a second pass counts them.
fn frequent_keys<R: FPrintRow>(
    table: &Partitions<R>,
    bucket: usize,
    buffer: &mut Vec<R>,
) -> Result<BTreeMap<u64, u64>> {
    let mut counters: BTreeMap<u64, u64> = BTreeMap::new();
    table.each_piece(bucket, buffer, |piece| {
        for row in piece {
            if let Some(counter) = counters.get_mut(&row.key()) {
                *counter += 1;
            } else if counters.len() < MAX_FREQUENT_KEYS {
                counters.insert(row.key(), 1);
            } else {
                counters.retain(|_, counter| {
                    *counter -= 1;
                    *counter > 0
                });
            }
        }
    })?;
    counters.values_mut().for_each(|counter| *counter = 0);
    table.each_piece(bucket, buffer, |piece| {
        for row in piece {
            if let Some(counter) = counters.get_mut(&row.key()) {
                *counter += 1;
            }
        }
    })?;
    counters.retain(|_, counter| *counter > 1);
    Ok(counters)
}

impl RunBuilder {
    /// Adds the pages of a chunk, ascending. There must be at least two.
    fn add(
        &mut self,
        docs: &mut Vec<Page>,
        pages: &OverlapPages<'_>,
        settings: &OverlapSettings,
        scratch: &mut Vec<HostId>,
    ) -> Result<()> {
        let all_docs = docs.len();
        let verdict = judge(docs, pages.hosts, settings, scratch);
        if verdict == ChunkVerdict::Counts {
            pages.copies.leave_out(docs);
        }
        self.counts.add_chunk(verdict, all_docs, docs.len());
        if verdict != ChunkVerdict::Counts {
            return Ok(());
        }
        if let Some(chunks) = &mut self.chunks {
            chunks.count(docs);
        }
        if docs.len() > 1 {
            self.shared.count(docs);
            self.run_log.push(record(docs))?;
        }
        Ok(())
    }
}

/// Step 2, one pass: sorts the buckets, and writes the counting chunks as runs.
pub(crate) fn group<R: FPrintRow>(
    net: &Net<'_>,
    table: &mut Partitions<R>,
    shares: KeyShares,
    pages: &OverlapPages<'_>,
    settings: &OverlapSettings,
    allowance: &Allowance,
    into: &mut RunBuilder,
) -> Result<()> {
    let (mut rows, mut buffer, mut docs, mut scratch) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for bucket in 0..table.count() {
        net.check()?;
        for frequent in take(table, bucket, &mut rows, &mut buffer, pages, allowance, settings)? {
            match frequent {
                Frequent::Pages(mut docs) => {
                    docs.sort_unstable();
                    into.add(&mut docs, pages, settings, &mut scratch)?;
                }
                Frequent::TooMany(count, pages_by_host) => {
                    into.counts.add_chunk(judge_too_many(&pages_by_host, settings), count as usize, 0);
                }
            }
        }
        sort_bucket(&mut rows, &mut buffer, shares);
        for run in rows.chunk_by(|x, y| x.key() == y.key()) {
            // A chunk on a single page is neither boilerplate nor frequent, and produces no pair.
            // Most chunks are like this.
            if let [row] = run {
                (into.counts.tuples, into.counts.chunks) = (into.counts.tuples + 1, into.counts.chunks + 1);
                if let Some(chunks) = &mut into.chunks
                    && !pages.copies.contains(row.doc())
                {
                    chunks.count(&[row.doc()]);
                }
                continue;
            }
            docs.clear();
            docs.extend(run.iter().map(FPrintRow::doc));
            into.add(&mut docs, pages, settings, &mut scratch)?;
        }
    }
    Ok(())
}

/// Pruned run log, with the number of its rows and of the pairs that they produce.
pub(crate) struct PrunedRuns {
    pub(crate) run_log: RunLog<u32>,
    pub(crate) rows: u64,
    pub(crate) pairs: u64,
    /// Number of pages of the most frequent chunk.
    pub(crate) longest: u64,
}

/// Step 3, one round: copies the runs of a log without the pages that are not in the core, and
/// counts `shared` chunks again, from 0.
pub(crate) fn pruned(
    from: &mut RunLog<u32>,
    core: &PageSet,
    shared: &mut ChunkCounter<u8>,
    pool: &MemoryPool,
) -> Result<PrunedRuns> {
    let mut into = PrunedRuns { run_log: RunLog::new(pool), rows: 0, pairs: 0, longest: 0 };
    let (mut words, mut docs) = (Vec::new(), Vec::new());
    for block in 0..from.blocks() {
        from.read(block, &mut words)?;
        from.forget(block);
        for run in RecordRuns(&words) {
            docs.clear();
            docs.extend(run.iter().filter(|&&doc| core.contains(doc)));
            if docs.len() > 1 {
                shared.count(&docs);
                into.rows += docs.len() as u64;
                into.pairs += pairs_of(&docs);
                into.longest = into.longest.max(docs.len() as u64);
                into.run_log.push(record(&docs))?;
            }
        }
    }
    shared.flush();
    into.run_log.finish()?;
    Ok(into)
}
