//! `webtwin plan`: predicts from a sample of the input what a run reads, holds and exchanges.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use super::JobArgs;
use super::quantity::{digits, quantity, rate};
use super::recrawl::ScheduledJob;
use webtwin_base::build_info::available_memory_bytes;
use webtwin_base::console::{notify, print};
use webtwin_base::error::{Error, Result, size};
use webtwin_core::overlap::planner::{Load, choose};
use webtwin_dataflow::memory_estimate::{MemoryEstimate, TABLE_FILE_BYTES};
use webtwin_dataflow::reading::first_inspection::first_inspection;
use webtwin_dataflow::shuffle::memory::too_little;
use webtwin_dataflow::sinks::by_domain::bytes_of_domain;
use webtwin_engine::ClusterLayout;
use webtwin_job::{InputSettings, Job, JobDigest, JobKind, Measure};
use webtwin_pages::work_items::WorkList;
use webtwin_plan::sample::{CrawlCounts, SampleReport, sampled};
use webtwin_plan::{Machines, PredictedCosts, fingerprints, memory, of_crawl, result_bytes};
use webtwin_storage::location::Location;
use webtwin_storage::output;
use webtwin_view::report::figures::bytes;

/// Synthetic crawl that yields the ratio of chunks and pairs between other settings and those by
/// which the real crawl was counted.
const SYNTHETIC_CRAWL: &str = "synth://?pages=5000&seed=1";

/// Number of work items read for a sample.
const SAMPLE_ITEMS: usize = 16;

/// Maximum number of work items read for a plan of a large crawl, in which [`SAMPLE_ITEMS`] are too
/// small a fraction to predict its pairs. The number is a 256th of the crawl's items, up to this.
const MAX_SAMPLE_ITEMS: usize = 256;

/// Fraction of a crawl below which a sample predicts too many pairs.
const SHARE_FOR_PAIRS: f64 = 0.01;

/// Number of work items read if only the order of magnitude matters.
const ROUGH_ITEMS: usize = 4;

/// Minimum rate of a network or disk, in bytes a second. A smaller number probably lacks its unit.
const MIN_RATE: u64 = 1000;

/// Maximum number of pages of a run: page numbers have 32 bits.
const MAX_PAGES: u64 = u32::MAX as u64;

/// Maximum number of workers among which partitions can be distributed.
const MAX_PARTITIONS: u64 = 4096;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    job: JobArgs,
    /// Number of machines, with one process each
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Machines",
        value_parser = clap::value_parser!(u16).range(1..))]
    machines: u16,
    /// Number of worker threads of each process [default: all cores of this machine]
    #[arg(long, value_name = "N", help_heading = "Machines", value_parser = clap::value_parser!(u16).range(1..))]
    workers: Option<u16>,
    /// Cluster file: each of its processes counts as a machine, with its workers
    #[arg(long, value_name = "FILE", conflicts_with_all = ["machines", "workers"], help_heading = "Machines")]
    cluster: Option<PathBuf>,
    /// Network rate of a machine, a second: 10Gbit, 100Mbit or a number of bytes
    #[arg(long, value_name = "RATE", value_parser = rate, default_value = "10Gbit", help_heading = "Machines")]
    network: u64,
    /// Disk rate of a machine, a second, for inputs and spill files: 500MB or a number of bytes
    #[arg(long, value_name = "RATE", value_parser = rate, default_value = "500MB", help_heading = "Machines")]
    disk: u64,
    /// Latency of a message between two machines, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 0.5, allow_negative_numbers = true, help_heading = "Machines")]
    latency: f64,
    /// Number of pages of the whole crawl, of which --input is a sample; all counts are scaled in
    /// proportion. Without --input, pages like those of the crawl in docs/scale.md are assumed, and
    /// a synthetic crawl shows how other settings of chunks change the numbers of chunks and pairs
    #[arg(long, value_name = "N", value_parser = quantity)]
    pages: Option<u64>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

impl Args {
    fn machines(&self) -> Result<Machines> {
        if !(0.0..1e6).contains(&self.latency) {
            return Err(Error::Usage(format!("--latency is {}, but must be 0 or more milliseconds", self.latency)));
        }
        if let Some((option, rate)) =
            [("network", self.network), ("disk", self.disk)].into_iter().find(|(_, rate)| *rate < MIN_RATE)
        {
            return Err(Error::Usage(format!(
                "--{option} is {rate} bytes a second, but must be {MIN_RATE} or more; add a unit, \
                 as in 10Gbit or 500MB"
            )));
        }
        let (count, workers) = match &self.cluster {
            None => (usize::from(self.machines), super::threads(self.workers)),
            Some(file) => {
                let cluster = ClusterLayout::load(file)?;
                (cluster.processes(), cluster.workers)
            }
        };
        Ok(Machines {
            count,
            workers,
            network: self.network as f64,
            disk: self.disk as f64,
            latency: self.latency / 1e3,
        })
    }
}

pub(super) fn run(args: Args) -> Result<()> {
    let (mut job, machines) = (args.job.resolve()?, args.machines()?);
    if job.kind == JobKind::Grow {
        return Err(Error::Usage(
            "plan: kind = \"grow\" reads tables of a graph, but costs can be predicted only for \
             jobs that read pages or fingerprints"
                .into(),
        ));
    }
    let from_fingerprints = job.kind == JobKind::Fingerprints && !job.fingerprints.from.is_empty();
    if job.kind == JobKind::Hamming || from_fingerprints {
        if args.pages.is_some() {
            return Err(Error::Usage(
                "--pages: this job reads fingerprints, whose number is fixed; leave the option out".into(),
            ));
        }
        return plan_fingerprints(&job, &machines, args.json);
    }
    // A recrawl is planned as the job over its live inputs that it becomes.
    if job.kind == JobKind::Recrawl {
        job = ScheduledJob::find(job, 0)?.0;
    }
    let plan = match args.pages {
        Some(pages) if job.input.urls.is_empty() => Plan::without_input(&job, pages)?,
        pages => Plan::from_sample(&job, pages)?,
    };
    let (runs, plan) = plan.in_runs();
    // A plan fails where the run would fail.
    check_against_bound(&plan.counts, &job, &machines)?;
    let costs = of_crawl(&job, &plan.counts, &machines);
    // Only the overlap of chunks has several ways of counting.
    let counting_costs = compares_chunks(&job).then(|| plan.counting_algorithm(&job, &costs, &machines));
    let mut warnings = warnings(&job, runs, &machines);
    warnings.extend(compares_chunks(&job).then(|| plan.doubt_of_pairs()).flatten());
    warnings.extend(domain_warning(&job, &plan.counts, costs.memory_bytes_least));
    if args.json {
        let plan_json = serde_json::json!({
            "inputs": plan.inputs, "work_items": plan.items, "sampled_share": plan.share, "expected": plan.counts,
            "counting": counting_costs, "runs": runs, "warnings": warnings,
        });
        return print_json(&job, &machines, &costs, plan_json);
    }
    warnings.iter().for_each(|warning| notify(format_args!("warning: {warning}")));
    let CrawlCounts { held: estimate, links_within, .. } = plan.counts;
    print(|writer| {
        match plan.share {
            0.0 if plan.is_made_up => writeln!(
                writer,
                "inputs            none: pages like those of the crawl of docs/scale.md, with \
                 chunks and pairs scaled by their ratio in {SYNTHETIC_CRAWL} for these settings"
            )?,
            0.0 => writeln!(writer, "inputs            none: pages like those of the crawl of docs/scale.md")?,
            share => writeln!(
                writer,
                "inputs            {} in {} work items, {:.1} % of them read for this plan",
                plan.inputs,
                plan.items,
                100.0 * share
            )?,
        }
        match runs {
            1 => writeln!(writer, "pages             {}", estimate.pages)?,
            _ => {
                writeln!(writer, "pages             {} in each of {runs} runs; all figures are of one", estimate.pages)?
            }
        }
        let chunks = if job.kind == JobKind::Study { "marks of shingle paragraphs" } else { "rows of FPrint-DocID" };
        writeln!(writer, "chunks            {} ({chunks})", estimate.tuples)?;
        writeln!(writer, "links             {}, of them {links_within} between its pages", estimate.links)?;
        if learns_rules(&job) && plan.counts.largest_domain.pages > 0 {
            let (domain, rule_bytes) = (plan.counts.largest_domain, bytes(rule_bytes(&plan.counts)));
            writeln!(
                writer,
                "largest domain    {} pages, whose URL rules take {rule_bytes} in one process",
                domain.pages
            )?;
        }
        if let Some(counting_costs) = &counting_costs {
            let exclusions = "without boilerplate and exact copies";
            writeln!(writer, "pairs             {} of pages that share a chunk, {exclusions}", estimate.pairs)?;
            writeln!(writer, "counting          {counting_costs}")?;
        }
        print_costs(writer, &costs, &machines)
    })
}

/// Prediction of a run's input.
#[derive(Default)]
struct Plan {
    counts: CrawlCounts,
    inputs: usize,
    items: usize,
    /// Fraction of the input that was read; 0 without input.
    share: f64,
    /// Without input: true if chunks and pairs are scaled by the ratios of [`SYNTHETIC_CRAWL`].
    is_made_up: bool,
}

impl Plan {
    /// Predicts the counts of a crawl of `pages` pages that does not exist yet. The counts are
    /// proportional to those of the real crawl, whose chunks and pairs were counted with the
    /// default settings. With other settings they are multiplied by the ratio of a synthetic
    /// crawl's counts with these settings and with the defaults; the synthetic crawl is read with
    /// both now.
    fn without_input(job: &Job, pages: u64) -> Result<Plan> {
        let default = Job::default();
        let is_counted =
            job.kind != JobKind::Study && (&job.chunks, &job.overlap) == (&default.chunks, &default.overlap);
        if is_counted || !compares_chunks(job) {
            return Ok(Plan { counts: CrawlCounts::of_real_crawl(pages, job), ..Plan::default() });
        }
        let input = InputSettings { urls: vec![SYNTHETIC_CRAWL.into()], ..job.input.clone() };
        let counts_of = |job: &Job| -> Result<CrawlCounts> {
            Ok(sampled(WorkList::plan(&input, job.effort.shard_bytes)?, job, MAX_SAMPLE_ITEMS)?.counts)
        };
        let (synthetic, defaults, real_counts) =
            (counts_of(job)?, counts_of(&default)?, CrawlCounts::of_real_crawl(pages, job));
        let as_many = |count: fn(&CrawlCounts) -> u64| {
            (count(&real_counts) as f64 * count(&synthetic) as f64 / count(&defaults).max(1) as f64) as u64
        };
        let (tuples, pairs) = (as_many(|of| of.held.tuples), as_many(|of| of.held.pairs));
        let estimate = MemoryEstimate { tuples, pairs, ..real_counts.held };
        let counts = CrawlCounts { held: estimate, heavy_thousandths: synthetic.heavy_thousandths, ..real_counts };
        Ok(Plan { counts, is_made_up: true, ..Plan::default() })
    }

    /// Reads a sample. `pages` is the number of pages of the crawl from which the sample is taken,
    /// if the input is only a part of it.
    fn from_sample(job: &Job, pages: Option<u64>) -> Result<Plan> {
        let work = WorkList::plan(&job.input, job.effort.shard_bytes)?;
        if let Some(message) = work.side_files.message() {
            notify(message);
        }
        for warning in first_inspection(&work, &job.input)? {
            notify(warning);
        }
        let (items, inputs) = (work.items.len(), work.inputs.len());
        let SampleReport { counts, share } = sampled(work, job, (items / 256).clamp(SAMPLE_ITEMS, MAX_SAMPLE_ITEMS))?;
        if pages.is_some() && counts.held.pages == 0 {
            return Err(Error::Usage(
                "--pages: the sample of the input has no pages to scale; leave --input out, or give \
                 one with pages"
                    .into(),
            ));
        }
        let counts = pages.map_or(counts, |pages| counts.of_pages(pages));
        Ok(Plan { counts, inputs, items, share, is_made_up: false })
    }

    /// Returns the number of runs that the pages need, and the plan of one of them.
    fn in_runs(self) -> (u64, Plan) {
        let pages = self.counts.held.pages;
        match pages.div_ceil(MAX_PAGES).max(1) {
            1 => (1, self),
            runs => (runs, Plan { counts: self.counts.of_pages(pages.div_ceil(runs)), ..self }),
        }
    }

    /// Returns a warning about the pairs predicted from a small sample: exact copies in it are
    /// mostly without their originals, and are mistaken for originals.
    fn doubt_of_pairs(&self) -> Option<String> {
        let is_small = self.share > 0.0 && self.share < SHARE_FOR_PAIRS;
        is_small.then(|| {
            format!(
                "{:.2} % of the crawl was read for this plan, too little if many pages have exact \
                 copies: pairs, spilled bytes and the time to find pairs may be several times too \
                 high; give a larger part of the crawl",
                self.share * 100.0
            )
        })
    }

    /// Returns the algorithm that counts pairs, with the reason.
    fn counting_algorithm(&self, job: &Job, costs: &PredictedCosts, machines: &Machines) -> String {
        let (memory_limit, disk) = (job.effort.memory_bytes, job.effort.disk_bytes);
        let budget = memory_limit.saturating_sub(costs.memory_bytes_least) / 10 * 7 / machines.workers as u64;
        let load = Load {
            pairs: self.counts.held.pairs,
            heavy_thousandths: self.counts.heavy_thousandths,
            min_shared: job.overlap.min_shared,
            worker_bytes: if memory_limit == 0 { u64::MAX } else { budget },
            workers: machines.peers(),
            disk_bytes: if disk == 0 { u64::MAX } else { disk },
        };
        choose(&load).1
    }
}

/// True if a job learns URL rules.
fn learns_rules(job: &Job) -> bool {
    matches!(job.kind, JobKind::Replicas | JobKind::Signatures | JobKind::Batch)
}

/// Returns the bytes that one worker takes to learn the URL rules of the largest domain.
fn rule_bytes(counts: &CrawlCounts) -> u64 {
    bytes_of_domain(counts.largest_domain.pages, counts.largest_domain.url_bytes)
}

/// Returns a warning if the URL rules of the largest domain do not fit in a process whose minimum
/// is `least` bytes otherwise. A sample may overestimate the domain, so it is no error.
fn domain_warning(job: &Job, counts: &CrawlCounts, least: u64) -> Option<String> {
    let (allowed_bytes, needed_bytes) = (job.effort.memory_bytes, least + rule_bytes(counts));
    // Rules are learned before tables are built.
    let is_too_little = allowed_bytes < needed_bytes.saturating_sub(TABLE_FILE_BYTES);
    (learns_rules(job) && allowed_bytes > 0 && is_too_little).then(|| {
        format!(
            "by the sample, one domain has some {} pages, and a run that cannot hold their URLs while it \
             learns URL rules ends then; set effort.memory_bytes to {needed_bytes} or more",
            counts.largest_domain.pages
        )
    })
}

/// True if a job finds pairs of pages by common chunks.
fn compares_chunks(job: &Job) -> bool {
    match job.kind {
        JobKind::Fingerprints => false,
        JobKind::Study => true,
        _ => matches!(job.similar.by, Measure::Overlap | Measure::Both),
    }
}

/// Returns the reasons against such a job, which takes the given number of runs.
fn warnings(job: &Job, runs: u64, machines: &Machines) -> Vec<String> {
    let mut warnings = Vec::new();
    if runs > 1 {
        warnings.push(format!(
            "a run takes at most {MAX_PAGES} pages, so this crawl needs {runs} runs; a run finds copies \
             among the pages of earlier ones if it is a batch (kind = \"batch\")"
        ));
    }
    if !job.pairs.from.is_empty() {
        warnings.push(
            "the pairs of pairs.from are not counted; each of them adds about 150 bytes to the \
             exchange between workers"
                .into(),
        );
    }
    let (partitions, peers) = (u64::from(job.output.partitions), machines.peers());
    if peers > partitions {
        let partitions_needed = peers.next_power_of_two().min(MAX_PARTITIONS);
        let remedy = match partitions_needed > partitions {
            true => format!("set output.partitions = {partitions_needed}"),
            false => "use fewer workers, because there are no more partitions".into(),
        };
        let idle_peers = peers - partitions;
        warnings.push(format!(
            "with output.partitions = {partitions}, {idle_peers} of {peers} workers own no pages; {remedy}"
        ));
    }
    warnings
}

fn plan_fingerprints(job: &Job, machines: &Machines, json: bool) -> Result<()> {
    let (rows, costs) = match job.kind {
        JobKind::Hamming => fingerprints::of_join(job, machines)?,
        _ => fingerprints::of_build(job, machines)?,
    };
    check_minimum_against_bound(costs.memory_bytes_least, "the number of its fingerprints", job)?;
    if json {
        return print_json(job, machines, &costs, serde_json::json!({ "expected": rows }));
    }
    print(|writer| {
        writeln!(writer, "fingerprints      {}", rows.fingerprints)?;
        if job.kind == JobKind::Hamming {
            match job.batch.queries.is_empty() {
                true => writeln!(writer, "queries           none, F is joined with itself")?,
                false => writeln!(writer, "queries           {}", rows.queries)?,
            }
            writeln!(writer, "pairs             not predicted, nor the cost of writing them")?;
        }
        print_costs(writer, &costs, machines)
    })
}

/// Prints costs and further results as a single JSON object.
fn print_json(job: &Job, machines: &Machines, costs: &PredictedCosts, mut plan_json: serde_json::Value) -> Result<()> {
    plan_json["digest"] = JobDigest::from_job(job).hex().into();
    plan_json["machines"] = machines.count.into();
    plan_json["workers"] = machines.workers.into();
    let serde_json::Value::Object(costs) = serde_json::to_value(costs).expect("costs are plain values") else {
        unreachable!("costs are an object");
    };
    plan_json.as_object_mut().expect("it is an object").extend(costs);
    print(|out| writeln!(out, "{plan_json}"))
}

fn print_costs(writer: &mut dyn Write, costs: &PredictedCosts, machines: &Machines) -> std::io::Result<()> {
    writeln!(writer, "read              {}", bytes(costs.read_bytes))?;
    let is_single = machines.count == 1;
    writeln!(
        writer,
        "memory            {}{}; the minimum is {}",
        bytes(costs.memory_bytes),
        if is_single { ", all workers of one process" } else { " a machine" },
        bytes(costs.memory_bytes_least)
    )?;
    match is_single {
        true => writeln!(writer, "exchanged         {} between workers", bytes(costs.exchanged_bytes))?,
        false => writeln!(
            writer,
            "exchanged         {} between workers, {} of it between machines, of which the first sends {}",
            bytes(costs.exchanged_bytes),
            bytes(costs.sent_bytes),
            bytes(costs.most_sent_bytes)
        )?,
    }
    writeln!(writer, "rounds            {}", costs.rounds)?;
    let (result, spilled) = (bytes(costs.disk_bytes), bytes(costs.spilled_bytes));
    let per_machine = if is_single { "" } else { " a machine" };
    let spill_text = match [costs.spilled_at_once_bytes, costs.spilled_at_once_bytes_least].map(bytes) {
        _ if costs.spilled_at_once_bytes == 0 => String::new(),
        [maximum, minimum] if maximum == minimum => format!(", at most {maximum}{per_machine} at a time"),
        [maximum, minimum] => format!(", at most {maximum}{per_machine} at a time, or {minimum} if there is no more"),
    };
    writeln!(writer, "disk              about {result} of result; {spilled} spilled during the run{spill_text}")?;
    writeln!(writer, "processor time    {}", stages(&costs.cpu_seconds))?;
    let (machine, worker) = (machines.count, machines.workers);
    writeln!(writer, "time              {}, on {machine} machines of {worker} workers", stages(&costs.seconds))
}

/// Formats seconds: the total, and by stage.
fn stages(seconds: &BTreeMap<&'static str, f64>) -> String {
    let time = |seconds: f64| match seconds {
        seconds if seconds < 120.0 => format!("{} s", digits(seconds)),
        seconds if seconds < 7200.0 => format!("{} min", digits(seconds / 60.0)),
        seconds => format!("{} h", digits(seconds / 3600.0)),
    };
    let name = |stage: &str| stage.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ').to_string();
    let stage_times: Vec<String> = seconds.iter().map(|(stage, &of)| format!("{} {}", name(stage), time(of))).collect();
    format!("{} ({})", time(seconds.values().sum()), stage_times.join(", "))
}

/// Refuses a run that, by a sample, does not fit in the memory of a process or on the disk of its
/// output, before the input is read. Warns of a run that may not fit. The run reads the sample
/// again.
///
/// # Errors
/// Returns [`Error::MemoryLimit`] and [`Error::DiskFull`] with the required size, and any error of
/// reading.
///
/// # Cost
/// Reads 16 work items if a bound is set, and 4 if none is; nothing if there are fewer than 128
/// items.
pub(super) fn refuse_what_cannot_fit(job: &Job, output: &Location, workers: usize, processes: usize) -> Result<()> {
    let work = WorkList::plan(&job.input, job.effort.shard_bytes)?;
    // A small input is read quickly, and compared with the limit during reading.
    if work.items.len() < 8 * SAMPLE_ITEMS {
        return Ok(());
    }
    let items = if job.effort.memory_bytes == 0 { ROUGH_ITEMS } else { SAMPLE_ITEMS };
    let counts = sampled(work, job, items)?.counts;
    // The rates do not affect memory and disk.
    let machines = Machines { count: processes, workers, network: 1.0, disk: 1.0, latency: 0.0 };
    check_against_bound(&counts, job, &machines)?;
    if let Some(warning) = domain_warning(job, &counts, memory::required_bytes(job, &counts, &machines).0) {
        notify(format_args!("warning: {warning}"));
    }
    if let Some(free) = output::free_bytes(output) {
        check_disk(result_bytes(job, &counts), free, output.name())?;
    }
    if job.effort.memory_bytes == 0
        && let Some(free) = available_memory_bytes()
        && let Some(warning) = memory_warning(of_crawl(job, &counts, &machines).memory_bytes, free)
    {
        notify(warning);
    }
    Ok(())
}

/// Refuses an output if less than half of its estimated size is free on its disk. Warns if the
/// output may not fit.
fn check_disk(needed_bytes: u64, free: u64, output: &str) -> Result<()> {
    let remedy = "free some space there, or choose another --output";
    if needed_bytes / 2 > free {
        let cause = format!("{} are free", size(free));
        return Err(Error::DiskFull { path: output.into(), needed_bytes, cause, remedy: remedy.into() });
    }
    if needed_bytes > free {
        let (needed_text, free) = (size(needed_bytes), size(free));
        notify(format_args!(
            "warning: output {output}: about {needed_text} of tables are expected, but only {free} are \
             free; {remedy}"
        ));
    }
    Ok(())
}

/// Returns a warning if a process without a memory bound is expected to need more memory than is
/// free.
fn memory_warning(needed_bytes: u64, free: u64) -> Option<String> {
    let bound = free / 4 * 3;
    (needed_bytes > free).then(|| {
        format!(
            "warning: about {} of memory are expected to be needed, but only {} are free; use --set \
             effort.memory_bytes={bound}, which spills the rest to the local disk",
            size(needed_bytes),
            size(free)
        )
    })
}

fn check_against_bound(counts: &CrawlCounts, job: &Job, machines: &Machines) -> Result<()> {
    check_minimum_against_bound(memory::required_bytes(job, counts, machines).0, "a sample of its input", job)
}

fn check_minimum_against_bound(needed_bytes: u64, setting: &str, job: &Job) -> Result<()> {
    let allowed_bytes = job.effort.memory_bytes;
    if allowed_bytes == 0 || needed_bytes <= allowed_bytes {
        return Ok(());
    }
    Err(too_little(format!("the run, by {setting}"), needed_bytes, allowed_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use webtwin_job::Effort;
    use webtwin_plan::sample::DomainSize;

    #[test]
    fn rejects_jobs_beyond_the_disk_and_warns_of_possible_ones() {
        let refused = check_disk(3 << 30, 1 << 30, "out").unwrap_err();
        assert_eq!(refused.exit_code(), 9);
        assert!(refused.to_string().contains("1.0 GiB are free: 3.0 GiB or more needed; free some space"), "{refused}");
        assert!(check_disk(3 << 30, 2 << 30, "out").is_ok() && check_disk(0, 0, "out").is_ok());
        assert_eq!(memory_warning(1 << 30, 2 << 30), None);
        let warned = memory_warning(8 << 30, 4 << 30).unwrap();
        assert!(warned.contains("8.0 GiB") && warned.contains("effort.memory_bytes=3221225472"), "{warned}");
    }

    #[test]
    fn warns_of_too_many_pages_and_of_more_workers_than_partitions() {
        let machines = Machines { count: 10, workers: 8, network: 1e9, disk: 1e9, latency: 0.0 };
        let job = Job::default();
        let plan_of =
            |pages: u64| Plan { counts: CrawlCounts::of_real_crawl(pages, &job), ..Plan::default() }.in_runs();
        let (runs, plan) = plan_of(10_000_000_000);
        assert_eq!((runs, plan.counts.held.pages), (3, 3_333_333_334));
        assert_eq!([MAX_PAGES, MAX_PAGES + 1].map(|pages| plan_of(pages).0), [1, 2]);
        let message = warnings(&job, runs, &machines);
        assert!(message[0].contains("needs 3 runs") && message[1].contains("output.partitions = 128"), "{message:?}");
        let url_bytes = 40_000_000;
        let domain = DomainSize { pages: 1_000_000, url_bytes };
        let counts = CrawlCounts { largest_domain: domain, ..plan.counts };
        let within = |memory_bytes: u64| {
            let bounded_job = Job { effort: Effort { memory_bytes, ..job.effort.clone() }, ..job.clone() };
            domain_warning(&bounded_job, &counts, 100_000_000)
        };
        assert_eq!([within(0), within(1 << 30)], [None, None]);
        assert!(within(300_000_000).unwrap().contains("some 1000000 pages"));
        let doubt_at = |share: f64| Plan { share, ..Plan::default() }.doubt_of_pairs();
        assert!(doubt_at(0.0).is_none() && doubt_at(0.02).is_none());
        assert!(doubt_at(0.0005).unwrap().starts_with("0.05 % of the crawl"));
        let single_machine = Machines { count: 1, workers: 2, ..machines };
        assert_eq!(warnings(&job, 1, &single_machine), Vec::<String>::new());
    }
}
