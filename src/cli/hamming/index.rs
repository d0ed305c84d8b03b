//! `webtwin hamming index`: builds the online index of F, in its folder.

use std::time::Instant;

use super::super::quantity::{nanoseconds, quantity};
use webtwin_base::console::notify;
use webtwin_base::error::{Error, Result};
use webtwin_core::hamming::design::choose::{PricedDesign, candidates, choose, indexes};
use webtwin_core::hamming::design::k_below;
use webtwin_core::hamming::design::machine::ProbeCosts;
use webtwin_core::hamming::online::{self, Builder, document_bytes};
use webtwin_job::Job;
use webtwin_results::fingerprints::FingerprintSet;
use webtwin_results::online_index::{remove_index, write_index};
use webtwin_storage::location::Location;
use webtwin_view::report::figures::bytes;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder of a fingerprint file (F); the index is written to the same folder
    #[arg(long, value_name = "URL")]
    fingerprints: String,
    /// Number of bits in which fingerprints may differ at most (k) [default: the setting hamming.k]
    #[arg(long, value_name = "BITS")]
    k: Option<u32>,
    /// Memory for the tables, and for making them: 8G, 512MB or bytes [default: unlimited]
    #[arg(long, value_name = "BYTES", value_parser = quantity)]
    memory: Option<u64>,
    /// Number of tables of the design, one of those that `plan` shows [default: the design that
    /// `plan` chooses]
    #[arg(long, value_name = "N")]
    tables: Option<usize>,
    /// Leave out the doc ids: answers are fingerprints only
    #[arg(long)]
    no_doc_ids: bool,
    /// Replace an existing index
    #[arg(long)]
    replace: bool,
}

pub(super) fn run(args: Args) -> Result<()> {
    let set = FingerprintSet::open(&args.fingerprints)?;
    let folder = Location::parse(&args.fingerprints)?;
    let (f, count) = (set.manifest.f, set.manifest.count);
    let k = k_below(f, args.k.unwrap_or(Job::default().hamming.k))?;
    let is_there = folder.join(online::NAME)?.exists()?;
    if is_there && !args.replace {
        let reason = format!("{} has an online index already; replace it with --replace", folder.name());
        return Err(Error::Usage(reason));
    }
    if indexes(count) > 1 {
        let reason = format!("{count} fingerprints, but an index holds at most 4294967295; split the set");
        return Err(Error::input(folder.name(), reason));
    }
    let design = pick(candidates(count, f, k, &ProbeCosts::measure()), args.tables, args.memory)?;
    let making = Builder::bytes(count, !args.no_doc_ids, design.largest_table);
    // Checked before the fingerprints are read.
    if let Some(allowed_bytes) = args.memory.filter(|memory| *memory < making) {
        let (purpose, setting) = ("making an online index".into(), "--memory".into());
        return Err(Error::MemoryLimit { what: purpose, needed_bytes: making, allowed_bytes, setting });
    }
    let (min_bits, max_bits) = design.top_bits();
    notify(format_args!(
        "{count} fingerprints of {f} bits, k = {k}: {} tables, p from {min_bits} to {max_bits} bits ({})",
        design.tables(),
        design.source
    ));
    notify(format_args!("tables {}; making them takes up to {} of memory", bytes(design.table_bytes), bytes(making)));
    let start = Instant::now();
    let (fingerprints, doc_ids) = set.read(!args.no_doc_ids)?;
    if doc_ids.is_some() {
        let distinct = fingerprints.chunk_by(|x, y| x == y).count() as u64;
        let id_bytes = bytes(document_bytes(distinct, count));
        notify(format_args!("doc ids {id_bytes}, of {distinct} different fingerprints"));
    }
    if is_there {
        // Removed as late as possible, so that an earlier failure leaves the old index in place.
        remove_index(&folder)?;
    }
    let (builder, doc_ids) = Builder::new(&design.design, &set.manifest.recipe, fingerprints, doc_ids)?;
    let manifest = write_index(&folder, builder, doc_ids)?;
    let written_bytes: u64 = manifest.tables.iter().chain(&manifest.doc_ids).map(|file| file.bytes).sum();
    notify(format_args!(
        "{} different fingerprints: {} in {}: {}",
        manifest.fingerprints,
        bytes(written_bytes),
        nanoseconds(start.elapsed().as_nanos() as f64),
        folder.name()
    ));
    Ok(())
}

/// Returns the design with the given number of tables, or else the one that fits best.
fn pick(mut designs: Vec<PricedDesign>, tables: Option<usize>, memory: Option<u64>) -> Result<PricedDesign> {
    if let Some(tables) = tables {
        let mut table_counts: Vec<String> = designs.iter().map(|one| one.tables().to_string()).collect();
        table_counts.dedup();
        designs.retain(|one| one.tables() == tables);
        if designs.is_empty() {
            return Err(Error::Usage(format!("no design has {tables} tables; use one of {}", table_counts.join(", "))));
        }
    }
    let choice = choose(&designs, memory)?;
    Ok(designs.swap_remove(choice))
}
