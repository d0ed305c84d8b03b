//! Checkpoints of steps, with which an interrupted run continues after the last finished step.
//!
//! Each worker writes its own part of a checkpoint ([`webtwin_storage::step_records`]) and restores
//! its own part. Later steps then see the same data as in an uninterrupted run only if a part does
//! not depend on which workers restore and which recompute. So a step is either restored by all
//! workers, from checkpoints of the same run, or by none. A checkpoint matches a step only if job,
//! build and number of workers are the same, and if the digest of the input of the steps is the
//! same: pages, texts and links of all workers, and the earlier result that they use.

use std::io::BufWriter;
use std::sync::atomic::Ordering;

use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::Xxh3;

use super::clusters::links::WorkerLinks;
use super::reading::capture_rows::Numbers;
use super::reading::captures::Crawl;
use super::reading::resume::Resume;
use super::reading::worker_pages::WorkerPages;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{Page, splitmix64};
use webtwin_engine::Net;
use webtwin_storage::step_records::{StepRecords, StepStamp};

/// Step of a run, declared in the file that implements it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunStep {
    /// Name of the step in messages, manifests and file names.
    pub name: &'static str,
    /// Bytes that the step takes in each process for each page of the crawl, even if everything
    /// else is on disk.
    pub bytes_a_page: u64,
    /// Bytes that the step takes in addition for each page that the process owns.
    pub bytes_an_own_page: u64,
}

impl RunStep {
    /// Declares a step that can spill everything that grows with the crawl.
    pub const fn named(name: &'static str) -> RunStep {
        RunStep { name, bytes_a_page: 0, bytes_an_own_page: 0 }
    }
}

/// Steps of a run, some of which an earlier run may have finished. By default no step writes a
/// checkpoint.
#[derive(Default)]
pub struct Steps<'a> {
    recording: Option<Recording<'a>>,
    /// Steps that were restored from checkpoints, the same on all workers.
    pub restored_steps: Vec<RunStep>,
}

struct Recording<'a> {
    resume: &'a Resume,
    records: StepRecords,
    stamp: StepStamp,
    /// True on the first of all workers.
    is_first: bool,
    /// Steps for which all workers have a checkpoint.
    ready: Vec<RunStep>,
}

/// Input of the steps of a worker.
pub struct StepInput<'a> {
    /// Pages of the worker.
    pub crawl: &'a Crawl,
    /// Texts of these pages.
    pub local_pages: &'a WorkerPages,
    /// Links from these pages.
    pub links: &'a WorkerLinks,
    /// Attempt that wrote the earlier result of `keep.sticky`, if there is one.
    pub previous_attempt: Option<&'a str>,
}

/// Digest of a worker's input, a random number for its run, and its checkpoints: name of the step,
/// digest of the input and number of the run.
type RecordedSteps = (u64, u64, Vec<(String, u64, u64)>);

impl<'a> Steps<'a> {
    /// Prepares the checkpoints of the steps that follow after pages are numbered and links
    /// resolved. Only the steps in `recorded_steps` have checkpoints. No checkpoints are written
    /// unless all processes have a place for them.
    ///
    /// Takes one exchange. Every existing checkpoint is read once to verify that it is complete.
    ///
    /// # Errors
    /// Returns any error of the disk, on which fingerprints of texts may be, and an error if the
    /// run has ended.
    pub fn begin(
        net: &mut Net<'_>,
        resume: Option<&'a Resume>,
        input: StepInput<'_>,
        recorded_steps: &[RunStep],
    ) -> Result<Steps<'a>> {
        let store_and_records = resume.and_then(|resume| Some((resume, resume.store.steps(net.index(), net.peers())?)));
        let own_steps: Option<RecordedSteps> = match &store_and_records {
            None => None,
            Some((_, records)) => {
                let step_stamps = recorded_steps.iter().filter_map(|step| {
                    let StepStamp { input_digest, run } = records.stamp(step.name)?;
                    Some((step.name.to_string(), input_digest, run))
                });
                Some((input.digest()?, random()?, step_stamps.collect()))
            }
        };
        let worker_steps: Option<Vec<RecordedSteps>> =
            net.all_gather("steps with checkpoints", own_steps)?.into_iter().collect();
        let (Some(all_steps), Some((resume, records))) = (worker_steps, store_and_records) else {
            return Ok(Steps::default());
        };
        let input_digest = all_steps.iter().fold(0u64, |sum, known| sum.wrapping_add(known.0));
        let stamp = StepStamp { input_digest, run: all_steps[0].1 };
        let recorded_run = |worker: &RecordedSteps, step: &RunStep| {
            worker.2.iter().find(|found| found.0 == step.name && found.1 == input_digest).map(|found| found.2)
        };
        let is_complete = |step: &RunStep| {
            let run = recorded_run(&all_steps[0], step);
            run.is_some() && all_steps.iter().all(|known| recorded_run(known, step) == run)
        };
        let ready = recorded_steps.iter().copied().filter(is_complete).collect();
        let is_first = net.position().is_first();
        Ok(Steps { recording: Some(Recording { resume, records, stamp, is_first, ready }), restored_steps: Vec::new() })
    }

    /// Returns the result of a step of this worker in an earlier run, if all workers have a
    /// checkpoint of the step.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] if a checkpoint cannot be read that was readable when the run
    /// began.
    pub fn restored<T: DeserializeOwned>(&mut self, step: RunStep) -> Result<Option<T>> {
        let Some(Recording { resume, records, is_first, ready, .. }) = &self.recording else { return Ok(None) };
        if !ready.contains(&step) {
            return Ok(None);
        }
        let read_error = |cause: String| Error::storage(format!("checkpoint of step \"{}\"", step.name), cause);
        let from = records.read(step.name).map_err(|cause| read_error(cause.to_string()))?;
        let result = bincode::deserialize_from(from).map_err(|cause| read_error(cause.to_string()))?;
        self.restored_steps.push(step);
        if *is_first {
            resume.steps().taken_up.push(step.name);
        }
        Ok(Some(result))
    }

    /// Writes the checkpoint of a step of this worker. If a checkpoint cannot be written, no more
    /// checkpoints are written; the run continues.
    pub fn record<T: Serialize>(&self, step: RunStep, result: &T) {
        let Some(Recording { resume, records, stamp, is_first, .. }) = &self.recording else { return };
        if resume.gave_up.load(Ordering::Relaxed) {
            return;
        }
        let written = records.write(step.name, *stamp, |to| {
            let mut to = BufWriter::with_capacity(1 << 16, to);
            bincode::serialize_into(&mut to, result)
                .map_err(|cause| Error::storage("records", cause))
                .and_then(|()| std::io::Write::flush(&mut to).map_err(|cause| Error::storage("records", cause)))
        });
        match written {
            Ok(()) if *is_first => resume.steps().recorded.push(step.name),
            Ok(()) => {}
            Err(_) => resume.gave_up.store(true, Ordering::Relaxed),
        }
    }
}

fn random() -> Result<u64> {
    let id = webtwin_storage::output::random_id()?;
    Ok(xxhash_rust::xxh3::xxh3_64(id.as_bytes()))
}

impl StepInput<'_> {
    /// Returns the digest of this worker's part of the input. The sum of the digests over all
    /// workers does not depend on how the input is distributed.
    ///
    /// # Errors
    /// Returns any error of the disk, on which fingerprints of texts may be.
    ///
    /// # Cost
    /// Takes one pass over the fingerprints of texts and the links, at some gigabytes per second.
    fn digest(&self) -> Result<u64> {
        let &StepInput { crawl, local_pages, links, previous_attempt } = self;
        let mut sum = 0u64;
        let mut add = |parts: &[&[u8]]| {
            let mut hash = Xxh3::new();
            parts.iter().for_each(|part| hash.update(part));
            sum = sum.wrapping_add(hash.digest());
        };
        crawl.pages.for_each(|row| {
            let simhash = row.simhash().map_or([0, 0], |simhash| [1, simhash]);
            let Numbers { doc_id, fetch_time, body, body_bytes, text_bytes, chunks, exact, page, .. } = row.numbers();
            let numbers = [
                [u64::from(page.0), doc_id, fetch_time as u64, body, body_bytes],
                [text_bytes, u64::from(chunks), exact, simhash[0], simhash[1]],
            ];
            // Each text ends with a byte that occurs in no text.
            let texts = [row.url(), row.title(), row.mime()].map(|text| [text.as_bytes(), &[0xff]]);
            let projected = row.rare_fields().projected;
            add(&[bytemuck::cast_slice(&numbers), &texts.concat().concat(), bytemuck::cast_slice(&projected)]);
        })?;
        let mut fprints = local_pages.fprints.reader();
        for (slot, page) in local_pages.kept() {
            add(&[&page.0.to_le_bytes(), bytemuck::cast_slice(fprints.get(slot)?)]);
        }
        add(&[previous_attempt.unwrap_or_default().as_bytes()]);
        let link_digest = |(src, dst): (Page, Page)| splitmix64(u64::from(src.0) << 32 | u64::from(dst.0));
        for block in links.blocks() {
            sum = block?.into_iter().map(link_digest).fold(sum, u64::wrapping_add);
        }
        Ok(sum)
    }
}
