//! Similar pairs of a crawl, reused from the previous crawl for unchanged pages, equal those of a
//! computation from scratch.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use webtwin::dataflow::clusters::links;
use webtwin::dataflow::pairs::counts::OverlapCounts;
use webtwin::dataflow::pairs::overlap;
use webtwin::dataflow::pairs::overlap_before::{PriorRun, RowForwarder};
use webtwin::dataflow::reading::captures::settle;
use webtwin::dataflow::shuffle::directory::TablePartitions;
use webtwin::engine::{ClusterLayout, Net, run};
use webtwin::error::Result;
use webtwin::job::{Guard, Job, OverlapSettings};
use webtwin::overlap::SimilarPair;
use webtwin::storage::records::SavedShares;

use crate::support::crawl::{MadePage, exact_pairs, local_pages};

/// Partitions in memory: of the previous run, and of this run.
#[derive(Default)]
struct Kept {
    before: BTreeMap<usize, Vec<u8>>,
    now: Mutex<BTreeMap<usize, Vec<u8>>>,
}

impl SavedShares for Kept {
    fn count(&self, _: &str) -> usize {
        self.before.len()
    }

    fn read(&self, _: &str, worker: usize) -> Option<Vec<u8>> {
        self.before.get(&worker).cloned()
    }

    fn write(&self, _: &str, (worker, _): (usize, usize), share: &[u8]) -> Result<()> {
        self.now.lock().unwrap().insert(worker, share.to_vec());
        Ok(())
    }
}

/// Generates pages of a few hosts with few chunks, and changes of them: a page is replaced, removed
/// or added.
fn crawls() -> impl Strategy<Value = Vec<Vec<MadePage>>> {
    let page = || {
        (0u32..5, 0u32..40, prop::collection::vec(1u64..30, 0..9))
            .prop_map(|(host, path, fprints)| MadePage::at(format!("http://h{host}.example/{path}")).chunks(fprints))
    };
    let changes = prop::collection::vec((any::<prop::sample::Index>(), 0u8..4, page()), 0..8);
    (prop::collection::vec(page(), 1..60), prop::collection::vec(changes, 1..4)).prop_map(|(first, changes)| {
        let mut crawls = vec![first];
        for changes in changes {
            let mut pages = crawls.last().unwrap().clone();
            for (at, what, page) in changes {
                if pages.is_empty() || what == 1 {
                    pages.push(page);
                    continue;
                }
                let at = at.index(pages.len());
                match what {
                    0 => drop(pages.remove(at)),
                    2 => pages[at].fprints = page.fprints,
                    // The page becomes an exact copy, or ceases to be one.
                    _ => pages[at].fprints = pages[page.fprints.len() % pages.len()].fprints.clone(),
                }
            }
            crawls.push(pages);
        }
        crawls
    })
}

fn settings() -> impl Strategy<Value = OverlapSettings> {
    let guard = prop::sample::select(vec![Guard::None, Guard::Neighbours]);
    (1u32..4, prop::sample::select(vec![0.0, 0.3, 0.5]), 0u32..4, 0u32..9, guard).prop_map(
        |(min_shared, min_resemblance, template_pages, max_documents, guard)| OverlapSettings {
            min_shared,
            min_resemblance,
            template_pages,
            max_documents,
            guard,
            ..Job::default().overlap
        },
    )
}

/// Pairs, unsupported pairs, counts, data for the next run, and the number of workers that reused
/// pairs.
type Found = (Vec<SimilarPair>, Vec<SimilarPair>, OverlapCounts, BTreeMap<usize, Vec<u8>>, u64);

/// Computes the pairs of a run.
fn found(
    pages: &[MadePage],
    left: &[MadePage],
    overlap: OverlapSettings,
    workers: usize,
    before: Option<BTreeMap<usize, Vec<u8>>>,
) -> Found {
    let saved_shares = Arc::new(Kept { before: before.clone().unwrap_or_default(), now: Mutex::default() });
    let merged = Arc::new(AtomicU64::new(0));
    let (pages, left) = (pages.to_vec(), left.to_vec());
    let (shares, counted, with_state) = (Arc::clone(&saved_shares), Arc::clone(&merged), before.is_some());
    let parts = run(&ClusterLayout::local(workers), 0, [0; 32], move |net: &mut Net| {
        let mut local_pages = local_pages(&pages, net.index(), net.peers());
        let crawl = settle(net, &mut local_pages, &[0], TablePartitions::new(8, net.peers()))?;
        let exact_pairs = exact_pairs(net, &crawl)?;
        let job = Job { overlap, ..Job::default() };
        let links = links::resolve(net, &mut local_pages, &crawl)?;
        let (me, peers) = (net.index(), net.peers());
        let each_page = |forward: RowForwarder<'_>| {
            for page in left.iter().skip(me).step_by(peers) {
                let mut fprints = page.fprints.clone();
                fprints.sort_unstable();
                fprints.dedup();
                forward(&fprints);
            }
        };
        let notify = |what: String| {
            if what.starts_with("similar pairs are reused from the state") {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        };
        let before = PriorRun { shares: &*shares, each_page: &each_page, notify: &notify, max_change: f64::INFINITY };
        overlap::similar_pairs(net, &local_pages, &crawl, &exact_pairs, &links, &job, with_state.then_some(&before))
    })
    .unwrap();
    let (mut pairs, mut weak, mut counts) = (Vec::new(), Vec::new(), OverlapCounts::default());
    for part in &parts {
        pairs.extend_from_slice(&part.0);
        weak.extend_from_slice(&part.1);
        counts = counts + &part.2;
    }
    pairs.sort_unstable();
    weak.sort_unstable();
    let now = std::mem::take(&mut *saved_shares.now.lock().unwrap());
    (pairs, weak, counts, now, merged.load(Ordering::Relaxed))
}

#[test]
fn reused_and_recounted_pairs_equal_those_from_scratch() {
    let merged = AtomicU64::new(0);
    let cases = (crawls(), settings(), prop::collection::vec(1usize..4, 4));
    proptest!(ProptestConfig::with_cases(200), |((crawls, overlap, workers) in cases)| {
        let mut shares = BTreeMap::new();
        let mut before: &[MadePage] = &[];
        for (pages, workers) in crawls.iter().zip(workers) {
            let want = found(pages, &[], overlap, workers, None);
            let got = found(pages, before, overlap, workers, Some(shares));
            prop_assert_eq!((&got.0, &got.1, &got.2), (&want.0, &want.1, &want.2));
            prop_assert_eq!(got.3.len(), workers);
            merged.fetch_add(got.4, Ordering::Relaxed);
            (shares, before) = (got.3, pages);
        }
    });
    // A fallback to a computation from scratch must not have hidden the reuse in all cases.
    assert!(merged.into_inner() > 100);
}

#[test]
fn missing_previous_pages_and_damaged_shares_cost_only_time() {
    let page = |path: u32, fprints: std::ops::Range<u64>| {
        MadePage::at(format!("http://h{}.example/{path}", path % 3)).chunks(fprints)
    };
    let first: Vec<MadePage> = (0..14).map(|path| page(path, u64::from(path)..u64::from(path) + 8)).collect();
    let mut second = first.clone();
    second[3] = page(3, 1..8);
    second[13] = page(13, 12..19);
    let overlap = OverlapSettings { template_pages: 0, min_shared: 2, ..Job::default().overlap };
    let shares = found(&first, &[], overlap, 2, Some(BTreeMap::new())).3;
    let want = found(&second, &[], overlap, 2, None);
    let equals = |got: &Found, merged: bool| {
        assert_eq!((&got.0, &got.2), (&want.0, &want.2));
        assert_eq!(got.4 > 0, merged);
    };
    equals(&found(&second, &first, overlap, 3, Some(shares.clone())), true);
    equals(&found(&second, &[], overlap, 2, Some(shares.clone())), false);
    for (worker, share) in &shares {
        let mut damaged = shares.clone();
        damaged.insert(*worker, share[..share.len() - 1].to_vec());
        equals(&found(&second, &first, overlap, 2, Some(damaged)), false);
    }
}
