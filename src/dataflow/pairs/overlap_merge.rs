//! Updates the Overlap table of a crawl in which most pages are unchanged: takes the similar pairs
//! of the previous run, and replaces those that changed pages affect.
//!
//! A page has *changed* if it is new or gone, if its rows differ, or if it has become or ceased to
//! be an exact copy. Only chunks on a changed page, in its previous or in its current form, can be
//! judged differently than before ([`judge`]). A page is *recounted* if it has changed, or if a
//! chunk on it is judged differently. Every other page has the same counting chunks as before, and
//! two such pages share the same chunks as before, so their pairs are taken over. Pairs with a
//! recounted page are counted from all rows of its chunks.
//!
//! 1. Owners compare their pages with those of the previous run, by digests of rows.
//! 2. The previous rows of changed pages are found by these digests, among the local pages or in
//!    checkpoints that no work item restores.
//! 3. Rows of chunks on changed pages, in their previous and current form, are sent to the owners
//!    of their fingerprints, which judge each chunk twice. If the unchanged
//!    pages of one host alone make a chunk boilerplate, before and now, only the rows of changed
//!    pages are sent.
//! 4. In the same way, rows of the other chunks are sent for pages with a chunk that is judged
//!    differently.
//! 5. Pairs with a recounted page are sent to the owners of their smaller page, and so are the
//!    pairs that are taken over.
//!
//! The result is always that of [`super::overlap_join`]. If the update would not be cheaper, there
//! is no result.

use std::collections::{BTreeMap, BTreeSet};

use crate::pairs::candidates::PageStripes;
use crate::pairs::changes::{ChangedPage, PageChanges};
use crate::pairs::counts::OverlapCounts;
use crate::pairs::overlap_before::{self, COPY, PageDigests, PriorPage, PriorRun, digest};
use crate::pairs::overlap_join::{AllPairs, with_chunks};
use crate::pairs::overlap_work::OverlapWork;
use crate::pairs::postings::{AskedChunks, postings};
use crate::reading::captures::{Crawl, host_key};
use crate::reading::worker_pages::WorkerPages;
use crate::shuffle::page_counts::sum;
use webtwin_base::error::Result;
use webtwin_base::ids::{FPrint, HostId, Number, Page};
use webtwin_core::overlap::count_pairs::{self, count, pair_key, smaller};
use webtwin_core::overlap::filter::{ChunkVerdict, judge};
use webtwin_core::overlap::prune::PageSet;
use webtwin_core::overlap::rows::{FPrintRow, Row64};
use webtwin_core::overlap::runs::{RecordRuns, record};
use webtwin_core::overlap::{SimilarPair, is_pairwise_similar};
use webtwin_engine::{Net, Owners};
use webtwin_job::{Job, OverlapSettings};

/// Input of the update.
pub(crate) struct MergeInput<'a> {
    pub prior_run: &'a PriorRun<'a>,
    pub job: &'a Job,
    pub local_pages: &'a WorkerPages,
    pub crawl: &'a Crawl,
    /// Pages that are exact copies of other pages.
    pub is_copy: &'a PageSet,
    pub digests: &'a PageDigests,
}

/// Outcome of the update, the same on all workers.
pub(crate) enum MergeOutcome {
    /// The pairs, and the number of pages that were recounted.
    Merged(Box<AllPairs>, u64),
    /// Reason for which there is no result; `None` if there are no results of a previous run.
    Unavailable(Option<&'static str>),
}

/// Finds the pairs that [`super::overlap_join::similar_pairs`] would find, or reports why the
/// update is not possible. `emit` receives the pairs that this worker owns, ascending. It is not
/// called before the outcome is certain.
///
/// # Errors
/// Returns any error of the disk, on which chunks may be, and an error if the run has ended.
///
/// # Memory
/// Takes 60 bytes for each page of the previous run in each process, and 24 for each row of the
/// chunks that are inspected, of which there are at most as many as there are rows.
pub(crate) fn similar_pairs(
    net: &mut Net<'_>,
    input: &MergeInput<'_>,
    emit: impl FnMut(SimilarPair),
) -> Result<MergeOutcome> {
    let &MergeInput { prior_run, job, local_pages, crawl, is_copy, .. } = input;
    let settings = &job.overlap;
    let is_there = prior_run.shares.count(&overlap_before::step(job)) > 0;
    let own_share = if is_there { overlap_before::read(net, prior_run.shares, job) } else { None };
    let message = (is_there, own_share.as_ref().map(|share| share.counts.clone()));
    let message = net.all_gather("previous pairs and counts", message)?;
    let worker_counts: Option<Vec<&OverlapCounts>> = message.iter().map(|worker| worker.1.as_ref()).collect();
    let (Some(share), Some(previous_counts)) = (own_share, worker_counts) else {
        let is_damaged = message.iter().all(|worker| worker.0);
        return Ok(MergeOutcome::Unavailable(is_damaged.then_some("the pairs saved in the state are damaged")));
    };
    let counts_before = previous_counts.into_iter().fold(OverlapCounts::default(), |sum, counts| sum + counts);

    let (standing, own_changes) = compare(net, input, share.pages)?;
    let pages = crawl.directory.len();
    let changed_pages = net.broadcast("changed pages", own_changes)?;
    // Page numbers are doubled below, to distinguish previous rows from current ones, and must fit
    // in 32 bits.
    if prior_run.is_beyond(changed_pages.len() as u64, pages as u64)
        || 2 * (pages + changed_pages.len()) > u32::MAX as usize
    {
        return Ok(MergeOutcome::Unavailable(Some("too many pages have changed")));
    }
    let hosts = hosts_of_gone(net, crawl, &changed_pages)?;
    let changes = net.once_per_process(|| PageChanges::new(&changed_pages, &crawl.directory.hosts, is_copy, &hosts))?;
    let slots = local_pages.kept().filter(|&(_, page)| changes.is_changed.contains(page)).map(|row| row.0);
    let rows_now = slots.map(|slot| local_pages.fprints.size(slot) as u64).sum();
    let [rows_now] = net.all_sum("rows of changed pages", [rows_now])?;
    // The previous rows are estimated to be as many for each page as the current ones, because
    // finding them first would cost more than the estimate saves.
    let expected = rows_now + rows_now * changes.page_rows.len() as u64 / changed_pages.len().max(1) as u64;
    if prior_run.is_beyond(expected, counts_before.tuples) {
        return Ok(MergeOutcome::Unavailable(Some("too many chunks of pages have changed")));
    }
    drop(changed_pages);
    let Some(rows_before) = rows_before(net, input, &changes.page_rows)? else {
        return Ok(MergeOutcome::Unavailable(Some("the previous capture of a changed page is not available")));
    };

    let mut fprints = local_pages.fprints.reader();
    let mut touched: Vec<FPrint> = Vec::new();
    for (slot, _) in local_pages.kept().filter(|&(_, page)| changes.is_changed.contains(page)) {
        touched.extend(fprints.get(slot)?);
    }
    touched.extend(rows_before.values().flatten());
    let touched = net.broadcast("chunks on changed pages", touched)?;
    if prior_run.is_beyond(touched.len() as u64, counts_before.tuples) {
        return Ok(MergeOutcome::Unavailable(Some("too many chunks of pages have changed")));
    }
    let changed_chunks = AskedChunks::new(net, local_pages, &changes, settings, &touched)?;
    drop(touched);
    let is_asked = |page, fprint| changes.is_changed.contains(page) || changed_chunks.contains(fprint);
    let first = postings(net, local_pages, is_asked, &changes, &rows_before)?;
    drop(rows_before);
    let (added, removed, mut recounted) = judge_twice(&first, &changes, is_copy, settings, &changed_chunks);
    recounted.sort_unstable();
    recounted.dedup();
    let recounted = net.broadcast("pages that count other chunks", recounted)?;
    let is_recounted = net.once_per_process(|| {
        let mut is_recounted = PageSet::new(pages, |page| changes.is_changed.contains(page) && !is_copy.contains(page));
        recounted.iter().for_each(|&page| is_recounted.insert(page));
        is_recounted
    })?;
    // Further limits follow as soon as a number is known, so that an update that does not pay is
    // abandoned early.
    if prior_run.is_beyond(is_recounted.count(), pages as u64) {
        return Ok(MergeOutcome::Unavailable(Some("the counted chunks of too many pages have changed")));
    }

    let (mut fprints, mut extra_chunks) = (local_pages.fprints.reader(), Vec::new());
    for (slot, _) in
        local_pages.kept().filter(|&(_, page)| is_recounted.contains(page) && !changes.is_changed.contains(page))
    {
        extra_chunks.extend(fprints.get(slot)?.iter().filter(|&&fprint| !changed_chunks.covers(fprint)));
    }
    let shared_chunks = net.broadcast("other chunks on these", extra_chunks)?;
    let asked_chunks = AskedChunks::new(net, local_pages, &changes, settings, &shared_chunks)?;
    let is_asked = |_, fprint| asked_chunks.contains(fprint) && !changed_chunks.covers(fprint);
    let second = postings(net, local_pages, is_asked, &changes, &BTreeMap::new())?;

    let mut chunks = vec![0; if with_chunks(settings) { pages } else { 0 }];
    if !chunks.is_empty() {
        let unchanged = standing.iter().filter(|row| row.chunks != COPY && !is_recounted.contains(row.page));
        unchanged.filter(|row| !is_copy.contains(row.page)).for_each(|row| chunks[row.page] = row.chunks);
    }
    let runs = [first, second]
        .map(|rows| runs_of(&rows, &changes, is_copy, &is_recounted, settings, &changed_chunks, &mut chunks));
    let own_pairs: u64 =
        runs.iter().flat_map(|runs| RecordRuns(runs)).map(|docs| pairs_with(docs, &is_recounted).count() as u64).sum();
    let [new_pairs] = net.all_sum("pairs to count again", [own_pairs])?;
    if prior_run.is_beyond(new_pairs, counts_before.emitted) {
        return Ok(MergeOutcome::Unavailable(Some("too many pairs have changed")));
    }
    let chunks = sum(net, "chunks a page", &chunks)?;
    let stripes = PageStripes::even(pages, net.peers());
    let stay = |page: Page| !changes.is_changed.contains(page) && !is_recounted.contains(page);
    let mut pairs = taken_over(net, standing.iter().filter(|row| stay(row.page)), share.pairs, &stripes)?;
    let keys = runs.iter().flat_map(|runs| RecordRuns(runs)).flat_map(|docs| pairs_with(docs, &is_recounted));
    let keys = net.exchange("pairs counted again", keys, |&key| stripes.owner(smaller(key)))?;
    recount(&keys, pages, settings, &chunks, &mut pairs);
    pairs.sort_unstable();

    let sums = net.all_gather("chunks judged twice", (added, removed))?;
    let mut counts = OverlapCounts::default();
    if net.index() == 0 {
        counts = OverlapCounts { similar: 0, guarded: 0, ..counts_before };
        // Added before subtracted, because one worker may remove what another worker adds.
        counts = sums.iter().fold(counts, |sum, (come, _)| sum + come);
        counts = sums.iter().fold(counts, |sum, (_, gone)| sum - gone);
    }
    counts.similar = pairs.len() as u64;
    pairs.into_iter().for_each(emit);
    let reason = format!("pairs of {} of {pages} pages counted again", is_recounted.count());
    let work = OverlapWork { counts, reason, ..OverlapWork::default() };
    Ok(MergeOutcome::Merged(Box::new(AllPairs::new(work, chunks, stripes)), is_recounted.count()))
}

/// Page that both runs have.
#[derive(Clone, Copy)]
struct Standing {
    page: Page,
    number_before: Page,
    /// Number of chunks that counted in the previous run, or [`COPY`].
    chunks: u32,
}

/// Compares the pages of an owner with those of the previous run. Returns the pages that both runs
/// have, and the pages that have changed.
fn compare(
    net: &mut Net<'_>,
    input: &MergeInput<'_>,
    pages: Vec<PriorPage>,
) -> Result<(Vec<Standing>, Vec<ChangedPage>)> {
    let &MergeInput { crawl, is_copy, digests, .. } = input;
    let mut previous_pages = net.exchange("pages before", pages, |page| crawl.directory.owner_of(page.doc_id))?;
    previous_pages.sort_unstable();
    let mut previous = previous_pages.into_iter().peekable();
    let (mut standing, mut changed_pages) = (Vec::new(), Vec::new());
    let changed_page = |prior_page: PriorPage, page| ChangedPage {
        rows: prior_page.rows,
        host: prior_page.host,
        page,
        was: 1 + u32::from(prior_page.chunks == COPY),
    };
    let mut rows = digests.of_pages.iter();
    crawl.pages.for_each(|row| {
        let (page, rows) = (row.page, *rows.next().expect("a digest for each page"));
        while let Some(removed_page) = previous.next_if(|was| was.doc_id < row.doc_id) {
            changed_pages.push(changed_page(removed_page, Page::NONE));
        }
        let new = ChangedPage { rows: 0, host: 0, page, was: 0 };
        let Some(prior_page) = previous.next_if(|was| was.doc_id == row.doc_id) else { return changed_pages.push(new) };
        if prior_page.host != host_key(row.url()) {
            // Another URL with the same doc id has replaced this one.
            return changed_pages.extend([changed_page(prior_page, Page::NONE), new]);
        }
        if prior_page.rows != rows || (prior_page.chunks == COPY) != is_copy.contains(page) {
            changed_pages.push(changed_page(prior_page, page));
        }
        standing.push(Standing { page, number_before: prior_page.number, chunks: prior_page.chunks });
    })?;
    changed_pages.extend(previous.map(|gone| changed_page(gone, Page::NONE)));
    Ok((standing, changed_pages))
}

/// Returns the hosts of this run that also had pages which are gone, by the hashes of their names.
fn hosts_of_gone(net: &mut Net<'_>, crawl: &Crawl, changed_pages: &[ChangedPage]) -> Result<BTreeMap<u64, HostId>> {
    let removed_pages = changed_pages.iter().filter(|row| row.page == Page::NONE);
    let host_keys: BTreeSet<u64> = removed_pages.map(|row| row.host).collect();
    if host_keys.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut known_hosts: BTreeSet<(u64, HostId)> = BTreeSet::new();
    crawl.pages.for_each(|row| {
        let key = host_key(row.url());
        known_hosts.extend(host_keys.contains(&key).then(|| (key, crawl.directory.hosts[row.page])));
    })?;
    let host_rows = known_hosts.into_iter().map(|(key, host)| [key, u64::from(host)]).collect();
    let shared_hosts = net.broadcast("hosts of pages that have gone", host_rows)?;
    Ok(shared_hosts.iter().map(|&[key, host]| (key, HostId(host as u32))).collect())
}

/// Returns the previous rows of changed pages by digest, each list at one worker. Returns `None` if
/// some rows cannot be found.
fn rows_before(
    net: &mut Net<'_>,
    input: &MergeInput<'_>,
    page_rows: &[(u64, Page)],
) -> Result<Option<BTreeMap<u64, Vec<FPrint>>>> {
    let is_wanted = |rows: u64| page_rows.binary_search_by_key(&rows, |row| row.0).is_ok();
    let (mut fprints, mut own_fprints) = (input.local_pages.fprints.reader(), BTreeMap::new());
    for (slot, &rows) in input.digests.of_slots.iter().enumerate() {
        if is_wanted(rows) && !own_fprints.contains_key(&rows) {
            own_fprints.insert(rows, fprints.get(slot)?.to_vec());
        }
    }
    if !page_rows.is_empty() {
        (input.prior_run.each_page)(&mut |fprints| {
            let rows = digest(fprints);
            if is_wanted(rows) {
                own_fprints.entry(rows).or_insert_with(|| fprints.to_vec());
            }
        });
    }
    let own_index = net.index() as u64;
    let holders =
        net.broadcast("rows before that are found", own_fprints.keys().map(|&rows| [rows, own_index]).collect())?;
    let giver = net.once_per_process(|| {
        let mut giver = BTreeMap::new();
        for &[rows, worker] in holders.iter() {
            giver.entry(rows).or_insert(worker);
        }
        giver
    })?;
    if page_rows.iter().any(|(rows, _)| !giver.contains_key(rows)) {
        return Ok(None);
    }
    own_fprints.retain(|rows, _| giver[rows] == own_index);
    Ok(Some(own_fprints))
}

/// Judges the chunks on changed pages twice. Returns the current counts of these chunks, their
/// previous counts, and the unchanged pages on which a chunk is judged differently. Of boilerplate,
/// there are only the rows of changed pages.
fn judge_twice(
    rows: &[Row64],
    changes: &PageChanges,
    is_copy: &PageSet,
    settings: &OverlapSettings,
    asked_chunks: &AskedChunks,
) -> (OverlapCounts, OverlapCounts, Vec<Page>) {
    let (mut added, mut removed, mut recounted) = (OverlapCounts::default(), OverlapCounts::default(), Vec::new());
    let (mut boilerplate_now, mut boilerplate_before) = (0, 0);
    let (mut docs, mut scratch) = (Vec::new(), Vec::new());
    let mut verdict = |docs: &mut Vec<Page>, copies: &PageSet, counts: &mut OverlapCounts| {
        let (pages, verdict) = (docs.len(), judge(docs, &changes.hosts, settings, &mut scratch));
        copies.leave_out(docs);
        if pages > 0 {
            counts.add_chunk(verdict, pages, docs.len());
        }
        verdict == ChunkVerdict::Counts
    };
    for chunk in rows.chunk_by(|x, y| x.key() == y.key()) {
        if asked_chunks.is_boilerplate(&chunk[0]) {
            let rows_now = chunk.iter().filter(|row| changes.is_now(row.doc())).count() as u64;
            boilerplate_now += rows_now;
            boilerplate_before += chunk.len() as u64 - rows_now;
            continue;
        }
        docs.clear();
        docs.extend(chunk.iter().filter_map(|row| changes.page_before(row.doc())));
        let did_count = verdict(&mut docs, &changes.was_copy, &mut removed);
        docs.clear();
        docs.extend(chunk.iter().map(FPrintRow::doc).filter(|&page| changes.is_now(page)));
        let counts = verdict(&mut docs, is_copy, &mut added);
        if did_count != counts {
            let pages = chunk.iter().map(FPrintRow::doc).filter(|&page| changes.is_now(page));
            recounted.extend(pages.filter(|&page| !changes.is_changed.contains(page) && !is_copy.contains(page)));
        }
    }
    added.add_template_rows(boilerplate_now);
    removed.add_template_rows(boilerplate_before);
    (added, removed, recounted)
}

/// Returns the counting chunks on recounted pages as runs of pages without exact copies. Counts
/// these chunks for the recounted pages in `chunks`.
fn runs_of(
    rows: &[Row64],
    changes: &PageChanges,
    is_copy: &PageSet,
    is_recounted: &PageSet,
    settings: &OverlapSettings,
    asked_chunks: &AskedChunks,
    chunks: &mut [u32],
) -> Vec<u32> {
    let (mut runs, mut docs, mut scratch) = (Vec::new(), Vec::new(), Vec::new());
    for chunk in rows.chunk_by(|x, y| x.key() == y.key()).filter(|chunk| !asked_chunks.is_boilerplate(&chunk[0])) {
        docs.clear();
        docs.extend(chunk.iter().map(FPrintRow::doc).filter(|&page| changes.is_now(page)));
        if judge(&docs, &changes.hosts, settings, &mut scratch) != ChunkVerdict::Counts {
            continue;
        }
        is_copy.leave_out(&mut docs);
        let mut has_recounted = false;
        for &page in docs.iter().filter(|&&page| is_recounted.contains(page)) {
            has_recounted = true;
            if !chunks.is_empty() {
                chunks[page] += 1;
            }
        }
        if has_recounted && docs.len() > 1 {
            runs.extend(record(&docs));
        }
    }
    runs
}

/// Returns the pairs of a run that have a recounted page, each once.
fn pairs_with<'a>(docs: &'a [Page], is_recounted: &'a PageSet) -> impl Iterator<Item = u64> + 'a {
    let recounted = docs.iter().filter(|&&page| is_recounted.contains(page));
    recounted.flat_map(move |&page| {
        let partners = docs.iter().filter(move |&&other| other > page || other < page && !is_recounted.contains(other));
        partners.map(move |&other| pair_key(page.min(other), page.max(other)))
    })
}

/// Sends those pairs of the previous run whose pages are both in `stay` to the owners of their
/// smaller pages, with the current page numbers.
fn taken_over<'a>(
    net: &mut Net<'_>,
    stay: impl Iterator<Item = &'a Standing>,
    pairs: Vec<SimilarPair>,
    stripes: &PageStripes,
) -> Result<Vec<SimilarPair>> {
    let numbers =
        net.broadcast("numbers of pages before", stay.map(|row| [row.number_before.0, row.page.0]).collect())?;
    let current_pages = net.once_per_process(|| {
        let mut pages_by_number = vec![Page::NONE; numbers.iter().map(|row| row[0] as usize + 1).max().unwrap_or(0)];
        numbers.iter().for_each(|&[before, page]| pages_by_number[before as usize] = Page(page));
        pages_by_number
    })?;
    let number = |before: Page| current_pages.get(before.index()).copied().filter(|&page| page != Page::NONE);
    let stay = pairs.into_iter().filter_map(|pair| {
        let (a, b) = (number(pair.a)?, number(pair.b)?);
        Some(SimilarPair { a: a.min(b), b: a.max(b), ..pair })
    });
    net.exchange("pairs taken over", stay, |pair| stripes.owner(pair.a))
}

/// Appends the similar pairs among the recounted pairs.
fn recount(keys: &[u64], pages: usize, settings: &OverlapSettings, chunks: &[u32], pairs: &mut Vec<SimilarPair>) {
    let mut scratch = count_pairs::CountScratch::default();
    count(keys, Page(0), pages, settings.min_shared, &mut scratch, |a, b, value| {
        if chunks.is_empty() || is_pairwise_similar(value, chunks[a], chunks[b], settings) {
            pairs.push(SimilarPair { a, b, value });
        }
    });
}
