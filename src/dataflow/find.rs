//! [`find`]: the `replicas` job between reading and writing, step by step.
//!
//! No step decides what a row *means*; each calls into a stage for that. Every step leaves its rows with their owners, in an
//! order that does not depend on the number of workers.

use std::sync::Arc;

use super::clusters::{alone, giant_clusters, links, second_look, servers};
use super::pairs::kinds::{Kind, Pairs};
use super::pairs::overlap_before::{self, HandOn};
use super::pairs::{apart, exact, minhash_pairs, overlap, signatures, simhash_pairs, views};
use super::reading::{captures, idf};
use super::shuffle::{components, memory_estimate};
use super::sinks::{avoid, avoid_table, by_domain, kept, kept_before, paper_tables, tables};
use super::steps::{self, Seen, Step, Steps};

use super::clusters::grown::{Grown, Web};
use super::clusters::links::Links;
use super::clusters::places::Places;
use super::clusters::second_look::SecondLook;
use super::pairs::guards::Context;
use super::reading::captures::Crawl;
use super::reading::least_pages::LeastPages;
use super::reading::lists::until_failure;
use super::reading::resume::Resume;
use super::reading::worker_pages::WorkerPages;
use super::shuffle::directory::Partitions;
use super::shuffle::memory_estimate::MemoryEstimate;
use super::sinks::avoid_table::{AvoidTable, CrawlerLists};
use super::sinks::by_first::by_first;
use super::sinks::kept::Kept;
use super::sinks::prefix_roots::PrefixRoots;
use super::sinks::report::{CollectionRow, MemberRow};
use super::sinks::sorted::Sorted;
use super::sinks::summarise::{PairCounts, by_size, summarise};
use super::sinks::summary::Summary;
use super::sinks::tables::PairRow;
use super::sinks::url_rules::RulesWriter;
use crate::clusters::link_summary::LinkSummary;
use crate::engine::Net;
use crate::error::Result;
use crate::ids::{ClusterId, Page};
use crate::job::{Job, Measure};
use crate::overlap::SimilarPair;
use crate::overlap::prune::PageSet;
use crate::results::decisions::Decisions;
use crate::storage::aside::Aside;
use crate::storage::table::Table;
use crate::url_rules::rows::RuleRow;

/// Bytes a page that a process takes for growth, for a second look, and to judge copies, whatever is on disk
/// ([`super::clusters::tolerant`], [`super::clusters::second_look`], [`super::sinks::avoid`], [`super::sinks::ways`]).
const GROWTH_A_PAGE: u64 = 24;
const SECOND_LOOK_A_PAGE: u64 = 24;
const KEEPING_A_PAGE: u64 = 24;
/// The same for its trivial cluster, which URL rules are learned from.
const LABELS_A_PAGE: u64 = 4;

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
    /// Placeholders of all workers.
    pub placeholders: Arc<PageSet>,
    /// `LinkSummary`, with the owner of the source cluster's smallest page.
    pub link_summary: Aside<LinkSummary>,
    /// Collections, with the owner of their similar cluster's smallest page.
    pub collections: Vec<CollectionRow>,
    /// Their pages, likewise.
    pub members: Aside<MemberRow>,
    /// The avoid list, with the owner of the page.
    pub avoid: AvoidTable,
    /// The avoid list as crawlers take it.
    pub lists: CrawlerLists,
    /// URL rules, at worker 0.
    pub url_rules: Sorted<RuleRow>,
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
    let mut pairs = Pairs::default();
    pairs.put(Kind::Exact, exact::fold(net, (texts, crawl.pages.len() as u64), &room)?);
    let links = links::resolve(net, shelf, &crawl, &room)?;
    disk.map_or(Ok(()), |disk| crawl.directory.put_doc_ids_aside(disk))?;
    room.give_back();
    let earlier = kept_before::open(&job.keep)?;
    let attempt = earlier.as_ref().map(|run| run.manifest.attempt.clone());
    let seen = Seen { crawl: &crawl, shelf, links: &links, earlier: attempt.as_deref() };
    let mut steps = Steps::begin(net, resume, seen)?;
    let (mut originals, mut weak, mut counts, mut more_tables) =
        (Vec::new(), Vec::new(), PairCounts::default(), Vec::new());
    if matches!(job.similar.by, Measure::Overlap | Measure::Both) {
        let held = MemoryEstimate::with(shelf, &crawl.pages, Some(&links));
        let room = memory_estimate::room(net, held, 0, job)?;
        let found = steps.step(net, steps::VIEWS, |net| views::views(net, shelf, &crawl, job, &room))?;
        (originals, counts.4) = (found.originals, found.counts);
        for (kind, of_kind) in views::KINDS.into_iter().zip(found.pairs) {
            pairs.put(kind, Aside::put(of_kind, disk)?);
        }
        room.give_back();
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
            overlap::similar_pairs(net, shelf, &crawl, pairs.of(Kind::Exact), &links, (job, before.as_ref()))
        })?;
        pairs.put(Kind::Overlap, Aside::put(found, disk)?);
    }
    if matches!(job.similar.by, Measure::Hamming | Measure::Both) {
        let found;
        (found, counts.1) = steps.step(net, steps::HAMMING, |net| {
            simhash_pairs::similar_pairs(net, &crawl, pairs.of(Kind::Exact), &job.hamming)
        })?;
        pairs.put(Kind::Hamming, Aside::put(found, disk)?);
    }
    if job.similar.by == Measure::Signatures {
        let (found, rows): (_, Vec<(u64, Table)>);
        (found, counts.2, rows) = steps.step(net, steps::SIGNATURES, |net| {
            let found = signatures::similar_pairs(net, &crawl, &links, pairs.of(Kind::Exact), job)?;
            let rows = found.parts.into_iter().map(|(_, partition, rows)| (partition as u64, rows)).collect();
            Ok((found.pairs, found.counts, rows))
        })?;
        pairs.put(Kind::Signatures, Aside::put(found, disk)?);
        more_tables.extend(rows.into_iter().map(|(partition, rows)| (signatures::TABLE, partition as usize, rows)));
    }
    if job.similar.by == Measure::Minhash {
        let found;
        (found, counts.3) = steps.step(net, steps::MINHASH, |net| {
            minhash_pairs::similar_pairs(net, shelf, &crawl, pairs.of(Kind::Exact), &links, job)
        })?;
        pairs.put(Kind::Minhash, Aside::put(found, disk)?);
        shelf.sets = None;
    }
    if job.output.fprint_docid {
        more_tables.extend(paper_tables::fprint_docid(net, shelf, &crawl, partitions, job.chunks.bits)?);
    }

    let mut parted = apart::part(net, &crawl, &decisions.apart, &mut pairs)?;
    // Collections vouch for pages one by one, so URLs of one page are joined at last.
    let mut labels = trivial_clusters(net, &crawl, &pairs.between_sites())?;

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
        let context = Context { crawl: &crawl, joined: &pairs.between_sites(), links: &links, room: &room };
        let found;
        (found, second_look) =
            steps.step(net, steps::SECOND_LOOK, |net| second_look::look(net, shelf, &labels, &places, &context))?;
        pairs.put(Kind::Context, Aside::put(found, disk)?);
        let mut similar = pairs.take(Kind::Overlap);
        let context = Context { crawl: &crawl, joined: &[pairs.of(Kind::Exact)], links: &links, room: &room };
        second_look.alone = alone::take_back(net, &mut similar, &std::mem::take(&mut weak), &places, &context)?;
        pairs.put(Kind::Overlap, similar);
    }
    let are_more_joined = second_look.matched + second_look.by_place > second_look.refused || second_look.alone > 0;
    if are_more_joined || counts.4.found() > 0 {
        parted.and_then(apart::part(net, &crawl, &decisions.apart, &mut pairs)?);
        let labels_before = std::mem::replace(&mut labels, trivial_clusters(net, &crawl, &pairs.all())?);
        let before = grown.left(net, [&labels_before, &labels])?;
        drop(labels_before);
        let room = room_for(net, GROWTH_A_PAGE)?;
        grown = web.grow(net, (&mut steps, steps::SECOND_GROWTH), &labels, before, job, &room)?;
    }
    let Grown { sizes, link_summary, similar_clusters, .. } = grown;

    let trivial_clusters = by_size(&sizes);
    let room = room_for(net, 0)?;
    let servers = servers::overlap(net, &crawl, (&labels, &sizes), &job.servers, partitions, &room)?;
    room.give_back();
    more_tables.extend(servers.parts);

    let giants = giant_clusters::giants(net, &crawl, &labels, &sizes, &pairs)?;

    drop(sizes);
    let originals = page_set(net, originals, pages)?;
    let room = room_for(net, KEEPING_A_PAGE)?;
    let kept = steps.step(net, steps::KEEPING, |net| {
        let given = kept::Given {
            crawl: &crawl,
            labels: &labels,
            links: &links,
            from_elsewhere: &from_elsewhere,
            links_to_host: &links_to_host,
            exact_pairs: pairs.of(Kind::Exact),
            originals: &originals,
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
    drop(from_elsewhere);
    let room = room_for(net, LABELS_A_PAGE)?;
    let avoid = avoid_table::rows(net, &crawl, &verdicts, &room)?;
    room.give_back();
    let to_skip = avoid.pages()?;
    let room = room_for(net, 0)?;
    let roots = PrefixRoots::new(net, &crawl, (&collections, &members), job.keep.prefix_scope, &room)?;
    room.give_back();
    let lists = avoid_table::lists(net, &crawl, (&to_skip, &roots), disk)?;
    drop(roots);
    let mut rules = RulesWriter::new(&job.url_rules);
    let known = by_domain::Known { crawl: &crawl, labels: &labels, to_skip: &to_skip };
    by_domain::each_domain(net, &known, partitions, disk, |pages| {
        rules.add(pages);
        Ok(())
    })?;
    drop(labels);
    let rules = rules.finish(net, partitions, disk)?;
    more_tables.extend(rules.parts);
    more_tables.extend(paper_tables::hosts(net, &crawl, &to_skip, partitions)?);
    drop(to_skip);

    let in_pairs = pairs.of(Kind::Placeholder).rows().map(|pair| pair.map(|pair| [pair.a, pair.b]));
    let placeholders = in_pairs.collect::<Result<Vec<[Page; 2]>>>()?.into_flattened();
    let placeholders = page_set(net, placeholders, pages)?;
    let room = room_for(net, 0)?;
    let (pairs, link_summary) = by_first(net, &crawl, pairs, link_summary, &room)?;
    room.give_back();
    let mut found = ReplicaTables {
        crawl,
        links,
        pairs,
        verdicts,
        placeholders,
        link_summary,
        collections,
        members,
        avoid,
        lists,
        url_rules: rules.all,
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
    found.summary.url_rules = rules.counts;
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

/// These pages of this worker and of the others, once in each process; the run has `pages` pages.
fn page_set(net: &mut Net<'_>, mine: Vec<Page>, pages: usize) -> Result<Arc<PageSet>> {
    let all = net.share("pages of a set", mine)?;
    net.once(|| {
        let mut set = PageSet::new(pages, |_| false);
        all.iter().for_each(|&page| set.insert(page));
        set
    })
}
