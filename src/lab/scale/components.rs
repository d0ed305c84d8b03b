//! Benchmark from similar pairs to trivial clusters.

use std::sync::Arc;

use super::super::made::similar_pairs::PairTable;
use super::super::measure::{forget_peak_memory, processor_seconds, seconds};
use super::super::{FigureRow, Options, figure};
use super::{of_the_machine, scaled};
use webtwin_base::build_info::{memory_bytes, peak_memory_bytes};
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::Page;
use webtwin_core::clusters::labels::{SetLabels, SetSizes};
use webtwin_core::overlap::SimilarPair;
use webtwin_dataflow::shuffle::components::components;
use webtwin_engine::{ClusterLayout, run as run_on};

/// Number of stripes of pages that are distributed to workers.
const STRIPES: usize = 1024;

/// Number of bytes in flight between two workers.
const TRANSIT_BYTES: u64 = 40 << 20;

/// Measures trivial clusters, and checks them against the planted ones.
pub(super) fn run(options: &Options) -> Result<Vec<FigureRow>> {
    let pages = u32::try_from(options.scale)
        .map_err(|_| Error::Usage(format!("--scale {}: at most {}", options.scale, u32::MAX)))?;
    let cluster = ClusterLayout::local(options.workers);
    let table = Arc::new(PairTable::new(pages, 1));

    let shared_table = Arc::clone(&table);
    let (making, make_result) = seconds(|| {
        run_on(&cluster, 0, [0; 32], move |net| {
            Ok(local_pairs(&shared_table, net.index(), net.peers())
                .fold((0u64, 0u64), |(count, sum), pair| (count + 1, sum + u64::from(pair.b))))
        })
    });
    let pairs: u64 = make_result?.iter().map(|part| part.0).sum();

    forget_peak_memory();
    let (cpu_before, held_before) = (processor_seconds(), memory_bytes());
    let shared_table = Arc::clone(&table);
    let (all_seconds, labels) = seconds(|| {
        run_on(&cluster, 0, [0; 32], move |net| {
            let (worker, workers) = (net.index(), net.peers());
            let edges = || local_pairs(&shared_table, worker, workers).map(|pair| Ok((pair.a, pair.b)));
            components(net, "trivial clusters", pages as usize, edges)
        })
    });
    let cpu_seconds = of_the_machine(cpu_before, options.workers);
    let held_bytes = peak_memory_bytes().saturating_sub(held_before);
    let labels = labels?.swap_remove(0);
    compare_with_truth(&labels, &table)?;
    let a_page = held_bytes.saturating_sub(TRANSIT_BYTES) as f64 / f64::from(pages);
    let clusters = SetSizes::count(&labels).iter().count();
    let mut rows = vec![
        figure("trivial clusters, with the making of pairs", all_seconds, "s").at_most(scaled(options.scale, 20.0)),
        figure("the making of pairs alone", making, "s"),
        figure("workers", options.workers as f64, "threads"),
        figure("similar pairs", pairs as f64 / 1e6, "million"),
        figure("trivial clusters, single pages among them", clusters as f64 / 1e6, "million"),
        figure("peak memory beyond what was held before", held_bytes as f64 / 1e6, "MB"),
        figure("of it, but for 42 MB on the way", a_page, "bytes a page").at_most(12.0),
    ];
    rows.extend(cpu_seconds);
    Ok(rows)
}

/// Returns the pairs of a worker: those of every n-th stripe of pages, for n workers. Counted pairs
/// are distributed in the same way.
fn local_pairs(table: &PairTable, worker: usize, workers: usize) -> impl Iterator<Item = SimilarPair> + '_ {
    let stripes = (worker..STRIPES).step_by(workers);
    stripes.flat_map(|stripe| table.pairs(table.part(stripe, STRIPES)))
}

/// Returns an error unless exactly the planted pages are together, under their smallest page.
fn compare_with_truth(labels: &SetLabels<Page>, table: &PairTable) -> Result<()> {
    let mut smallest = vec![Page::NONE; labels.members()];
    for page in Page::first(labels.members()) {
        let label: Page = labels.label(page);
        let smallest = &mut smallest[table.cluster(page) as usize];
        *smallest = page.min(*smallest);
        if *smallest != label {
            let (page, label, smallest) = (page.0, label.0, smallest.0);
            return Err(Error::Invariant(format!("page {page} is in the cluster of {label}, not of {smallest}")));
        }
    }
    Ok(())
}
