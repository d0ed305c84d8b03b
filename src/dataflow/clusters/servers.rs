//! Overlap of servers: the pages of each trivial cluster are collected at one worker, and the
//! counts of each pair of servers at another.
//!
//! Pages that have copies are sent to the owner of their cluster, in partitions
//! ([`HashPartitions`]). The pages of each server are counted, and pairs of servers are sent to
//! their owners. Pairs with enough pages pass the owners of both hosts, which add names and
//! addresses. Then aliases are joined, and the pairs are sent to the owner of the first server's
//! partition. Partitions are read twice: for pairs, and after aliases are known for the reasons of
//! copies.
//!
//! # Memory
//! Takes 24 bytes for each page that has copies, or the budget of the step if it is smaller. Takes
//! 20 to 40 for each pair of servers that share a page, and 4 for each server. Takes about 300 for
//! each reported pair, and the names of hosts with at least as many pages as a pair must share.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use itertools::Itertools;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::clusters::trivial::TrivialClusters;
use crate::parts::TablePart;
use crate::reading::captures::{Crawl, host, path};
use crate::run::WorkerRun;
use crate::shuffle::components::components;
use crate::shuffle::directory::TablePartitions;
use crate::shuffle::hash_partitions::HashPartitions;
use crate::shuffle::page_counts;
use crate::steps::RunStep;
use crate::web::WorkerWeb;
use webtwin_base::error::Result;
use webtwin_base::ids::{HostId, Number};
use webtwin_core::clusters::labels::SetLabels;
use webtwin_core::overlap::servers::{
    Addresses, FRONT, Server, ServerPage, ServerPair, ServerPairKind, Surplus, kind, pairs_of_cluster, surplus,
};
use webtwin_engine::{HashOwners, Net, Owners, RoundRobin};
use webtwin_job::Servers;
use webtwin_storage::table::{Table, TableColumn};

/// Counts of servers and of the reasons for copies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerCounts {
    /// Number of servers: hosts that are not aliases of each other.
    pub servers: u64,
    /// Pairs of hosts that are aliases.
    pub alias_pairs: u64,
    /// Pairs in which nearly all pages of one server are on the other one.
    pub mirror_pairs: u64,
    /// Pairs that share at least the minimum number of pages, but not nearly all.
    pub part_pairs: u64,
    /// Reasons for which pages have copies.
    pub surplus: Surplus,
}

/// Servers and their overlap.
pub struct ServerOverlap {
    /// Smallest host of the server of each host.
    pub server: Arc<Vec<HostId>>,
    /// Parts of the `server_pairs` table.
    pub parts: Vec<TablePart>,
    /// Counts, the same on every worker.
    pub counts: ServerCounts,
}

/// Row of the `server_pairs` table. Ordered by host ids.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct ServerPairRow {
    a: u64,
    b: u64,
    host_a: String,
    host_b: String,
    shared: u32,
    similar_path: u32,
    same_path: u32,
    pages_a: u32,
    pages_b: u32,
    addresses: Addresses,
    kind: ServerPairKind,
}

/// Step that finds servers and their overlap.
const SERVERS: RunStep = RunStep::named("servers");

impl ServerOverlap {
    /// Finds the overlap of servers from the trivial clusters of all pages.
    ///
    /// # Errors
    /// Returns any error of [`overlap`].
    pub fn find(run: &mut WorkerRun<'_, '_>, web: &WorkerWeb, trivial: &TrivialClusters) -> Result<ServerOverlap> {
        run.step(web, SERVERS, |run| overlap(run.net, &web.crawl, trivial, &run.job.servers, run.partitions))
    }
}

/// Finds the pairs of servers with common pages, and the hosts that are aliases of one server.
///
/// # Errors
/// Returns any error of the disk, to which pages beyond the memory budget are written, and an error
/// if the run has ended.
pub fn overlap(
    net: &mut Net<'_>,
    crawl: &Crawl,
    TrivialClusters { labels, sizes }: &TrivialClusters,
    settings: &Servers,
    partitions: TablePartitions,
) -> Result<ServerOverlap> {
    let (hosts, owners) = (&crawl.directory.hosts, HashOwners::new(net));
    let count = hosts.iter().max().map_or(0, |&host| host.index() + 1);
    let mut host_pages = vec![0u32; count];
    crawl.pages.for_each(|row| host_pages[hosts[row.page]] += u32::from(row.exact != 0))?;
    let pages_of = page_counts::sum(net, "pages of servers", &host_pages)?;

    let rows = crawl.pages.map(|row| {
        let (cluster, host) = (labels.label(row.page), hosts[row.page]);
        let page = || ServerPage::new(cluster, host, xxh3_64(path(row.url()).as_bytes()), row.exact);
        (row.exact != 0 && sizes.size(cluster) > 1).then(page)
    });
    let max_rows = crawl.pages.len() as u64;
    let mut pages = HashPartitions::new(net, "pages of clusters", max_rows, rows.flatten_ok(), |row| row.cluster.0)?;

    let mut shared: HashMap<u64, ServerPair> = HashMap::new();
    let (mut shares, mut rows, mut next_row) = (0..pages.count(), Vec::new(), 0);
    // One cluster per call, so that receiving can proceed in between.
    let source = |send: &mut dyn FnMut(ServerPair)| {
        if next_row == rows.len() {
            let Some(share) = shares.next() else { return Ok(false) };
            pages.read(share, &mut rows)?;
            rows.sort_unstable();
            next_row = 0;
        }
        if let Some(cluster) = clusters(&rows[next_row..]).next() {
            pairs_of_cluster(cluster, settings.max_hosts, &mut *send);
            next_row += cluster.len();
        }
        Ok(true)
    };
    net.exchange_from(
        "pairs of servers",
        source,
        |pair| owners.owner(pair.key()),
        |pairs: &[ServerPair]| {
            for pair in pairs {
                shared.entry(pair.key()).and_modify(|sum| sum.add(pair)).or_insert(*pair);
            }
            Ok(())
        },
    )?;
    let pairs = shared.into_values().filter(|pair| pair.shared >= settings.min_shared).collect();
    let pairs = message(net, crawl, pairs, &pages_of, settings)?;

    let aliases = || {
        pairs
            .iter()
            .filter(|message| message.kind == ServerPairKind::Alias)
            .map(|message| Ok((message.pair.a, message.pair.b)))
    };
    let servers: Arc<SetLabels<HostId>> = components(net, "server aliases", count, aliases)?;
    let server = net.once_per_process(|| servers.to_list())?;
    drop(servers);
    let mut counts = ServerCounts::default();
    for message in &pairs {
        match message.kind {
            ServerPairKind::Alias => counts.alias_pairs += 1,
            ServerPairKind::Mirror => counts.mirror_pairs += 1,
            ServerPairKind::Part => counts.part_pairs += 1,
        }
    }
    // Reasons of copies depend on aliases, so the partitions are read a second time.
    for share in 0..pages.count() {
        net.check()?;
        pages.take(share, &mut rows)?;
        rows.sort_unstable();
        let reasons = clusters(&rows).map(|cluster| surplus(cluster, |host| server[host]));
        counts.surplus = reasons.fold(counts.surplus, |x, y| x + y);
    }
    drop((pages, rows));
    let servers = server.iter().enumerate().filter(|&(host, &least)| HostId::from_index(host) == least).count() as u64;
    let counts = net.all_reduce("counts of servers", ServerCounts { servers, ..counts }, |x, y| ServerCounts {
        servers,
        alias_pairs: x.alias_pairs + y.alias_pairs,
        mirror_pairs: x.mirror_pairs + y.mirror_pairs,
        part_pairs: x.part_pairs + y.part_pairs,
        surplus: x.surplus + y.surplus,
    })?;
    let parts = parts(net, pairs, partitions)?;
    Ok(ServerOverlap { server, parts, counts })
}

/// Returns the pages of one cluster after another.
fn clusters(pages: &[ServerPage]) -> impl Iterator<Item = &[ServerPage]> {
    pages.chunk_by(|x, y| x.cluster == y.cluster)
}

/// Maximum number of addresses of a host that are compared. The addresses with the smallest hashes
/// are chosen, so that two hosts with the same thousand addresses are compared by the same ones.
const MAX_ADDRESSES: usize = 16;

/// Host with the data that pairs need.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Host {
    name: String,
    server: Server,
}

/// Message to the owner of a host: a property of the host, or a pair to which the properties are
/// added.
#[derive(Serialize, Deserialize)]
enum Fact {
    /// Name of the host, and true if its front page is among the sender's pages.
    Name(HostId, String, bool),
    Address(HostId, u64),
    Pair(ServerPair),
}

/// Pair of servers with their properties.
struct ClassifiedPair {
    pair: ServerPair,
    hosts: [Host; 2],
    kind: ServerPairKind,
}

/// Adds hosts and kinds to pairs of servers, each of which shares at least the minimum number of
/// pages. The pairs are then at the owners of their second hosts.
fn message(
    net: &mut Net<'_>,
    crawl: &Crawl,
    pairs: Vec<ServerPair>,
    pages_of: &[u32],
    settings: &Servers,
) -> Result<Vec<ClassifiedPair>> {
    let assignment = RoundRobin::new(net.peers());
    // Other hosts have too few pages to be in a pair.
    let may_be_paired = |id: HostId| pages_of[id] >= settings.min_shared;
    let mut names: BTreeMap<HostId, (String, bool)> = BTreeMap::new();
    crawl.pages.for_each(|row| {
        let id = crawl.directory.hosts[row.page];
        if may_be_paired(id) {
            let name = names.entry(id).or_insert_with(|| (host(row.url()).to_string(), false));
            name.1 |= row.exact != 0 && path(row.url()) == FRONT;
        }
    })?;
    let names = names.into_iter().map(|(id, (name, has_front))| (id, Fact::Name(id, name, has_front)));
    let addresses =
        crawl.addresses.iter().filter(|row| may_be_paired(row.0)).map(|&(id, of)| (id, Fact::Address(id, of)));
    let pairs = pairs.into_iter().map(|pair| (pair.a, Fact::Pair(pair)));
    let facts = names.chain(addresses).chain(pairs).map(|(id, fact)| Ok((assignment.owner(id.index()), fact)));
    let (mut hosts, mut pairs): (HashMap<HostId, Host>, Vec<ServerPair>) = Default::default();
    for fact in net.exchange_values("first hosts", facts)? {
        match fact {
            Fact::Name(id, name, has_front) => {
                let host = hosts.entry(id).or_default();
                (host.name, host.server.pages) = (name, pages_of[id]);
                host.server.has_front |= has_front;
            }
            Fact::Address(id, address) => hosts.entry(id).or_default().server.addresses.push(address),
            Fact::Pair(pair) => pairs.push(pair),
        }
    }
    for host in hosts.values_mut() {
        let addresses = &mut host.server.addresses;
        addresses.sort_unstable();
        addresses.dedup();
        addresses.truncate(MAX_ADDRESSES);
    }
    let second_rows =
        pairs.into_iter().map(|pair| Ok((assignment.owner(pair.b.index()), (pair, hosts[&pair.a].clone()))));
    let second_messages: Vec<Result<(usize, (ServerPair, Host))>> = second_rows.collect();
    let message = net.exchange_values("second hosts", second_messages)?.into_iter().filter_map(|(pair, first)| {
        let hosts = [first, hosts[&pair.b].clone()];
        let kind = kind(&pair, [&hosts[0].server, &hosts[1].server], settings)?;
        Some(ClassifiedPair { pair, hosts, kind })
    });
    Ok(message.collect())
}

/// Converts the pairs into parts of a table.
fn parts(net: &mut Net<'_>, pairs: Vec<ClassifiedPair>, partitions: TablePartitions) -> Result<Vec<TablePart>> {
    let row = |message: ClassifiedPair| {
        let ClassifiedPair { pair, hosts: [a, b], kind } = message;
        let row = ServerPairRow {
            a: xxh3_64(a.name.as_bytes()),
            b: xxh3_64(b.name.as_bytes()),
            shared: pair.shared,
            similar_path: pair.similar_path,
            same_path: pair.same_path,
            pages_a: a.server.pages,
            pages_b: b.server.pages,
            addresses: Addresses::compare([&a.server, &b.server]),
            kind,
            host_a: a.name,
            host_b: b.name,
        };
        Ok((partitions.owner(row.a), row))
    };
    let mut rows = net.exchange_values("server pairs", pairs.into_iter().map(row))?;
    rows.sort_unstable();
    let runs = rows.chunk_by(|x, y| partitions.partition(x.a) == partitions.partition(y.a));
    let part = |rows: &[ServerPairRow]| TablePart {
        name: "server_pairs",
        partition: partitions.partition(rows[0].a),
        rows: table(rows),
    };
    Ok(runs.map(part).collect())
}

/// Returns the `server_pairs` table without rows.
pub fn empty() -> Table {
    table(&[])
}

fn table(rows: &[ServerPairRow]) -> Table {
    let ids = |value: fn(&ServerPairRow) -> u64| TableColumn::Id(rows.iter().map(value).collect());
    let u32s = |value: fn(&ServerPairRow) -> u32| TableColumn::U32(rows.iter().map(value).collect());
    let texts =
        |value: fn(&ServerPairRow) -> &str| TableColumn::Text(rows.iter().map(|row| value(row).to_string()).collect());
    Table::new([
        ("a", ids(|row| row.a)),
        ("b", ids(|row| row.b)),
        ("host_a", texts(|row| &row.host_a)),
        ("host_b", texts(|row| &row.host_b)),
        ("shared", u32s(|row| row.shared)),
        ("pages_a", u32s(|row| row.pages_a)),
        ("pages_b", u32s(|row| row.pages_b)),
        ("same_path", u32s(|row| row.same_path)),
        ("similar_path", u32s(|row| row.similar_path)),
        ("addresses", texts(|row| row.addresses.as_str())),
        ("kind", texts(|row| row.kind.as_str())),
    ])
}
