//! Second pass over the pages of both results: classifies the change of each page and of the avoid
//! list.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Mutex;

use super::avoid::{self, AvoidChange, AvoidColumns};
use super::chronicle::VERSIONS;
use super::gather::{Notes, PageColumns, PageNote};
use super::merge::{MergeSide, merge};
use super::moves::{PageMove, PageMoves};
use super::pages::{ChunkOverlap, PageChange, what};
use super::past_texts::{self, PageMemory};
use super::refused::SeenUrls;
use super::sites::{SitePages, host_of, site_id, split};
use super::standing::AvoidListInForce;
use super::stood::{self, AVOID_STANDING};
use super::texts::ChangedTexts;
use super::two_crawls::ComparableResults;
use super::writer::{DeferredWork, ResultWriter};
use webtwin_base::by_hash::HashKeyMap;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::DocId;
use webtwin_base::threads;
use webtwin_job::Recrawl;
use webtwin_storage::table::{Table, TableColumn};

/// Value of `why_gone` for a page that the crawler did not fetch because it was on the old list.
const REASON_AVOIDED: &str = "avoided";

/// Row of `pages_changed`. In pairs of values the old crawl comes first.
#[derive(Debug, Clone, PartialEq, Default)]
struct Row<'t> {
    doc_id: DocId,
    url: &'t str,
    what: Option<PageChange>,
    why_gone: Cow<'static, str>,
    /// Counterpart in the other crawl of a page that moved.
    counterpart: Option<(DocId, String)>,
    has_same_text: bool,
    bits: Option<u32>,
    overlap: Option<ChunkOverlap>,
    chunks: [u32; 2],
    text_bytes: [u64; 2],
    times: [i64; 2],
    is_avoided: [bool; 2],
    /// Number of crawls since the page last had the text that it has again.
    crawls_since: Option<u32>,
}

/// Counts of pages and rows by their change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ChangeCounts {
    /// Number of pages by change, in the order of [`PageChange::ALL`].
    pub what: [u64; PageChange::ALL.len()],
    /// Number of gone pages by `why_gone`.
    pub why_gone: BTreeMap<String, u64>,
    /// Number of rows of `avoid_changed` by `what`.
    pub avoid: BTreeMap<&'static str, u64>,
    /// Number of pages that moved with an equal text.
    pub moved_same_text: u64,
}

impl ChangeCounts {
    fn add(&mut self, other: ChangeCounts) {
        self.what.iter_mut().zip(other.what).for_each(|(all, more)| *all += more);
        other.why_gone.into_iter().for_each(|(why, n)| *self.why_gone.entry(why).or_default() += n);
        other.avoid.into_iter().for_each(|(what, n)| *self.avoid.entry(what).or_default() += n);
        self.moved_same_text += other.moved_same_text;
    }

    fn add_gone(&mut self, why: &str) {
        match self.why_gone.get_mut(why) {
            Some(count) => *count += 1,
            None => _ = self.why_gone.insert(why.into(), 1),
        }
    }

    /// Returns the number of pages with a change.
    pub(super) fn count(&self, what: PageChange) -> u64 {
        self.what[what as usize]
    }

    /// Returns the number of pages with the changes for which `is_of` is true.
    pub(super) fn pages(&self, is_of: impl Fn(PageChange) -> bool) -> u64 {
        PageChange::ALL.into_iter().filter(|&what| is_of(what)).map(|what| self.count(what)).sum()
    }
}

/// Classifies all pages and writes `pages_changed`. If avoid lists are compared it also writes
/// `avoid_changed` and [`AVOID_STANDING`], and if past texts are known `texts_before`. Returns the
/// counts in total and by site; `numbers` maps each site to its index.
///
/// # Errors
/// Returns [`Error::Invariant`] if pages are lost or counted twice, and any error of the tables and
/// of the disk.
pub(super) fn changes(
    results: &ComparableResults,
    page_moves: &PageMoves,
    notes: &Notes,
    (seen_urls, numbers): (&SeenUrls, &HashKeyMap<u32>),
    texts: Option<&ChangedTexts>,
    avoid_list: Option<&AvoidListInForce>,
    writer: &mut ResultWriter,
) -> Result<(ChangeCounts, Vec<SitePages>)> {
    let judge = Judge { results, page_moves, notes, seen_urls, numbers, texts, avoid_list };
    let ordered_writer = Mutex::new(InOrder { next: 0, waiting_tables: BTreeMap::new(), writer });
    let in_order = || ordered_writer.lock().expect("nothing panics while it holds this");
    // Threads finish ranges out of order. Encoding runs outside of the lock, so that a thread
    // blocks others only while it queues tables.
    let new_share = || (ChangeCounts::default(), vec![SitePages::default(); numbers.len()]);
    let shares = threads::for_each(results.workers, results.ranges.count(), new_share, |(counts, sites), range| {
        let judged_range = judge.range(range, sites)?;
        counts.add(judged_range.counts);
        let mut work = in_order().add(range, judged_range.tables)?;
        while let Some(item) = work.pop() {
            let result = item.work()?;
            work.extend(in_order().writer.end(result)?);
        }
        Ok(())
    })?;
    let (mut counts, mut sites) = new_share();
    for (counts_of_share, share_sites) in shares {
        counts.add(counts_of_share);
        for (totals, site_counts) in sites.iter_mut().zip(share_sites) {
            totals.iter_mut().zip(site_counts).for_each(|(all, more)| *all += more);
        }
    }
    // Each page must be classified exactly once, and a move has two ends: cheap checks against a
    // wrong merge.
    for (side, pages) in [counts.pages(PageChange::is_old), counts.pages(PageChange::is_new)].into_iter().enumerate() {
        let n_rows = results.pages[side].rows();
        if pages != n_rows {
            let crawl = ["old", "new"][side];
            return Err(Error::Invariant(format!("{pages} of {n_rows} pages of the {crawl} crawl have an outcome")));
        }
    }
    if counts.count(PageChange::MovedFrom) != counts.count(PageChange::MovedTo) {
        let [moved_from, moved_to] = [PageChange::MovedFrom, PageChange::MovedTo].map(|what| counts.count(what));
        return Err(Error::Invariant(format!("{moved_from} pages moved away, but {moved_to} arrived")));
    }
    Ok((counts, sites))
}

/// Orders the output of ranges: a range is written once all ranges before it are written.
struct InOrder<'w> {
    next: usize,
    waiting_tables: BTreeMap<usize, Vec<(&'static str, Table)>>,
    writer: &'w mut ResultWriter,
}

impl InOrder<'_> {
    /// Adds the tables of a range. Returns the work to be done for those that are next in order.
    fn add(&mut self, range: usize, tables: Vec<(&'static str, Table)>) -> Result<Vec<DeferredWork>> {
        self.waiting_tables.insert(range, tables);
        let mut work = Vec::new();
        while let Some(tables) = self.waiting_tables.remove(&self.next) {
            for (name, table) in tables {
                work.extend(self.writer.begin(name, table)?);
            }
            self.next += 1;
        }
        Ok(work)
    }
}

/// Inputs for the classification of pages.
struct Judge<'j> {
    results: &'j ComparableResults,
    page_moves: &'j PageMoves,
    notes: &'j Notes,
    seen_urls: &'j SeenUrls,
    /// Index of each site, by site id.
    numbers: &'j HashKeyMap<u32>,
    texts: Option<&'j ChangedTexts>,
    avoid_list: Option<&'j AvoidListInForce>,
}

/// Output of one range.
struct Judged {
    tables: Vec<(&'static str, Table)>,
    counts: ChangeCounts,
}

impl Judge<'_> {
    fn range(&self, range: usize, sites: &mut [SitePages]) -> Result<Judged> {
        let (results, settings) = (self.results, &self.results.recrawl);
        let tables = results.pages(range)?;
        let [old, new] = [PageColumns::from_table(&tables[0])?, PageColumns::from_table(&tables[1])?];
        let [avoid_in_force, avoid] = results.avoid(range)?;
        let avoid = [AvoidColumns::from_table(&avoid_in_force)?, AvoidColumns::from_table(&avoid)?];
        let [mut avoided_before, mut is_avoided] = avoid.each_ref().map(AvoidColumns::has);
        let [moved_from, moved_to] = self.page_moves.take(range)?;
        let refused = self.seen_urls.take(range)?;
        let overlaps = self.texts.map_or(Ok(Vec::new()), |texts| texts.take(range))?;
        let memory = results.past.as_ref().map(|past| past.page_memory(range, &old, &new, VERSIONS)).transpose()?;
        let PageMemory { reverted_texts, texts } = memory.unwrap_or_default();
        let (mut counts, mut rows, mut scratch) = (ChangeCounts::default(), Vec::new(), Vec::new());
        let mut changes = Vec::with_capacity(old.doc_ids.len() + new.doc_ids.len());
        // Pages that were not fetched because they are on the old list.
        let mut unfetched: Vec<DocId> = Vec::new();
        for side in merge(old.doc_ids, new.doc_ids) {
            let (pages, row) = match side {
                MergeSide::Old(i) | MergeSide::Both(i, _) => (&old, i),
                MergeSide::New(j) => (&new, j),
            };
            let (doc_id, url) = (pages.doc_ids[row], &pages.urls[row]);
            let mut row = Row { doc_id, url, ..Row::default() };
            let site = split(url).0;
            let message = match side {
                MergeSide::Both(i, j) => {
                    let contents = [old.content(i), new.content(j)];
                    row.has_same_text = contents[0].same_text(&contents[1]);
                    row.bits = contents[0].bits(&contents[1]).filter(|_| results.comparable.simhashes);
                    row.overlap = find(&overlaps, doc_id, |one| one.0).map(|one| one.1);
                    row.put_note(0, &old.note(i));
                    row.put_note(1, &new.note(j));
                    row.crawls_since = find(&reverted_texts, doc_id, |one| one.0).map(|one| one.1);
                    match row.crawls_since {
                        Some(_) => PageChange::Reverted,
                        None => what(&contents[0], &contents[1], row.bits, row.overlap),
                    }
                }
                MergeSide::Old(i) => {
                    row.put_note(0, &old.note(i));
                    match find(&moved_from, doc_id, |one| one.doc_id) {
                        Some(page_move) => self.fill_move(&mut row, page_move, 1, &mut scratch)?,
                        None => {
                            let refused = find(&refused, doc_id, |one| one.0).map(|one| one.1);
                            row.why_gone = self.why_gone(site, refused, avoided_before(doc_id));
                            if row.why_gone == REASON_AVOIDED {
                                unfetched.push(doc_id);
                            }
                            counts.add_gone(&row.why_gone);
                            PageChange::Gone
                        }
                    }
                }
                MergeSide::New(j) => {
                    row.put_note(1, &new.note(j));
                    match find(&moved_to, doc_id, |one| one.doc_id) {
                        Some(page_move) => self.fill_move(&mut row, page_move, 0, &mut scratch)?,
                        None => PageChange::New,
                    }
                }
            };
            counts.what[message as usize] += 1;
            counts.moved_same_text += u64::from(message == PageChange::MovedFrom && row.has_same_text);
            changes.push((doc_id, message));
            sites[self.numbers[&site_id(site)] as usize][message as usize] += 1;
            // The table has changes only, because most pages of a crawl do not change.
            if message != PageChange::Same {
                row.what = Some(message);
                row.is_avoided = [avoided_before(doc_id), is_avoided(doc_id)];
                rows.push(row);
            }
        }
        let mut tables = vec![("pages_changed", table(&rows, settings))];
        if results.has_avoid() {
            let (old, new, former_list) = (&avoid[0], &avoid[1], results.stood(range)?);
            let page = |page: DocId| find(&changes, page, |one| one.0).map(|one| one.1);
            // A page that stood next to the old list, and was not fetched for the new crawl either,
            // is a page of neither crawl. So it has no change, and only a record of its refusal
            // shows that it was fetched.
            let is_unfetched = |other_page: DocId| match page(other_page) {
                Some(_) => find(&unfetched, other_page, |one| *one).is_some(),
                None => find(&refused, other_page, |one| one.0).is_none(),
            };
            let mut list_changes: Vec<AvoidChange<'_>> = Vec::new();
            let mut stands_too = Vec::new();
            let is_standing = |row: usize| {
                let Some(avoid_list) = self.avoid_list else { return false };
                let (page, url) = old.page(row);
                let is_standing = is_unfetched(page) && avoid_list.may_stand(page, old.keep(row));
                avoid_list.note(page, url, is_standing);
                if is_standing {
                    stands_too.push(row);
                }
                is_standing
            };
            avoid::changes(old, new, page, is_standing, &mut list_changes);
            list_changes.iter().for_each(|row| *counts.avoid.entry(row.what).or_default() += 1);
            tables.push(("avoid_changed", avoid::table(&list_changes)));
            tables.push((AVOID_STANDING, stood::pages(former_list, avoid_in_force.pick(&stands_too))?));
        }
        if results.past.is_some() {
            tables.push((past_texts::TEXTS_BEFORE, past_texts::table(&texts)));
        }
        Ok(Judged { tables, counts })
    }

    /// Fills in the counterpart of a page that moved, which is in the crawl `side`.
    fn fill_move(
        &self,
        row: &mut Row<'_>,
        page_move: &PageMove,
        side: usize,
        scratch: &mut Vec<u8>,
    ) -> Result<PageChange> {
        let note = self.notes.decode(&page_move.counterpart, scratch)?;
        row.put_note(side, &note);
        row.counterpart = Some((page_move.counterpart.doc_id, note.url));
        row.has_same_text = page_move.same_text == 1;
        row.bits = page_move.bits().filter(|_| self.results.comparable.simhashes);
        Ok([PageChange::MovedTo, PageChange::MovedFrom][side])
    }

    fn why_gone(&self, site: &str, refused: Option<&str>, avoided_before: bool) -> Cow<'static, str> {
        match refused {
            Some(reason) => format!("rejected:{reason}").into(),
            None if avoided_before && self.results.recrawl.obeys() => REASON_AVOIDED.into(),
            None if !self.seen_urls.has_host_of(site) => "host_absent".into(),
            None => "absent".into(),
        }
    }
}

impl PageColumns<'_> {
    /// Returns the columns of a page that its output row shows.
    fn note(&self, row: usize) -> PageNote {
        let (time, text_bytes) = (self.times[row], self.text_bytes[row]);
        PageNote { url: String::new(), time, text_bytes, chunks: self.chunks[row] }
    }
}

impl Row<'_> {
    fn put_note(&mut self, side: usize, note: &PageNote) {
        (self.times[side], self.text_bytes[side], self.chunks[side]) = (note.time, note.text_bytes, note.chunks);
    }
}

/// Finds the row of a key in rows that ascend by it.
fn find<T>(rows: &[T], key: DocId, id_of: impl Fn(&T) -> DocId) -> Option<&T> {
    rows.binary_search_by_key(&key, id_of).ok().map(|at| &rows[at])
}

fn table(rows: &[Row<'_>], settings: &Recrawl) -> Table {
    let ids = |value: fn(&Row<'_>) -> u64| TableColumn::Id(rows.iter().map(value).collect());
    let texts = |value: for<'a> fn(&'a Row<'a>) -> &'a str| TableColumn::Text(rows.iter().map(value).collect());
    let bools = |value: fn(&Row<'_>) -> bool| TableColumn::Bool(rows.iter().map(value).collect());
    let u32s = |value: fn(&Row<'_>) -> u32| TableColumn::U32(rows.iter().map(value).collect());
    let counts = |value: fn(&Row<'_>) -> u64| TableColumn::Count(rows.iter().map(value).collect());
    let times = |value: fn(&Row<'_>) -> i64| TableColumn::Time(rows.iter().map(value).collect());
    let shares = rows.iter().map(|row| row.overlap.map_or(0.0, |shared| shared.millionths() as f64 / 1e6)).collect();
    let mut table = Table::new([
        ("doc_id", ids(|row| row.doc_id)),
        ("url", texts(|row| row.url)),
        ("host", texts(|row| host_of(split(row.url).0))),
        ("what", texts(|row| row.what.map_or("", PageChange::as_str))),
        ("why_gone", texts(|row| &row.why_gone)),
        ("other_doc_id", ids(|row| row.counterpart.as_ref().map_or(0, |other| other.0))),
        ("other_url", texts(|row| row.counterpart.as_ref().map_or("", |other| &other.1))),
        ("same_text", bools(|row| row.has_same_text)),
        ("bits", u32s(|row| row.bits.unwrap_or(0))),
        ("has_bits", bools(|row| row.bits.is_some())),
        ("chunks_old", u32s(|row| row.chunks[0])),
        ("chunks_new", u32s(|row| row.chunks[1])),
        ("text_old", counts(|row| row.text_bytes[0])),
        ("text_new", counts(|row| row.text_bytes[1])),
        ("time_old", times(|row| row.times[0])),
        ("time_new", times(|row| row.times[1])),
        ("avoid_old", bools(|row| row.is_avoided[0])),
        ("avoid_new", bools(|row| row.is_avoided[1])),
        ("reverted_crawls", u32s(|row| row.crawls_since.unwrap_or(0))),
    ]);
    if settings.texts {
        let columns = Table::new([
            ("resemblance", TableColumn::F64(shares)),
            ("has_resemblance", bools(|row| row.overlap.is_some())),
            ("shared_chunks", u32s(|row| row.overlap.map_or(0, |shared| shared.n_shared))),
        ]);
        table.columns.extend(columns.columns);
    }
    table
}
