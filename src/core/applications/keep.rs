//! Choice of the page of a trivial cluster that stays, with the reasons why the other pages may be
//! skipped.
//!
//! The criteria apply in this order:
//!
//! - A page that a person has pinned (`keep.pins`).
//! - A page that a user prefers (`keep.prefer`).
//! - A page that an earlier result kept, if there is one (`keep.sticky`): a list that changes back
//!   and forth costs a crawler its copies.
//! - A page of a whole kept collection: a crawler that skips a mirror needs all its pages from
//!   *one* other copy. So if a trivial cluster has a page in the kept collection of its similar
//!   cluster, that page stays.
//! - A page that others call canonical, if their texts agree.
//! - The best page by the rule ([`KeepBy`]), for example the newest. Ties go to the page with the
//!   most links from other hosts, then to the page whose host has the most such links, then to the
//!   page that is fewer links away from the root of its host (if a manual has one text as
//!   `index.html` and `manual.html`, this is the one that the home page links to), then to the
//!   shorter URL, then to the smaller doc id.
//!
//! By the default rule, links, the collection with the most links from other hosts is kept. By any
//! other rule, and if pages are preferred, the trivial clusters vote: each votes for the collection
//! with the page that would stay without regard to collections. Votes for pinned pages count first,
//! because a pin on a page of a mirror expresses a choice of the mirror. Votes for pages that were
//! kept before come next, so that new clusters, which have no earlier choice, cannot change the
//! kept collection.

use std::cmp::Reverse;

use bytemuck::{Pod, Zeroable};
use glob::Pattern;

use crate::clusters::collection::SimilarCluster;
use crate::text::titles::TitleWords;
use webtwin_base::ids::{ClusterId, FPrint, Page};
use webtwin_job::{KeepBy, KeepSettings};

/// A page as one of several copies. Steps sort these rows by cluster, then page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct PageCopy {
    /// Fingerprint of the whole text.
    pub exact: FPrint,
    /// Words of the title.
    pub title: TitleWords,
    /// Merit of the page by the rule; more is better ([`Keeping::merit`]).
    pub merit: i64,
    /// Trivial cluster of the page: its smallest page.
    pub cluster: ClusterId,
    /// The page.
    pub page: Page,
    /// Index of the first glob that the URL matches ([`Keeping::preference`]); less is better.
    pub preference: u32,
    /// Number of links to the page from other hosts.
    pub links_from_elsewhere: u32,
    /// Number of links to any page of its host from other hosts.
    pub links_to_host: u32,
    /// Number of links from the root of its host, or a seed there, to the page; `u32::MAX` if no
    /// crawl path leads to it.
    pub depth: u32,
    /// Number of characters of the URL, at most [`u16::MAX`].
    pub url_length: u16,
    /// 1 for a page that others correctly call canonical, 0 for any other.
    pub is_original: u16,
    /// 1 for a page that a crawler must visit, 0 for any other.
    pub must_visit: u8,
    /// Number of the language of the text ([`Language`](crate::text::language::Language)).
    pub language: u8,
    /// 1 for a page that the earlier result kept, 0 for any other.
    pub kept_before: u8,
    /// 1 for a page that is pinned, 0 for any other.
    pub pinned: u8,
}

/// Rule that selects the pages that stay, compiled from the settings of a job.
///
/// # Examples
/// ```
/// use webtwin_core::applications::keep::Keeping;
/// use webtwin_job::{Job, KeepSettings, KeepBy};
///
/// let prefer = vec!["http://*.a.example/*".into()];
/// let keeping = Keeping::new(&KeepSettings { prefer, by: KeepBy::Newest, ..Job::default().keep });
/// // The URL matches the first glob. The other one matches none.
/// assert_eq!(keeping.preference("http://www.a.example/x/y"), 0);
/// assert_eq!(keeping.preference("http://b.example/"), 1);
/// ```
#[derive(Debug)]
pub struct Keeping {
    prefer: Vec<Pattern>,
    criterion: KeepBy,
    sticky: bool,
    pins: bool,
}

impl Keeping {
    /// Compiles the rule of a job. Globs that do not parse match nothing; settings with such globs
    /// are rejected earlier.
    pub fn new(keep: &KeepSettings) -> Keeping {
        let prefer = keep.prefer.iter().filter_map(|glob| Pattern::new(glob).ok()).collect();
        Keeping { prefer, criterion: keep.by, sticky: !keep.sticky.is_empty(), pins: !keep.pins.is_empty() }
    }

    /// True if any cluster may vote for the collection that is kept.
    pub fn has_votes(&self) -> bool {
        self.sticky || self.pins || self.all_vote()
    }

    /// True if a cluster votes for a collection, given the page `winner` that would stay without
    /// regard to collections. By the default rule only clusters with a page that was kept before or
    /// is pinned vote.
    pub fn votes(&self, winner: &PageCopy) -> bool {
        self.all_vote() || winner.kept_before == 1 || winner.pinned == 1
    }

    fn all_vote(&self) -> bool {
        self.criterion != KeepBy::Links || !self.prefer.is_empty()
    }

    /// Returns the index of the first glob that a URL matches, or the number of globs. `*` also
    /// matches slashes.
    pub fn preference(&self, url: &str) -> u32 {
        self.prefer.iter().position(|glob| glob.matches(url)).unwrap_or(self.prefer.len()) as u32
    }

    /// Returns the merit by the rule of a page with this fetch time (0: unknown), number of text
    /// bytes, and URL. More is better, and an unknown time is worst.
    pub fn merit(&self, fetch_time: i64, text_bytes: u64, url: &str, page: Page) -> i64 {
        match self.criterion {
            KeepBy::Links => 0,
            KeepBy::Newest if fetch_time == 0 => i64::MIN,
            KeepBy::Newest => fetch_time,
            KeepBy::Oldest if fetch_time == 0 => i64::MIN,
            KeepBy::Oldest => -fetch_time,
            KeepBy::Longest => text_bytes as i64,
            KeepBy::ShortestUrl => -(url.chars().count() as i64),
            KeepBy::SmallestId => -i64::from(page.0),
        }
    }

    /// Returns the first criterion in which `copy` is worse than `keeper`, the page that stays.
    /// `is_collection_kept` has the meaning of the parameter of [`keeper`].
    pub fn criterion(
        &self,
        copy: &PageCopy,
        keeper: &PageCopy,
        is_collection_kept: impl Fn(Page) -> Option<bool>,
    ) -> Criterion {
        let differs = |what: fn(&PageCopy) -> i64| what(copy) != what(keeper);
        let is_kept = |copy: &PageCopy| is_collection_kept(copy.page) == Some(true);
        let differences = [
            differs(|copy| i64::from(copy.pinned)),
            differs(|copy| i64::from(copy.preference)),
            differs(|copy| i64::from(copy.kept_before)),
            is_kept(copy) != is_kept(keeper),
            differs(|copy| i64::from(copy.is_original)),
            differs(|copy| copy.merit),
            differs(|copy| i64::from(copy.links_from_elsewhere)),
            differs(|copy| i64::from(copy.links_to_host)),
            differs(|copy| i64::from(copy.depth)),
            differs(|copy| i64::from(copy.url_length)),
        ];
        Criterion(differences.iter().position(|&differs| differs).unwrap_or(differences.len()) as u8)
    }

    /// Returns the property in which a copy is worse by the given criterion.
    pub fn lost_by(&self, criterion: Criterion) -> LossKind {
        match criterion.0 {
            0 => LossKind::Pin,
            1 => LossKind::Prefer,
            2 => LossKind::KeptBefore,
            3 => LossKind::Collection,
            4 => LossKind::Original,
            5 => LossKind::Rule(self.criterion),
            6 => LossKind::Rule(KeepBy::Links),
            7 => LossKind::HostLinks,
            8 => LossKind::Depth,
            9 => LossKind::Rule(KeepBy::ShortestUrl),
            _ => LossKind::Rule(KeepBy::SmallestId),
        }
    }
}

/// Position of a criterion in the order by which copies stay, at most 10.
///
/// If copies are ordered from best to worst, the criterion between any two is the smallest of the
/// criteria between neighbours from one to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Criterion(u8);

impl Criterion {
    /// A criterion after all others.
    pub const LAST_CRITERION: Criterion = Criterion(15);

    /// Returns the number of the criterion, at most 15.
    pub fn number(self) -> u8 {
        self.0
    }

    /// Returns the criterion with a number, at most 15.
    pub fn from_number(number: u8) -> Criterion {
        Criterion(number)
    }
}

/// Property in which a page is worse than the page that stays in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub enum LossKind {
    /// The page that stays is pinned.
    Pin,
    /// The page that stays matches a glob of `keep.prefer`, or an earlier one.
    Prefer,
    /// The earlier result kept the page that stays.
    KeptBefore,
    /// The page that stays is in the collection that is kept.
    Collection,
    /// Others correctly call the page that stays canonical.
    Original,
    /// The page that stays is better by this rule.
    Rule(KeepBy),
    /// Equal numbers of links lead to both pages, but more to the host of the page that stays.
    HostLinks,
    /// The page that stays is fewer links away from the root of its host.
    Depth,
}

impl LossKind {
    /// Returns the value in the column `avoid.lost_by`.
    pub fn as_str(self) -> &'static str {
        match self {
            LossKind::Pin => "pin",
            LossKind::Prefer => "prefer",
            LossKind::KeptBefore => "kept-before",
            LossKind::Collection => "collection",
            LossKind::Original => "canonical",
            LossKind::Rule(by) => by.name(),
            LossKind::HostLinks => "host-links",
            LossKind::Depth => "depth",
        }
    }
}

/// Role of a page that has copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub enum CopyRole {
    /// The page stays for all its copies.
    Keep,
    /// The page may be skipped, for a reason, and with the property in which it is worse than the
    /// page that stays.
    Skip(SkipReason, LossKind),
    /// The page is visited in addition to the page that stays.
    Visit(VisitReason),
}

/// Reason why a crawler visits a page although another page stays for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub enum VisitReason {
    /// The page is a seed, or one of the pages that [`super::never_skipped`] describes.
    Must,
    /// No page that stays for it contains `keep.min_resemblance` of its text.
    Unlike,
    /// The text is in another language than the text of the page that stays.
    Language,
    /// The title names another subject than the title of the page that stays, on another host.
    Title,
    /// Crawl paths to pages that stay lead through it.
    Way,
}

impl CopyRole {
    /// Returns the value in the column `clusters.role`.
    pub fn as_str(self) -> &'static str {
        match self {
            CopyRole::Keep => "keep",
            CopyRole::Skip(why, _) => why.as_str(),
            CopyRole::Visit(VisitReason::Must) => "must-visit",
            CopyRole::Visit(VisitReason::Unlike) => "unlike",
            CopyRole::Visit(VisitReason::Language) => "language",
            CopyRole::Visit(VisitReason::Title) => "title",
            CopyRole::Visit(VisitReason::Way) => "way",
        }
    }
}

/// A [`CopyRole`] as a number, for rows that are written to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable, serde::Serialize, serde::Deserialize)]
#[repr(transparent)]
pub struct RoleNumber(u16);

/// Roles in the order of their numbers. The roles of pages to skip follow: for each reason, all
/// properties.
const ROLES: [CopyRole; 6] = [
    CopyRole::Keep,
    CopyRole::Visit(VisitReason::Must),
    CopyRole::Visit(VisitReason::Unlike),
    CopyRole::Visit(VisitReason::Language),
    CopyRole::Visit(VisitReason::Title),
    CopyRole::Visit(VisitReason::Way),
];
const REASONS: [SkipReason; 3] = [SkipReason::Exact, SkipReason::Collection, SkipReason::Similar];
const CRITERIA_LOST: [LossKind; 13] = [
    LossKind::Pin,
    LossKind::Prefer,
    LossKind::KeptBefore,
    LossKind::Collection,
    LossKind::Original,
    LossKind::HostLinks,
    LossKind::Depth,
    LossKind::Rule(KeepBy::Links),
    LossKind::Rule(KeepBy::Newest),
    LossKind::Rule(KeepBy::Oldest),
    LossKind::Rule(KeepBy::Longest),
    LossKind::Rule(KeepBy::ShortestUrl),
    LossKind::Rule(KeepBy::SmallestId),
];

impl From<CopyRole> for RoleNumber {
    fn from(role: CopyRole) -> RoleNumber {
        fn place<T: PartialEq>(item: T, list: &[T]) -> usize {
            list.iter().position(|one| *one == item).expect("all are listed")
        }
        let number = match role {
            CopyRole::Skip(reason, lost_by) => {
                ROLES.len() + place(reason, &REASONS) * CRITERIA_LOST.len() + place(lost_by, &CRITERIA_LOST)
            }
            role => place(role, &ROLES),
        };
        RoleNumber(number as u16)
    }
}

impl From<RoleNumber> for CopyRole {
    fn from(RoleNumber(number): RoleNumber) -> CopyRole {
        match usize::from(number).checked_sub(ROLES.len()) {
            None => ROLES[usize::from(number)],
            Some(skip) => {
                CopyRole::Skip(REASONS[skip / CRITERIA_LOST.len()], CRITERIA_LOST[skip % CRITERIA_LOST.len()])
            }
        }
    }
}

/// Reason why a page may be skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkipReason {
    /// The text equals that of the page kept.
    Exact,
    /// The page belongs to a mirror of a collection that is kept.
    Collection,
    /// The page is similar to the page kept.
    Similar,
}

impl SkipReason {
    /// Returns the value in the column `avoid.why`.
    pub fn as_str(self) -> &'static str {
        match self {
            SkipReason::Exact => "exact",
            SkipReason::Collection => "collection",
            SkipReason::Similar => "similar",
        }
    }
}

/// Numbers of votes for a collection. Orders by pins, then by kept pages, then by all votes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CollectionVotes {
    /// Number of clusters whose page in the collection is pinned.
    pub pinned: u32,
    /// Number of clusters whose page in the collection was kept before.
    pub remembered: u32,
    /// Number of all votes.
    pub total: u32,
}

/// Returns the index of the collection of a similar cluster that is kept: the one with the most
/// `votes`, if there are any. Votes for pins count first, then votes for pages that were kept
/// before. Ties go to the collection with the most links from other hosts, then to the one whose
/// host has the most such links, then to more pages, then to the smallest page.
///
/// `links_to_host` counts, by host, the links to its pages from other hosts.
pub fn kept_collection(cluster: &SimilarCluster, votes: &[CollectionVotes], links_to_host: &[u32]) -> usize {
    let rank = |at: &usize| {
        let collection = &cluster.collections[*at];
        let links_from_other_hosts = links_to_host[collection.host];
        let votes = votes.get(*at).copied().unwrap_or_default();
        (votes, collection.links_from_elsewhere, links_from_other_hosts, collection.members.len(), Reverse(*at))
    };
    (0..cluster.collections.len()).max_by_key(rank).expect("a similar cluster has collections")
}

/// Returns the page of one trivial cluster that stays, or `None` if there are no copies.
/// `is_collection_kept(page)` is `Some(kept)` for a page of a reported collection, where `kept` is
/// true if the collection is kept.
///
/// # Examples
/// ```
/// use bytemuck::Zeroable;
/// use webtwin_base::ids::Page;
/// use webtwin_core::applications::keep::{PageCopy, keeper};
///
/// let copy = |page, links_from_elsewhere| PageCopy {
///     page: Page(page),
///     links_from_elsewhere,
///     ..PageCopy::zeroed()
/// };
/// let copies = [copy(1, 9), copy(2, 0)];
/// // The page with more links stays, unless the other one is in a collection that is kept.
/// assert_eq!(keeper(&copies, |_| None).map(|copy| copy.page), Some(Page(1)));
/// let placed = |page| Some(page == Page(2));
/// assert_eq!(keeper(&copies, placed).map(|copy| copy.page), Some(Page(2)));
/// ```
pub fn keeper<'c>(
    copies: impl IntoIterator<Item = &'c PageCopy>,
    is_collection_kept: impl Fn(Page) -> Option<bool>,
) -> Option<&'c PageCopy> {
    copies.into_iter().max_by_key(|copy| rank(copy, &is_collection_kept))
}

/// Sorts copies from best to worst. The best is the one that [`keeper`] returns.
pub fn sort_best_first(copies: &mut [&PageCopy], is_collection_kept: impl Fn(Page) -> Option<bool>) {
    copies.sort_unstable_by_key(|copy| Reverse(rank(copy, &is_collection_kept)));
}

/// Returns the sort key of copies. The copy that stays has the greatest key.
fn rank<P: Fn(Page) -> Option<bool>>(copy: &PageCopy, is_collection_kept: &P) -> impl Ord + use<P> {
    let is_kept = is_collection_kept(copy.page) == Some(true);
    let links = (copy.links_from_elsewhere, copy.links_to_host);
    let preferences = (copy.pinned, Reverse(copy.preference), copy.kept_before);
    (preferences, is_kept, copy.is_original, copy.merit, links, Reverse((copy.depth, copy.url_length, copy.page)))
}

/// Returns the reason why `copy` may be skipped in favour of `keeper`.
pub fn skip_reason(
    copy: &PageCopy,
    keeper: &PageCopy,
    is_collection_kept: impl Fn(Page) -> Option<bool>,
) -> SkipReason {
    if copy.exact == keeper.exact {
        SkipReason::Exact
    } else if is_collection_kept(copy.page) == Some(false) && is_collection_kept(keeper.page) == Some(true) {
        SkipReason::Collection
    } else {
        SkipReason::Similar
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn copy(page: u32, links_from_elsewhere: u32, url_length: u16) -> PageCopy {
        let cluster = ClusterId(0);
        PageCopy { exact: 1, cluster, page: Page(page), links_from_elsewhere, url_length, ..PageCopy::zeroed() }
    }

    fn stays(copies: &[PageCopy], is_collection_kept: impl Fn(Page) -> Option<bool>) -> u32 {
        keeper(copies, is_collection_kept).unwrap().page.0
    }

    #[test]
    fn a_role_is_its_number() {
        let skips = REASONS.iter().flat_map(|&why| CRITERIA_LOST.map(|lost_by| CopyRole::Skip(why, lost_by)));
        let roles: Vec<CopyRole> = ROLES.into_iter().chain(skips).collect();
        let numbers: Vec<RoleNumber> = roles.iter().map(|&role| role.into()).collect();
        assert!(numbers.iter().map(|number| number.0).eq(0..roles.len() as u16));
        assert_eq!(numbers.into_iter().map(CopyRole::from).collect::<Vec<_>>(), roles);
    }

    #[test]
    fn the_page_of_the_kept_collection_stays_before_the_better_linked_one() {
        let copies = [copy(1, 9, 10), copy(2, 0, 30)];
        assert_eq!(stays(&copies, |page| Some(page == Page(2))), 2);
        assert_eq!(stays(&copies, |_| None), 1);
    }

    #[test]
    fn shorter_url_then_smaller_doc_id_decide_between_equally_linked_pages() {
        assert_eq!(stays(&[copy(1, 0, 30), copy(2, 0, 20), copy(3, 0, 20)], |_| None), 2);
        assert_eq!(stays(&[copy(1, 0, 30), PageCopy { depth: 1, ..copy(2, 0, 20) }], |_| None), 1);
    }

    #[test]
    fn a_preferred_page_stays_before_one_of_the_kept_collection_and_the_rule_before_links() {
        let preferred = PageCopy { preference: 0, ..copy(1, 0, 30) };
        let other = |page| PageCopy { preference: 1, ..copy(page, 9, 10) };
        assert_eq!(stays(&[preferred, other(2)], |page| Some(page == Page(2))), 1);
        let newest = PageCopy { merit: 7, ..copy(1, 0, 30) };
        assert_eq!(stays(&[newest, copy(2, 9, 10)], |_| None), 1);
        assert_eq!(stays(&[newest, copy(2, 9, 10)], |page| Some(page == Page(2))), 2);
    }

    #[test]
    fn page_loses_by_the_first_criterion_in_which_the_keeper_is_better() {
        let keeping = Keeping::new(&KeepSettings {
            prefer: vec!["http://*.a.example/*".into()],
            by: KeepBy::Newest,
            ..webtwin_job::Job::default().keep
        });
        assert_eq!(keeping.preference("http://www.a.example/x/y.html"), 0);
        assert_eq!(keeping.preference("http://b.example/"), 1);
        assert!(keeping.merit(5, 0, "", Page(0)) > keeping.merit(4, 0, "", Page(0)));
        assert!(keeping.merit(-5, 0, "", Page(0)) > keeping.merit(0, 0, "", Page(0)));
        let is_kept = |page| Some(page == Page(9));
        let lost_by =
            |copy: PageCopy, keeper: PageCopy| keeping.lost_by(keeping.criterion(&copy, &keeper, is_kept)).as_str();
        let base = copy(1, 3, 10);
        assert_eq!(lost_by(PageCopy { preference: 1, ..copy(2, 9, 5) }, PageCopy { pinned: 1, ..base }), "pin");
        assert_eq!(lost_by(PageCopy { preference: 1, ..copy(2, 9, 5) }, base), "prefer");
        assert_eq!(lost_by(copy(2, 9, 5), PageCopy { kept_before: 1, ..base }), "kept-before");
        assert_eq!(lost_by(copy(2, 9, 5), PageCopy { page: Page(9), ..base }), "collection");
        assert_eq!(lost_by(copy(2, 9, 5), PageCopy { merit: 1, ..base }), "newest");
        assert_eq!(lost_by(copy(2, 2, 5), base), "links");
        assert_eq!(lost_by(copy(2, 3, 5), PageCopy { links_to_host: 1, ..base }), "host-links");
        assert_eq!(lost_by(PageCopy { depth: 1, ..copy(2, 3, 5) }, base), "depth");
        assert_eq!(lost_by(copy(2, 3, 12), base), "shortest-url");
        assert_eq!(lost_by(copy(2, 3, 10), base), "smallest-id");
    }

    proptest! {
        #[test]
        fn criterion_between_two_copies_is_the_minimum_between_their_neighbours(
            drawn in prop::collection::vec((0u32..2, 0u8..2, -1i64..1, 0u32..2, 0u32..2, any::<bool>()), 2..9)
        ) {
            let keeping = Keeping::new(&KeepSettings { by: KeepBy::Newest, ..webtwin_job::Job::default().keep });
            let copies: Vec<PageCopy> = drawn.iter().zip(0..).map(|(&(preference, previous, merit, links, depth, _), page)|
                PageCopy { preference, kept_before: previous, merit, depth, ..copy(page, links, 9) }).collect();
            let is_kept = |page: Page| Some(drawn[page].5);
            let mut best_first: Vec<&PageCopy> = copies.iter().collect();
            sort_best_first(&mut best_first, is_kept);
            prop_assert_eq!(best_first[0].page, keeper(&copies, is_kept).unwrap().page);
            let between = |x: usize, y: usize| keeping.criterion(best_first[y], best_first[x], is_kept);
            for (x, y) in (0..copies.len()).flat_map(|x| (x + 1..copies.len()).map(move |y| (x, y))) {
                prop_assert_eq!(between(x, y), (x..y).map(|at| between(at, at + 1)).min().unwrap());
            }
        }

        /// An earlier result does not change the rule: it only selects the copies that the rule
        /// chooses from.
        #[test]
        fn rule_prefers_previously_kept_pages_among_equally_preferred_ones(
            drawn in prop::collection::vec((0u32..3, 0u8..2, -2i64..2, 0u32..3, any::<bool>()), 1..9)
        ) {
            let copies: Vec<PageCopy> = drawn.iter().zip(0..).map(|(&(preference, previous, merit, links, _), page)|
                PageCopy { preference, kept_before: previous, merit, ..copy(page, links, 9) }).collect();
            let is_kept = |page: Page| drawn[page].4.then_some(page.0.is_multiple_of(2));
            let best = copies.iter().map(|copy| copy.preference).min().unwrap();
            let mut from: Vec<PageCopy> = copies.iter().copied().filter(|copy| copy.preference == best).collect();
            if from.iter().any(|copy| copy.kept_before == 1) {
                from.retain(|copy| copy.kept_before == 1);
            }
            from.iter_mut().for_each(|copy| copy.kept_before = 0);
            prop_assert_eq!(stays(&copies, is_kept), stays(&from, is_kept));
        }
    }

    proptest! {
        /// A pin does not change the rule either: of two pins in one cluster the usual order
        /// decides.
        #[test]
        fn rule_chooses_among_pinned_pages_first(
            drawn in prop::collection::vec((0u8..2, 0u32..3, 0u8..2, -2i64..2, any::<bool>()), 1..9)
        ) {
            let copies: Vec<PageCopy> = drawn.iter().zip(0..).map(|(&(pin, preference, previous, merit, _), page)|
                PageCopy { pinned: pin, preference, kept_before: previous, merit, ..copy(page, 0, 9) }).collect();
            let is_kept = |page: Page| drawn[page].4.then_some(page.0.is_multiple_of(2));
            let mut from = copies.clone();
            if from.iter().any(|copy| copy.pinned == 1) {
                from.retain(|copy| copy.pinned == 1);
            }
            from.iter_mut().for_each(|copy| copy.pinned = 0);
            prop_assert_eq!(stays(&copies, is_kept), stays(&from, is_kept));
        }
    }

    #[test]
    fn collections_with_memory_are_not_outvoted_by_clusters_without_and_preference_votes_for_the_other() {
        let keep = |sticky: &str, prefer: &[&str]| {
            Keeping::new(&KeepSettings {
                prefer: prefer.iter().map(|glob| glob.to_string()).collect(),
                by: KeepBy::Links,
                sticky: sticky.into(),
                ..webtwin_job::Job::default().keep
            })
        };
        let (remembers, forgets) = (PageCopy { kept_before: 1, ..copy(1, 0, 9) }, copy(2, 9, 9));
        assert!(!keep("", &[]).has_votes());
        let sticky = keep("may", &[]);
        assert!(sticky.has_votes() && sticky.votes(&remembers) && !sticky.votes(&forgets));
        assert!(keep("may", &["*"]).votes(&forgets));
        let votes = |pinned, remembered, all| CollectionVotes { pinned, remembered, total: all };
        assert!(votes(0, 1, 1) > votes(0, 0, 9) && votes(1, 0, 1) > votes(0, 9, 9));
        let pins = Keeping::new(&KeepSettings { pins: "pins.tsv".into(), ..webtwin_job::Job::default().keep });
        assert!(pins.has_votes() && pins.votes(&PageCopy { pinned: 1, ..forgets }) && !pins.votes(&forgets));
    }
}
