//! Files of a crawl that are read into a state before a scheduled run names them as its inputs.

use std::path::Path;
use std::sync::Arc;

use super::recrawl::{ahead_serving, serves};
use webtwin_base::console::notify;
use webtwin_base::error::Result;
use webtwin_dataflow::reading::ingest::{Queue, read};
use webtwin_dataflow::reading::resume::Resume;
use webtwin_engine::{ClusterLayout, run as run_on};
use webtwin_job::{Job, JobDigest, JobKind};
use webtwin_pages::helper;
use webtwin_pages::work_items::WorkList;
use webtwin_storage::location::Location;
use webtwin_storage::output;
use webtwin_storage::records::RecordStore;
use webtwin_storage::state::{JobState, StateRecords};

/// Reads complete files of a crawl into a state, as `webtwin run --state` would.
pub(super) struct Reader {
    state: JobState,
    job: Job,
    reading: String,
}

impl Reader {
    /// Creates a reader for the state in a folder, with the settings of a job.
    ///
    /// # Errors
    /// Returns [`Error::Storage`](webtwin_base::error::Error::Storage) when the folder cannot be written.
    pub(super) fn new(folder: &str, job: Job) -> Result<Reader> {
        let state = JobState::at(Location::parse(folder)?.into_folder());
        output::refuse_unwritable(state.folder(), "--state")?;
        // A scheduled job reads as the job that it is over its live inputs.
        let job = if job.kind == JobKind::Recrawl { Job { kind: JobKind::Replicas, ..job } } else { job };
        let reading = JobDigest::of_reading(&job).hex();
        Ok(Reader { state, job, reading })
    }

    /// Reads a file, unless the state has all records of it.
    ///
    /// # Errors
    /// Returns the errors of reading the file and of writing the state.
    ///
    /// # Cost
    /// As reading the file in a run with one worker.
    pub(super) fn read(&self, file: &Path) -> Result<()> {
        let mut job = self.job.clone();
        job.input.urls = vec![file.to_string_lossy().into_owned()];
        let work = WorkList::plan(&job.input, job.effort.shard_bytes)?;
        let previous =
            self.state.newest()?.filter(|before| serves(&before.reading, &before.ghostscript, &self.reading));
        let read_ahead = ahead_serving(&self.state, &self.reading)?;
        let records = Arc::new(StateRecords::new(&self.state, previous.as_ref(), read_ahead, &work.keys()));
        if records.found() == work.items.len() {
            return Ok(());
        }
        let resume = Resume::new(Arc::clone(&records) as Arc<dyn RecordStore>, &work);
        let queue = Queue::resuming(work, Some(resume));
        run_on(&ClusterLayout::local(1), 0, JobDigest::from_job(&job).0, move |net| read(net, &queue, &job).map(drop))?;
        self.state.add_ahead(&self.reading, helper::ghostscript().map(str::to_owned), &records)?;
        notify(format_args!("state: {} is read ahead", file.display()));
        Ok(())
    }
}
