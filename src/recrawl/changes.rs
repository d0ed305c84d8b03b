//! The second pass over the pages of both results: what became of each, and of the avoid list.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::avoid::{self, AvoidChange, AvoidColumns};
use super::gather::{Note, Notes, PageColumns};
use super::merge::{Side, merge};
use super::moves::{Moved, Moves};
use super::pages::{SharedChunks, What, what};
use super::past_texts::{self, Remembered};
use super::refused::Seen;
use super::sites::{Sites, split};
use super::writer::Writer;
use super::{Comparison, texts::Texts};
use crate::error::{Error, Result};
use crate::ids::DocId;
use crate::job::Recrawl;
use crate::storage::table::{Column, Table};
use crate::threads;

/// A row of `pages_changed`. Of pairs of values the first is the old crawl's.
#[derive(Debug, Clone, PartialEq, Default)]
struct Row {
    doc_id: DocId,
    url: String,
    what: Option<What>,
    why_gone: String,
    /// Where a page that moved is in the other crawl.
    other: Option<(DocId, String)>,
    same_text: bool,
    bits: Option<u32>,
    shared: Option<SharedChunks>,
    chunks: [u32; 2],
    text_bytes: [u64; 2],
    times: [i64; 2],
    avoided: [bool; 2],
    /// Crawls since it last had the text that it has again.
    reverted: Option<u32>,
}

/// Pages by what became of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// In the order of [`What::ALL`].
    pub what: [u64; What::ALL.len()],
    /// Gone pages by `why_gone`.
    pub why_gone: BTreeMap<String, u64>,
    /// Rows of `avoid_changed` by `what`.
    pub avoid: BTreeMap<&'static str, u64>,
    /// Pages that moved with the same text.
    pub moved_same_text: u64,
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.what.iter_mut().zip(other.what).for_each(|(all, more)| *all += more);
        other.why_gone.into_iter().for_each(|(why, n)| *self.why_gone.entry(why).or_default() += n);
        other.avoid.into_iter().for_each(|(what, n)| *self.avoid.entry(what).or_default() += n);
        self.moved_same_text += other.moved_same_text;
    }

    /// Pages by what became of them.
    pub fn of(&self, what: What) -> u64 {
        self.what[what as usize]
    }

    /// Pages of one crawl.
    pub fn pages(&self, is_of: impl Fn(What) -> bool) -> u64 {
        What::ALL.into_iter().filter(|&what| is_of(what)).map(|what| self.of(what)).sum()
    }
}

/// Judges all pages, and writes `pages_changed` and, where avoid lists are compared, `avoid_changed` and `texts_before`.
///
/// # Errors
/// Those of tables and of the disk; [`Error::Invariant`] when pages are lost or counted twice.
pub fn changes(
    of: &Comparison,
    moves: &Moves,
    notes: &Notes,
    seen: &Seen,
    texts: Option<&Texts>,
    writer: &mut Writer,
) -> Result<(Counts, Sites)> {
    let judge = Judge { of, moves, notes, seen, texts };
    let ended = Mutex::new(InOrder { next: 0, waiting: BTreeMap::new(), writer });
    let each = threads::for_each(of.workers, of.ranges.count(), Default::default, |mine, range| {
        let (counts, sites): &mut (Counts, Sites) = mine;
        let judged = judge.range(range, sites)?;
        counts.add(judged.counts);
        let mut tables = vec![("pages_changed", table(judged.rows, &of.recrawl))];
        if of.has_avoid() {
            tables.push(("avoid_changed", avoid::table(&judged.avoid)));
        }
        if of.past.is_some() {
            tables.push((past_texts::TEXTS_BEFORE, past_texts::table(&judged.remembered.texts)));
        }
        drop((judged.avoid, judged.remembered));
        ended.lock().expect("nothing panics while it holds this").add(range, tables)
    })?;
    let (mut counts, mut sites) = (Counts::default(), Sites::default());
    for (more, others) in each {
        counts.add(more);
        sites.add(others);
    }
    for (side, pages) in [counts.pages(What::is_old), counts.pages(What::is_new)].into_iter().enumerate() {
        let there = of.pages[side].rows();
        if pages != there {
            let crawl = ["old", "new"][side];
            return Err(Error::Invariant(format!("{pages} pages of the {crawl} crawl were judged, of {there}")));
        }
    }
    if counts.of(What::MovedFrom) != counts.of(What::MovedTo) {
        let [from, to] = [What::MovedFrom, What::MovedTo].map(|what| counts.of(what));
        return Err(Error::Invariant(format!("{from} pages moved away, but {to} arrived")));
    }
    Ok((counts, sites))
}

/// Ranges that are written as soon as those before them are.
struct InOrder<'w> {
    next: usize,
    waiting: BTreeMap<usize, Vec<(&'static str, Table)>>,
    writer: &'w mut Writer,
}

impl InOrder<'_> {
    fn add(&mut self, range: usize, tables: Vec<(&'static str, Table)>) -> Result<()> {
        self.waiting.insert(range, tables);
        while let Some(tables) = self.waiting.remove(&self.next) {
            for (name, table) in tables {
                self.writer.add(name, table)?;
            }
            self.next += 1;
        }
        Ok(())
    }
}

/// What judging pages needs.
struct Judge<'j> {
    of: &'j Comparison,
    moves: &'j Moves,
    notes: &'j Notes,
    seen: &'j Seen,
    texts: Option<&'j Texts>,
}

/// What became of a range.
struct Judged {
    rows: Vec<Row>,
    avoid: Vec<AvoidChange>,
    remembered: Remembered,
    counts: Counts,
}

impl Judge<'_> {
    fn range(&self, range: usize, sites: &mut Sites) -> Result<Judged> {
        let (of, settings) = (self.of, &self.of.recrawl);
        let tables = of.pages(range)?;
        let [old, new] = [PageColumns::of(&tables[0])?, PageColumns::of(&tables[1])?];
        let avoid = of.avoid(range)?;
        let avoid = [AvoidColumns::of(&avoid[0])?, AvoidColumns::of(&avoid[1])?];
        let [moved_from, moved_to] = self.moves.take(range)?;
        let refused = self.seen.take(range)?;
        let shared = self.texts.map_or(Ok(Vec::new()), |texts| texts.take(range))?;
        let past = of.past.as_ref().map(|past| past.of(range, &old, &new, settings.versions)).transpose()?;
        let remembered = past.unwrap_or_default();
        let mut judged = Judged { rows: Vec::new(), avoid: Vec::new(), remembered, counts: Counts::default() };
        let (mut whats, mut room) = (Vec::with_capacity(old.doc_ids.len()), Vec::new());
        for side in merge(old.doc_ids, new.doc_ids) {
            let (pages, at) = match side {
                Side::Old(i) | Side::Both(i, _) => (&old, i),
                Side::New(j) => (&new, j),
            };
            let (doc_id, url) = (pages.doc_ids[at], &pages.urls[at]);
            let mut row = Row { doc_id, ..Row::default() };
            let told = match side {
                Side::Both(i, j) => {
                    let contents = [old.content(i), new.content(j)];
                    row.same_text = contents[0].same_text(&contents[1]);
                    row.bits = contents[0].bits(&contents[1]).filter(|_| of.comparable.simhashes);
                    row.shared = find(&shared, doc_id, |one| one.0).map(|one| one.1);
                    row.put(0, &old.note(i));
                    row.put(1, &new.note(j));
                    row.reverted = find(&judged.remembered.reverted, doc_id, |one| one.0).map(|one| one.1);
                    match row.reverted {
                        Some(_) => What::Reverted,
                        None => what(&contents[0], &contents[1], row.bits, row.shared, settings),
                    }
                }
                Side::Old(i) => {
                    row.put(0, &old.note(i));
                    match find(&moved_from, doc_id, |one| one.doc_id) {
                        Some(moved) => self.moved(&mut row, moved, 1, &mut room)?,
                        None => {
                            let refused = find(&refused, doc_id, |one| one.0).map(|one| one.1);
                            row.why_gone = self.why_gone(url, refused, avoid[0].has(doc_id));
                            *judged.counts.why_gone.entry(row.why_gone.clone()).or_default() += 1;
                            What::Gone
                        }
                    }
                }
                Side::New(j) => {
                    row.put(1, &new.note(j));
                    match find(&moved_to, doc_id, |one| one.doc_id) {
                        Some(moved) => self.moved(&mut row, moved, 0, &mut room)?,
                        None => What::New,
                    }
                }
            };
            judged.counts.what[told as usize] += 1;
            judged.counts.moved_same_text += u64::from(told == What::MovedFrom && row.same_text);
            whats.push((doc_id, told));
            let site = sites.entry(split(url).0);
            site.what[told as usize] += 1;
            if told != What::Same || settings.all_pages {
                row.what = Some(told);
                row.url.clone_from(url);
                row.avoided = [avoid[0].has(doc_id), avoid[1].has(doc_id)];
                judged.rows.push(row);
            }
        }
        if of.has_avoid() {
            let page = |page: DocId| find(&whats, page, |one| one.0).map(|one| one.1);
            avoid::changes(&avoid[0], &avoid[1], page, &mut judged.avoid);
            judged.avoid.iter().for_each(|row| *judged.counts.avoid.entry(row.what).or_default() += 1);
        }
        Ok(judged)
    }

    /// Fills in what is known of the other place of a page, which is in the crawl `side`.
    fn moved(&self, row: &mut Row, moved: &Moved, side: usize, room: &mut Vec<u8>) -> Result<What> {
        let note = self.notes.of(&moved.other, room)?;
        row.put(side, &note);
        row.other = Some((moved.other.doc_id, note.url));
        row.same_text = moved.same_text == 1;
        row.bits = moved.bits().filter(|_| self.of.comparable.simhashes);
        Ok([What::MovedTo, What::MovedFrom][side])
    }

    fn why_gone(&self, url: &str, refused: Option<&str>, was_avoided: bool) -> String {
        match refused {
            Some(reason) => format!("rejected:{reason}"),
            None if was_avoided && self.of.recrawl.avoided => "avoided".into(),
            None if !self.seen.has_host_of(url) => "host_absent".into(),
            None => "absent".into(),
        }
    }
}

impl PageColumns<'_> {
    /// What a row of the result tells of a page.
    fn note(&self, row: usize) -> Note {
        let (time, text_bytes) = (self.times[row], self.text_bytes[row]);
        Note { url: String::new(), time, text_bytes, chunks: self.chunks[row] }
    }
}

impl Row {
    fn put(&mut self, side: usize, note: &Note) {
        (self.times[side], self.text_bytes[side], self.chunks[side]) = (note.time, note.text_bytes, note.chunks);
    }
}

/// The row of a key among rows that ascend by it.
fn find<T>(rows: &[T], key: DocId, of: impl Fn(&T) -> DocId) -> Option<&T> {
    rows.binary_search_by_key(&key, of).ok().map(|at| &rows[at])
}

fn table(mut rows: Vec<Row>, settings: &Recrawl) -> Table {
    let hosts = rows.iter().map(|row| super::sites::host_of(split(&row.url).0).to_string()).collect();
    let urls = rows.iter_mut().map(|row| std::mem::take(&mut row.url)).collect();
    let ids = |value: &dyn Fn(&Row) -> u64| Column::Id(rows.iter().map(value).collect());
    let texts = |value: &dyn Fn(&Row) -> &str| Column::Text(rows.iter().map(|row| value(row).to_string()).collect());
    let bools = |value: &dyn Fn(&Row) -> bool| Column::Bool(rows.iter().map(value).collect());
    let u32s = |value: &dyn Fn(&Row) -> u32| Column::U32(rows.iter().map(value).collect());
    let counts = |value: &dyn Fn(&Row) -> u64| Column::Count(rows.iter().map(value).collect());
    let times = |value: &dyn Fn(&Row) -> i64| Column::Time(rows.iter().map(value).collect());
    let shares = rows.iter().map(|row| row.shared.map_or(0.0, |shared| shared.millionths() as f64 / 1e6)).collect();
    let mut table = Table::new([
        ("doc_id", ids(&|row| row.doc_id)),
        ("url", Column::Text(urls)),
        ("host", Column::Text(hosts)),
        ("what", texts(&|row| row.what.map_or("", What::as_str))),
        ("why_gone", texts(&|row| &row.why_gone)),
        ("other_doc_id", ids(&|row| row.other.as_ref().map_or(0, |other| other.0))),
        ("other_url", texts(&|row| row.other.as_ref().map_or("", |other| &other.1))),
        ("same_text", bools(&|row| row.same_text)),
        ("bits", u32s(&|row| row.bits.unwrap_or(0))),
        ("has_bits", bools(&|row| row.bits.is_some())),
        ("chunks_old", u32s(&|row| row.chunks[0])),
        ("chunks_new", u32s(&|row| row.chunks[1])),
        ("text_old", counts(&|row| row.text_bytes[0])),
        ("text_new", counts(&|row| row.text_bytes[1])),
        ("time_old", times(&|row| row.times[0])),
        ("time_new", times(&|row| row.times[1])),
        ("avoid_old", bools(&|row| row.avoided[0])),
        ("avoid_new", bools(&|row| row.avoided[1])),
        ("reverted_crawls", u32s(&|row| row.reverted.unwrap_or(0))),
    ]);
    if settings.texts {
        let more = Table::new([
            ("resemblance", Column::F64(shares)),
            ("has_resemblance", bools(&|row| row.shared.is_some())),
            ("shared_chunks", u32s(&|row| row.shared.map_or(0, |shared| shared.shared))),
        ]);
        table.columns.extend(more.columns);
    }
    table
}
