//! Overlap of servers, and the reasons why pages have copies: server aliases, URL aliases, popular
//! pages.
//!
//! Input: the pages of one trivial cluster after another. Output: a [`ServerPair`] for every two
//! servers of the cluster, to be summed over all clusters, and the [`Surplus`] of the cluster.
//!
//! A server is the union of its pages, and a page is identified by its trivial cluster. So a server
//! is a multiset of clusters, and two servers share the intersection of their multisets, page by
//! page. A page that a crawl missed is missing under all names of its server, so F is compared with
//! the pages of the smaller server.
//!
//! # Source
//! \[SGM98\] section 1 for the union and F >= T; section 3 for the three reasons.
//!
//! # Deviations
//! - The union is of pages, not of their chunks: pages have been compared already, and chunks of a
//!   template carry no evidence.
//! - Content alone cannot distinguish a second name of one server from another server that has
//!   exact copies of all its pages under the same paths. Both are called an alias here. The paper
//!   would also compare addresses, which "may help in a few cases": hosts that answer from one
//!   address are aliases with fewer pages in common ([`kind`]). A common address is not evidence by
//!   itself, because many sites share one. Different addresses are no evidence either, because
//!   "machines have multiple IP addresses".
//! - All pages of a server with one text are called URL aliases, both if they are one file under
//!   two names, as in the paper, and if they are the same "not found" page under many names.

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::millionths;
use webtwin_base::ids::{ClusterId, FPrint, HostId};
use webtwin_job::Servers;

/// A page that has copies: 24 bytes. Rows order by cluster, then server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct ServerPage {
    /// Trivial cluster that contains the page.
    pub cluster: ClusterId,
    /// Server that has the page.
    pub host: HostId,
    path: [u32; 2],
    text: [u32; 2],
}

impl ServerPage {
    /// Creates a row from a page, the hash of its path and query, and the hash of its text.
    pub fn new(cluster: ClusterId, host: HostId, path: u64, text: FPrint) -> ServerPage {
        ServerPage { cluster, host, path: halves(path), text: halves(text) }
    }
}

fn halves(hash: u64) -> [u32; 2] {
    [(hash >> 32) as u32, hash as u32]
}

/// Path of the front page of a server.
pub const FRONT: &str = "/";

/// Numbers of pages that two servers share; `a < b`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub struct ServerPair {
    /// The server with the smaller number.
    pub a: HostId,
    /// The server with the larger number.
    pub b: HostId,
    /// F: number of pages of each server that have a copy of their own on the other.
    pub shared: u32,
    /// Number of these pages that have equal paths on both servers.
    pub similar_path: u32,
    /// Number of the pages with equal paths that also have equal text.
    pub same_path: u32,
    /// 1 if the servers share their front page, at [`FRONT`], else 0.
    pub front: u32,
}

impl ServerPair {
    /// Returns the two servers as one number.
    pub fn key(&self) -> u64 {
        u64::from(self.a) << 32 | u64::from(self.b)
    }

    /// Adds the pages that the servers share in another trivial cluster.
    pub fn add(&mut self, other: &ServerPair) {
        self.shared += other.shared;
        self.similar_path += other.similar_path;
        self.same_path += other.same_path;
        self.front = self.front.max(other.front);
    }
}

/// Properties of a server that determine its relation to other servers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// Number of pages of the server that have text.
    pub pages: u32,
    /// True if the front page is one of these pages.
    pub has_front: bool,
    /// Hashes of the addresses that the server answered from, ascending; empty if they are not
    /// known.
    pub addresses: Vec<u64>,
}

/// Result of comparing the addresses of two servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Addresses {
    /// Both servers answered from one address.
    Same,
    /// The servers have no address in common.
    Different,
    /// The addresses of at least one server are not known.
    Unknown,
}

impl Addresses {
    /// Compares the addresses of two servers.
    pub fn compare(servers: [&Server; 2]) -> Addresses {
        let [a, b] = servers.map(|server| &server.addresses);
        match a.iter().any(|address| b.binary_search(address).is_ok()) {
            true => Addresses::Same,
            false if a.is_empty() || b.is_empty() => Addresses::Unknown,
            false => Addresses::Different,
        }
    }

    /// Returns the value in the column `server_pairs.addresses`.
    pub fn as_str(self) -> &'static str {
        match self {
            Addresses::Same => "same",
            Addresses::Different => "different",
            Addresses::Unknown => "unknown",
        }
    }
}

/// Relation of two servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerPairKind {
    /// Two names of one server: nearly all pages of one are on the other, under the same path and
    /// with the same text. If both have one address, half of the pages suffice, in any version.
    Alias,
    /// Nearly all pages of one server are on the other, at other paths or in other versions.
    Mirror,
    /// Both servers have some set of pages, for example a manual, among others.
    Part,
}

impl ServerPairKind {
    /// Returns the value in the column `server_pairs.kind`.
    pub fn as_str(self) -> &'static str {
        match self {
            ServerPairKind::Alias => "alias",
            ServerPairKind::Mirror => "mirror",
            ServerPairKind::Part => "part",
        }
    }
}

/// Calls `emit` for every two servers of one trivial cluster, whose pages must ascend. A cluster
/// on more than `max_hosts` servers produces no pairs.
///
/// # Cost
/// The number of servers times the number of pages.
///
/// # Examples
/// One page under the same path on hosts 0 and 1. Host 1 also has a second version of it.
/// ```
/// use webtwin_base::ids::{ClusterId, HostId};
/// use webtwin_core::overlap::servers::{ServerPage, pairs_of_cluster};
///
/// let page = |host, path, text| ServerPage::new(ClusterId(0), HostId(host), path, text);
/// let mut pages = [page(0, 11, 1), page(1, 11, 1), page(1, 12, 2)];
/// pages.sort_unstable();
///
/// let mut pairs = Vec::new();
/// pairs_of_cluster(&pages, 500, |pair| pairs.push(pair));
/// assert_eq!((pairs.len(), pairs[0].a, pairs[0].b), (1, HostId(0), HostId(1)));
/// assert_eq!((pairs[0].shared, pairs[0].same_path), (1, 1));
/// ```
pub fn pairs_of_cluster(pages: &[ServerPage], max_hosts: u32, mut emit: impl FnMut(ServerPair)) {
    let front = halves(xxh3_64(FRONT.as_bytes()));
    let servers: Vec<&[ServerPage]> = pages.chunk_by(|x, y| x.host == y.host).collect();
    if servers.len() > max_hosts as usize {
        return;
    }
    for (at, left) in servers.iter().enumerate() {
        for right in &servers[at + 1..] {
            emit(ServerPair {
                a: left[0].host,
                b: right[0].host,
                shared: left.len().min(right.len()) as u32,
                similar_path: in_both(left, right, |page| page.path),
                same_path: in_both(left, right, |page| (page.path, page.text)),
                front: u32::from([left, right].iter().all(|pages| pages.iter().any(|page| page.path == front))),
            });
        }
    }
}

/// Counts the pages of each server that have their own page with an equal key on the other server;
/// the keys ascend.
fn in_both<Key: Ord>(left: &[ServerPage], right: &[ServerPage], key: impl Fn(&ServerPage) -> Key) -> u32 {
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    let mut common = 0;
    while let (Some(x), Some(y)) = (left.peek(), right.peek()) {
        match key(x).cmp(&key(y)) {
            std::cmp::Ordering::Less => _ = left.next(),
            std::cmp::Ordering::Greater => _ = right.next(),
            std::cmp::Ordering::Equal => {
                common += 1;
                left.next();
                right.next();
            }
        }
    }
    common
}

/// Returns the relation of the servers of a pair, or `None` if they share fewer than T pages.
///
/// Servers that answer from one address are aliases if half of the pages of the smaller one are on
/// the other under the same path, in any version. A crawl may have met other pages under each name,
/// and pages that print the time or the name of the host differ from copy to copy. But sites on one
/// machine often have the same manuals at the same paths, and front pages of their own. Therefore
/// servers whose front pages are both known and are not copies are never aliases by this rule.
///
/// # Examples
/// ```
/// use webtwin_base::ids::HostId;
/// use webtwin_core::overlap::servers::{Server, ServerPair, ServerPairKind, kind};
/// use webtwin_job::Servers;
///
/// // Servers of 100 and 400 pages that share 95 of them.
/// let [a, b] = [100, 400].map(|pages| Server { pages, ..Server::default() });
/// let pair = |same_path| ServerPair {
///     a: HostId(0),
///     b: HostId(1),
///     shared: 95,
///     similar_path: same_path,
///     same_path,
///     front: 0,
/// };
/// let kind = |pair| kind(&pair, [&a, &b], &Servers::default());
/// assert_eq!(kind(pair(95)), Some(ServerPairKind::Alias));
/// assert_eq!(kind(pair(0)), Some(ServerPairKind::Mirror));
/// assert_eq!(kind(ServerPair { shared: 30, ..pair(0) }), Some(ServerPairKind::Part));
/// ```
pub fn kind(pair: &ServerPair, servers: [&Server; 2], settings: &Servers) -> Option<ServerPairKind> {
    let [a, b] = servers;
    let smaller = u64::from(a.pages.min(b.pages));
    let nearly_all = |pages: u32| u64::from(pages) * 1_000_000 >= millionths(settings.nearly_all) * smaller;
    let is_other_site = || a.has_front && b.has_front && pair.front == 0;
    let half = || u64::from(pair.similar_path) * 2 >= smaller;
    match pair {
        pair if pair.shared < settings.min_shared => None,
        pair if nearly_all(pair.same_path) => Some(ServerPairKind::Alias),
        _ if half() && !is_other_site() && Addresses::compare(servers) == Addresses::Same => {
            Some(ServerPairKind::Alias)
        }
        pair if nearly_all(pair.shared) => Some(ServerPairKind::Mirror),
        _ => Some(ServerPairKind::Part),
    }
}

/// Minimum number of servers of a popular page: "replicated across 10 - 100 sites" (\[SGM98\]
/// section 3).
pub const POPULAR: u64 = 10;

/// Counts of the pages beyond the first of their trivial cluster, each by one reason, and counts of
/// popular pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surplus {
    /// Number of pages with the text of another page of their server: URL aliases.
    pub url_alias: u64,
    /// Number of pages similar to another page of their server.
    pub same_server: u64,
    /// Number of servers that are further names of a server: server aliases.
    pub server_alias: u64,
    /// Number of servers beyond the first: replicas proper.
    pub replicated: u64,
    /// Number of trivial clusters on at least [`POPULAR`] servers.
    pub popular: u64,
    /// Number of pages of these clusters.
    pub popular_pages: u64,
}

impl std::ops::Add for Surplus {
    type Output = Surplus;

    fn add(self, other: Surplus) -> Surplus {
        Surplus {
            url_alias: self.url_alias + other.url_alias,
            same_server: self.same_server + other.same_server,
            server_alias: self.server_alias + other.server_alias,
            replicated: self.replicated + other.replicated,
            popular: self.popular + other.popular,
            popular_pages: self.popular_pages + other.popular_pages,
        }
    }
}

/// Returns the reasons why one trivial cluster has more than one page; its pages must ascend.
/// `server(host)` is equal for all names of a server.
///
/// On each host, all pages but one per text are URL aliases, and all texts but one are similar; of
/// the hosts of one server, all but one are aliases; of the servers, all but one are replicas. So
/// the counts of the reasons add up to all pages but one.
pub fn surplus(pages: &[ServerPage], server: impl Fn(HostId) -> HostId) -> Surplus {
    let mut sum = Surplus::default();
    let (mut texts, mut servers) = (Vec::new(), Vec::new());
    for host_pages in pages.chunk_by(|x, y| x.host == y.host) {
        texts.clear();
        texts.extend(host_pages.iter().map(|page| page.text));
        texts.sort_unstable();
        texts.dedup();
        sum.url_alias += (host_pages.len() - texts.len()) as u64;
        sum.same_server += texts.len() as u64 - 1;
        servers.push(server(host_pages[0].host));
    }
    let hosts = servers.len() as u64;
    servers.sort_unstable();
    servers.dedup();
    let servers = servers.len() as u64;
    sum.server_alias = hosts - servers;
    sum.replicated = servers - 1;
    if servers >= POPULAR {
        (sum.popular, sum.popular_pages) = (1, pages.len() as u64);
    }
    sum
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;
    use webtwin_job::Job;

    fn pages() -> impl Strategy<Value = Vec<ServerPage>> {
        // The text determines the cluster, because equal texts are in one cluster. A server has
        // each path once.
        prop::collection::btree_map((0u32..5, 0u64..8), 0u64..9, 1..40).prop_map(|pages| {
            let page = |((host, path), text): ((u32, u64), u64)| {
                let path = if path == 0 { FRONT.to_string() } else { format!("/{path}") };
                ServerPage::new(ClusterId(text as u32 / 3), HostId(host), xxh3_64(path.as_bytes()), text)
            };
            let mut pages: Vec<ServerPage> = pages.into_iter().map(page).collect();
            pages.sort_unstable();
            pages
        })
    }

    /// Computes server pairs by \[SGM98\] section 1: a server is the union of its pages, and pages
    /// are matched one to one.
    fn by_definition(pages: &[ServerPage]) -> BTreeMap<(HostId, HostId), ServerPair> {
        let pages_on = |host: HostId| -> Vec<&ServerPage> { pages.iter().filter(|page| page.host == host).collect() };
        let mut by_hosts = BTreeMap::new();
        let pairs = (0..5).flat_map(|a| (a + 1..5).map(move |b| (HostId(a), HostId(b))));
        for (a, b) in pairs {
            let mut left_over = pages_on(b);
            let mut shared = 0;
            for page in pages_on(a) {
                if let Some(at) = left_over.iter().position(|other| other.cluster == page.cluster) {
                    left_over.remove(at);
                    shared += 1;
                }
            }
            // A server has each path once.
            let other = |page: &ServerPage| pages_on(b).into_iter().find(|other| other.path == page.path);
            let similar = |page: &ServerPage| other(page).is_some_and(|other| other.cluster == page.cluster);
            let is_same_text = |page: &ServerPage| other(page).is_some_and(|other| other.text == page.text);
            let front = halves(xxh3_64(b"/"));
            if shared > 0 {
                let pair = ServerPair {
                    a,
                    b,
                    shared,
                    similar_path: pages_on(a).into_iter().filter(|page| similar(page)).count() as u32,
                    same_path: pages_on(a).into_iter().filter(|page| is_same_text(page)).count() as u32,
                    front: u32::from(pages_on(a).into_iter().any(|page| page.path == front && similar(page))),
                };
                by_hosts.insert((a, b), pair);
            }
        }
        by_hosts
    }

    proptest! {
        #[test]
        fn servers_share_the_intersection_of_their_pages(pages in pages()) {
            let mut pairs: BTreeMap<(HostId, HostId), ServerPair> = BTreeMap::new();
            for cluster in pages.chunk_by(|x, y| x.cluster == y.cluster) {
                pairs_of_cluster(cluster, 5, |pair| {
                    pairs.entry((pair.a, pair.b)).and_modify(|sum| sum.add(&pair)).or_insert(pair);
                });
            }
            prop_assert_eq!(pairs, by_definition(&pages));
        }

        #[test]
        fn every_page_but_the_first_has_one_reason(pages in pages(), server in prop::array::uniform5((0u32..3).prop_map(HostId))) {
            for cluster in pages.chunk_by(|x, y| x.cluster == y.cluster) {
                let sum = surplus(cluster, |host| server[host]);
                let reasons = sum.url_alias + sum.same_server + sum.server_alias + sum.replicated;
                prop_assert_eq!(reasons, cluster.len() as u64 - 1);
                let servers: BTreeSet<HostId> = cluster.iter().map(|page| server[page.host]).collect();
                prop_assert_eq!(sum.replicated, servers.len() as u64 - 1);
                let texts: BTreeSet<_> = cluster.iter().map(|page| (page.host, page.text)).collect();
                prop_assert_eq!(sum.url_alias, (cluster.len() - texts.len()) as u64);
            }
        }
    }

    fn server(pages: u32, addresses: &[u64]) -> Server {
        Server { pages, has_front: true, addresses: addresses.to_vec() }
    }

    fn settings() -> Servers {
        Servers { min_shared: 5, nearly_all: 0.9, ..Job::default().servers }
    }

    const PAIR: ServerPair =
        ServerPair { a: HostId(0), b: HostId(1), shared: 0, similar_path: 0, same_path: 0, front: 0 };

    #[test]
    fn an_alias_has_the_paths_a_mirror_the_pages_and_a_part_neither() {
        let kind = |shared, same_path| {
            let pair = ServerPair { shared, similar_path: same_path, same_path, ..PAIR };
            kind(&pair, [&server(10, &[]), &server(50, &[])], &settings())
        };
        assert_eq!(kind(10, 9), Some(ServerPairKind::Alias));
        assert_eq!(kind(9, 8), Some(ServerPairKind::Mirror));
        assert_eq!(kind(8, 8), Some(ServerPairKind::Part));
        assert_eq!(kind(4, 4), None);
    }

    #[test]
    fn half_the_pages_at_equal_paths_suffice_at_one_address_unless_front_pages_differ() {
        let kind = |shared, similar_path, front, addresses: [&[u64]; 2]| {
            let pair = ServerPair { shared, similar_path, front, ..PAIR };
            let server_of = |pages, addresses: &[u64]| Server { has_front: front < 2, ..server(pages, addresses) };
            let pair = ServerPair { front: pair.front % 2, ..pair };
            kind(&pair, [&server_of(10, addresses[0]), &server_of(50, addresses[1])], &settings())
        };
        assert_eq!(kind(5, 5, 1, [&[3, 7], &[7]]), Some(ServerPairKind::Alias));
        assert_eq!(kind(5, 4, 1, [&[3, 7], &[7]]), Some(ServerPairKind::Part));
        // Front pages that are not copies, and front pages that are not known.
        assert_eq!(kind(10, 8, 0, [&[3, 7], &[7]]), Some(ServerPairKind::Mirror));
        assert_eq!(kind(10, 8, 2, [&[3, 7], &[7]]), Some(ServerPairKind::Alias));
        for address_lists in [[&[3, 7][..], &[8][..]], [&[], &[7]], [&[3], &[]], [&[], &[]]] {
            assert_eq!(kind(9, 8, 1, address_lists), Some(ServerPairKind::Mirror));
            assert_eq!(kind(8, 8, 1, address_lists), Some(ServerPairKind::Part));
        }
        assert_eq!(kind(4, 4, 1, [&[7], &[7]]), None);
    }

    #[test]
    fn addresses_are_the_same_if_they_have_one_in_common() {
        let compare = |a: &[u64], b: &[u64]| Addresses::compare([&server(1, a), &server(1, b)]);
        assert_eq!(compare(&[1, 4, 9], &[2, 9]), Addresses::Same);
        assert_eq!(compare(&[1, 4, 9], &[2, 8]), Addresses::Different);
        assert_eq!(compare(&[1], &[]), Addresses::Unknown);
    }

    #[test]
    fn ubiquitous_page_pairs_no_servers() {
        let pages: Vec<_> = (0..4).map(|host| ServerPage::new(ClusterId(0), HostId(host), 1, 1)).collect();
        let mut pairs = 0;
        pairs_of_cluster(&pages, 3, |_| pairs += 1);
        assert_eq!(pairs, 0);
        pairs_of_cluster(&pages, 4, |_| pairs += 1);
        assert_eq!(pairs, 6);
    }
}
