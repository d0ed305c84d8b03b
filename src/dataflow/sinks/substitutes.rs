//! Removes pages from the avoid list that no kept page contains, and elects further pages to keep.
//!
//! [`webtwin_core::applications::substitutes`] defines the election for one cluster. Here the pages
//! of all clusters are compared round by round, each with the best page of its cluster among the
//! remaining ones. Each round takes the rounds of [`with_kept`], and one for the number of pages
//! that remain.

use super::resemblance::{PageChunks, Resemblance, with_kept};
use super::verdict::PageVerdict;
use crate::reading::captures::Crawl;
use crate::reading::worker_pages::WorkerPages;
use webtwin_base::error::Result;
use webtwin_base::ids::{ClusterId, HostId, Page};
use webtwin_core::applications::keep::{CopyRole, Criterion, Keeping, SkipReason, VisitReason};
use webtwin_core::applications::substitutes::ROUNDS;
use webtwin_core::clusters::labels::SetLabels;
use webtwin_core::text::language::Language;
use webtwin_core::text::titles::TitleWords;
use webtwin_engine::{Net, Owners};
use webtwin_spill::SpillColumn;

/// Page that no kept page contains. Ordered by cluster, then rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Remaining {
    cluster: ClusterId,
    rank: u32,
    page: Page,
    reports: PageTopic,
    /// First criterion by which the page is worse than the previous row of the same cluster.
    criterion: Criterion,
}

/// Host, language and title of a page, which show its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PageTopic {
    host: HostId,
    language: Language,
    title: TitleWords,
}

impl PageTopic {
    /// Returns true if neither page may represent the other.
    fn other_than(self, keeper: PageTopic) -> bool {
        let is_distinct = self.host != keeper.host && self.title.differ_from(keeper.title);
        is_distinct || self.language.differs_from(keeper.language)
    }
}

/// Page for which a further page is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Substitute {
    cluster: ClusterId,
    page: Page,
    keep: Page,
    criterion: Criterion,
    resemblance: Resemblance,
}

/// Computes the resemblance of pages to skip and their kept pages. A page is kept, too, if its kept
/// page contains less than `min_resemblance` of its text. The exception is a page that another such
/// page contains, in the same language and, on another host, with a title that does not name
/// something else: it is skipped for that page. Releases the chunks of the local pages.
///
/// # Errors
/// Returns any error of [`with_kept`].
///
/// # Memory
/// Takes 16 bytes for each page that its cluster's kept page does not contain, and 8 for each page
/// of the largest such cluster, in addition to the memory of [`with_kept`].
pub fn compare(
    net: &mut Net<'_>,
    crawl: &Crawl,
    local_pages: &mut WorkerPages,
    labels: &SetLabels<ClusterId>,
    verdicts: &mut SpillColumn<PageVerdict>,
    min_resemblance: f64,
    keeping: &Keeping,
) -> Result<()> {
    let texts = PageChunks::take(net, local_pages)?;
    let directory = &crawl.directory;
    let resemblances = |net: &mut Net<'_>, pairs: Vec<[Page; 2]>| {
        let asks = |page: Page| directory.owner(labels.label(page).smallest());
        let mut resemblances = with_kept(net, &texts, directory.len(), pairs, asks)?;
        resemblances.sort_unstable_by_key(|&(page, _)| (labels.label(page), page));
        Result::Ok(resemblances)
    };
    let mut pairs = Vec::new();
    for block in verdicts.blocks() {
        let block = block?;
        // Equal texts have the resemblance 1 and need no comparison.
        let unlike = block.iter().filter(|row| row.skips() && row.resemblance != Resemblance::EQUAL_TEXTS);
        pairs.extend(unlike.map(|row| [row.page, row.keep]));
    }
    let mut keep_resemblances = resemblances(net, pairs)?.into_iter().peekable();
    verdicts.retain_mut(|row| {
        if let Some((_, resemblance)) = keep_resemblances.next_if(|(page, _)| *page == row.page) {
            row.resemblance = resemblance;
        }
        if row.skips() && row.resemblance.containment() < min_resemblance {
            row.role = CopyRole::Visit(VisitReason::Unlike).into();
        }
        true
    })?;

    // The pages that are not contained in their kept page elect further pages to keep, at most one
    // in each cluster per round.
    let mut remaining = remaining(verdicts, &directory.hosts)?;
    let mut substitutes: Vec<Substitute> = Vec::new();
    for _ in 1..ROUNDS {
        let pairs: Vec<[Page; 2]> = elections(&remaining).collect();
        if net.all_sum("pages to compare again", [pairs.len() as u64])? == [0] {
            break;
        }
        let resemblances_now = resemblances(net, pairs)?;
        let containment = |page: Page| {
            let at = resemblances_now
                .binary_search_by_key(&(labels.label(page), page), |&(page, _)| (labels.label(page), page))
                .ok()?;
            Some(resemblances_now[at].1).filter(|resemblance| resemblance.containment() >= min_resemblance)
        };
        remaining = next_round(&remaining, containment, &mut substitutes);
    }
    substitutes.sort_unstable();
    let mut substitutes = substitutes.into_iter().peekable();
    verdicts.retain_mut(|row| {
        if let Some(substitute) = substitutes.next_if(|found| found.page == row.page) {
            (row.keep, row.resemblance) = (substitute.keep, substitute.resemblance);
            row.role = CopyRole::Skip(SkipReason::Similar, keeping.lost_by(substitute.criterion)).into();
        }
        true
    })
}

/// Page of a cluster in which pages remain.
struct RankedPage {
    rank: u32,
    criterion: Criterion,
    /// Page with its host, language and title, if it remains.
    remains: Option<(Page, PageTopic)>,
}

impl RankedPage {
    fn from_verdict(row: &PageVerdict, hosts: &[HostId]) -> RankedPage {
        let reports = || PageTopic { host: hosts[row.page], language: row.language(), title: row.title };
        let remains = is_left(row).then(|| (row.page, reports()));
        RankedPage { rank: row.rank, criterion: row.criterion(), remains }
    }
}

/// Returns true if no kept page contains this page.
fn is_left(row: &PageVerdict) -> bool {
    matches!(row.role(), CopyRole::Visit(VisitReason::Unlike | VisitReason::Language | VisitReason::Title))
}

/// Collects the pages that remain, ascending.
fn remaining(verdicts: &SpillColumn<PageVerdict>, hosts: &[HostId]) -> Result<Vec<Remaining>> {
    let mut remaining = Vec::new();
    let mut ranked: Vec<RankedPage> = Vec::new();
    verdicts.each_group(
        |x, y| x.cluster == y.cluster,
        |rows| {
            if rows.iter().filter(|row| is_left(row)).count() < 2 {
                return;
            }
            ranked.clear();
            ranked.extend(rows.iter().map(|row| RankedPage::from_verdict(row, hosts)));
            ranked.sort_unstable_by_key(|row| row.rank);
            let mut worst = Criterion::LAST_CRITERION;
            for &RankedPage { rank, criterion, remains } in &ranked {
                worst = worst.min(criterion);
                if let Some((page, reports)) = remains {
                    let criterion = std::mem::replace(&mut worst, Criterion::LAST_CRITERION);
                    remaining.push(Remaining { cluster: rows[0].cluster, rank, page, reports, criterion });
                }
            }
        },
    )?;
    Ok(remaining)
}

/// Returns `[page, keep]` for all pages that may be contained in the best remaining page of their
/// cluster.
fn elections(remaining: &[Remaining]) -> impl Iterator<Item = [Page; 2]> + '_ {
    remaining.chunk_by(|x, y| x.cluster == y.cluster).flat_map(|cluster_pages| {
        let (keeper, candidates) = cluster_pages.split_first().expect("a group has rows");
        let rivals = candidates.iter().filter(|page| !page.reports.other_than(keeper.reports));
        rivals.map(|page| [page.page, keeper.page])
    })
}

/// Returns the pages that remain after the best pages of all clusters have been elected. Appends
/// the pages that these contain to `substitutes`. `containment(page)` returns the resemblance of
/// such a page to the elected page.
fn next_round(
    remaining: &[Remaining],
    containment: impl Fn(Page) -> Option<Resemblance>,
    substitutes: &mut Vec<Substitute>,
) -> Vec<Remaining> {
    let mut left = Vec::new();
    for cluster_pages in remaining.chunk_by(|x, y| x.cluster == y.cluster) {
        let (keeper, candidates) = cluster_pages.split_first().expect("a group has rows");
        let (mut keeper_criterion, mut substitute_criterion) = (Criterion::LAST_CRITERION, Criterion::LAST_CRITERION);
        for &row in candidates {
            (keeper_criterion, substitute_criterion) =
                (keeper_criterion.min(row.criterion), substitute_criterion.min(row.criterion));
            match containment(row.page).filter(|_| !row.reports.other_than(keeper.reports)) {
                Some(resemblance) => {
                    let Remaining { cluster, page, .. } = row;
                    substitutes.push(Substitute {
                        cluster,
                        page,
                        keep: keeper.page,
                        criterion: keeper_criterion,
                        resemblance,
                    });
                }
                None => {
                    left.push(Remaining { criterion: substitute_criterion, ..row });
                    substitute_criterion = Criterion::LAST_CRITERION;
                }
            }
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use webtwin_core::applications::substitutes::substitutes;

    proptest! {
        /// The rounds over all clusters elect the same pages as the definition for each cluster.
        #[test]
        fn rounds_agree_with_the_definition(
            sizes in prop::collection::vec(2usize..9, 1..5),
            pairs in prop::collection::btree_set((0usize..40, 0usize..40), 0..200),
            criteria in prop::collection::vec(0u8..10, 40),
        ) {
            let mut first = 0;
            let mut rows = Vec::new();
            let mut expected = Vec::new();
            for size in sizes {
                let stands_for = |keeper: usize, page: usize| pairs.contains(&(first + keeper, first + page));
                expected.extend(substitutes(size, stands_for).into_iter().map(|keeper| first + keeper));
                rows.extend((0..size).map(|rank| Remaining {
                    cluster: ClusterId(first as u32),
                    rank: rank as u32,
                    page: Page((first + rank) as u32),
                    reports: PageTopic { host: HostId(0), language: Language::UNKNOWN, title: TitleWords::default() },
                    criterion: Criterion::from_number(criteria[first + rank]),
                }));
                first += size;
            }
            let mut actual = Vec::new();
            let mut remaining = rows;
            for _ in 0..ROUNDS {
                let keepers: std::collections::BTreeMap<Page, Page> =
                    elections(&remaining).map(|[page, keep]| (page, keep)).collect();
                let containment = |page: Page| {
                    let keeper = keepers.get(&page)?;
                    pairs.contains(&(keeper.0 as usize, page.0 as usize)).then_some(Resemblance::EQUAL_TEXTS)
                };
                remaining = next_round(&remaining, containment, &mut actual);
            }
            let mut stays: Vec<usize> = (0..expected.len()).collect();
            for row in &actual {
                stays[row.page.0 as usize] = row.keep.0 as usize;
                let between = &criteria[row.keep.0 as usize + 1..=row.page.0 as usize];
                prop_assert_eq!(row.criterion.number(), *between.iter().min().unwrap());
            }
            prop_assert_eq!(stays, expected);
        }
    }
}
