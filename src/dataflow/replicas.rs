//! Runs the `replicas` job on one worker: read, find, write, commit.

use std::collections::{BTreeMap, BTreeSet};

use super::find::find;
use super::run::WorkerRun;
use super::sinks::found::ReplicaTables;
use super::sinks::{stage, write};
use crate::reading::captures::Crawl;
use crate::reading::ingest::{Queue, damage, read};
use crate::reading::least_pages::LeastPages;
use crate::reading::revisits::Referrals;
use crate::reading::worker_pages::WorkerPages;
use crate::reading::{revisits, segments};
use crate::shuffle::memory;
use crate::sinks::summary::{RecordTotals, RunSummary};
use webtwin_base::error::{Error, Result};
use webtwin_base::progress::StageTimes;
use webtwin_engine::Net;
use webtwin_job::{Effort, Job, JobDigest, Measure};
use webtwin_pages::damage::Damage;
use webtwin_pages::helper;
use webtwin_pages::record::Reason;
use webtwin_pages::warc::RangeEnd;
use webtwin_pages::work_items::WorkList;
use webtwin_storage::location::Location;

/// Runs the job. Every worker returns the same summary after the result is committed.
///
/// # Errors
/// Returns any [`Error`], the same on all workers; no manifest and therefore no result exists then.
pub fn run(net: &mut Net<'_>, job: &Job, queue: &Queue, folder: &Location) -> Result<RunSummary> {
    Ok(run_listing_originals(net, job, queue, folder, false, None)?.0)
}

/// Data of earlier crawls that a crawl needs.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct EarlierNeeds {
    /// Files that contain the originals of pages that are kept, or through which these originals
    /// were found; ascending by name.
    pub files: Vec<String>,
    /// True if the crawl has any revisits.
    pub has_revisits: bool,
}

/// Runs the job like [`run`], and also returns the data of earlier crawls that the crawl needs. If
/// the user did not name the earlier crawls (`are_implied`), the result equals the result of a job
/// that names the files that it needs. A crawl with fewer pages than `floor` is refused before the
/// steps after reading.
///
/// # Errors
/// Returns any error of [`run`], and [`Error::TooFewPages`].
pub fn run_listing_originals(
    net: &mut Net<'_>,
    job: &Job,
    queue: &Queue,
    folder: &Location,
    are_implied: bool,
    floor: Option<&LeastPages>,
) -> Result<(RunSummary, EarlierNeeds)> {
    let mut stage_times = StageTimes::start();
    let CrawlInput { mut local_pages, floors, ghostscript, referrals, has_revisits } = read_crawl(net, job, queue)?;
    stage_times.end_stage("1 read");

    queue.progress.enter("finding");
    let mut tables = find(&mut WorkerRun::new(net, job, &mut local_pages, queue.resume.as_ref()), &floors, floor)?;
    stage_times.end_stage("2 find");

    let files = match queue.work.has_originals() {
        true => files_of(&queue.work, &originals(net, &tables.crawl, referrals, &queue.work)?),
        false => Vec::new(),
    };
    let mut job = job.clone();
    if are_implied {
        job.input.originals = files.clone();
        tables.summary.digest = JobDigest::from_job(&job).hex();
    }
    queue.progress.enter("writing");
    let sources = queue.work.inputs.clone();
    let summary = write(
        net,
        &job,
        queue,
        folder,
        RunResult { tables, local_pages, sources, ghostscript, stage: "3 write" },
        stage_times,
    )?;
    Ok((summary, EarlierNeeds { files, has_revisits }))
}

/// State of a run that has only its files left to write.
pub(super) struct RunResult {
    /// Tables of the run.
    pub(super) tables: ReplicaTables,
    /// Rest of the data that this worker has read: rejected records, and the work items that it
    /// read.
    pub(super) local_pages: WorkerPages,
    /// Names of the inputs by their numbers: the inputs of the queue, and in a batch those of
    /// earlier crawls.
    pub(super) sources: Vec<String>,
    /// Version of Ghostscript, see [`CrawlInput::ghostscript`].
    pub(super) ghostscript: Option<String>,
    /// Name of this stage in `manifest.seconds`.
    pub(super) stage: &'static str,
}

/// Accounts for the records read, writes the files of a run, and commits it.
///
/// # Errors
/// Returns any error of [`account`] and of the store.
pub(super) fn write(
    net: &mut Net<'_>,
    job: &Job,
    queue: &Queue,
    folder: &Location,
    result: RunResult,
    mut stage_times: StageTimes,
) -> Result<RunSummary> {
    let RunResult { mut tables, mut local_pages, sources, ghostscript, stage } = result;
    tables.summary.records = account(net, &local_pages, &tables.crawl, &queue.work)?;
    let rejections = std::mem::take(&mut local_pages.rejections);
    let staged = write::result(net, folder, &mut tables, &sources, rejections, job)?;
    stage_times.end_stage(stage);

    let mut recipes =
        vec![("chunks", job.chunks.recipe()), ("doc_id", "xxh3-64-v1".into()), ("simhash", job.simhash.recipe())];
    if job.similar.by == Measure::Signatures {
        recipes.push(("signatures", job.signatures.recipe()));
    }
    if job.similar.by == Measure::Minhash {
        recipes.push(("minhash", job.minhash.recipe()));
    }
    recipes.extend(job.input.pdf_recipe().map(|recipe| ("pdf", recipe)));
    recipes.extend(
        ghostscript
            .filter(|version| !version.is_empty())
            .map(|version| ("postscript", format!("ghostscript-{version}"))),
    );
    stage::commit(net, job, &counts(&tables.summary), &recipes, stage_times, staged)?;
    Ok(tables.summary)
}

/// Data that one worker has after reading a crawl.
pub struct CrawlInput {
    /// Pages that this worker has read.
    pub local_pages: WorkerPages,
    /// Offset from which the records of each work item are valid.
    pub floors: Vec<u64>,
    /// Version of Ghostscript that PostScript was read with, if there was any PostScript. Empty if
    /// Ghostscript is not installed.
    pub ghostscript: Option<String>,
    /// References of the revisits of this worker.
    pub referrals: Referrals,
    /// True if any worker has read revisits.
    pub has_revisits: bool,
}

/// Report of a worker after reading: its process, the ends of its work items, the version of
/// Ghostscript, and the numbers of rows in segments and of revisits.
type WorkerFacts = (u64, Vec<(u32, RangeEnd)>, Option<String>, [u64; 2]);

/// Reads the crawl of a job.
///
/// # Errors
/// Returns any error of [`read`], the same on all workers, and [`Error::TooManyBad`]. Returns
/// [`Error::Input`] if processes see different inputs, [`Error::Setting`] if they would cut the
/// inputs into different work items, and [`Error::Handshake`] if they read PostScript with
/// different versions of Ghostscript.
pub fn read_crawl(net: &mut Net<'_>, job: &Job, queue: &Queue) -> Result<CrawlInput> {
    // The first worker that arrives sets the traffic for all workers of its process.
    let _ = queue.progress.traffic.set(net.traffic());
    same_inputs(net, queue, &job.effort)?;
    net.memory = memory::remaining_budget(net, 0, &job.effort);
    let mut local_pages = read(net, queue, job)?;
    let pending_counts = [local_pages.segments.len() as u64, local_pages.revisits.len() as u64];
    let own_facts: WorkerFacts =
        (net.process() as u64, local_pages.items.clone(), helper::ghostscript().map(str::to_owned), pending_counts);
    let message = net.all_gather("outcome of reading", own_facts)?;
    let mut ghostscript = same_ghostscript(message.iter().map(|worker| (worker.0, worker.2.as_ref())))?.cloned();
    let [segments, revisits] = [0, 1].map(|of| message.iter().any(|worker| worker.3[of] > 0));
    let floors = floors(message.into_iter().flat_map(|worker| worker.1).collect(), queue);
    local_pages.redirects.retain(|row| row.offset >= floors[row.item as usize]);
    local_pages.addresses.retain(|row| row.offset >= floors[row.item as usize]);
    // Segments come before revisits, because a revisit may refer to a record in segments.
    if segments {
        segments::resolve(net, &mut local_pages, queue, job, &floors)?;
    }
    let mut referrals = Referrals::new();
    if revisits || segments {
        referrals = revisits::resolve(net, &mut local_pages, &queue.work, job, &floors)?;
        // Resolving may have read records again, and with them PostScript.
        let message =
            net.all_gather("Ghostscript", (net.process() as u64, helper::ghostscript().map(str::to_owned)))?;
        ghostscript = same_ghostscript(message.iter().map(|worker| (worker.0, worker.1.as_ref())))?.cloned();
    } else {
        local_pages.names = Vec::new();
    }
    leave_originals(&mut local_pages, &queue.work)?;
    bad_records(net, &local_pages, &floors, queue, job)?;
    Ok(CrawlInput { local_pages, floors, ghostscript, referrals, has_revisits: revisits })
}

/// Returns the files of the given inputs, ascending by name.
fn files_of(work: &WorkList, inputs: &BTreeSet<u32>) -> Vec<String> {
    let names: BTreeSet<&str> = inputs.iter().map(|&input| work.file_of(input)).collect();
    names.into_iter().map(str::to_string).collect()
}

/// Returns the numbers of the inputs of earlier crawls without which a page of any worker would
/// lack its content: the inputs that contain the content, and the inputs of revisits through which
/// it was found.
fn originals(net: &mut Net<'_>, crawl: &Crawl, mut referrals: Referrals, work: &WorkList) -> Result<BTreeSet<u32>> {
    referrals.retain(|[_, to]| work.is_original(*to));
    let mut own_inputs = BTreeSet::new();
    crawl.pages.for_each(|page| {
        let rare_fields = page.rare_fields();
        let places =
            rare_fields.segments.iter().map(|place| place.0).chain(rare_fields.original.map(|place| place.source));
        own_inputs.extend(places.filter(|&input| work.is_original(input)));
    })?;
    let (mut needed_inputs, mut all_referrals) = (BTreeSet::new(), Referrals::new());
    for (inputs, referrals) in net.all_gather("inputs with originals", (own_inputs, referrals))? {
        needed_inputs.extend(inputs);
        all_referrals.extend(referrals);
    }
    // Referrals form chains, so inputs are added until no needed input refers to another one.
    loop {
        let is_needed = |input: u32| !work.is_original(input) || needed_inputs.contains(&input);
        let led_to = all_referrals.iter().filter(|[from, to]| is_needed(*from) && !is_needed(*to)).map(|pair| pair[1]);
        let further_inputs: Vec<u32> = led_to.collect();
        if further_inputs.is_empty() {
            return Ok(needed_inputs);
        }
        needed_inputs.extend(further_inputs);
    }
}

/// Drops the records of earlier crawls from the local pages. Revisits have copied the content that
/// they need by now.
fn leave_originals(local_pages: &mut WorkerPages, work: &WorkList) -> Result<()> {
    if !work.has_originals() {
        return Ok(());
    }
    let is_of_this_crawl = |input: u32| !work.is_original(input);
    local_pages.captures.rewrite(|row| is_of_this_crawl(row.source))?;
    local_pages.redirects.retain(|row| is_of_this_crawl(row.source));
    local_pages.addresses.retain(|row| is_of_this_crawl(work.items[row.item as usize].input));
    local_pages.rejections.retain(|row| is_of_this_crawl(row.source))?;
    local_pages.items.retain(|(item, _)| is_of_this_crawl(work.items[*item as usize].input));
    local_pages.drop_slots_without_captures()
}

/// Returns the version of Ghostscript that the workers of all processes have used.
///
/// # Errors
/// Returns [`Error::Handshake`] unless all processes that read PostScript use the same version.
/// Otherwise the result would depend on which process reads which record.
fn same_ghostscript<'a>(message: impl Iterator<Item = (u64, Option<&'a String>)>) -> Result<Option<&'a String>> {
    let mut versions = message.filter_map(|(process, version)| Some((process, version?)));
    let Some((first, version)) = versions.next() else { return Ok(None) };
    match versions.find(|other| other.1 != version) {
        None => Ok(Some(version)),
        Some((other, another)) => Err(Error::Handshake(format!(
            "process {first} reads PostScript with Ghostscript {version:?}, process {other} with {another:?}; \
             install the same version, or set input.printed = \"pdf\""
        ))),
    }
}

/// Returns the numbers of a summary that its manifest repeats.
fn counts(summary: &RunSummary) -> [(&'static str, u64); 10] {
    let RunSummary { overlap, hamming, signatures, minhash, given: given_counts, .. } = summary;
    let signature_pairs = signatures.collisions - signatures.guarded;
    let shingle_pairs = minhash.similar - minhash.guarded;
    let separated = summary.apart.as_ref().map_or(0, |apart| apart.refused_similar);
    let (given_pairs, within_sites) =
        (given_counts.map_or(0, |given| given.similar - given.guarded), summary.views.total());
    let pair_count = overlap.similar - overlap.guarded
        + hamming.similar
        + signature_pairs
        + shingle_pairs
        + given_pairs
        + within_sites;
    let similar = pair_count - separated - summary.editions.refused_similar;
    [
        ("records", summary.records.read),
        ("pages", summary.records.kept),
        ("hosts", summary.hosts),
        ("links", summary.links),
        ("similar_pairs", similar),
        ("trivial_clusters", summary.trivial_clusters),
        ("similar_clusters", summary.similar_clusters),
        ("collections", summary.collections),
        ("skip_pages", summary.skip.pages),
        ("skip_bytes", summary.skip.bytes),
    ]
}

/// Returns the offset from which the records of each work item are valid. `items` are the work
/// items of all workers with their ends.
fn floors(mut items: Vec<(u32, RangeEnd)>, queue: &Queue) -> Vec<u64> {
    items.sort_unstable_by_key(|item| item.0);
    let ends: Vec<_> = items.into_iter().map(|item| item.1).collect();
    queue.work.floors(&ends)
}

/// Fails unless all processes see the same inputs and cut them into the same work items; otherwise
/// records would be lost or read twice. Also fails unless all processes limit memory or none does,
/// because processes with a limit take part in additional collective calls about what they hold.
fn same_inputs(net: &mut Net<'_>, queue: &Queue, effort: &Effort) -> Result<()> {
    let process = net.process() as u64;
    let (settings, inputs) = ((effort.shard_bytes, effort.memory_bytes), queue.work.inputs.len() as u64);
    let views = net.all_gather("inputs", (process, settings, queue.work.fingerprint(), inputs))?;
    let (shard_bytes, memory_bytes) = views[0].1;
    let other = |process: &u64, setting: &str, value: &u64, expected: String| {
        let (file, setting) = (format!("process {process}"), setting.into());
        Err(Error::Setting { file, setting, got: value.to_string(), must_be: expected })
    };
    if let Some((process, (value, _), ..)) = views.iter().find(|view| view.1.0 != shard_bytes) {
        let expected = format!("{shard_bytes} as in process 0, because all processes divide the input alike");
        return other(process, "effort.shard_bytes", value, expected);
    }
    if let Some((process, (_, value), ..)) = views.iter().find(|view| (view.1.1 > 0) != (memory_bytes > 0)) {
        let expected = format!("{memory_bytes} as in process 0, because memory is limited in all processes or in none");
        return other(process, "effort.memory_bytes", value, expected);
    }
    match views.iter().find(|view| view.2 != views[0].2) {
        None => Ok(()),
        Some((process, .., inputs)) => Err(Error::Input {
            input: format!("of process {process}"),
            reason: format!(
                "{inputs} files differ from the {} files of process 0 in number, name or length; give all processes \
                the same input",
                views[0].3
            ),
        }),
    }
}

/// Fails if an input has too many damaged records.
fn bad_records(net: &mut Net<'_>, local_pages: &WorkerPages, floors: &[u64], queue: &Queue, job: &Job) -> Result<()> {
    let mut damage_by_input: BTreeMap<u32, Damage> = BTreeMap::new();
    for (input, worker_damage) in net.all_gather("bad records", damage(local_pages, floors)?)?.into_iter().flatten() {
        damage_by_input.entry(input).or_default().add(worker_damage);
    }
    damage_by_input.iter().try_for_each(|(&input, input_damage)| {
        input_damage.check_against(job.input.max_bad, &queue.work.inputs[input as usize], queue.work.bytes(input))
    })
}

/// Counts records by their outcome over all workers.
///
/// # Errors
/// Returns [`Error::Invariant`] if the counts do not add up.
pub(super) fn account(
    net: &mut Net<'_>,
    local_pages: &WorkerPages,
    crawl: &Crawl,
    work: &WorkList,
) -> Result<RecordTotals> {
    let records_read = local_pages.items.iter().map(|item| item.1.records).sum();
    let mut own_totals = RecordTotals { read: records_read, ..RecordTotals::default() };
    for rejection in local_pages.rejections.rows() {
        let rejection = rejection?;
        *own_totals.rejected.entry(rejection.reason.as_str().into()).or_default() += 1;
        own_totals.bytes.rejected += rejection.bytes;
        if rejection.reason == Reason::Truncated {
            own_totals.torn.insert(work.inputs[rejection.source as usize].clone(), rejection.offset);
        }
    }
    let inputs = work.inputs.len() as u32;
    crawl.pages.for_each(|page| {
        // Pages of earlier crawls are not records of this crawl.
        own_totals.kept += u64::from(page.source < inputs);
        for reason in page.rare_fields().repaired {
            *own_totals.repaired.entry(reason.as_str().into()).or_default() += 1;
        }
    })?;
    let (mut records, mut read_twice) = (RecordTotals::default(), 0);
    for (part, overlapping) in net.all_gather("records", (own_totals, crawl.overlapping))? {
        read_twice += overlapping;
        records.read += part.read;
        records.kept += part.kept;
        records.bytes.rejected += part.bytes.rejected;
        part.rejected.into_iter().for_each(|(reason, n)| *records.rejected.entry(reason).or_default() += n);
        part.repaired.into_iter().for_each(|(reason, n)| *records.repaired.entry(reason).or_default() += n);
        for (input, offset) in part.torn {
            let last = records.torn.entry(input).or_default();
            *last = offset.max(*last);
        }
    }
    records.read -= read_twice;
    records.bytes.read =
        (0..work.inputs.len() as u32).filter(|&input| !work.is_original(input)).map(|input| work.bytes(input)).sum();
    // Offsets within compressed members are estimates, so the sum may exceed the bytes read.
    records.bytes.rejected = records.bytes.rejected.min(records.bytes.read);
    records.bytes.kept = records.bytes.read - records.bytes.rejected;
    let message: u64 = records.rejected.values().sum();
    if records.read != records.kept + message {
        let RecordTotals { read: records_read, kept: records_kept, .. } = records;
        return Err(Error::Invariant(format!(
            "read {records_read} records, but kept {records_kept} and rejected {message}"
        )));
    }
    Ok(records)
}
