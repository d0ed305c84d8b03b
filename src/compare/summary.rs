//! `summary.json` of a comparison: counts that add up. It contains no times and no machine names,
//! so equal comparisons have equal summaries.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::changes::ChangeCounts;
use super::overlap::CrawlOverlap;
use super::pages::PageChange;
use super::sites::Sites;
use super::two_crawls::ComparableResults;
use webtwin_storage::texts::StringTable;

/// Counts of a comparison.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CompareSummary {
    /// Number of pages of the old crawl.
    pub pages_old: u64,
    /// Number of pages of the new crawl.
    pub pages_new: u64,
    /// Number of pages by change. The old crawl has `same`, `bytes`, `near`, `changed`,
    /// `rewritten`, `reverted`, `gone` and `moved_from`; the new crawl has the first six, `new` and
    /// `moved_to`.
    pub pages: BTreeMap<&'static str, u64>,
    /// Number of gone pages by `why_gone`.
    pub gone: BTreeMap<String, u64>,
    /// Number of pages that moved with an equal text.
    pub moved_same_text: u64,
    /// Number of sites of both crawls.
    pub sites: u64,
    /// Number of changed sites by change.
    pub sites_changed: BTreeMap<String, u64>,
    /// Number of rows of `avoid_changed` by change.
    pub avoid_changed: BTreeMap<&'static str, u64>,
    /// Numbers of lines that crawlers add to their lists and remove from them, by export. Empty if
    /// there are no patches.
    pub exports: BTreeMap<String, ExportLines>,
    /// True if there are patches from the list that the crawler has to the list in force. If a
    /// comparison in between is missing, the crawler must load the complete list instead.
    pub patch: bool,
    /// Overlap of the two crawls, by unit.
    pub overlap: BTreeMap<&'static str, CrawlOverlap>,
    /// Results of other steps, by name.
    #[serde(flatten)]
    pub more: BTreeMap<String, Value>,
    /// Inputs that the answer depends on in addition to the two results, by name; for the manifest.
    #[serde(skip)]
    pub beside: BTreeMap<String, Value>,
    /// True if the newer crawl was made before the older one, by its fetch times. Then there are no
    /// change rates.
    #[serde(skip)]
    pub is_backwards: bool,
}

/// Numbers of changed lines of an export.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct ExportLines {
    /// Number of lines in the new list only.
    pub added: u64,
    /// Number of lines in the old list only.
    pub removed: u64,
}

impl CompareSummary {
    pub(super) fn new(
        results: &ComparableResults,
        counts: &ChangeCounts,
        sites: &Sites,
        sites_changed: &StringTable,
        overlaps: Vec<(&'static str, CrawlOverlap)>,
        exports: Vec<(String, [u64; 2])>,
    ) -> CompareSummary {
        let mut change_counts: BTreeMap<String, u64> = BTreeMap::new();
        for what in sites_changed.iter().filter(|what| *what != "same") {
            *change_counts.entry(what.to_string()).or_default() += 1;
        }
        CompareSummary {
            pages_old: results.pages[0].rows(),
            pages_new: results.pages[1].rows(),
            pages: PageChange::ALL.into_iter().map(|what| (what.as_str(), counts.count(what))).collect(),
            gone: counts.why_gone.clone(),
            moved_same_text: counts.moved_same_text,
            sites: sites.0.len() as u64,
            sites_changed: change_counts,
            avoid_changed: counts.avoid.clone(),
            exports: exports
                .into_iter()
                .map(|(name, [added, removed])| (name, ExportLines { added, removed }))
                .collect(),
            patch: results.comparable.settings && !results.list_is_lost,
            overlap: overlaps.into_iter().collect(),
            more: BTreeMap::new(),
            beside: BTreeMap::new(),
            is_backwards: false,
        }
    }
}
