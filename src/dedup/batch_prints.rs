//! What a batch of records leaves behind for the comparison, and the form that it has in a checkpoint.
//!
//! # Layout in a checkpoint
//! Length of the head, number of records and of shingles (64 bits each, byte order of the machine), the head as JSON, the
//! records, the shingles. [`webtwin_storage::step_records`] adds checksums.

use std::io::{self, ErrorKind, Read, Write};

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use super::corpus::Rejection;

/// The prints of a batch.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct BatchPrints {
    /// What has no fixed length.
    pub head: Head,
    /// The records, by row.
    pub records: Vec<RecordPrints>,
    /// Sets of shingles of the records, each ascending, one after the other.
    pub shingles: Vec<u32>,
}

/// What has no fixed length.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Head {
    /// Number of the batch in its file.
    pub number: u32,
    /// Rows, of which blank and rejected ones are none of the records.
    pub rows: u64,
    /// Ids of the records.
    pub ids: Vec<Option<String>>,
    /// For each record, its values of the fields that are counted by.
    pub values: Vec<Option<String>>,
    /// Rejected records; their offsets in a table count from the beginning of the batch.
    pub rejections: Vec<Rejection>,
}

/// The prints of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct RecordPrints {
    /// Its place in the order of keeping, as far as the rule tells.
    pub key: u64,
    /// Hash of its text.
    pub hash: [u64; 2],
    /// Row in its batch.
    pub row: u32,
    /// Bytes of its text.
    pub text_bytes: u32,
    /// Number of its shingles.
    pub shingles: u32,
    /// 1 if its text is nothing but white space, else 0.
    pub is_blank: u32,
}

impl BatchPrints {
    /// Becomes the prints of another batch, of which nothing was read yet.
    pub(crate) fn begin(&mut self, number: u32) {
        self.head = Head { number, ..Head::default() };
        self.records.clear();
        self.shingles.clear();
    }

    /// Writes the prints to a checkpoint.
    ///
    /// # Errors
    /// Those of `into`.
    pub(crate) fn encode(&self, into: &mut dyn Write) -> io::Result<()> {
        let head = serde_json::to_vec(&self.head)?;
        let lengths = [head.len(), self.records.len(), self.shingles.len()].map(|length| length as u64);
        into.write_all(bytemuck::cast_slice(&lengths))?;
        into.write_all(&head)?;
        into.write_all(bytemuck::cast_slice(&self.records))?;
        into.write_all(bytemuck::cast_slice(&self.shingles))
    }

    /// Reads the next prints of a checkpoint; `None` at its end.
    ///
    /// # Errors
    /// Those of `from`; [`ErrorKind::InvalidData`] for bytes that were not written by [`BatchPrints::encode`].
    pub(crate) fn decode(from: &mut impl Read) -> io::Result<Option<BatchPrints>> {
        let mut lengths = [0u64; 3];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut lengths);
        match from.read(bytes)? {
            0 => return Ok(None),
            some => from.read_exact(&mut bytes[some..])?,
        }
        let [head, records, shingles] = lengths.map(|length| length as usize);
        let head: Vec<u8> = column(from, head)?;
        let head: Head = serde_json::from_slice(&head)?;
        let prints = BatchPrints { head, records: column(from, records)?, shingles: column(from, shingles)? };
        let all: u64 = prints.records.iter().map(|record| u64::from(record.shingles)).sum();
        match prints.head.ids.len() == prints.records.len() && all == prints.shingles.len() as u64 {
            true => Ok(Some(prints)),
            false => Err(ErrorKind::InvalidData.into()),
        }
    }
}

fn column<T: Pod>(from: &mut impl Read, length: usize) -> io::Result<Vec<T>> {
    let mut column = vec![T::zeroed(); length];
    from.read_exact(bytemuck::cast_slice_mut(&mut column))?;
    Ok(column)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use webtwin_pages::record::Reason;

    proptest! {
        #[test]
        fn prints_are_read_as_they_were_written(
            batches in prop::collection::vec(prop::collection::vec((any::<u64>(), 0u32..9, prop::option::of(".{0,9}")), 0..9), 0..4),
            step in 1usize..40,
        ) {
            let mut written = Vec::new();
            let mut bytes = Vec::new();
            for (number, of_batch) in batches.into_iter().enumerate() {
                let mut prints = BatchPrints::default();
                prints.begin(number as u32);
                for (row, (key, shingles, id)) in of_batch.into_iter().enumerate() {
                    let row = row as u32;
                    let (hash, text_bytes, is_blank) = ([key, !key], shingles * 6, u32::from(shingles == 0));
                    prints.records.push(RecordPrints { key, hash, row, text_bytes, shingles, is_blank });
                    prints.shingles.extend(0..shingles);
                    prints.head.values.push(id.clone());
                    prints.head.ids.push(id);
                }
                let (detail, reason) = ("\u{0}".to_string(), Reason::BadJson);
                prints.head.rejections.push(Rejection { file: 0, offset: 1, reason, detail, lost: 0 });
                prints.encode(&mut bytes).unwrap();
                written.push(prints);
            }
            /// Gives a few bytes at a time.
            struct Slow<'b>(&'b [u8], usize);
            impl Read for Slow<'_> {
                fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                    let count = into.len().min(self.1);
                    self.0.read(&mut into[..count])
                }
            }
            let mut from = Slow(&bytes, step);
            let mut read = Vec::new();
            while let Some(prints) = BatchPrints::decode(&mut from).unwrap() {
                read.push(prints);
            }
            prop_assert_eq!(&read, &written);
            // A part of a batch is none.
            if let Some(last) = bytes.len().checked_sub(1) {
                let mut from = Slow(&bytes[..last], step);
                let ended = std::iter::from_fn(|| BatchPrints::decode(&mut from).transpose()).last().unwrap();
                prop_assert!(ended.is_err());
            }
        }
    }
}
