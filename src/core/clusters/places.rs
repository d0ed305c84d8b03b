//! Places: where a page lies below the root of its collection, which speaks for pages that links do not tell of.
//!
//! In: URLs of pages, and what collections they are in. Out: the [`Root`] of each collection, pairs of pages in one place
//! that may be copies ([`alike`]), and pages that belong to a collection by their place ([`belonging`]).
//!
//! A script demo, a page of source code or the frame of a search has no links, or hardly any text. Growth reaches no such page,
//! and [`super::second_look`] compares links. But once collections are known, so is where each of them begins: pages of
//! one trivial cluster agree in the last segments of their paths, and what is left of each path is the root of its
//! collection. Below the roots of a similar cluster, the rest of the path is a page's *place*. Two pages in one place are
//!
//! * members of their collections, if they are copies by their text: they belong to them without a link;
//! * compared, if a page of each trivial cluster links nowhere on its host, and both clusters have pages in this place only. Pages
//!   with chunks are alike if these agree by [`TEXT`]; pages with too little text for chunks, if what they say is equal.
//!
//! A place alone makes no pair. That trivial clusters lie in one place, one page below each root, is why no guard is asked: none of
//! their pages is a neighbour of another. Paths are compared in lower case and without the ending of the last segment.
//!
//! # Source
//! Bharat and Broder, *Mirror, mirror on the web* (1999), for equal paths on two hosts as evidence of a mirror, which is to be
//! confirmed by what the pages say.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use bytemuck::{Pod, Zeroable};
use xxhash_rust::xxh3::xxh3_64;

use super::second_look::{Candidate, WHOLE};
use webtwin_base::ids::{ClusterId, Page};

/// Least agreement of the texts of two pages in one place, in millionths.
pub const TEXT: u32 = 350_000;
/// Segments, from the end of a path, in which pages of a trivial cluster are compared.
pub const DEEPEST: usize = 12;
/// Trivial clusters in one place beyond which none of them are compared.
const MOST: usize = 64;

/// A URL as host, folders and name: in lower case, without the scheme and the ending of the last segment.
#[derive(Debug, Clone)]
pub struct Folders {
    /// All of it, each folder followed by a slash.
    folded: Vec<u8>,
    /// Where each segment of the path begins.
    starts: Vec<usize>,
}

impl Folders {
    /// Takes a URL apart.
    pub fn new(url: &str) -> Folders {
        if !url.is_ascii() {
            return Folders::with_letters(url);
        }
        let scheme = url.bytes().position(|byte| byte == b':').filter(|&at| url[at..].starts_with("://"));
        let mut rest = url[scheme.map_or(0, |at| at + 3)..].bytes();
        let (mut folded, mut starts, mut dot) = (Vec::with_capacity(url.len() + 1), Vec::with_capacity(8), None);
        let path_ends = rest.by_ref().any(|byte| {
            match byte {
                b'?' => return true,
                b'/' => {
                    starts.push(folded.len() + 1);
                    dot = None;
                }
                b'.' => dot = Some(folded.len()),
                _ => {}
            }
            folded.push(byte.to_ascii_lowercase());
            false
        });
        match dot {
            _ if starts.is_empty() => {
                folded.push(b'/');
                starts.push(folded.len());
            }
            Some(dot) => folded.truncate(dot),
            None => {}
        }
        if path_ends {
            folded.push(b'?');
            folded.extend(rest.map(|byte| byte.to_ascii_lowercase()));
        }
        Folders { folded, starts }
    }

    /// The same for any letters.
    fn with_letters(url: &str) -> Folders {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
        let (folders, last) = path.rsplit_once('/').unwrap_or((path, ""));
        let stem = last.rsplit_once('.').map_or(last, |(stem, _)| stem);
        let mut folded = format!("{folders}/{stem}").to_lowercase();
        let starts = folded.match_indices('/').map(|(at, _)| at + 1).collect();
        if let Some(query) = query {
            folded.push('?');
            folded.push_str(&query.to_lowercase());
        }
        Folders { folded: folded.into_bytes(), starts }
    }

    /// Segments of the path, at least one: the name, which may be empty.
    pub fn segments(&self) -> usize {
        self.starts.len()
    }

    /// Hash of the host and the first `depth` folders.
    pub fn root(&self, depth: usize) -> u64 {
        xxh3_64(&self.folded[..self.starts[depth]])
    }

    /// Hash of what follows them.
    pub fn place(&self, depth: usize) -> u64 {
        xxh3_64(&self.folded[self.starts[depth]..])
    }

    /// Hashes of the last one, two, ... segments; 0 for more than there are.
    pub fn ends(&self) -> [u32; DEEPEST] {
        std::array::from_fn(|at| match self.segments().checked_sub(at + 1) {
            Some(depth) => (self.place(depth) as u32).max(1),
            None => 0,
        })
    }
}

/// In how many of their last segments all of these paths agree; each is given as its [`Folders::ends`].
pub fn in_common(paths: &[[u32; DEEPEST]]) -> usize {
    let agree = |at: usize| paths.iter().all(|path| path[at] != 0 && path[at] == paths[0][at]);
    (0..DEEPEST).take_while(|&at| agree(at)).count()
}

/// What pages of a collection say of where that begins: 24 bytes. Rows order by collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct Vote {
    /// First page of the collection.
    pub collection: Page,
    /// Smallest page of its similar cluster.
    pub similar_cluster: Page,
    /// Folders of the root.
    pub depth: u32,
    /// Hash of the root, the high half first.
    pub root: [u32; 2],
    /// Pages that say so.
    pub pages: u32,
}

/// Where a collection begins: 20 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct Root {
    /// Hash of the root, the high half first.
    pub root: [u32; 2],
    /// Smallest page of the similar cluster.
    pub similar_cluster: Page,
    /// First page of the collection.
    pub collection: Page,
    /// Pages that had a say.
    pub votes: u32,
}

/// The two halves of a hash.
pub fn halves(hash: u64) -> [u32; 2] {
    [(hash >> 32) as u32, hash as u32]
}

/// Adds up votes for the same; they are sorted then.
pub fn add_up(votes: &mut Vec<Vote>) {
    let of = |vote: &Vote| Vote { pages: 0, ..*vote };
    votes.sort_unstable();
    votes.dedup_by(|vote, same| {
        let adds = of(vote) == of(same);
        same.pages += if adds { vote.pages } else { 0 };
        adds
    });
}

/// Elects the root of each collection: that of the most votes, then the one with fewer folders, then the smaller hash.
/// `votes` are all those of some collections; they are added up.
pub fn elect(votes: &mut Vec<Vote>) -> Vec<Root> {
    add_up(votes);
    let of_collection = |votes: &[Vote]| {
        let best = votes.iter().min_by_key(|vote| (Reverse(vote.pages), **vote));
        let &Vote { collection, similar_cluster, root, .. } = best.expect("a chunk is not empty");
        Root { root, similar_cluster, collection, votes: votes.iter().map(|vote| vote.pages).sum() }
    };
    votes.chunk_by(|x, y| x.collection == y.collection).map(of_collection).collect()
}

/// The roots of all collections.
#[derive(Debug, Default)]
pub struct Roots {
    by_hash: HashMap<[u32; 2], Vec<Root>>,
}

impl Roots {
    /// Takes roots in any order. Of collections of one similar cluster that begin in one folder, the root is that of the one
    /// with the most votes, then of the smaller first page.
    pub fn new(roots: &[Root]) -> Roots {
        let mut by_hash: HashMap<[u32; 2], Vec<Root>> = HashMap::new();
        roots.iter().for_each(|root| by_hash.entry(root.root).or_default().push(*root));
        for roots in by_hash.values_mut() {
            roots.sort_unstable_by_key(|root| (root.similar_cluster, Reverse(root.votes), root.collection));
            roots.dedup_by_key(|root| root.similar_cluster);
        }
        Roots { by_hash }
    }

    /// The roots that a page is below, with the hash of its place: of each similar cluster the one of the most folders.
    pub fn above(&self, folders: &Folders) -> Vec<(Root, u64)> {
        let mut above: Vec<(Root, u64)> = Vec::new();
        for depth in (0..folders.segments()).rev() {
            for root in self.by_hash.get(&halves(folders.root(depth))).into_iter().flatten() {
                if above.iter().all(|(other, _)| other.similar_cluster != root.similar_cluster) {
                    above.push((*root, folders.place(depth)));
                }
            }
        }
        above
    }
}

/// What a page says that has too little text for chunks.
pub mod says {
    /// It has chunks.
    pub const CHUNKS: u32 = 0;
    /// It says nothing.
    pub const NOTHING: u32 = 1;

    /// Its title and the length of its text.
    pub fn little(title: &str, text_bytes: u64) -> u32 {
        let hash = xxhash_rust::xxh3::xxh3_64_with_seed(title.as_bytes(), text_bytes);
        if title.is_empty() && text_bytes == 0 { NOTHING } else { (hash as u32).max(2) }
    }
}

/// A page below a root: 32 bytes. Rows order by similar cluster and place, then collection and page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct Placed {
    /// Smallest page of the similar cluster.
    pub similar_cluster: Page,
    /// Hash of its place, the high half first.
    pub place: [u32; 2],
    /// First page of the collection that begins at the root.
    pub collection: Page,
    /// The page.
    pub page: Page,
    /// Votes for the root.
    pub votes: u32,
    /// What it [says] if it has no chunks.
    pub says: u32,
    /// 1 if it links to another page of its host.
    pub links: u32,
}

/// Groups rows by place, ascending; of a root that has two pages there it is not known which one is meant, so neither counts.
/// Rows are sorted.
pub fn by_place(rows: &mut [Placed]) -> impl Iterator<Item = Vec<Placed>> + '_ {
    rows.sort_unstable();
    let groups = rows.chunk_by(|x, y| (x.similar_cluster, x.place) == (y.similar_cluster, y.place));
    groups.map(|group| {
        let alone = group.chunk_by(|x, y| x.collection == y.collection).filter(|pages| pages.len() == 1);
        alone.map(|pages| pages[0]).collect()
    })
}

/// The pairs to compare among the pages in one place, ascending: of each two trivial clusters the smallest pages.
///
/// `label` is a page's trivial cluster, and `size` the number of its pages.
pub fn alike(group: &[Placed], label: impl Fn(Page) -> ClusterId, size: impl Fn(ClusterId) -> u32) -> Vec<Candidate> {
    let mut clusters: BTreeMap<ClusterId, Vec<&Placed>> = BTreeMap::new();
    group.iter().for_each(|row| clusters.entry(label(row.page)).or_default().push(row));
    if clusters.len() < 2 {
        return Vec::new();
    }
    let whole = clusters.iter().filter(|(cluster, rows)| rows.len() as u32 == size(**cluster));
    let silent = whole.filter(|(_, rows)| rows.iter().any(|row| row.links == 0));
    let firsts: Vec<&Placed> =
        silent.map(|(_, rows)| *rows.iter().min_by_key(|row| row.page).expect("a cluster has pages")).collect();
    let mut found = Vec::new();
    for (at, x) in firsts.iter().enumerate().filter(|_| firsts.len() <= MOST) {
        for y in firsts[at + 1..].iter().filter(|y| x.says == y.says && x.says != says::NOTHING) {
            let (x, y) = if x.page < y.page { (x, y) } else { (y, x) };
            found.push(Candidate { a: x.page, b: y.page, collections: [x.collection, y.collection], links: WHOLE });
        }
    }
    found.sort_unstable();
    found
}

/// The pages in one place that belong to the collection at whose root they are, as copies of a page in the same place of
/// another one. `is_placed` says which are in a collection already.
pub fn belonging(
    group: &[Placed],
    label: impl Fn(Page) -> ClusterId,
    is_placed: impl Fn(Page) -> bool,
) -> impl Iterator<Item = &Placed> {
    let mut copies: HashMap<ClusterId, u32> = HashMap::new();
    group.iter().for_each(|row| *copies.entry(label(row.page)).or_default() += 1);
    group.iter().filter(move |row| !is_placed(row.page) && copies[&label(row.page)] > 1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_url_of_ascii_is_taken_apart_as_any_other(rest in "[aA/.?]{0,12}", scheme in "(https?://)?") {
            let url = format!("{scheme}{rest}");
            let (folders, want) = (Folders::new(&url), Folders::with_letters(&url));
            prop_assert_eq!((folders.folded, folders.starts), (want.folded, want.starts));
        }
    }

    fn folders(url: &str) -> Folders {
        Folders::new(url)
    }

    #[test]
    fn a_place_is_the_path_below_a_root_whatever_its_case_and_ending() {
        let (here, there) =
            (folders("http://www.a.example/old/1.2/search/All_0.html"), folders("http://b.example/a/Search/all_0.htm"));
        assert_eq!(here.place(2), there.place(1));
        assert_ne!(here.place(2), there.place(0));
        assert_eq!(here.root(2), folders("http://www.a.example/OLD/1.2/").root(2));
        assert_ne!(here.root(1), here.root(2));
        assert_eq!(folders("http://a.example/").segments(), 1);
        assert_eq!(folders("http://a.example/x?p=/a/B.c").segments(), 1);
        assert_ne!(folders("http://a.example/x?p=1").place(0), folders("http://a.example/x?p=2").place(0));
    }

    #[test]
    fn paths_agree_in_as_many_segments_as_are_equal_from_the_end() {
        let common = |urls: &[&str]| in_common(&urls.iter().map(|url| folders(url).ends()).collect::<Vec<_>>());
        assert_eq!(common(&["http://a.example/old/1/x/y.html", "http://b.example/doc/x/y.htm"]), 2);
        assert_eq!(common(&["http://a.example/x/y", "http://b.example/x/y", "http://c.example/z/y"]), 1);
        assert_eq!(common(&["http://a.example/x", "http://b.example/y"]), 0);
        assert_eq!(common(&["http://a.example/x/y", "http://b.example/x/y"]), 2);
        let deep = |host: &str| format!("http://{host}/{}", ["d/"; 20].concat());
        assert_eq!(common(&[&deep("a.example"), &deep("b.example")]), DEEPEST);
    }

    #[test]
    fn a_collection_begins_where_most_of_its_pages_say() {
        let vote = |collection, depth, root, pages| Vote {
            collection: Page(collection),
            similar_cluster: Page(1),
            depth,
            root: [0, root],
            pages,
        };
        let mut votes =
            vec![vote(5, 2, 70, 1), vote(5, 1, 9, 1), vote(5, 2, 70, 1), vote(3, 2, 4, 1), vote(3, 1, 8, 1)];
        let root = |collection, root, votes| Root {
            collection: Page(collection),
            similar_cluster: Page(1),
            root: [0, root],
            votes,
        };
        assert_eq!(elect(&mut votes), [root(3, 8, 2), root(5, 70, 3)]);
        assert_eq!(votes, [vote(3, 1, 8, 1), vote(3, 2, 4, 1), vote(5, 1, 9, 1), vote(5, 2, 70, 2)]);
        votes.push(vote(5, 1, 9, 2));
        assert_eq!(elect(&mut votes), [root(3, 8, 2), root(5, 9, 5)]);
    }

    #[test]
    fn a_page_is_below_the_deepest_root_of_each_similar_cluster() {
        let root = |url: &str, depth, similar_cluster, collection, votes| Root {
            root: halves(folders(url).root(depth)),
            similar_cluster: Page(similar_cluster),
            collection: Page(collection),
            votes,
        };
        let roots = Roots::new(&[
            root("http://a.example/", 0, 1, 10, 9),
            root("http://a.example/old/1/", 2, 1, 20, 9),
            root("http://a.example/old/1/", 2, 1, 30, 12),
            root("http://a.example/", 0, 2, 40, 1),
        ]);
        let of = |url: &str| -> Vec<(u32, u64)> {
            roots.above(&folders(url)).iter().map(|(root, place)| (root.collection.0, *place)).collect()
        };
        let page = folders("http://a.example/old/1/x.html");
        assert_eq!(of("http://a.example/old/1/x.html"), [(30, page.place(2)), (40, page.place(0))]);
        assert_eq!(of("http://a.example/y").iter().map(|row| row.0).collect::<Vec<_>>(), [10, 40]);
        assert_eq!(of("http://b.example/old/1/x.html"), []);
    }

    #[test]
    fn what_little_a_page_says_is_its_title_and_the_length_of_its_text() {
        assert_eq!(says::little("Bird", 12), says::little("Bird", 12));
        assert_ne!(says::little("Bird", 12), says::little("Bird", 13));
        assert_ne!(says::little("Bird", 12), says::little("Bee", 12));
        assert_eq!(says::little("", 0), says::NOTHING);
    }

    fn placed(place: u32, collection: u32, page: u32, (says, links): (u32, u32)) -> Placed {
        let (similar_cluster, collection, page) = (Page(0), Page(collection), Page(page));
        Placed { similar_cluster, place: [0, place], collection, page, votes: 1, says, links }
    }

    proptest! {
        /// Every two pages looked at.
        #[test]
        fn pairs_in_one_place_are_those_of_the_definition(
            rows in prop::collection::vec((0u32..3, 0u32..5, 0u32..4, 0u32..2), 16),
            clusters in prop::collection::vec(0u32..7, 20),
        ) {
            // Pages 16 to 19 are below no root.
            let mut all: Vec<Placed> =
                (0..).zip(&rows).map(|(page, &(place, collection, says, links))| placed(place, collection, page, (says, links))).collect();
            let label = |page: Page| ClusterId(clusters[page]);
            let size = |cluster: ClusterId| clusters.iter().filter(|&&of| of == cluster.0).count() as u32;
            let found: Vec<Candidate> =
                by_place(&mut all.clone()).flat_map(|group| alike(&group, label, size)).collect();

            let rows = all.clone();
            let meets = |x: &Placed, y: &Placed| (x.place, x.collection) == (y.place, y.collection) && x.page != y.page;
            all.retain(|row| !rows.iter().any(|other| meets(row, other)));
            let of = |row: &Placed| -> Option<BTreeSet<Page>> {
                let pages: Vec<Page> = (0..20).map(Page).filter(|&page| label(page) == label(row.page)).collect();
                let here = |page: &Page| all.iter().any(|other| other.page == *page && other.place == row.place);
                let silent = |page: &Page| all.iter().any(|other| other.page == *page && other.links == 0);
                (pages.iter().all(here) && pages.iter().any(silent)).then(|| pages.into_iter().collect())
            };
            let mut want = Vec::new();
            for x in &all {
                for y in all.iter().filter(|y| x.page < y.page && x.place == y.place && label(x.page) != label(y.page)) {
                    let (Some(of_x), Some(of_y)) = (of(x), of(y)) else { continue };
                    let first = of_x.first() == Some(&x.page) && of_y.first() == Some(&y.page);
                    if first && x.says == y.says && x.says != says::NOTHING {
                        want.push([x.page, y.page]);
                    }
                }
            }
            want.sort_unstable();
            let mut found: Vec<[Page; 2]> = found.iter().map(|pair| [pair.a, pair.b]).collect();
            found.sort_unstable();
            prop_assert_eq!(found, want);
        }

        #[test]
        fn a_page_belongs_where_a_copy_is_in_the_same_place_of_another_collection(
            rows in prop::collection::vec((0u32..3, 0u32..5), 16), clusters in prop::collection::vec(0u32..7, 16),
            placed_already in prop::collection::vec(any::<bool>(), 16),
        ) {
            let mut all: Vec<Placed> =
                (0..).zip(&rows).map(|(page, &(place, collection))| placed(place, collection, page, (0, 0))).collect();
            let label = |page: Page| ClusterId(clusters[page]);
            let is_placed = |page: Page| placed_already[page];
            let mut found: Vec<Page> = by_place(&mut all.clone())
                .flat_map(|group| belonging(&group, label, is_placed).map(|row| row.page).collect::<Vec<_>>())
                .collect();
            found.sort_unstable();
            let rows = all.clone();
            let meets = |x: &Placed, y: &Placed| (x.place, x.collection) == (y.place, y.collection) && x.page != y.page;
            all.retain(|row| !rows.iter().any(|other| meets(row, other)));
            let copy = |x: &Placed, y: &Placed| x.page != y.page && x.place == y.place && label(x.page) == label(y.page);
            let belongs = |row: &&Placed| !is_placed(row.page) && all.iter().any(|other| copy(row, other));
            prop_assert_eq!(found, all.iter().filter(belongs).map(|row| row.page).collect::<Vec<_>>());
        }
    }
}
