use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use proptest::prelude::*;
use webtwin::clusters::link_summary::{LinkSummary, cluster_links, link_summary};
use webtwin::clusters::union_find::{UnionFind, sizes};
use webtwin::clusters::{growth, tolerant};
use webtwin::dataflow::clusters::context_pairs::ContextPassCounts;
use webtwin::dataflow::clusters::giant_clusters::GiantCluster;
use webtwin::dataflow::clusters::links;
use webtwin::dataflow::clusters::servers::ServerCounts;
use webtwin::dataflow::find::find;
use webtwin::dataflow::pairs::given::GivenCounts;
use webtwin::dataflow::pairs::kinds::PairKind;
use webtwin::dataflow::pairs::simhash_pairs::{self, SimhashCounts};
use webtwin::dataflow::pairs::{overlap, signatures, views};
use webtwin::dataflow::parts::TablePart;
use webtwin::dataflow::reading::captures::{Crawl, path, settle};
use webtwin::dataflow::reading::foreign_rows::RowCounts;
use webtwin::dataflow::reading::idf;
use webtwin::dataflow::reading::worker_pages::WorkerPages;
use webtwin::dataflow::run::WorkerRun;
use webtwin::dataflow::shuffle::components::components;
use webtwin::dataflow::shuffle::directory::TablePartitions;
use webtwin::dataflow::sinks::by_first::PairRow;
use webtwin::dataflow::sinks::collection_rows::MemberRow;
use webtwin::dataflow::sinks::reachability::Reachability;
use webtwin::engine::{ClusterLayout, Net, run};
use webtwin::error::Result;
use webtwin::hamming::pairs::{SimhashDocId, similar_pairs};
use webtwin::hamming::simhash::Sums;
use webtwin::ids::{ClusterId, Page, doc_id};
use webtwin::job::{
    AttachmentRule, Children, ClusterSettings, Guard, Hamming, Job, Measure, MergeCondition, Minhash, OverlapSettings,
    Servers, Signatures, SimilarityMeasures, VectorRecipe,
};
use webtwin::overlap::guard::{GuardedMatch, best_on_each_host};
use webtwin::overlap::neighbours::{LinkSample, keep_apart};
use webtwin::overlap::views::{ViewPage, by_definition};
use webtwin::overlap::{FPrintDocId, SimilarPair, sort_based};
use webtwin::pages::public_suffix::domain_of;
use webtwin::signatures::hyperlink_map::hyperlink_map;
use webtwin::signatures::random_projection::ComponentBounds;
use webtwin::signatures::{distance, number};
use webtwin::spill::SpillColumn;
use webtwin::text::{Feature, inverse_document_frequency};

use crate::support::crawl::{MadePage, exact_pairs, local_pages};

fn on<T: Send + 'static>(workers: usize, program: impl Fn(&mut Net) -> Result<T> + Send + Sync + 'static) -> Vec<T> {
    run(&ClusterLayout::local(workers), 0, [0; 32], program).unwrap()
}

fn crawl_of(net: &mut Net, local_pages: &mut WorkerPages) -> Result<Crawl> {
    let partitions = TablePartitions::new(8, net.peers());
    settle(net, local_pages, &[0], partitions)
}

/// Returns the pairs of a kind.
fn pairs_by(kind: PairKind, pairs: SpillColumn<PairRow>) -> Result<Vec<SimilarPair>> {
    let by_measure = pairs.take()?.into_iter().filter(|row| row[2] == kind as u32);
    Ok(by_measure.map(|[a, b, _, value]| SimilarPair { a: Page(a), b: Page(b), value }).collect())
}

/// Returns a crawl of a few hosts whose pages share chunks and link to each other.
fn crawl() -> impl Strategy<Value = Vec<MadePage>> {
    let page = (
        0u32..4,
        0u32..12,
        0i64..3,
        prop::collection::vec(1u64..25, 0..12),
        prop::collection::vec((0u32..4, 0u32..12), 0..5),
        prop::option::of(0u64..40),
    );
    prop::collection::vec(page, 1..60).prop_map(|pages| {
        let url = |host: u32, path: u32| format!("http://h{host}.example/{path}");
        pages
            .into_iter()
            .map(|(host, path, time, fprints, links, simhash)| {
                let links = links.into_iter().map(|(host, path)| url(host, path));
                MadePage { time, simhash, ..MadePage::at(url(host, path)).chunks(fprints).links(links) }
            })
            .collect()
    })
}

fn settings() -> impl Strategy<Value = OverlapSettings> {
    let guard = prop::sample::select(vec![Guard::None, Guard::MutualBest, Guard::Centre, Guard::Neighbours]);
    (1u32..4, 0u32..3, prop::sample::select(vec![0.0, 0.3, 0.5, 1.0]), 0u32..4, 0u32..12, guard).prop_map(
        |(min_shared, doubt, min_resemblance, template_pages, max_documents, guard)| OverlapSettings {
            min_shared,
            min_resemblance,
            min_resemblance_alone: 0.7,
            doubt,
            views: 0.0,
            template_pages,
            max_documents,
            guard,
        },
    )
}

/// Generates hosts whose pages have few distinct titles. Some pages have nearly the same content;
/// some have boilerplate; some name another page as canonical. Some cases have more pages with one
/// title than are compared with each other.
fn views() -> impl Strategy<Value = Vec<MadePage>> {
    // Two hosts of one domain, and one host of another domain.
    let host = prop::sample::select(vec!["www.a.example", "a.example", "b.example"]);
    let scheme = prop::sample::select(vec!["http", "https"]);
    let url = (scheme, host, 0u32..150, prop::sample::select(vec!["", "?"]))
        .prop_map(|(scheme, host, number, mark)| format!("{scheme}://{host}/{mark}{number}"));
    let changed = prop::collection::btree_set(0u64..8, 0..3);
    let canonical = prop::option::weighted(0.3, any::<prop::sample::Index>());
    let page = (url, 0u32..3, 0u64..6, changed, any::<bool>(), canonical);
    let pages = prop_oneof![3 => 1usize..60, 1 => 150..300usize]
        .prop_flat_map(move |count| prop::collection::vec(page.clone(), count..count + 1));
    pages.prop_map(|pages| {
        let urls: Vec<String> = pages.iter().map(|page| page.0.clone()).collect();
        let mut synthetic_pages = Vec::new();
        for (number, (url, title, article, changed, plain, canonical)) in pages.into_iter().enumerate() {
            let chunk =
                |at: u64| if changed.contains(&at) { 5_000 + number as u64 * 10 + at } else { 100 * article + at };
            let boilerplate = if plain { 0..0 } else { 1_000..1_006 };
            // The title of a page is part of its text.
            let text = (1..12).map(chunk).chain(boilerplate).chain([9_000 + u64::from(title)]);
            let title = ["", "a title", "another"][title as usize].to_string();
            let canonical = canonical.map(|canonical| canonical.get(&urls)).filter(|canonical| **canonical != url);
            let canonical = canonical.cloned().unwrap_or_default();
            synthetic_pages.push(MadePage { title, notice: article % 3, canonical, ..MadePage::at(url).chunks(text) });
        }
        synthetic_pages
    })
}

/// Generates copies of a small site on a few hosts, some of them twice on one host. Pages of a copy
/// may be missing, changed or linked differently.
fn mirrors() -> impl Strategy<Value = Vec<MadePage>> {
    let site = prop::collection::vec((0u32..10, 0u32..10), 8..30);
    let copy = (0u32..4, prop::collection::btree_set(0u32..10, 0..3), prop::collection::btree_set(0u32..10, 0..2));
    (site, prop::collection::vec(copy, 2..5), prop::collection::vec((0u32..40, 0u32..40), 0..4)).prop_map(
        |(site, copies, more)| {
            let mut pages = Vec::new();
            for (number, (host, lost, changed)) in (0u32..).zip(copies) {
                let url = |path: u32| format!("http://h{host}.example/{number}/{path}");
                for path in (0..10).filter(|path| !lost.contains(path)) {
                    let text = if changed.contains(&path) { 10 + 10 * number + path } else { path };
                    let own = site.iter().filter(|link| link.0 == path).map(|link| url(link.1));
                    let other = more.iter().filter(|link| link.0 == 10 * number + path).map(|link| url(link.1));
                    let chunks = (0..8).map(|chunk| u64::from(text) * 100 + chunk);
                    pages.push(MadePage::at(url(path)).chunks(chunks).links(own.chain(other)));
                }
            }
            pages
        },
    )
}

/// Pairs with values, and labels. Pages are given by their index in a crawl; some indices are not
/// in the crawl.
#[derive(Debug, Clone)]
struct GivenRows {
    pairs: Vec<(usize, usize, u32)>,
    labels: Vec<(usize, u32)>,
}

fn given() -> impl Strategy<Value = GivenRows> {
    let (pair, label) = ((0usize..70, 0usize..70, 0u32..9), (0usize..70, 0u32..6));
    (prop::collection::vec(pair, 0..40), prop::collection::vec(label, 0..20))
        .prop_map(|(pairs, labels)| GivenRows { pairs, labels })
}

impl GivenRows {
    fn url(pages: &[MadePage], at: usize) -> String {
        pages.get(at).map_or_else(|| format!("http://nowhere.example/{at}"), |page| page.url.clone())
    }

    /// Writes the tables, with the pairs and labels in two forms each, and returns their names.
    fn write(&self, folder: &Path, pages: &[MadePage]) -> Vec<String> {
        let url = |at| GivenRows::url(pages, at);
        let [mut csv, mut json] = ["value,url_b,a\nfar,x\n".to_string(), String::new()];
        for (number, &(a, b, value)) in self.pairs.iter().enumerate() {
            match number % 2 {
                0 => csv += &format!("{value},{},{}\n", url(a), doc_id(&url(b))),
                _ => {
                    json += &format!("{{\"url_a\": \"{}\", \"b\": {}, \"value\": {value}}}\n", url(a), doc_id(&url(b)))
                }
            }
        }
        let rows = self.labels.iter().map(|&(at, label)| format!("{label}\t{}\n", url(at)));
        let labels = format!("cluster\turl\n{}", rows.collect::<String>());
        let tables = [("pairs.csv", csv), ("pairs.jsonl", json), ("labels.tsv", labels)];
        let write = |(name, text): (&str, String)| {
            let path = folder.join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_string()
        };
        tables.into_iter().filter(|(_, text)| !text.is_empty()).map(write).collect()
    }

    /// Returns the pairs with their values, and the counts, by definition.
    fn by_definition(&self, pages: &[MadePage], doc_ids: &[u64]) -> (BTreeMap<(u32, u32), u32>, GivenCounts) {
        let page = |at| doc_ids.binary_search(&doc_id(&GivenRows::url(pages, at))).ok().map(|page| page as u32);
        // The table has one malformed row.
        let mut counts = RowCounts { malformed: 1, malformed_bytes: 6, ..RowCounts::default() };
        let mut valued_pairs: Vec<((u32, u32), u32)> = Vec::new();
        for &(x, y, value) in &self.pairs {
            match (page(x), page(y)) {
                _ if GivenRows::url(pages, x) == GivenRows::url(pages, y) => counts.self_pairs += 1,
                (Some(x), Some(y)) => valued_pairs.push(((x.min(y), x.max(y)), value)),
                _ => counts.unknown += 1,
            }
        }
        let mut labelled: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for &(at, label) in &self.labels {
            match page(at) {
                Some(page) => labelled.entry(label).or_default().push(page),
                None => counts.unknown += 1,
            }
        }
        for pages in labelled.values_mut() {
            pages.sort_unstable();
            valued_pairs.extend(pages[1..].iter().map(|&page| ((pages[0], page), 1_000_000)));
        }
        let mut pairs = BTreeMap::new();
        for (pair, value) in valued_pairs {
            let known = pairs.contains_key(&pair);
            counts.duplicates += u64::from(known || pair.0 == pair.1);
            if pair.0 != pair.1 {
                let most = pairs.entry(pair).or_insert(value);
                *most = value.max(*most);
            }
        }
        counts.read = (self.pairs.len() + self.labels.len() + 1) as u64;
        counts.used = counts.read - counts.malformed - counts.unknown - counts.self_pairs - counts.duplicates;
        let similar = pairs.len() as u64;
        (pairs, GivenCounts { rows: counts, similar, guarded: 0 })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn tolerant_growth_over_all_workers_equals_the_plain_function(
        pages in prop_oneof![crawl(), mirrors(), mirrors()], workers in 1usize..4, min_hosts in 1u32..3,
        attach in prop::sample::select(vec![AttachmentRule::None, AttachmentRule::BreakPoints, AttachmentRule::Nearby]),
    ) {
        let merge = MergeCondition::Tolerant;
        let clusters = ClusterSettings { merge, single_site: true, min_size: 2, min_hosts, attach };
        let overlap = OverlapSettings { guard: Guard::None, template_pages: 0, ..Job::default().overlap };
        let job = Job { clusters, overlap, ..Job::default() };
        let parts = on(workers, move |net| {
            let mut local_pages = local_pages(&pages, net.index(), net.peers());
            let result = find(&mut WorkerRun::new(net, &job, &mut local_pages, None), &[0], None)?;
            Ok((result.links.read(0..result.links.len())?, result.verdicts.take()?, result.members.take()?, result.crawl.directory.hosts.clone()))
        });
        let hosts = &parts[0].3;
        let mut labels: Vec<ClusterId> = Page::first(hosts.len()).map(ClusterId::from_smallest).collect();
        for verdict in parts.iter().flat_map(|part| &part.1) {
            labels[verdict.page] = verdict.cluster;
        }
        let links: Vec<(Page, Page)> = parts.iter().flat_map(|part| part.0.clone()).collect();
        let mut want = Vec::new();
        let clusters_found = tolerant::similar_clusters(&labels, hosts, &links, &clusters);
        for cluster in clusters_found.into_iter().filter(|cluster| !cluster.double) {
            for collection in &cluster.collections {
                want.extend(MemberRow::from_collection(cluster.id(), collection, |page| labels[page]));
            }
        }
        want.sort_unstable();
        let mut got: Vec<MemberRow> = parts.iter().flat_map(|part| part.2.clone()).collect();
        got.sort_unstable();
        // Under `nearby`, pages are also attached later, by their paths.
        if attach == AttachmentRule::Nearby {
            prop_assert!(want.iter().all(|row| got.binary_search(row).is_ok()));
            got.retain(|row| row.attached == 0 || want.binary_search(row).is_ok());
        }
        prop_assert_eq!(got, want);
    }

    #[test]
    fn crawl_paths_are_the_same_in_any_parts_with_any_workers(
        pages in prop_oneof![crawl(), mirrors()], skipped in prop::collection::vec(any::<bool>(), 7..40),
    ) {
        let results = [(1, 0), (1, 3), (2, 2), (3, 0), (3, 1)].map(|(workers, bits)| {
            let (crawl_pages, skipped) = (pages.clone(), skipped.clone());
            let parts = on(workers, move |net| {
                let mut local_pages = local_pages(&crawl_pages, net.index(), net.peers());
                let crawl = crawl_of(net, &mut local_pages)?;
                let seeds = HashSet::new();
                let links = links::resolve(net, &mut local_pages, &crawl)?;
                let from_elsewhere = links::count_incoming(net, &links)?;
                let mut through =
                    Reachability::gather_in_parts(net, &crawl, &links, &from_elsewhere, &seeds, bits)?;
                let depths = through.depths(net, &crawl)?;
                let own = || crawl.directory.owned(net.index());
                let depths: Vec<(Page, u32)> = own().zip(depths).collect();
                let skip = own().filter(|page| skipped[page.0 as usize % skipped.len()]).collect();
                let (visited, ways) = through.clear(net, &crawl, skip)?;
                Ok((depths, visited, ways))
            });
            let mut depths: Vec<(Page, u32)> = parts.iter().flat_map(|part| part.0.clone()).collect();
            let mut visited: Vec<Page> = parts.iter().flat_map(|part| part.1.clone()).collect();
            depths.sort_unstable();
            visited.sort_unstable();
            (depths, visited, parts[0].2)
        });
        for result in &results[1..] {
            prop_assert_eq!(result, &results[0]);
        }
        prop_assert_eq!(results[0].2.cut_off, 0);
    }

    #[test]
    fn growth_over_all_workers_equals_the_plain_function(
        pages in prop_oneof![crawl(), mirrors(), mirrors()], workers in 1usize..4, single_site: bool,
        merge in prop::sample::select(vec![MergeCondition::Exact, MergeCondition::Extended]), min_size in 1u32..3,
    ) {
        let clusters = ClusterSettings { merge, single_site, min_size, min_hosts: 1, attach: AttachmentRule::None };
        let overlap = OverlapSettings { guard: Guard::None, template_pages: 0, ..Job::default().overlap };
        let job = Job { clusters, overlap, ..Job::default() };
        let parts = on(workers, move |net| {
            let mut local_pages = local_pages(&pages, net.index(), net.peers());
            let result = find(&mut WorkerRun::new(net, &job, &mut local_pages, None), &[0], None)?;
            Ok((result.links.read(0..result.links.len())?, result.verdicts.take()?, result.members.take()?, result.crawl.directory.hosts.clone()))
        });
        let hosts = &parts[0].3;
        let mut labels: Vec<ClusterId> = Page::first(hosts.len()).map(ClusterId::from_smallest).collect();
        for verdict in parts.iter().flat_map(|part| &part.1) {
            labels[verdict.page] = verdict.cluster;
        }
        let mut links: Vec<(Page, Page)> = parts.iter().flat_map(|part| part.0.clone()).collect();
        links.sort_unstable();
        let mut want = Vec::new();
        for cluster in growth::similar_clusters(&labels, hosts, &links, &clusters) {
            for collection in &cluster.collections {
                want.extend(MemberRow::from_collection(cluster.id(), collection, |page| labels[page]));
            }
        }
        want.sort_unstable();
        let mut got: Vec<MemberRow> = parts.iter().flat_map(|part| part.2.clone()).collect();
        got.sort_unstable();
        prop_assert_eq!(got, want);
    }

    #[test]
    fn external_pairs_yield_the_results_of_plain_functions(
        pages in prop_oneof![crawl(), mirrors(), mirrors()], given in given(), workers in 1usize..4, single_site: bool,
        merge in prop::sample::select(vec![MergeCondition::Exact, MergeCondition::Extended]),
    ) {
        let clusters = ClusterSettings { merge, single_site, min_size: 2, min_hosts: 1, attach: AttachmentRule::None };
        let mut job = Job { clusters, similar: SimilarityMeasures { by: Measure::Given, guard: Guard::None }, ..Job::default() };
        job.hamming.guard = Guard::None;
        let folder = tempfile::tempdir().unwrap();
        job.pairs.from = given.write(folder.path(), &pages);
        let crawl_pages = pages.clone();
        let parts = on(workers, move |net| {
            let mut local_pages = local_pages(&crawl_pages, net.index(), net.peers());
            let result = find(&mut WorkerRun::new(net, &job, &mut local_pages, None), &[0], None)?;
            let tables = (result.verdicts.take()?, result.link_summary.take()?, result.members.take()?);
            let directory = &result.crawl.directory;
            let web = (result.links.read(0..result.links.len())?, directory.hosts.clone(), directory.doc_ids()?);
            Ok((result.pairs.take()?, tables, web, result.summary.given.unwrap()))
        });
        let (_, hosts, doc_ids) = &parts[0].2;
        let (want, counts) = given.by_definition(&pages, doc_ids);
        prop_assert_eq!(parts[0].3, counts);
        let rows = || parts.iter().flat_map(|part| &part.0);
        let got: BTreeMap<(u32, u32), u32> =
            rows().filter(|row| row[2] == PairKind::Given as u32).map(|&[a, b, _, value]| ((a, b), value)).collect();
        prop_assert_eq!(&got, &want);

        let mut sets = UnionFind::new(hosts.len());
        rows().for_each(|&[a, b, ..]| _ = sets.union(a, b));
        let labels: Vec<ClusterId> = sets.labels().into_iter().map(ClusterId).collect();
        let sizes = sizes(&labels);
        let mut clustered: Vec<(Page, ClusterId)> =
            parts.iter().flat_map(|part| &part.1.0).map(|verdict| (verdict.page, verdict.cluster)).collect();
        clustered.sort_unstable();
        let with_others = |&(_, &cluster): &(Page, &ClusterId)| sizes[cluster] > 1;
        let want: Vec<_> = Page::first(labels.len()).zip(&labels).filter(with_others).map(|(page, &of)| (page, of)).collect();
        prop_assert_eq!(clustered, want);

        let mut links: Vec<(Page, Page)> = parts.iter().flat_map(|part| part.2.0.clone()).collect();
        links.sort_unstable();
        let mut between = cluster_links(&labels, hosts, &links, single_site);
        let mut rows: Vec<LinkSummary> = parts.iter().flat_map(|part| part.1.1.clone()).collect();
        rows.sort_unstable();
        prop_assert_eq!(rows, link_summary(&mut between, |cluster| sizes[cluster]));

        let mut want = Vec::new();
        for cluster in growth::similar_clusters(&labels, hosts, &links, &clusters) {
            want.extend(cluster.collections.iter().flat_map(|collection| MemberRow::from_collection(cluster.id(), collection, |page| labels[page])));
        }
        want.sort_unstable();
        let mut members: Vec<MemberRow> = parts.iter().flat_map(|part| part.1.2.clone()).collect();
        members.sort_unstable();
        prop_assert_eq!(members, want);
    }

    #[test]
    fn views_over_all_workers_equal_the_definition(
        pages in views(), threshold in prop::sample::select(vec![0.5, 0.8, 1.0]), workers in 1usize..4
    ) {
        let crawl_pages = pages.clone();
        let parts = on(workers, move |net| {
            let mut local_pages = local_pages(&crawl_pages, net.index(), net.peers());
            let crawl = crawl_of(net, &mut local_pages)?;
            let overlap = OverlapSettings { views: threshold, ..Job::default().overlap };
            let job = Job { overlap, ..Job::default() };
            let views_found = views::views(net, &local_pages, &crawl, &job)?;
            let (mut view_pages, mut fprints) = (Vec::new(), local_pages.fprints.reader());
            for (slot, page) in local_pages.kept() {
                view_pages.push((page, fprints.get(slot)?.to_vec()));
            }
            let hosts = &crawl.directory.hosts;
            let mut pages = Vec::new();
            crawl.pages.for_each(|row| {
                let [title, domain, path] = [row.title(), domain_of(row.url()), path(row.url())].map(String::from);
                let (rest, chunks) = (row.rare_fields(), Vec::new());
                let doc_ids = [row.doc_id, rest.canonical];
                let (host, notice, exact) = (hosts[row.page], rest.notice, row.exact);
                pages.push((row.page, ViewPage { host, domain, path, title, notice, doc_ids, exact, chunks }));
            })?;
            Ok((views_found, pages, view_pages))
        });
        let mut view_pages: Vec<(Page, ViewPage)> = parts.iter().flat_map(|part| part.1.clone()).collect();
        view_pages.sort_unstable_by_key(|row| row.0);
        let mut view_pages: Vec<ViewPage> = view_pages.into_iter().map(|row| row.1).collect();
        for (page, chunks) in parts.iter().flat_map(|part| &part.2) {
            view_pages[*page].chunks.clone_from(chunks);
        }
        let settings = OverlapSettings { views: threshold, ..Job::default().overlap };
        let got = [0, 1, 2].map(|kind| {
            let mut got: Vec<SimilarPair> = parts.iter().flat_map(|part| part.0.pairs[kind].clone()).collect();
            got.sort_unstable();
            got
        });
        let counts = &parts[0].0.counts;
        let counted = [counts.pairs, counts.placeholders, counts.declared];
        prop_assert_eq!(counted, got.each_ref().map(|pairs| pairs.len() as u64));
        let originals = parts.iter().flat_map(|part| part.0.originals.clone()).collect();
        prop_assert_eq!((got, originals), by_definition(&view_pages, &settings));
    }

    #[test]
    fn the_sharded_overlap_equals_the_sort_based_table(pages in crawl(), settings in settings(), workers in 1usize..4) {
        let crawl_pages = pages.clone();
        let parts = on(workers, move |net| {
            let mut local_pages = local_pages(&crawl_pages, net.index(), net.peers());
            let crawl = crawl_of(net, &mut local_pages)?;
            let exact_pairs = exact_pairs(net, &crawl)?;
            let job = Job { overlap: settings, ..Job::default() };
            let links = links::resolve(net, &mut local_pages, &crawl)?;
            let (pairs, ..) = overlap::similar_pairs(net, &local_pages, &crawl, &exact_pairs, &links, &job, None)?;
            let (mut rows, mut fprints) = (Vec::new(), local_pages.fprints.reader());
            for (slot, page) in local_pages.kept() {
                rows.extend(fprints.get(slot)?.iter().map(|&fprint| FPrintDocId::new(fprint, page)));
            }
            Ok((pairs, rows, crawl.directory.hosts.clone(), exact_pairs.take()?, links.read(0..links.len())?))
        });
        let mut got: Vec<SimilarPair> = parts.iter().flat_map(|part| part.0.clone()).collect();
        got.sort_unstable();
        let table: Vec<FPrintDocId> = parts.iter().flat_map(|part| part.1.clone()).collect();
        let copies: Vec<Page> = parts.iter().flat_map(|part| part.3.iter().map(|pair| pair.b)).collect();
        let hosts = &parts[0].2;
        let mut want = sort_based::similar_pairs(&table, hosts, &copies, &settings);
        if settings.guard == Guard::Neighbours {
            let links: Vec<(Page, Page)> = parts.iter().flat_map(|part| part.4.clone()).collect();
            let exact_pairs: Vec<SimilarPair> = parts.iter().flat_map(|part| part.3.clone()).collect();
            let linked: Vec<LinkSample> = Page::first(hosts.len())
                .map(|page| {
                    let home = |target: &Page| hosts[*target] == hosts[page];
                    LinkSample::new(page, links.iter().filter(|link| link.0 == page).map(|link| link.1).filter(home))
                })
                .collect();
            let chunks = sort_based::counting_chunks(&table, hosts, &settings);
            let larger = |a: Page, b: Page| chunks[a].max(chunks[b]) + settings.doubt;
            let has_links = |host| links.iter().any(|link| hosts[link.0] == host);
            keep_apart(&mut want, &exact_pairs, &linked, hosts, has_links, larger);
        }
        prop_assert_eq!(got, want);
    }

    #[test]
    fn pairs_of_near_simhashes_equal_the_plain_function(
        pages in crawl(), k in 0u32..3, guard in prop::sample::select(vec![Guard::None, Guard::MutualBest]),
        workers in 1usize..4
    ) {
        let (crawl_pages, settings) = (pages.clone(), Hamming { k, guard });
        let parts = on(workers, move |net| {
            let mut local_pages = local_pages(&crawl_pages, net.index(), net.peers());
            let crawl = crawl_of(net, &mut local_pages)?;
            let exact_pairs = exact_pairs(net, &crawl)?;
            let (pairs, counts) = simhash_pairs::similar_pairs(net, &crawl, &exact_pairs, &settings)?;
            let simhashes = crawl.pages.map(|row| (row.page, row.simhash())).collect::<Result<Vec<_>>>()?;
            Ok((pairs, simhashes, crawl.directory.hosts.clone(), exact_pairs.take()?, counts))
        });
        let copies: Vec<Page> = parts.iter().flat_map(|part| part.3.iter().map(|pair| pair.b)).collect();
        let mut rows: Vec<SimhashDocId> = parts
            .iter()
            .flat_map(|part| &part.1)
            .filter_map(|&(page, simhash)| Some(SimhashDocId::new(simhash?, page)))
            .filter(|row| !copies.contains(&row.doc))
            .collect();
        let mut got: Vec<SimilarPair> = parts.iter().flat_map(|part| part.0.clone()).collect();
        got.sort_unstable();
        let (want, counts_found) = similar_pairs(&mut rows, &parts[0].2, &settings);
        let similar = want.len() as u64;
        prop_assert_eq!(got, want);
        let webtwin::hamming::pairs::NearCounts { distinct, near, guarded } = counts_found;
        let counts = SimhashCounts { simhashes: rows.len() as u64, distinct, near, guarded, similar };
        prop_assert!(parts.iter().all(|part| part.4 == counts));
    }

    #[test]
    fn signatures_and_their_collisions_equal_the_plain_function(
        pages in crawl(), guard in prop::sample::select(vec![Guard::None, Guard::MutualBest]),
        rp_tolerance in prop::sample::select(vec![0.02, 0.2, 1.0]),
        hm_tolerance in prop::sample::select(vec![0.02, 0.2, 1.0]),
        children in prop::sample::select(vec![Children::Sum, Children::Mean]), workers in 1usize..4
    ) {
        let mut job = Job::default();
        let vectors = VectorRecipe { dims: 2, children, damping: 0.3, ..job.signatures.vectors };
        job.signatures = Signatures { vectors, rp_tolerance, hm_tolerance, guard, ..job.signatures };
        let (crawl_pages, settings) = (pages.clone(), job.signatures.clone());
        let parts = on(workers, move |net| {
            let mut local_pages = local_pages(&crawl_pages, net.index(), net.peers());
            let crawl = crawl_of(net, &mut local_pages)?;
            let exact_pairs = exact_pairs(net, &crawl)?;
            let links = links::resolve(net, &mut local_pages, &crawl)?;
            let pairs_found = signatures::similar_pairs(net, &crawl, &links, &exact_pairs, &job)?;
            let projected = crawl.pages.map(|row| (row.page, row.rare_fields().projected)).collect::<Result<Vec<_>>>()?;
            Ok(((pairs_found.pairs, pairs_found.counts, pairs_found.parts), (projected, links.read(0..links.len())?, exact_pairs.take()?), crawl.directory.clone()))
        });
        let gathered = |of: &dyn Fn(usize) -> Vec<(Page, Page)>| {
            let mut all: Vec<_> = (0..workers).flat_map(of).collect();
            all.sort_unstable();
            all
        };
        let directory = &parts[0].2;
        let mut raw = vec![Vec::new(); directory.len()];
        parts.iter().flat_map(|part| &part.1.0).for_each(|(page, projected)| raw[*page] = projected.clone());
        let mut bounds = ComponentBounds::default();
        raw.iter().filter(|page| !page.is_empty()).for_each(|page| bounds.extend(page));
        let rp: Vec<Vec<u64>> = raw.iter().map(|page| bounds.signature(page)).collect();
        let links = gathered(&|worker| parts[worker].1.1.clone());
        let hm = hyperlink_map(&rp, &links, &settings.vectors);

        // The table has the pairs by doc id.
        let mut rows = Vec::new();
        for TablePart { rows: table, .. } in parts.iter().flat_map(|part| &part.0.2) {
            let column = |name: &str| table.f64(name).unwrap();
            for (row, doc_id) in table.u64("doc_id").unwrap().iter().enumerate() {
                rows.push((*doc_id, ["rp_0", "rp_1", "hm_0", "hm_1"].map(|name| column(name)[row])));
            }
        }
        rows.sort_by_key(|row| row.0);
        let signed: Vec<Page> = Page::first(raw.len()).filter(|&page| !raw[page].is_empty()).collect();
        let doc_ids = directory.doc_ids().unwrap();
        let row = |&page: &Page| (doc_ids[page], [rp[page][0], rp[page][1], hm[page][0], hm[page][1]].map(number));
        prop_assert_eq!(rows, signed.iter().map(row).collect::<Vec<_>>());

        let copies = gathered(&|worker| parts[worker].1.2.iter().map(|pair| (pair.b, pair.b)).collect());
        let near = |x: Page, y: Page| {
            distance(&rp[x], &rp[y]) < (rp_tolerance * 1e12) as u64 && distance(&hm[x], &hm[y]) < (hm_tolerance * 1e12) as u64
        };
        let centres: Vec<Page> =
            signed.into_iter().filter(|&page| copies.binary_search(&(page, page)).is_err()).collect();
        let hosts = &directory.hosts;
        let mut matches = Vec::new();
        for &x in &centres {
            for &y in centres.iter().filter(|&&y| y != x && near(x, y)) {
                let shared = 1_000_000_000 - (distance(&rp[x], &rp[y]) / 1000) as u32;
                matches.push(GuardedMatch { from: x, host: hosts[y], to: y, shared, larger: 1_000_000_000 });
            }
        }
        let collisions = matches.len() as u64 / 2;
        let mut votes: Vec<(Page, Page)> = matches.iter().map(|m| (m.from, m.to)).collect();
        if guard == Guard::MutualBest {
            votes.clear();
            best_on_each_host(&mut matches, |page| hosts[page], |m| votes.push((m.from, m.to)));
        }
        votes.sort_unstable();
        let want: Vec<_> =
            votes.iter().filter(|(x, y)| x < y && votes.binary_search(&(*y, *x)).is_ok()).copied().collect();
        let got = gathered(&|worker| parts[worker].0.0.iter().map(|pair| (pair.a, pair.b)).collect());
        prop_assert_eq!(&got, &want);
        let counts = parts[0].0.1;
        let joined = centres.len() as u64;
        prop_assert_eq!((counts.joined, counts.collisions, counts.guarded), (joined, collisions, collisions - got.len() as u64));
    }

    #[test]
    fn simhashes_by_inverse_document_frequency_equal_the_plain_computation(
        pages in crawl(), bits in 1u32..=64, workers in 1usize..4
    ) {
        let crawl_pages = pages.clone();
        let parts = on(workers, move |net| {
            let mut local_pages = local_pages(&crawl_pages, net.index(), net.peers());
            local_pages.captures.rewrite(|capture| {
                capture.set_simhash(None);
                true
            })?;
            let mut crawl = crawl_of(net, &mut local_pages)?;
            let mut job = Job::default();
            job.simhash.bits = bits;
            idf::simhashes(net, &mut local_pages, &mut crawl, &job)?;
            crawl.pages.map(|row| (row.url().to_string(), row.offset, row.simhash())).collect::<Result<Vec<_>>>()
        });
        let got: Vec<_> = parts.into_iter().flatten().collect();
        let features_of_pages: Vec<Vec<Feature>> = got.iter().map(|(_, number, _)| pages[*number as usize].features()).collect();
        let with_features = features_of_pages.iter().filter(|features| !features.is_empty()).count() as u64;
        for ((url, _, simhash), features) in got.iter().zip(&features_of_pages) {
            let mut sums = Sums::default();
            for &Feature { hash, weight } in features {
                let pages_with = features_of_pages.iter().filter(|page| page.iter().any(|other| other.hash == hash)).count() as u64;
                let weight = weight * inverse_document_frequency(with_features, pages_with);
                sums.add_weighted(&[Feature { hash, weight }]);
            }
            prop_assert_eq!(*simhash, (!features.is_empty()).then(|| sums.simhash(bits)), "{}", url);
        }
    }

    #[test]
    fn components_of_all_workers_equal_those_of_one(
        edges in prop::collection::vec((0u32..40, 0u32..40), 0..60), workers in 1usize..6
    ) {
        let all_edges = edges.clone();
        let labels = on(workers, move |net| {
            let (me, peers) = (net.index(), net.peers());
            let own_edges = || all_edges.iter().copied().enumerate().filter(|(n, _)| n % peers == me).map(|(_, edge)| Ok(edge));
            components::<u32, u32, _>(net, "test", 40, own_edges)
        });
        let mut sets = webtwin::clusters::union_find::UnionFind::new(40);
        edges.iter().for_each(|&(x, y)| _ = sets.union(x, y));
        let want = sets.labels();
        prop_assert!(labels.iter().all(|labels| labels.to_list() == want));
    }

    #[test]
    fn the_newest_capture_of_every_url_is_kept_and_the_others_are_counted(pages in crawl(), workers in 1usize..4) {
        let crawl_pages = pages.clone();
        let parts = on(workers, move |net| {
            let mut local_pages = local_pages(&crawl_pages, net.index(), net.peers());
            let crawl = crawl_of(net, &mut local_pages)?;
            let rows = crawl.pages.map(|row| (row.page, row.url().to_string(), row.fetch_time));
            let rows = rows.collect::<Result<Vec<(Page, String, i64)>>>()?;
            Ok((rows, local_pages.rejections.len(), crawl.directory.doc_ids()?.to_vec()))
        });
        let mut newest = std::collections::BTreeMap::new();
        for page in &pages {
            let time = newest.entry(doc_id(&page.url)).or_insert((page.url.clone(), page.time));
            time.1 = time.1.max(page.time);
        }
        let urls = Page::first(newest.len()).zip(newest.values());
        let want: Vec<_> = urls.map(|(page, (url, time))| (page, url.clone(), *time)).collect();
        let mut got: Vec<_> = parts.iter().flat_map(|part| part.0.clone()).collect();
        got.sort();
        prop_assert_eq!(&got, &want);
        prop_assert_eq!(parts.iter().map(|part| part.1).sum::<usize>() + want.len(), pages.len());
        let ids: Vec<u64> = newest.keys().copied().collect();
        prop_assert!(parts.iter().all(|part| part.2 == ids));
    }

    #[test]
    fn all_results_are_the_same_at_one_two_and_three_workers(
        pages in prop_oneof![crawl(), mirrors()], settings in settings(), single_site: bool, idf: bool,
        by in prop::sample::select(vec![Measure::Overlap, Measure::Hamming, Measure::Both, Measure::Signatures, Measure::Minhash, Measure::Given]),
        given in prop::option::of(given()),
        merge in prop::sample::select(vec![MergeCondition::Exact, MergeCondition::Extended, MergeCondition::Tolerant])
    ) {
        let mut job = Job { overlap: settings, similar: SimilarityMeasures { by, ..Job::default().similar }, ..Job::default() };
        job.hamming.guard = if settings.guard == Guard::None { Guard::None } else { Guard::MutualBest };
        job.signatures =
            Signatures { rp_tolerance: 0.1, hm_tolerance: 0.3, guard: job.hamming.guard, ..job.signatures };
        job.signatures.vectors.dims = 2;
        job.minhash = Minhash { bands: 8, rows: 1, threshold: 0.3, max_documents: 5, guard: settings.guard, ..job.minhash };
        job.simhash.features.idf = idf;
        job.clusters.merge = merge;
        // Without `single_site`, tolerant growth is refused.
        job.clusters.single_site = single_site || merge == MergeCondition::Tolerant;
        job.servers.min_shared = 2;
        let folder = tempfile::tempdir().unwrap();
        job.pairs.from = given.map_or_else(Vec::new, |given| given.write(folder.path(), &pages));
        let results: Vec<_> = [1, 2, 3].map(|workers| {
            let (crawl_pages, job) = (pages.clone(), job.clone());
            let parts = on(workers, move |net| {
                let mut local_pages = local_pages(&crawl_pages, net.index(), net.peers());
                let result = find(&mut WorkerRun::new(net, &job, &mut local_pages, None), &[0], None)?;
                let mut sites = String::new();
                result.lists.sites.each_range(|_, rows| {
                    for site in rows {
                        sites += &format!("{:?}", site?);
                    }
                    Ok(())
                })?;
                Ok((
                    (
                        result.links.read(0..result.links.len())?,
                        result.pairs.take()?,
                        result.verdicts.take()?,
                        result.link_summary.take()?,
                    ),
                    (result.collections, result.members.take()?, format!("{:?}", result.avoid), sites),
                    result.more_tables,
                    result.summary,
                ))
            });
            let mut tables: Vec<_> = parts.iter().flat_map(|p| p.2.clone()).collect();
            tables.sort_by_key(|part| (part.name, part.partition));
            let mut links: Vec<_> = parts.iter().flat_map(|p| p.0.0.clone()).collect();
            let mut pairs: Vec<_> = parts.iter().flat_map(|p| p.0.1.clone()).collect();
            let mut verdicts: Vec<_> = parts.iter().flat_map(|p| p.0.2.clone()).collect();
            let mut summary: Vec<_> = parts.iter().flat_map(|p| p.0.3.clone()).collect();
            let mut collections: Vec<_> = parts.iter().flat_map(|p| p.1.0.clone()).collect();
            let mut members: Vec<_> = parts.iter().flat_map(|p| p.1.1.clone()).collect();
            links.sort_unstable();
            pairs.sort_unstable();
            verdicts.sort_unstable();
            summary.sort_unstable();
            collections.sort_unstable();
            members.sort_unstable();
            ((links, pairs, verdicts, summary), (collections, members, parts[0].1.3.clone()), tables, parts[0].3.clone())
        }).into();
        prop_assert_eq!(&results[0], &results[1]);
        prop_assert_eq!(&results[0], &results[2]);
    }
}

/// Returns rows of the `server_pairs` table, and the summary's numbers of servers.
fn server_pairs(pages: Vec<MadePage>, servers: Servers, workers: usize) -> (Vec<ServerRow>, ServerCounts) {
    let parts = on(workers, move |net| {
        let mut local_pages = local_pages(&pages, net.index(), net.peers());
        let job = Job { servers, ..Job::default() };
        let result = find(&mut WorkerRun::new(net, &job, &mut local_pages, None), &[0], None)?;
        let mut rows = Vec::new();
        for TablePart { rows: table, .. } in result.more_tables.iter().filter(|part| part.name == "server_pairs") {
            let column = |name: &str| &table.columns.iter().find(|column| column.0 == name).unwrap().1;
            for row in 0..table.rows() {
                let text = |name: &str| column(name).json(row).as_str().unwrap().to_string();
                let number = |name: &str| column(name).json(row).as_u64().unwrap();
                let (mut a, mut b) = ((text("host_a"), number("pages_a")), (text("host_b"), number("pages_b")));
                assert!(table.u64("a").unwrap()[row] < table.u64("b").unwrap()[row]);
                if a > b {
                    std::mem::swap(&mut a, &mut b);
                }
                rows.push((a, b, number("shared"), number("same_path"), text("kind")));
            }
        }
        Ok((rows, result.summary.servers))
    });
    let mut rows: Vec<_> = parts.iter().flat_map(|part| part.0.clone()).collect();
    rows.sort();
    (rows, parts[0].1)
}

/// (name, pages) of two hosts, number of shared pages, number of these at the same path, kind.
type ServerRow = ((String, u64), (String, u64), u64, u64, String);

#[test]
fn server_aliases_mirrors_and_partial_mirrors_are_distinguished() {
    // Each text has its own chunks, so only pages of one text are similar.
    let page = |host: &str, path: String, text: u64| {
        MadePage::at(format!("http://{host}.example/{path}")).chunks((0..8).map(|chunk| text * 100 + chunk))
    };
    let mut pages = Vec::new();
    for text in 0..20 {
        pages.push(page("www", format!("{text}.html"), text));
        pages.push(page("alias", format!("{text}.html"), text));
        pages.push(page("mirror", format!("pub/manual/{text}.html"), text));
        pages.push(page("among-others", format!("manual/{text}.html"), text));
        pages.push(page("among-others", format!("own/{text}.html"), 1000 + text));
        pages.push(page("stranger", format!("{text}.html"), 2000 + text));
    }
    // One page of the stranger has a second URL, with a query.
    pages.push(page("stranger", "0.html?again".into(), 2000));
    let servers = Servers { min_shared: 10, nearly_all: 0.9, max_hosts: 100 };
    for workers in 1..4 {
        let (rows, counts) = server_pairs(pages.clone(), servers, workers);
        let pairs_found: Vec<_> =
            rows.iter().map(|row| (&row.0.0[..], &row.1.0[..], row.2, row.3, &row.4[..])).collect();
        assert_eq!(
            pairs_found,
            [
                ("alias.example", "among-others.example", 20, 0, "mirror"),
                ("alias.example", "mirror.example", 20, 0, "mirror"),
                ("alias.example", "www.example", 20, 20, "alias"),
                ("among-others.example", "mirror.example", 20, 0, "mirror"),
                ("among-others.example", "www.example", 20, 0, "mirror"),
                ("mirror.example", "www.example", 20, 0, "mirror"),
            ]
        );
        assert_eq!((rows[0].0.1, rows[0].1.1), (20, 40));
        assert_eq!(counts.servers, 4);
        let surplus = counts.surplus;
        // Of the four copies of each page, one is on an alias and two are on additional servers.
        assert_eq!((surplus.server_alias, surplus.replicated, surplus.url_alias, surplus.same_server), (20, 40, 1, 0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    /// \[SGM98\] section 1: a server is the union of its pages. Pages have either unique or equal
    /// texts, so the test can determine copies without running the job.
    #[test]
    fn server_pairs_equal_those_of_the_unions_of_pages(
        pages in prop::collection::btree_map((0u32..5, 0u32..8), 1u64..12, 1..40),
        min_shared in 1u32..4, workers in 1usize..4
    ) {
        let page = |(&(host, path), &text)| MadePage::at(format!("http://h{host}.example/{path}")).chunks([text]);
        let crawl: Vec<MadePage> = pages.iter().map(page).collect();
        let servers = Servers { min_shared, nearly_all: 0.75, max_hosts: 5 };
        let pages_of = |host: u32| pages.iter().filter(move |(page, _)| page.0 == host);
        let mut want = Vec::new();
        for a in 0..5 {
            for b in a + 1..5 {
                let mut left_over: Vec<u64> = pages_of(b).map(|(_, &text)| text).collect();
                let mut shared = 0u64;
                for (_, text) in pages_of(a) {
                    if let Some(at) = left_over.iter().position(|other| other == text) {
                        left_over.remove(at);
                        shared += 1;
                    }
                }
                let same = pages_of(a).filter(|((_, path), text)| pages.get(&(b, *path)) == Some(*text)).count() as u64;
                let (in_a, in_b) = (pages_of(a).count() as u64, pages_of(b).count() as u64);
                let nearly_all = |n: u64| n * 4 >= in_a.min(in_b) * 3;
                let kind = if nearly_all(same) { "alias" } else if nearly_all(shared) { "mirror" } else { "part" };
                if shared >= u64::from(min_shared) {
                    let name = |host: u32| format!("h{host}.example");
                    want.push(((name(a), in_a), (name(b), in_b), shared, same, kind.to_string()));
                }
            }
        }
        prop_assert_eq!(server_pairs(crawl, servers, workers).0, want);
    }
}

/// Returns the sizes of the trivial clusters of at least two pages in descending order, and the
/// giants. Checks that one, two and three workers yield the same.
fn trivial_clusters(pages: &[MadePage], overlap: OverlapSettings) -> (Vec<usize>, Vec<GiantCluster>) {
    let results: Vec<_> = [1, 2, 3]
        .map(|workers| {
            let (crawl_pages, job) = (pages.to_vec(), Job { overlap, ..Job::default() });
            let parts = on(workers, move |net| {
                let mut local_pages = local_pages(&crawl_pages, net.index(), net.peers());
                let result = find(&mut WorkerRun::new(net, &job, &mut local_pages, None), &[0], None)?;
                let sizes: Vec<usize> =
                    result.verdicts.take()?.chunk_by(|x, y| x.cluster == y.cluster).map(<[_]>::len).collect();
                Ok((sizes, result.summary.giant_trivial_clusters))
            });
            let mut sizes: Vec<usize> = parts.iter().flat_map(|part| part.0.clone()).collect();
            sizes.sort_unstable_by_key(|&size| std::cmp::Reverse(size));
            (sizes, parts[0].1.clone())
        })
        .into();
    assert!(results.iter().all(|result| *result == results[0]));
    results[0].clone()
}

fn document(host: usize, path: usize, fprints: Vec<u64>) -> MadePage {
    MadePage::at(format!("http://h{host}.example/{path}")).chunks(fprints)
}

const PAPER: OverlapSettings = OverlapSettings::of_papers(15);

/// Unrelated documents under one template. Users of another tool lost 859,091 documents to one
/// cluster in this way.
#[test]
fn template_yields_one_cluster_by_the_papers_settings_and_none_by_default() {
    let template: Vec<u64> = (1..=20).collect();
    let page = |number: usize| {
        let own = (0..30).map(|chunk| (number as u64 + 1) * 1000 + chunk);
        document(number % 60, number, template.iter().copied().chain(own).collect())
    };
    let pages: Vec<MadePage> = (0..1500).map(page).collect();
    let (sizes, giants) = trivial_clusters(&pages, PAPER);
    assert_eq!(sizes, [1500]);
    assert_eq!((giants[0].pages, giants[0].hosts), (1500, 60));
    // Every page is similar to every other, so there is no weak link to report.
    assert_eq!((giants[0].bridges.len(), &giants[0].splits), (0, &None));
    assert_eq!(trivial_clusters(&pages, Job::default().overlap), (vec![], vec![]));
}

/// A text that drifts from page to page, each page on a host of its own: a chain in which every
/// pair is truly similar.
#[test]
fn a_drifting_text_is_one_chain_by_single_link_and_short_clusters_around_centres() {
    let page = |number: usize| document(number, 0, (0..20).map(|chunk| (number as u64) * 5 + chunk + 1).collect());
    let mut pages: Vec<MadePage> = (0..400).map(page).collect();
    // One pair in the middle is weaker than all other pairs.
    pages[200].fprints.retain(|fprint| !(1001..1004).contains(fprint));
    let single_link = OverlapSettings { min_shared: 10, min_resemblance: 0.0, ..PAPER };
    let (sizes, giants) = trivial_clusters(&pages, OverlapSettings { min_shared: 11, ..single_link });
    assert_eq!(sizes, [400]);
    assert_eq!(giants[0].bridges[0].strength, 12);
    assert_eq!(giants[0].bridges[0].cuts_off, 200);
    // The guard by hosts has no choice if each host has one page. `Guard::Centre` handles this
    // case.
    assert_eq!(trivial_clusters(&pages, Job::default().overlap).0, [400]);
    let (sizes, giants) = trivial_clusters(&pages, OverlapSettings { guard: Guard::Centre, ..single_link });
    // A page shares at least ten chunks with two pages on either side.
    assert!(sizes[0] <= 5, "{sizes:?}");
    assert!(giants.is_empty());
}

#[test]
fn too_many_collisions_are_rejected_with_their_number() {
    let pages: Vec<MadePage> = (0..50).map(|path| document(path % 3, path, vec![35, 70, 35 * path as u64])).collect();
    let mut job =
        Job { similar: SimilarityMeasures { by: Measure::Signatures, ..Job::default().similar }, ..Job::default() };
    job.signatures.vectors.dims = 2;
    job.signatures.max_pairs = 1000;
    let refused = run(&ClusterLayout::local(2), 0, [0; 32], move |net| {
        let mut local_pages = local_pages(&pages, net.index(), net.peers());
        find(&mut WorkerRun::new(net, &job, &mut local_pages, None), &[0], None).map(|_| ())
    });
    // The sums of all pages are the same, so any two of them collide, except for exact copies.
    let error = refused.unwrap_err();
    assert!(error.to_string().contains("1176 pairs of pages collide") && error.exit_code() == 9, "{error}");
}

#[test]
fn rewritten_page_is_found_by_its_collections_with_any_workers() {
    // A ring of twelve pages on two hosts. Page 5 keeps only three of its eight chunks on the
    // second host.
    let page = |host: u64, path: u64| {
        let url = |path: u64| format!("http://h{host}.example/{path}.html");
        let rewritten = |chunk: u64| host == 1 && path == 5 && chunk >= 3;
        let chunks = (0..8).map(|chunk| 100 * path + chunk + if rewritten(chunk) { 50 } else { 0 });
        MadePage::at(url(path)).chunks(chunks).links([url((path + 1) % 12)])
    };
    let pages: Vec<MadePage> = (0..2).flat_map(|host| (0..12).map(move |path| page(host, path))).collect();
    for workers in 1..4 {
        let crawl_pages = pages.clone();
        let parts = on(workers, move |net| {
            let mut local_pages = local_pages(&crawl_pages, net.index(), net.peers());
            let result = find(&mut WorkerRun::new(net, &Job::default(), &mut local_pages, None), &[0], None)?;
            Ok((pairs_by(PairKind::Context, result.pairs)?, result.summary))
        });
        let pairs: Vec<SimilarPair> = parts.iter().flat_map(|part| part.0.clone()).collect();
        let summary = &parts[0].1;
        assert_eq!(summary.second_look, ContextPassCounts { proposed: 1, matched: 1, ..ContextPassCounts::default() });
        // All links and 3 of 13 chunks agree.
        assert_eq!(pairs.iter().map(|pair| pair.value).collect::<Vec<_>>(), [(1_000_000 + 230_769) / 2]);
        assert_eq!((summary.trivial_clusters, summary.pages_in_collections), (12, 24));
    }
}

#[test]
fn generator_boilerplate_does_not_join_manuals_with_known_mirrors() {
    // Two manuals, each a ring of twelve pages on two hosts. Each page links to a search page, five
    // of whose eight chunks come from the generator. A third site has a search page of the same
    // generator, and a page that quotes eighteen chunks of a page of the first manual.
    let page = |manual: u64, host: u64, path: u64| {
        let url = |path: u64| format!("http://m{manual}h{host}.example/{path}.html");
        let own = 10_000 * (manual + 1) + 100 * path;
        let chunks: Vec<u64> = match path {
            12 => (1..6).chain([own, own + 1, own + 2 + host]).collect(),
            _ => (0..20).map(|chunk| own + chunk + if chunk == 19 { host } else { 0 }).collect(),
        };
        let links = [(path + 1) % 12, 12].map(url);
        MadePage::at(url(path)).chunks(chunks).links(links.into_iter().filter(move |_| path < 12))
    };
    let mut pages: Vec<MadePage> = (0..4).flat_map(|of| (0..13).map(move |path| page(of / 2, of % 2, path))).collect();
    let url = |path: u64| format!("http://other.example/{path}.html");
    pages.push(MadePage::at(url(0)).chunks((1..6).chain([91, 92, 93])).links([url(1)]));
    pages.push(MadePage::at(url(1)).chunks((10_300..10_318).chain([94, 95])).links([url(0)]));
    let clusters = |workers: usize, min_resemblance_alone: f64| {
        let crawl_pages = pages.clone();
        let job =
            Job { overlap: OverlapSettings { min_resemblance_alone, ..Job::default().overlap }, ..Job::default() };
        let parts = on(workers, move |net| {
            let mut local_pages = local_pages(&crawl_pages, net.index(), net.peers());
            let result = find(&mut WorkerRun::new(net, &job, &mut local_pages, None), &[0], None)?;
            Ok((pairs_by(PairKind::Overlap, result.pairs)?, result.summary))
        });
        let mut pairs: Vec<SimilarPair> = parts.iter().flat_map(|part| part.0.clone()).collect();
        pairs.sort_unstable();
        let summary = parts[0].1.clone();
        (pairs, summary.second_look.alone, summary.trivial_clusters, summary.collections)
    };
    let without = clusters(1, 0.0);
    let with = clusters(1, 0.7);
    assert_eq!((without.1, without.3, with.3), (0, 4, 4));
    // The five search pages were one cluster. They become two clusters and a single page. The pair
    // of the quotation stays.
    assert_eq!((without.2, with.2), (25, 26));
    assert_eq!(with.0.len() as u64 + with.1, without.0.len() as u64);
    assert_eq!(with.1, 8);
    for workers in 2..4 {
        assert_eq!(clusters(workers, 0.7), with);
        assert_eq!(clusters(workers, 0.0), without);
    }
}

#[test]
fn pages_without_links_are_paired_by_their_places_with_any_workers() {
    // A ring of twelve pages, in two versions on one host and once on another. Next to each ring
    // are a page with little text and a demo, to which no link leads. The two demos on one host,
    // which have no links, are neighbours, so the guard joins only one of them with the demo of the
    // other host.
    let roots = ["http://h0.example/new", "http://h0.example/old", "http://h1.example/doc"];
    let ring = |root: &str| -> Vec<MadePage> {
        let url = |path: u64| format!("{root}/{path}.html");
        let page =
            |path| MadePage::at(url(path)).chunks((0..8).map(|chunk| 100 * path + chunk)).links([url((path + 1) % 12)]);
        (0..12).map(page).collect()
    };
    let beside = |(number, root): (u64, &&str)| {
        let demo = (0..20).map(|chunk| 5000 + chunk + if chunk < 3 * number { 100 * number } else { 0 });
        [MadePage::at(format!("{root}/search/a.html")), MadePage::at(format!("{root}/demo/Bird.html")).chunks(demo)]
    };
    let pages: Vec<MadePage> =
        roots.iter().flat_map(|root| ring(root)).chain((0..).zip(&roots).flat_map(beside)).collect();
    for workers in 1..4 {
        let crawl_pages = pages.clone();
        let parts = on(workers, move |net| {
            let mut local_pages = local_pages(&crawl_pages, net.index(), net.peers());
            let result = find(&mut WorkerRun::new(net, &Job::default(), &mut local_pages, None), &[0], None)?;
            Ok((pairs_by(PairKind::Context, result.pairs)?, result.summary))
        });
        let mut values: Vec<u32> = parts.iter().flat_map(|part| &part.0).map(|pair| pair.value).collect();
        values.sort_unstable();
        let summary = &parts[0].1;
        assert_eq!(summary.second_look, ContextPassCounts { by_place: 4, attached: 6, ..ContextPassCounts::default() });
        assert_eq!(summary.overlap.guarded, 2);
        // The demos agree in location and share at least 14 of at least 23 chunks. The other pairs
        // agree completely.
        assert_eq!(values[1..], [1_000_000; 3]);
        assert!(values[0] > 750_000 && values[0] < 1_000_000, "{values:?}");
        assert_eq!((summary.trivial_clusters, summary.pages_in_collections), (14, 42));
    }
}
