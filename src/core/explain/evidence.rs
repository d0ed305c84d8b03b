//! Evidence about two pages: the chunks that count, the number of shared chunks, and the pages that
//! resemble one of the two more. Computed from the fingerprints of all known pages.
//!
//! The functions are those that made the pairs of the run ([`judge`], [`is_pairwise_similar`],
//! [`best_on_each_host`]). With the fingerprints of all pages of the crawl, the outcome is that of
//! the run. With the fingerprints of some pages it may differ: a chunk that is boilerplate, or too
//! frequent, elsewhere in the crawl counts here.

use std::collections::{HashMap, HashSet};

use crate::overlap::filter::{ChunkVerdict, judge};
use crate::overlap::guard::{GuardedMatch, best_on_each_host};
use crate::overlap::{FPrintDocId, is_pairwise_similar};
use webtwin_base::ids::{FPrint, HostId, Page};
use webtwin_job::OverlapSettings;

/// Evidence about two pages in the fingerprints of some pages.
///
/// # Examples
/// ```
/// use webtwin_base::ids::{HostId, Page};
/// use webtwin_core::explain::evidence::PairEvidence;
/// use webtwin_core::overlap::FPrintDocId;
/// use webtwin_core::overlap::filter::ChunkVerdict;
/// use webtwin_job::OverlapSettings;
///
/// // The chunk 9 is on three pages of one host.
/// let rows = [(7, 0), (7, 1), (9, 0), (9, 2), (9, 3)];
/// let mut table = rows.map(|(fprint, doc)| FPrintDocId::new(fprint, Page(doc)));
/// let hosts = [0, 1, 0, 0].map(HostId);
/// let settings = OverlapSettings { template_pages: 2, ..OverlapSettings::of_papers(1) };
/// let evidence = PairEvidence::new(&mut table, &hosts, [Page(0), Page(1)], &settings);
/// assert_eq!(evidence.verdict(7), Some((ChunkVerdict::Counts, 2)));
/// assert_eq!(evidence.verdict(9), Some((ChunkVerdict::Template, 3)));
/// assert_eq!(evidence.shared(Page(0), Page(1)), 1);
/// ```
#[derive(Debug)]
pub struct PairEvidence {
    /// Chunks of each page that count, ascending.
    counting: Vec<Vec<FPrint>>,
    /// Verdict on every chunk of the two pages, and the number of known pages that have it.
    verdicts: HashMap<FPrint, (ChunkVerdict, u32)>,
}

impl PairEvidence {
    /// Evaluates the rows of `FPrint-DocID`, and sorts them. `hosts[doc]` is the host of a page;
    /// `pages` are the two pages.
    pub fn new(
        table: &mut [FPrintDocId],
        hosts: &[HostId],
        pages: [Page; 2],
        settings: &OverlapSettings,
    ) -> PairEvidence {
        table.sort_unstable_by_key(FPrintDocId::key);
        let mut evidence = PairEvidence { counting: vec![Vec::new(); hosts.len()], verdicts: HashMap::new() };
        let mut scratch = Vec::new();
        for run in table.chunk_by(|x, y| x.fprint() == y.fprint()) {
            let docs: Vec<Page> = run.iter().map(|row| row.doc).collect();
            let verdict = judge(&docs, hosts, settings, &mut scratch);
            if pages.iter().any(|page| docs.contains(page)) {
                evidence.verdicts.insert(run[0].fprint(), (verdict, docs.len() as u32));
            }
            if verdict == ChunkVerdict::Counts {
                docs.iter().for_each(|&doc| evidence.counting[doc].push(run[0].fprint()));
            }
        }
        evidence
    }

    /// Returns the verdict on a chunk of one of the two pages, and the number of known pages that
    /// have it.
    pub fn verdict(&self, chunk: FPrint) -> Option<(ChunkVerdict, u32)> {
        self.verdicts.get(&chunk).copied()
    }

    /// Returns the number of chunks of a page that count.
    pub fn chunks(&self, page: Page) -> u32 {
        self.counting[page].len() as u32
    }

    /// Returns the number of chunks that count and are on both pages.
    pub fn shared(&self, x: Page, y: Page) -> u32 {
        let chunks_of_x: HashSet<FPrint> = self.counting[x].iter().copied().collect();
        self.counting[y].iter().filter(|chunk| chunks_of_x.contains(chunk)).count() as u32
    }

    /// Returns the pages that are better matches for `from` than `to` is, best first: those that
    /// `from` votes for instead of `to` ([`crate::overlap::guard`]). `rivals` are the pages that
    /// `from` was compared with: all pages except exact copies of others.
    pub fn better(
        &self,
        from: Page,
        to: Page,
        rivals: impl Iterator<Item = Page>,
        hosts: &[HostId],
        settings: &OverlapSettings,
    ) -> Vec<GuardedMatch> {
        let chunks_of_from: HashSet<FPrint> = self.counting[from].iter().copied().collect();
        let matching = |rival: Page| {
            let shared = self.counting[rival].iter().filter(|chunk| chunks_of_from.contains(chunk)).count() as u32;
            let larger = self.chunks(from).max(self.chunks(rival));
            let similar = is_pairwise_similar(shared, self.chunks(from), self.chunks(rival), settings);
            similar.then_some(GuardedMatch { from, host: hosts[rival], to: rival, shared, larger })
        };
        let mut matches: Vec<GuardedMatch> = rivals.filter(|&rival| rival != from).filter_map(matching).collect();
        let mut best = Vec::new();
        best_on_each_host(&mut matches, |page| hosts[page], |spoken_for| best.push(*spoken_for));
        if best.iter().any(|of| of.to == to) {
            return Vec::new();
        }
        let requested = matches.iter().find(|of| of.to == to);
        // On its own host a page may be exceeded by a match on any host.
        let is_same_host = hosts[from] == hosts[to];
        best.retain(|of| is_same_host || of.host == hosts[to]);
        best.retain(|of| requested.is_none_or(|asked| of.better_than(asked).is_gt()));
        best.sort_by(|x, y| y.better_than(x).then(x.to.cmp(&y.to)));
        best
    }
}

/// Returns the minimum number of shared chunks that makes two pages with these numbers of counting
/// chunks similar, or `None` if all chunks would not suffice.
///
/// # Examples
/// ```
/// use webtwin_core::explain::evidence::needed_chunks;
/// use webtwin_job::OverlapSettings;
///
/// let third = OverlapSettings { min_resemblance: 1.0 / 3.0, ..OverlapSettings::of_papers(1) };
/// assert_eq!(needed_chunks([20, 30], &third), Some(10));
/// // All nine chunks of the smaller page are fewer than a third of the larger one's.
/// assert_eq!(needed_chunks([9, 30], &third), None);
/// ```
pub fn needed_chunks(chunks: [u32; 2], settings: &OverlapSettings) -> Option<u32> {
    (1..=chunks[0].min(chunks[1])).find(|&shared| is_pairwise_similar(shared, chunks[0], chunks[1], settings))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::overlap::sort_based::similar_pairs;
    use webtwin_job::{Guard, Job};

    fn table(pages: &[Vec<u64>]) -> Vec<FPrintDocId> {
        let rows = |(doc, fprints): (Page, &Vec<u64>)| -> Vec<FPrintDocId> {
            let distinct: HashSet<u64> = fprints.iter().copied().collect();
            distinct.into_iter().map(|fprint| FPrintDocId::new(fprint, doc)).collect()
        };
        Page::first(pages.len()).zip(pages).flat_map(rows).collect()
    }

    proptest! {
        /// With all pages known, a pair is one of the run exactly if F suffices and neither page
        /// has a better match.
        #[test]
        fn the_evidence_of_all_pages_agrees_with_the_pairs_of_a_run(
            pages in prop::collection::vec(prop::collection::vec(0u64..14, 0..8), 2..9),
            on in prop::collection::vec((0u32..3).prop_map(HostId), 9),
            template_pages in 0u32..4,
            mutual: bool,
        ) {
            let guard = if mutual { Guard::MutualBest } else { Guard::None };
            let settings = OverlapSettings { template_pages, max_documents: 5, guard, ..Job::default().overlap };
            let hosts = &on[..pages.len()];
            let mut rows = table(&pages);
            let pairs = similar_pairs(&rows, hosts, &[], &settings);
            let all_pages = || Page::first(pages.len());
            for a in all_pages() {
                for b in all_pages().filter(|&b| b > a) {
                    let evidence = PairEvidence::new(&mut rows, hosts, [a, b], &settings);
                    let (shared, chunks) = (evidence.shared(a, b), [evidence.chunks(a), evidence.chunks(b)]);
                    let suffices = needed_chunks(chunks, &settings).is_some_and(|needed| shared >= needed);
                    let beaten = |from, to| mutual && !evidence.better(from, to, all_pages(), hosts, &settings).is_empty();
                    let pair_found = pairs.iter().find(|pair| (pair.a, pair.b) == (a, b));
                    prop_assert_eq!(pair_found.is_some(), suffices && !beaten(a, b) && !beaten(b, a));
                    prop_assert!(pair_found.is_none_or(|pair| pair.value == shared));
                }
            }
        }
    }
}
