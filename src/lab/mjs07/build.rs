//! Building F from ready fingerprints: from a raw file to sorted chunks with doc ids.
//!
//! Kernel time is reported separately. The system spends it on clearing memory at first use and on
//! copying files to and from its cache, and it differs by a factor of ten between machines.

use super::super::made::fingerprints::unsorted;
use super::super::measure::{forget_peak_memory, median, seconds, user_and_kernel_seconds};
use super::super::{FigureRow, Options, figure};
use webtwin_base::build_info::peak_memory_bytes;
use webtwin_base::error::{Error, Result};
use webtwin_core::hamming::fingerprint_file::FingerprintManifest;
use webtwin_dataflow::hamming::build::{FingerprintInput, from_fingerprints};
use webtwin_engine::{ClusterLayout, run as run_on};
use webtwin_job::{Job, JobDigest, JobKind};
use webtwin_storage::location::Location;

/// Number of passes of each kind, in turn. The median counts.
const PASSES: usize = 3;

/// Memory in bytes per fingerprint with which a build writes most rows to disk and reads them
/// again.
const LITTLE_MEMORY: u64 = 8;

/// Resources that a pass used.
struct Took {
    clock_seconds: f64,
    in_user_mode: f64,
    in_kernel: f64,
    memory_bytes: u64,
}

/// Measures builds with one worker, with two, and with little memory.
pub(super) fn run(options: &Options) -> Result<Vec<FigureRow>> {
    let rows = options.scale;
    let path = |name: &str| options.work.join(name).display().to_string();
    let raw_bytes: Vec<u8> = unsorted(rows as usize, 1).into_iter().flat_map(u64::to_le_bytes).collect();
    Location::parse(&path("f.u64"))?.put(&raw_bytes)?;
    drop(raw_bytes);
    let job = |memory_bytes: u64| {
        let mut job = Job { kind: JobKind::Fingerprints, ..Job::default() };
        job.fingerprints.from = vec![path("f.u64")];
        job.output.url = path("f");
        job.effort.memory_bytes = memory_bytes;
        job
    };
    let kinds = [(1, job(0)), (2, job(0)), (2, job((160 << 20) + LITTLE_MEMORY * rows))];
    let mut times = [const { Vec::new() }; 3];
    let mut first: Option<FingerprintManifest> = None;
    // The kinds take turns, so that a change of the load of the machine affects all of them.
    for pass in 0..PASSES * kinds.len() {
        let (workers, job) = &kinds[pass % kinds.len()];
        let (build_costs, manifest) = build(*workers, job)?;
        times[pass % kinds.len()].push(build_costs);
        if first.get_or_insert_with(|| manifest.clone()) != &manifest {
            return Err(Error::Invariant("the same fingerprints made a different F".into()));
        }
    }
    let bytes: u64 = first.iter().flat_map(|manifest| &manifest.chunks).map(|chunk| chunk.bytes).sum();
    let median_of = |kind: usize, what: fn(&Took) -> f64| median(times[kind].iter().map(what).collect());
    let rate = |seconds: f64| rows as f64 / seconds / 1e6;
    let user = |kind| rate(median_of(kind, |took| took.in_user_mode));
    let processor = |kind| rate(median_of(kind, |took| took.in_user_mode + took.in_kernel));
    let clock = |kind| rate(median_of(kind, |took| took.clock_seconds));
    let memory = |kind| median_of(kind, |took| took.memory_bytes as f64 / 1e6);
    let unit = "million fingerprints a second";
    Ok(vec![
        figure("one worker, by its time in user mode", user(0), unit).at_least(30.0),
        figure("one worker, by processor time", processor(0), unit),
        figure("one worker, by the clock", clock(0), unit),
        figure("two workers, by the time of both in user mode", user(1), unit),
        figure("two workers, by processor time of both", processor(1), unit),
        figure("two workers, by the clock", clock(1), unit),
        figure("two workers against one, by the clock", clock(1) / clock(0), "times"),
        figure("two workers in little memory, by processor time of both", processor(2), unit),
        figure("two workers in little memory, by the clock", clock(2), unit),
        figure("peak memory", memory(1), "MB"),
        figure("peak memory where it is little", memory(2), "MB"),
        figure("F on disk", bytes as f64 / rows as f64, "bytes a fingerprint, with its doc id"),
    ])
}

/// Builds F and removes it again.
fn build(workers: usize, job: &Job) -> Result<(Took, FingerprintManifest)> {
    let folder = Location::parse(&job.output.url)?;
    folder.remove_all()?;
    forget_peak_memory();
    let cpu_before = user_and_kernel_seconds();
    let (digest, job, output) = (JobDigest::from_job(job).0, job.clone(), folder.clone());
    let (clock_seconds, build) = seconds(move || {
        let input = FingerprintInput::find(&job)?;
        run_on(&ClusterLayout::local(workers), 0, digest, move |net| from_fingerprints(net, &job, &input, &output))
    });
    let cpu_after = user_and_kernel_seconds();
    let (in_user_mode, in_kernel) = (cpu_after[0] - cpu_before[0], cpu_after[1] - cpu_before[1]);
    let costs = Took { clock_seconds, in_user_mode, in_kernel, memory_bytes: peak_memory_bytes() };
    let manifest = build?.swap_remove(0);
    folder.remove_all()?;
    Ok((costs, manifest))
}
