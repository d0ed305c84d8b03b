//! Prints of a batch: the data of its records that the comparison needs, and their encoding in a
//! checkpoint.
//!
//! # Layout in a checkpoint
//! Length of the head, number of records, number of shingles (64 bits each, in the byte order of
//! the machine), the head as JSON, the records, the shingles. [`webtwin_storage::step_records`]
//! adds checksums.

use std::io::{self, ErrorKind, Read, Write};

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use super::corpus::CorpusRejection;

/// Prints of a batch.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct BatchPrints {
    /// Values of variable length.
    pub head: VariablePart,
    /// Prints of the records, by row.
    pub records: Vec<RecordPrints>,
    /// Sets of shingles of the records, each ascending, one after the other.
    pub shingles: Vec<u32>,
}

/// Values of variable length of a batch.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct VariablePart {
    /// Number of the batch in its file.
    pub number: u32,
    /// Number of rows. Blank and rejected rows are counted, but are not among the records.
    pub rows: u64,
    /// Ids of the records.
    pub ids: Vec<Option<String>>,
    /// Values of the fields that records are counted by, for each record.
    pub values: Vec<Option<String>>,
    /// Rejected records. Offsets in a table are relative to the beginning of the batch.
    pub rejections: Vec<CorpusRejection>,
}

/// Prints of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct RecordPrints {
    /// Sort key of the record by the keep rule.
    pub key: u64,
    /// Hash of the text.
    pub hash: [u64; 2],
    /// Row in the batch.
    pub row: u32,
    /// Length of the text in bytes.
    pub text_bytes: u32,
    /// Number of shingles.
    pub shingles: u32,
    /// 1 if the text consists only of white space, 0 otherwise.
    pub is_blank: u32,
}

impl BatchPrints {
    /// Resets the prints for another batch, and keeps the allocations.
    pub(crate) fn begin(&mut self, number: u32) {
        self.head = VariablePart { number, ..VariablePart::default() };
        self.records.clear();
        self.shingles.clear();
    }

    /// Writes the prints to a checkpoint.
    ///
    /// # Errors
    /// Returns any error of `output`.
    pub(crate) fn encode(&self, output: &mut dyn Write) -> io::Result<()> {
        let head = serde_json::to_vec(&self.head)?;
        let lengths = [head.len(), self.records.len(), self.shingles.len()].map(|length| length as u64);
        output.write_all(bytemuck::cast_slice(&lengths))?;
        output.write_all(&head)?;
        output.write_all(bytemuck::cast_slice(&self.records))?;
        output.write_all(bytemuck::cast_slice(&self.shingles))
    }

    /// Reads the next prints from a checkpoint. Returns `None` at its end.
    ///
    /// # Errors
    /// Returns any error of `reader`, and [`ErrorKind::InvalidData`] if [`BatchPrints::encode`] did
    /// not write the bytes.
    pub(crate) fn decode(reader: &mut impl Read) -> io::Result<Option<BatchPrints>> {
        let mut lengths = [0u64; 3];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut lengths);
        match reader.read(bytes)? {
            0 => return Ok(None),
            n_read => reader.read_exact(&mut bytes[n_read..])?,
        }
        let [head, records, shingles] = lengths.map(|length| length as usize);
        let head: Vec<u8> = column(reader, head)?;
        let head: VariablePart = serde_json::from_slice(&head)?;
        let prints = BatchPrints { head, records: column(reader, records)?, shingles: column(reader, shingles)? };
        let n_shingles: u64 = prints.records.iter().map(|record| u64::from(record.shingles)).sum();
        match prints.head.ids.len() == prints.records.len() && n_shingles == prints.shingles.len() as u64 {
            true => Ok(Some(prints)),
            false => Err(ErrorKind::InvalidData.into()),
        }
    }
}

fn column<T: Pod>(reader: &mut impl Read, length: usize) -> io::Result<Vec<T>> {
    let mut column = vec![T::zeroed(); length];
    reader.read_exact(bytemuck::cast_slice_mut(&mut column))?;
    Ok(column)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use webtwin_pages::record::Reason;

    proptest! {
        #[test]
        fn fingerprints_are_read_as_written(
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
                prints.head.rejections.push(CorpusRejection { file: 0, offset: 1, reason, detail, lost: 0 });
                prints.encode(&mut bytes).unwrap();
                written.push(prints);
            }
            /// Reader that returns a few bytes at a time.
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
            // A partial batch is rejected.
            if let Some(last) = bytes.len().checked_sub(1) {
                let mut from = Slow(&bytes[..last], step);
                let ended = std::iter::from_fn(|| BatchPrints::decode(&mut from).transpose()).last().unwrap();
                prop_assert!(ended.is_err());
            }
        }
    }
}
