//! Online queries: one fingerprint at a time against permuted tables.

use std::collections::BTreeMap;

use super::super::made::fingerprints;
use super::super::measure::seconds;
use super::super::{FigureRow, Options, figure};
use super::K;
use webtwin_base::error::{Error, Result};
use webtwin_core::hamming::design::TableDesign;
use webtwin_core::hamming::design::covering::block_designs;
use webtwin_core::hamming::online::Builder;
use webtwin_results::online_index::{open_index, write_index};
use webtwin_storage::location::Location;
use webtwin_storage::mapped::Residence;

/// Number of queries that are timed.
const TIMED_QUERIES: usize = 40_000;

/// Measures online queries, and checks a sample against brute force.
pub(super) fn run(options: &Options) -> Result<Vec<FigureRow>> {
    let count = options.scale as usize;
    let fingerprints = fingerprints::even(count, 64, 1);
    let queries = fingerprints::queries(&fingerprints, TIMED_QUERIES, 2);
    // Every other query is an existing fingerprint with 0 to 6 flips, so there are pairs to find.
    let tables = if count > 50_000_000 { 5 } else { 6 };
    let blocks = block_designs(K).into_iter().find(|blocks| blocks.keys.len() >= tables);
    let blocks = blocks.ok_or_else(|| Error::Invariant(format!("no design of {tables} tables")))?;
    let design = TableDesign::new(64, K, &blocks);
    let sample: BTreeMap<u64, Vec<u64>> = queries
        .iter()
        .take(if count > 20_000_000 { 20 } else { 100 })
        .map(|query| {
            (*query, fingerprints.iter().filter(|other| (*other ^ query).count_ones() <= K).copied().collect())
        })
        .collect();
    let folder = Location::parse(&options.work.join("online").display().to_string())?;
    let (build_seconds, build_result) = seconds(|| {
        let (builder, doc_ids) = Builder::new(&design, "even", fingerprints, None)?;
        write_index(&folder, builder, doc_ids)
    });
    build_result?;
    let index = open_index(&folder, Residence::Loaded)?;
    let (mut times, mut n_matches) = (Vec::with_capacity(queries.len()), 0usize);
    for query in &queries {
        let (duration, matches) = seconds(|| index.near(*query, K));
        times.push(duration * 1e6);
        n_matches += matches?.len();
    }
    let mut n_wrong = 0;
    for (query, mut expected) in sample {
        expected.dedup();
        n_wrong += usize::from(!index.near(query, K)?.iter().map(|near| near.fingerprint).eq(expected));
    }
    times.sort_unstable_by(f64::total_cmp);
    Ok(vec![
        figure("tables", design.keys.len() as f64, "tables"),
        figure("least top bits", f64::from(design.top_bits()), "bits"),
        figure("p50", times[times.len() / 2], "us").at_most(50.0),
        figure("p99", times[times.len() * 99 / 100], "us"),
        figure("answers", n_matches as f64, "fingerprints"),
        figure("of sampled queries answered otherwise than by brute force", n_wrong as f64, "queries").at_most(0.0),
        figure("memory a fingerprint", index.table_bytes() as f64 / count as f64, "bytes"),
        figure("built and written in", build_seconds, "s"),
    ])
}
