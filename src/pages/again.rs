//! Random access to records that an earlier run has read.
//!
//! A run notes the place of each page: the name of an input and an offset in that input, as in
//! [`RawPage::offset`](super::record::RawPage::offset). Several records may share a place: all
//! records of a compressed file without members have the same offset, and so have all files of a
//! folder. A reader therefore yields every record that can be meant, and the caller selects by URL.

use super::decoded::Compression;
use super::inspected::{InputSource, look};
use super::origin::file_of;
use super::parquet_rows::ParquetRows;
use super::record::RecordSink;
use super::work_items::{read_stream, synthetic};
use super::{html_dir, jsonl, warc};
use webtwin_base::error::{Error, Result};
use webtwin_job::InputSettings;
use webtwin_storage::location::ListedFile;
use webtwin_storage::open::open_pinned;
use webtwin_synth::Synth;

/// Largest gap between two wanted records, in bytes, that is read instead of skipped by a seek.
const GAP_BYTES: u64 = 256 << 10;

/// An input of a finished run in its present state, and the name of the input.
#[derive(Debug)]
pub struct FormerInput(InputSource, String);

impl FormerInput {
    /// Opens an input by its name in the column `pages.source`.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if an entry is no longer in its zip archive, and any error of
    /// [`WorkList::plan`](super::work_items::WorkList::plan).
    pub fn open(name: &str, input: &InputSettings) -> Result<FormerInput> {
        if name.starts_with("synth://") {
            return Ok(FormerInput(InputSource::Synth(Box::new(Synth::parse(name)?)), name.into()));
        }
        let entry = look(&file_of(name)?, input)?.into_iter().find(|looked| looked.name == name);
        let missing =
            || Error::input(name, "it is no longer in its zip archive; put the archive back, or run the job again");
        entry.map(|looked| FormerInput(looked.source, name.into())).ok_or_else(missing)
    }

    /// Yields the records at `offsets`, which must ascend, and possibly other records. For a
    /// folder, yields the files whose URL satisfies `is_wanted`.
    ///
    /// # Errors
    /// Returns any error of the input and of the sink.
    ///
    /// # Cost
    /// Bytes between two records that are less than 256 KiB apart are read, too. Compressed files
    /// without members and row groups of Parquet are read as a whole.
    pub fn read(
        &self,
        offsets: &[u64],
        is_wanted: impl Fn(&str) -> bool,
        input: &InputSettings,
        sink: &mut RecordSink<'_>,
    ) -> Result<()> {
        self.0.read_at(offsets, is_wanted, input, sink).map_err(|error| error.of_input(&self.1))
    }
}

impl InputSource {
    /// Yields the records at `offsets`; see [`FormerInput::read`].
    pub(super) fn read_at(
        &self,
        offsets: &[u64],
        is_wanted: impl Fn(&str) -> bool,
        input: &InputSettings,
        sink: &mut RecordSink<'_>,
    ) -> Result<()> {
        let limits = &input.limits;
        let ranges =
            || offsets.chunk_by(|x, y| y - x <= GAP_BYTES).map(|places| places[0]..places[places.len() - 1] + 1);
        // WARC, plain JSONL and synthetic crawls can be entered at an offset. The other formats are
        // read in their smallest independent pieces.
        match self {
            InputSource::Warc(origin) => {
                let file = origin.open()?;
                for range in ranges() {
                    warc::read_again(&*file, range, input, sink)?;
                }
            }
            InputSource::WarcStream(origin, compression) => read_stream(origin, *compression, input, sink)?,
            InputSource::Jsonl(location, stamp, Compression::None) => {
                let file = open_pinned(location, stamp)?;
                for range in ranges() {
                    jsonl::read_range(&*file, range, limits, &input.fields, sink)?;
                }
            }
            InputSource::Jsonl(location, stamp, compression) => {
                jsonl::read_whole(&*open_pinned(location, stamp)?, *compression, limits, &input.fields, sink)?;
            }
            InputSource::Parquet(location, stamp) => {
                let rows = ParquetRows::open(open_pinned(location, stamp)?, location.name(), &input.fields)?;
                let mut first = 0;
                for group in 0..rows.groups() as u64 {
                    let next = first + rows.rows(group);
                    if offsets.partition_point(|&row| row < first) < offsets.partition_point(|&row| row < next) {
                        rows.read_groups(group..group + 1, limits, sink)?;
                    }
                    first = next;
                }
            }
            InputSource::Pages(folder, files) => {
                let base = html_dir::parse_base(&input.base)?;
                let is_wanted = |file: &&ListedFile| is_wanted(&html_dir::url_of_file(folder, file, &base));
                let files: Vec<ListedFile> = files.iter().filter(is_wanted).cloned().collect();
                html_dir::read_files(folder, &files, input, sink)?;
            }
            InputSource::Synth(synth) => {
                for &number in offsets.iter().filter(|&&number| number < synth.len()) {
                    synthetic(synth, number..number + 1, sink)?;
                }
            }
        }
        Ok(())
    }
}
