//! Division of the input into work items, each of which is read by one worker.
//!
//! Items depend only on the files, never on the number of workers. WARC files and plain JSONL are
//! cut into pieces of fixed size (or stay whole, if their compression cannot be entered at a
//! record), Parquet by row group, folders of pages into batches of files, a synthetic crawl into
//! ranges of pages.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::decoded::{Compression, DecodedFile, sort_out};
use super::inspected::{InputSource, InspectedInput, inspect_files, look};
use super::origin::Origin;
use super::parquet_rows::ParquetRows;
use super::record::{PageForm, RawPage, ReadResult, RecordSink, RefusedRecord};
use super::side_files::{SideFile, SideFiles};
use super::sniff::is_html;
use super::warc::{self, RangeEnd};
use super::{html_dir, jsonl};
use webtwin_base::error::{Error, Result};
use webtwin_base::threads;
use webtwin_job::InputSettings;
use webtwin_storage::expand::{ExpandedInput, expand};
use webtwin_storage::location::{Location, seen_from_anywhere, working_folder};
use webtwin_storage::open::{FileStamp, open_pinned};
use webtwin_synth::Synth;

/// Number of pages of a synthetic crawl per item.
const PAGES_PER_ITEM: u64 = 256;

/// Number of places in a sample for each work item's worth of input that it reads.
const PLACES: usize = 16;

/// Minimum size of a place in a file, in bytes.
const MIN_PLACE_BYTES: u64 = 32 << 10;

/// Number of inputs opened at the same time. Stores answer slowly, but serve many requests
/// concurrently.
const MAX_OPEN_INPUTS: usize = 16;

/// Inputs in ascending order of names, those of earlier crawls after the others, and their items,
/// in the order of inputs.
#[derive(Debug)]
pub struct WorkList {
    /// Name of each input, as in the column `pages.source`.
    pub inputs: Vec<String>,
    /// Work items. Those of one input are adjacent, in the order of its bytes.
    pub items: Vec<WorkItem>,
    /// Files that were found with the inputs but are not crawls.
    pub side_files: SideFiles,
    sources: Vec<InputSource>,
    /// Index of the first input that only provides originals of revisits.
    first_original: usize,
}

/// A sample of the inputs.
#[derive(Debug)]
pub struct Sample {
    /// Work that consists of the items of the sample.
    pub work: WorkList,
    /// Kind of each item.
    pub kinds: Vec<SampleItem>,
}

/// Kind of an item of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleItem {
    /// The beginning of an item: one of many places, spread evenly.
    Place,
    /// A whole item among beginnings of items.
    Whole,
    /// A whole item that is itself one of the evenly spread places, because its input is sampled by
    /// whole items.
    WholePlace,
}

/// A piece of one input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkItem {
    /// Index of the input, from 0.
    pub input: u32,
    /// Range of bytes, row groups, files or pages, depending on the kind of input.
    piece: Range<u64>,
    /// Number of bytes of input that the piece represents.
    bytes: u64,
}

impl WorkItem {
    /// Number of bytes of input that the item represents, or of pages for a synthetic crawl, which
    /// has no bytes.
    pub fn weight(&self) -> u64 {
        if self.bytes > 0 { self.bytes } else { self.piece.end - self.piece.start }
    }
}

impl WorkItem {
    /// Returns the first of `parts` equal parts of the item. An item with fewer units than parts
    /// yields its first unit.
    fn beginning(self, parts: u64) -> WorkItem {
        let length = self.piece.end - self.piece.start;
        let beginning = length.div_ceil(parts);
        let bytes = (u128::from(self.bytes) * u128::from(beginning) / u128::from(length.max(1))) as u64;
        WorkItem { piece: self.piece.start..self.piece.start + beginning, bytes, ..self }
    }
}

impl WorkList {
    /// Finds the inputs of a job and cuts them into items of about `shard_bytes`.
    ///
    /// # Errors
    /// Returns [`Error::Input`] for an input that is missing or of an unknown format, and for a
    /// folder or glob that finds only side files. Returns [`Error::Usage`] if the job names no
    /// input.
    pub fn plan(input: &InputSettings, shard_bytes: u64) -> Result<WorkList> {
        let mut work = WorkList::plan_all(input, shard_bytes)?;
        if !input.originals.is_empty() {
            let originals_input = InputSettings { urls: input.originals.clone(), ..input.clone() };
            work.add_originals(WorkList::plan_all(&originals_input, shard_bytes)?);
        }
        Ok(work)
    }

    /// Adds the inputs of earlier crawls that are not inputs of this one.
    fn add_originals(&mut self, other: WorkList) {
        let folder = working_folder();
        let known_names: BTreeSet<String> = self.inputs.iter().map(|name| seen_from_anywhere(name, &folder)).collect();
        self.first_original = self.inputs.len();
        let mut numbers = Vec::with_capacity(other.inputs.len());
        for (name, source) in other.inputs.into_iter().zip(other.sources) {
            let is_new = !known_names.contains(&seen_from_anywhere(&name, &folder));
            numbers.push(is_new.then_some(self.inputs.len() as u32));
            if is_new {
                self.inputs.push(name);
                self.sources.push(source);
            }
        }
        let items = other.items.into_iter();
        self.items.extend(items.filter_map(|item| Some(WorkItem { input: numbers[item.input as usize]?, ..item })));
        self.side_files.0.extend(other.side_files.0);
    }

    /// True if an input is from an earlier crawl, so that none of its records is of this crawl.
    pub fn is_original(&self, input: u32) -> bool {
        input as usize >= self.first_original
    }

    /// True if there are inputs of earlier crawls.
    pub fn has_originals(&self) -> bool {
        self.first_original < self.inputs.len()
    }

    /// Returns the name of the file or folder of an input, which may be an entry in it. That name
    /// can be used as an input.
    pub fn file_of(&self, input: u32) -> &str {
        match &self.sources[input as usize] {
            InputSource::Warc(origin) | InputSource::WarcStream(origin, _) => origin.location.name(),
            InputSource::Jsonl(location, ..) | InputSource::Parquet(location, _) | InputSource::Pages(location, _) => {
                location.name()
            }
            InputSource::Synth(_) => &self.inputs[input as usize],
        }
    }

    fn plan_all(input: &InputSettings, shard_bytes: u64) -> Result<WorkList> {
        if input.urls.is_empty() {
            return Err(Error::Usage(
                "no input is given; add --input or input.urls, for example --input 'crawl/*.warc.gz'".into(),
            ));
        }
        let mut work = WorkList {
            inputs: Vec::new(),
            items: Vec::new(),
            side_files: SideFiles::default(),
            sources: Vec::new(),
            first_original: usize::MAX,
        };
        let (synthetic, files): (Vec<String>, Vec<String>) =
            input.urls.iter().cloned().partition(|url| url.starts_with("synth://"));
        let inputs = if files.is_empty() { Vec::new() } else { expand(&files, is_html)? };
        let locations = sorted_locations(&inputs);
        let inspected = map_in_parallel(&locations, |&(location, is_named)| match is_named {
            true => look(location, input).map(Ok),
            false => inspect_files(location, input),
        })?;
        // A WACZ is skipped if all of its WARC files are inputs themselves, because their pages
        // would be read twice.
        let files: BTreeSet<(String, u64)> =
            inspected.iter().flatten().flatten().filter_map(|looked| looked.warc_file()).collect();
        let mut files_found = Vec::with_capacity(locations.len());
        for (&(location, is_named), inspected) in locations.iter().zip(inspected) {
            match inspected {
                Ok(inspected) if !is_named && inspected.iter().all(|looked| looked.repeats(&files)) => {
                    let reason = "a zip archive of WARC files that are also read by themselves";
                    work.side_files.0.push(SideFile { location: location.clone(), reason });
                }
                Ok(inspected) => files_found.extend(inspected),
                Err(reason) => work.side_files.0.push(SideFile { location: location.clone(), reason }),
            }
        }
        files_found.sort_by(|x, y| x.name.cmp(&y.name));
        for InspectedInput { name, source, units, units_a_piece, bytes } in files_found {
            let piece = units_a_piece.unwrap_or(shard_bytes);
            let bytes_of =
                |piece: &Range<u64>| (bytes as u128 * u128::from(piece.end - piece.start) / u128::from(units)) as u64;
            work.add(name, source, units, piece, bytes_of);
        }
        work.side_files.check_against(&inputs)?;
        for url in synthetic {
            let synth = Synth::parse(&url)?;
            let pages = synth.len();
            work.add(url, InputSource::Synth(Box::new(synth)), pages, PAGES_PER_ITEM, |_| 0);
        }
        Ok(work)
    }

    fn add(&mut self, name: String, source: InputSource, length: u64, piece: u64, bytes: impl Fn(&Range<u64>) -> u64) {
        let input = self.inputs.len() as u32;
        for start in (0..length).step_by(piece.max(1) as usize) {
            let piece = start..length.min(start + piece);
            self.items.push(WorkItem { input, bytes: bytes(&piece), piece });
        }
        self.inputs.push(name);
        self.sources.push(source);
    }

    /// Returns a hash of the names and pieces of all inputs. Processes that see the same inputs
    /// have the same hash.
    pub fn fingerprint(&self) -> u64 {
        let mut text = String::new();
        for name in &self.inputs {
            text.push_str(name);
            text.push('\n');
        }
        for item in &self.items {
            text.push_str(&format!("{} {}-{} {}\n", item.input, item.piece.start, item.piece.end, item.bytes));
        }
        xxhash_rust::xxh3::xxh3_64(text.as_bytes())
    }

    /// Returns a key for each item, made of the name and version of its file and the piece.
    ///
    /// Items with the same key yield the same records in any run of the same job and build.
    pub fn keys(&self) -> Vec<u128> {
        self.items.iter().map(|item| self.key(item)).collect()
    }

    fn key(&self, item: &WorkItem) -> u128 {
        let mut text = format!("{}\n{}-{}\n", self.inputs[item.input as usize], item.piece.start, item.piece.end);
        let mut add =
            |what: &str, stamp: &FileStamp| text.push_str(&format!("{what} {} {}\n", stamp.bytes, stamp.version));
        match &self.sources[item.input as usize] {
            InputSource::Warc(origin) => add("warc", &origin.stamp),
            InputSource::WarcStream(origin, compression) => add(&format!("warc {compression:?}"), &origin.stamp),
            InputSource::Jsonl(_, stamp, compression) => add(&format!("jsonl {compression:?}"), stamp),
            InputSource::Parquet(_, stamp) => add("parquet", stamp),
            InputSource::Pages(_, files) => {
                for file in &files[item.piece.start as usize..item.piece.end as usize] {
                    add(file.location.name(), &file.stamp);
                }
            }
            InputSource::Synth(_) => text.push_str("synth"),
        }
        xxhash_rust::xxh3::xxh3_128(text.as_bytes())
    }

    /// Returns the number of bytes of an input of this crawl; 0 for a synthetic crawl.
    pub fn bytes(&self, input: u32) -> u64 {
        let first = self.items.partition_point(|item| item.input < input);
        self.items[first..].iter().take_while(|item| item.input == input).map(|item| item.bytes).sum()
    }

    /// Returns the sum of the weights of all items.
    pub fn weight(&self) -> u64 {
        self.items.iter().map(WorkItem::weight).sum()
    }

    /// Selects a sample of the same inputs, evenly spread, of about a quarter more input than
    /// `items` items.
    ///
    /// Inputs that can be entered anywhere contribute the beginnings of up to `PLACES` times as
    /// many items. Consecutive pages have their copies close together, too, so an estimate of the
    /// number of copies improves with the number of places. Consecutive pages also link to each
    /// other, so some items are included as a whole.
    pub fn sample(mut self, items: usize) -> Sample {
        let items = items.max(1);
        let step = self.items.len().div_ceil(items * PLACES).max(1);
        let sampled: Vec<WorkItem> = self.items.into_iter().skip(step / 2).step_by(step).collect();
        let parts = (sampled.len() / items).max(1);
        let mut kinds = Vec::with_capacity(sampled.len());
        self.items = Vec::with_capacity(sampled.len());
        for (number, item) in sampled.into_iter().enumerate() {
            let source = &self.sources[item.input as usize];
            // The record that begins in a piece is read to its end, so a piece of a few bytes would
            // yield more than its fraction of the file.
            let is_short = matches!(source, InputSource::Warc(_) | InputSource::Jsonl(..))
                && item.bytes / (parts as u64) < MIN_PLACE_BYTES;
            let kind = match source {
                _ if parts == 1 => SampleItem::WholePlace,
                InputSource::Warc(_)
                | InputSource::Jsonl(_, _, Compression::None)
                | InputSource::Pages(..)
                | InputSource::Synth(_)
                    if !is_short =>
                {
                    if number % (4 * parts) == 2 * parts {
                        SampleItem::Whole
                    } else {
                        SampleItem::Place
                    }
                }
                _ if number.is_multiple_of(parts) => SampleItem::WholePlace,
                _ => continue,
            };
            kinds.push(kind);
            self.items.push(if kind == SampleItem::Place { item.beginning(parts as u64) } else { item });
        }
        Sample { work: self, kinds }
    }

    /// Yields every record of an item to `sink`.
    ///
    /// # Errors
    /// Returns any error of the sink and of storage, and [`Error::Input`] if a file is not the
    /// planned version.
    pub fn read(&self, item: &WorkItem, input: &InputSettings, sink: &mut RecordSink<'_>) -> Result<RangeEnd> {
        self.read_item(item, input, sink).map_err(|error| error.of_input(&self.inputs[item.input as usize]))
    }

    fn read_item(&self, item: &WorkItem, input: &InputSettings, sink: &mut RecordSink<'_>) -> Result<RangeEnd> {
        let limits = &input.limits;
        let mut records = 0;
        let mut count_and_pass = |result: ReadResult| {
            records += 1;
            sink(result)
        };
        match &self.sources[item.input as usize] {
            InputSource::Warc(origin) => {
                let file = origin.open()?;
                return warc::read_range(&*file, item.piece.clone(), input, sink);
            }
            InputSource::WarcStream(origin, compression) => {
                read_stream(origin, *compression, input, &mut count_and_pass)?;
            }
            InputSource::Jsonl(location, stamp, compression) => {
                let file = open_pinned(location, stamp)?;
                match compression {
                    Compression::None => {
                        jsonl::read_range(&*file, item.piece.clone(), limits, &input.fields, &mut count_and_pass)?
                    }
                    _ => jsonl::read_whole(&*file, *compression, limits, &input.fields, &mut count_and_pass)?,
                }
            }
            InputSource::Parquet(location, stamp) => {
                let file = open_pinned(location, stamp)?;
                let rows = ParquetRows::open(file, location.name(), &input.fields)?;
                rows.read_groups(item.piece.clone(), limits, &mut count_and_pass)?;
            }
            InputSource::Pages(folder, files) => {
                let files = &files[item.piece.start as usize..item.piece.end as usize];
                html_dir::read_files(folder, files, input, &mut count_and_pass)?;
            }
            InputSource::Synth(synth) => synthetic(synth, item.piece.clone(), &mut count_and_pass)?,
        }
        Ok(RangeEnd { first_start: None, last_start: None, end: 0, records })
    }

    /// Yields the records of an input at `offsets`, which must ascend, and possibly others near
    /// them.
    ///
    /// # Errors
    /// Returns any error of [`WorkList::read`].
    pub fn read_again(
        &self,
        input: u32,
        offsets: &[u64],
        settings: &InputSettings,
        sink: &mut RecordSink<'_>,
    ) -> Result<()> {
        let read = self.sources[input as usize].read_at(offsets, |_| true, settings, sink);
        read.map_err(|error| error.of_input(&self.inputs[input as usize]))
    }

    /// Returns the offset from which on the records of each item are true. An item may begin inside
    /// a record that itself contains an archive.
    ///
    /// `ends[item]` is the outcome of reading that item. Items of earlier crawls may not have been
    /// read.
    pub fn floors(&self, ends: &[RangeEnd]) -> Vec<u64> {
        let mut floors = Vec::with_capacity(self.items.len());
        for items in self.items[..ends.len()].chunk_by(|x, y| x.input == y.input) {
            let ends = &ends[floors.len()..floors.len() + items.len()];
            match &self.sources[items[0].input as usize] {
                InputSource::Warc(..) => floors.extend(warc::settle(ends)),
                _ => floors.resize(floors.len() + items.len(), 0),
            }
        }
        floors.resize(self.items.len(), 0);
        floors
    }
}

/// Yields every record of a compressed stream.
pub(super) fn read_stream(
    origin: &Origin,
    compression: Compression,
    input: &InputSettings,
    sink: &mut RecordSink<'_>,
) -> Result<()> {
    let file = origin.open()?;
    match DecodedFile::new(&*file, compression, &input.limits) {
        Ok(stream) => warc::read_stream(stream, input, sink).map(drop),
        Err(error) => {
            let (reason, detail) = sort_out(error)?;
            sink(ReadResult::Refused(RefusedRecord { bytes: file.len(), ..RefusedRecord::new(0, reason, detail) }))
        }
    }
}

/// Yields the pages of a range of a synthetic crawl. The offset of a page is its number.
pub(super) fn synthetic(synth: &Synth, numbers: Range<u64>, sink: &mut RecordSink<'_>) -> Result<()> {
    for (number, page) in numbers.clone().zip(synth.pages(numbers)) {
        sink(ReadResult::Page(RawPage {
            fetch_time: page.fetch_time,
            mime: "text/html".into(),
            length: page.html.len() as u64,
            offset: number,
            ..RawPage::new(page.url, page.html, PageForm::Html)
        }))?;
    }
    Ok(())
}

/// Returns the locations of the inputs, ascending by name and without repetitions. The flag of a
/// location is true if an input names it directly.
fn sorted_locations(inputs: &[ExpandedInput]) -> Vec<(&Location, bool)> {
    let mut locations = BTreeMap::new();
    for ExpandedInput { locations: found, is_search, .. } in inputs {
        for location in found {
            *locations.entry(location).or_default() |= !is_search;
        }
    }
    locations.into_iter().collect()
}

/// Applies a function to each item on several threads. Returns the results in order, or the first
/// error in that order.
fn map_in_parallel<T: Sync, R: Send>(items: &[T], apply: impl Fn(&T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let results = threads::for_each(MAX_OPEN_INPUTS, items.len(), Vec::new, |results, position| {
        results.push((position, apply(&items[position])));
        Ok(())
    });
    let mut results: Vec<_> = results?.into_iter().flatten().collect();
    results.sort_unstable_by_key(|&(at, _)| at);
    results.into_iter().map(|(_, result)| result).collect()
}
