//! `FPrint-DocID` rows in any order become runs on a tape, and runs that cannot make a similar pair are pruned: steps 1 to 3 of
//! [`crate::dataflow::pairs::overlap_join`].

use crate::dataflow::pairs::counts::OverlapCounts;
use crate::dataflow::pairs::overlap_join::Pages;
use crate::dataflow::shuffle::memory_budget::{BUCKET_BYTES, WorkerBudget, bucket_bits};
use crate::engine::Net;
use crate::error::Result;
use crate::ids::{FPrint, Page};
use crate::job::Overlap;
use crate::overlap::filter::{Verdict, judge};
use crate::overlap::prune::{PageSet, SharedChunks};
use crate::overlap::rows::{Row, Shares, sort_bucket};
use crate::overlap::runs::{Runs, pairs_of, record};
use crate::storage::spill::{Buckets, Disk, RunLog};

/// Step 1: rows with the owners of their fingerprints, in buckets.
pub(crate) fn laid_down<R: Row>(
    net: &mut Net<'_>,
    row_bytes: u64,
    mut source: impl FnMut(&mut dyn FnMut(FPrint, Page)) -> Result<bool>,
    allowance: &WorkerBudget,
    disk: &Disk,
) -> Result<Buckets<R>> {
    let bits = bucket_bits(row_bytes);
    let shares = Shares::new(net.peers(), bits);
    let mut table = Buckets::new(1 << bits, allowance.buckets, disk);
    net.exchange_from(
        "FPrint-DocID",
        |send: &mut dyn FnMut(R)| source(&mut |fprint, doc| send(R::new(fprint, doc))),
        |row| shares.owner(row.key()),
        |rows| rows.iter().try_for_each(|row| table.push(shares.bucket(row.key()), *row)),
    )?;
    Ok(table)
}

/// What grouping writes.
pub(crate) struct RunBuilder {
    pub(crate) tape: RunLog<u32>,
    pub(crate) shared: SharedChunks,
    /// Chunks that count of each page, where they matter.
    pub(crate) chunks: Vec<u32>,
    pub(crate) counts: OverlapCounts,
}

/// Sees to it that the memory suffices for a bucket, which is larger than others where one chunk is on very many pages.
fn make_room_for<R: Row>(
    table: &mut Buckets<R>,
    bucket: usize,
    allowance: &WorkerBudget,
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
        let what = format!(
            "a chunk on up to {rows} pages, or few of that kind that fall together ({limit}; more words a chunk make it rarer)"
        );
        return Err(allowance.too_little_for_buckets(what, beyond));
    }
    table.hold_at_most(allowance.buckets - beyond)
}

/// Step 2: sorts the buckets and writes the chunks that count as runs.
pub(crate) fn group<R: Row>(
    net: &Net<'_>,
    table: &mut Buckets<R>,
    shares: Shares,
    pages: &Pages<'_>,
    settings: &Overlap,
    allowance: &WorkerBudget,
    into: &mut RunBuilder,
) -> Result<()> {
    let (mut rows, mut room, mut docs, mut scratch) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let counts = &mut into.counts;
    for bucket in 0..table.count() {
        net.check()?;
        make_room_for(table, bucket, allowance, settings)?;
        table.take(bucket, &mut rows)?;
        sort_bucket(&mut rows, &mut room, shares);
        for run in rows.chunk_by(|x, y| x.key() == y.key()) {
            // A chunk on one page is neither furniture nor frequent, and makes no pair. Most are.
            if let [row] = run {
                (counts.tuples, counts.chunks) = (counts.tuples + 1, counts.chunks + 1);
                if !into.chunks.is_empty() && !pages.copies.contains(row.doc()) {
                    into.chunks[row.doc()] += 1;
                }
                continue;
            }
            docs.clear();
            docs.extend(run.iter().map(Row::doc));
            let verdict = judge(&docs, pages.hosts, settings, &mut scratch);
            if verdict == Verdict::Counts {
                pages.copies.leave_out(&mut docs);
            }
            counts.add_chunk(verdict, run.len(), docs.len());
            if verdict != Verdict::Counts {
                continue;
            }
            if !into.chunks.is_empty() {
                docs.iter().for_each(|&doc| into.chunks[doc] += 1);
            }
            if docs.len() > 1 {
                into.shared.count(&docs);
                into.tape.push(record(&docs))?;
            }
        }
    }
    into.tape.finish()
}

/// A tape with its rows and the pairs they make.
pub(crate) struct Pruned {
    pub(crate) tape: RunLog<u32>,
    pub(crate) rows: u64,
    pub(crate) pairs: u64,
    /// Pages of the most frequent chunk.
    pub(crate) longest: u64,
}

/// Step 3, one round: the runs of a tape without the pages that are not in the core; `shared` is counted anew.
pub(crate) fn pruned(
    from: &mut RunLog<u32>,
    core: &PageSet,
    shared: &mut SharedChunks,
    allowed_bytes: u64,
    disk: &Disk,
) -> Result<Pruned> {
    shared.clear();
    let mut into = Pruned { tape: RunLog::new(allowed_bytes, disk), rows: 0, pairs: 0, longest: 0 };
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
