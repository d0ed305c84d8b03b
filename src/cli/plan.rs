//! `webtwin plan`: what a run would read, hold and exchange, from a sample of its input.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::JobArgs;
use crate::dataflow::captures::host;
use crate::dataflow::ingest::{Queue, read};
use crate::dataflow::memory::Held;
use crate::dataflow::shelf::Shelf;
use crate::engine::{Cluster, run as run_on};
use crate::error::Result;
use crate::ids::{HostId, Rank, mix};
use crate::job::{Digest, Overlap};
use crate::overlap::FPrintDocId;
use crate::overlap::count_pairs::pair_key;
use crate::overlap::filter::{Verdict, judge};
use crate::overlap::planner::{Load, choose, heavy_thousandths, pilot_rate};
use crate::pages::work_items::Work;

/// Work items that are read for a sample.
const SAMPLE_ITEMS: usize = 8;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    job: JobArgs,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: Args) -> Result<()> {
    let job = args.job.resolve()?;
    let work = Work::plan(&job.input, job.effort.shard_bytes)?;
    let (items, all_bytes, inputs) = (work.items.len(), work.weight(), work.inputs.len());
    let sample = work.sample(SAMPLE_ITEMS);
    let share = sample.weight() as f64 / all_bytes.max(1) as f64;
    let (digest, queue) = (Digest::of(&job), Queue::new(sample));
    let shared = (Arc::new(job.clone()), queue);
    let held = run_on(&Cluster::local(1), 0, digest.0, move |net| {
        let shelf = read(net, &shared.1, &shared.0)?;
        let (pairs, heavy_thousandths) = pairs(&shelf, &shared.0.overlap);
        Ok((Held { pairs, ..Held::on(&shelf) }, heavy_thousandths))
    })?;
    let (held, heavy_thousandths) = held[0];
    let scaled = |n: u64| if share > 0.0 { (n as f64 / share) as u64 } else { 0 };
    let low = Held {
        pages: scaled(held.pages),
        tuples: scaled(held.tuples),
        features: scaled(held.features),
        links: scaled(held.links),
        pairs: scaled(held.pairs),
    };
    let high = Held { pairs: scaled(low.pairs), ..low };
    let load = Load {
        pairs: high.pairs,
        heavy_thousandths,
        min_shared: job.overlap.min_shared,
        worker_bytes: if job.effort.memory_bytes == 0 { u64::MAX } else { job.effort.memory_bytes / 2 },
        workers: 1,
        disk_bytes: u64::MAX,
    };
    let (_, counting) = choose(&load);
    // Three exchanges of tuples, pairs and links carry nearly all the bytes.
    let exchanged = |held: &Held| 12 * held.tuples + 8 * held.pairs + 8 * held.links;
    let disk = 90 * low.pages + 4 * low.links;
    if args.json {
        let object = serde_json::json!({
            "digest": digest.hex(), "inputs": inputs, "work_items": items, "sampled_share": share,
            "least": low, "most": high,
            "memory_bytes_least": low.peak_bytes(), "memory_bytes_most": high.peak_bytes(),
            "exchanged_bytes_least": exchanged(&low), "exchanged_bytes_most": exchanged(&high), "disk_bytes": disk,
            "counting": counting,
        });
        println!("{object}");
        return Ok(());
    }
    let mb = |bytes: u64| bytes as f64 / 1e6;
    println!("inputs            {inputs} in {items} work items, {:.1} % of them read for this plan", 100.0 * share);
    println!("pages             {}", low.pages);
    println!("chunks            {} (rows of FPrint-DocID)", low.tuples);
    println!("links             {}", low.links);
    println!("pairs             {} to {} of pages that share a chunk, furniture left out", low.pairs, high.pairs);
    println!("counting          {counting}");
    println!("memory            {:.0} to {:.0} MB, over all workers", mb(low.peak_bytes()), mb(high.peak_bytes()));
    println!("exchanged         {:.0} to {:.0} MB", mb(exchanged(&low)), mb(exchanged(&high)));
    println!("disk              about {:.0} MB of tables", mb(disk));
    println!("The range of pairs: copies all stand close together, or all far apart.");
    Ok(())
}

/// Pairs of pages that the chunks on a shelf make, furniture left out; and of a thousand of these, those of pages that share
/// T chunks, by a pilot sample.
fn pairs(shelf: &Shelf, settings: &Overlap) -> (u64, u64) {
    let mut numbers = BTreeMap::new();
    let hosts: Vec<HostId> = shelf
        .captures
        .iter()
        .map(|capture| {
            let next = numbers.len() as HostId;
            *numbers.entry(host(&capture.url)).or_insert(next)
        })
        .collect();
    let slots = 0..shelf.exact.len();
    let of_slot =
        |slot: usize| shelf.fprints.get(slot).iter().map(move |&fprint| FPrintDocId::new(fprint, slot as Rank));
    let mut table: Vec<FPrintDocId> = slots.flat_map(of_slot).collect();
    table.sort_unstable_by_key(FPrintDocId::key);
    let (mut docs, mut scratch) = (Vec::new(), Vec::new());
    let runs: Vec<&[FPrintDocId]> = table
        .chunk_by(|x, y| x.fprint() == y.fprint())
        .filter(|run| {
            docs.clear();
            docs.extend(run.iter().map(|row| row.doc));
            judge(&docs, &hosts, settings, &mut scratch) == Verdict::Counts
        })
        .collect();
    let pairs = runs.iter().map(|run| run.len() as u64 * (run.len() as u64 - 1) / 2).sum();
    let mut sample = Vec::new();
    for run in runs {
        for (at, row) in run.iter().enumerate().filter(|(_, row)| mix(row.doc.into()).is_multiple_of(pilot_rate(pairs)))
        {
            sample.extend(run[at + 1..].iter().map(|other| pair_key(row.doc, other.doc)));
        }
    }
    (pairs, heavy_thousandths(&mut sample, settings.min_shared))
}
