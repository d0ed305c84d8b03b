use proptest::prelude::*;
use webtwin::dataflow::captures::{Crawl, settle};
use webtwin::dataflow::components::components;
use webtwin::dataflow::directory::Partitions;
use webtwin::dataflow::shelf::{Capture, Shelf};
use webtwin::dataflow::{exact, find, hamming_pairs, idf, overlap};
use webtwin::engine::{Cluster, Net, run};
use webtwin::error::Result;
use webtwin::hamming::pairs::{SimhashDocId, similar_pairs};
use webtwin::hamming::simhash::Sums;
use webtwin::ids::{Rank, doc_id, mix};
use webtwin::job::{Guard, Hamming, Job, Measure, MergeCondition, Overlap, Similar};
use webtwin::overlap::{FPrintDocId, SimilarPair, sort_based};
use webtwin::text::{Feature, inverse_document_frequency};

/// A page of a test crawl: host, path, chunks, links by URL.
#[derive(Debug, Clone)]
struct TestPage {
    url: String,
    time: i64,
    fprints: Vec<u64>,
    simhash: Option<u64>,
    links: Vec<String>,
}

/// The features of a test page: one for each chunk, the weightier the larger the chunk's number.
fn features(page: &TestPage) -> Vec<Feature> {
    let of = |&fprint: &u64| Feature { hash: mix(fprint), weight: 16 * fprint as u32 };
    let mut features: Vec<Feature> = page.fprints.iter().map(of).collect();
    features.sort_unstable();
    features.dedup();
    features
}

/// Puts every `peers`-th page on the shelf of worker `me`.
fn shelf(pages: &[TestPage], me: usize, peers: usize) -> Shelf {
    let mut shelf = Shelf::default();
    for (number, page) in pages.iter().enumerate().filter(|(number, _)| number % peers == me) {
        let mut fprints = page.fprints.clone();
        fprints.sort_unstable();
        fprints.dedup();
        let exact = fprints.iter().fold(u64::from(!fprints.is_empty()), |hash, fprint| hash * 31 + fprint);
        shelf.captures.push(Capture {
            doc_id: doc_id(&page.url),
            url: page.url.clone(),
            fetch_time: page.time,
            status: 200,
            mime: "text/html".into(),
            body_bytes: 100,
            text_bytes: 50,
            chunks: fprints.len() as u32,
            exact,
            simhash: page.simhash,
            source: 0,
            item: 0,
            offset: number as u64,
            length: 1,
            mended: Vec::new(),
            worker: me as u32,
            slot: shelf.exact.len() as u32,
        });
        shelf.exact.push(exact);
        shelf.fprints.push(&fprints);
        shelf.features.push(&features(page));
        shelf.links.push(&page.links.iter().map(|url| doc_id(url)).collect::<Vec<_>>());
    }
    shelf
}

fn on<T: Send + 'static>(workers: usize, program: impl Fn(&mut Net) -> Result<T> + Send + Sync + 'static) -> Vec<T> {
    run(&Cluster::local(workers), 0, [0; 32], program).unwrap()
}

fn crawl_of(net: &mut Net, shelf: &mut Shelf) -> Result<Crawl> {
    let partitions = Partitions::new(8, net.peers());
    settle(net, shelf, &[0], partitions)
}

/// A crawl of a few hosts whose pages share chunks and link to each other.
fn crawl() -> impl Strategy<Value = Vec<TestPage>> {
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
            .map(|(host, path, time, fprints, links, simhash)| TestPage {
                url: url(host, path),
                time,
                fprints,
                simhash,
                links: links.into_iter().map(|(host, path)| url(host, path)).collect(),
            })
            .collect()
    })
}

fn settings() -> impl Strategy<Value = Overlap> {
    let guard = prop::sample::select(vec![Guard::None, Guard::MutualBest]);
    (1u32..4, 0u32..3, prop::sample::select(vec![0.0, 0.3, 0.5, 1.0]), 0u32..4, 0u32..12, guard).prop_map(
        |(min_shared, doubt, min_resemblance, template_pages, max_documents, guard)| Overlap {
            min_shared,
            min_resemblance,
            doubt,
            template_pages,
            max_documents,
            guard,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_sharded_overlap_equals_the_sort_based_table(pages in crawl(), settings in settings(), workers in 1usize..4) {
        let given = pages.clone();
        let parts = on(workers, move |net| {
            let mut shelf = shelf(&given, net.index(), net.peers());
            let crawl = crawl_of(net, &mut shelf)?;
            let exact_pairs = exact::fold(net, &shelf)?;
            let job = Job { overlap: settings, ..Job::default() };
            let (pairs, _) = overlap::similar_pairs(net, &shelf, &crawl, &exact_pairs, &job)?;
            let rows: Vec<FPrintDocId> = shelf
                .kept()
                .flat_map(|(slot, rank)| shelf.fprints.get(slot).iter().map(move |&fprint| FPrintDocId::new(fprint, rank)))
                .collect();
            Ok((pairs, rows, crawl.directory.hosts.clone(), exact_pairs))
        });
        let mut got: Vec<SimilarPair> = parts.iter().flat_map(|part| part.0.clone()).collect();
        got.sort_unstable();
        let table: Vec<FPrintDocId> = parts.iter().flat_map(|part| part.1.clone()).collect();
        let copies: Vec<Rank> = parts.iter().flat_map(|part| part.3.iter().map(|pair| pair.b)).collect();
        prop_assert_eq!(got, sort_based::similar_pairs(&table, &parts[0].2, &copies, &settings));
    }

    #[test]
    fn the_pairs_of_near_simhashes_equal_those_found_in_one_place(
        pages in crawl(), k in 0u32..3, guard in prop::sample::select(vec![Guard::None, Guard::MutualBest]),
        workers in 1usize..4
    ) {
        let (given, settings) = (pages.clone(), Hamming { k, guard });
        let parts = on(workers, move |net| {
            let mut shelf = shelf(&given, net.index(), net.peers());
            let crawl = crawl_of(net, &mut shelf)?;
            let exact_pairs = exact::fold(net, &shelf)?;
            let (pairs, counts) = hamming_pairs::similar_pairs(net, &crawl, &exact_pairs, &settings)?;
            let simhashes: Vec<_> = crawl.pages.iter().map(|(rank, page)| (*rank, page.simhash)).collect();
            Ok((pairs, simhashes, crawl.directory.hosts.clone(), exact_pairs, counts))
        });
        let copies: Vec<Rank> = parts.iter().flat_map(|part| part.3.iter().map(|pair| pair.b)).collect();
        let mut rows: Vec<SimhashDocId> = parts
            .iter()
            .flat_map(|part| &part.1)
            .filter_map(|&(rank, simhash)| Some(SimhashDocId::new(simhash?, rank)))
            .filter(|row| !copies.contains(&row.doc))
            .collect();
        let got: Vec<SimilarPair> = parts.iter().flat_map(|part| part.0.clone()).collect();
        let (want, found) = similar_pairs(&mut rows, &parts[0].2, &settings);
        prop_assert_eq!(got, want);
        prop_assert_eq!((parts[0].4.simhashes, parts[0].4.near), (rows.len() as u64, found.near));
    }

    #[test]
    fn simhashes_by_inverse_document_frequency_equal_the_plain_computation(
        pages in crawl(), bits in 1u32..=64, workers in 1usize..4
    ) {
        let given = pages.clone();
        let parts = on(workers, move |net| {
            let mut shelf = shelf(&given, net.index(), net.peers());
            shelf.captures.iter_mut().for_each(|capture| capture.simhash = None);
            let mut crawl = crawl_of(net, &mut shelf)?;
            idf::simhashes(net, &mut shelf, &mut crawl, bits)?;
            Ok(crawl.pages.into_iter().map(|(_, page)| (page.url, page.offset, page.simhash)).collect::<Vec<_>>())
        });
        let got: Vec<_> = parts.into_iter().flatten().collect();
        let kept: Vec<Vec<Feature>> = got.iter().map(|(_, number, _)| features(&pages[*number as usize])).collect();
        let with_features = kept.iter().filter(|features| !features.is_empty()).count() as u64;
        for ((url, _, simhash), features) in got.iter().zip(&kept) {
            let mut sums = Sums::default();
            for &Feature { hash, weight } in features {
                let pages_with = kept.iter().filter(|page| page.iter().any(|other| other.hash == hash)).count() as u64;
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
        let given = edges.clone();
        let labels = on(workers, move |net| {
            let (me, peers) = (net.index(), net.peers());
            let mine = given.iter().copied().enumerate().filter(|(n, _)| n % peers == me).map(|(_, edge)| edge);
            components(net, "test", 40, mine)
        });
        let mut sets = webtwin::clusters::union_find::UnionFind::new(40);
        edges.iter().for_each(|&(x, y)| _ = sets.union(x, y));
        let want = sets.labels();
        prop_assert!(labels.iter().all(|labels| **labels == want));
    }

    #[test]
    fn the_newest_capture_of_every_url_is_kept_and_the_others_are_counted(pages in crawl(), workers in 1usize..4) {
        let given = pages.clone();
        let parts = on(workers, move |net| {
            let mut shelf = shelf(&given, net.index(), net.peers());
            let crawl = crawl_of(net, &mut shelf)?;
            let rows: Vec<(Rank, String, i64)> =
                crawl.pages.iter().map(|(rank, page)| (*rank, page.url.clone(), page.fetch_time)).collect();
            Ok((rows, shelf.rejections.len(), crawl.directory.doc_ids.clone()))
        });
        let mut newest = std::collections::BTreeMap::new();
        for page in &pages {
            let time = newest.entry(doc_id(&page.url)).or_insert((page.url.clone(), page.time));
            time.1 = time.1.max(page.time);
        }
        let want: Vec<_> = newest.values().enumerate().map(|(rank, (url, time))| (rank as Rank, url.clone(), *time)).collect();
        let mut got: Vec<_> = parts.iter().flat_map(|part| part.0.clone()).collect();
        got.sort();
        prop_assert_eq!(&got, &want);
        prop_assert_eq!(parts.iter().map(|part| part.1).sum::<usize>() + want.len(), pages.len());
        let ids: Vec<u64> = newest.keys().copied().collect();
        prop_assert!(parts.iter().all(|part| part.2 == ids));
    }

    #[test]
    fn everything_found_is_the_same_at_one_two_and_three_workers(
        pages in crawl(), settings in settings(), single_site: bool, idf: bool,
        by in prop::sample::select(vec![Measure::Overlap, Measure::Hamming, Measure::Both]),
        merge in prop::sample::select(vec![MergeCondition::Exact, MergeCondition::Extended])
    ) {
        let mut job = Job { overlap: settings, similar: Similar { by }, ..Job::default() };
        job.hamming.guard = settings.guard;
        job.simhash.idf = idf;
        job.clusters.merge = merge;
        job.clusters.single_site = single_site;
        let results: Vec<_> = [1, 2, 3].map(|workers| {
            let (given, job) = (pages.clone(), job.clone());
            let parts = on(workers, move |net| {
                let mut shelf = shelf(&given, net.index(), net.peers());
                let found = find(net, &job, &mut shelf, &[0])?;
                Ok((
                    (
                        found.links,
                        found.exact_pairs,
                        [found.similar_pairs, found.hamming_pairs].concat(),
                        found.verdicts,
                        found.link_summary,
                    ),
                    (found.collections, found.members, format!("{:?}", found.avoid), format!("{:?}", found.prefixes)),
                    found.summary,
                ))
            });
            let mut links: Vec<_> = parts.iter().flat_map(|p| p.0.0.clone()).collect();
            let mut exact: Vec<_> = parts.iter().flat_map(|p| p.0.1.clone()).collect();
            let mut similar: Vec<_> = parts.iter().flat_map(|p| p.0.2.clone()).collect();
            let mut verdicts: Vec<_> = parts.iter().flat_map(|p| p.0.3.clone()).collect();
            let mut summary: Vec<_> = parts.iter().flat_map(|p| p.0.4.clone()).collect();
            let mut collections: Vec<_> = parts.iter().flat_map(|p| p.1.0.clone()).collect();
            let mut members: Vec<_> = parts.iter().flat_map(|p| p.1.1.clone()).collect();
            links.sort_unstable();
            exact.sort_unstable();
            similar.sort_unstable();
            verdicts.sort_unstable();
            summary.sort_unstable();
            collections.sort_unstable();
            members.sort_unstable();
            ((links, exact, similar, verdicts, summary), (collections, members, parts[0].1.3.clone()), parts[0].2.clone())
        }).into();
        prop_assert_eq!(&results[0], &results[1]);
        prop_assert_eq!(&results[0], &results[2]);
    }
}
