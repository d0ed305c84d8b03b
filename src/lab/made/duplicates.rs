//! Synthetic collections of documents with duplicates as counted in \[PBZ06\]: shingle paragraphs
//! and links, without HTML.
//!
//! The following is planted for each of the three collections of the paper:
//!
//! | planted property | source |
//! |---|---|
//! | clusters and duplicates, per thousand documents | Table 2 |
//! | 63 % of the clusters have two documents, 95.7 % ten or fewer; the rest follow a power law that yields the remaining duplicates | section 4.1 |
//! | in 2004, nine clusters that hold 7.1 % of the documents | section 4.1 |
//! | clusters within the connected part, within the rest, and in both; how the latter are divided; unique documents in the connected part | solved from Tables 4 to 6 |
//! | clusters of two are divided less often than others; those of more than 100 always, with most documents in the rest | section 4.1 |
//! | documents that share 90, 70 and 50 % with another without being duplicates | Table 3 |
//!
//! The growth over the steps and the estimates are not planted, so they are findings of a run.
//!
//! The connected part has a core, in which trees of links lead to all pages and back, and out
//! pages. The other part has in pages, tendrils and islands. Four documents in ten begin with
//! boilerplate: a shingle paragraph from a vocabulary with Zipf document frequencies (s = 1/2). One
//! unique document in two thousand repeats the paragraphs of another: a false match.
//!
//! # Deviations
//! - The sizes of clusters, apart from those in the text, are missing from our copy of the paper
//!   (Figures 2 to 4).
//! - The links of the Chilean web are unknown. Only the two parts come from the paper.

use std::ops::Range;

use super::groups::GroupAssignment;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{FPrint, Page};
use webtwin_core::study::paragraphs::mark;
use webtwin_synth::random::{Stream, key};

/// One of the collections of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Year {
    /// The collection of August 2003.
    Y2003,
    /// The collection of January 2004.
    Y2004,
    /// The collection of February 2005.
    Y2005,
}

/// Planted quantities, per million documents or per thousand clusters and unique documents.
struct Planted {
    clusters: u64,
    duplicates: u64,
    /// Number of documents of each giant cluster.
    giants: &'static [u64],
    connected_clusters: u64,
    disconnected_clusters: u64,
    /// Number of documents in the connected part, per thousand of the third and later documents of
    /// a divided cluster of up to [`LARGE_SIZE`] documents.
    connected_members: u64,
    connected_unique: u64,
    /// Number of near-duplicates at 90, 70 and 50 %, each without the previous ones.
    near_counts: [u64; 3],
}

impl Year {
    /// Returns the number of documents of the collection (Table 2).
    pub fn documents(self) -> u64 {
        match self {
            Year::Y2003 => 2_067_278,
            Year::Y2004 => 2_033_113,
            Year::Y2005 => 2_174_520,
        }
    }

    fn figures(self) -> Planted {
        match self {
            Year::Y2003 => Planted {
                clusters: 121_700,
                duplicates: 389_081,
                giants: &[],
                connected_clusters: 329,
                disconnected_clusters: 282,
                connected_members: 360,
                connected_unique: 603,
                near_counts: [19_000, 53_000, 67_000],
            },
            Year::Y2004 => Planted {
                clusters: 131_034,
                duplicates: 430_889,
                giants: &[10_600, 10_400, 7_400, 7_300, 7_200, 7_100, 7_100, 7_000, 6_900],
                connected_clusters: 407,
                disconnected_clusters: 240,
                connected_members: 400,
                connected_unique: 689,
                near_counts: [14_000, 34_000, 55_000],
            },
            Year::Y2005 => Planted {
                clusters: 117_544,
                duplicates: 357_914,
                giants: &[],
                connected_clusters: 447,
                disconnected_clusters: 184,
                connected_members: 460,
                connected_unique: 719,
                near_counts: [12_000, 62_000, 67_000],
            },
        }
    }
}

/// Number of clusters with up to this many documents, per thousand. Larger clusters follow the
/// power law.
const CLUSTER_SIZES: [(u32, u64); 9] =
    [(2, 630), (3, 797), (4, 867), (5, 903), (6, 924), (7, 937), (8, 946), (9, 952), (10, 957)];

/// Size above which a cluster is always divided.
const LARGE_SIZE: u32 = 100;

/// Number of documents in the connected part, per thousand of the third and later documents of such
/// a cluster.
const CONNECTED_OF_LARGE: u64 = 120;

/// Frequency with which clusters are divided, in thousandths of the mean: for clusters of two
/// documents, and for larger ones.
const DIVISION_RATES: [u64; 2] = [800, 1340];

/// Number of pages of an island.
const ISLAND: u32 = 12;

/// A synthetic collection, which takes 17 bytes per document.
#[derive(Debug)]
pub struct SyntheticCollection {
    year: Year,
    seed: u64,
    /// Bijection of documents and slots. The documents of a cluster have adjacent slots, and unique
    /// documents the last ones.
    slots: GroupAssignment,
    /// First slot of each cluster, and of the unique documents.
    starts: Vec<u32>,
    /// Documents of the connected part, and documents of the other part.
    parts: [Vec<Page>; 2],
    /// Index of each document in its part.
    places: Vec<u32>,
    /// True for each document in the other part.
    disconnected: Vec<bool>,
}

impl SyntheticCollection {
    /// Plans a collection. Different seeds yield different collections.
    ///
    /// # Errors
    /// Returns [`Error::Usage`] for fewer than 10,000 documents.
    pub fn new(year: Year, documents: u32, seed: u64) -> Result<SyntheticCollection> {
        if documents < 10_000 {
            return Err(Error::Usage("--scale: a made-up collection needs at least 10000 documents".into()));
        }
        let mut starts = vec![0];
        for size in sizes(&year.figures(), u64::from(documents)) {
            starts.push(starts[starts.len() - 1] + size);
        }
        let slots = GroupAssignment::new(documents, key(seed, &[1]), [(1, 1000)].into_iter());
        let mut collection = SyntheticCollection {
            year,
            seed,
            slots,
            starts,
            parts: [Vec::new(), Vec::new()],
            places: Vec::with_capacity(documents as usize),
            disconnected: Vec::with_capacity(documents as usize),
        };
        for document in Page::first(documents as usize) {
            let disconnected = !collection.is_connected(collection.slots.slot(document));
            let part = &mut collection.parts[usize::from(disconnected)];
            collection.places.push(part.len() as u32);
            part.push(document);
            collection.disconnected.push(disconnected);
        }
        Ok(collection)
    }

    /// Returns the number of documents in both parts.
    pub fn documents(&self) -> u32 {
        self.slots.pages()
    }

    /// Returns the numbers of the documents in share `part` of `parts`.
    pub fn part(&self, part: usize, parts: usize) -> Range<u32> {
        let start = |part: usize| (u64::from(self.documents()) * part as u64 / parts as u64) as u32;
        start(part)..start(part + 1)
    }

    /// Returns the number of the cluster of a document. It is equal exactly for documents with
    /// equal paragraphs.
    pub fn cluster(&self, document: Page) -> u32 {
        self.first_slot(self.slots.slot(document))
    }

    /// True if a crawl from the core reaches the document.
    pub fn is_reached(&self, document: Page) -> bool {
        !self.disconnected[document]
    }

    fn first_unique(&self) -> u32 {
        self.starts[self.starts.len() - 1]
    }

    /// Returns the first slot of the cluster of a slot, or the slot itself for a unique document.
    fn first_slot(&self, slot: u32) -> u32 {
        self.cluster_bounds(slot).map_or(slot, |cluster| cluster[0])
    }

    /// Returns the first slot of the cluster of a slot, and that of the next cluster; `None` for a
    /// unique document.
    fn cluster_bounds(&self, slot: u32) -> Option<&[u32]> {
        let next = self.starts.partition_point(|&start| start <= slot);
        self.starts.get(next - 1..=next)
    }

    fn is_connected(&self, slot: u32) -> bool {
        let figures = self.year.figures();
        let lot = |of: u64, slot: u32| Stream::new(key(self.seed, &[of, u64::from(slot)])).below(1000);
        let Some(&[first, end]) = self.cluster_bounds(slot) else { return lot(2, slot) < figures.connected_unique };
        let size = end - first;
        let n_clusters = figures.connected_clusters + figures.disconnected_clusters;
        let n_divided = (1000 - n_clusters) * DIVISION_RATES[usize::from(size > 2)] / 1000;
        if size <= LARGE_SIZE && lot(2, first) >= n_divided {
            return lot(8, first) * n_clusters < figures.connected_clusters * 1000;
        }
        let members = if size > LARGE_SIZE { CONNECTED_OF_LARGE } else { figures.connected_members };
        match slot - first {
            0 => true,
            1 => false,
            _ => lot(3, slot) < members,
        }
    }

    /// Writes the marks of the shingle paragraphs of a document into `marks`, ascending.
    pub fn marks(&self, document: Page, marks: &mut Vec<FPrint>) {
        let slot = self.slots.slot(document);
        let first = self.first_slot(slot);
        self.paragraphs(first, marks);
        if slot >= self.first_unique() {
            self.edit(slot, marks);
        }
        mark(marks);
    }

    /// Writes the shingle paragraphs of a cluster, or of a unique document before it is edited.
    fn paragraphs(&self, first: u32, paragraphs: &mut Vec<FPrint>) {
        let mut numbers = Stream::new(key(self.seed, &[4, u64::from(first)]));
        let count = 3 + numbers.below(6) + numbers.below(6) + numbers.below(6);
        paragraphs.clear();
        paragraphs.extend((0..count).map(|_| numbers.draw()));
        if numbers.below(10) < 4 {
            let vocabulary = u64::from(self.documents()) / 100;
            let draw = numbers.draw() >> 32;
            paragraphs[0] = key(self.seed, &[5, (((draw * draw) >> 32) * vocabulary) >> 32]);
        }
    }

    /// Makes some unique documents near-duplicates of a document in a cluster, and a few of them
    /// false matches.
    fn edit(&self, slot: u32, paragraphs: &mut Vec<FPrint>) {
        let mut numbers = Stream::new(key(self.seed, &[6, u64::from(slot)]));
        let figures = self.year.figures();
        let unique = 1_000_000 - figures.clusters - figures.duplicates;
        let lot = numbers.below(unique);
        let level = (0..3).find(|&level| lot < figures.near_counts[..=level].iter().sum());
        let Some(level) = level else {
            if numbers.below(2000) == 0 {
                // The copied document is the one before it, so no two documents copy the same one.
                self.paragraphs(self.first_slot(slot - 1), paragraphs);
                let half = paragraphs.len().div_ceil(2);
                (half..paragraphs.len()).for_each(|at| paragraphs[at] = paragraphs[at - half]);
            }
            return;
        };
        // A document of ten paragraphs is needed so that nine of them can be equal.
        for _ in 0..16 {
            let cluster = numbers.below(self.starts.len() as u64 - 1) as usize;
            self.paragraphs(self.starts[cluster], paragraphs);
            if paragraphs.len() >= 10 {
                break;
            }
        }
        let count = paragraphs.len();
        // The first paragraph may be boilerplate, so it is never replaced.
        let n_edits = [count / 10, count * 3 / 10, count / 2][level].max(1);
        paragraphs[count - n_edits..].iter_mut().for_each(|paragraph| *paragraph = numbers.draw());
    }

    /// Writes the documents to which a document links into `links`, ascending, without repetitions
    /// and without the document itself.
    pub fn links(&self, document: Page, links: &mut Vec<Page>) {
        let mut numbers = Stream::new(key(self.seed, &[7, u64::from(document)]));
        let [connected, disconnected] = &self.parts;
        let core = connected.len() as u32 * 3 / 5;
        let place = self.places[document];
        links.clear();
        if self.disconnected[document] {
            // In pages, tendrils, islands.
            let (in_end, tendrils_end) = (disconnected.len() as u32 * 2 / 5, disconnected.len() as u32 * 7 / 10);
            if place < in_end {
                let to_core = (0..2).map(|_| connected[numbers.below(u64::from(core)) as usize]);
                links.extend(to_core);
                links.extend(
                    (in_end + place..tendrils_end).step_by(in_end as usize).map(|at| disconnected[at as usize]),
                );
            }
            let end = if place < in_end { in_end } else { tendrils_end };
            if place < tendrils_end {
                let later_pages = (0..4).map(|_| place + numbers.below(u64::from(end - place)) as u32);
                links.extend(later_pages.map(|at| disconnected[at as usize]));
            } else {
                let first = tendrils_end + (place - tendrils_end) / ISLAND * ISLAND;
                let size = ISLAND.min(disconnected.len() as u32 - first);
                links.extend((0..6).map(|_| disconnected[(first + numbers.below(u64::from(size)) as u32) as usize]));
            }
        } else if place < core {
            let tree = [place.saturating_sub(1) / 3, 3 * place + 1, 3 * place + 2, 3 * place + 3];
            links.extend(tree.into_iter().filter(|&at| at < core).map(|at| connected[at as usize]));
            links
                .extend((core + place..connected.len() as u32).step_by(core as usize).map(|at| connected[at as usize]));
            links.extend((0..4).map(|_| connected[numbers.below(u64::from(core)) as usize]));
        } else {
            let rest = connected.len() as u64 - u64::from(place);
            links.extend((0..6).map(|_| connected[(u64::from(place) + numbers.below(rest)) as usize]));
        }
        links.sort_unstable();
        links.dedup();
        links.retain(|&link| link != document);
    }
}

/// Returns the number of documents of each cluster: giants, the power law, small ones.
fn sizes(figures: &Planted, documents: u64) -> Vec<u32> {
    let share_of = |share: u64, whole: u64| whole * share / 1_000_000;
    let clusters = share_of(figures.clusters, documents);
    let giants: Vec<u32> = figures.giants.iter().map(|&share| share_of(share, documents) as u32).collect();
    let mut small: Vec<u32> = Vec::new();
    for (size, share) in CLUSTER_SIZES {
        small.resize((clusters * share / 1000) as usize, size);
    }
    let other_documents: u64 = giants.iter().chain(&small).map(|&size| u64::from(size)).sum();
    let left = (share_of(figures.duplicates, documents) + clusters).saturating_sub(other_documents);
    let count = clusters.saturating_sub((giants.len() + small.len()) as u64);
    // Cluster j of the power law has 10.5 ((j + 1/2) / count)^-s documents. The exponent s is found
    // by bisection, so that these clusters have the remaining documents.
    let law = |s: f64| (0..count).map(move |j| ((10.5 * ((j as f64 + 0.5) / count as f64).powf(-s)) as u32).max(11));
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..30 {
        let middle = (low + high) / 2.0;
        let sum: u64 = law(middle).map(u64::from).sum();
        if sum > left { high = middle } else { low = middle }
    }
    small.reverse();
    giants.into_iter().chain(law(low)).chain(small).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use webtwin_core::study::bow_tie::{BowTiePlace, WebGraph, bow_tie};

    const YEARS: [Year; 3] = [Year::Y2003, Year::Y2004, Year::Y2005];

    /// Tables 2 and 6, and section 4.1: "95.7% of the clusters have ten or less documents", "about
    /// 63% of the clusters".
    #[test]
    fn clusters_are_those_of_the_paper() {
        for (year, duplicates, clusters) in
            [(Year::Y2003, 0.389, 0.1217), (Year::Y2004, 0.431, 0.131), (Year::Y2005, 0.358, 0.1175)]
        {
            for documents in [100_000u64, 1_000_000] {
                let sizes = sizes(&year.figures(), documents);
                let n_documents: u64 = sizes.iter().map(|&size| u64::from(size)).sum();
                let count = sizes.len() as f64;
                let n = documents as f64;
                assert!(
                    ((n_documents as f64 - count) / n - duplicates).abs() < 0.002,
                    "{year:?} {}",
                    (n_documents as f64 - count) / n
                );
                assert!((count / n - clusters).abs() < 0.0005);
                let pair_share = sizes.iter().filter(|&&size| size == 2).count() as f64 / count;
                let ten = sizes.iter().filter(|&&size| size <= 10).count() as f64 / count;
                assert!((pair_share - 0.63).abs() < 0.002 && (ten - 0.957).abs() < 0.002, "{pair_share} {ten}");
            }
        }
    }

    #[test]
    fn equal_clusters_have_equal_paragraphs_and_no_others() {
        let collection = SyntheticCollection::new(Year::Y2005, 20_000, 3).unwrap();
        let (mut sizes_by_marks, mut marks): (BTreeMap<Vec<FPrint>, u32>, _) = (BTreeMap::new(), Vec::new());
        let mut clusters = BTreeMap::new();
        for document in Page::first(20_000) {
            collection.marks(document, &mut marks);
            assert!(marks.len() >= 3 && marks.is_sorted());
            let cluster = collection.cluster(document);
            assert_eq!(*sizes_by_marks.entry(marks.clone()).or_insert(cluster), cluster);
            assert_eq!(clusters.entry(cluster).or_insert_with(|| marks.clone()), &marks);
        }
    }

    /// Section 4.1: "the connected components represent 51.6%, 56.8% and 63.9%".
    #[test]
    fn a_crawl_from_the_core_reaches_the_connected_part_and_no_more() {
        for (year, connected) in YEARS.into_iter().zip([0.516, 0.568, 0.639]) {
            let collection = SyntheticCollection::new(year, 20_000, 3).unwrap();
            let (mut all_links, mut links) = (Vec::new(), Vec::new());
            for document in Page::first(20_000) {
                collection.links(document, &mut links);
                all_links.extend(links.iter().map(|&link| [document, link]));
            }
            let (forwards, backward) =
                (WebGraph::new(20_000, &all_links, false), WebGraph::new(20_000, &all_links, true));
            let core = forwards.core();
            let reached_pages = forwards.reached(core.iter().copied());
            assert!(
                Page::first(20_000).all(|document| reached_pages.contains(document) == collection.is_reached(document))
            );
            let share = reached_pages.count() as f64 / 2e4;
            assert!((share - connected).abs() < 0.015, "{year:?}: {share}");
            let places = bow_tie(&all_links, &forwards, &backward, &core);
            for place in
                [BowTiePlace::Core, BowTiePlace::In, BowTiePlace::Out, BowTiePlace::Tendril, BowTiePlace::Disconnected]
            {
                assert!(places.iter().filter(|&&other| other == place).count() > 1000, "{place:?}");
            }
        }
    }
}
