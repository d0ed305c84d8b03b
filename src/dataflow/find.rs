//! [`find`]: the `replicas` job between reading and writing, step by step.
//!
//! No step decides what a row *means*; each calls into a stage for that. Every step leaves its rows with their owners, in an
//! order that does not depend on the number of workers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::clusters::{alone, giant_clusters, growth, link_summary, links, second_look, servers, tolerant};
use super::pairs::overlap_before::{self, HandOn};
use super::pairs::{apart, exact, minhash_pairs, overlap, signatures, simhash_pairs};
use super::reading::{captures, idf};
use super::shuffle::{components, memory_estimate};
use super::sinks::{avoid, avoid_table, kept, kept_before, paper_tables, report, summary, tables};
use super::steps::{self, Seen, Step, Steps};

use super::clusters::link_summary::{Before, MergingLinks};
use super::clusters::links::Links;
use super::clusters::places::Places;
use super::clusters::second_look::SecondLook;
use super::pairs::counts::OverlapCounts;
use super::pairs::guards::Context;
use super::pairs::minhash_pairs::MinhashCounts;
use super::pairs::signatures::SignatureCounts;
use super::pairs::simhash_pairs::SimhashCounts;
use super::reading::captures::Crawl;
use super::reading::least_pages::LeastPages;
use super::reading::lists::until_failure;
use super::reading::resume::Resume;
use super::reading::worker_pages::WorkerPages;
use super::shuffle::directory::{Directory, Partitions};
use super::shuffle::memory_budget::MemoryBudget;
use super::shuffle::memory_estimate::MemoryEstimate;
use super::shuffle::stretches::Stretches;
use super::sinks::avoid_table::AvoidTable;
use super::sinks::kept::Kept;
use super::sinks::report::{CollectionRow, Largest, MemberRow};
use super::sinks::summary::{Saving, Summary};
use super::sinks::tables::PairRow;
use crate::applications::exports::AvoidLists;
use crate::applications::keep::Why;
use crate::clusters::collection::SimilarCluster;
use crate::clusters::link_summary::LinkSummary;
use crate::clusters::merge::may_merge;
use crate::clusters::union_find::sizes;
use crate::engine::{Net, Owners};
use crate::error::Result;
use crate::ids::{ClusterId, HostId, Page};
use crate::job::{Clusters, Job, Measure, MergeCondition};
use crate::overlap::SimilarPair;
use crate::results::decisions::Decisions;
use crate::storage::aside::Aside;
use crate::storage::table::Table;

/// Bytes a page that a process takes for growth, for a second look, and to judge copies, whatever is on disk
/// ([`super::clusters::tolerant`], [`super::clusters::second_look`], [`super::sinks::avoid`], [`super::sinks::ways`]).
const GROWTH_A_PAGE: u64 = 24;
const SECOND_LOOK_A_PAGE: u64 = 24;
const KEEPING_A_PAGE: u64 = 24;

/// All that one worker owns of the answer, every list ascending by its key.
pub struct ReplicaTables {
    /// Pages.
    pub crawl: Crawl,
    /// Links.
    pub links: Links,
    /// Exact copies with their centres, and pairs by each measure, with the owner of their smaller page.
    pub pairs: Aside<PairRow>,
    /// Verdicts on the pages of trivial clusters, with the owner of the cluster's smallest page.
    pub verdicts: Aside<avoid::Verdict>,
    /// `LinkSummary`, with the owner of the source cluster's smallest page.
    pub link_summary: Aside<LinkSummary>,
    /// Collections, with the owner of their similar cluster's smallest page.
    pub collections: Vec<CollectionRow>,
    /// Their pages, likewise.
    pub members: Aside<MemberRow>,
    /// The avoid list, with the owner of the page.
    pub avoid: AvoidTable,
    /// The avoid list as crawlers take it, all at worker 0.
    pub lists: AvoidLists,
    /// Parts of `hosts`, and of `fprint_docid` where it is asked for.
    pub more_tables: Vec<tables::Part>,
    /// Steps that were taken from records, the same on every worker.
    pub taken_up: Vec<Step>,
    /// Attempt that made the earlier result of `keep.sticky`, if there is one.
    pub earlier: Option<String>,
    /// What was found, the same on every worker; `records` is filled in by the reader.
    pub summary: Summary,
}

/// Finds near-replica pages and mirrored collections among the pages on all shelves.
///
/// `floors[item]` is the offset from which the records of a work item are true; `resume` takes the records of steps. A crawl with
/// fewer pages than `least` is refused.
pub fn find(
    net: &mut Net<'_>,
    job: &Job,
    shelf: &mut WorkerPages,
    floors: &[u64],
    (resume, least): (Option<&Resume>, Option<&LeastPages>),
) -> Result<ReplicaTables> {
    let decisions = Decisions::read(job)?;
    let partitions = Partitions::new(job.output.partitions, net.peers());
    memory_estimate::make_room(net, "pages and links, and the steps after", shelf, job)?;
    // Captures have it, too.
    shelf.exact = Vec::new();
    let mut crawl = captures::settle(net, shelf, floors, partitions)?;
    least.map_or(Ok(()), |least| least.hold_against(crawl.directory.len() as u64))?;
    if job.simhash.idf && job.simhash.bits > 0 {
        idf::simhashes(net, shelf, &mut crawl, job)?;
    }
    let room =
        memory_estimate::room(net, MemoryEstimate::with(shelf, &crawl.pages, None), 4 * crawl.pages.len() as u64, job)?;
    let disk = room.disk_if_bounded(net);
    let disk = disk.as_ref();
    let texts = crawl.pages.map(|row| (row.exact, row.page));
    let mut exact_pairs = exact::fold(net, (texts, crawl.pages.len() as u64), &room)?;
    let links = links::resolve(net, shelf, &crawl, &room)?;
    disk.map_or(Ok(()), |disk| crawl.directory.put_doc_ids_aside(disk))?;
    room.give_back();
    let earlier = kept_before::open(&job.keep)?;
    let attempt = earlier.as_ref().map(|run| run.manifest.attempt.clone());
    let seen = Seen { crawl: &crawl, shelf, links: &links, earlier: attempt.as_deref() };
    let mut steps = Steps::begin(net, resume, seen)?;
    let [mut similar_pairs, mut hamming_pairs, mut signature_pairs, mut minhash_pairs, mut context_pairs] =
        [const { Aside::none() }; 5];
    let (mut weak, mut counts, mut more_tables) = (Vec::new(), PairCounts::default(), Vec::new());
    if matches!(job.similar.by, Measure::Overlap | Measure::Both) {
        let worker = (net.index(), net.peers());
        let each_page = |hand_on: HandOn<'_>| {
            if let Some(resume) = resume {
                overlap_before::each_left_page(resume, job.effort.memory_bytes > 0, worker, hand_on);
            }
        };
        let tell = |what| drop(resume.map(|resume| resume.pairs.set(what)));
        let shares = resume.and_then(|resume| resume.store.shares());
        let before = shares.map(|shares| overlap_before::Before {
            shares,
            each_page: &each_page,
            tell: &tell,
            max_change: job.recrawl.max_change,
        });
        let found;
        (found, weak, counts.0) = steps.step(net, steps::OVERLAP, |net| {
            overlap::similar_pairs(net, shelf, &crawl, &exact_pairs, &links, (job, before.as_ref()))
        })?;
        similar_pairs = Aside::put(found, disk)?;
    }
    if matches!(job.similar.by, Measure::Hamming | Measure::Both) {
        let found;
        (found, counts.1) = steps
            .step(net, steps::HAMMING, |net| simhash_pairs::similar_pairs(net, &crawl, &exact_pairs, &job.hamming))?;
        hamming_pairs = Aside::put(found, disk)?;
    }
    if job.similar.by == Measure::Signatures {
        let (found, rows): (_, Vec<(u64, Table)>);
        (found, counts.2, rows) = steps.step(net, steps::SIGNATURES, |net| {
            let found = signatures::similar_pairs(net, &crawl, &links, &exact_pairs, job)?;
            let rows = found.parts.into_iter().map(|(_, partition, rows)| (partition as u64, rows)).collect();
            Ok((found.pairs, found.counts, rows))
        })?;
        signature_pairs = Aside::put(found, disk)?;
        more_tables.extend(rows.into_iter().map(|(partition, rows)| (signatures::TABLE, partition as usize, rows)));
    }
    if job.similar.by == Measure::Minhash {
        let found;
        (found, counts.3) = steps.step(net, steps::MINHASH, |net| {
            minhash_pairs::similar_pairs(net, shelf, &crawl, &exact_pairs, &links, job)
        })?;
        minhash_pairs = Aside::put(found, disk)?;
        shelf.sets = None;
    }
    if job.output.fprint_docid {
        more_tables.extend(paper_tables::fprint_docid(net, shelf, &crawl, partitions, job.chunks.bits)?);
    }

    let by_measure =
        [&mut similar_pairs, &mut hamming_pairs, &mut signature_pairs, &mut minhash_pairs, &mut context_pairs];
    let mut parted = apart::part(net, &crawl, &decisions.apart, &mut exact_pairs, by_measure)?;
    let joined = [&exact_pairs, &similar_pairs, &hamming_pairs, &signature_pairs, &minhash_pairs];
    let mut labels = trivial_clusters(net, &crawl, &joined)?;

    let pages = crawl.directory.len();
    let held = MemoryEstimate::with(shelf, &crawl.pages, Some(&links));
    let room_for = |net: &mut Net<'_>, a_page: u64| {
        memory_estimate::room(net, held, memory_estimate::for_each_page(net, a_page, pages), job)
    };
    let room = room_for(net, GROWTH_A_PAGE)?;
    let directory = Arc::clone(&crawl.directory);
    let from_elsewhere = links::from_elsewhere(net, &links, disk)?;
    let links_to_host = links::to_hosts(net, &from_elsewhere, &crawl)?;
    let web = Web { directory: &directory, links: &links, from_elsewhere: &from_elsewhere };
    let mut grown = web.grow(net, (&mut steps, steps::GROWTH), &labels, None, job, &room)?;
    let mut second_look = SecondLook::default();
    if second_look::is_asked_for(job) {
        let places = Places::new(net, &grown.similar_clusters, pages)?;
        let room = room_for(net, SECOND_LOOK_A_PAGE)?;
        let context = Context { crawl: &crawl, joined: &joined, links: &links, room: &room };
        let found;
        (found, second_look) =
            steps.step(net, steps::SECOND_LOOK, |net| second_look::look(net, shelf, &labels, &places, &context))?;
        context_pairs = Aside::put(found, disk)?;
        let context = Context { crawl: &crawl, joined: &[&exact_pairs], links: &links, room: &room };
        second_look.alone = alone::take_back(net, &mut similar_pairs, &std::mem::take(&mut weak), &places, &context)?;
        drop(places);
        if second_look.matched + second_look.by_place > second_look.refused || second_look.alone > 0 {
            let by_measure =
                [&mut similar_pairs, &mut hamming_pairs, &mut signature_pairs, &mut minhash_pairs, &mut context_pairs];
            parted.and_then(apart::part(net, &crawl, &decisions.apart, &mut exact_pairs, by_measure)?);
            let joined =
                [&exact_pairs, &similar_pairs, &hamming_pairs, &signature_pairs, &minhash_pairs, &context_pairs];
            let labels_before = std::mem::replace(&mut labels, trivial_clusters(net, &crawl, &joined)?);
            let before = grown.left(net, [&labels_before, &labels])?;
            drop(labels_before);
            let room = room_for(net, GROWTH_A_PAGE)?;
            grown = web.grow(net, (&mut steps, steps::SECOND_GROWTH), &labels, before, job, &room)?;
        }
    }
    let Grown { sizes, link_summary, similar_clusters, .. } = grown;

    let trivial_clusters = by_size(&sizes);
    let servers = servers::overlap(net, &crawl, &labels, &sizes, &job.servers, partitions)?;
    more_tables.extend(servers.parts);

    let by_measure = [&similar_pairs, &hamming_pairs, &signature_pairs, &minhash_pairs, &context_pairs];
    let giants = giant_clusters::giants(net, &crawl, &labels, &sizes, &exact_pairs, by_measure)?;

    drop(sizes);
    let room = room_for(net, KEEPING_A_PAGE)?;
    let kept = steps.step(net, steps::KEEPING, |net| {
        let given = kept::Given {
            crawl: &crawl,
            labels: &labels,
            links: &links,
            from_elsewhere: &from_elsewhere,
            links_to_host: &links_to_host,
            exact_pairs: &exact_pairs,
            decisions: &decisions,
            earlier: earlier.as_ref(),
            room: &room,
        };
        kept::keep(net, job, shelf, similar_clusters, &given)
    })?;
    // Also where the step was taken up: nothing asks for chunks any more.
    shelf.fprints.clear();
    let Kept { verdicts, collections, members, .. } = kept;
    second_look.attached = kept.attached;
    let members = members.onto(disk)?;
    let verdicts = verdicts.onto(disk)?;
    drop((labels, from_elsewhere));
    room.give_back();
    let room = room_for(net, 0)?;
    let avoid = avoid_table::rows(net, &crawl, &verdicts, &room)?;
    room.give_back();
    let to_skip = avoid.pages()?;
    let lists = avoid_table::lists(net, &crawl, &to_skip, disk.is_some())?;
    more_tables.extend(paper_tables::hosts(net, &crawl, &to_skip, partitions)?);
    drop(to_skip);

    room.give_back();
    // In the order of `MEASURES`.
    let by_measure = [context_pairs, exact_pairs, hamming_pairs, minhash_pairs, similar_pairs, signature_pairs];
    let room = room_for(net, 0)?;
    let (pairs, link_summary) = by_first(net, &crawl, by_measure, link_summary, &room)?;
    room.give_back();
    let mut found = ReplicaTables {
        crawl,
        links,
        pairs,
        verdicts,
        link_summary,
        collections,
        members,
        avoid,
        lists,
        more_tables,
        taken_up: steps.taken_up,
        earlier: attempt,
        summary: Summary::default(),
    };
    found.summary = summarise(net, job, &found, &counts, trivial_clusters, kept.taken_out, &servers.server)?;
    found.summary.servers = servers.counts;
    found.summary.second_look = second_look;
    found.summary.giant_trivial_clusters = giants;
    found.summary.ways = kept.ways;
    found.summary.kept_before = kept.kept_before;
    found.summary.pins = kept.pins;
    found.summary.apart = (!job.pairs.apart.is_empty()).then_some(parted);
    Ok(found)
}

/// The trivial cluster of every page, by these pairs of this worker and those of the others.
fn trivial_clusters(net: &mut Net<'_>, crawl: &Crawl, joined: &[&Aside<SimilarPair>]) -> Result<Arc<Vec<ClusterId>>> {
    until_failure(joined.iter().flat_map(|pairs| pairs.rows()), |pairs| {
        let edges = pairs.map(|pair| (pair.a, pair.b));
        components::components(net, "trivial clusters", crawl.directory.len(), edges)
    })
}

/// What growth sees of the crawl beside trivial clusters.
struct Web<'a> {
    directory: &'a Directory,
    /// Links from this worker's pages.
    links: &'a Links,
    /// Links from other hosts to this worker's pages, in their order.
    from_elsewhere: &'a Aside<u32>,
}

/// What trivial clusters grew to.
struct Grown {
    /// Pages of every trivial cluster.
    sizes: Arc<Vec<u32>>,
    /// Rows of `LinkSummary`, this worker's share.
    link_summary: Aside<LinkSummary>,
    /// Similar clusters, with the owners of their names by key.
    similar_clusters: Vec<SimilarCluster>,
    /// The links that merged, for growth after a second look; none where the rest is from a record.
    merging: Option<Arc<MergingLinks>>,
}

impl Grown {
    /// What holds on for the clusters of `labels[1]`, if they were those of `labels[0]`; the rest is dropped.
    fn left(self, net: &mut Net<'_>, labels: [&[ClusterId]; 2]) -> Result<Option<Before>> {
        let Grown { link_summary, merging, .. } = self;
        merging.map(|merging| Before::new(net, (link_summary, merging), labels)).transpose()
    }
}

impl Web<'_> {
    fn grow(
        &self,
        net: &mut Net<'_>,
        (steps, step): (&mut Steps<'_>, Step),
        labels: &[ClusterId],
        before: Option<Before>,
        job: &Job,
        room: &MemoryBudget,
    ) -> Result<Grown> {
        let sizes = net.once(|| sizes(labels))?;
        let keeps = second_look::is_asked_for(job) && step == steps::GROWTH;
        let mut kept = None;
        let (link_summary, similar_clusters) = steps.step(net, step, |net| {
            let links = (self.links, &self.directory.hosts[..]);
            let (link_summary, merging) =
                link_summary::of_clusters(net, links, (labels, &sizes), before, &job.clusters, room)?;
            kept = keeps.then(|| Arc::clone(&merging));
            let edges = edges_of(&link_summary, job.clusters.merge)?;
            let similar_clusters = self.collections(net, (labels, &sizes), (edges, merging), &job.clusters, room)?;
            Ok((link_summary, similar_clusters))
        })?;
        // One that was taken from a record is in memory.
        let link_summary = link_summary.onto(room.disk_if_bounded(net).as_ref())?;
        Ok(Grown { sizes, link_summary, similar_clusters, merging: kept })
    }

    /// This worker's similar clusters.
    fn collections(
        &self,
        net: &mut Net<'_>,
        (labels, sizes): (&[ClusterId], &[u32]),
        (edges, merging): (Vec<(ClusterId, ClusterId)>, Arc<MergingLinks>),
        settings: &Clusters,
        room: &MemoryBudget,
    ) -> Result<Vec<SimilarCluster>> {
        let &Web { directory, links, from_elsewhere } = self;
        match settings.merge {
            MergeCondition::Tolerant => {
                let clusters = (labels, sizes);
                tolerant::similar_clusters(net, directory, clusters, merging, (links, from_elsewhere), settings, room)
            }
            MergeCondition::Exact | MergeCondition::Extended => {
                growth::similar_clusters(net, directory, labels, (links, from_elsewhere), edges, settings, room)
            }
        }
    }
}

/// The edges of the TCG among rows of `LinkSummary`; none where growth is tolerant, which goes by links.
fn edges_of(link_summary: &Aside<LinkSummary>, merge: MergeCondition) -> Result<Vec<(ClusterId, ClusterId)>> {
    let mut edges = Vec::new();
    if merge == MergeCondition::Tolerant {
        return Ok(edges);
    }
    for block in link_summary.blocks() {
        let block = block?;
        let merging = block.iter().filter(|row| may_merge(row, merge));
        edges.extend(merging.map(|row| (row.src_cluster, row.dst_cluster)));
    }
    Ok(edges)
}

/// Brings pairs to the owners of their smaller pages, and rows of `LinkSummary` to the owners of their source clusters' smallest pages;
/// there they wait for tables, ascending. One exchange.
///
/// # Memory
/// 16 bytes a pair and 32 a row, or what `room` allows.
fn by_first(
    net: &mut Net<'_>,
    crawl: &Crawl,
    by_measure: [Aside<SimilarPair>; tables::MEASURES.len()],
    link_summary: Aside<LinkSummary>,
    room: &MemoryBudget,
) -> Result<(Aside<PairRow>, Aside<LinkSummary>)> {
    let (directory, pages, room) = (&crawl.directory, crawl.pages.len(), room.parted(2));
    let count = by_measure.iter().map(|pairs| pairs.len() as u64).sum();
    let mut owned = Stretches::new(net, (pages, count), &room);
    let mut owned_summary = Stretches::new(net, (pages, link_summary.len() as u64), &room);
    let pairs = by_measure.iter().zip(0..).flat_map(|(pairs, measure)| {
        pairs.rows().map(move |pair| pair.map(|SimilarPair { a, b, value }| [a.0, b.0, measure, value]))
    });
    until_failure(pairs, |pairs| {
        until_failure(link_summary.rows(), |link_summary| {
            net.exchange_two(
                "pairs and link summary",
                (
                    pairs,
                    |&[a, ..]: &PairRow| directory.owner(Page(a)),
                    |rows: &[PairRow]| rows.iter().try_for_each(|row| owned.push(directory.place(Page(row[0])), *row)),
                ),
                (
                    link_summary,
                    |row| directory.owner(row.src_cluster.smallest()),
                    |rows: &[LinkSummary]| {
                        let place = |row: &LinkSummary| directory.place(row.src_cluster.smallest());
                        rows.iter().try_for_each(|row| owned_summary.push(place(row), *row))
                    },
                ),
            )
        })
    })?;
    drop((by_measure, link_summary));
    let disk = room.disk_if_bounded(net);
    Ok((owned.sorted(net, |row| *row, disk.as_ref())?, owned_summary.sorted(net, |row| *row, disk.as_ref())?))
}

/// Trivial clusters by how many pages they have.
fn by_size(sizes: &[u32]) -> BTreeMap<u64, u64> {
    let mut clusters = BTreeMap::new();
    sizes.iter().filter(|&&size| size > 0).for_each(|&size| *clusters.entry(u64::from(size)).or_default() += 1);
    clusters
}

/// Counts of one worker, added up over all.
type Tally = BTreeMap<String, u64>;

/// What was counted on the way to similar pairs, this worker's share.
type PairCounts = (OverlapCounts, SimhashCounts, SignatureCounts, MinhashCounts);

fn summarise(
    net: &mut Net<'_>,
    job: &Job,
    found: &ReplicaTables,
    counts: &PairCounts,
    trivial_clusters: BTreeMap<u64, u64>,
    taken_out: u64,
    server: &[HostId],
) -> Result<Summary> {
    let mut mine = Tally::new();
    let mut add = |name: &str, n: u64| *mine.entry(name.to_string()).or_default() += n;
    let (mut bytes, mut savings) = (0, BTreeMap::<Why, Saving>::new());
    until_failure(found.avoid.rows.rows(), |rows| {
        let mut skipped = rows.peekable();
        found.crawl.pages.each(|page| {
            bytes += page.body_bytes;
            if let Some(row) = skipped.next_if(|row| row.page == page.page) {
                let saving = savings.entry(row.why()).or_default();
                (saving.pages, saving.bytes) = (saving.pages + 1, saving.bytes + page.body_bytes);
            }
        })
    })?;
    add("bytes", bytes);
    for (why, saving) in savings {
        add(&format!("skip pages {}", why.as_str()), saving.pages);
        add(&format!("skip bytes {}", why.as_str()), saving.bytes);
    }
    let mut exact_pairs = 0;
    found.pairs.each_group(
        |x, y| x[0] == y[0],
        |pairs| {
            let copies = pairs.iter().filter(|row| row[2] == tables::EXACT).count() as u64;
            if copies > 0 {
                exact_pairs += copies;
                add(&format!("exact {}", copies + 1), 1);
            }
        },
    )?;
    add("exact pairs", exact_pairs);
    add("links", found.links.len() as u64);
    add("similar clusters", found.collections.chunk_by(|x, y| x.similar_cluster == y.similar_cluster).count() as u64);
    add("collections", found.collections.len() as u64);
    for rows in found.collections.chunk_by(|x, y| x.similar_cluster == y.similar_cluster) {
        let copies = rows.iter().filter(|row| row.identical_to != row.collection);
        let firsts: BTreeSet<Page> = copies.clone().map(|row| row.identical_to).collect();
        add("identical collections", (copies.count() + firsts.len()) as u64);
        add("identical clusters", u64::from(rows.iter().all(|row| row.identical_to == rows[0].identical_to)));
    }
    add("members", found.members.len() as u64);
    add("taken out", taken_out);
    add("prefixes", found.lists.prefixes.iter().filter(|prefix| !prefix.single).count() as u64);
    let mut all = Tally::new();
    let (tallies, all_counts): (Vec<Tally>, Vec<PairCounts>) =
        net.all_gather("summary", (mine, counts.clone()))?.into_iter().unzip();
    for (name, n) in tallies.into_iter().flatten() {
        *all.entry(name).or_default() += n;
    }
    let overlap = all_counts.iter().fold(OverlapCounts::default(), |x, y| x + &y.0);
    let hamming = all_counts[0].1;
    let mut trivial = Vec::new();
    found.verdicts.each_group(
        |x, y| x.cluster == y.cluster,
        |pages| {
            let pages_on = pages.iter().map(|row| row.page);
            let hosts = report::hosts_and_servers(pages_on, &found.crawl.directory, server);
            trivial.push((pages[0].keep, hosts, pages.len() as u32));
        },
    )?;
    let trivial = named(net, &found.crawl, trivial)?;
    let similar = report::similar_clusters_of(&found.collections, &found.crawl.directory, server);
    let [largest_trivial_clusters, largest_similar_clusters] = report::largest(net, [trivial, similar])?;

    let get = |name: &str| all.get(name).copied().unwrap_or(0);
    let pages = Saving { pages: found.crawl.directory.len() as u64, bytes: get("bytes") };
    let skip_by_reason: BTreeMap<Why, Saving> = [Why::Exact, Why::Collection, Why::Similar]
        .map(|why| {
            let of = |what: &str| get(&format!("skip {what} {}", why.as_str()));
            (why, Saving { pages: of("pages"), bytes: of("bytes") })
        })
        .into();
    let skip = Saving {
        pages: skip_by_reason.values().map(|saving| saving.pages).sum(),
        bytes: skip_by_reason.values().map(|saving| saving.bytes).sum(),
    };
    let exact_groups: BTreeMap<u64, u64> =
        all.iter().filter_map(|(name, &n)| Some((name.strip_prefix("exact ")?.parse().ok()?, n))).collect();
    Ok(Summary {
        digest: crate::job::Digest::of(job).hex(),
        pages,
        hosts: found.crawl.directory.hosts.iter().max().map_or(0, |host| u64::from(*host) + 1),
        links: get("links"),
        replication_exact: summary::bars(&exact_groups, pages.pages),
        replication_similar: summary::bars(&trivial_clusters, pages.pages),
        overlap,
        hamming,
        signatures: counts.2,
        minhash: counts.3,
        exact_pairs: get("exact pairs"),
        trivial_clusters: trivial_clusters.iter().filter(|(size, _)| **size > 1).map(|(_, n)| n).sum(),
        similar_clusters: get("similar clusters"),
        collections: get("collections"),
        identical_clusters: get("identical clusters"),
        identical_collections: get("identical collections"),
        pages_in_collections: get("members"),
        taken_out: get("taken out"),
        skip,
        skip_share_of_pages: summary::share(skip.pages, pages.pages),
        skip_share_of_bytes: summary::share(skip.bytes, pages.bytes),
        skip_by_reason,
        avoid_prefixes: get("prefixes"),
        largest_similar_clusters,
        largest_trivial_clusters,
        ..Summary::default()
    })
}

/// The largest of this worker's trivial clusters, given as (page that is kept, hosts and servers, pages), with the URL of
/// that page.
fn named(net: &mut Net<'_>, crawl: &Crawl, mut clusters: Vec<(Page, (u32, u32), u32)>) -> Result<Vec<Largest>> {
    clusters.sort_unstable_by_key(|&(keep, (hosts, _), pages)| (std::cmp::Reverse((hosts, pages)), keep));
    clusters.truncate(report::SHOWN);
    let directory = crawl.directory.clone();
    let rows = clusters.into_iter().map(|row| (directory.owner(row.0), row));
    let asked = net.exchange_rows("kept pages", rows)?;
    let mut pages = crawl.reader();
    let largest = |(keep, (hosts, servers), copies): (Page, (u32, u32), u32)| {
        let page = pages.page(keep)?;
        Ok(Largest { hosts, servers, copies, size: 1, doc_id: page.doc_id, url: page.url().to_string() })
    };
    asked.into_iter().map(largest).collect()
}
