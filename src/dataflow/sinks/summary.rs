//! `summary.json`: what a run found, in the forms of the papers' tables. It has no time and no machine in it, so its bytes
//! are those of the answer alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::batch::BatchCounts;
use crate::clusters::giant_clusters::Giant;
use crate::clusters::second_look::SecondLook;
use crate::clusters::servers::ServerCounts;
use crate::pairs::apart::ApartCounts;
use crate::pairs::counts::OverlapCounts;
use crate::pairs::editions::EditionCounts;
use crate::pairs::given::GivenCounts;
use crate::pairs::minhash_pairs::MinhashCounts;
use crate::pairs::signatures::SignatureCounts;
use crate::pairs::simhash_pairs::SimhashCounts;
use crate::pairs::views::ViewCounts;
use crate::sinks::kept_before::KeptBefore;
use crate::sinks::largest::Largest;
use crate::sinks::pins::PinCounts;
use crate::sinks::resemblance::share;
use crate::sinks::url_rules::RuleCounts;
use crate::sinks::ways::Ways;
use webtwin_core::applications::keep::Why;

/// Records by what became of them; `read = kept + sum of rejected`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Records {
    /// Records read.
    pub read: u64,
    /// Pages kept.
    pub kept: u64,
    /// Records not kept, by reason.
    pub rejected: BTreeMap<String, u64>,
    /// Pages kept though something in them was mended, by reason.
    pub mended: BTreeMap<String, u64>,
    /// Inputs that end within a record, with the offset of that record.
    #[serde(default)]
    pub torn: BTreeMap<String, u64>,
    /// The same records by the bytes of the inputs that they take.
    #[serde(default)]
    pub bytes: RecordBytes,
}

/// Bytes of the inputs by what became of their records; `read = kept + rejected`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordBytes {
    /// All of them, compressed or not.
    pub read: u64,
    /// Those of pages that were kept, and what surrounds them.
    pub kept: u64,
    /// Those of records that were not kept and of lost ranges, estimated within compressed members.
    pub rejected: u64,
}

/// Pages by the number of replicas they have, themselves included: a bar of \[SGM98\] Figure 1.
///
/// The figure is not in our copy of the paper; its text names the bars 1, 2 and "between 10 and 100".
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    /// For example `5-9`.
    pub replicas: String,
    /// Pages with that many replicas.
    pub pages: u64,
    /// Their share of all pages.
    pub share: f64,
}

/// What a crawler may skip for one reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saving {
    /// Pages.
    pub pages: u64,
    /// Bytes of these pages as fetched.
    pub bytes: u64,
}

/// Pages to skip by the fraction of their chunks that the page which stays has (`avoid.contained`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkipContained {
    /// Pages with less than half of them.
    pub below_half: u64,
    /// Pages with less than four fifths, those with less than half among them.
    pub below_four_fifths: u64,
    /// Pages with less than all, those above among them.
    pub below_all: u64,
}

/// What a run found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Digest of the job.
    pub digest: String,
    /// Records by what became of them.
    pub records: Records,
    /// Pages kept, and their bytes as fetched.
    pub pages: Saving,
    /// Hosts.
    pub hosts: u64,
    /// Links within the crawl.
    pub links: u64,
    /// Replication by equal text.
    pub replication_exact: Vec<Bar>,
    /// Replication by trivial cluster.
    pub replication_similar: Vec<Bar>,
    /// Chunks and pairs on the way to similar pages.
    pub overlap: OverlapCounts,
    /// Simhashes and pairs, where similar pages are found by these.
    pub hamming: SimhashCounts,
    /// Signatures and pairs, where similar pages are found by these.
    pub signatures: SignatureCounts,
    /// Shingled pages and pairs, where similar pages are found by shingles.
    #[serde(default)]
    pub minhash: MinhashCounts,
    /// Outcome of the rows of `pairs.from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<GivenCounts>,
    /// Texts with equal titles, and pairs of views among them.
    #[serde(default)]
    pub views: ViewCounts,
    /// Pages that are named as editions in other languages, and pairs that were refused for that.
    #[serde(default)]
    pub editions: EditionCounts,
    /// What became of the pairs that a person has told apart, with `pairs.apart`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<ApartCounts>,
    /// Pairs that only their collections tell to be copies.
    #[serde(default)]
    pub second_look: SecondLook,
    /// Pairs of a page and its exact copy's centre.
    pub exact_pairs: u64,
    /// Trivial clusters of two pages or more.
    pub trivial_clusters: u64,
    /// Servers, how they overlap, and why pages have copies.
    pub servers: ServerCounts,
    /// Similar clusters of two collections or more.
    pub similar_clusters: u64,
    /// Their collections.
    pub collections: u64,
    /// Similar clusters all of whose collections are identical (\[CSG00\] Definition 7).
    pub identical_clusters: u64,
    /// Collections that are identical to another of their similar cluster (Definition 3).
    pub identical_collections: u64,
    /// Pages in collections.
    pub pages_in_collections: u64,
    /// Pages taken out of collections because they failed \[CSG00\] Definition 5.
    pub taken_out: u64,
    /// What a crawler may skip, in all.
    pub skip: Saving,
    /// The same as a share of all pages and bytes.
    pub skip_share_of_pages: f64,
    /// See above.
    pub skip_share_of_bytes: f64,
    /// The same by reason.
    pub skip_by_reason: BTreeMap<Why, Saving>,
    /// Pages to skip by how much of their text the page that stays contains.
    #[serde(default)]
    pub skip_contained: SkipContained,
    /// URL rules.
    #[serde(default)]
    pub url_rules: RuleCounts,
    /// What became of the pages that the earlier result kept, with `keep.sticky`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_before: Option<KeptBefore>,
    /// What became of the pages that a person has pinned, with `keep.pins`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pins: Option<PinCounts>,
    /// What a batch has found of earlier crawls, with `kind = "batch"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchCounts>,
    /// What becomes of the ways of a crawler that obeys the list.
    #[serde(default)]
    pub ways: Ways,
    /// URL prefixes that cover pages to skip.
    pub avoid_prefixes: u64,
    /// Similar clusters on the most hosts.
    pub largest_similar_clusters: Vec<Largest>,
    /// Trivial clusters on the most hosts.
    pub largest_trivial_clusters: Vec<Largest>,
    /// Trivial clusters of the most pages, where they are giant, with their weakest links.
    pub giant_trivial_clusters: Vec<Giant>,
}

const BARS: [(u64, &str); 8] =
    [(1, "1"), (2, "2"), (3, "3"), (4, "4"), (5, "5-9"), (10, "10-99"), (100, "100-999"), (1000, "1000 and more")];

/// Bars for groups of pages, given as (pages a group, groups); `pages` is the number of all pages, and those in no group
/// have one replica, themselves.
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
    fn every_page_stands_in_one_bar() {
        let bars = bars(&BTreeMap::from([(2, 3), (7, 1), (10, 1), (1000, 1)]), 2000);
        let pages: Vec<u64> = bars.iter().map(|bar| bar.pages).collect();
        assert_eq!(pages, [2000 - 1023, 6, 0, 0, 7, 10, 0, 1000]);
        assert_eq!(bars[1].share, 0.003);
    }
}
