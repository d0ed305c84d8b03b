//! The `replicas` job from end to end on one worker: read, find, write, commit.

use std::collections::BTreeMap;
use std::time::Instant;

use super::ingest::{ByInput, Queue, hold_against_max_bad, read};
use super::shelf::Shelf;
use super::summary::{Records, Summary};
use super::{find, write};
use crate::chunks::Recipe;
use crate::engine::Net;
use crate::error::{Error, Result};
use crate::job::{Digest, Job};
use crate::storage::location::Location;
use crate::storage::manifest::{FORMAT, Manifest};

/// Runs the job; every worker returns the same summary once the result is committed.
///
/// # Errors
/// Any of [`Error`], the same on all workers; then there is no manifest and so no result.
pub fn run(net: &mut Net<'_>, job: &Job, queue: &Queue, folder: &Location) -> Result<Summary> {
    let mut seconds = BTreeMap::new();
    let mut start = Instant::now();
    let mut lap = |stage: &str| {
        seconds.insert(stage.to_string(), (start.elapsed().as_secs_f64() * 1000.0).round() / 1000.0);
        start = Instant::now();
    };
    let shelf = read(net, queue, job);
    let mut shelf = net.agree("reading", shelf)?;
    lap("1 read");

    let floors = floors(net, &shelf, queue)?;
    let mut found = find(net, job, &mut shelf, &floors)?;
    lap("2 find");
    let (records, by_input) = account(net, &shelf, &found, queue)?;
    let held = hold_against_max_bad(&by_input, &queue.work.inputs, job.input.max_bad);
    net.agree("bad records", held)?;
    let told: u64 = records.rejected.values().sum();
    if records.read != records.kept + told {
        let Records { read, kept, .. } = records;
        return Err(Error::Invariant(format!("read {read} records, but kept {kept} and rejected {told}")));
    }
    found.summary.records = records;

    let rejections = std::mem::take(&mut shelf.rejections);
    let partitions = job.output.partitions as usize;
    let files = write::result(net, folder, &found, &queue.work.inputs, rejections, partitions)?;
    lap("3 write");

    let committed = if net.index() > 0 {
        Ok(())
    } else {
        let mut attempt = [0u8; 16];
        getrandom::fill(&mut attempt).map_err(|cause| Error::Invariant(format!("no random numbers: {cause}")))?;
        let recipe = Recipe::new(&job.chunks).name();
        Manifest {
            format: FORMAT,
            attempt: attempt.iter().map(|byte| format!("{byte:02x}")).collect(),
            digest: Digest::of(job).hex(),
            job: serde_json::to_value(job).expect("a job is plain values"),
            recipes: BTreeMap::from([("chunks".into(), recipe), ("doc_id".into(), "xxh3-64-v1".into())]),
            build: crate::build::VERSION.into(),
            workers: net.peers() as u64,
            seconds,
            peak_memory_bytes: crate::build::peak_memory_bytes(),
            files,
        }
        .commit(folder)
    };
    net.agree("commit", committed)?;
    Ok(found.summary)
}

/// The offset from which the records of each work item are true, in every worker.
fn floors(net: &mut Net<'_>, shelf: &Shelf, queue: &Queue) -> Result<Vec<u64>> {
    let mut items: Vec<_> = net.all_gather("ends of items", shelf.items.clone())?.into_iter().flatten().collect();
    items.sort_unstable_by_key(|item| item.0);
    let ends: Vec<_> = items.into_iter().map(|item| item.1).collect();
    Ok(queue.work.floors(&ends))
}

/// Records by what became of them, over all workers, and the bad ones by input.
fn account(net: &mut Net<'_>, shelf: &Shelf, found: &super::Found, queue: &Queue) -> Result<(Records, ByInput)> {
    let mut by_input = ByInput::new();
    for (item, end) in &shelf.items {
        by_input.entry(queue.work.items[*item as usize].input).or_default().0 += end.records;
    }
    let mut rejected: BTreeMap<String, u64> = BTreeMap::new();
    for rejection in &shelf.rejections {
        *rejected.entry(rejection.reason.word().into()).or_default() += 1;
        if rejection.reason.is_bad() {
            *by_input.entry(rejection.source).or_default().1.entry(rejection.reason).or_default() += 1;
        }
    }
    let mended: BTreeMap<String, u64> = shelf.mended.iter().map(|(reason, n)| (reason.word().into(), *n)).collect();
    let read: u64 = shelf.items.iter().map(|item| item.1.records).sum();
    let mine = (read, found.crawl.overlapping, found.crawl.pages.len() as u64, rejected, mended, by_input);
    let (mut records, mut all_inputs) = (Records::default(), ByInput::new());
    let mut twice = 0;
    for (read, overlapping, kept, rejected, mended, by_input) in net.all_gather("records", mine)? {
        records.read += read;
        twice += overlapping;
        records.kept += kept;
        rejected.into_iter().for_each(|(reason, n)| *records.rejected.entry(reason).or_default() += n);
        mended.into_iter().for_each(|(reason, n)| *records.mended.entry(reason).or_default() += n);
        for (input, (read, reasons)) in by_input {
            let all = all_inputs.entry(input).or_default();
            all.0 += read;
            reasons.into_iter().for_each(|(reason, n)| *all.1.entry(reason).or_default() += n);
        }
    }
    records.read -= twice;
    Ok((records, all_inputs))
}
