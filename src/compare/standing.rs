//! Standing entries of the old avoid list. An entry *stands* if it remains in force although the
//! new crawl has no evidence for it: a crawler that obeys the list does not fetch the pages on it.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::gather::Contents;
use super::pages::{PageChange, what};
use super::stood::ListEntry;
use super::two_crawls::ComparableResults;
use webtwin_base::error::Result;
use webtwin_base::ids::DocId;
use webtwin_core::applications::exports::{AvoidLists, BY_PAGES, EXPORTS};
use webtwin_core::applications::heritrix::SurtRules;
use webtwin_core::applications::prefixes::SkipPrefix;
use webtwin_pages::surt::surt_prefix_of;
use webtwin_results::FinishedRun;

/// Entries of the old list that may stand, with observations of their pages.
pub(super) struct AvoidListInForce {
    /// Kept pages that the new crawl lacks or that were rewritten, ascending.
    lost_pages: Vec<DocId>,
    /// Pages of collections that have ended, ascending.
    ended_pages: Vec<DocId>,
    /// Observations of the pages below each prefix of the list.
    prefixes: HashMap<String, Noted>,
    /// Observations of the page at each URL of the list.
    urls: HashMap<String, Noted>,
    /// Pages that stand below a prefix.
    pages_below: Mutex<Vec<DocId>>,
}

/// Observations of the pages that an entry stands for.
#[derive(Default)]
struct Noted {
    /// True if a page was skipped and stays on the list.
    is_standing: AtomicBool,
    /// True if a page leaves the list.
    leaves: AtomicBool,
    /// [`ListEntry::heritrix`].
    heritrix: bool,
    /// [`ListEntry::pages`].
    pages: u64,
    /// [`ListEntry::bytes`].
    bytes: u64,
}

/// Entries of the list in force before that still stand.
#[derive(Default)]
pub(super) struct StandingEntries {
    /// Entries, ascending.
    pub entries: Vec<ListEntry>,
    /// URLs of pages below entries for which Heritrix has no line.
    pub without_line: Vec<String>,
}

impl AvoidListInForce {
    /// Collects the entries of the old list and those that stood next to it. Returns `None` unless
    /// the new crawl obeyed the list (`recrawl.avoided`) and lists are compared.
    ///
    /// # Errors
    /// Returns any error of the tables and stores.
    ///
    /// # Cost
    /// Reads the doc ids of kept pages and the contents of all pages once. Holds the list's entries
    /// in memory, and 8 bytes for each kept page and for each page that stands.
    pub(super) fn collect(results: &ComparableResults, ended_mirrors: &[DocId]) -> Result<Option<AvoidListInForce>> {
        let Some([old, _]) = results.avoid.as_ref().filter(|_| results.recrawl.obeys()) else { return Ok(None) };
        let mut lost_pages = Vec::new();
        for range in 0..results.ranges.count() {
            lost_pages.extend_from_slice(old.read(range, &["doc_id", "keep_doc_id"])?.u64("keep_doc_id")?);
            if let Some(former_entries) = &results.stood {
                lost_pages.extend_from_slice(former_entries.read(range)?.u64("keep_doc_id")?);
            }
        }
        lost_pages.sort_unstable();
        lost_pages.dedup();
        let mut is_there = vec![false; lost_pages.len()];
        for range in 0..results.ranges.count() {
            let [old, new] = [0, 1].map(|side| results.pages[side].read(range, &Contents::NAMES));
            let (old, new) = (old?, new?);
            let (contents_old, contents_new) = (Contents::from_table(&old)?, Contents::from_table(&new)?);
            for (row, doc_id) in new.u64("doc_id")?.iter().enumerate() {
                let Ok(lost_row) = lost_pages.binary_search(doc_id) else { continue };
                let new_content = contents_new.content(row);
                let old_content = old.u64("doc_id")?.binary_search(doc_id).ok().map(|row| contents_old.content(row));
                let bits = old_content.and_then(|was| was.bits(&new_content)).filter(|_| results.comparable.simhashes);
                is_there[lost_row] =
                    old_content.is_none_or(|was| what(&was, &new_content, bits, None) != PageChange::Rewritten);
            }
        }
        let mut is_there = is_there.into_iter();
        lost_pages.retain(|_| is_there.next() == Some(false));
        // A crawl without pages has failed. It must not remove anything from the list.
        if results.pages[1].rows() == 0 {
            lost_pages.clear();
        }
        let ended_mirrors = ended_mirrors.to_vec();
        let mut list = AvoidListInForce {
            lost_pages,
            ended_pages: ended_mirrors,
            prefixes: HashMap::new(),
            urls: HashMap::new(),
            pages_below: Mutex::default(),
        };
        let former_entries = results.stood.iter().flat_map(|stood| stood.entries.iter().cloned());
        for ListEntry { url, is_single, heritrix, pages, bytes } in
            entries(&results.old)?.into_iter().chain(former_entries)
        {
            let entry_map = if is_single { &mut list.urls } else { &mut list.prefixes };
            entry_map.insert(url, Noted { heritrix, pages, bytes, ..Noted::default() });
        }
        Ok(Some(list))
    }

    /// True if a page that was not fetched may stay on the list: the page kept for it still exists
    /// and was not rewritten, so the two may still agree, and the page's collection has not ended.
    pub(super) fn may_stand(&self, page: DocId, keep: DocId) -> bool {
        self.lost_pages.binary_search(&keep).is_err() && self.ended_pages.binary_search(&page).is_err()
    }

    /// Records for a page that only the old list has if it stands.
    pub(super) fn note(&self, page: DocId, url: &str, is_standing: bool) {
        let mut is_below = false;
        let prefixes = self.above(url).inspect(|_| is_below = true);
        for entry in prefixes.chain(self.urls.get(url)) {
            if is_standing { &entry.is_standing } else { &entry.leaves }.store(true, Relaxed);
        }
        if is_standing && is_below {
            self.pages_below.lock().expect("nothing panics while it holds this").push(page);
        }
    }

    /// Returns the observations of all prefixes that `url` starts with.
    fn above(&self, url: &str) -> impl Iterator<Item = &Noted> {
        let slashes = url.match_indices('/').map(|(at, _)| &url[..=at]);
        slashes.chain([url]).filter_map(|beginning| self.prefixes.get(beginning))
    }

    /// Returns what stands: the entries of which no page leaves, and a URL for each standing page
    /// below a prefix of which other pages leave. Heritrix gets no line for such a URL, because the
    /// URL may be a prefix of one that must be fetched.
    ///
    /// # Errors
    /// Returns any error of the tables.
    ///
    /// # Cost
    /// Reads the list in force again if pages leave a prefix, or if Heritrix has no line for one.
    pub(super) fn stands(&self, results: &ComparableResults) -> Result<StandingEntries> {
        let entry_of = |entries: &HashMap<String, Noted>, is_single| -> Vec<ListEntry> {
            let whole_entries = entries.iter().filter(|(_, noted)| noted.is_whole());
            whole_entries.map(|(url, noted)| noted.entry(url, is_single)).collect()
        };
        let mut entries = [entry_of(&self.prefixes, false), entry_of(&self.urls, true)].concat();
        let mut without_line = Vec::new();
        if self.prefixes.values().any(|noted| noted.is_broken() || noted.is_whole() && !noted.heritrix) {
            let mut pages_below = self.pages_below.lock().expect("nothing panics while it holds this");
            pages_below.sort_unstable();
            let whole_above =
                |url: &str| self.above(url).chain(self.urls.get(url)).filter(|noted| noted.is_whole()).collect();
            results.each_in_force(&mut |page, url| {
                if pages_below.binary_search(&page).is_err() {
                    return;
                }
                let whole_entries: Vec<&Noted> = whole_above(url);
                if whole_entries.is_empty() {
                    entries.push(ListEntry {
                        url: url.to_string(),
                        is_single: true,
                        heritrix: false,
                        pages: 1,
                        bytes: 0,
                    });
                } else if !whole_entries.iter().any(|noted| noted.heritrix) {
                    without_line.push(url.to_string());
                }
            })?;
        }
        entries.sort_unstable();
        entries.dedup_by(|x, y| (&x.url, x.is_single) == (&y.url, y.is_single));
        Ok(StandingEntries { entries, without_line })
    }
}

impl Noted {
    /// Returns the entry of a URL or prefix with these observations.
    fn entry(&self, url: &str, is_single: bool) -> ListEntry {
        ListEntry { url: url.to_string(), is_single, heritrix: self.heritrix, pages: self.pages, bytes: self.bytes }
    }

    /// True if the entry stands for all of its pages that are not on the new list.
    fn is_whole(&self) -> bool {
        self.is_standing.load(Relaxed) && !self.leaves.load(Relaxed)
    }

    /// True if some of its pages stand and others leave.
    fn is_broken(&self) -> bool {
        self.is_standing.load(Relaxed) && self.leaves.load(Relaxed)
    }
}

/// Reads the entries of a result's list.
///
/// # Errors
/// Returns any error of the stores.
pub(super) fn entries(run: &FinishedRun) -> Result<Vec<ListEntry>> {
    let mut entries = Vec::new();
    let surts = run.export("heritrix-surts.txt")?;
    let surts: HashSet<&str> = surts.lines().filter_map(|line| line.strip_prefix('+')).collect();
    let sizes = run.export(BY_PAGES.name)?;
    let sizes: HashMap<&str, (u64, u64)> = sizes.lines().filter_map(size_of).collect();
    for (name, is_single) in [("prefixes.txt", false), ("urls.txt", true)] {
        let text = run.export(name)?;
        entries.extend(text.lines().map(|url| {
            let (pages, bytes) = sizes.get(url).copied().unwrap_or((u64::from(is_single), 0));
            let heritrix = surts.contains(surt_prefix_of(url).as_str());
            ListEntry { url: url.to_string(), is_single, heritrix, pages, bytes }
        }));
    }
    Ok(entries)
}

/// Parses a prefix with its pages and bytes from a line of [`BY_PAGES`]. Returns `None` for the
/// header.
fn size_of(line: &str) -> Option<(&str, (u64, u64))> {
    let mut cells = line.split('\t');
    let (prefix, pages, bytes) = (cells.next()?, cells.next()?, cells.next()?);
    Some((prefix, (pages.parse().ok()?, bytes.parse().ok()?)))
}

/// Renders each export for some entries, as lines in the order of the entries, including headers
/// and final lines.
pub(super) fn lines_of(entries: &[ListEntry]) -> HashMap<&'static str, Vec<String>> {
    let prefixes: Vec<SkipPrefix> = entries.iter().map(ListEntry::prefix).collect();
    let surts = entries.iter().filter(|entry| entry.heritrix).map(|entry| surt_prefix_of(&entry.url)).collect();
    let lists = [AvoidLists { prefixes, surt_rules: SurtRules { prefixes: surts, urls: Vec::new() } }];
    EXPORTS.iter().map(|export| (export.name, export.text(&lists).lines().map(str::to_string).collect())).collect()
}
