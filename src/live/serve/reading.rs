//! Records on their way into the index: read, digested, counted.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use super::writer::WriterItem;
use crate::digest::Digester;
use webtwin_base::error::Result;
use webtwin_job::Job;
use webtwin_pages::record::{ReadResult, Reason, RefusedRecord};
use webtwin_pages::url::CanonicalUrl;

/// Statuses that mean that there is nothing at a URL.
const NOTHING_THERE: std::ops::Range<u16> = 400..500;

/// The outcome of reading a record.
#[derive(Debug)]
pub(super) enum ReadOutcome {
    /// It is a page, or says that there is none.
    Item(WriterItem),
    /// It is neither.
    Rejected(Reason, String),
}

/// A record that was read.
#[derive(Debug)]
pub(super) struct ReadRecord {
    /// Where it begins.
    pub offset: u64,
    pub outcome: ReadOutcome,
    /// True if it may be the rest of a file that still grows: damage, or a length that was wrong.
    pub is_doubtful: bool,
}

/// Digests what a reader has found.
pub(super) fn read(digester: &mut Digester, found: ReadResult) -> Result<ReadRecord> {
    let (offset, is_doubtful, refused) = match found {
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

/// The URL of a response that says that there is nothing: the details have its status and its URL.
fn missing(refused: &RefusedRecord) -> Option<CanonicalUrl> {
    let (status, url) = refused.detail.split_once(' ').filter(|_| refused.reason == Reason::StatusNot2xx)?;
    let is_missing = status.parse().is_ok_and(|status| NOTHING_THERE.contains(&status));
    CanonicalUrl::parse(url).ok().filter(|_| is_missing)
}

/// Digesters that are not at work.
pub(super) struct Digesters {
    job: Job,
    idle: Mutex<Vec<Digester>>,
}

impl Digesters {
    pub(super) fn new(job: Job) -> Digesters {
        Digesters { job, idle: Mutex::default() }
    }

    pub(super) fn job(&self) -> &Job {
        &self.job
    }

    /// Lends a digester.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Digester) -> T) -> T {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let free = idle().pop();
        let mut digester = free.unwrap_or_else(|| Digester::new(&self.job));
        let done = work(&mut digester);
        idle().push(digester);
        done
    }
}

/// Records since the process began: read = kept + missing + rejected.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ReadCounts {
    /// Records.
    pub read: u64,
    /// Pages that were added, or had been before.
    pub kept: u64,
    /// Records that say that there is nothing at a URL.
    pub missing: u64,
    /// Other records, by reason.
    pub rejected: BTreeMap<&'static str, u64>,
}

impl ReadCounts {
    /// Counts what has been acknowledged.
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
