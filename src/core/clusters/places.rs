//! Places: paths of pages below the root of their collection, as evidence for pages that have no
//! links.
//!
//! Input: URLs of pages, and the collections that contain the pages. Output: the [`CollectionRoot`]
//! of each collection, pairs of pages in one place that may be copies ([`equal_pages`]), and pages
//! that belong to a collection by their place ([`belonging`]).
//!
//! A script demo, a page of source code or the frame of a search has no links, or hardly any text.
//! Growth cannot reach such a page, and the context pass ([`super::context_pass`]) compares links.
//! But once collections are known, their roots are known, too: pages of one trivial cluster agree
//! in the last segments of their paths, and the remaining first part of each path is the root of
//! its collection. Below the roots of a similar cluster, the rest of the path is a page's *place*.
//! Two pages in one place are
//!
//! * members of their collections, if their texts make them copies, even without a link;
//! * compared, if a page of each of their trivial clusters links to no other page of its host, and
//!   both clusters have pages in this place only. Pages with chunks are alike if their chunks agree
//!   by [`TEXT`]. Pages with too little text for chunks are alike if their title and text length
//!   are equal.
//!
//! A place alone makes no pair. Guards on transitivity are not needed here: both trivial clusters
//! are in one place, one page below each root, so none of their pages is a neighbour of another.
//! Paths are compared in lower case and without the file extension of the last segment.
//!
//! # Source
//! Bharat and Broder, *Mirror, mirror on the web* (1999), for equal paths on two hosts as evidence
//! of a mirror, which must be confirmed by the content of the pages.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use bytemuck::{Pod, Zeroable};
use xxhash_rust::xxh3::xxh3_64;

use super::context_pass::{CandidatePair, MILLION};
use webtwin_base::ids::{ClusterId, Page};

/// Minimum agreement of the texts of two pages in one place, in millionths.
pub const TEXT: u32 = 350_000;
/// Number of segments, from the end of a path, in which pages of a trivial cluster are compared.
pub const MAX_DEPTH: usize = 12;
/// Maximum number of trivial clusters in one place that are compared. If there are more, none of
/// them are.
const MAX_CLUSTERS: usize = 64;

/// A URL as host, folders and name: in lower case, without the scheme and the file extension of the
/// last segment.
///
/// # Examples
/// Two pages that agree in the last three segments of their paths.
/// ```
/// use webtwin_core::clusters::places::{Folders, in_common};
///
/// let one = Folders::new("http://a.example/manual/io/read.html");
/// let other = Folders::new("https://mirror.example/pub/a/manual/IO/read.htm");
/// assert_eq!((one.segments(), other.segments()), (3, 5));
/// assert_eq!(in_common(&[one.ends(), other.ends()]), 3);
/// // Both are in one place below the folders `/` and `/pub/a/`.
/// assert_eq!(one.place(0), other.place(2));
/// assert_ne!(one.root(0), other.root(2));
/// ```
#[derive(Debug, Clone)]
pub struct Folders {
    /// The whole URL after folding, each folder followed by a slash.
    folded_url: Vec<u8>,
    /// Start of each segment of the path.
    starts: Vec<usize>,
}

impl Folders {
    /// Parses a URL.
    pub fn new(url: &str) -> Folders {
        if !url.is_ascii() {
            return Folders::with_letters(url);
        }
        let scheme = url.bytes().position(|byte| byte == b':').filter(|&at| url[at..].starts_with("://"));
        let mut bytes_left = url[scheme.map_or(0, |at| at + 3)..].bytes();
        let (mut folded_url, mut starts, mut dot) = (Vec::with_capacity(url.len() + 1), Vec::with_capacity(8), None);
        let path_ends = bytes_left.by_ref().any(|byte| {
            match byte {
                b'?' => return true,
                b'/' => {
                    starts.push(folded_url.len() + 1);
                    dot = None;
                }
                b'.' => dot = Some(folded_url.len()),
                _ => {}
            }
            folded_url.push(byte.to_ascii_lowercase());
            false
        });
        match dot {
            _ if starts.is_empty() => {
                folded_url.push(b'/');
                starts.push(folded_url.len());
            }
            Some(dot) => folded_url.truncate(dot),
            None => {}
        }
        if path_ends {
            folded_url.push(b'?');
            folded_url.extend(bytes_left.map(|byte| byte.to_ascii_lowercase()));
        }
        Folders { folded_url, starts }
    }

    /// Parses a URL with non-ASCII letters.
    fn with_letters(url: &str) -> Folders {
        let without_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
        let (path, query) =
            without_scheme.split_once('?').map_or((without_scheme, None), |(path, query)| (path, Some(query)));
        let (folders, last) = path.rsplit_once('/').unwrap_or((path, ""));
        let stem = last.rsplit_once('.').map_or(last, |(stem, _)| stem);
        let mut folded_url = format!("{folders}/{stem}").to_lowercase();
        let starts = folded_url.match_indices('/').map(|(at, _)| at + 1).collect();
        if let Some(query) = query {
            folded_url.push('?');
            folded_url.push_str(&query.to_lowercase());
        }
        Folders { folded_url: folded_url.into_bytes(), starts }
    }

    /// Returns the number of segments of the path, at least one: the name, which may be empty.
    pub fn segments(&self) -> usize {
        self.starts.len()
    }

    /// Returns the hash of the host and the first `depth` folders.
    pub fn root(&self, depth: usize) -> u64 {
        xxh3_64(&self.folded_url[..self.starts[depth]])
    }

    /// Returns the hash of the part that follows the first `depth` folders.
    pub fn place(&self, depth: usize) -> u64 {
        xxh3_64(&self.folded_url[self.starts[depth]..])
    }

    /// Returns the hashes of the last one, two, ... segments, and 0 where the path has fewer
    /// segments.
    pub fn ends(&self) -> [u32; MAX_DEPTH] {
        std::array::from_fn(|at| match self.segments().checked_sub(at + 1) {
            Some(depth) => (self.place(depth) as u32).max(1),
            None => 0,
        })
    }
}

/// Returns the number of last segments in which all of the paths agree. Each path is given as its
/// [`Folders::ends`].
pub fn in_common(paths: &[[u32; MAX_DEPTH]]) -> usize {
    let agree = |at: usize| paths.iter().all(|path| path[at] != 0 && path[at] == paths[0][at]);
    (0..MAX_DEPTH).take_while(|&at| agree(at)).count()
}

/// Vote of pages for the root of their collection: 24 bytes. Rows order by collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct Vote {
    /// First page of the collection.
    pub collection: Page,
    /// Smallest page of its similar cluster.
    pub similar_cluster: Page,
    /// Number of folders of the root.
    pub depth: u32,
    /// Hash of the root, the high half first.
    pub root: [u32; 2],
    /// Number of pages that vote for this root.
    pub pages: u32,
}

/// Root of a collection: 20 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct CollectionRoot {
    /// Hash of the root, the high half first.
    pub root: [u32; 2],
    /// Smallest page of the similar cluster.
    pub similar_cluster: Page,
    /// First page of the collection.
    pub collection: Page,
    /// Number of pages of the collection that voted, for any root.
    pub votes: u32,
}

/// Returns the two halves of a hash, the high half first.
pub fn halves(hash: u64) -> [u32; 2] {
    [(hash >> 32) as u32, hash as u32]
}

/// Adds up equal votes. Sorts `votes` first.
pub fn add_up(votes: &mut Vec<Vote>) {
    let without_pages = |vote: &Vote| Vote { pages: 0, ..*vote };
    votes.sort_unstable();
    votes.dedup_by(|vote, sum| {
        let adds = without_pages(vote) == without_pages(sum);
        sum.pages += if adds { vote.pages } else { 0 };
        adds
    });
}

/// Elects the root of each collection: the one with the most votes, then the one with fewer
/// folders, then the smaller hash. `votes` are all votes of some collections; equal votes are added
/// up.
///
/// # Examples
/// ```
/// use webtwin_base::ids::Page;
/// use webtwin_core::clusters::places::{Vote, elect, halves};
///
/// let vote = |root, pages| Vote {
///     collection: Page(3),
///     similar_cluster: Page(0),
///     depth: 1,
///     root: halves(root),
///     pages,
/// };
/// let roots = elect(&mut vec![vote(77, 2), vote(88, 9), vote(77, 1)]);
/// assert_eq!((roots.len(), roots[0].root, roots[0].votes), (1, halves(88), 12));
/// ```
pub fn elect(votes: &mut Vec<Vote>) -> Vec<CollectionRoot> {
    add_up(votes);
    let merge_collection = |votes: &[Vote]| {
        let best = votes.iter().min_by_key(|vote| (Reverse(vote.pages), **vote));
        let &Vote { collection, similar_cluster, root, .. } = best.expect("a chunk is not empty");
        CollectionRoot { root, similar_cluster, collection, votes: votes.iter().map(|vote| vote.pages).sum() }
    };
    votes.chunk_by(|x, y| x.collection == y.collection).map(merge_collection).collect()
}

/// Roots of all collections, by hash.
#[derive(Debug, Default)]
pub struct Roots {
    by_hash: HashMap<[u32; 2], Vec<CollectionRoot>>,
}

impl Roots {
    /// Indexes roots, given in any order. If collections of one similar cluster have the same root,
    /// it is that of the collection with the most votes, then of the one with the smaller first
    /// page.
    pub fn new(roots: &[CollectionRoot]) -> Roots {
        let mut by_hash: HashMap<[u32; 2], Vec<CollectionRoot>> = HashMap::new();
        roots.iter().for_each(|root| by_hash.entry(root.root).or_default().push(*root));
        for roots in by_hash.values_mut() {
            roots.sort_unstable_by_key(|root| (root.similar_cluster, Reverse(root.votes), root.collection));
            roots.dedup_by_key(|root| root.similar_cluster);
        }
        Roots { by_hash }
    }

    /// Returns the roots above a page, each with the hash of the page's place: for each similar
    /// cluster the root with the most folders.
    pub fn roots_above(&self, folders: &Folders) -> Vec<(CollectionRoot, u64)> {
        let mut roots: Vec<(CollectionRoot, u64)> = Vec::new();
        for depth in (0..folders.segments()).rev() {
            for root in self.by_hash.get(&halves(folders.root(depth))).into_iter().flatten() {
                if roots.iter().all(|(other, _)| other.similar_cluster != root.similar_cluster) {
                    roots.push((*root, folders.place(depth)));
                }
            }
        }
        roots
    }
}

/// Content values of pages that have too little text for chunks.
pub mod reports {
    /// Value of a page that has chunks.
    pub const CHUNKS: u32 = 0;
    /// Value of a page that has neither title nor text.
    pub const EMPTY_TEXT: u32 = 1;

    /// Returns the value of a page from its title and the length of its text.
    pub fn little(title: &str, text_bytes: u64) -> u32 {
        let hash = xxhash_rust::xxh3::xxh3_64_with_seed(title.as_bytes(), text_bytes);
        if title.is_empty() && text_bytes == 0 { EMPTY_TEXT } else { (hash as u32).max(2) }
    }
}

/// A page below a root: 32 bytes. Rows order by similar cluster and place, then collection and
/// page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct PlacedPage {
    /// Smallest page of the similar cluster.
    pub similar_cluster: Page,
    /// Hash of the page's place, the high half first.
    pub place: [u32; 2],
    /// First page of the collection that begins at the root.
    pub collection: Page,
    /// The page.
    pub page: Page,
    /// Number of votes for the root.
    pub votes: u32,
    /// Content value of the page ([`reports`]), which is [`reports::CHUNKS`] if it has chunks.
    pub reports: u32,
    /// 1 if the page links to another page of its host, else 0.
    pub links: u32,
}

/// Groups rows by place, ascending. If a root has two pages in a place, it is unknown which of them
/// is meant, so neither is returned. Sorts `rows`.
pub fn by_place(rows: &mut [PlacedPage]) -> impl Iterator<Item = Vec<PlacedPage>> + '_ {
    rows.sort_unstable();
    let groups = rows.chunk_by(|x, y| (x.similar_cluster, x.place) == (y.similar_cluster, y.place));
    groups.map(|group| {
        let single_pages = group.chunk_by(|x, y| x.collection == y.collection).filter(|pages| pages.len() == 1);
        single_pages.map(|pages| pages[0]).collect()
    })
}

/// Returns the pairs to compare among the pages in one place, ascending: the smallest pages of each
/// two trivial clusters.
///
/// `label` returns the trivial cluster of a page, and `size` the number of pages of a cluster.
pub fn equal_pages(
    group: &[PlacedPage],
    label: impl Fn(Page) -> ClusterId,
    size: impl Fn(ClusterId) -> u32,
) -> Vec<CandidatePair> {
    let mut clusters: BTreeMap<ClusterId, Vec<&PlacedPage>> = BTreeMap::new();
    group.iter().for_each(|row| clusters.entry(label(row.page)).or_default().push(row));
    if clusters.len() < 2 {
        return Vec::new();
    }
    let whole = clusters.iter().filter(|(cluster, rows)| rows.len() as u32 == size(**cluster));
    let silent = whole.filter(|(_, rows)| rows.iter().any(|row| row.links == 0));
    let firsts: Vec<&PlacedPage> =
        silent.map(|(_, rows)| *rows.iter().min_by_key(|row| row.page).expect("a cluster has pages")).collect();
    let mut pairs = Vec::new();
    for (at, x) in firsts.iter().enumerate().filter(|_| firsts.len() <= MAX_CLUSTERS) {
        for y in firsts[at + 1..].iter().filter(|y| x.reports == y.reports && x.reports != reports::EMPTY_TEXT) {
            let (x, y) = if x.page < y.page { (x, y) } else { (y, x) };
            pairs.push(CandidatePair {
                a: x.page,
                b: y.page,
                collections: [x.collection, y.collection],
                links: MILLION,
            });
        }
    }
    pairs.sort_unstable();
    pairs
}

/// Yields the pages in one place that belong to the collection whose root is above them, because
/// they are copies of a page in the same place of another collection. `is_placed` is true for pages
/// that are already in a collection.
pub fn belonging(
    group: &[PlacedPage],
    label: impl Fn(Page) -> ClusterId,
    is_placed: impl Fn(Page) -> bool,
) -> impl Iterator<Item = &PlacedPage> {
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
        fn ascii_url_is_split_like_any_other(rest in "[aA/.?]{0,12}", scheme in "(https?://)?") {
            let url = format!("{scheme}{rest}");
            let (folders, expected) = (Folders::new(&url), Folders::with_letters(&url));
            prop_assert_eq!((folders.folded_url, folders.starts), (expected.folded_url, expected.starts));
        }
    }

    fn folders(url: &str) -> Folders {
        Folders::new(url)
    }

    #[test]
    fn place_is_the_path_below_a_root_without_case_and_ending() {
        let (first, second) =
            (folders("http://www.a.example/old/1.2/search/All_0.html"), folders("http://b.example/a/Search/all_0.htm"));
        assert_eq!(first.place(2), second.place(1));
        assert_ne!(first.place(2), second.place(0));
        assert_eq!(first.root(2), folders("http://www.a.example/OLD/1.2/").root(2));
        assert_ne!(first.root(1), first.root(2));
        assert_eq!(folders("http://a.example/").segments(), 1);
        assert_eq!(folders("http://a.example/x?p=/a/B.c").segments(), 1);
        assert_ne!(folders("http://a.example/x?p=1").place(0), folders("http://a.example/x?p=2").place(0));
    }

    #[test]
    fn path_agreement_is_the_number_of_equal_trailing_segments() {
        let common = |urls: &[&str]| in_common(&urls.iter().map(|url| folders(url).ends()).collect::<Vec<_>>());
        assert_eq!(common(&["http://a.example/old/1/x/y.html", "http://b.example/doc/x/y.htm"]), 2);
        assert_eq!(common(&["http://a.example/x/y", "http://b.example/x/y", "http://c.example/z/y"]), 1);
        assert_eq!(common(&["http://a.example/x", "http://b.example/y"]), 0);
        assert_eq!(common(&["http://a.example/x/y", "http://b.example/x/y"]), 2);
        let deep = |host: &str| format!("http://{host}/{}", ["d/"; 20].concat());
        assert_eq!(common(&[&deep("a.example"), &deep("b.example")]), MAX_DEPTH);
    }

    #[test]
    fn collection_root_is_where_most_of_its_pages_agree() {
        let vote = |collection, depth, root, pages| Vote {
            collection: Page(collection),
            similar_cluster: Page(1),
            depth,
            root: [0, root],
            pages,
        };
        let mut votes =
            vec![vote(5, 2, 70, 1), vote(5, 1, 9, 1), vote(5, 2, 70, 1), vote(3, 2, 4, 1), vote(3, 1, 8, 1)];
        let root = |collection, root, votes| CollectionRoot {
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
        let root = |url: &str, depth, similar_cluster, collection, votes| CollectionRoot {
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
        let roots_of = |url: &str| -> Vec<(u32, u64)> {
            roots.roots_above(&folders(url)).iter().map(|(root, place)| (root.collection.0, *place)).collect()
        };
        let page = folders("http://a.example/old/1/x.html");
        assert_eq!(roots_of("http://a.example/old/1/x.html"), [(30, page.place(2)), (40, page.place(0))]);
        assert_eq!(roots_of("http://a.example/y").iter().map(|row| row.0).collect::<Vec<_>>(), [10, 40]);
        assert_eq!(roots_of("http://b.example/old/1/x.html"), []);
    }

    #[test]
    fn short_page_is_identified_by_its_title_and_text_length() {
        assert_eq!(reports::little("Bird", 12), reports::little("Bird", 12));
        assert_ne!(reports::little("Bird", 12), reports::little("Bird", 13));
        assert_ne!(reports::little("Bird", 12), reports::little("Bee", 12));
        assert_eq!(reports::little("", 0), reports::EMPTY_TEXT);
    }

    fn placed(place: u32, collection: u32, page: u32, (reports, links): (u32, u32)) -> PlacedPage {
        let (similar_cluster, collection, page) = (Page(0), Page(collection), Page(page));
        PlacedPage { similar_cluster, place: [0, place], collection, page, votes: 1, reports, links }
    }

    proptest! {
        /// Compares every two pages.
        #[test]
        fn pairs_at_one_place_equal_the_definition(
            rows in prop::collection::vec((0u32..3, 0u32..5, 0u32..4, 0u32..2), 16),
            clusters in prop::collection::vec(0u32..7, 20),
        ) {
            // Pages 16 to 19 are below no root.
            let mut placed_pages: Vec<PlacedPage> =
                (0..).zip(&rows).map(|(page, &(place, collection, reports, links))| placed(place, collection, page, (reports, links))).collect();
            let label = |page: Page| ClusterId(clusters[page]);
            let size = |cluster: ClusterId| clusters.iter().filter(|&&of| of == cluster.0).count() as u32;
            let pairs: Vec<CandidatePair> =
                by_place(&mut placed_pages.clone()).flat_map(|group| equal_pages(&group, label, size)).collect();

            let rows = placed_pages.clone();
            let meets = |x: &PlacedPage, y: &PlacedPage| (x.place, x.collection) == (y.place, y.collection) && x.page != y.page;
            placed_pages.retain(|row| !rows.iter().any(|other| meets(row, other)));
            let silent_set = |row: &PlacedPage| -> Option<BTreeSet<Page>> {
                let pages: Vec<Page> = (0..20).map(Page).filter(|&page| label(page) == label(row.page)).collect();
                let is_at_place = |page: &Page| placed_pages.iter().any(|other| other.page == *page && other.place == row.place);
                let silent = |page: &Page| placed_pages.iter().any(|other| other.page == *page && other.links == 0);
                (pages.iter().all(is_at_place) && pages.iter().any(silent)).then(|| pages.into_iter().collect())
            };
            let mut expected = Vec::new();
            for x in &placed_pages {
                for y in placed_pages.iter().filter(|y| x.page < y.page && x.place == y.place && label(x.page) != label(y.page)) {
                    let (Some(set_of_x), Some(set_of_y)) = (silent_set(x), silent_set(y)) else { continue };
                    let first = set_of_x.first() == Some(&x.page) && set_of_y.first() == Some(&y.page);
                    if first && x.reports == y.reports && x.reports != reports::EMPTY_TEXT {
                        expected.push([x.page, y.page]);
                    }
                }
            }
            expected.sort_unstable();
            let mut actual: Vec<[Page; 2]> = pairs.iter().map(|pair| [pair.a, pair.b]).collect();
            actual.sort_unstable();
            prop_assert_eq!(actual, expected);
        }

        #[test]
        fn page_is_attached_if_a_copy_is_at_the_same_place_of_another_collection(
            rows in prop::collection::vec((0u32..3, 0u32..5), 16), clusters in prop::collection::vec(0u32..7, 16),
            placed_already in prop::collection::vec(any::<bool>(), 16),
        ) {
            let mut placed_pages: Vec<PlacedPage> =
                (0..).zip(&rows).map(|(page, &(place, collection))| placed(place, collection, page, (0, 0))).collect();
            let label = |page: Page| ClusterId(clusters[page]);
            let is_placed = |page: Page| placed_already[page];
            let mut actual: Vec<Page> = by_place(&mut placed_pages.clone())
                .flat_map(|group| belonging(&group, label, is_placed).map(|row| row.page).collect::<Vec<_>>())
                .collect();
            actual.sort_unstable();
            let rows = placed_pages.clone();
            let meets = |x: &PlacedPage, y: &PlacedPage| (x.place, x.collection) == (y.place, y.collection) && x.page != y.page;
            placed_pages.retain(|row| !rows.iter().any(|other| meets(row, other)));
            let copy = |x: &PlacedPage, y: &PlacedPage| x.page != y.page && x.place == y.place && label(x.page) == label(y.page);
            let belongs = |row: &&PlacedPage| !is_placed(row.page) && placed_pages.iter().any(|other| copy(row, other));
            prop_assert_eq!(actual, placed_pages.iter().filter(belongs).map(|row| row.page).collect::<Vec<_>>());
        }
    }
}
