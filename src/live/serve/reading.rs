//! Reading of records for the index: digests and counts.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use super::writer::WriterItem;
use crate::digest::Digester;
use webtwin_base::error::Result;
use webtwin_job::Job;
use webtwin_pages::record::{ReadResult, Reason, RefusedRecord};
use webtwin_pages::url::CanonicalUrl;

/// HTTP statuses that mean that there is nothing at a URL.
const NOT_FOUND_STATUSES: std::ops::Range<u16> = 400..500;

/// Outcome of reading a record.
#[derive(Debug)]
pub(super) enum ReadOutcome {
    /// Item for the writer: a page, or a URL without a page.
    Item(WriterItem),
    /// Record that gives no item, with the reason and a detail.
    Rejected(Reason, String),
}

/// Record that was read.
#[derive(Debug)]
pub(super) struct ReadRecord {
    /// Offset at which the record begins, in bytes.
    pub offset: u64,
    pub outcome: ReadOutcome,
    /// True if the record may be the beginning of one that is still being written: it is damaged,
    /// or its length is wrong.
    pub is_doubtful: bool,
}

/// Digests the result of a reader.
pub(super) fn read(digester: &mut Digester, read_result: ReadResult) -> Result<ReadRecord> {
    let (offset, is_doubtful, refused) = match read_result {
        ReadResult::Page(page) => {
            let is_doubtful = page.repaired == Some(Reason::BadContentLength);
            match digester.digest(&page)? {
                Ok(digest) => {
                    let outcome = ReadOutcome::Item(WriterItem::Page(Box::new(digest)));
                    return Ok(ReadRecord { offset: page.offset, outcome, is_doubtful });
                }
                Err(refused) => (page.offset, is_doubtful, refused),
            }
        }
        ReadResult::Refused(refused) => (refused.offset, refused.reason.is_bad(), refused),
    };
    let outcome = match missing(&refused) {
        Some(url) => ReadOutcome::Item(WriterItem::Missing(url)),
        None => ReadOutcome::Rejected(refused.reason, refused.detail),
    };
    Ok(ReadRecord { offset, outcome, is_doubtful })
}

/// Returns the URL of a response whose status means that there is nothing at the URL. The detail of
/// the refused record has the status and the URL.
fn missing(refused: &RefusedRecord) -> Option<CanonicalUrl> {
    let (status, url) = refused.detail.split_once(' ').filter(|_| refused.reason == Reason::StatusNot2xx)?;
    let is_missing = status.parse().is_ok_and(|status| NOT_FOUND_STATUSES.contains(&status));
    CanonicalUrl::parse(url).ok().filter(|_| is_missing)
}

/// Pool of idle digesters.
pub(super) struct Digesters {
    job: Job,
    idle_digesters: Mutex<Vec<Digester>>,
}

impl Digesters {
    pub(super) fn new(job: Job) -> Digesters {
        Digesters { job, idle_digesters: Mutex::default() }
    }

    pub(super) fn job(&self) -> &Job {
        &self.job
    }

    /// Calls a function with an idle digester; creates one if there is none.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Digester) -> T) -> T {
        let pool = || self.idle_digesters.lock().unwrap_or_else(PoisonError::into_inner);
        let free = pool().pop();
        let mut digester = free.unwrap_or_else(|| Digester::new(&self.job));
        let result = work(&mut digester);
        pool().push(digester);
        result
    }
}

/// Counts of records since the process started: read = kept + missing + rejected.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ReadCounts {
    /// Number of records.
    pub read: u64,
    /// Number of pages, including those that had been added before.
    pub kept: u64,
    /// Number of records that state that there is nothing at a URL.
    pub missing: u64,
    /// Number of other records, by the reason for their rejection.
    pub rejected: BTreeMap<&'static str, u64>,
}

impl ReadCounts {
    /// Counts one record by its outcome.
    pub(super) fn add(&mut self, outcome: &ReadOutcome) {
        self.read += 1;
        match outcome {
            ReadOutcome::Item(WriterItem::Page(_)) => self.kept += 1,
            ReadOutcome::Item(WriterItem::Missing(_)) => self.missing += 1,
            ReadOutcome::Rejected(reason, _) => *self.rejected.entry(reason.as_str()).or_default() += 1,
        }
    }

    pub(super) fn merge(&mut self, other: &ReadCounts) {
        self.read += other.read;
        self.kept += other.kept;
        self.missing += other.missing;
        for (reason, count) in &other.rejected {
            *self.rejected.entry(reason).or_default() += count;
        }
    }
}
