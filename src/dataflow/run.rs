//! A run after reading, on one worker: what every step is given.

use bytemuck::Pod;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::hamming::NearPair;
use super::memory_estimate::MemoryEstimate;
use super::reading::resume::Resume;
use super::reading::worker_pages::WorkerPages;
use super::shuffle::directory::TablePartitions;
use super::shuffle::memory::{agree, for_each_page};
use super::steps::{Seen, Step, Steps};
use super::web::Web;
use webtwin_base::error::Result;
use webtwin_engine::Net;
use webtwin_job::Job;
use webtwin_spill::Column;

/// A run on one worker.
pub struct Run<'r, 'n> {
    /// The other workers.
    pub net: &'r mut Net<'n>,
    /// What is asked for.
    pub job: &'r Job,
    /// What this worker has read.
    pub shelf: &'r mut WorkerPages,
    /// Records of an interrupted or earlier run.
    pub resume: Option<&'r Resume>,
    /// Partitions of the tables.
    pub partitions: TablePartitions,
    /// Earlier crawls, in a batch.
    pub earlier: Option<Earlier>,
    steps: Steps<'r>,
}

/// Pairs with pages of earlier crawls, and how these pages are recognised.
pub struct Earlier {
    /// Pairs of a page of theirs and one of the new crawl whose simhashes are near, with any worker.
    pub pairs: Column<NearPair>,
    /// Number of the first input that is one of theirs: their pages stay, and no crawler is told to skip them.
    pub first_source: u32,
}

impl<'r, 'n> Run<'r, 'n> {
    /// A run that has read the pages on the shelf, and records no steps yet.
    pub fn new(
        net: &'r mut Net<'n>,
        job: &'r Job,
        shelf: &'r mut WorkerPages,
        resume: Option<&'r Resume>,
    ) -> Run<'r, 'n> {
        let partitions = TablePartitions::new(job.output.partitions, net.peers());
        Run { net, job, shelf, resume, partitions, earlier: None, steps: Steps::default() }
    }

    /// Records the steps in `recorded` from here on, and restores those that all workers have on record; `earlier` is the attempt that
    /// made the result of `keep.sticky`.
    ///
    /// # Errors
    /// As [`Steps::begin`].
    pub fn begin_steps(&mut self, web: &Web, earlier: Option<&str>, recorded: &[Step]) -> Result<()> {
        let seen = Seen { crawl: &web.crawl, shelf: self.shelf, links: &web.links, earlier };
        self.steps = Steps::begin(self.net, self.resume, seen, recorded)?;
        Ok(())
    }

    /// Restores what a recorded step has found, or takes it and records it.
    ///
    /// # Errors
    /// Those of `take`; [`Steps::restored`].
    pub fn recorded<T: Serialize + DeserializeOwned>(
        &mut self,
        web: &Web,
        step: Step,
        take: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        if let Some(found) = self.steps.restored(step)? {
            return Ok(found);
        }
        let found = self.step(web, step, take)?;
        self.steps.record(step, &found);
        Ok(found)
    }

    /// Takes a step. Before it, all workers agree on its memory, beside what is held: one round where memory has a bound.
    ///
    /// # Errors
    /// Those of `take`; or when the run has ended.
    pub fn step<T>(&mut self, web: &Web, step: Step, take: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let held = MemoryEstimate::with(self.shelf, &web.crawl.pages, Some(&web.links));
        let unspillable = for_each_page(self.net, step.bytes_a_page, web.crawl.directory.len())
            + step.bytes_an_own_page * web.crawl.pages.len() as u64;
        agree(self.net, held.shelf_bytes(), unspillable, &self.job.effort)?;
        take(self)
    }

    /// Steps that were restored, the same on all workers.
    pub fn restored_steps(&self) -> Vec<Step> {
        self.steps.taken_up.clone()
    }

    /// Puts rows where they wait for a later step.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn set_aside<T: Pod>(&self, rows: Vec<T>) -> Result<Column<T>> {
        Column::of(rows, &self.net.memory)
    }
}
