//! Workers' results of steps after reading, stored as records of a state: one for each worker and
//! step.

use xxhash_rust::xxh3::xxh3_128;

use super::{RecordAt, RecordFile, StateRecords};
use crate::records::SavedShares;
use webtwin_base::error::Result;

/// Returns the key of a worker's result.
fn key(step: &str, (worker, workers): (usize, usize)) -> String {
    format!("{step}-{worker}-of-{workers}")
}

impl StateRecords {
    fn share(&self, step: &str, worker: (usize, usize)) -> Option<(&RecordFile, &RecordAt)> {
        let key = key(step, worker);
        let records = |file: &'_ RecordFile| file.records.iter().position(|record| record.key == key);
        self.found_before.iter().find_map(|file| Some((file, &file.records[records(file)?])))
    }
}

impl SavedShares for StateRecords {
    fn count(&self, step: &str) -> usize {
        let is_of_step = |record: &&RecordAt| record.key.strip_prefix(step).is_some_and(|rest| rest.starts_with('-'));
        let workers = self.found_before.iter().flat_map(|file| &file.records).filter(is_of_step).count();
        if (0..workers).all(|worker| self.share(step, (worker, workers)).is_some()) { workers } else { 0 }
    }

    fn read(&self, step: &str, worker: usize) -> Option<Vec<u8>> {
        let (file, record) = self.share(step, (worker, self.count(step)))?;
        self.whole_record(file, record)
    }

    fn write(&self, step: &str, worker: (usize, usize), share: &[u8]) -> Result<()> {
        let checksum = format!("{:032x}", xxh3_128(share));
        let record = RecordAt { key: key(step, worker), offset: 0, bytes: share.len() as u64, checksum };
        self.put(share, vec![record], &self.found)
    }
}
