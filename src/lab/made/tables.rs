//! `FPrint-DocID` tables at the scale of the papers, without HTML.
//!
//! Every page is a pure function of the parameters and its number. Part i of n can therefore be
//! made independently, and any number of workers makes the same rows. Pages are in clusters of
//! planted replicas, which are the truth with which a run is compared. All pages draw a part of
//! their chunks from one vocabulary with Zipf document frequencies (s = 1/2), so that pairs of
//! unrelated pages share chunks.
//!
//! | property | two lines, T = 25 | four lines, T = 15 | source |
//! |---|---|---|---|
//! | rows per page | 575 M / 24 M | 300 M / 24 M | \[SGM98\] Table 1, 8 bytes per row |
//! | pages with 1, 2, 10 to 100 exact copies, including themselves | 64, 18, 5 % | the same | section 3 |
//! | pages with no replica at the threshold | 52 % | 58 % | section 3; four lines: chosen for the savings |
//! | pages saved by exact copies, by overlap | 22 %, 33 % | 22 %, 29 % | section 3 |
//! | width of a fingerprint | 32 bits | 32 bits | section 2 |
//!
//! # Source
//! \[SGM98\] section 3, Table 1 and the description of Figure 1 in the text.
//!
//! # Deviations
//! - Figure 1 is missing from our copy of the paper. The bars that its text does not name are
//!   chosen to yield the savings.
//! - The papers do not describe how chunks repeat over unrelated pages. Here three rows in ten are
//!   drawn from a vocabulary of 0.8 chunks per page, and the number of chunks per page is
//!   exponentially distributed (with a long tail, cut off at sixteen times the mean).

use std::ops::Range;

use super::groups::GroupAssignment;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{FPrint, Page, splitmix64};
use webtwin_core::overlap::FPrintDocId;
use webtwin_synth::random::{Stream, key};

/// A chunking of \[SGM98\] section 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chunking {
    /// Two lines of text per chunk, T = 25.
    TwoLines,
    /// Four lines of text per chunk, T = 15.
    FourLines,
}

impl Chunking {
    /// Returns T, the minimum number of fingerprints that two similar pages share.
    pub fn threshold(self) -> u32 {
        match self {
            Chunking::TwoLines => 25,
            Chunking::FourLines => 15,
        }
    }

    /// Returns the number of rows of `FPrint-DocID` per thousand pages.
    pub fn rows_per_thousand(self) -> u64 {
        match self {
            Chunking::TwoLines => 23_958,
            Chunking::FourLines => 12_500,
        }
    }

    fn classes(self) -> &'static [Class] {
        match self {
            Chunking::TwoLines => &TWO_LINES,
            Chunking::FourLines => &FOUR_LINES,
        }
    }
}

/// Clusters of one shape: `copies` exact copies of each of `variants` versions of a page.
#[derive(Debug)]
struct Class {
    copies: u32,
    variants: u32,
    /// Fraction of all pages, per thousand.
    share: u32,
}

const fn class(copies: u32, variants: u32, share: u32) -> Class {
    Class { copies, variants, share }
}

/// Classes for two-line chunks. Of a thousand pages, 640 have no exact copy, 180 are in sets of
/// two, 130 in sets of three or four, 50 in sets of ten or more.
const TWO_LINES: [Class; 16] = [
    class(1, 1, 520),
    class(1, 2, 70),
    class(1, 3, 20),
    class(1, 5, 15),
    class(1, 12, 10),
    class(1, 40, 5),
    class(2, 1, 120),
    class(2, 2, 30),
    class(2, 5, 20),
    class(2, 10, 10),
    class(3, 1, 90),
    class(3, 2, 20),
    class(4, 3, 20),
    class(12, 1, 25),
    class(30, 1, 5),
    class(10, 6, 20),
];

/// Classes for four-line chunks. Fewer edited pages share enough chunks than with two lines.
const FOUR_LINES: [Class; 14] = [
    class(1, 1, 580),
    class(1, 2, 30),
    class(1, 3, 15),
    class(1, 5, 15),
    class(2, 1, 120),
    class(2, 2, 30),
    class(2, 5, 20),
    class(2, 10, 10),
    class(3, 1, 90),
    class(3, 2, 20),
    class(4, 3, 20),
    class(12, 1, 25),
    class(30, 1, 5),
    class(10, 6, 20),
];

/// Number of changed chunks of an edited version, per 16 chunks of a page.
const EDITED_IN_16: u64 = 1;

/// Number of chunks that are drawn from the vocabulary, per 256.
const COMMON_IN_256: u64 = 77;

/// Parameters of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableParams {
    /// Number of pages, at least 1000.
    pub pages: u32,
    /// Seed of the table. Different seeds yield different tables.
    pub seed: u64,
    /// Chunking, which determines T and the rows per page.
    pub chunking: Chunking,
    /// Width of a fingerprint in bits: 32 as in the papers, or 64.
    pub bits: u32,
}

/// Truth about a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageTruth {
    /// Number of the cluster, which is equal for replicas of each other.
    pub cluster: u32,
    /// Number of the version, which is equal within a cluster for exact copies.
    pub variant: u32,
}

/// A synthetic `FPrint-DocID` table.
#[derive(Debug, Clone)]
pub struct SyntheticTable {
    params: TableParams,
    groups: GroupAssignment,
    vocabulary: u64,
    /// Scale of the number of rows of pages without edited versions: rows × 2¹⁶ per unit of −log₂.
    scale: u64,
}

impl SyntheticTable {
    /// Plans the table of these parameters.
    ///
    /// # Errors
    /// Returns [`Error::Usage`] for fewer than 1000 pages, or another width than 32 or 64 bits.
    pub fn new(params: TableParams) -> Result<SyntheticTable> {
        if params.pages < 1000 || !matches!(params.bits, 32 | 64) {
            return Err(Error::Usage(
                "--scale: a table needs at least 1000 pages, and fingerprints of 32 or 64 bits".into(),
            ));
        }
        let classes = params.chunking.classes();
        let edited: u64 = classes.iter().filter(|class| class.variants > 1).map(|class| u64::from(class.share)).sum();
        let mean = params.chunking.rows_per_thousand();
        let edited_length = 1000 * shortest_edited(params.chunking) - 500 + mean / 2;
        let other_length = (mean * 1000 - edited * edited_length) / (1000 - edited);
        Ok(SyntheticTable {
            params,
            groups: GroupAssignment::new(
                params.pages,
                key(params.seed, &[1]),
                classes.iter().map(|class| (class.copies * class.variants, class.share)),
            ),
            vocabulary: (u64::from(params.pages) * 4 / 5).max(1),
            scale: scale(other_length - 500),
        })
    }

    /// Returns the number of pages in the table.
    pub fn pages(&self) -> u32 {
        self.params.pages
    }

    /// Returns the planted truth about a page.
    pub fn planted(&self, doc: Page) -> PageTruth {
        self.place(doc).1
    }

    /// Returns the fingerprint of the whole page, which is equal for exact copies.
    pub fn exact(&self, doc: Page) -> FPrint {
        let replica = self.planted(doc);
        key(self.params.seed, &[2, u64::from(replica.cluster), u64::from(replica.variant)])
    }

    /// Writes the fingerprints of a page into `fprints`, ascending and without repetitions.
    ///
    /// # Cost
    /// About 20 ns per row, most of it for the sort.
    pub fn fprints(&self, doc: Page, fprints: &mut Vec<FPrint>) {
        let (class, replica) = self.place(doc);
        let page = key(self.params.seed, &[3, u64::from(replica.cluster)]);
        let edits = key(page, &[u64::from(replica.variant)]);
        let vocabulary = self.params.seed ^ 0x766f_6361_6275_6c61;
        let edited = class.variants > 1;
        let (minimum, scale) = if edited {
            (shortest_edited(self.params.chunking), scale(self.params.chunking.rows_per_thousand() / 2))
        } else {
            (1, self.scale)
        };
        let rows =
            (minimum + minus_log2(splitmix64(page)) * scale / (1 << 32)).min(minimum + 16 * (scale >> 16).max(1));
        let narrow = 64 - self.params.bits;
        fprints.clear();
        let (mut chunks, mut edit_stream) = (Stream::new(page), Stream::new(edits));
        for _ in 0..rows {
            let mut chunk = chunks.draw();
            if edited {
                let random = edit_stream.draw();
                if random % 16 < EDITED_IN_16 {
                    chunk = random;
                }
            }
            if (chunk >> 8) % 256 < COMMON_IN_256 {
                let square = ((chunk >> 32) * (chunk >> 32)) >> 32;
                chunk = splitmix64(vocabulary ^ ((square * self.vocabulary) >> 32));
            }
            // The low bits have been used for the decisions above, and narrow fingerprints must be
            // uniform, so the bits are mixed once more.
            fprints.push(chunk.wrapping_mul(0xd6e8_feb8_6659_fd93) >> narrow);
        }
        fprints.sort_unstable();
        fprints.dedup();
    }

    /// Passes the rows of a range of pages to `row`, by page and then by fingerprint.
    pub fn rows(&self, pages: Range<u32>, mut row: impl FnMut(FPrintDocId)) {
        let mut fprints = Vec::new();
        for doc in pages.map(Page) {
            self.fprints(doc, &mut fprints);
            fprints.iter().for_each(|&fprint| row(FPrintDocId::new(fprint, doc)));
        }
    }

    /// Returns the numbers of the pages in share `part` of `parts`.
    pub fn part(&self, part: usize, parts: usize) -> Range<u32> {
        let start = |part: usize| (u64::from(self.params.pages) * part as u64 / parts as u64) as u32;
        start(part)..start(part + 1)
    }

    fn place(&self, doc: Page) -> (&'static Class, PageTruth) {
        let place = self.groups.place(self.groups.slot(doc));
        let class = &self.params.chunking.classes()[place.class];
        (class, PageTruth { cluster: place.first, variant: place.member / class.copies })
    }
}

/// Returns the number of rows of the shortest page that has edited versions. Two of its versions
/// still share about T + 20 %.
fn shortest_edited(chunking: Chunking) -> u64 {
    u64::from(chunking.threshold()) * 4 / 3
}

/// Returns the scale with which [`minus_log2`] has this mean, in thousandths of a row.
fn scale(mean_thousandths: u64) -> u64 {
    // The mean of minus_log2 is 3/2.
    mean_thousandths * (1 << 17) / 3000
}

/// Returns −log₂ of a uniform number × 2¹⁶, linear between powers of two: an exponential variate in
/// whole numbers. Its mean is 3/2.
fn minus_log2(uniform: u64) -> u64 {
    let zeros = u64::from((uniform | 1).leading_zeros());
    let fraction = (uniform | 1) << zeros << 1 >> 48;
    (zeros << 16) + (1 << 16) - fraction
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn table(pages: u32, chunking: Chunking) -> SyntheticTable {
        SyntheticTable::new(TableParams { pages, seed: 7, chunking, bits: 32 }).unwrap()
    }

    /// Returns the number of pages in clusters of each size, and the pages saved in tenths of a per
    /// cent.
    fn figure_1(pages: u32, cluster: impl Fn(Page) -> (u32, u32)) -> (BTreeMap<u32, u32>, u32) {
        let mut sizes = BTreeMap::new();
        Page::first(pages as usize).for_each(|doc| *sizes.entry(cluster(doc)).or_insert(0u32) += 1);
        let mut bars = BTreeMap::new();
        sizes.values().for_each(|&size| *bars.entry(size).or_insert(0) += size);
        bars.values_mut().for_each(|pages_of| *pages_of = (*pages_of * 1000 + pages / 2) / pages);
        (bars, (pages - sizes.len() as u32) * 1000 / pages)
    }

    /// \[SGM98\] section 3: 64 %, 18 % and 5 % for exact copies; 52 % for two lines; savings 22, 29
    /// and 33 %.
    #[test]
    fn planted_replicas_have_the_published_histogram() {
        for (chunking, alone_share, saved_share) in [(Chunking::TwoLines, 520, 327), (Chunking::FourLines, 580, 290)] {
            let table = table(200_000, chunking);
            let (exact, saved_exact) = figure_1(200_000, |doc| {
                let replica = table.planted(doc);
                (replica.cluster, replica.variant)
            });
            assert!(exact[&1].abs_diff(640) <= 1 && exact[&2].abs_diff(180) <= 1, "{exact:?}");
            assert!(exact.range(10..100).map(|(_, share)| share).sum::<u32>().abs_diff(50) <= 2, "{exact:?}");
            assert!(saved_exact.abs_diff(224) <= 5, "{saved_exact}");
            let (near_histogram, saved_near) = figure_1(200_000, |doc| (table.planted(doc).cluster, 0));
            assert!(near_histogram[&1].abs_diff(alone_share) <= 1, "{near_histogram:?}");
            assert!(saved_near.abs_diff(saved_share) <= 5, "{saved_near}");
        }
    }

    #[test]
    fn rows_a_page_are_those_of_table_1() {
        for (chunking, want) in [(Chunking::TwoLines, 23.958), (Chunking::FourLines, 12.5)] {
            let table = table(100_000, chunking);
            let mut rows = 0u64;
            table.rows(0..100_000, |_| rows += 1);
            let mean = rows as f64 / 1e5;
            assert!((mean / want - 1.0).abs() < 0.01, "{mean} rows a page for {want}");
        }
    }

    #[test]
    fn parts_make_the_rows_of_the_whole() {
        let table = table(1_000, Chunking::TwoLines);
        let (mut complete, mut parts) = (Vec::new(), Vec::new());
        table.rows(0..1_000, |row| complete.push(row));
        (0..7).for_each(|part| table.rows(table.part(part, 7), |row| parts.push(row)));
        assert_eq!(complete, parts);
        assert!(complete.windows(2).all(|rows| (rows[0].doc, rows[0].fprint()) < (rows[1].doc, rows[1].fprint())));
    }

    #[test]
    fn planted_replicas_share_chunks_and_exact_copies_all_of_them() {
        let table = table(20_000, Chunking::TwoLines);
        let mut clusters: BTreeMap<u32, Vec<Page>> = BTreeMap::new();
        Page::first(20_000).for_each(|doc| clusters.entry(table.planted(doc).cluster).or_default().push(doc));
        let (mut n_similar, mut pairs) = (0, 0);
        for docs in clusters.values().filter(|docs| docs.len() > 1) {
            let (mut left, mut right) = (Vec::new(), Vec::new());
            table.fprints(docs[0], &mut left);
            for &doc in &docs[1..] {
                table.fprints(doc, &mut right);
                if table.exact(doc) == table.exact(docs[0]) {
                    assert_eq!(left, right);
                } else {
                    pairs += 1;
                    let n_shared = left.iter().filter(|fprint| right.binary_search(fprint).is_ok()).count();
                    n_similar += usize::from(n_shared >= 25);
                }
            }
        }
        assert!(n_similar * 100 > pairs * 95, "{n_similar} of {pairs} planted pairs are similar");
    }

    #[test]
    fn document_frequencies_fall_with_the_square_root_of_the_rank() {
        let table = table(100_000, Chunking::FourLines);
        let mut sizes: BTreeMap<u32, u32> = BTreeMap::new();
        Page::first(100_000).for_each(|doc| *sizes.entry(table.planted(doc).cluster).or_default() += 1);
        let mut frequency: BTreeMap<FPrint, u32> = BTreeMap::new();
        let (mut rows, mut fprints) = (0u32, Vec::new());
        for doc in Page::first(100_000).filter(|&doc| sizes[&table.planted(doc).cluster] == 1) {
            table.fprints(doc, &mut fprints);
            rows += fprints.len() as u32;
            fprints.iter().for_each(|&fprint| *frequency.entry(fprint).or_default() += 1);
        }
        let mut counts: Vec<u32> = frequency.into_values().collect();
        counts.sort_unstable_by_key(|&count| std::cmp::Reverse(count));
        // Of M draws from V ranks, rank r gets M / (2 sqrt(V r)). Replicas draw together, so only
        // single pages are counted.
        let expected = |rank: f64| 0.3 * f64::from(rows) / 2.0 / (80_000.0 * rank).sqrt();
        for rank in [30, 100, 300] {
            let ratio = f64::from(counts[rank]) / expected(rank as f64);
            assert!((0.7..1.4).contains(&ratio), "rank {rank}: {} for {}", counts[rank], expected(rank as f64));
        }
    }
}
