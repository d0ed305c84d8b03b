//! `webtwin plan`: what a run would read, hold and exchange, predicted from a sample of its input.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::JobArgs;
use super::recrawl::Scheduled;
use crate::build::available_memory_bytes;
use crate::console::{print, tell};
use crate::dataflow::pairs::minhash_pairs;
use crate::dataflow::reading::captures::host;
use crate::dataflow::reading::first_look::first_look;
use crate::dataflow::reading::ingest::{Queue, read};
use crate::dataflow::reading::worker_pages::WorkerPages;
use crate::dataflow::shuffle::memory_estimate::{MemoryEstimate, too_little};
use crate::engine::{Cluster, run as run_on};
use crate::error::{Error, Result, size};
use crate::ids::{HostId, Number, Page};
use crate::job::{Digest, Job, JobKind, Measure, Overlap};
use crate::overlap::FPrintDocId;
use crate::overlap::planner::{Load, choose};
use crate::overlap::prune::PageSet;
use crate::overlap::sample::{SamplePairs, sample_pairs};
use crate::pages::work_items::Work;
use crate::storage::location::Location;
use crate::storage::output;

/// Work items read for a sample.
const SAMPLE_ITEMS: usize = 16;

/// The same where only the order of magnitude counts.
const ROUGH_ITEMS: usize = 4;

/// Bytes of all tables per page, compressed, measured on the real crawl.
const A_PAGE_OF_TABLES: u64 = 240;

/// The same per link.
const A_LINK_OF_TABLES: u64 = 4;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    job: JobArgs,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: Args) -> Result<()> {
    let mut job = args.job.resolve()?;
    if job.kind == JobKind::Recrawl {
        job = Scheduled::find(job)?.0;
    }
    let workers = super::threads(None);
    let work = Work::plan(&job.input, job.effort.shard_bytes)?;
    if let Some(told) = work.side_files.told() {
        tell(told);
    }
    for warning in first_look(&work, &job.input)? {
        tell(warning);
    }
    let (items, inputs) = (work.items.len(), work.inputs.len());
    let Expected { held, heavy_thousandths, share } = expected(work, &job, SAMPLE_ITEMS)?;
    let allowed = job.effort.memory_bytes;
    hold_against_bound(&held, &job, workers, 1)?;
    let (least, keys) = least_bytes(&held, &job, workers, 1);
    let most = held.most_bytes(&job) + keys;
    let memory = if allowed == 0 { most } else { most.min(allowed) };
    let load = Load {
        pairs: held.pairs,
        heavy_thousandths,
        min_shared: job.overlap.min_shared,
        worker_bytes: if allowed == 0 { u64::MAX } else { (allowed - least) / 10 * 7 / workers as u64 },
        workers: workers as u64,
        disk_bytes: if job.effort.disk_bytes == 0 { u64::MAX } else { job.effort.disk_bytes },
    };
    let (_, counting) = choose(&load);
    // Three exchanges of tuples, pairs and links carry nearly all the bytes.
    let exchanged = 12 * held.tuples + 8 * held.pairs + 8 * held.links;
    let keys = if allowed == 0 { 0 } else { keys.saturating_sub(allowed.saturating_sub(least) / 4) };
    let spilled = held.spilled_bytes(&job, workers, allowed) + keys;
    let tables = table_bytes(&held);
    let digest = Digest::of(&job);
    if args.json {
        let object = serde_json::json!({
            "digest": digest.hex(), "inputs": inputs, "work_items": items, "sampled_share": share, "expected": held,
            "memory_bytes": memory, "memory_bytes_least": least, "exchanged_bytes": exchanged,
            "spilled_bytes": spilled, "disk_bytes": tables, "counting": counting,
        });
        return print(|out| writeln!(out, "{object}"));
    }
    let mb = |bytes: u64| bytes as f64 / 1e6;
    print(|out| {
        writeln!(
            out,
            "inputs            {inputs} in {items} work items, {:.1} % of them read for this plan",
            100.0 * share
        )?;
        writeln!(out, "pages             {}", held.pages)?;
        writeln!(out, "chunks            {} (rows of FPrint-DocID)", held.tuples)?;
        writeln!(out, "links             {}", held.links)?;
        writeln!(
            out,
            "pairs             {} of pages that share a chunk, furniture and exact copies left out",
            held.pairs
        )?;
        writeln!(out, "counting          {counting}")?;
        writeln!(
            out,
            "memory            {:.0} MB, all workers of one process; with less than {:.0} MB there is no run",
            mb(memory),
            mb(least)
        )?;
        writeln!(out, "exchanged         {:.0} MB", mb(exchanged))?;
        writeln!(
            out,
            "disk              about {:.0} MB of tables; {:.0} MB spilled on the way",
            mb(tables),
            mb(spilled)
        )
    })
}

/// What a run is expected to hold, extrapolated from a sample.
struct Expected {
    held: MemoryEstimate,
    /// Of a thousand pairs, those of pages that share T chunks.
    heavy_thousandths: u64,
    /// Share of the input that was read.
    share: f64,
}

/// Reads a sample of the input and extrapolates.
fn expected(work: Work, job: &Job, sample_items: usize) -> Result<Expected> {
    let (items, bytes) = (work.items.len(), work.weight());
    let sample = work.sample(sample_items);
    let (sampled, share) = (sample.items.len(), sample.weight() as f64 / bytes.max(1) as f64);
    let (digest, queue) = (Digest::of(job), Queue::new(sample));
    let shared = (Arc::new(job.clone()), queue);
    let mut read_alone = run_on(&Cluster::local(1), 0, digest.0, move |net| {
        let shelf = read(net, &shared.1, &shared.0)?;
        Ok((MemoryEstimate::on(&shelf), pairs(&shelf, &shared.0.overlap)))
    })?;
    let (held, pairs) = read_alone.swap_remove(0);
    let scaled = |n: u64| if share > 0.0 { (n as f64 / share) as u64 } else { 0 };
    let held = MemoryEstimate {
        pages: scaled(held.pages),
        tuples: scaled(held.tuples),
        features: scaled(held.features),
        shingles: scaled(held.shingles),
        links: scaled(held.links),
        pairs: scaled(pairs.within) + pairs.across_all(sampled, items),
    };
    Ok(Expected { held, heavy_thousandths: pairs.heavy_thousandths, share })
}

/// Refuses, by a sample and before reading, a run that does not fit in a process's memory or on the disk of its output, and
/// warns of one that may not. The sample is read again by the run.
///
/// # Errors
/// [`Error::MemoryLimit`] and [`Error::DiskFull`] with what it needs, and those of reading.
///
/// # Cost
/// 16 work items where a bound is set, and 4 where none is; nothing for fewer than 128.
pub(super) fn refuse_what_cannot_fit(job: &Job, output: &Location, workers: usize, processes: usize) -> Result<()> {
    let work = Work::plan(&job.input, job.effort.shard_bytes)?;
    // A small input is read soon, and checked against the limit while it is.
    if work.items.len() < 8 * SAMPLE_ITEMS {
        return Ok(());
    }
    let held = expected(work, job, if job.effort.memory_bytes == 0 { ROUGH_ITEMS } else { SAMPLE_ITEMS })?.held;
    let each = |n: u64| n / processes as u64;
    let of_process = MemoryEstimate {
        tuples: each(held.tuples),
        features: each(held.features),
        shingles: each(held.shingles),
        links: each(held.links),
        ..held
    };
    hold_against_bound(&of_process, job, workers, processes)?;
    if let Some(free) = output::free_bytes(output) {
        look_at_disk(table_bytes(&held), free, output.name())?;
    }
    if job.effort.memory_bytes == 0
        && let Some(free) = available_memory_bytes()
        && let Some(warning) = memory_warning(of_process.most_bytes(job), free)
    {
        tell(warning);
    }
    Ok(())
}

/// Refuses an output of which not even half will fit on its disk, by estimate, and warns of one that may not fit.
fn look_at_disk(needed_bytes: u64, free: u64, output: &str) -> Result<()> {
    let remedy = "make room there, or choose another --output";
    if needed_bytes / 2 > free {
        let cause = format!("{} are free", size(free));
        return Err(Error::DiskFull { path: output.into(), needed_bytes, cause, remedy: remedy.into() });
    }
    if needed_bytes > free {
        let (needed, free) = (size(needed_bytes), size(free));
        tell(format_args!(
            "warning: output {output}: about {needed} of tables are expected, and {free} are free; {remedy}"
        ));
    }
    Ok(())
}

/// What to say where a process without a bound is expected to need more memory than there is.
fn memory_warning(needed: u64, free: u64) -> Option<String> {
    let bound = free / 4 * 3;
    (needed > free).then(|| {
        format!(
            "warning: about {} of memory are expected to be needed, and {} are free; with --set effort.memory_bytes={bound} \
             the rest goes to the local disk",
            size(needed),
            size(free)
        )
    })
}

/// Bytes of the tables of a run.
fn table_bytes(held: &MemoryEstimate) -> u64 {
    A_PAGE_OF_TABLES * held.pages + A_LINK_OF_TABLES * held.links
}

/// Bytes without which there is no run, of one of some processes, and the bytes of keys of bands if pages are compared by
/// these.
fn least_bytes(held: &MemoryEstimate, job: &Job, workers: usize, processes: usize) -> (u64, u64) {
    let least = held.least_bytes(workers);
    match job.similar.by {
        Measure::Minhash => {
            let (of_keys, keys) = minhash_pairs::least_of_process(held, &job.minhash, workers, processes);
            (least.max(of_keys), keys)
        }
        _ => (least, 0),
    }
}

fn hold_against_bound(held: &MemoryEstimate, job: &Job, workers: usize, processes: usize) -> Result<()> {
    let (needed_bytes, _) = least_bytes(held, job, workers, processes);
    let allowed_bytes = job.effort.memory_bytes;
    if allowed_bytes == 0 || needed_bytes <= allowed_bytes {
        return Ok(());
    }
    Err(too_little("the run, by a sample of its input".into(), needed_bytes, allowed_bytes))
}

/// Pairs of pages made by the chunks on the shelf of a sample.
fn pairs(shelf: &WorkerPages, settings: &Overlap) -> SamplePairs {
    let mut numbers = BTreeMap::new();
    let hosts: Vec<HostId> = shelf
        .captures
        .iter()
        .map(|capture| {
            let next = HostId::from_index(numbers.len());
            *numbers.entry(host(&capture.url)).or_insert(next)
        })
        .collect();
    let mut seen = BTreeSet::new();
    let mut copies = PageSet::new(shelf.exact.len(), |_| false);
    // A sample's pages have the numbers of their slots: in the order of reading, item by item.
    let pages = || Page::first(shelf.exact.len());
    pages().filter(|&page| !seen.insert(shelf.exact[page])).for_each(|page| copies.insert(page));
    let rows = |page: Page| {
        let fprints = shelf.fprints.get(page.index()).iter();
        fprints.map(move |&fprint| FPrintDocId::new(fprint, page))
    };
    let mut table: Vec<FPrintDocId> = pages().flat_map(rows).collect();
    table.sort_unstable_by_key(FPrintDocId::key);
    let item = |page: Page| shelf.captures[page].item;
    sample_pairs(&table, &hosts, &copies, item, settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_fit_on_the_disk_is_refused_and_what_may_not_is_told() {
        let refused = look_at_disk(3 << 30, 1 << 30, "out").unwrap_err();
        assert_eq!(refused.exit_code(), 9);
        assert!(refused.to_string().contains("1.0 GiB are free: 3.0 GiB or more needed; make room"), "{refused}");
        assert!(look_at_disk(3 << 30, 2 << 30, "out").is_ok() && look_at_disk(0, 0, "out").is_ok());
        assert_eq!(memory_warning(1 << 30, 2 << 30), None);
        let warned = memory_warning(8 << 30, 4 << 30).unwrap();
        assert!(warned.contains("8.0 GiB") && warned.contains("effort.memory_bytes=3221225472"), "{warned}");
    }
}
