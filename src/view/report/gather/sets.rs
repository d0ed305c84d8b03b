//! Sets of similar pages and their weakest links, from the tables `clusters` and `pairs`.
//!
//! Single-link clustering chains: one false pair joins two sets permanently. In a maximum spanning
//! tree of a set, the weakest link is the pair at which the set is split first when the measure is
//! made stricter. So the sets with the weakest such links deserve inspection first.
//!
//! # Memory
//! Two million pages of sets, 24 bytes each, and twice as many links of 12 bytes. If a crawl has
//! more, a sample of its sets is examined: those whose ids have a certain number of trailing zero
//! bits, which the hash of a URL has by chance. The largest sets are always included if they fit.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::page_rows::PageRows;
use crate::report::contract::{MeasuredValue, ReportedMeasure, SetMember, SetReport, SimilarSet, SpanningLink};
use crate::report::top::SmallestKeys;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::DocId;
use webtwin_core::clusters::union_find::UnionFind;
use webtwin_results::FinishedRun;
use webtwin_results::scan::scan;

/// Maximum number of pages of sets that are held.
const PAGES: usize = 1 << 21;

/// Divisor of the number of sets for the number of sets to display for their weak links, which is
/// bounded by [`WEAKEST`].
const WEAK_SET_DIVISOR: u64 = 12;
const WEAKEST: std::ops::RangeInclusive<u64> = 18..=60;

/// Number of sets to display for their size.
const LARGEST_SETS: usize = 6;

/// Maximum number of members of a set to display.
const MEMBERS: usize = 16;

/// Number of links to display of a set that has more members than that.
const LINKS: usize = 7;

/// Examined sets, with a maximum spanning tree of each.
#[derive(Debug, Default)]
pub struct Forest {
    /// Pages of the sets, ascending by set, then by page.
    pages: Vec<Held>,
    /// Indices of these pages, ascending by page.
    page_order: Vec<u32>,
    /// Links between pages given by their indices, ascending by set, then the weakest first.
    links: Vec<TreeLink>,
}

/// Page of a set.
#[derive(Debug, Clone, Copy)]
struct Held {
    set: DocId,
    page: DocId,
    role: u8,
}

/// Link between two pages given by their indices. Orders from the strongest to the weakest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct TreeLink {
    weakest: Weakness,
    a: u32,
    b: u32,
}

/// Dissimilarity of two pages. Equal texts come first, then the measures in their order, so that a
/// run with several measures has a single order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Weakness(ReportedMeasure, u32);

impl Weakness {
    fn of(measured: MeasuredValue) -> Weakness {
        match measured.measure {
            ReportedMeasure::Views
            | ReportedMeasure::Placeholder
            | ReportedMeasure::Declared
            | ReportedMeasure::Overlap
            | ReportedMeasure::Minhash
            | ReportedMeasure::Given
            | ReportedMeasure::Context => Weakness(measured.measure, u32::MAX - measured.value),
            ReportedMeasure::Exact | ReportedMeasure::Hamming | ReportedMeasure::Signatures => {
                Weakness(measured.measure, measured.value)
            }
        }
    }

    /// Converts back, by the same conversion.
    fn measured(self) -> MeasuredValue {
        let Weakness(measure, value) = self;
        MeasuredValue { value: Weakness::of(MeasuredValue { measure, value }).1, measure }
    }
}

/// Roles of pages, in display order.
const ROLES: [&str; 8] = ["keep", "way", "must-visit", "unlike", "language", "collection", "exact", "similar"];

/// Reads the sets with the weakest links, then the largest sets.
///
/// # Errors
/// Returns [`Error::Input`] if a column is missing or has an unknown value, and any error of
/// [`scan`].
pub fn gather(run: &FinishedRun) -> Result<(SetReport, Forest)> {
    gather_within(run, PAGES)
}

/// Reads the sets like [`gather`], and holds at most `limit` pages.
fn gather_within(run: &FinishedRun, limit: usize) -> Result<(SetReport, Forest)> {
    let (total, largest_sets) = largest_sets(run)?;
    let (mut forest, n_inspected) = Forest::hold(run, &largest_sets, limit)?;
    let pairs = forest.grow(run)?;
    let mut sets = SetReport { all: total, looked_at: n_inspected, pairs, ..SetReport::default() };

    let mut top = SmallestKeys::new((total / WEAK_SET_DIVISOR).clamp(*WEAKEST.start(), *WEAKEST.end()) as usize);
    for (pages, links) in forest.sets() {
        let Some(weakest) = links.first().filter(|link| link.weakest.0 != ReportedMeasure::Exact) else { continue };
        let set = forest.pages[pages.start].set;
        top.offer((Reverse(weakest.weakest), Reverse(pages.len()), set), set);
    }
    let mut largest = top.finish();
    sets.weakest = largest.len() as u64;
    let other_sets: Vec<DocId> = largest_sets.iter().map(|of| of.0).filter(|set| !largest.contains(set)).collect();
    largest.extend(other_sets);
    sets.shown = largest.into_iter().filter_map(|set| forest.set_shown(set)).collect();
    Ok((sets, forest))
}

/// Counts the sets, and finds the largest with their number of pages.
fn largest_sets(run: &FinishedRun) -> Result<(u64, Vec<(DocId, u64)>)> {
    let (mut total, mut top) = (0, SmallestKeys::new(LARGEST_SETS));
    let (mut set, mut pages) = (None, 0u64);
    let mut push_set = |set: Option<DocId>, pages: u64| {
        if let Some(set) = set {
            total += 1;
            top.offer((Reverse(pages), set), (set, pages));
        }
    };
    scan(run, "clusters", &["cluster"], &mut |batch| {
        for &cluster in batch.u64("cluster")? {
            if set != Some(cluster) {
                push_set(set.replace(cluster), std::mem::take(&mut pages));
            }
            pages += 1;
        }
        Ok(())
    })?;
    push_set(set, pages);
    Ok((total, top.finish()))
}

impl Forest {
    /// Holds the pages of the largest sets and of as many others as fit. Returns the number of
    /// sets.
    fn hold(run: &FinishedRun, largest_sets: &[(DocId, u64)], limit: usize) -> Result<(Forest, u64)> {
        let rows = run.rows("clusters");
        // Aims at a little less than fits, because a sample varies in size.
        let share = (rows * 9 / 8).div_ceil(limit.max(1) as u64).max(1);
        let zeros = if rows as usize <= limit { 0 } else { share.next_power_of_two().trailing_zeros() };
        // Reserves space for the largest sets that fit.
        let (mut capacity, mut largest_held) = (limit, Vec::new());
        for &(set, pages) in largest_sets {
            if let Some(remaining) = capacity.checked_sub(pages as usize) {
                capacity = remaining;
                largest_held.push(set);
            }
        }
        let mut forest = Forest::default();
        let (mut set, mut start, mut kept_pages, mut is_large, mut n_inspected) = (None, 0, false, false, 0);
        scan(run, "clusters", &["cluster", "doc_id", "role"], &mut |batch| {
            let (sets, pages, roles) = (batch.u64("cluster")?, batch.u64("doc_id")?, batch.text("role")?);
            for row in 0..batch.rows() {
                if set != Some(sets[row]) {
                    (set, start) = (Some(sets[row]), forest.pages.len());
                    is_large = largest_held.contains(&sets[row]);
                    kept_pages = is_large || sets[row].trailing_zeros() >= zeros;
                    n_inspected += u64::from(kept_pages);
                }
                if kept_pages && !is_large && capacity == 0 {
                    // Releases the space of the incomplete set.
                    capacity += forest.pages.len() - start;
                    forest.pages.truncate(start);
                    (kept_pages, n_inspected) = (false, n_inspected - 1);
                }
                if kept_pages && !is_large {
                    capacity -= 1;
                }
                if kept_pages {
                    forest.pages.push(Held { set: sets[row], page: pages[row], role: role(&roles[row])? });
                }
            }
            Ok(())
        })?;
        forest.page_order = (0..forest.pages.len() as u32).collect();
        let pages = &forest.pages;
        forest.page_order.sort_unstable_by_key(|&number| pages[number as usize].page);
        Ok((forest, n_inspected))
    }

    /// Returns the index of a page that is held.
    fn number(&self, page: DocId) -> Option<u32> {
        let position = self.page_order.binary_search_by_key(&page, |&number| self.pages[number as usize].page);
        position.ok().map(|at| self.page_order[at])
    }

    /// Builds the spanning trees. Returns the number of pairs in the table by measure.
    fn grow(&mut self, run: &FinishedRun) -> Result<BTreeMap<String, u64>> {
        let mut pairs: BTreeMap<String, u64> = BTreeMap::new();
        let capacity = (2 * self.pages.len()).max(1 << 16);
        scan(run, "pairs", &["a", "b", "measure", "value"], &mut |batch| {
            let (a, b) = (batch.u64("a")?, batch.u64("b")?);
            let (measures, values) = (batch.text("measure")?, batch.u32("value")?);
            for row in 0..batch.rows() {
                match pairs.get_mut(&measures[row]) {
                    Some(count) => *count += 1,
                    None => _ = pairs.insert(measures[row].to_string(), 1),
                }
                if let (Some(x), Some(y)) = (self.number(a[row]), self.number(b[row])) {
                    let weakest = Weakness::of(MeasuredValue { measure: measure(&measures[row])?, value: values[row] });
                    self.links.push(TreeLink { weakest, a: x, b: y });
                    if self.links.len() == capacity {
                        self.thin();
                    }
                }
            }
            Ok(())
        })?;
        self.thin();
        let pages = &self.pages;
        self.links.sort_unstable_by_key(|link| (pages[link.a as usize].set, Reverse(*link)));
        Ok(pairs)
    }

    /// Reduces the links to a maximum spanning forest with Kruskal's algorithm, the strongest
    /// first. The forest of some links together with further links yields a forest of all links, so
    /// the reduction may run repeatedly.
    fn thin(&mut self) {
        self.links.sort_unstable();
        let mut trees = UnionFind::new(self.pages.len());
        self.links.retain(|link| trees.union(link.a, link.b));
    }

    /// Iterates over the sets: the indices of its pages, and its links, the weakest first.
    fn sets(&self) -> impl Iterator<Item = (std::ops::Range<usize>, &[TreeLink])> {
        let (mut page, mut link) = (0, 0);
        self.pages.chunk_by(|x, y| x.set == y.set).map(move |pages| {
            let range = page..page + pages.len();
            let links = self.links[link..].partition_point(|of| range.contains(&(of.a as usize)));
            (page, link) = (range.end, link + links);
            (range, &self.links[link - links..link])
        })
    }

    /// Returns the indices of a set's pages, and its links.
    fn set(&self, set: DocId) -> Option<(std::ops::Range<usize>, &[TreeLink])> {
        let first = self.pages.partition_point(|of| of.set < set);
        let end = self.pages.partition_point(|of| of.set <= set);
        let set_of = |link: &TreeLink| self.pages[link.a as usize].set;
        let lower = self.links.partition_point(|link| set_of(link) < set);
        let last = self.links.partition_point(|link| set_of(link) <= set);
        (first < end).then_some((first..end, &self.links[lower..last]))
    }

    /// Returns the displayed part of a set.
    fn set_shown(&self, set: DocId) -> Option<SimilarSet> {
        let (pages, links) = self.set(set)?;
        let is_whole = pages.len() <= MEMBERS;
        let links = &links[..if is_whole { links.len() } else { links.len().min(LINKS) }];
        let mut order: Vec<usize> = pages.clone().filter(|&at| self.pages[at].role == 0).take(1).collect();
        order.extend(links.iter().flat_map(|link| [link.a as usize, link.b as usize]));
        let mut rest: Vec<usize> = pages.clone().collect();
        rest.sort_by_key(|&at| self.pages[at].role);
        order.extend(rest);
        let mut pairs = BTreeSet::new();
        order.retain(|&at| pairs.insert(at));
        // The ends of links come first, so that every displayed link has both ends displayed.
        order.truncate(MEMBERS);
        if is_whole {
            // Nothing was cut, so the order may follow roles instead of links.
            order.sort_by_key(|&at| (self.pages[at].role, self.pages[at].page));
        }
        let place =
            |number: u32| order.iter().position(|&at| at == number as usize).expect("the ends of links are shown");
        let member = |&position: &usize| SetMember {
            id: self.pages[position].page,
            url: String::new(),
            title: String::new(),
            host: String::new(),
            role: ROLES[self.pages[position].role as usize].into(),
            text_bytes: 0,
            chunks: 0,
        };
        Some(SimilarSet {
            id: set,
            pages: pages.len() as u64,
            hosts: 0,
            members: order.iter().map(member).collect(),
            links: links
                .iter()
                .map(|link| SpanningLink {
                    a: place(link.a),
                    b: place(link.b),
                    by: link.weakest.measured(),
                    sides: self.sides(set, link),
                })
                .collect(),
        })
    }

    /// Counts the pages that remain connected to either end of a link if the link and all weaker
    /// ones are cut.
    fn sides(&self, set: DocId, weakest_link: &TreeLink) -> [u64; 2] {
        let Some((pages, links)) = self.set(set) else { return [0, 0] };
        let mut parts = UnionFind::new(pages.len());
        let place = |number: u32| number - pages.start as u32;
        for link in links.iter().filter(|link| link < &weakest_link) {
            parts.union(place(link.a), place(link.b));
        }
        let [a, b] = [place(weakest_link.a), place(weakest_link.b)].map(|of| parts.find(of));
        let mut sides = [0, 0];
        for page in 0..pages.len() as u32 {
            let part = parts.find(page);
            sides[0] += u64::from(part == a);
            sides[1] += u64::from(part == b);
        }
        sides
    }

    /// Returns the set of a page, if the page is held.
    pub fn set_of(&self, page: DocId) -> Option<DocId> {
        self.number(page).map(|number| self.pages[number as usize].set)
    }

    /// Returns the role of a page, if the page is held.
    pub fn role(&self, page: DocId) -> Option<&'static str> {
        self.number(page).map(|number| ROLES[self.pages[number as usize].role as usize])
    }

    /// Returns the links of a set's tree: two pages and their similarity.
    pub fn tree(&self, set: DocId) -> Vec<(DocId, DocId, MeasuredValue)> {
        let page = |number: u32| self.pages[number as usize].page;
        let links = self.set(set).map_or(&[][..], |of| of.1);
        links.iter().map(|link| (page(link.a), page(link.b), link.weakest.measured())).collect()
    }
}

fn role(word: &str) -> Result<u8> {
    let place = ROLES.iter().position(|role| *role == word);
    let place = place.ok_or_else(|| {
        Error::input("clusters", format!("the role {word} is unknown; this build reads {}", ROLES.join(", ")))
    })?;
    Ok(place as u8)
}

fn measure(word: &str) -> Result<ReportedMeasure> {
    let unknown_measure = || Error::input("pairs", format!("the measure {word} is unknown to this build"));
    ReportedMeasure::parse(word).ok_or_else(unknown_measure)
}

/// Adds the data of pages.
pub fn name(sets: &mut SetReport, rows: &PageRows) {
    for set in &mut sets.shown {
        for member in &mut set.members {
            if let Some(page) = rows.get(member.id) {
                *member = SetMember { role: std::mem::take(&mut member.role), ..page.member.clone() };
            }
        }
        set.hosts = set.members.iter().map(|member| &member.host).collect::<BTreeSet<_>>().len() as u64;
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use webtwin_storage::location::Location;
    use webtwin_storage::manifest::{FileEntry, Manifest};
    use webtwin_storage::table::{Table, TableColumn, encode};

    /// Writes a result with the given sets: each has an id, and the values of the links of a path
    /// through its pages.
    fn run(sets: &[(u64, Vec<u32>)]) -> (tempfile::TempDir, FinishedRun) {
        let dir = tempfile::tempdir().unwrap();
        let folder = Location::parse(dir.path().to_str().unwrap()).unwrap();
        let pages =
            |(set, links): &(u64, Vec<u32>)| (0..=links.len() as u64).map(|n| (*set, set + n)).collect::<Vec<_>>();
        let rows: Vec<(u64, u64)> = sets.iter().flat_map(pages).collect();
        let links = sets.iter().flat_map(|(set, links)| (*set..).zip(links));
        let links: Vec<(u64, u32)> = links.map(|(page, value)| (page, *value)).collect();
        let role = |row: &(u64, u64)| if row.0 == row.1 { "keep" } else { "similar" }.to_string();
        let clusters = Table::new([
            ("cluster", TableColumn::Id(rows.iter().map(|row| row.0).collect())),
            ("doc_id", TableColumn::Id(rows.iter().map(|row| row.1).collect())),
            ("role", TableColumn::Text(rows.iter().map(role).collect())),
        ]);
        let pairs = Table::new([
            ("a", TableColumn::Id(links.iter().map(|link| link.0).collect())),
            ("b", TableColumn::Id(links.iter().map(|link| link.0 + 1).collect())),
            ("measure", TableColumn::Text(links.iter().map(|_| "overlap").collect())),
            ("value", TableColumn::U32(links.iter().map(|link| link.1).collect())),
        ]);
        let write_table = |(name, table): (&str, &Table)| {
            let (path, bytes) = (format!("{name}/part-00000.parquet"), encode(table).unwrap());
            folder.join(&path).unwrap().put(&bytes).unwrap();
            FileEntry::new(&path, Some(table.rows() as u64), &bytes)
        };
        let manifest = Manifest {
            files: [("clusters", &clusters), ("pairs", &pairs)].map(write_table).into(),
            ..Manifest::new("", serde_json::Value::Null)
        };
        (dir, FinishedRun { folder, manifest })
    }

    /// Returns sixty-four sets: sixty-three of four pages and one of forty.
    fn sets() -> Vec<(u64, Vec<u32>)> {
        let mut sets: Vec<(u64, Vec<u32>)> =
            (1..65).map(|set| (64 * set + set % 8, vec![9, set as u32 + 9, 200])).collect();
        sets[20] = (64 * 21 + 5, (0..39).map(|n| 5 + n).collect());
        sets
    }

    #[test]
    fn too_many_sets_are_sampled_including_the_largest() {
        let (_dir, run) = run(&sets());
        let (total, _) = gather(&run).unwrap();
        assert_eq!((total.all, total.looked_at, total.pairs["overlap"]), (64, 64, 63 * 3 + 39));
        // The weakest sets come first; ties go to the larger set, then to the smaller id.
        assert_eq!(total.shown.iter().take(3).map(|set| set.id).collect::<Vec<_>>(), [64 * 21 + 5, 65, 130]);
        assert!(total.shown[0].links.is_sorted_by_key(|link| link.by.value) && total.shown[0].links.len() == LINKS);
        assert_eq!(total.shown[0].links[0].sides, [1, 39]);
        for limit in [40, 100, 200] {
            let (sample, forest) = gather_within(&run, limit).unwrap();
            assert!(sample.all == 64 && sample.looked_at < 64 && forest.pages.len() <= limit, "{limit}");
            assert_eq!(sample.shown[0], total.shown[0], "{limit}");
            // The examined sets are complete.
            for (pages, links) in forest.sets() {
                assert_eq!(pages.len(), links.len() + 1);
            }
        }
        assert_eq!(gather_within(&run, 0).unwrap().0.shown, []);
    }

    #[test]
    fn set_is_identified_by_its_pages_and_its_tree_connects_them() {
        let (_dir, run) = run(&sets());
        let (_, forest) = gather(&run).unwrap();
        assert_eq!([65, 68, 69, 129].map(|page| forest.set_of(page)), [Some(65), Some(65), None, None]);
        assert_eq!([65, 66].map(|page| forest.role(page)), [Some("keep"), Some("similar")]);
        let tree: Vec<(u64, u64, u32)> = forest.tree(65).iter().map(|link| (link.0, link.1, link.2.value)).collect();
        assert_eq!(tree, [(65, 66, 9), (66, 67, 10), (67, 68, 200)]);
    }
}
