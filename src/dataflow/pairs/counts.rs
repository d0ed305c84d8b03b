//! Counters of the steps that lead to the Overlap table.

use serde::{Deserialize, Serialize};

use super::given::GivenCounts;
use super::minhash_pairs::MinhashCounts;
use super::signatures::SignatureCounts;
use super::simhash_pairs::SimhashCounts;
use super::views::ViewCounts;
use webtwin_core::overlap::filter::ChunkVerdict;

/// Counters of the steps that lead to similar pairs, by similarity measure.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct PairCounts {
    /// Counters of shared chunks, of this worker only.
    pub overlap: OverlapCounts,
    /// Counters of simhashes, over all workers. The counters below are over all workers, too.
    pub hamming: SimhashCounts,
    /// Counters of signatures of content and hyperlinks.
    pub signatures: SignatureCounts,
    /// Counters of shingles.
    pub minhash: MinhashCounts,
    /// Counters of given pairs.
    pub given: GivenCounts,
    /// Counters of views of one page.
    pub views: ViewCounts,
}

/// Counters of all-pairs overlap on this worker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverlapCounts {
    /// Rows of `FPrint-DocID`.
    pub tuples: u64,
    /// Chunks that are site boilerplate.
    pub chunks: u64,
    /// Rows of the boilerplate chunks.
    pub template_chunks: u64,
    /// Chunks on too many pages.
    pub template_tuples: u64,
    /// Rows of the chunks on too many pages.
    pub frequent_chunks: u64,
    /// Rows of these.
    pub frequent_tuples: u64,
    /// Pairs of pages that share a counting chunk, once for each such chunk.
    pub emitted: u64,
    /// Pairs that are similar.
    pub similar: u64,
    /// Similar pairs that the guard removed.
    pub guarded: u64,
    /// Pages with chunks of which none counts. Determined only if chunks of pages are counted.
    #[serde(default)]
    pub emptied: u64,
}

impl OverlapCounts {
    /// Counts a chunk on the given number of pages, of which `centres` are not exact copies.
    pub fn add_chunk(&mut self, verdict: ChunkVerdict, pages: usize, centres: usize) {
        let (pages, centres) = (pages as u64, centres as u64);
        self.tuples += pages;
        self.chunks += 1;
        match verdict {
            ChunkVerdict::Counts => self.emitted += centres * centres.saturating_sub(1) / 2,
            ChunkVerdict::Template => {
                self.template_chunks += 1;
                self.template_tuples += pages;
            }
            ChunkVerdict::Frequent => {
                self.frequent_chunks += 1;
                self.frequent_tuples += pages;
            }
        }
    }

    /// Counts further rows of a boilerplate chunk that has already been counted.
    pub fn add_template_rows(&mut self, pages: u64) {
        self.tuples += pages;
        self.template_tuples += pages;
    }

    fn combine_each(&self, other: &OverlapCounts, combine: impl Fn(u64, u64) -> u64) -> OverlapCounts {
        OverlapCounts {
            tuples: combine(self.tuples, other.tuples),
            chunks: combine(self.chunks, other.chunks),
            template_chunks: combine(self.template_chunks, other.template_chunks),
            template_tuples: combine(self.template_tuples, other.template_tuples),
            frequent_chunks: combine(self.frequent_chunks, other.frequent_chunks),
            frequent_tuples: combine(self.frequent_tuples, other.frequent_tuples),
            emitted: combine(self.emitted, other.emitted),
            similar: combine(self.similar, other.similar),
            guarded: combine(self.guarded, other.guarded),
            emptied: combine(self.emptied, other.emptied),
        }
    }
}

impl std::ops::Add<&OverlapCounts> for OverlapCounts {
    type Output = OverlapCounts;

    fn add(self, other: &OverlapCounts) -> OverlapCounts {
        self.combine_each(other, |x, y| x + y)
    }
}

impl std::ops::Sub<&OverlapCounts> for OverlapCounts {
    type Output = OverlapCounts;

    fn sub(self, other: &OverlapCounts) -> OverlapCounts {
        self.combine_each(other, |x, y| x - y)
    }
}
