//! `summary.json`: results of a run in the form of the papers' tables. It contains no times and no
//! machine names, so its bytes depend only on the results.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::batch::BatchCounts;
use crate::clusters::context_pairs::ContextPassCounts;
use crate::clusters::giant_clusters::GiantCluster;
use crate::clusters::servers::ServerCounts;
use crate::pairs::apart::SeparationCounts;
use crate::pairs::counts::OverlapCounts;
use crate::pairs::editions::EditionCounts;
use crate::pairs::given::GivenCounts;
use crate::pairs::minhash_pairs::MinhashCounts;
use crate::pairs::signatures::SignatureCounts;
use crate::pairs::simhash_pairs::SimhashCounts;
use crate::pairs::views::ViewCounts;
use crate::sinks::kept_before::KeepChanges;
use crate::sinks::largest::LargestFinding;
use crate::sinks::pins::PinCounts;
use crate::sinks::reachability::ReachabilityCounts;
use crate::sinks::resemblance::share;
use crate::sinks::url_rules::RuleCounts;
use webtwin_core::applications::keep::SkipReason;

/// Counts of records by outcome; `read = kept + sum of rejected`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordTotals {
    /// Records read.
    pub read: u64,
    /// Pages kept.
    pub kept: u64,
    /// Records not kept, by reason.
    pub rejected: BTreeMap<String, u64>,
    /// Pages that were kept after repairs, by the reason of the repair.
    #[serde(rename = "mended")]
    pub repaired: BTreeMap<String, u64>,
    /// Inputs that end within a record, with the offset of that record.
    #[serde(default)]
    pub torn: BTreeMap<String, u64>,
    /// Bytes of the inputs by the outcome of their records.
    #[serde(default)]
    pub bytes: RecordBytes,
}

/// Bytes of the inputs by the outcome of their records; `read = kept + rejected`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordBytes {
    /// All bytes of the inputs, as stored, compressed or not.
    pub read: u64,
    /// Bytes of pages that were kept, and of what surrounds them.
    pub kept: u64,
    /// Bytes of records that were not kept and of lost ranges, estimated within compressed members.
    pub rejected: u64,
}

/// Pages by the number of their replicas, including themselves: a bar of \[SGM98\] Figure 1.
///
/// The figure is missing in the copy of the paper that was available. The text of the paper names
/// the bars 1, 2 and "between 10 and 100".
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    /// Number of replicas, such as `5-9`.
    pub replicas: String,
    /// Pages with this number of replicas.
    pub pages: u64,
    /// Fraction of all pages.
    pub share: f64,
}

/// Pages and bytes that a crawler may skip for one reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkipSavings {
    /// Number of pages.
    pub pages: u64,
    /// Bytes of these pages as fetched.
    pub bytes: u64,
}

/// Pages to skip by the fraction of their chunks that the kept page contains (`avoid.contained`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainmentBar {
    /// Pages with less than half of their chunks in the kept page.
    pub below_half: u64,
    /// Pages with less than four fifths, including those with less than half.
    pub below_four_fifths: u64,
    /// Pages with less than all, including those above.
    pub below_all: u64,
}

/// Results of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Digest of the job.
    pub digest: String,
    /// Records by outcome.
    pub records: RecordTotals,
    /// Pages kept, and their bytes as fetched.
    pub pages: SkipSavings,
    /// Number of hosts.
    pub hosts: u64,
    /// Links within the crawl.
    pub links: u64,
    /// Replication by equal text.
    pub replication_exact: Vec<Bar>,
    /// Replication by trivial cluster.
    pub replication_similar: Vec<Bar>,
    /// Counts of chunks and pairs on the way to similar pages.
    pub overlap: OverlapCounts,
    /// Counts of simhashes and pairs, if similar pages are found by simhashes.
    pub hamming: SimhashCounts,
    /// Counts of signatures and pairs, if similar pages are found by signatures.
    pub signatures: SignatureCounts,
    /// Counts of pages with shingles and of pairs, if similar pages are found by shingles.
    #[serde(default)]
    pub minhash: MinhashCounts,
    /// Counts of the rows of `pairs.from` by outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<GivenCounts>,
    /// Counts of texts with equal titles, and of pairs of views among them.
    #[serde(default)]
    pub views: ViewCounts,
    /// Counts of pages that are named as editions in other languages, and of pairs that were
    /// refused for this.
    #[serde(default)]
    pub editions: EditionCounts,
    /// Outcome for the pairs of pages that a person marked as different, with `pairs.apart`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<SeparationCounts>,
    /// Counts of the context pass, which finds pairs that only their collections support.
    #[serde(default)]
    pub second_look: ContextPassCounts,
    /// Pairs of a page and its exact copy's centre.
    pub exact_pairs: u64,
    /// Trivial clusters of two or more pages.
    pub trivial_clusters: u64,
    /// Counts of servers, of their overlap, and of the reasons for copies.
    pub servers: ServerCounts,
    /// Similar clusters of two or more collections.
    pub similar_clusters: u64,
    /// Collections in all similar clusters.
    pub collections: u64,
    /// Similar clusters all of whose collections are identical (\[CSG00\] Definition 7).
    pub identical_clusters: u64,
    /// Collections that are identical to another collection of their similar cluster (Definition
    /// 3).
    pub identical_collections: u64,
    /// Pages in collections.
    pub pages_in_collections: u64,
    /// Pages that were removed from collections because they failed \[CSG00\] Definition 5.
    pub taken_out: u64,
    /// All pages and bytes that a crawler may skip.
    pub skip: SkipSavings,
    /// Pages to skip as a fraction of all pages.
    pub skip_share_of_pages: f64,
    /// Bytes to skip as a fraction of all bytes.
    pub skip_share_of_bytes: f64,
    /// Pages and bytes to skip by reason.
    pub skip_by_reason: BTreeMap<SkipReason, SkipSavings>,
    /// Pages to skip by the fraction of their text that the kept page contains.
    #[serde(default)]
    pub skip_contained: ContainmentBar,
    /// Counts of URL rules.
    #[serde(default)]
    pub url_rules: RuleCounts,
    /// Outcome for the pages that the earlier result kept, with `keep.sticky`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_before: Option<KeepChanges>,
    /// Outcome for the pages that a person has pinned, with `keep.pins`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pins: Option<PinCounts>,
    /// Counts of a batch, with `kind = "batch"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchCounts>,
    /// Effect of the avoid list on the paths of a crawler that obeys it.
    #[serde(default)]
    pub ways: ReachabilityCounts,
    /// URL prefixes that cover pages to skip.
    pub avoid_prefixes: u64,
    /// Similar clusters on the most hosts.
    pub largest_similar_clusters: Vec<LargestFinding>,
    /// Trivial clusters on the most hosts.
    pub largest_trivial_clusters: Vec<LargestFinding>,
    /// Largest giant trivial clusters, with their weakest links.
    pub giant_trivial_clusters: Vec<GiantCluster>,
}

const BARS: [(u64, &str); 8] =
    [(1, "1"), (2, "2"), (3, "3"), (4, "4"), (5, "5-9"), (10, "10-99"), (100, "100-999"), (1000, "1000 and more")];

/// Returns the bars for groups of pages, given as (pages of a group, number of groups). `pages` is
/// the number of all pages. Pages in no group have one replica, themselves.
pub fn bars(groups: &BTreeMap<u64, u64>, pages: u64) -> Vec<Bar> {
    let mut bars: Vec<Bar> =
        BARS.iter().map(|(_, name)| Bar { replicas: name.to_string(), ..Bar::default() }).collect();
    let mut grouped = 0;
    for (&size, &count) in groups.iter().filter(|&(&size, _)| size > 1) {
        let bar = BARS.partition_point(|&(least, _)| least <= size) - 1;
        bars[bar].pages += size * count;
        grouped += size * count;
    }
    bars[0].pages = pages - grouped;
    bars.iter_mut().for_each(|bar| bar.share = share(bar.pages, pages));
    bars
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_in_one_bar() {
        let bars = bars(&BTreeMap::from([(2, 3), (7, 1), (10, 1), (1000, 1)]), 2000);
        let pages: Vec<u64> = bars.iter().map(|bar| bar.pages).collect();
        assert_eq!(pages, [2000 - 1023, 6, 0, 0, 7, 10, 0, 1000]);
        assert_eq!(bars[1].share, 0.003);
    }
}
