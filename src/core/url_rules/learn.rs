//! Learning of the rules of one domain: clusters propose edits, and the evidence decides.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::address::UrlParts;
use super::edit::UrlEdit;
use super::evidence::{CONTRADICTION, DomainPage, DomainPages, EditCounts, EditTally, half, lower_bound};
use super::propose::propose;
use super::rules::Rule;
use super::scope::{Paths, SiteScope};

/// Evidence that is required for a rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EvidenceThreshold {
    /// Minimum number of pages in support of the rule.
    pub support: u64,
    /// Minimum lower bound of the fraction of support, in units of 1/10,000.
    pub bound: u32,
}

impl Default for EvidenceThreshold {
    /// Returns the default requirement: at least five pages that are rewritten to the URL of a
    /// copy, and, at 95 % confidence, a lower bound of 0.95 of their fraction among all pages that
    /// are rewritten to the URL of another page.
    fn default() -> EvidenceThreshold {
        EvidenceThreshold { support: 5, bound: 9_500 }
    }
}

/// Maximum number of pages of a trivial cluster that propose edits.
const PAGES_OF_CLUSTER: usize = 64;
/// Maximum number of edits of a domain that are proposed and counted together.
const PROPOSALS: usize = 1 << 18;
const CANDIDATES: usize = 64;
/// Maximum number of rounds in which the pages, under the URLs that rules have given them, propose
/// more edits.
const ROUNDS: usize = 4;

/// Learns the rules of a domain, and returns them in the order in which they are applied. The order
/// of the pages does not matter.
///
/// Edits are tried one by one, starting with those that the most pairs propose. Each rule is
/// applied to the pages before the next edit is counted. So the evidence of a rule is limited to
/// the pages that earlier rules have not joined, and an edit that is the reverse of a rule finds no
/// evidence.
///
/// # Cost
/// A round applies up to 64 edits to each URL. Memory: 100 bytes and some URLs a page.
///
/// # Examples
/// A hundred pages of a site, each with and without a session id. Pages that differ in the
/// parameter `id` are not copies of each other, so only the session id is dropped.
/// ```
/// use webtwin_core::url_rules::evidence::DomainPage;
/// use webtwin_core::url_rules::learn::{EvidenceThreshold, learn};
///
/// let page = |url, cluster| DomainPage { url, cluster, skipped: false, is_page: true };
/// let pages = (0..100).flat_map(|n| {
///     let url = format!("http://a.example/x?id={n}");
///     [page(url.clone(), n), page(format!("{url}&sid={}", n * 7919), n)]
/// });
/// let rules = learn("a.example", pages.collect(), &EvidenceThreshold::default());
/// assert_eq!(rules.len(), 1);
/// let url = rules[0].rewrite("http://a.example/x?sid=1&id=2");
/// assert_eq!(url.as_deref(), Some("http://a.example/x?id=2"));
/// ```
pub fn learn(domain: &str, mut pages: Vec<DomainPage>, required: &EvidenceThreshold) -> Vec<Rule> {
    pages.sort_unstable();
    pages.dedup_by(|x, y| x.url == y.url);
    let min_pairs =
        (required.support..).find(|&n| lower_bound(0, n) >= required.bound.min(9_900)).expect("bounds approach 1");
    let mut rules = Vec::new();
    let mut try_out = |edits: Vec<UrlEdit>, pages: &mut Vec<DomainPage>| {
        let previous_count = rules.len();
        for edit in edits {
            let evidence = DomainPages { domain, pages }.evidence(&edit, min_pairs);
            for (scope, [learned_counts, verified]) in accepted(&edit, &evidence, required) {
                let edit = edit.clone();
                let mut rule =
                    Rule { domain: domain.to_string(), scope, edit, learned: learned_counts, verified, saved: 0 };
                rule.saved = apply(&rule, pages);
                rules.push(rule);
            }
        }
        rules.len() > previous_count
    };
    for _ in 0..ROUNDS {
        if !try_out(candidates(&pages, min_pairs), &mut pages) {
            break;
        }
    }
    // Finally, clusters that no part of their URLs explains, for example if a folder was removed
    // and every URL in it returns one page.
    try_out(large_clusters(&pages, min_pairs), &mut pages);
    rules
}

/// Returns edits that rewrite any URL to one page of a trivial cluster, for clusters with more than
/// `min_size` pages, the largest first.
fn large_clusters(pages: &[DomainPage], min_size: u64) -> Vec<UrlEdit> {
    let mut order: Vec<&DomainPage> = pages.iter().filter(|page| page.is_page).collect();
    order.sort_unstable_by_key(|page| (page.cluster, page.skipped, page.url.len(), &page.url));
    let clusters = order.chunk_by(|x, y| x.cluster == y.cluster).filter(|cluster| cluster.len() as u64 > min_size);
    let mut clusters: Vec<&[&DomainPage]> = clusters.collect();
    clusters.sort_by_key(|cluster| Reverse(cluster.len()));
    clusters.truncate(CANDIDATES);
    clusters.into_iter().map(|cluster| UrlEdit::Page(cluster[0].url.clone())).collect()
}

/// Rewrites the URLs of pages by the rule, and drops pages that are rewritten to the URL of another
/// page. Returns the number of pages dropped in favour of other pages.
fn apply(rule: &Rule, pages: &mut Vec<DomainPage>) -> u64 {
    // The page that had the URL before the rule comes first, and stays.
    let mut pages_and_changes: Vec<(DomainPage, bool)> =
        std::mem::take(pages).into_iter().map(|page| (page, false)).collect();
    for (page, is_changed) in &mut pages_and_changes {
        if let Some(url) = rule.rewrite(&page.url) {
            (page.url, *is_changed) = (url, true);
        }
    }
    pages_and_changes.sort_unstable_by(|x, y| (&x.0.url, x.1, x.0.cluster).cmp(&(&y.0.url, y.1, y.0.cluster)));
    let mut saved = 0;
    pages_and_changes.dedup_by(|(next, _), (page, _)| {
        let is_same = next.url == page.url;
        if is_same {
            saved += u64::from(page.is_page && next.is_page);
            page.skipped &= next.skipped;
            page.is_page |= next.is_page;
        }
        is_same
    });
    pages.extend(pages_and_changes.into_iter().map(|row| row.0));
    saved
}

/// Counts of the pairs that propose an edit.
#[derive(Debug, Clone, Copy, Default)]
struct Proposal {
    /// Number of pairs in all clusters.
    total: u64,
    /// Cluster that proposed the edit first, of any half, and in `in_first` the number of its
    /// pairs.
    cluster: u32,
    in_first: u64,
    /// First cluster of the half to learn from, and in `learned_clusters` their number: 2 for any
    /// greater number.
    learned_cluster: u32,
    learned_clusters: u32,
}

impl Proposal {
    fn add(&mut self, cluster: u32) {
        if self.total == 0 {
            self.cluster = cluster;
        }
        self.total += 1;
        self.in_first += u64::from(cluster == self.cluster);
        if half(u64::from(cluster)) == 0 {
            if self.learned_clusters == 0 {
                (self.learned_cluster, self.learned_clusters) = (cluster, 1);
            } else if self.learned_cluster != cluster {
                self.learned_clusters = 2;
            }
        }
    }
}

/// Returns the edits that enough pairs of copies propose, those of the most pairs first. A page
/// that supports an edit is in two pairs, or in none if its cluster is large. Therefore a quarter
/// of the `min_pairs` support is required.
fn candidates(pages: &[DomainPage], min_pairs: u64) -> Vec<UrlEdit> {
    let mut order: Vec<usize> = (0..pages.len()).collect();
    let key = |&page: &usize| (pages[page].cluster, pages[page].url.len(), page);
    order.sort_unstable_by_key(key);
    let mut proposed: HashMap<UrlEdit, Proposal> = HashMap::new();
    let mut add = |from: &DomainPage, to: &DomainPage| {
        let parsed = UrlParts::parse(&from.url).zip(UrlParts::parse(&to.url));
        for edit in parsed.into_iter().flat_map(|(from, to)| propose(&from, &to)) {
            proposed.entry(edit).or_default().add(from.cluster);
        }
        // Most edits that were proposed once so far are never proposed again.
        let mut min_count = 1;
        while proposed.len() > PROPOSALS {
            min_count += 1;
            proposed.retain(|_, row| row.total >= min_count);
        }
    };
    for cluster in order.chunk_by(|&x, &y| pages[x].cluster == pages[y].cluster) {
        // Members are ordered by the length of their URLs. The URL of the page that stays is the
        // target for the others.
        let mut members: Vec<usize> = cluster.iter().take(PAGES_OF_CLUSTER).copied().collect();
        let stays = cluster.iter().find(|&&page| !pages[page].skipped).unwrap_or(&cluster[0]);
        members.iter().filter(|&page| page != stays).for_each(|&page| add(&pages[page], &pages[*stays]));
        // Neighbours in the order of URLs differ in little.
        members.sort_unstable();
        for pair in members.windows(2).filter(|pair| !pair.contains(stays)) {
            let [a, b] = [&pages[pair[0]], &pages[pair[1]]];
            if a.url.len() < b.url.len() { add(b, a) } else { add(a, b) }
        }
    }
    let is_enough = |row: &Proposal| {
        let enough = min_pairs.div_ceil(4);
        row.total >= enough && (row.learned_clusters > 1 || row.in_first >= enough)
    };
    // If two hosts replace each other, the one with more pages that stay, or else the shorter one,
    // is the target.
    let mut staying: HashMap<&str, usize> = HashMap::new();
    for page in pages.iter().filter(|page| !page.skipped) {
        *staying.entry(UrlParts::parse(&page.url).map_or("", |address| address.origin)).or_default() += 1;
    }
    let is_backward = |edit: &UrlEdit| match edit {
        UrlEdit::Origin(from, to) => {
            let rank = |origin: &str| (staying.get(origin), Reverse(origin.len()), Reverse(origin.to_string()));
            rank(from) > rank(to) && proposed.contains_key(&UrlEdit::Origin(to.clone(), from.clone()))
        }
        _ => false,
    };
    let mut proposals: Vec<(UrlEdit, Proposal)> = Vec::new();
    for (edit, row) in &proposed {
        if is_enough(row) && !is_backward(edit) {
            proposals.push((edit.clone(), *row));
        }
    }
    proposals.sort_unstable_by(|x, y| y.1.total.cmp(&x.1.total).then_with(|| x.0.cmp(&y.0)));
    proposals.truncate(CANDIDATES);
    proposals.into_iter().map(|row| row.0).collect()
}

/// True if the evidence contradicts a rule in a part of its scope.
fn is_contradicted(tally: &EditTally) -> bool {
    let EditCounts { support, violations } = EditCounts::sum(&tally.halves);
    tally.contradicting_pages >= CONTRADICTION && violations > support
}

/// Returns the most general scopes for which the evidence is enough, with the evidence of both
/// halves.
fn accepted(
    edit: &UrlEdit,
    evidence: &[(SiteScope, EditTally)],
    required: &EvidenceThreshold,
) -> Vec<(SiteScope, [EditCounts; 2])> {
    let contradicted: Vec<&SiteScope> =
        evidence.iter().filter(|row| is_contradicted(&row.1)).map(|row| &row.0).collect();
    let mut enough: Vec<(&SiteScope, [EditCounts; 2])> =
        evidence.iter().filter_map(|(scope, tally)| Some((scope, enough(edit, scope, tally, required)?))).collect();
    enough.sort_by_key(|row| row.0.specificity());
    let mut accepted_scopes: Vec<(SiteScope, [EditCounts; 2])> = Vec::new();
    for (scope, halves) in enough {
        let is_covered = accepted_scopes.iter().any(|row| row.0.contains(scope));
        if !is_covered && !contradicted.iter().any(|part| scope.contains(part)) {
            accepted_scopes.push((scope.clone(), halves));
        }
    }
    accepted_scopes
}

/// Returns the evidence of both halves if it is enough.
fn enough(
    edit: &UrlEdit,
    scope: &SiteScope,
    tally: &EditTally,
    required: &EvidenceThreshold,
) -> Option<[EditCounts; 2]> {
    let total = EditCounts::sum(&tally.halves);
    if total.support < required.support || total.bound() < required.bound {
        return None;
    }
    let holds = |half: &EditCounts| {
        half.support > 0 && half.support * 10_000 >= u64::from(required.bound) * (half.support + half.violations)
    };
    let [holds_by_cluster, holds_by_url] = [&tally.halves, &tally.url_halves].map(|halves| halves.iter().all(holds));
    if holds_by_cluster && tally.clusters > 1 && tally.clusters_with_target > 1 {
        return Some(tally.halves);
    }
    // One page under all values of a parameter or below a path, such as a form to log in. All URLs
    // are of one cluster, so the halves are those of the URLs.
    let is_one_page = tally.clusters == 1 && tally.clusters_with_target == 1 && total.violations == 0;
    let is_general = matches!(edit, UrlEdit::Page(_)) || matches!(scope.paths, Paths::Is(_));
    (is_one_page && holds_by_url && is_general).then_some(tally.url_halves)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::url_rules::rules::Rules;

    const REQUIRED: EvidenceThreshold = EvidenceThreshold { support: 5, bound: 9_500 };

    /// Returns the pages of a site by URL and number of their text.
    fn site(urls: impl IntoIterator<Item = (String, u32)>) -> Vec<DomainPage> {
        let page = |(url, cluster)| DomainPage {
            url: format!("http://a.example{url}"),
            cluster,
            skipped: false,
            is_page: true,
        };
        urls.into_iter().map(page).collect()
    }

    fn texts(rules: &[Rule]) -> Vec<String> {
        let text = |rule: &Rule| {
            let (pattern, replacement) = rule.edit.texts();
            format!("{} {} {pattern} {replacement}", rule.scope, rule.edit.kind()).trim_end().to_string()
        };
        rules.iter().map(text).collect()
    }

    #[test]
    fn a_parameter_that_never_matters_is_dropped_and_one_that_does_is_not() {
        let pages = site((0..100).flat_map(|n| {
            [
                (format!("/x?id={n}"), n),
                (format!("/x?id={n}&sid={}", n * 7919), n),
                (format!("/x?id={n}&v=2"), 1000 + n),
            ]
        }));
        let rules = learn("a.example", pages, &REQUIRED);
        assert_eq!(texts(&rules), ["*.a.example/* parameter sid"]);
        assert_eq!((rules[0].counts(), rules[0].saved), (EditCounts { support: 100, violations: 0 }, 100));
        let rewritten = Rules::new(rules).rewrite("http://www.a.example/new?sid=1&id=2");
        assert_eq!(rewritten.map(|row| row.0).as_deref(), Some("http://www.a.example/new?id=2"));
    }

    #[test]
    fn a_parameter_that_matters_on_lists_is_dropped_from_products_only() {
        let pages = site((0..100).flat_map(|n| {
            let product = [(format!("/product/{n}"), n), (format!("/product/{n}?brand={}", n % 9), n)];
            let list = [(format!("/list/{n}"), 1000 + n), (format!("/list/{n}?brand={}", n % 9), 2000 + n)];
            product.into_iter().chain(list)
        }));
        assert_eq!(texts(&learn("a.example", pages, &REQUIRED)), ["a.example/product/* parameter brand"]);
    }

    #[test]
    fn parameters_that_occur_together_and_host_aliases_are_detected() {
        let with_www = |page: DomainPage| DomainPage { url: page.url.replace("//", "//www."), ..page };
        let mut pages = site((0..200).map(|n| (format!("/p/{n}"), n)));
        pages.extend(
            site((0..100).map(|n| (format!("/p/{n}?utm_source=a{n}&utm_medium=b"), n))).into_iter().map(with_www),
        );
        pages.extend(site((0..100).map(|n| (format!("/p/{n}"), n))).into_iter().map(with_www));
        let rules = learn("a.example", pages, &REQUIRED);
        let expected = [
            "*.a.example/* parameter utm_medium&utm_source",
            "*.a.example/* host http://www.a.example http://a.example",
        ];
        assert_eq!(texts(&rules), expected);
        assert_eq!(rules.iter().map(|rule| rule.saved).sum::<u64>(), 200);
    }

    #[test]
    fn form_with_a_return_url_is_one_page_and_few_urls_make_no_rule() {
        let forms = |n| {
            let pages = (0..n).map(|n| (format!("/login?next=/p/{n}"), 0)).chain([("/login".to_string(), 0)]);
            pages.chain((1..n).map(|n| (format!("/p/{n}?next=1"), n)))
        };
        assert_eq!(texts(&learn("a.example", site(forms(80)), &REQUIRED)), ["a.example/login parameter next"]);
        let other_pages = (1..80).map(|n| (format!("/p/{n}"), 100 + n));
        let rules = learn("a.example", site(forms(80).chain(other_pages)), &REQUIRED);
        assert_eq!(texts(&rules), ["a.example/login parameter next"]);
        assert!(learn("a.example", site(forms(30)), &REQUIRED).is_empty());
    }

    #[test]
    fn a_folder_without_any_other_page_is_one_page() {
        let single_page = |n: u32| (0..n).map(|n| (format!("/old/{}/{n}.html", n % 7), 0));
        let other_pages = (1..80).map(|n| (format!("/p/{n}"), n));
        let rules = learn("a.example", site(single_page(80).chain(other_pages.clone())), &REQUIRED);
        assert_eq!(texts(&rules), ["a.example/old/* page * http://a.example/old/0/0.html"]);
        assert_eq!(rules[0].saved, 79);
        // A page below the folder, and too few pages.
        let page = [("/old/3/a.html".to_string(), 99)];
        assert!(learn("a.example", site(single_page(80).chain(other_pages.clone()).chain(page)), &REQUIRED).is_empty());
        assert!(learn("a.example", site(single_page(60).chain(other_pages)), &REQUIRED).is_empty());
        // A parameter that determines the page, whatever the path is.
        let edits = (0..80).map(|n| (format!("/p/{n}?action=edit"), 0));
        let rules = learn("a.example", site(edits.chain((1..80).map(|n| (format!("/p/{n}"), n)))), &REQUIRED);
        assert_eq!(texts(&rules), ["*.a.example/*?action=edit page * http://a.example/p/0?action=edit"]);
    }

    #[test]
    fn permanently_redirecting_urls_are_evidence_for_rules_but_save_no_page() {
        let mut pages = site((0..100).map(|n| (format!("/x?id={n}"), n)));
        let as_redirect = |page: DomainPage| DomainPage { skipped: true, is_page: false, ..page };
        pages.extend(site((0..100).map(|n| (format!("/x?id={n}&ref={}", n * 7919), n))).into_iter().map(as_redirect));
        let rules = learn("a.example", pages, &REQUIRED);
        assert_eq!(texts(&rules), ["*.a.example/* parameter ref"]);
        assert_eq!((rules[0].counts(), rules[0].saved), (EditCounts { support: 100, violations: 0 }, 0));
    }

    #[test]
    fn placeholder_pages_yield_no_rule_for_pages_with_content() {
        let pages =
            (0..200).map(|n| (format!("/w?id={n}"), if n % 2 == 0 { 0 } else { n })).chain([("/w".into(), 999)]);
        assert!(learn("a.example", site(pages), &REQUIRED).is_empty());
    }

    proptest! {
        #[test]
        fn rules_join_copies_in_any_order_of_pages(
            kinds in prop::collection::vec(0u32..6, 80..160), seed: u64
        ) {
            let urls = kinds.iter().zip(0..).flat_map(|(kind, n)| {
                let copy = match kind {
                    0 => format!("/f/{n}?sid={n}"),
                    1 => format!("/f/{n}/"),
                    2 => format!("/print/f/{n}"),
                    3 => format!("/F/{n}"),
                    4 => format!("/f/{n}?page=1"),
                    _ => format!("/f/{n}?page=2"),
                };
                [(format!("/f/{n}"), n), (copy, if *kind == 5 { 1000 + n } else { n })]
            });
            let pages = site(urls);
            let mut shuffled = pages.clone();
            let hash = |page: &DomainPage| xxhash_rust::xxh3::xxh3_64_with_seed(page.url.as_bytes(), seed);
            shuffled.sort_by_key(hash);
            let lax = EvidenceThreshold { support: 5, bound: 7_000 };
            let rules = learn("a.example", pages.clone(), &lax);
            prop_assert_eq!(&rules, &learn("a.example", shuffled, &lax));
            // No evidence contradicts any rule, so no two texts are rewritten to one URL.
            let rules = Rules::new(rules);
            let mut cluster_of_url: HashMap<String, u32> = HashMap::new();
            for page in &pages {
                let url = rules.rewrite(&page.url).map_or(page.url.clone(), |row| row.0);
                prop_assert_eq!(*cluster_of_url.entry(url).or_insert(page.cluster), page.cluster);
            }
        }
    }
}
