//! Overlap of servers: the pages of each trivial cluster meet at one worker, the counts of each pair of servers at another.
//!
//! Pages that have copies go to the owner of their cluster, in shares ([`HashPartitions`]), pages of each server are added up, pairs go to
//! their owner, aliases are joined; then pairs go by way of both names to the owner of the first server's partition. Shares are read
//! twice: for pairs, and once aliases are known for the reasons of copies.
//!
//! # Memory
//! 24 bytes a page that has copies, or what `room` allows; 20 to 40 a pair of servers that share a page, 4 a server; some 300 a pair that
//! is told, and the names of hosts with as many pages as a pair shares.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::dataflow::reading::captures::{Crawl, host, path};
use crate::dataflow::reading::lists::until_failure;
use crate::dataflow::shuffle::components::components;
use crate::dataflow::shuffle::directory::Partitions;
use crate::dataflow::shuffle::hash_partitions::HashPartitions;
use crate::dataflow::shuffle::memory_budget::MemoryBudget;
use crate::dataflow::shuffle::page_counts;
use crate::dataflow::sinks::tables::Part;
use crate::engine::{HashOwners, Net, Owners, RoundRobin};
use crate::error::Result;
use crate::ids::{ClusterId, HostId, Number};
use crate::job::Servers;
use crate::overlap::servers::{ServerPage, ServerPair, ServerPairKind, Surplus, kind, pairs_of_cluster, surplus};
use crate::storage::table::{Column, Table};

/// What was found of servers and of the reasons for copies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerCounts {
    /// Servers: hosts that are no aliases of each other.
    pub servers: u64,
    /// Pairs of hosts that are aliases.
    pub alias_pairs: u64,
    /// Pairs of which nearly all pages of one are on the other.
    pub mirror_pairs: u64,
    /// Pairs that share T pages and more, but not nearly all.
    pub part_pairs: u64,
    /// Why pages have copies.
    pub surplus: Surplus,
}

/// Servers, and how they overlap.
pub struct ServerOverlap {
    /// For every host the smallest host of its server.
    pub server: Arc<Vec<HostId>>,
    /// Parts of the `server_pairs` table.
    pub parts: Vec<Part>,
    /// Counts, the same on every worker.
    pub counts: ServerCounts,
}

/// A row of the `server_pairs` table. Orders by host ids.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct ServerPairRow {
    a: u64,
    b: u64,
    host_a: String,
    host_b: String,
    shared: u32,
    same_path: u32,
    pages_a: u32,
    pages_b: u32,
    kind: ServerPairKind,
}

/// Pairs the servers of all pages, in clusters by their labels with their sizes, and finds which hosts are one.
///
/// # Errors
/// Those of the disk, when it does not take what `room` has no memory for; or when the run has ended.
pub fn overlap(
    net: &mut Net<'_>,
    crawl: &Crawl,
    (labels, sizes): (&[ClusterId], &[u32]),
    settings: &Servers,
    partitions: Partitions,
    room: &MemoryBudget,
) -> Result<ServerOverlap> {
    let (hosts, owners) = (&crawl.directory.hosts, HashOwners::new(net));
    let count = hosts.iter().max().map_or(0, |&host| host.index() + 1);
    let mut mine = vec![0u32; count];
    crawl.pages.each(|row| mine[hosts[row.page]] += u32::from(row.exact != 0))?;
    let pages_of = page_counts::sum(net, "pages of servers", &mine)?;

    let rows = crawl.pages.map(|row| {
        let (cluster, host) = (labels[row.page], hosts[row.page]);
        let page = || ServerPage::new(cluster, host, xxh3_64(path(row.url()).as_bytes()), row.exact);
        (row.exact != 0 && sizes[cluster] > 1).then(page)
    });
    let at_most = crawl.pages.len() as u64;
    let mut pages = until_failure(rows, |rows| {
        HashPartitions::laid_down(net, "pages of clusters", at_most, rows.flatten(), |row| row.cluster.0, room)
    })?;

    let mut shared: HashMap<(HostId, HostId), (u32, u32)> = HashMap::new();
    let (mut shares, mut some, mut done) = (0..pages.count(), Vec::new(), 0);
    let source = |send: &mut dyn FnMut(ServerPair)| {
        if done == some.len() {
            let Some(share) = shares.next() else { return Ok(false) };
            pages.read(share, &mut some)?;
            some.sort_unstable();
            done = 0;
        }
        if let Some(cluster) = clusters(&some[done..]).next() {
            pairs_of_cluster(cluster, settings.max_hosts, &mut *send);
            done += cluster.len();
        }
        Ok(true)
    };
    net.exchange_from(
        "pairs of servers",
        source,
        |pair| owners.owner(pair.key()),
        |pairs: &[ServerPair]| {
            for pair in pairs {
                let sum = shared.entry((pair.a, pair.b)).or_default();
                *sum = (sum.0 + pair.shared, sum.1 + pair.same_path);
            }
            Ok(())
        },
    )?;
    let mut pairs: Vec<(ServerPair, ServerPairKind)> = Vec::new();
    for ((a, b), (shared, same_path)) in shared {
        let pair = ServerPair { a, b, shared, same_path };
        let kind = kind(&pair, pages_of[a], pages_of[b], settings);
        pairs.extend(kind.map(|kind| (pair, kind)));
    }

    let aliases = pairs.iter().filter(|(_, kind)| *kind == ServerPairKind::Alias).map(|(pair, _)| (pair.a, pair.b));
    let server = components(net, "server aliases", count, aliases)?;
    let mut counts = ServerCounts::default();
    for (_, kind) in &pairs {
        match kind {
            ServerPairKind::Alias => counts.alias_pairs += 1,
            ServerPairKind::Mirror => counts.mirror_pairs += 1,
            ServerPairKind::Part => counts.part_pairs += 1,
        }
    }
    for share in 0..pages.count() {
        net.check()?;
        pages.take(share, &mut some)?;
        some.sort_unstable();
        let reasons = clusters(&some).map(|cluster| surplus(cluster, |host| server[host]));
        counts.surplus = reasons.fold(counts.surplus, |x, y| x + y);
    }
    drop((pages, some));
    let servers = server.iter().enumerate().filter(|&(host, &least)| HostId::from_index(host) == least).count() as u64;
    let counts = net.reduce("counts of servers", ServerCounts { servers, ..counts }, |x, y| ServerCounts {
        servers,
        alias_pairs: x.alias_pairs + y.alias_pairs,
        mirror_pairs: x.mirror_pairs + y.mirror_pairs,
        part_pairs: x.part_pairs + y.part_pairs,
        surplus: x.surplus + y.surplus,
    })?;
    let parts = named(net, crawl, pairs, (&pages_of, settings.min_shared), partitions)?;
    Ok(ServerOverlap { server, parts, counts })
}

/// The pages of one cluster after another.
fn clusters(pages: &[ServerPage]) -> impl Iterator<Item = &[ServerPage]> {
    pages.chunk_by(|x, y| x.cluster == y.cluster)
}

/// What is sent to whom a host's name is known: the name, or a pair that is to have it.
#[derive(Serialize, Deserialize)]
enum Named {
    Host(HostId, String),
    Pair(ServerPairRow),
}

/// The pairs with the names of their hosts, as parts of a table.
fn named(
    net: &mut Net<'_>,
    crawl: &Crawl,
    pairs: Vec<(ServerPair, ServerPairKind)>,
    (pages_of, min_shared): (&[u32], u32),
    partitions: Partitions,
) -> Result<Vec<Part>> {
    let dealt = RoundRobin::new(net.peers());
    let mut names: BTreeMap<HostId, String> = BTreeMap::new();
    crawl.pages.each(|row| {
        let id = crawl.directory.hosts[row.page];
        // The others are in no pair.
        if pages_of[id] >= min_shared {
            names.entry(id).or_insert_with(|| host(row.url()).to_string());
        }
    })?;
    let row = |(pair, kind): (ServerPair, ServerPairKind)| {
        let row = ServerPairRow {
            a: u64::from(pair.a),
            b: u64::from(pair.b),
            host_a: String::new(),
            host_b: String::new(),
            shared: pair.shared,
            same_path: pair.same_path,
            pages_a: pages_of[pair.a],
            pages_b: pages_of[pair.b],
            kind,
        };
        (dealt.owner(pair.a.index()), Named::Pair(row))
    };
    let names = names.into_iter().map(|(id, name)| (dealt.owner(id.index()), Named::Host(id, name)));
    let pairs: Vec<(usize, Named)> = pairs.into_iter().map(row).collect();
    let (mut names_here, mut pairs_here) = (HashMap::new(), Vec::new());
    for row in net.exchange_rows("first names", names.chain(pairs))? {
        match row {
            Named::Host(id, name) => drop(names_here.insert(id, name)),
            Named::Pair(pair) => pairs_here.push(pair),
        }
    }
    let name = |id: u64| names_here[&HostId(id as u32)].clone();
    let rows = pairs_here.into_iter().map(|mut row| {
        row.host_a = name(row.a);
        (dealt.owner(row.b as usize), row)
    });
    let rows = net.exchange_rows("second names", rows)?.into_iter().map(|mut row| {
        row.host_b = name(row.b);
        (row.a, row.b) = (xxh3_64(row.host_a.as_bytes()), xxh3_64(row.host_b.as_bytes()));
        (partitions.owner(row.a), row)
    });
    let mut rows = net.exchange_rows("server pairs", rows)?;
    rows.sort_unstable();
    let runs = rows.chunk_by(|x, y| partitions.of(x.a) == partitions.of(y.a));
    Ok(runs.map(|rows| ("server_pairs", partitions.of(rows[0].a), table(rows))).collect())
}

/// The `server_pairs` table without rows.
pub fn empty() -> Table {
    table(&[])
}

fn table(rows: &[ServerPairRow]) -> Table {
    let ids = |value: fn(&ServerPairRow) -> u64| Column::Id(rows.iter().map(value).collect());
    let u32s = |value: fn(&ServerPairRow) -> u32| Column::U32(rows.iter().map(value).collect());
    let texts =
        |value: fn(&ServerPairRow) -> &str| Column::Text(rows.iter().map(|row| value(row).to_string()).collect());
    Table::new([
        ("a", ids(|row| row.a)),
        ("b", ids(|row| row.b)),
        ("host_a", texts(|row| &row.host_a)),
        ("host_b", texts(|row| &row.host_b)),
        ("shared", u32s(|row| row.shared)),
        ("pages_a", u32s(|row| row.pages_a)),
        ("pages_b", u32s(|row| row.pages_b)),
        ("same_path", u32s(|row| row.same_path)),
        ("kind", texts(|row| row.kind.as_str())),
    ])
}
