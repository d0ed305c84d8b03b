//! What of the old avoid list stands though the new crawl does not show it: a crawler that obeys the list does not fetch what is on it.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::Comparison;
use super::exports::lines;
use crate::applications::exports::{AvoidLists, exports};
use crate::applications::heritrix::SurtRules;
use crate::applications::prefixes::Prefix;
use crate::error::Result;
use crate::ids::DocId;
use crate::pages::surt::surt_prefix_of;

/// The old list, as far as it may stand.
pub struct Standing {
    /// Pages that stay for others and that the new crawl does not have, ascending.
    lost: Vec<DocId>,
    /// What is noted of the pages below each entry of the list.
    entries: HashMap<String, Noted>,
}

/// Of the pages that an entry stands for.
#[derive(Default)]
struct Noted {
    is_single: bool,
    /// Whether one was skipped and stays on the list.
    stands: AtomicBool,
    /// Whether one leaves it.
    leaves: AtomicBool,
}

impl Standing {
    /// That of the old list, if the new crawl obeyed it (`recrawl.avoided`) and lists are compared.
    ///
    /// # Errors
    /// Those of the tables and stores.
    ///
    /// # Cost
    /// Doc ids of the new pages and of those that stay are read once. Memory: the list's entries, and 8 bytes for each page that stays
    /// for others.
    pub fn of(of: &Comparison) -> Result<Option<Standing>> {
        let Some([old, _]) = of.avoid.as_ref().filter(|_| of.recrawl.avoided) else { return Ok(None) };
        let mut lost = Vec::new();
        for range in 0..of.ranges.count() {
            lost.extend_from_slice(old.read(range, &["doc_id", "keep_doc_id"])?.u64("keep_doc_id")?);
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
        let mut entries = HashMap::new();
        for (name, is_single) in [("prefixes.txt", false), ("urls.txt", true)] {
            let text = lines(&of.old, name)?.unwrap_or_default();
            entries.extend(text.lines().map(|line| (line.to_string(), Noted { is_single, ..Noted::default() })));
        }
        Ok(Some(Standing { lost, entries }))
    }

    /// Whether the page that stays for another is still there.
    pub fn has(&self, keep: DocId) -> bool {
        self.lost.binary_search(&keep).is_err()
    }

    /// Notes of a page on the old list that the new one does not have whether it stands.
    pub fn note(&self, url: &str, stands: bool) {
        let slashes = url.match_indices('/').map(|(at, _)| &url[..=at]);
        for entry in slashes.chain([url]).filter_map(|beginning| self.entries.get(beginning)) {
            if stands { &entry.stands } else { &entry.leaves }.store(true, Relaxed);
        }
    }

    /// The lines of each export for entries that stand as a whole.
    pub fn exports(&self) -> HashMap<&'static str, HashSet<String>> {
        let whole = self.entries.iter().filter(|(_, noted)| noted.stands.load(Relaxed) && !noted.leaves.load(Relaxed));
        let prefix = |(entry, noted): (&String, &Noted)| Prefix {
            prefix: entry.clone(),
            single: noted.is_single,
            pages: 0,
            bytes: 0,
        };
        let prefixes: Vec<Prefix> = whole.map(prefix).collect();
        let surts = prefixes.iter().map(|prefix| surt_prefix_of(&prefix.prefix)).collect();
        let surt_rules = vec![SurtRules { prefixes: surts, urls: Vec::new() }];
        let texts = exports(&AvoidLists { prefixes, surt_rules }).into_iter();
        texts.map(|(name, text)| (name, text.lines().map(str::to_string).collect())).collect()
    }
}
