use proptest::prelude::*;
use webtwin::dataflow::pairs::overlap_join::similar_pairs;
use webtwin::dataflow::pairs::overlap_work::{OverlapPages, OverlapWork};
use webtwin::engine::{ClusterLayout, Net};
use webtwin::error::{Error, Result};
use webtwin::ids::{HostId, Page};
use webtwin::job::OverlapSettings;
use webtwin::overlap::coarse_count::Layout;
use webtwin::overlap::planner::CountingMethod;
use webtwin::overlap::prune::PageSet;
use webtwin::overlap::rows::{FPrintRow, Row32, Row64};
use webtwin::overlap::{FPrintDocId, SimilarPair, sort_based};
use webtwin::spill::{MemoryPool, ProcessBounds, SPILL};
use webtwin_lab::made::tables::{Chunking, SyntheticTable, TableParams};

use super::rendezvous::{cluster, results, run_all};

/// Returns the memory pool of a process with `memory_bytes` bytes; 0 sets no bound.
fn pool(memory_bytes: u64) -> MemoryPool {
    let memory_bytes = if memory_bytes == 0 { u64::MAX } else { memory_bytes };
    MemoryPool { foreseen_bytes: 0, ..MemoryPool::new(memory_bytes, &std::env::temp_dir(), SPILL) }
}

/// Makes the workers of each process share a pool.
fn share(net: &mut Net, pool: MemoryPool) {
    net.memory = MemoryPool { workers: net.workers_per_process() as u64, ..pool };
}

/// A table of chunks of pages 0 to 59, and the other properties of these pages.
#[derive(Debug, Clone)]
struct Small {
    rows: Vec<(u64, Page)>,
    hosts: Vec<HostId>,
    copies: Vec<Page>,
    settings: OverlapSettings,
}

fn of_small<R: FPrintRow>(small: &Small, cluster: &ClusterLayout, method: Option<CountingMethod>) -> Vec<SimilarPair> {
    let Small { rows, hosts, copies, settings } = small.clone();
    let mut pairs = results(cluster, move |net| {
        let (me, peers) = (net.index(), net.peers());
        let copies = PageSet::new(60, |page| copies.contains(&page));
        let sources = || {
            let mut own_rows = rows.iter().skip(me).step_by(peers);
            move |send: &mut dyn FnMut(u64, Page)| {
                Ok(own_rows.by_ref().take(50).map(|&(fprint, doc)| send(fprint, doc)).count() > 0)
            }
        };
        let mut pairs = Vec::new();
        let pages = OverlapPages { count: 60, hosts: &hosts, copies: &copies };
        let count = (rows.len() / peers) as u64;
        similar_pairs::<R, _>(net, count, sources, &pages, &settings, method, |pair| pairs.push(pair))?;
        assert!(pairs.is_sorted());
        Ok(pairs)
    })
    .concat();
    pairs.sort_unstable();
    pairs
}

fn small() -> impl Strategy<Value = Small> {
    let filters = (0u32..4, prop::sample::select(vec![0u32, 9]));
    let similar = (1u32..6, prop::sample::select(vec![0.0, 0.35]), filters);
    let page = || (0u32..60).prop_map(Page);
    let rows = prop::collection::btree_set((0u64..40, page()), 0..400);
    let copies = prop::collection::btree_set(page(), 0..10);
    (rows, prop::collection::vec((0u32..4).prop_map(HostId), 60), copies, similar).prop_map(
        |(rows, hosts, copies, (min_shared, min_resemblance, (template_pages, max_documents)))| Small {
            rows: rows.into_iter().collect(),
            hosts,
            copies: copies.into_iter().collect(),
            settings: OverlapSettings {
                min_resemblance,
                doubt: 1,
                template_pages,
                max_documents,
                ..OverlapSettings::of_papers(min_shared)
            },
        },
    )
}

fn reference(small: &Small) -> Vec<SimilarPair> {
    let table: Vec<_> = small.rows.iter().map(|&(fprint, doc)| FPrintDocId::new(fprint, doc)).collect();
    sort_based::similar_pairs(&table, &small.hosts, &small.copies, &small.settings)
}

fn methods() -> impl Strategy<Value = Option<CountingMethod>> {
    prop::option::of(
        (1u32..3, 1u32..4, 1u32..4)
            .prop_map(|(lines, hashes, parts)| CountingMethod::CoarseCount(Layout { lines, hashes, parts })),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn all_pairs_equal_the_sort_based_table(small in small(), workers in 1usize..4, method in methods()) {
        let want = reference(&small);
        prop_assert_eq!(&of_small::<Row32>(&small, &ClusterLayout::local(workers), method), &want);
        prop_assert_eq!(&of_small::<Row64>(&small, &ClusterLayout::local(workers), method), &want);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn all_pairs_of_two_processes_equal_the_sort_based_table(small in small(), method in methods()) {
        prop_assert_eq!(of_small::<Row64>(&small, &cluster(2, 2, "30s"), method), reference(&small));
    }
}

/// Returns the similar pairs of a made-up table, and the work of this worker.
fn of_table(
    net: &mut Net,
    table: &SyntheticTable,
    pool: MemoryPool,
    method: Option<CountingMethod>,
) -> Result<(Vec<SimilarPair>, OverlapWork)> {
    share(net, pool);
    let own_pages = table.part(net.index(), net.peers());
    let rows = own_pages.len() as u64 * 24;
    let sources = || {
        let mut own_pages = own_pages.clone();
        move |send: &mut dyn FnMut(u64, Page)| {
            let next = own_pages.by_ref().take(500).fold(None, |_, doc| {
                table.rows(doc..doc + 1, |row| send(row.fprint(), row.doc));
                Some(doc)
            });
            Ok(next.is_some())
        }
    };
    let copies = PageSet::new(table.pages() as usize, |_| false);
    let pages = OverlapPages { count: table.pages() as usize, hosts: &[], copies: &copies };
    let mut pairs_found = Vec::new();
    let overlap =
        similar_pairs::<Row32, _>(net, rows, sources, &pages, &OverlapSettings::of_papers(25), method, |pair| {
            pairs_found.push(pair)
        })?;
    Ok((pairs_found, overlap.work))
}

fn table() -> SyntheticTable {
    SyntheticTable::new(TableParams { pages: 20_000, seed: 5, chunking: Chunking::TwoLines, bits: 32 }).unwrap()
}

#[test]
fn minimum_memory_yields_the_same_pairs_through_the_disk() {
    let mut all = Vec::new();
    let unbounded = |net: &mut Net| of_table(net, &table(), pool(0), None);
    for (pairs, work) in results(&ClusterLayout::local(2), unbounded) {
        assert_eq!(work.spilled_bytes, 0);
        all.extend(pairs);
    }
    all.sort_unstable();
    assert!(all.len() > 10_000);
    let refused =
        run_all(&ClusterLayout::local(2), |net| of_table(net, &table(), pool(1), None)).remove(0).unwrap_err();
    let Error::MemoryLimit { needed_bytes, .. } = refused else { panic!("{refused}") };
    for method in [
        None,
        Some(CountingMethod::SortBased),
        Some(CountingMethod::CoarseCount(Layout { lines: 500, hashes: 2, parts: 2 })),
    ] {
        let bounded = move |net: &mut Net| of_table(net, &table(), pool(needed_bytes), method);
        let mut got = Vec::new();
        for (pairs, work) in results(&ClusterLayout::local(2), bounded) {
            assert!(work.spilled_bytes > 1_000_000, "{}: {} bytes spilled", work.reason, work.spilled_bytes);
            got.extend(pairs);
        }
        got.sort_unstable();
        assert!(got == all, "{} pairs, {} expected, with {method:?}", got.len(), all.len());
    }
}

#[test]
fn small_disk_yields_the_same_pairs_in_passes() {
    let refused =
        run_all(&ClusterLayout::local(2), |net| of_table(net, &table(), pool(1), None)).remove(0).unwrap_err();
    let (least, sort_based) = (needed(&refused), Some(CountingMethod::SortBased));
    let run_with_disk = |disk_bytes: u64| {
        let pool = MemoryPool { disk_bytes, ..pool(least + 4_000_000) };
        let mut all = Vec::new();
        let mut results_of_workers = run_all(&ClusterLayout::local(2), move |net| {
            Ok((of_table(net, &table(), pool.clone(), sort_based)?, net.rounds()))
        });
        let mut rounds = 0;
        for ((pairs, _), of_worker) in results_of_workers.remove(0)? {
            all.extend(pairs);
            rounds = of_worker;
        }
        all.sort_unstable();
        Ok::<_, Error>((all, rounds))
    };
    let (all, once) = run_with_disk(0).unwrap();
    for (disk_bytes, more) in [(100_000_000, 0..=0), (40_000_000, 1..=1), (12_000_000, 2..=70)] {
        let (pairs, rounds) = run_with_disk(disk_bytes).unwrap();
        assert!(pairs == all, "{} pairs, {} expected, with {disk_bytes} bytes", pairs.len(), all.len());
        assert!(more.contains(&(rounds - once)), "{} rounds more with {disk_bytes} bytes", rounds - once);
    }
    // If processes have different disk budgets, the smallest one applies to all.
    let of_small_disk = move |net: &mut Net| {
        let disk_bytes = [100_000_000, 20_000_000][net.process()];
        of_table(net, &table(), MemoryPool { disk_bytes, ..pool(least + 4_000_000) }, sort_based)
    };
    let mut pairs: Vec<SimilarPair> =
        results(&cluster(2, 1, "60s"), of_small_disk).into_iter().flat_map(|found| found.0).collect();
    pairs.sort_unstable();
    assert!(pairs == all, "{} pairs, {} expected, on two disks", pairs.len(), all.len());
    let refused = run_with_disk(20_000).unwrap_err();
    assert_eq!(refused.exit_code(), 9, "{refused}");
    assert!(refused.to_string().contains("rows that do not fit in memory"), "{refused}");
}

#[test]
fn missing_spill_folder_ends_the_run_with_its_name() {
    let refused =
        run_all(&ClusterLayout::local(1), |net| of_table(net, &table(), pool(1), None)).remove(0).unwrap_err();
    let Error::MemoryLimit { needed_bytes, .. } = refused else { panic!("{refused}") };
    let nowhere = MemoryPool { folder: "/nowhere/at/all".into(), ..pool(needed_bytes) };
    let ended = run_all(&ClusterLayout::local(1), move |net| of_table(net, &table(), nowhere.clone(), None))
        .remove(0)
        .unwrap_err();
    assert_eq!(ended.exit_code(), 8);
    assert!(ended.to_string().contains("/nowhere/at/all (effort.spill)"), "{ended}");
}

/// Finds the pairs of `count` pages that all have one chunk. One worker has all rows.
fn of_one_chunk(net: &mut Net, count: usize, max_documents: u32, memory_bytes: u64) -> Result<OverlapWork> {
    let own_count = if net.index() == 0 { count } else { 0 };
    let sources = || {
        let mut own_pages = Page::first(own_count);
        move |send: &mut dyn FnMut(u64, Page)| Ok(own_pages.by_ref().take(10_000).map(|doc| send(7, doc)).count() > 0)
    };
    let copies = PageSet::new(count, |_| false);
    let pages = OverlapPages { count, hosts: &[], copies: &copies };
    let settings = OverlapSettings { max_documents, ..OverlapSettings::of_papers(1) };
    let bounds = ProcessBounds { memory_bytes, disk_bytes: 1 << 30, disk_is_set: true };
    share(net, MemoryPool { disk_bytes: 1 << 30, bounds, ..pool(memory_bytes) });
    let rows = (count / net.peers()) as u64;
    Ok(similar_pairs::<Row32, _>(net, rows, sources, &pages, &settings, None, |_| {})?.work)
}

fn needed(refused: &Error) -> u64 {
    match refused {
        Error::MemoryLimit { needed_bytes, .. } | Error::DiskLimit { needed_bytes, .. } => *needed_bytes,
        _ => panic!("{refused}"),
    }
}

#[test]
fn chunk_on_too_many_pages_is_rejected_with_their_number() {
    let refusal = |count, max_documents, memory_bytes| {
        let one = move |net: &mut Net| of_one_chunk(net, count, max_documents, memory_bytes);
        run_all(&ClusterLayout::local(2), one).remove(0).unwrap_err()
    };
    let frequent = |count, memory_bytes| {
        for work in results(&ClusterLayout::local(2), move |net| of_one_chunk(net, count, 1000, memory_bytes)) {
            assert_eq!(work.counts.emitted, 0);
        }
    };
    // The rows of a million pages exceed the capacity of a bucket, but their count does not.
    let least = needed(&refusal(1_000_000, 1000, 1));
    frequent(1_000_000, least);
    // Without a limit on documents, the 4 TB of pairs exceed any disk even with the maximum number
    // of passes. This is detected before the first pair is made.
    let refused = refusal(1_000_000, 0, 2 * least);
    assert!(refused.to_string().contains("499999500000 pairs of pages, with one chunk on 1000000 pages"), "{refused}");
    assert!((240_000_000_000..260_000_000_000).contains(&needed(&refused)), "{refused}");
    // With three million pages and no limit, the first refusal knows only an upper bound of the
    // number of pages.
    let least = needed(&refusal(3_000_000, 1000, 1));
    frequent(3_000_000, least);
    let refused = refusal(3_000_000, 0, least);
    assert!(refused.to_string().contains("a chunk on up to 3000000 pages"), "{refused}");
    assert!(refused.to_string().contains("overlap.max_documents"), "{refused}");
    assert_eq!(refused.exit_code(), 9);
    // The refusal names the required value of the setting, for all workers together. One byte per
    // worker less does not suffice.
    let sufficient_bytes = needed(&refused);
    assert!(refusal(3_000_000, 0, sufficient_bytes - 20).to_string().contains("a chunk on up to 3000000 pages"));
    assert!(
        refusal(3_000_000, 0, sufficient_bytes).to_string().contains("pairs of pages, with one chunk on 3000000 pages")
    );
}

/// Finds pairs from two kinds of rows: a few chunks that are each on very many pages, up to seven
/// per host, and many chunks that are each on few pages. Only the latter yield pairs.
fn of_frequent_chunks(net: &mut Net, pool: MemoryPool, template_pages: u32) -> Result<(Vec<SimilarPair>, OverlapWork)> {
    const PAGES: usize = 1_000_000;
    share(net, pool);
    let (me, peers) = (net.index(), net.peers());
    let sources = || {
        let own_pages = Page::first(PAGES).filter(move |page| page.0 as usize % peers == me);
        let mut rows = own_pages.flat_map(|page| {
            let frequent = (0..4u64).filter(move |chunk| u64::from(page.0) % 5 != *chunk);
            frequent.chain([1000 + u64::from(page.0) / 2]).map(move |chunk| (chunk, page))
        });
        move |send: &mut dyn FnMut(u64, Page)| {
            let some = rows.by_ref().take(10_000).map(|(chunk, page)| send(chunk, page)).count();
            Ok(some > 0)
        }
    };
    let copies = PageSet::new(PAGES, |page| page.0.is_multiple_of(7));
    let hosts: Vec<HostId> = (0..PAGES).map(|page| HostId(page as u32 / 8)).collect();
    let pages = OverlapPages { count: PAGES, hosts: &hosts, copies: &copies };
    let settings = OverlapSettings { max_documents: 1000, template_pages, ..OverlapSettings::of_papers(1) };
    let mut pairs_found = Vec::new();
    let overlap =
        similar_pairs::<Row64, _>(net, 2_100_000, sources, &pages, &settings, None, |pair| pairs_found.push(pair))?;
    Ok((pairs_found, overlap.work))
}

#[test]
fn frequent_chunks_beyond_memory_change_neither_pairs_nor_counts() {
    let run_with = |memory_bytes: u64, template_pages: u32| {
        let one = move |net: &mut Net| of_frequent_chunks(net, pool(memory_bytes), template_pages);
        let outputs = results(&ClusterLayout::local(2), one);
        let mut pairs: Vec<SimilarPair> = outputs.iter().flat_map(|one| one.0.clone()).collect();
        pairs.sort_unstable();
        (pairs, outputs.into_iter().map(|one| one.1.counts).reduce(|sum, one| sum + &one).unwrap())
    };
    let refused = run_all(&ClusterLayout::local(2), |net| of_frequent_chunks(net, pool(1), 0)).remove(0).unwrap_err();
    let is_pair = |first: &usize| !first.is_multiple_of(7) && !(first + 1).is_multiple_of(7);
    let expected = (0..1_000_000).step_by(2).filter(is_pair).count();
    // Three cases: boilerplate is not detected; the four frequent chunks are boilerplate; they are
    // on too few pages of each host to be boilerplate.
    for (template_pages, boilerplate) in [(0, 0), (5, 4), (8, 0)] {
        let (all, counts) = run_with(0, template_pages);
        assert_eq!(
            (all.len(), counts.template_chunks, counts.frequent_chunks),
            (expected, boilerplate, 4 - boilerplate)
        );
        assert!(run_with(needed(&refused), template_pages) == (all, counts));
    }
}
