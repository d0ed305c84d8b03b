//! Near-copies: their records, as determined by a finished run, and the compression of their blocks
//! with a kept page as the prefix.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use zstd::zstd_safe::{CCtx, CParameter, DCtx, DParameter, get_error_name};

use super::inputs::WarcInput;
use super::matches::RecordCopy;
use webtwin_base::error::{Error, Result};
use webtwin_results::FinishedRun;
use webtwin_results::pages::PageTable;
use webtwin_storage::location::{seen_from_anywhere, working_folder};

/// Maximum size of a block, and of the payload that it is compared with, in bytes.
pub(super) const MAX_BYTES: u64 = 16 << 20;

/// Binary logarithms of the minimum and maximum window. The maximum window covers a block and its
/// base.
const WINDOW_LOGS: (u32, u32) = (10, 25);

/// Position in the input: number of the file, and offset in the file.
pub(super) type InputPosition = (u32, u64);

/// Near-copies, each with the kept page of its cluster.
#[derive(Debug, Default)]
pub(super) struct NearCopies(BTreeMap<InputPosition, InputPosition>);

impl NearCopies {
    /// Returns the records of the pages of a run that are in a cluster and are not the kept page.
    /// For a page whose own record is a revisit, it is the record with its content; this also
    /// applies to the kept page. A record of an older archive can only be a base.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the folder has no such run, or the run read none of the files.
    pub(crate) fn from_run(run: &FinishedRun, files: &[WarcInput]) -> Result<NearCopies> {
        let pages = PageTable::from_run(run)?;
        let places = (0..pages.doc_ids()?.len()).map(|row| pages.place(row)).collect::<Result<Vec<_>>>()?;
        let folder = working_folder();
        let file_numbers: HashMap<String, u32> = (0..)
            .zip(files)
            .map(|(number, file)| (seen_from_anywhere(file.location.name(), &folder), number))
            .collect();
        let read: BTreeSet<&str> = places.iter().map(|place| place.0).collect();
        let number = |source| file_numbers.get(&seen_from_anywhere(source, &run.manifest.started_in)).copied();
        let numbers: HashMap<&str, u32> = read.iter().filter_map(|&source| Some((source, number(source)?))).collect();
        if let Some(read) = read.first().filter(|_| numbers.is_empty()) {
            let example = files.first().map_or("none", |file| file.location.name());
            let message = format!(
                "it read none of the given files: it read {read}, but {example} is given; name the files as that run did"
            );
            return Err(Error::input(run.folder.name(), message));
        }
        let place = |page: u64| -> Result<Option<InputPosition>> {
            let row = pages.row(page)?;
            Ok(row.and_then(|row| Some((*numbers.get(places[row].0)?, places[row].1))))
        };
        let clusters = run.table("clusters")?;
        let (ids, members, roles) = (clusters.u64("cluster")?, clusters.u64("doc_id")?, clusters.text("role")?);
        let is_kept = |row: &usize| &roles[*row] == "keep";
        let members_of_kept: HashMap<u64, u64> =
            (0..ids.len()).filter(is_kept).map(|row| (ids[row], members[row])).collect();
        let (mut references, mut bases) = (BTreeMap::new(), BTreeSet::new());
        for row in (0..ids.len()).filter(|row| !is_kept(row)) {
            let Some(&base) = members_of_kept.get(&ids[row]) else { continue };
            if let (Some(copy), Some(base)) = (place(members[row])?, place(base)?) {
                bases.insert(base);
                if !files[copy.0 as usize].is_older {
                    references.insert(copy, base);
                }
            }
        }
        // The revisits of several pages may have the same original, so a record can be a copy and a
        // base. A base must stay.
        references.retain(|copy, _| !bases.contains(copy));
        Ok(NearCopies(references))
    }

    /// Removes an exact copy, and the record that it refers to, which must stay where every tool
    /// finds it.
    pub(crate) fn leave_out(&mut self, copy: &RecordCopy) {
        self.0.remove(&(copy.file, copy.offset));
        self.0.remove(&(copy.of_file_number, copy.of_record_offset));
    }

    /// Returns the near-copies in a file by offset, each with its base.
    pub(crate) fn copies_in_file(&self, file: u32) -> impl Iterator<Item = (u64, InputPosition)> {
        self.0.range((file, 0)..=(file, u64::MAX)).map(|(copy, base)| (copy.1, *base))
    }
}

/// Compresses a block that has much in common with `base`: one zstd frame with `base` as its
/// prefix.
///
/// # Errors
/// Returns [`Error::Invariant`] if zstd fails.
///
/// # Cost
/// A few MB/s at level 19, and about ten times as many at level 3.
pub(super) fn compress(base: &[u8], block: &[u8], level: i32) -> Result<Vec<u8>> {
    let total_length = (base.len() + block.len()).max(1);
    let window = (total_length.ilog2() + 1).clamp(WINDOW_LOGS.0, WINDOW_LOGS.1);
    let mut output = Vec::with_capacity(zstd::zstd_safe::compress_bound(block.len()));
    let mut context = CCtx::create();
    let result = (|| {
        context.set_parameter(CParameter::CompressionLevel(level))?;
        context.set_parameter(CParameter::WindowLog(window))?;
        context.set_parameter(CParameter::ChecksumFlag(true))?;
        context.ref_prefix(base)?;
        context.compress2(&mut output, block)
    })();
    result.map_err(|code| Error::Invariant(format!("zstd: {}", get_error_name(code))))?;
    Ok(output)
}

/// Decompresses a block of `length` bytes. Returns `None` if the frame is damaged or was made with
/// another base.
pub(super) fn decompress(base: &[u8], frame: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut output = Vec::with_capacity(length);
    let mut context = DCtx::create();
    context.set_parameter(DParameter::WindowLogMax(WINDOW_LOGS.1)).ok()?;
    context.ref_prefix(base).ok()?;
    context.decompress(&mut output, frame).ok()?;
    (output.len() == length).then_some(output)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_block_is_restored_from_its_base_only(
            base in prop::collection::vec(any::<u8>(), 0..3000),
            from in 0usize..3000,
            more in prop::collection::vec(any::<u8>(), 0..300),
            level in 1..20,
        ) {
            let block = [&base[from.min(base.len())..], &more, &base[..from.min(base.len())]].concat();
            let frame = compress(&base, &block, level).unwrap();
            prop_assert_eq!(decompress(&base, &frame, block.len()), Some(block.clone()));
            prop_assert_eq!(decompress(&base, &frame, block.len() + 1), None);
            // Low levels find only a part of what random bytes have in common.
            let frame = compress(&base, &block, 19).unwrap();
            prop_assert!(frame.len() < 100 + more.len());
            if base.len() > 600 {
                prop_assert_ne!(decompress(&more, &frame, block.len()), Some(block));
            }
        }
    }
}
