//! Evidence for an edit: pages that it rewrites to one URL, and whether these are copies of each
//! other.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use super::address::UrlParts;
use super::edit::UrlEdit;
use super::scope::{SiteScope, UrlScope};

/// Minimum number of pages that contradict a rule in a part of its scope, if there are more
/// violations than support.
pub const CONTRADICTION: u64 = 3;

/// A page as input of the rules, or a URL that redirects to it permanently.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DomainPage {
    /// Canonical URL, or the URL to which rules have rewritten it so far.
    pub url: String,
    /// Trivial cluster of the page.
    pub cluster: u32,
    /// True if a crawler may skip the URL.
    pub skipped: bool,
    /// False if the URL redirects to the page.
    pub is_page: bool,
}

/// Numbers of pages, and of URLs that redirect to pages, that an edit rewrites to the URL of
/// another page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct EditCounts {
    /// Number of pages of the same trivial cluster as the other page.
    pub support: u64,
    /// Number of pages of another trivial cluster.
    pub violations: u64,
}

/// Evidence for an edit within a scope.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EditTally {
    /// Counts by half of the clusters.
    pub halves: [EditCounts; 2],
    /// Counts by half of the URLs.
    pub url_halves: [EditCounts; 2],
    /// Number of trivial clusters in support: 0, 1, or 2 for any greater number.
    pub clusters: u64,
    /// Number of trivial clusters in support that have a page at the edited URL: 0, 1, or 2 for any
    /// greater number.
    pub clusters_with_target: u64,
    /// Number of pages that violations are compared with. A single page that lost its copies is
    /// counted once, however many violations it causes.
    pub contradicting_pages: u64,
    last_against: Option<u32>,
    first: Option<u32>,
    first_with_target: Option<u32>,
}

impl EditCounts {
    fn add(&mut self, agrees: bool) {
        *(if agrees { &mut self.support } else { &mut self.violations }) += 1;
    }

    /// Returns the sum of both halves.
    pub fn sum(halves: &[EditCounts; 2]) -> EditCounts {
        let [a, b] = halves;
        EditCounts { support: a.support + b.support, violations: a.violations + b.violations }
    }

    /// Returns the lower bound of the fraction of support at 95 % confidence, in units of 1/10,000.
    pub fn bound(&self) -> u32 {
        lower_bound(self.violations, self.support + self.violations)
    }
}

impl EditTally {
    fn add(&mut self, pair: &Pair) {
        self.halves[usize::from(pair.half)].add(pair.agrees);
        self.url_halves[usize::from(pair.url_half)].add(pair.agrees);
        if !pair.agrees && self.last_against.replace(pair.other) != Some(pair.other) {
            self.contradicting_pages += 1;
        }
        if pair.agrees {
            let count = |first: &mut Option<u32>, number: &mut u64| match *first {
                None => (*first, *number) = (Some(pair.cluster), 1),
                Some(cluster) if cluster != pair.cluster => *number = 2,
                _ => {}
            };
            count(&mut self.first, &mut self.clusters);
            if pair.has_target {
                count(&mut self.first_with_target, &mut self.clusters_with_target);
            }
        }
    }
}

/// Two pages that an edit rewrites to one URL.
#[derive(Debug, Clone, Copy)]
struct Pair {
    /// Page whose URL is edited.
    page: u32,
    /// Page that it is compared with.
    other: u32,
    /// True if the other page is at the edited URL.
    has_target: bool,
    /// Trivial cluster of the other page.
    cluster: u32,
    agrees: bool,
    half: u8,
    url_half: u8,
}

/// Pages of a domain, which are found by their URLs. All URLs must differ.
pub struct DomainPages<'p> {
    /// Registered domain of the pages.
    pub domain: &'p str,
    /// Pages of the domain, ascending by URL.
    pub pages: &'p [DomainPage],
}

impl DomainPages<'_> {
    fn at(&self, url: &str) -> Option<usize> {
        self.pages.binary_search_by(|page| page.url.as_str().cmp(url)).ok()
    }

    /// Returns the pairs of pages that an edit rewrites to one URL. Each edited page is paired with
    /// the page at the edited URL. If there is none, it is paired with the first page of the most
    /// frequent cluster among the pages that are rewritten to this URL.
    ///
    /// # Cost
    /// One edit a page, and a sort of the pages that change.
    fn pairs(&self, edit: &UrlEdit) -> Vec<Pair> {
        let edited_url = |(page, row): (usize, &DomainPage)| Some((edit.apply(&UrlParts::parse(&row.url)?)?, page));
        let mut edited_urls: Vec<(String, usize)> = self.pages.iter().enumerate().filter_map(edited_url).collect();
        edited_urls.sort_unstable();
        let mut pairs = Vec::new();
        for group in edited_urls.chunk_by(|x, y| x.0 == y.0) {
            let target = self.at(&group[0].0);
            let other = target.unwrap_or_else(|| self.most_frequent(group));
            let cluster = self.pages[other].cluster;
            for &(_, page) in group.iter().filter(|row| row.1 != other) {
                let row = &self.pages[page];
                pairs.push(Pair {
                    page: page as u32,
                    other: other as u32,
                    has_target: target.is_some(),
                    cluster,
                    agrees: row.cluster == cluster,
                    half: half(u64::from(cluster)) as u8,
                    url_half: half(xxhash_rust::xxh3::xxh3_64(row.url.as_bytes())) as u8,
                });
            }
        }
        pairs
    }

    fn most_frequent(&self, group: &[(String, usize)]) -> usize {
        let mut count: HashMap<u32, usize> = HashMap::new();
        group.iter().for_each(|row| *count.entry(self.pages[row.1].cluster).or_default() += 1);
        let first = |row: &&(String, usize)| (count[&self.pages[row.1].cluster], std::cmp::Reverse(row.1));
        group.iter().max_by_key(first).expect("a group has a row").1
    }

    /// Returns the evidence for an edit by scope, in ascending order of scopes, or none if fewer
    /// than `min_pairs` pages support it in each scope. A pair of two edited pages counts if both
    /// are in the scope. Scopes with fewer pairs than `min_pairs` and than [`CONTRADICTION`] are
    /// left out, because they neither carry a rule nor contradict one: most scopes are single
    /// paths.
    ///
    /// # Cost
    /// The cost of `DomainPages::pairs`, and twice a dozen scopes for each pair that supports the
    /// edit. If the support is enough in some scope, also a dozen for each other pair. Memory: 32
    /// bytes for each pair, and 250 for each scope that is not left out.
    pub fn evidence(&self, edit: &UrlEdit, min_pairs: u64) -> Vec<(SiteScope, EditTally)> {
        let pairs = self.pairs(edit);
        if (pairs.iter().filter(|pair| pair.agrees).count() as u64) < min_pairs {
            return Vec::new();
        }
        let mut bounds = ScopeBounds::new(pairs.len());
        self.each_scope(&pairs, true, |_, scope| bounds.add(&scope));
        if min_pairs > 0 && !bounds.has_at_least(min_pairs) {
            return Vec::new();
        }
        self.each_scope(&pairs, false, |_, scope| bounds.add(&scope));
        let min_scope = min_pairs.min(CONTRADICTION);
        let mut tallies: HashMap<UrlScope<'_>, EditTally> = HashMap::new();
        for agrees in [true, false] {
            self.each_scope(&pairs, agrees, |pair, scope| {
                if bounds.bound(&scope) >= min_scope {
                    tallies.entry(scope).or_default().add(pair);
                }
            });
        }
        let has_support = |tally: &EditTally| EditCounts::sum(&tally.halves).support >= min_pairs;
        if !tallies.values().any(has_support) {
            return Vec::new();
        }
        let mut sorted_tallies: Vec<(SiteScope, EditTally)> =
            tallies.into_iter().map(|(scope, tally)| (scope.into(), tally)).collect();
        sorted_tallies.sort_unstable_by(|x, y| x.0.cmp(&y.0));
        sorted_tallies
    }

    /// Returns the evidence for an edit within one scope, as [`DomainPages::evidence`] counts it.
    pub fn evidence_within(&self, edit: &UrlEdit, scope: &SiteScope) -> EditTally {
        let mut tally = EditTally::default();
        let pairs = self.pairs(edit);
        for agrees in [true, false] {
            self.each_scope(&pairs, agrees, |pair, other| {
                if SiteScope::from(other) == *scope {
                    tally.add(pair);
                }
            });
        }
        tally
    }

    /// Calls `visit` with the pairs that agree, or with those that do not, and each of their
    /// scopes.
    fn each_scope<'s>(&'s self, pairs: &[Pair], agrees: bool, mut visit: impl FnMut(&Pair, UrlScope<'s>)) {
        for pair in pairs.iter().filter(|pair| pair.agrees == agrees) {
            self.scopes(pair).into_iter().for_each(|scope| visit(pair, scope));
        }
    }

    /// Returns the scopes that contain a pair.
    fn scopes(&self, pair: &Pair) -> Vec<UrlScope<'_>> {
        let scopes_of = |page: u32| {
            let address = UrlParts::parse(&self.pages[page as usize].url).expect("an edited URL has parts");
            UrlScope::all_of(&address, self.domain)
        };
        let mut scopes = scopes_of(pair.page);
        if !pair.has_target {
            let other_scopes = scopes_of(pair.other);
            scopes.retain(|scope| other_scopes.contains(scope));
        }
        scopes
    }
}

/// Upper bounds of the numbers of pairs in scopes: one byte for each of some slots, of which a
/// scope has one, perhaps together with others.
struct ScopeBounds {
    slots: Vec<u8>,
    hasher: BuildHasherDefault<DefaultHasher>,
}

/// Slots for each pair, which is in a dozen scopes at most.
const SLOTS: usize = 16;

impl ScopeBounds {
    /// Creates bounds of zero for the scopes of a number of pairs.
    fn new(pairs: usize) -> ScopeBounds {
        ScopeBounds { slots: vec![0; (SLOTS * pairs).next_power_of_two()], hasher: BuildHasherDefault::default() }
    }

    fn slot(&self, scope: &UrlScope<'_>) -> usize {
        self.hasher.hash_one(scope) as usize & (self.slots.len() - 1)
    }

    fn add(&mut self, scope: &UrlScope<'_>) {
        let slot = self.slot(scope);
        self.slots[slot] = self.slots[slot].saturating_add(1);
    }

    /// Returns a number that is not less than the number of pairs of the scope, or the largest
    /// number of a byte.
    fn bound(&self, scope: &UrlScope<'_>) -> u64 {
        self.slots[self.slot(scope)].into()
    }

    /// True if a scope may have this number of pairs.
    fn has_at_least(&self, pairs: u64) -> bool {
        self.slots.iter().any(|&bound| u64::from(bound) >= pairs.min(u8::MAX.into()))
    }
}

/// Returns the half that a number belongs to: 0 to learn from, 1 to verify.
pub(super) fn half(number: u64) -> usize {
    (xxhash_rust::xxh3::xxh3_64(&number.to_le_bytes()) & 1) as usize
}

/// Maximum number of trials that are summed. A larger number is reduced to this one with the same
/// fraction of failures, which lowers the bound.
const TRIALS: u64 = 1000;

/// Returns the lower bound of the fraction of successes if `failures` of `trials` failed, in units
/// of 1/10,000. It is the bound of Clopper and Pearson at 95 % confidence, for which the true
/// fraction is lower in one case of 40.
///
/// The bound is the greatest fraction for which at most this number of failures has a probability
/// of 2.5 % or less. It is computed by products and sums only, so that all machines return the same
/// result.
///
/// ```
/// use webtwin_core::url_rules::evidence::lower_bound;
///
/// assert_eq!(lower_bound(0, 10), 6915);
/// assert_eq!(lower_bound(3, 3), 0);
/// ```
pub fn lower_bound(failures: u64, trials: u64) -> u32 {
    let (failures, trials) = match trials > TRIALS {
        true => ((u128::from(failures) * u128::from(TRIALS)).div_ceil(u128::from(trials)) as u64, TRIALS),
        false => (failures, trials),
    };
    // Fractions below one half are never accepted, and their powers are too small for a double.
    if 2 * failures >= trials {
        return 0;
    }
    let is_unlikely = |units: u32| {
        let share = f64::from(units) / 10_000.0;
        let mut term = (0..trials).fold(1.0, |product, _| product * share);
        let mut sum = term;
        for k in 0..failures {
            term *= (1.0 - share) / share * (trials - k) as f64 / (k + 1) as f64;
            sum += term;
        }
        sum <= 0.025
    };
    let (mut low, mut high): (u32, u32) = (0, 10_000);
    while high - low > 1 {
        let middle = low.midpoint(high);
        *(if is_unlikely(middle) { &mut low } else { &mut high }) = middle;
    }
    low
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bounds_are_those_of_clopper_and_pearson() {
        // From tables of the exact interval: 7 of 10, 29 of 29, 97 of 100, 72 of 72.
        let bounds = [lower_bound(3, 10), lower_bound(0, 29), lower_bound(3, 100), lower_bound(0, 72)];
        assert_eq!(bounds, [3475, 8805, 9148, 9500]);
        // Many trials give about the bound of a thousand trials, and never a higher one.
        assert_eq!(lower_bound(50, 5000), lower_bound(10, 1000));
        assert!(lower_bound(1, 1_000_000) >= lower_bound(1, 1000));
    }

    /// Searches all pairs of pages that are rewritten to one URL, one by one.
    fn plainly(domain_pages: &DomainPages<'_>, edit: &UrlEdit) -> BTreeMap<String, EditCounts> {
        let edited_url = |page: &DomainPage| edit.apply(&UrlParts::parse(&page.url).unwrap());
        let scopes_of = |url: &str| -> Vec<SiteScope> {
            let scopes = UrlScope::all_of(&UrlParts::parse(url).unwrap(), domain_pages.domain);
            scopes.into_iter().map(SiteScope::from).collect()
        };
        let mut groups: BTreeMap<String, Vec<&DomainPage>> = BTreeMap::new();
        for page in domain_pages.pages {
            groups.entry(edited_url(page).unwrap_or_default()).or_default().push(page);
        }
        groups.remove("");
        let mut counts: BTreeMap<String, EditCounts> = BTreeMap::new();
        for (url, group) in groups {
            let size = |cluster: u32| group.iter().filter(|page| page.cluster == cluster).count();
            let target = domain_pages.pages.iter().find(|page| page.url == url);
            let largest = group.iter().map(|page| size(page.cluster)).max().unwrap();
            let other = target.unwrap_or_else(|| group.iter().find(|page| size(page.cluster) == largest).unwrap());
            for page in group.iter().filter(|page| page.url != other.url) {
                for scope in scopes_of(&page.url) {
                    let holds_other = scope.holds(&UrlParts::parse(&other.url).unwrap());
                    let lists_other = scopes_of(&other.url).contains(&scope);
                    assert!(holds_other || !lists_other);
                    if target.is_some() || lists_other {
                        counts.entry(scope.to_string()).or_default().add(page.cluster == other.cluster);
                    }
                }
            }
        }
        counts
    }

    proptest! {
        #[test]
        fn counts_of_the_join_equal_a_search(
            pages in prop::collection::btree_map("http://(w\\.)?a\\.b/[xy]/([xy]/)?(\\?([st]=[12]&){0,2}[su]=[1-3])?", 0u32..4, 0..24),
            edit in 0usize..3,
            min_pairs in 1u64..6,
        ) {
            let pages: Vec<DomainPage> =
                pages.into_iter().map(|(url, cluster)| DomainPage { url, cluster, skipped: false, is_page: true }).collect();
            let site = DomainPages { domain: "a.b", pages: &pages };
            let edits = [
                UrlEdit::Parameters(vec!["s".into()]),
                UrlEdit::Origin("http://w.a.b".into(), "http://a.b".into()),
                UrlEdit::Part("/x/".into(), "/".into()),
            ];
            let edit = edits[edit].clone();
            let evidence = site.evidence(&edit, 0);
            let counts = |evidence: &[(SiteScope, EditTally)]| -> BTreeMap<String, EditCounts> {
                evidence.iter().map(|(scope, tally)| (scope.to_string(), EditCounts::sum(&tally.halves))).collect()
            };
            prop_assert_eq!(counts(&evidence), plainly(&site, &edit));
            for (scope, tally) in &evidence {
                prop_assert_eq!(&site.evidence_within(&edit, scope), tally);
            }
            // Only scopes with few pairs are left out, if any scope has enough support.
            let sum = |tally: &EditTally| EditCounts::sum(&tally.halves);
            let has_support = evidence.iter().any(|(_, tally)| sum(tally).support >= min_pairs);
            let expected = evidence.into_iter().filter(|(_, tally)| {
                let EditCounts { support, violations } = sum(tally);
                has_support && support + violations >= min_pairs.min(CONTRADICTION)
            });
            let is_large = |tally: &EditTally| sum(tally).support + sum(tally).violations >= min_pairs.min(CONTRADICTION);
            let found = site.evidence(&edit, min_pairs).into_iter().filter(|(_, tally)| is_large(tally));
            prop_assert!(found.eq(expected));
        }
    }
}
