//! Inspection of inputs: the format of each file, and the inputs within a zip archive.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::decoded::Compression;
use super::detect::{FileFormat, detect};
use super::origin::Origin;
use super::parquet_rows::ParquetRows;
use super::side_files::recognise_found;
use super::zip_entries::{Slice, WebArchiveEntry, entries};
use webtwin_base::error::{Error, Result};
use webtwin_base::read_at::RandomAccess;
use webtwin_job::InputSettings;
use webtwin_storage::location::{ListedFile, Location};
use webtwin_storage::open::{FileStamp, OpenFile, open};
use webtwin_synth::Synth;

/// Number of files of a folder per item.
const FILES_PER_ITEM: u64 = 256;

/// An input whose format is known.
#[derive(Debug)]
pub(super) enum InputSource {
    Warc(Origin),
    /// Records in a compression that cannot be entered at a record.
    WarcStream(Origin, Compression),
    Jsonl(Location, FileStamp, Compression),
    Parquet(Location, FileStamp),
    /// A folder of pages, or a single page.
    Pages(Location, Vec<ListedFile>),
    Synth(Box<Synth>),
}

/// An input whose format has been detected.
pub(super) struct InspectedInput {
    /// Name of the input, as in the column `pages.source`.
    pub(super) name: String,
    pub(super) source: InputSource,
    /// Number of bytes, row groups or files to cut into pieces.
    pub(super) units: u64,
    /// Number of units per piece; `None` for pieces of `shard_bytes`.
    pub(super) units_a_piece: Option<u64>,
    pub(super) bytes: u64,
}

impl InspectedInput {
    /// Returns the name without folders, and the length, of a WARC file that is not in a zip
    /// archive.
    pub(super) fn warc_file(&self) -> Option<(String, u64)> {
        match &self.source {
            InputSource::Warc(Origin { location, entry: None, .. })
            | InputSource::WarcStream(Origin { location, entry: None, .. }, _) => {
                Some((location.file_name().to_string(), self.bytes))
            }
            _ => None,
        }
    }

    /// True if this input is an entry of a zip archive, and one of `files` has its name and length.
    /// Crawlers write a WACZ next to the files of which it was made.
    pub(super) fn repeats(&self, files: &BTreeSet<(String, u64)>) -> bool {
        match &self.source {
            InputSource::Warc(Origin { entry: Some(entry), .. })
            | InputSource::WarcStream(Origin { entry: Some(entry), .. }, _) => {
                let name = entry.name.rsplit('/').next().unwrap_or_default();
                files.contains(&(name.to_string(), self.bytes))
            }
            _ => false,
        }
    }
}

/// Detects the format of an input that the user has named. A zip archive contains several inputs.
pub(super) fn look(location: &Location, input: &InputSettings) -> Result<Vec<InspectedInput>> {
    if location.is_folder() {
        return inspect_folder(location).map(|looked| vec![looked]);
    }
    let file = open(location)?;
    let kind = detect(&*file, location.name())?;
    inspect_file(location, file, kind, input)
}

/// Detects the format of a file that was found in a folder or by a glob. Returns the reason for a
/// side file.
pub(super) fn inspect_files(
    location: &Location,
    input: &InputSettings,
) -> Result<std::result::Result<Vec<InspectedInput>, &'static str>> {
    if location.is_folder() {
        return inspect_folder(location).map(|looked| Ok(vec![looked]));
    }
    let file = open(location)?;
    match recognise_found(&*file, location.name(), &input.fields)? {
        Ok(kind) => inspect_file(location, file, kind, input).map(Ok),
        Err(reason) => Ok(Err(reason)),
    }
}

fn inspect_folder(location: &Location) -> Result<InspectedInput> {
    let files = location.list(None)?;
    let (units, bytes) = (files.len() as u64, files.iter().map(|file| file.stamp.bytes).sum());
    let name = location.name().to_string();
    Ok(InspectedInput {
        name,
        source: InputSource::Pages(location.clone(), files),
        units,
        units_a_piece: Some(FILES_PER_ITEM),
        bytes,
    })
}

fn inspect_file(
    location: &Location,
    file: Arc<OpenFile>,
    kind: FileFormat,
    input: &InputSettings,
) -> Result<Vec<InspectedInput>> {
    let place = location.clone();
    let stamp = file.stamp().clone();
    let bytes = stamp.bytes;
    let (source, units, units_a_piece) = match kind {
        // An empty file has nothing to read, in any format.
        FileFormat::Empty => (InputSource::Warc(Origin { location: place, stamp, entry: None }), 0, None),
        FileFormat::WarcPlain | FileFormat::WarcGzip | FileFormat::WarcZstd => {
            (InputSource::Warc(Origin { location: place, stamp, entry: None }), bytes, None)
        }
        FileFormat::WarcStream(compression) => {
            (InputSource::WarcStream(Origin { location: place, stamp, entry: None }, compression), bytes, Some(bytes))
        }
        FileFormat::Zip => return inspect_zip(&file),
        FileFormat::Jsonl(Compression::None) => (InputSource::Jsonl(place, stamp, Compression::None), bytes, None),
        FileFormat::Jsonl(compression) => (InputSource::Jsonl(place, stamp, compression), bytes, Some(bytes)),
        FileFormat::Parquet => {
            let groups = ParquetRows::open(file, location.name(), &input.fields)?.groups() as u64;
            (InputSource::Parquet(place, stamp), groups, Some(1))
        }
        FileFormat::HtmlFile => {
            let listed_file = ListedFile { location: place.clone(), stamp };
            (InputSource::Pages(place, vec![listed_file]), 1, Some(1))
        }
    };
    Ok(vec![InspectedInput { name: location.name().to_string(), source, units, units_a_piece, bytes }])
}

/// Makes an input of each web archive in a zip archive.
fn inspect_zip(file: &OpenFile) -> Result<Vec<InspectedInput>> {
    let refuse = |reason| Error::input(file.location().name(), reason);
    let inspect_entry = |entry: WebArchiveEntry| {
        let slice = Slice { file, range: entry.range.clone() };
        let origin = Origin { location: file.location().clone(), stamp: file.stamp().clone(), entry: Some(entry) };
        let name = origin.name();
        let bytes = slice.len();
        let (source, units, units_a_piece) = match detect(&slice, &name)? {
            FileFormat::WarcPlain | FileFormat::WarcGzip | FileFormat::WarcZstd => {
                (InputSource::Warc(origin), bytes, None)
            }
            FileFormat::WarcStream(compression) => (InputSource::WarcStream(origin, compression), bytes, Some(bytes)),
            FileFormat::Empty => (InputSource::Warc(origin), 0, None),
            _ => {
                return Err(Error::input(
                    name,
                    "not_warc: its name is that of a WARC file, but its content is not; fetch it again",
                ));
            }
        };
        Ok(InspectedInput { name, source, units, units_a_piece, bytes })
    };
    entries(file)?.map_err(refuse)?.into_iter().map(inspect_entry).collect()
}
