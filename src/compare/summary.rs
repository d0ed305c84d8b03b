//! `summary.json` of a comparison: counts that add up. It has no time and no machine in it.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::changes::Counts;
use super::overlap::Overlap;
use super::pages::What;
use super::sites::Sites;
use super::two_crawls::Comparison;
use webtwin_storage::texts::Texts;

/// What a comparison found.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Summary {
    /// Pages of the old crawl.
    pub pages_old: u64,
    /// Pages of the new crawl.
    pub pages_new: u64,
    /// Pages by what became of them. Of the old crawl: `same`, `bytes`, `near`, `changed`, `rewritten`, `reverted`, `gone` and `moved_from`; of
    /// the new one the first six, `new` and `moved_to`.
    pub pages: BTreeMap<&'static str, u64>,
    /// Gone pages by `why_gone`.
    pub gone: BTreeMap<String, u64>,
    /// Pages that moved with the same text.
    pub moved_same_text: u64,
    /// Sites of both crawls.
    pub sites: u64,
    /// Sites that are not all the same, by what became of them.
    pub sites_changed: BTreeMap<String, u64>,
    /// Rows of `avoid_changed` by what became of them.
    pub avoid_changed: BTreeMap<&'static str, u64>,
    /// Lines that crawlers add to and take off their lists, by export; none where there is no patch.
    pub exports: BTreeMap<String, Lines>,
    /// Whether there are patches, which lead from the list that the crawler has to the list in force. Where a comparison in between is
    /// missing, it has to take that as a whole.
    pub patch: bool,
    /// How much of one crawl is in the other, by unit.
    pub overlap: BTreeMap<&'static str, Overlap>,
    /// What other steps found, by their names.
    #[serde(flatten)]
    pub more: BTreeMap<String, Value>,
    /// What the answer depends on beside the two results, by its name, for the manifest.
    #[serde(skip)]
    pub beside: BTreeMap<String, Value>,
    /// Whether the newer crawl was made before the older one, by its fetch times: then there are no rates.
    #[serde(skip)]
    pub is_backwards: bool,
}

/// Lines of an export.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Lines {
    /// In the new list only.
    pub added: u64,
    /// In the old list only.
    pub removed: u64,
}

impl Summary {
    pub(super) fn new(
        of: &Comparison,
        counts: &Counts,
        sites: &Sites,
        sites_changed: &Texts,
        overlaps: Vec<(&'static str, Overlap)>,
        exports: Vec<(String, [u64; 2])>,
    ) -> Summary {
        let mut by_what: BTreeMap<String, u64> = BTreeMap::new();
        for what in sites_changed.iter().filter(|what| *what != "same") {
            *by_what.entry(what.to_string()).or_default() += 1;
        }
        Summary {
            pages_old: of.pages[0].rows(),
            pages_new: of.pages[1].rows(),
            pages: What::ALL.into_iter().map(|what| (what.as_str(), counts.of(what))).collect(),
            gone: counts.why_gone.clone(),
            moved_same_text: counts.moved_same_text,
            sites: sites.0.len() as u64,
            sites_changed: by_what,
            avoid_changed: counts.avoid.clone(),
            exports: exports.into_iter().map(|(name, [added, removed])| (name, Lines { added, removed })).collect(),
            patch: of.comparable.settings && !of.list_is_lost,
            overlap: overlaps.into_iter().collect(),
            more: BTreeMap::new(),
            beside: BTreeMap::new(),
            is_backwards: false,
        }
    }
}
