//! Sites of both crawls, their pages, and the sites that moved.
//!
//! A *site* is the part of a URL before the path: `https://www.example.com`. If a crawl finds a
//! site under https, with or without `www.`, or under another name, then none of its pages is at
//! its old URL. So moved sites are found before moved pages.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use xxhash_rust::xxh3::xxh3_64;

use super::pages::PageChange;
use webtwin_base::by_hash::HashKeyMap;
use webtwin_storage::table::{Table, TableColumn};
use webtwin_storage::texts::StringTable;

/// Hash of a site's name.
pub(super) type SiteId = u64;

/// Splits a canonical URL into the site and the path with the query.
pub(super) fn split(url: &str) -> (&str, &str) {
    let bytes = url.as_bytes();
    let mut colons = bytes.iter().enumerate().filter(|one| *one.1 == b':').map(|one| one.0);
    let host = colons.find(|&at| bytes[at + 1..].starts_with(b"//")).map_or(0, |at| at + 3);
    let end = bytes[host..].iter().position(|byte| matches!(byte, b'/' | b'?'));
    url.split_at(end.map_or(url.len(), |at| host + at))
}

/// Returns the host of a site, with its port.
pub(super) fn host_of(site: &str) -> &str {
    site.split_once("://").map_or(site, |(_, host)| host)
}

/// Returns the id of a site.
pub(super) fn site_id(site: &str) -> SiteId {
    xxh3_64(site.as_bytes())
}

/// Site with the counts of its pages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Site {
    /// Name of the site: scheme, host and port.
    pub name: String,
    /// Number of pages of the old crawl and of the new one.
    pub pages: [u64; 2],
    /// Number of URLs that are pages in both crawls.
    pub n_common: u64,
    /// Number of pages by change, in the order of [`PageChange::ALL`].
    pub what: [u64; PageChange::ALL.len()],
}

impl Site {
    fn n_lost(&self) -> u64 {
        self.pages[0] - self.n_common
    }

    fn gained(&self) -> u64 {
        self.pages[1] - self.n_common
    }

    /// True if at most a tenth of its old pages are still at their URL.
    fn has_gone(&self) -> bool {
        self.pages[0] > 0 && self.n_common * 10 <= self.pages[0]
    }

    /// True if at most a tenth of its new pages were at their URL before.
    fn has_come(&self) -> bool {
        self.pages[1] > 0 && self.n_common * 10 <= self.pages[1]
    }

    /// Returns the name of its host without `www.`. Sites with equal bare names are one site that
    /// is reachable under several names.
    fn bare_name(&self) -> &str {
        let host = host_of(&self.name);
        host.strip_prefix("www.").unwrap_or(host)
    }
}

/// All sites by id.
#[derive(Debug, Default)]
pub struct Sites(pub HashKeyMap<Site>);

impl Sites {
    /// Merges the sites and pages that several threads have counted.
    pub fn from_tallies(tallies: impl IntoIterator<Item = SiteTally>) -> Sites {
        let mut sites = Sites::default();
        for tally in tallies {
            for (id, number) in tally.numbers {
                let [old, new, n_common] = tally.pages[number as usize].map(u64::from);
                let name = || Site { name: tally.names[number as usize].into(), ..Site::default() };
                let site = sites.0.entry(id).or_insert_with(name);
                site.pages = [site.pages[0] + old, site.pages[1] + new];
                site.n_common += n_common;
            }
        }
        sites
    }

    /// Numbers the sites from 0, in no particular order.
    pub fn numbers(&self) -> HashKeyMap<u32> {
        self.0.keys().copied().zip(0..).collect()
    }

    /// Adds the changes of pages, counted by the number of their site.
    pub fn add(&mut self, numbers: &HashKeyMap<u32>, judged_pages: &[SitePages]) {
        for (id, site) in &mut self.0 {
            let counts = &judged_pages[numbers[id] as usize];
            site.what.iter_mut().zip(counts).for_each(|(all, more)| *all += u64::from(*more));
        }
    }

    /// Returns the hash of each site's bare name.
    pub fn bare_names(&self) -> HashKeyMap<u64> {
        self.0.iter().map(|(id, site)| (*id, xxh3_64(site.bare_name().as_bytes()))).collect()
    }
}

/// Number of pages of a site by change, in the order of [`PageChange::ALL`].
pub(super) type SitePages = [u32; PageChange::ALL.len()];

/// Pages by site, as one thread counts them. The counts are denser than [`Site`]s, because pages
/// are not sorted by site, and a count that misses the core's cache costs more than all other work
/// on the page in this pass.
#[derive(Debug, Default)]
pub struct SiteTally {
    numbers: HashKeyMap<u32>,
    names: StringTable,
    /// Number of pages of the old crawl, of the new one, and of both.
    pages: Vec<[u32; 3]>,
}

impl SiteTally {
    /// Counts a page of a site, which is in one crawl or in both.
    pub fn add(&mut self, site: &str, old: bool, new: bool) {
        let number = match self.numbers.entry(site_id(site)) {
            Entry::Occupied(occupied) => *occupied.get(),
            Entry::Vacant(vacant) => {
                self.names.push(site);
                self.pages.push([0; 3]);
                *vacant.insert(self.pages.len() as u32 - 1)
            }
        };
        let pages = &mut self.pages[number as usize];
        [old, new, old && new].into_iter().zip(pages).for_each(|(is, count)| *count += u32::from(is));
    }
}

/// Evidence for a move between two sites: pages that one lost and the other gained under the same
/// path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SiteVotes {
    /// Number of such pages.
    pub paths: u64,
    /// Number of such pages whose texts are the same, or near by simhash.
    pub texts: u64,
}

/// Two sites between which pages may have moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SiteMove {
    /// Site that the pages left.
    pub source: SiteId,
    /// Site that the pages moved to.
    pub target: SiteId,
    /// True if both sites are one host under another scheme or with another `www.`; then equal
    /// paths suffice as evidence.
    pub one_host: bool,
    /// True if the site as a whole may have moved, and not only some of its pages.
    pub is_whole: bool,
}

/// Minimum number of equal or near texts under equal paths for two hosts to be related.
const TEXTS: u64 = 3;

/// Finds pairs of sites between which pages may have moved, those with most evidence first: pairs
/// of one host before others, then by falling number of pages, then by falling number of texts.
///
/// Sites may have moved as a whole if
///
/// - of the pages that one site lost and the other gained, at least half of the smaller number and
///   a tenth of the larger have the same path on both,
/// - and hardly any page (at most a tenth) of one of the sites is at its URL in both crawls: the
///   site has gone, or it has come.
///
/// Sites of one host are a pair only if both hold. Other sites are a pair only if at least
/// [`TEXTS`] and a tenth of these pages have a text that is the same or near.
///
/// The result is the same when old and new are exchanged.
pub(super) fn between(sites: &Sites, votes: &HashMap<(SiteId, SiteId), SiteVotes>) -> Vec<SiteMove> {
    let mut site_moves = Vec::new();
    for (&(source, target), votes) in votes {
        let (old, new) = (&sites.0[&source], &sites.0[&target]);
        let (smaller, larger) = (old.n_lost().min(new.gained()), old.n_lost().max(new.gained()));
        let has_enough = votes.paths * 2 >= smaller && votes.paths * 10 >= larger;
        let is_whole = has_enough && (old.has_gone() || new.has_come());
        let one_host = old.bare_name() == new.bare_name() && is_whole;
        let texts = votes.texts >= TEXTS.min(smaller) && votes.texts * 10 >= votes.paths;
        if source != target && (one_host || texts) {
            // Orders by the unordered pair of ids, so that the order is the same when old and new
            // are exchanged.
            let order = (Reverse((one_host, votes.paths, votes.texts)), source.min(target), source.max(target));
            site_moves.push((order, SiteMove { source, target, one_host, is_whole }));
        }
    }
    site_moves.sort_unstable_by_key(|one| one.0);
    site_moves.into_iter().map(|one| one.1).collect()
}

/// Selects the sites that moved as a whole. `site_moves` has the pairs with most evidence first. A
/// site that has gone moved to one place, and a site that has come moved from one place; sites that
/// still exist may have lost pages to several or gained pages from several.
pub(super) fn moved_sites(sites: &Sites, site_moves: &[SiteMove]) -> Vec<SiteMove> {
    let mut taken_sites: [HashSet<SiteId>; 2] = Default::default();
    let mut chosen_moves = Vec::new();
    for site_move in site_moves.iter().filter(|one| one.is_whole) {
        let is_gone = sites.0[&site_move.source].has_gone();
        let come = sites.0[&site_move.target].has_come();
        if is_gone && taken_sites[0].contains(&site_move.source) || come && taken_sites[1].contains(&site_move.target) {
            continue;
        }
        taken_sites[0].insert(site_move.source);
        taken_sites[1].insert(site_move.target);
        chosen_moves.push(*site_move);
    }
    chosen_moves
}

/// A site, its change, and the other site if it moved.
type SiteRow<'s> = (&'s Site, &'static str, Option<SiteId>);

/// Builds `hosts_changed`: the sites with any change, by host, then by scheme.
pub(super) fn table(sites: &Sites, site_moves: &[SiteMove]) -> Table {
    // The move with most evidence decides.
    let best = |pairs: &mut dyn Iterator<Item = (SiteId, SiteId)>| {
        let mut best: HashMap<SiteId, SiteId> = HashMap::new();
        pairs.for_each(|(site, other)| _ = best.entry(site).or_insert(other));
        best
    };
    let went_to = best(&mut site_moves.iter().map(|one| (one.source, one.target)));
    let came_from = best(&mut site_moves.iter().map(|one| (one.target, one.source)));
    let mut rows: Vec<SiteRow<'_>> = Vec::new();
    for (id, site) in &sites.0 {
        let (target, source) = (went_to.get(id).copied(), came_from.get(id).copied());
        // A site that keeps more than a tenth of its pages is not reported as moved, even if the
        // others moved.
        let (what, counterpart) = match site {
            site if target.is_some() && site.has_gone() => ("moved_from", target),
            site if source.is_some() && site.has_come() => ("moved_to", source),
            Site { pages: [0, _], .. } => ("new", None),
            Site { pages: [_, 0], .. } => ("gone", None),
            site if site.what[PageChange::Same as usize] == site.pages[0].max(site.pages[1]) => ("same", None),
            _ => ("changed", None),
        };
        if what != "same" {
            rows.push((site, what, counterpart));
        }
    }
    rows.sort_by_cached_key(|row| (host_of(&row.0.name).to_string(), row.0.name.clone()));
    let texts = |value: &dyn Fn(&SiteRow<'_>) -> String| TableColumn::Text(rows.iter().map(value).collect());
    let counts = |value: &dyn Fn(&Site) -> u64| TableColumn::Count(rows.iter().map(|row| value(row.0)).collect());
    let count_of = |what: PageChange| counts(&move |site: &Site| site.what[what as usize]);
    Table::new([
        ("host", texts(&|row| host_of(&row.0.name).to_string())),
        ("site", texts(&|row| row.0.name.clone())),
        ("what", texts(&|row| row.1.to_string())),
        ("other_site", texts(&|row| row.2.map_or(String::new(), |other| sites.0[&other].name.clone()))),
        ("pages_old", counts(&|site| site.pages[0])),
        ("pages_new", counts(&|site| site.pages[1])),
        ("same", count_of(PageChange::Same)),
        ("bytes", count_of(PageChange::Bytes)),
        ("near", count_of(PageChange::Near)),
        ("changed", count_of(PageChange::Changed)),
        ("rewritten", count_of(PageChange::Rewritten)),
        ("reverted", count_of(PageChange::Reverted)),
        ("gone", count_of(PageChange::Gone)),
        ("new", count_of(PageChange::New)),
        ("moved_from", count_of(PageChange::MovedFrom)),
        ("moved_to", count_of(PageChange::MovedTo)),
    ])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sites(site_rows: &[(&str, [u64; 2], u64)]) -> Sites {
        let mut sites = Sites::default();
        for (name, pages, n_common) in site_rows {
            let site = Site { name: name.to_string(), pages: *pages, n_common: *n_common, ..Site::default() };
            sites.0.insert(site_id(name), site);
        }
        sites
    }

    fn message(site_rows: &[(&str, [u64; 2], u64)], votes: &[(&str, &str, u64, u64)]) -> Vec<(String, String)> {
        let sites = sites(site_rows);
        let forward_votes =
            votes.iter().map(|&(a, b, paths, texts)| ((site_id(a), site_id(b)), SiteVotes { paths, texts })).collect();
        let moved_pairs = moved_sites(&sites, &between(&sites, &forward_votes));
        // Exchanges old and new.
        let mirrored_sites =
            sites.0.iter().map(|(id, site)| (*id, Site { pages: [site.pages[1], site.pages[0]], ..site.clone() }));
        let backward_votes = forward_votes.iter().map(|(&(a, b), votes)| ((b, a), *votes)).collect();
        let mirrored_sites = Sites(mirrored_sites.collect());
        let backward_moves = moved_sites(&mirrored_sites, &between(&mirrored_sites, &backward_votes));
        let reversed: Vec<SiteMove> =
            backward_moves.iter().map(|one| SiteMove { source: one.target, target: one.source, ..*one }).collect();
        assert_eq!(reversed, moved_pairs);
        let name = |id: &SiteId| sites.0[id].name.clone();
        moved_pairs.iter().map(|one| (name(&one.source), name(&one.target))).collect()
    }

    #[test]
    fn site_under_another_scheme_has_moved_with_any_texts() {
        let site_rows = [("http://a.example", [10, 0], 0), ("https://www.a.example", [0, 12], 0)];
        let moved_pairs = vec![("http://a.example".to_string(), "https://www.a.example".to_string())];
        assert_eq!(message(&site_rows, &[("http://a.example", "https://www.a.example", 6, 0)]), moved_pairs);
        assert_eq!(message(&site_rows, &[("http://a.example", "https://www.a.example", 4, 0)]), []);
    }

    #[test]
    fn renaming_needs_texts_and_a_mutually_best_match() {
        let site_rows = [("http://a", [10, 1], 1), ("http://b", [0, 10], 0), ("http://c", [0, 10], 0)];
        assert_eq!(message(&site_rows, &[("http://a", "http://b", 9, 0)]), []);
        let moved_pairs = message(&site_rows, &[("http://a", "http://b", 8, 4), ("http://a", "http://c", 9, 3)]);
        assert_eq!(moved_pairs, [("http://a".to_string(), "http://c".to_string())]);
    }

    #[test]
    fn existing_site_may_lose_parts_to_several_new_sites() {
        let site_rows = [("http://a", [30, 10], 10), ("http://b", [0, 10], 0), ("http://c", [0, 10], 0)];
        let moved_pairs = message(&site_rows, &[("http://a", "http://b", 9, 4), ("http://a", "http://c", 10, 3)]);
        assert_eq!(
            moved_pairs,
            [("http://a", "http://c"), ("http://a", "http://b")].map(|(a, b)| (a.into(), b.into()))
        );
    }

    #[test]
    fn existing_site_has_not_moved_to_an_existing_one() {
        let site_rows = [("http://a", [10, 5], 5), ("http://b", [10, 15], 10)];
        assert_eq!(message(&site_rows, &[("http://a", "http://b", 5, 5)]), []);
    }

    proptest! {
        #[test]
        fn url_is_split_at_the_first_slash_or_question_mark_after_the_scheme(url in "[a:/?é]{0,12}") {
            let host = url.find("://").map_or(0, |at| at + 3);
            let end = url[host..].find(['/', '?']).map_or(url.len(), |at| host + at);
            prop_assert_eq!(split(&url), (&url[..end], &url[end..]));
        }

        #[test]
        fn sites_have_the_pages_counted_by_all_threads(
            pages in prop::collection::vec((0usize..6, 0usize..3, 0usize..3), 0..60)
        ) {
            let mut of_threads: [SiteTally; 3] = Default::default();
            let mut plain: HashMap<String, Site> = HashMap::new();
            for (site, of, thread) in pages {
                let name = format!("http://{site}");
                let (old, new) = (of != 1, of != 0);
                of_threads[thread].add(&name, old, new);
                let site = plain.entry(name.clone()).or_insert_with(|| Site { name, ..Site::default() });
                site.pages = [site.pages[0] + u64::from(old), site.pages[1] + u64::from(new)];
                site.n_common += u64::from(old && new);
            }
            let mut sites = Sites::from_tallies(of_threads);
            prop_assert!(sites.0.iter().all(|(id, site)| *id == site_id(&site.name)));
            let by_name = |sites: &Sites| sites.0.values().map(|site| (site.name.clone(), site.clone())).collect::<HashMap<_, _>>();
            prop_assert_eq!(by_name(&sites), plain.clone());
            // Counts as many changed pages for each site as its number.
            let numbers = sites.numbers();
            let judged: Vec<SitePages> = (0..sites.0.len() as u32).map(|number| [number; PageChange::ALL.len()]).collect();
            sites.add(&numbers, &judged);
            prop_assert!(sites.0.iter().all(|(id, site)| site.what == [u64::from(numbers[id]); PageChange::ALL.len()]));
        }
    }

    #[test]
    fn url_splits_into_site_and_path() {
        assert_eq!(split("http://a.b:8080/x/y?z"), ("http://a.b:8080", "/x/y?z"));
        assert_eq!(split("https://a.b?z"), ("https://a.b", "?z"));
        assert_eq!(host_of("https://a.b:1"), "a.b:1");
    }
}
