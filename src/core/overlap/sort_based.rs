//! The sort-based approach (\[SGM98\] section 2.1), on one thread and in memory: the reference for
//! the dataflow.

use std::collections::{BTreeMap, BTreeSet};

use super::filter::{ChunkVerdict, judge};
use super::guard::{GuardedMatch, best_on_each_host};
use super::{FPrintDocId, SimilarPair, is_pairwise_similar};
use webtwin_base::ids::{HostId, Page};
use webtwin_job::{Guard, OverlapSettings};

/// Computes the similar pairs of a duplicate-free `FPrint-DocID` table. `hosts[doc]` is the host of
/// a page. `copies` are the exact copies of other pages, which the filter counts and which are then
/// left out.
///
/// Pairs are returned ascending. The guard `neighbours` needs links, so its caller must apply
/// [`super::neighbours::keep_apart`]. Time and space grow with the sum of squares of the pages per
/// fingerprint.
///
/// # Examples
/// Three pages on three hosts, of which the first two share T = 2 chunks.
/// ```
/// use webtwin_base::ids::{HostId, Page};
/// use webtwin_core::overlap::sort_based::similar_pairs;
/// use webtwin_core::overlap::{FPrintDocId, SimilarPair};
/// use webtwin_job::OverlapSettings;
///
/// let rows = [(1, 0), (2, 0), (3, 0), (2, 1), (3, 1), (4, 1), (4, 2), (5, 2)];
/// let fprint_docid = rows.map(|(fprint, doc)| FPrintDocId::new(fprint, Page(doc)));
/// let hosts = [0, 1, 2].map(HostId);
///
/// let pairs = similar_pairs(&fprint_docid, &hosts, &[], &OverlapSettings::of_papers(2));
/// assert_eq!(pairs, [SimilarPair { a: Page(0), b: Page(1), value: 2 }]);
/// ```
pub fn similar_pairs(
    fprint_docid: &[FPrintDocId],
    hosts: &[HostId],
    copies: &[Page],
    settings: &OverlapSettings,
) -> Vec<SimilarPair> {
    let chunks = counting_chunks(fprint_docid, hosts, settings);
    let mut shared = BTreeMap::new();
    for mut run in counting_runs(&sorted(fprint_docid), hosts, settings) {
        run.retain(|page| !copies.contains(page));
        for (at, &left) in run.iter().enumerate() {
            run[at + 1..].iter().for_each(|&right| *shared.entry((left, right)).or_insert(0u32) += 1);
        }
    }
    // Both conditions of similarity need the complete F, so pairs are tested after all chunks were
    // counted.
    shared.retain(|&(a, b), f| is_pairwise_similar(*f, chunks[a], chunks[b], settings));
    let pairs = shared.iter().map(|(&(a, b), &value)| SimilarPair { a, b, value });
    match settings.guard {
        Guard::None | Guard::Neighbours => pairs.collect(),
        Guard::Centre => {
            let mut best: BTreeMap<Page, SimilarPair> = BTreeMap::new();
            let mut by_larger: Vec<SimilarPair> = pairs.collect();
            by_larger.sort_unstable_by_key(|pair| (pair.b, pair.a));
            for pair in &by_larger {
                // Smaller pages are decided: those with a centre are members, the others are
                // centres.
                if best.contains_key(&pair.a) {
                    continue;
                }
                let larger = |pair: &SimilarPair| u64::from(chunks[pair.a].max(chunks[pair.b]));
                let best_pair = best.entry(pair.b).or_insert(*pair);
                if u64::from(pair.value) * larger(best_pair) > u64::from(best_pair.value) * larger(pair) {
                    *best_pair = *pair;
                }
            }
            let mut kept_pairs: Vec<SimilarPair> = best.into_values().collect();
            kept_pairs.sort_unstable();
            kept_pairs
        }
        Guard::MutualBest => {
            let mut matches: Vec<GuardedMatch> = pairs
                .clone()
                .flat_map(|SimilarPair { a, b, value }| {
                    let larger = chunks[a].max(chunks[b]);
                    [(a, b), (b, a)].map(|(from, to)| GuardedMatch { from, host: hosts[to], to, shared: value, larger })
                })
                .collect();
            let mut votes = BTreeSet::new();
            // A pair needs the votes of both of its pages.
            best_on_each_host(&mut matches, |page| hosts[page], |best| _ = votes.insert((best.from, best.to)));
            pairs.filter(|pair| votes.contains(&(pair.a, pair.b)) && votes.contains(&(pair.b, pair.a))).collect()
        }
    }
}

fn sorted(fprint_docid: &[FPrintDocId]) -> Vec<FPrintDocId> {
    let mut table = fprint_docid.to_vec();
    table.sort_unstable_by_key(FPrintDocId::key);
    table
}

/// Returns the pages of each chunk that counts, from an ascending table.
pub(super) fn counting_runs(
    table: &[FPrintDocId],
    hosts: &[HostId],
    settings: &OverlapSettings,
) -> impl Iterator<Item = Vec<Page>> {
    let runs = table.chunk_by(|x, y| x.fprint() == y.fprint()).map(|run| run.iter().map(|row| row.doc).collect());
    runs.filter(|run: &Vec<Page>| judge(run, hosts, settings, &mut Vec::new()) == ChunkVerdict::Counts)
}

/// Returns the number of chunks that count of each page.
pub fn counting_chunks(fprint_docid: &[FPrintDocId], hosts: &[HostId], settings: &OverlapSettings) -> Vec<u32> {
    let mut chunks = vec![0; hosts.len()];
    counting_runs(&sorted(fprint_docid), hosts, settings).flatten().for_each(|page| chunks[page] += 1);
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(pages: &[&[u64]]) -> Vec<FPrintDocId> {
        let rows = |(doc, fprints): (Page, &&[u64])| -> Vec<_> {
            fprints.iter().map(|&fprint| FPrintDocId::new(fprint, doc)).collect()
        };
        Page::first(pages.len()).zip(pages).flat_map(rows).collect()
    }

    /// Returns the pages of the similar pairs, as numbers.
    fn page_pairs(pages: &[FPrintDocId], hosts: &[HostId], settings: &OverlapSettings) -> Vec<(u32, u32)> {
        similar_pairs(pages, hosts, &[], settings).iter().map(|pair| (pair.a.0, pair.b.0)).collect()
    }

    #[test]
    fn resemblance_is_relative_to_the_larger_page() {
        let pages = table(&[&[1, 2], &[1, 2, 3, 4], &[1, 2, 3, 4, 5, 6]]);
        let settings = OverlapSettings { min_resemblance: 0.5, ..OverlapSettings::of_papers(1) };
        assert_eq!(page_pairs(&pages, &[HostId(0); 3], &settings), [(0, 1), (1, 2)]);
    }

    #[test]
    fn the_guard_keeps_the_best_match_on_each_host_only() {
        // Pages 1 and 2 are on one host; the true counterpart of page 0 is page 1, and page 2 is a
        // weaker match.
        let pages = table(&[&[1, 2, 3, 4], &[1, 2, 3, 4], &[1, 2, 3, 9]]);
        let settings = OverlapSettings { guard: Guard::MutualBest, ..OverlapSettings::of_papers(1) };
        assert_eq!(page_pairs(&pages, &[0, 1, 1].map(HostId), &settings), [(0, 1)]);
    }

    #[test]
    fn a_chain_joins_its_centres_only() {
        // Each page shares three of four chunks with the next.
        let pages = table(&[&[1, 2, 3, 4], &[2, 3, 4, 5], &[3, 4, 5, 6], &[4, 5, 6, 7]]);
        let settings = OverlapSettings { guard: Guard::Centre, ..OverlapSettings::of_papers(3) };
        assert_eq!(page_pairs(&pages, &[0, 1, 2, 3].map(HostId), &settings), [(0, 1), (2, 3)]);
    }

    #[test]
    fn boilerplate_joins_nothing() {
        let pages = table(&[&[7, 1], &[7, 2], &[7, 3]]);
        let settings = OverlapSettings { template_pages: 2, ..OverlapSettings::of_papers(1) };
        assert_eq!(similar_pairs(&pages, &[0, 0, 0].map(HostId), &[], &settings), []);
        assert_eq!(similar_pairs(&pages, &[0, 0, 1].map(HostId), &[], &settings).len(), 3);
    }
}
