//! What of the old avoid list stands though the new crawl does not show it: a crawler that obeys the list does not fetch what is on it.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::Comparison;
use super::exports::lines;
use super::stood::Entry;
use crate::applications::exports::{AvoidLists, exports};
use crate::applications::heritrix::SurtRules;
use crate::applications::prefixes::Prefix;
use crate::error::Result;
use crate::ids::DocId;
use crate::pages::surt::surt_prefix_of;
use crate::results::Run;

/// The old list, as far as it may stand.
pub struct Standing {
    /// Pages that stay for others and that the new crawl does not have, ascending.
    lost: Vec<DocId>,
    /// Pages of collections that have ended, ascending.
    ended: Vec<DocId>,
    /// What is noted of the pages below each prefix of the list.
    prefixes: HashMap<String, Noted>,
    /// The same of each URL of it.
    urls: HashMap<String, Noted>,
}

/// Of the pages that an entry stands for.
#[derive(Default)]
struct Noted {
    /// Whether one was skipped and stays on the list.
    stands: AtomicBool,
    /// Whether one leaves it.
    leaves: AtomicBool,
    /// [`Entry::heritrix`].
    heritrix: bool,
}

impl Standing {
    /// That of the old list and of what stood beside it, if the new crawl obeyed it (`recrawl.avoided`) and lists are compared.
    ///
    /// # Errors
    /// Those of the tables and stores.
    ///
    /// # Cost
    /// Doc ids of the new pages and of those that stay are read once. Memory: the list's entries, and 8 bytes for each page that stays
    /// for others.
    pub fn of(of: &Comparison, ended: &[DocId]) -> Result<Option<Standing>> {
        let Some([old, _]) = of.avoid.as_ref().filter(|_| of.recrawl.avoided) else { return Ok(None) };
        let mut lost = Vec::new();
        for range in 0..of.ranges.count() {
            lost.extend_from_slice(old.read(range, &["doc_id", "keep_doc_id"])?.u64("keep_doc_id")?);
            if let Some(stood) = &of.stood {
                lost.extend_from_slice(stood.read(range)?.u64("keep_doc_id")?);
            }
        }
        lost.sort_unstable();
        lost.dedup();
        let mut is_there = vec![false; lost.len()];
        for range in 0..of.ranges.count() {
            for doc_id in of.pages[1].read(range, &["doc_id"])?.u64("doc_id")? {
                if let Ok(at) = lost.binary_search(doc_id) {
                    is_there[at] = true;
                }
            }
        }
        let mut is_there = is_there.into_iter();
        lost.retain(|_| is_there.next() == Some(false));
        // A crawl without pages has failed, and takes nothing off.
        if of.pages[1].rows() == 0 {
            lost.clear();
        }
        let ended = ended.to_vec();
        let mut standing = Standing { lost, ended, prefixes: HashMap::new(), urls: HashMap::new() };
        let stood = of.stood.iter().flat_map(|stood| stood.entries.iter().cloned());
        for Entry { url, single, heritrix } in entries(&of.old)?.into_iter().chain(stood) {
            let of = if single { &mut standing.urls } else { &mut standing.prefixes };
            of.insert(url, Noted { heritrix, ..Noted::default() });
        }
        Ok(Some(standing))
    }

    /// Whether a page that was not fetched may stay on the list for another: this is still there, and the page's collection has not ended.
    pub fn may_stand(&self, page: DocId, keep: DocId) -> bool {
        self.lost.binary_search(&keep).is_err() && self.ended.binary_search(&page).is_err()
    }

    /// Notes of a page on the old list that the new one does not have whether it stands.
    pub fn note(&self, url: &str, stands: bool) {
        let slashes = url.match_indices('/').map(|(at, _)| &url[..=at]);
        let prefixes = slashes.chain([url]).filter_map(|beginning| self.prefixes.get(beginning));
        for entry in prefixes.chain(self.urls.get(url)) {
            if stands { &entry.stands } else { &entry.leaves }.store(true, Relaxed);
        }
    }

    /// The entries that stand as a whole, ascending.
    pub fn entries(&self) -> Vec<Entry> {
        let whole = |noted: &Noted| noted.stands.load(Relaxed) && !noted.leaves.load(Relaxed);
        let of = |entries: &HashMap<String, Noted>, single| -> Vec<Entry> {
            let whole = entries.iter().filter(|(_, noted)| whole(noted));
            whole.map(|(url, noted)| Entry { url: url.clone(), single, heritrix: noted.heritrix }).collect()
        };
        let mut entries = [of(&self.prefixes, false), of(&self.urls, true)].concat();
        entries.sort_unstable();
        entries
    }
}

/// The entries of a result's list.
///
/// # Errors
/// Those of the stores.
pub fn entries(of: &Run) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    let surts = lines(of, "heritrix-surts.txt")?.unwrap_or_default();
    let surts: HashSet<&str> = surts.lines().filter_map(|line| line.strip_prefix('+')).collect();
    for (name, single) in [("prefixes.txt", false), ("urls.txt", true)] {
        let text = lines(of, name)?.unwrap_or_default();
        let heritrix = |url: &str| surts.contains(surt_prefix_of(url).as_str());
        entries.extend(text.lines().map(|url| Entry { url: url.to_string(), single, heritrix: heritrix(url) }));
    }
    Ok(entries)
}

/// The lines of each export for some entries, with heads and ends, in the order of the entries.
pub fn lines_of(entries: &[Entry]) -> HashMap<&'static str, Vec<String>> {
    let prefix =
        |Entry { url, single, .. }: &Entry| Prefix { prefix: url.clone(), single: *single, pages: 0, bytes: 0 };
    let prefixes: Vec<Prefix> = entries.iter().map(prefix).collect();
    let surts = entries.iter().filter(|entry| entry.heritrix).map(|entry| surt_prefix_of(&entry.url)).collect();
    let surt_rules = vec![SurtRules { prefixes: surts, urls: Vec::new() }];
    let texts = exports(&AvoidLists { prefixes, surt_rules }).into_iter();
    texts.map(|(name, text)| (name, text.lines().map(str::to_string).collect())).collect()
}
