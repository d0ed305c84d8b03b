//! Context of a run after reading, on one worker, which every step receives.

use bytemuck::Pod;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::hamming::NearPair;
use super::memory_estimate::MemoryEstimate;
use super::reading::resume::Resume;
use super::reading::worker_pages::WorkerPages;
use super::shuffle::directory::TablePartitions;
use super::shuffle::memory::{agree, for_each_page};
use super::steps::{RunStep, StepInput, Steps};
use super::web::WorkerWeb;
use webtwin_base::error::Result;
use webtwin_engine::Net;
use webtwin_job::Job;
use webtwin_spill::SpillColumn;

/// Run on one worker.
pub struct WorkerRun<'r, 'n> {
    /// Connection to the other workers.
    pub net: &'r mut Net<'n>,
    /// Settings of the job.
    pub job: &'r Job,
    /// Pages that this worker has read.
    pub local_pages: &'r mut WorkerPages,
    /// Checkpoints of an interrupted or earlier run.
    pub resume: Option<&'r Resume>,
    /// Partitions of the tables.
    pub partitions: TablePartitions,
    /// Near pairs with earlier crawls, in a batch.
    pub earlier_pairs: Option<EarlierPairs>,
    steps: Steps<'r>,
}

/// Pairs with pages of earlier crawls, and the number of the first input that marks these pages.
pub struct EarlierPairs {
    /// Pairs of a page of an earlier crawl and a page of the new crawl whose simhashes are near.
    /// Each pair is held by any one worker.
    pub pairs: SpillColumn<NearPair>,
    /// Number of the first input of an earlier crawl. Pages of earlier crawls are kept, and no
    /// crawler is advised to skip them.
    pub first_source: u32,
}

impl<'r, 'n> WorkerRun<'r, 'n> {
    /// Creates a run over the given local pages. It writes no checkpoints until
    /// [`WorkerRun::begin_steps`] is called.
    pub fn new(
        net: &'r mut Net<'n>,
        job: &'r Job,
        local_pages: &'r mut WorkerPages,
        resume: Option<&'r Resume>,
    ) -> WorkerRun<'r, 'n> {
        let partitions = TablePartitions::new(job.output.partitions, net.peers());
        WorkerRun { net, job, local_pages, resume, partitions, earlier_pairs: None, steps: Steps::default() }
    }

    /// Starts to write checkpoints of the steps in `recorded_steps`, and restores those steps for
    /// which all workers have a checkpoint. `previous_attempt` is the attempt that wrote the result
    /// of `keep.sticky`.
    ///
    /// # Errors
    /// Returns any error of [`Steps::begin`].
    pub fn begin_steps(
        &mut self,
        web: &WorkerWeb,
        previous_attempt: Option<&str>,
        recorded_steps: &[RunStep],
    ) -> Result<()> {
        let input = StepInput { crawl: &web.crawl, local_pages: self.local_pages, links: &web.links, previous_attempt };
        self.steps = Steps::begin(self.net, self.resume, input, recorded_steps)?;
        Ok(())
    }

    /// Restores the result of a step from its checkpoint, or runs the step and writes its
    /// checkpoint.
    ///
    /// # Errors
    /// Returns any error of `take` and of [`Steps::restored`].
    pub fn recorded<T: Serialize + DeserializeOwned>(
        &mut self,
        web: &WorkerWeb,
        step: RunStep,
        take: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        if let Some(restored) = self.steps.restored(step)? {
            return Ok(restored);
        }
        let result = self.step(web, step, take)?;
        self.steps.record(step, &result);
        Ok(result)
    }

    /// Runs a step. Before the step, all workers agree on its memory budget, given what they hold.
    /// This takes one collective round if memory is limited.
    ///
    /// # Errors
    /// Returns any error of `take`, and an error if the run has ended.
    pub fn step<T>(&mut self, web: &WorkerWeb, step: RunStep, take: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let estimate = MemoryEstimate::with(self.local_pages, &web.crawl.pages, Some(&web.links));
        let unspillable = for_each_page(self.net, step.bytes_a_page, web.crawl.directory.len())
            + step.bytes_an_own_page * web.crawl.pages.len() as u64;
        agree(self.net, estimate.local_pages_bytes(), unspillable, &self.job.effort)?;
        take(self)
    }

    /// Returns the steps that were restored, the same on all workers.
    pub fn restored_steps(&self) -> Vec<RunStep> {
        self.steps.restored_steps.clone()
    }

    /// Stores rows for a later step in a column, which is spilled if memory is limited.
    ///
    /// # Errors
    /// Returns any error of the disk.
    pub fn spill_column<T: Pod>(&self, rows: Vec<T>) -> Result<SpillColumn<T>> {
        SpillColumn::from_rows(rows, &self.net.memory)
    }
}
