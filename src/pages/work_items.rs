//! The input cut in work items, each read by one worker.
//!
//! Items come from the files alone, never from the number of workers: WARC files and plain JSONL in pieces of fixed size,
//! Parquet by row group, folders of pages in batches of files, a synthetic crawl in ranges of pages.

use std::ops::Range;

use super::detect::{Kind, detect};
use super::record::{Form, Found, Limits, RawPage, ReadAt, Sink};
use super::warc::{self, RangeEnd};
use super::{html_dir, jsonl, parquet_rows};
use crate::error::{Error, Result};
use crate::job::Input;
use crate::storage::expand::expand;
use crate::storage::location::{Listed, Location};
use crate::storage::open::{Stamp, open, open_pinned};
use crate::synth::Synth;

/// Files of a folder that are read as one item.
const FILES_AN_ITEM: usize = 256;

/// Pages of a synthetic crawl that are made as one item.
const PAGES_AN_ITEM: u64 = 256;

/// Inputs, ascending by name, and the items they are cut in, in the order of inputs.
#[derive(Debug)]
pub struct Work {
    /// Name of each input.
    pub inputs: Vec<String>,
    /// Items; those of one input stand together, in the order of its bytes.
    pub items: Vec<WorkItem>,
    sources: Vec<Source>,
}

/// A piece of one input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkItem {
    /// Number of the input.
    pub input: u32,
    /// Bytes, row groups, files or pages, by the kind of input.
    piece: Range<u64>,
    /// Bytes of input that the piece stands for.
    bytes: u64,
}

impl WorkItem {
    /// Bytes of input that it stands for; 0 where there are none.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// An input that was looked at.
#[derive(Debug)]
enum Source {
    Warc(Location, Stamp),
    Jsonl(Location, Stamp, Kind),
    Parquet(Location, Stamp),
    /// A folder of pages, or a single page.
    Pages(Location, Vec<Listed>),
    Synth(Box<Synth>),
}

impl Work {
    /// Finds the inputs of a job and cuts them in items of about `shard_bytes`.
    ///
    /// # Errors
    /// [`Error::Input`] for an input that is missing or of no known kind; [`Error::Usage`] when there is none.
    pub fn plan(input: &Input, shard_bytes: u64) -> Result<Work> {
        if input.urls.is_empty() {
            return Err(Error::Usage("no input: give --input or input.urls, for example --input 'crawl/*.warc.gz'".into()));
        }
        let mut work = Work { inputs: Vec::new(), items: Vec::new(), sources: Vec::new() };
        let (synthetic, files): (Vec<String>, Vec<String>) =
            input.urls.iter().cloned().partition(|url| url.starts_with("synth://"));
        for location in if files.is_empty() { Vec::new() } else { expand(&files)? } {
            work.add_location(location, input, shard_bytes)?;
        }
        for url in synthetic {
            let synth = Synth::parse(&url)?;
            let pages = synth.len();
            work.add(url, Source::Synth(Box::new(synth)), pages, PAGES_AN_ITEM, |_| 0);
        }
        Ok(work)
    }

    fn add_location(&mut self, location: Location, input: &Input, shard_bytes: u64) -> Result<()> {
        let name = location.name().to_string();
        if location.is_folder() {
            let files = html_dir::files(&location)?;
            let (count, bytes) = (files.len() as u64, files.iter().map(|file| file.stamp.bytes).collect::<Vec<_>>());
            let of = |piece: &Range<u64>| bytes[piece.start as usize..piece.end as usize].iter().sum();
            self.add(name, Source::Pages(location, files), count, FILES_AN_ITEM as u64, of);
            return Ok(());
        }
        let file = open(&location)?;
        let (length, stamp) = (file.len(), file.stamp().clone());
        let of = |piece: &Range<u64>| piece.end - piece.start;
        match detect(&*file, &name)? {
            Kind::WarcPlain | Kind::WarcGzip | Kind::WarcZstd => {
                self.add(name, Source::Warc(location, stamp), length, shard_bytes, of)
            }
            kind @ Kind::Jsonl(compression) => {
                let piece = if compression.is_none() { shard_bytes } else { length };
                self.add(name, Source::Jsonl(location, stamp, kind), length, piece, of)
            }
            Kind::Parquet => {
                let groups = parquet_rows::row_groups(file, &name, &input.fields)? as u64;
                self.add(name, Source::Parquet(location, stamp), groups, 1, |_| length / groups.max(1))
            }
            Kind::HtmlFile => {
                let listed = vec![Listed { location: location.clone(), stamp }];
                self.add(name, Source::Pages(location, listed), 1, 1, |_| length)
            }
        }
        Ok(())
    }

    fn add(&mut self, name: String, source: Source, length: u64, piece: u64, bytes: impl Fn(&Range<u64>) -> u64) {
        let input = self.inputs.len() as u32;
        for start in (0..length).step_by(piece.max(1) as usize) {
            let piece = start..length.min(start + piece);
            self.items.push(WorkItem { input, bytes: bytes(&piece), piece });
        }
        self.inputs.push(name);
        self.sources.push(source);
    }

    /// Bytes of all items.
    pub fn bytes(&self) -> u64 {
        self.items.iter().map(WorkItem::bytes).sum()
    }

    /// Hands every record of an item to `sink`.
    ///
    /// # Errors
    /// Those of the sink and of storage; [`Error::Input`] when a file is not the one that was planned.
    pub fn read(&self, item: &WorkItem, input: &Input, sink: &mut Sink<'_>) -> Result<RangeEnd> {
        let limits = &input.limits;
        let mut records = 0;
        let mut counted = |found: Found| {
            records += 1;
            sink(found)
        };
        match &self.sources[item.input as usize] {
            Source::Warc(location, stamp) => {
                let file = open_pinned(location, stamp)?;
                return warc::read_range(&*file, item.piece.clone(), limits, sink);
            }
            Source::Jsonl(location, stamp, kind) => {
                let file = open_pinned(location, stamp)?;
                let Kind::Jsonl(compression) = *kind else { unreachable!("a JSONL source is of kind JSONL") };
                jsonl::read_range(&*file, compression, item.piece.clone(), &input.fields, limits, &mut counted)?;
            }
            Source::Parquet(location, stamp) => {
                let file = open_pinned(location, stamp)?;
                let group = item.piece.start as usize;
                parquet_rows::read_group(file, location.name(), group, &input.fields, limits, &mut counted)?;
            }
            Source::Pages(folder, files) => {
                for file in &files[item.piece.start as usize..item.piece.end as usize] {
                    counted(html_dir::read_file(folder, file, &input.base, limits)?)?;
                }
            }
            Source::Synth(synth) => {
                for (number, page) in (item.piece.start..).zip(synth.pages(item.piece.clone())) {
                    counted(Found::Page(RawPage {
                        url: page.url,
                        fetch_time: page.fetch_time,
                        status: 200,
                        mime: "text/html".into(),
                        charset: None,
                        length: page.html.len() as u64,
                        body: page.html,
                        form: Form::Html,
                        offset: number,
                        mended: None,
                    }))?;
                }
            }
        }
        Ok(RangeEnd { first_start: None, last_start: None, end: 0, records })
    }

    /// The offset from which the records of each item are true: an item may begin inside a record that holds an archive.
    ///
    /// `ends[item]` is what reading it came to.
    pub fn floors(&self, ends: &[RangeEnd]) -> Vec<u64> {
        let mut floors = Vec::with_capacity(ends.len());
        for items in self.items.chunk_by(|x, y| x.input == y.input) {
            let ends = &ends[floors.len()..floors.len() + items.len()];
            match &self.sources[items[0].input as usize] {
                Source::Warc(..) => floors.extend(warc::settle(ends)),
                _ => floors.resize(floors.len() + items.len(), 0),
            }
        }
        floors
    }
}
