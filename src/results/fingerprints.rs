//! Sources of fingerprints: the fingerprint set F itself, the table of pages of a run, or a plain
//! file.
//!
//! | source | recognised by | document of a row |
//! |---|---|---|
//! | F | a folder with `fingerprints.json` | its doc id, or its place in F |
//! | a run with the same recipe, or a part of its pages | the folder of the run, or Parquet with the columns `doc_id` and `simhash` | its doc id |
//! | raw | a name that ends in `.u64`: 8 bytes each, little-endian | its place in the file |
//! | text | any other file: one fingerprint per line, optionally followed by the number of a document | that number, or the place of the line |
//!
//! In text a fingerprint is decimal, or hexadecimal with `0x`. If the first fingerprint of a file
//! has 16 hexadecimal digits, all in that file are hexadecimal. If there are several files without
//! document numbers, file n counts from n · 2^40.

use std::sync::{Arc, Mutex, PoisonError};

use super::FinishedRun;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{DocId, SimHash};
use webtwin_base::read_at::RandomAccess;
use webtwin_core::hamming::design::width_mask;
use webtwin_core::hamming::fingerprint_file::{FingerprintFile, FingerprintManifest, NAME};
use webtwin_core::hamming::rows::FingerprintRow;
use webtwin_storage::location::Location;
use webtwin_storage::manifest;
use webtwin_storage::open::open;
use webtwin_storage::table::decode;

/// Number of bytes of a raw file that are read as one item.
const RAW_ITEM_BYTES: u64 = 8 << 20;

/// Number of rows that are passed together. They fit into the cache of a core.
const BATCH: usize = 1 << 14;

/// Number of rows of F that are read as one item.
const ITEM_ROWS: u64 = 1 << 20;

/// Binary logarithm of the maximum number of documents in a file without numbers.
const FILE_BITS: u32 = 40;

/// An open fingerprint set F.
#[derive(Debug, Clone)]
pub struct FingerprintSet {
    /// List of the chunks, and the properties of the set.
    pub manifest: FingerprintManifest,
    /// True if documents have ids of their own instead of their places in F.
    pub doc_ids: bool,
    folder: Location,
    /// Place of the first row of each chunk.
    starts: Vec<u64>,
    /// Chunk of which a piece was read last. The next piece usually belongs to the same chunk.
    open_chunk: Arc<Mutex<Option<OpenedChunk>>>,
}

/// Number of a chunk, and the open chunk.
#[derive(Debug, Clone)]
struct OpenedChunk(usize, Arc<FingerprintFile>);

/// A part of a chunk that one worker reads at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkPiece {
    /// Number of the chunk.
    pub chunk: usize,
    part: usize,
    parts: usize,
}

impl FingerprintSet {
    /// Opens the set in a folder; returns `None` if the folder has none.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if its manifest is damaged, and [`Error::Storage`] if the store
    /// fails.
    pub fn find(folder: &Location) -> Result<Option<FingerprintSet>> {
        let location = folder.join(NAME)?;
        let Some(bytes) = location.get()? else { return Ok(None) };
        let manifest = FingerprintManifest::from_json(location.name(), &bytes)?;
        let starts = manifest.chunks.iter().scan(0, |next, chunk| {
            *next += chunk.count;
            Some(*next - chunk.count)
        });
        let (starts, last_chunk) = (starts.collect(), Arc::default());
        let mut set =
            FingerprintSet { starts, manifest, doc_ids: false, folder: folder.clone(), open_chunk: last_chunk };
        set.doc_ids = !set.manifest.chunks.is_empty() && set.chunk(0)?.header().doc_ids;
        Ok(Some(set))
    }

    /// Opens the set in a folder.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if there is none, and any error of [`FingerprintSet::find`].
    pub fn open(url: &str) -> Result<FingerprintSet> {
        let folder = Location::parse(url)?;
        FingerprintSet::find(&folder)?.ok_or_else(|| {
            let why = "this is not a fingerprint file, or it was not finished; make one with `webtwin hamming build`";
            Error::input(folder.name(), format!("no {NAME}: {why}"))
        })
    }

    /// Opens a chunk.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the chunk is missing, damaged, or not the one in the manifest.
    pub fn chunk(&self, number: usize) -> Result<FingerprintFile> {
        let chunk = &self.manifest.chunks[number];
        let location = self.folder.join(&chunk.name)?;
        let file = open(&location)?;
        if file.stamp().bytes != chunk.bytes {
            return Err(Error::input(
                location.name(),
                format!("its length is not the {} bytes that {NAME} gives; build the fingerprints again", chunk.bytes),
            ));
        }
        let chunk_file = FingerprintFile::open(location.name(), file)?;
        let subject = chunk_file.header();
        if (subject.f, subject.count, subject.first, subject.last)
            != (self.manifest.f, chunk.count, chunk.first, chunk.last)
            || subject.recipe != self.manifest.recipe
            || (number > 0 && subject.doc_ids != self.doc_ids)
        {
            return Err(Error::input(
                location.name(),
                format!("it is not the chunk that {NAME} describes; build the fingerprints again"),
            ));
        }
        Ok(chunk_file)
    }

    /// Returns the pieces of all chunks, in order. Each chunk is cut into equal pieces of at most
    /// about `rows` rows.
    pub fn pieces(&self, rows: u64) -> Vec<ChunkPiece> {
        let pieces_of_chunk = |(chunk, count): (usize, u64)| {
            let parts = count.div_ceil(rows) as usize;
            (0..parts).map(move |part| ChunkPiece { chunk, part, parts })
        };
        self.manifest.chunks.iter().map(|chunk| chunk.count).enumerate().flat_map(pieces_of_chunk).collect()
    }

    /// Reads the fingerprints whose first row in the chunk is in a piece, ascending, with all rows
    /// of each. They replace the content of `fingerprints`. Returns the place in the chunk of the
    /// first row.
    ///
    /// # Errors
    /// Returns any error of [`FingerprintSet::chunk`].
    ///
    /// # Cost
    /// Proportional to the rows. Head and directory of a chunk are read once for consecutive
    /// pieces.
    pub fn read_piece(&self, piece: ChunkPiece, fingerprints: &mut Vec<u64>) -> Result<usize> {
        self.chunk_of_pieces(piece.chunk)?.decode_part(piece.part, piece.parts, fingerprints)
    }

    /// Returns the place in F of a row of a chunk.
    pub fn place(&self, chunk: usize, row: usize) -> u64 {
        self.starts[chunk] + row as u64
    }

    /// Returns the number of the chunk that contains a place of F.
    pub fn chunk_at(&self, place: u64) -> usize {
        self.starts.partition_point(|start| *start <= place) - 1
    }

    /// Returns the documents of some places of F, which must be in one chunk.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if they are damaged.
    pub fn documents_at(&self, places: std::ops::Range<u64>) -> Result<Vec<DocId>> {
        let chunk = self.chunk_at(places.start);
        let row = |place: u64| (place - self.starts[chunk]) as usize;
        self.documents(chunk, row(places.start)..row(places.end))
    }

    fn chunk_of_pieces(&self, number: usize) -> Result<Arc<FingerprintFile>> {
        let mut open_chunk = self.open_chunk.lock().unwrap_or_else(PoisonError::into_inner);
        match &*open_chunk {
            Some(OpenedChunk(number_open, chunk)) if *number_open == number => Ok(Arc::clone(chunk)),
            _ => {
                let chunk = Arc::new(self.chunk(number)?);
                *open_chunk = Some(OpenedChunk(number, Arc::clone(&chunk)));
                Ok(chunk)
            }
        }
    }

    /// Returns the documents of some rows of a chunk: their doc ids, or their places in F.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if they are damaged.
    pub fn documents(&self, number: usize, rows: std::ops::Range<usize>) -> Result<Vec<DocId>> {
        if self.doc_ids {
            return self.chunk_of_pieces(number)?.doc_ids(rows);
        }
        let start = self.starts[number];
        Ok(rows.map(|row| start + row as u64).collect())
    }

    /// Returns all fingerprints, ascending, and the document of each if `documents` is true.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if a chunk is missing or damaged.
    ///
    /// # Cost
    /// Memory of 8 or 16 bytes per row, and for one chunk.
    pub fn read(&self, documents: bool) -> Result<(Vec<u64>, Option<Vec<DocId>>)> {
        let (mut fingerprints, mut doc_ids, mut rows) = (Vec::new(), documents.then(Vec::new), Vec::new());
        fingerprints.reserve_exact(self.manifest.count as usize);
        doc_ids.iter_mut().for_each(|doc_ids| doc_ids.reserve_exact(self.manifest.count as usize));
        for number in 0..self.manifest.chunks.len() {
            self.chunk_of_pieces(number)?.decode_all(&mut rows)?;
            fingerprints.extend_from_slice(&rows);
            if let Some(doc_ids) = &mut doc_ids {
                doc_ids.extend(self.documents(number, 0..rows.len())?);
            }
        }
        Ok((fingerprints, doc_ids))
    }
}

/// A part of a source that one worker reads.
#[derive(Debug, Clone)]
pub enum SourceItem {
    /// A piece of F.
    Piece(Arc<FingerprintSet>, ChunkPiece),
    /// A part of the table of pages of a run.
    Pages(Location),
    /// Bytes of a raw file, with the document of its first row.
    Raw {
        /// Raw file.
        location: Location,
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        bytes: u64,
        /// Document of the first row.
        document: DocId,
    },
    /// Lines of a text file, with the document of the first line.
    Text(Location, DocId),
}

/// Sources, divided into items.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// Items, in the order of the sources.
    pub items: Vec<SourceItem>,
    /// f and recipe, if any source declares them. All sources that do must agree.
    pub made: Option<(u32, String)>,
    /// True if all documents have ids of their own.
    pub doc_ids: bool,
}

impl Sources {
    /// Inspects each source and divides it into items.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if a source is missing, or was made by another recipe than an
    /// earlier one.
    pub fn find(urls: &[String]) -> Result<Sources> {
        let mut sources = Sources { doc_ids: true, ..Sources::default() };
        let mut files = 0;
        for url in urls {
            let location = Location::parse(url)?;
            if location.stamp()?.is_some() {
                sources.file(location, files << FILE_BITS)?;
                files += 1;
                continue;
            }
            if let Some(set) = FingerprintSet::find(&location)? {
                sources.note_source(url, (set.manifest.f, set.manifest.recipe.clone()))?;
                sources.doc_ids &= set.doc_ids;
                let set = Arc::new(set);
                sources
                    .items
                    .extend(set.pieces(ITEM_ROWS).into_iter().map(|piece| SourceItem::Piece(set.clone(), piece)));
                continue;
            }
            let location = match location.join(manifest::NAME)?.exists()? {
                true => {
                    let run = FinishedRun::open(url)?;
                    let bits = run.job()?.simhash.bits;
                    let recipe = run.manifest.recipes.get("simhash").filter(|_| bits > 0).cloned();
                    let recipe = recipe.ok_or_else(|| {
                        Error::input(url, "its pages have no simhashes; run its job again with simhash.bits = 64")
                    })?;
                    sources.note_source(url, (bits, recipe))?;
                    location.join("pages")?
                }
                false => location,
            };
            let locations: Vec<Location> = location.list(None)?.into_iter().map(|file| file.location).collect();
            if locations.is_empty() {
                return Err(Error::input(location.name(), "there is no such file or folder; check the path"));
            }
            for location in locations {
                sources.file(location, files << FILE_BITS)?;
                files += 1;
            }
        }
        Ok(sources)
    }

    /// Returns the number of rows of all sources.
    ///
    /// # Errors
    /// Returns any error of [`SourceItem::read`].
    ///
    /// # Cost
    /// Tables of pages and text files are read. For F and raw files the number is known.
    pub fn rows(&self) -> Result<u64> {
        let rows_of = |item: &SourceItem| match item {
            SourceItem::Piece(set, piece) => {
                let count = set.manifest.chunks[piece.chunk].count;
                // The last part of a chunk contains the remainder.
                let rows_per_piece = count / piece.parts as u64;
                Ok(if piece.part + 1 == piece.parts {
                    count - rows_per_piece * (piece.parts as u64 - 1)
                } else {
                    rows_per_piece
                })
            }
            SourceItem::Raw { bytes, .. } => Ok(bytes / 8),
            SourceItem::Pages(_) | SourceItem::Text(..) => {
                let mut rows = 0;
                item.read(u64::BITS, &mut |batch| {
                    rows += batch.len() as u64;
                    Ok(())
                })?;
                Ok(rows)
            }
        };
        self.items.iter().map(rows_of).sum()
    }

    fn note_source(&mut self, source: &str, source_kind: (u32, String)) -> Result<()> {
        match &self.made {
            Some(known_kind) if *known_kind != source_kind => {
                let reason = format!(
                    "its fingerprints are {} ({} bits), but those of the inputs before it {} ({} bits); give inputs \
                     of one recipe",
                    source_kind.1, source_kind.0, known_kind.1, known_kind.0
                );
                Err(Error::input(source, reason))
            }
            _ => {
                self.made = Some(source_kind);
                Ok(())
            }
        }
    }

    fn file(&mut self, location: Location, document: DocId) -> Result<()> {
        let name = location.file_name();
        if name.ends_with(".parquet") {
            self.items.push(SourceItem::Pages(location));
            return Ok(());
        }
        self.doc_ids = false;
        if name.ends_with(".u64") {
            let length = location.stamp()?.map_or(0, |stamp| stamp.bytes);
            if length % 8 != 0 {
                return Err(Error::input(
                    location.name(),
                    format!("its {length} bytes are not a multiple of 8, the size of a fingerprint"),
                ));
            }
            for offset in (0..length).step_by(RAW_ITEM_BYTES as usize) {
                let bytes = RAW_ITEM_BYTES.min(length - offset);
                self.items.push(SourceItem::Raw {
                    location: location.clone(),
                    offset,
                    bytes,
                    document: document + offset / 8,
                });
            }
        } else {
            self.items.push(SourceItem::Text(location, document));
        }
        Ok(())
    }
}

impl SourceItem {
    /// Reads the rows, none wider than `f` bits, and passes them to `take` in order, about ten
    /// thousand at a time.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the item is missing, damaged, or contains anything but
    /// fingerprints of `f` bits, [`Error::Storage`] if the store fails, and any error of `take`.
    pub fn read(&self, f: u32, take: &mut dyn FnMut(&[FingerprintRow]) -> Result<()>) -> Result<()> {
        match self {
            SourceItem::Piece(set, piece) => {
                let mut fingerprints = Vec::new();
                let first = set.read_piece(*piece, &mut fingerprints)?;
                let documents = set.documents(piece.chunk, first..first + fingerprints.len())?;
                forward(set.folder.name(), f, fingerprints.into_iter().zip(documents), take)
            }
            SourceItem::Pages(location) => forward(location.name(), f, pages(location)?.into_iter(), take),
            SourceItem::Raw { location, offset, bytes, document } => {
                let (file, end) = (open(location)?, offset + bytes);
                for start in (*offset..end).step_by(8 * BATCH) {
                    let bytes = file.read_at(start, (end - start).min(8 * BATCH as u64) as usize)?;
                    let values = bytes.as_chunks().0.iter().map(|&bytes| u64::from_le_bytes(bytes));
                    forward(location.name(), f, values.zip(document + (start - offset) / 8..), take)?;
                }
                Ok(())
            }
            SourceItem::Text(location, document) => {
                let bytes = location.get()?.ok_or_else(|| {
                    Error::input(location.name(), "it was removed while it was read; put it back and run again")
                })?;
                forward(location.name(), f, lines(location.name(), &bytes, *document)?.into_iter(), take)
            }
        }
    }

    /// Reads all rows.
    ///
    /// # Errors
    /// Returns any error of [`SourceItem::read`].
    pub fn read_all(&self, f: u32) -> Result<Vec<FingerprintRow>> {
        let mut batches = Vec::new();
        self.read(f, &mut |rows| {
            batches.extend_from_slice(rows);
            Ok(())
        })?;
        Ok(batches)
    }
}

/// Checks the width of the rows of a source called `name`, and passes them to `take` in batches.
fn forward(
    name: &str,
    f: u32,
    mut rows: impl Iterator<Item = (SimHash, DocId)>,
    take: &mut dyn FnMut(&[FingerprintRow]) -> Result<()>,
) -> Result<()> {
    let mut batch: Vec<FingerprintRow> = Vec::with_capacity(rows.size_hint().0.min(BATCH));
    loop {
        batch.clear();
        batch.extend(rows.by_ref().take(BATCH).map(|(fingerprint, document)| FingerprintRow { fingerprint, document }));
        if batch.is_empty() {
            return Ok(());
        }
        let used_bits = batch.iter().fold(0, |used, row| used | row.fingerprint);
        if used_bits & !width_mask(f) != 0
            && let Some(wide) = batch.iter().find(|row| row.fingerprint & !width_mask(f) != 0)
        {
            return Err(Error::input(name, format!("fingerprint {:#x} has more than {f} bits", wide.fingerprint)));
        }
        take(&batch)?;
    }
}

/// Returns the pages of a run that have a simhash.
fn pages(location: &Location) -> Result<Vec<(SimHash, DocId)>> {
    let bytes = location
        .get()?
        .ok_or_else(|| Error::input(location.name(), "it was removed while it was read; put it back and run again"))?;
    let table = decode(location.name(), bytes)?;
    let doc_ids = table.u64("doc_id")?;
    let simhashes = table.u64_where("simhash", "has_simhash")?;
    Ok(simhashes.iter().zip(doc_ids).filter_map(|(simhash, doc_id)| Some(((*simhash)?, *doc_id))).collect())
}

/// Parses lines of the form `FINGERPRINT [DOCUMENT]`. Empty lines and lines that begin with `#` are
/// ignored.
fn lines(name: &str, bytes: &[u8], document: DocId) -> Result<Vec<(SimHash, DocId)>> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Error::input(name, "neither text nor a known format; give a result, a .u64 file or text"))?;
    let numbered_lines = || {
        let lines = (1..).zip(text.lines().map(str::trim));
        lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
    };
    let hexadecimal_line = hexadecimal_line(numbered_lines());
    let mut rows = Vec::new();
    for (place, (number, line)) in numbered_lines().enumerate() {
        let mut words = line.split_ascii_whitespace();
        let word = words.next().unwrap_or_default();
        // `parse` and `from_str_radix` accept a sign, but a sign is not a digit.
        let fingerprint = match word.strip_prefix("0x") {
            Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
            None if hexadecimal_line.is_some() => {
                u64::from_str_radix(word, 16).ok().filter(|_| is_full_hexadecimal(word))
            }
            None if !word.starts_with('+') => word.parse().ok(),
            _ => None,
        };
        let document = words.next().map_or(Some(document + place as u64), |word| word.parse().ok());
        match fingerprint.zip(document).filter(|_| words.next().is_none()) {
            Some(row) => rows.push(row),
            None => {
                let line: String = line.chars().take(80).collect();
                let notation = match hexadecimal_line {
                    Some(first) => format!(
                        "the fingerprint as 16 hexadecimal digits, as in line {first}, or in hexadecimal with 0x"
                    ),
                    None => "the fingerprint in decimal, in hexadecimal with 0x, or in every line as 16 hexadecimal \
                             digits"
                        .into(),
                };
                let reason = format!("line {number}: {line:?} is not FINGERPRINT [DOCUMENT]; write {notation}");
                return Err(Error::input(name, reason));
            }
        }
    }
    Ok(rows)
}

/// Returns the number of the line by which a file has fingerprints as 16 hexadecimal digits, or
/// `None` if it has decimal numbers.
///
/// That line is the first one with 16 such digits of which one is a letter. A file without letters
/// is hexadecimal if every fingerprint has 16 digits. Fingerprints with `0x` say nothing about the
/// others.
fn hexadecimal_line<'t>(lines: impl Iterator<Item = (usize, &'t str)>) -> Option<usize> {
    let (mut first, mut is_decimal) = (None, false);
    for (number, line) in lines {
        let word = line.split_ascii_whitespace().next().unwrap_or_default();
        if word.starts_with("0x") {
            continue;
        }
        if !is_full_hexadecimal(word) {
            is_decimal = true;
        } else if word.bytes().any(|byte| byte.is_ascii_alphabetic()) {
            return Some(number);
        } else {
            first = first.or(Some(number));
        }
    }
    first.filter(|_| !is_decimal)
}

/// True for 16 hexadecimal digits, the form in which this program writes fingerprints.
fn is_full_hexadecimal(word: &str) -> bool {
    word.len() == 16 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_decimal_or_hexadecimal_with_or_without_documents() {
        let read = |text: &str| lines("f", text.as_bytes(), 100);
        assert_eq!(read("7\n\n# note\n0x1f\n").unwrap(), [(7, 100), (31, 101)]);
        assert_eq!(read("00000000000000ff 5\nfedcba9876543210\t6\n").unwrap(), [(255, 5), (0xfedc_ba98_7654_3210, 6)]);
        for invalid in ["x", "7 8 9", "00000000000000ff\n12", "18446744073709551616", "7 y", "0xg", "+7", "0x+7"] {
            assert_eq!(read(invalid).unwrap_err().exit_code(), 3, "{invalid}");
        }
    }

    #[test]
    fn all_lines_decide_if_fingerprints_are_hexadecimal() {
        let read = |text: &str| lines("f", text.as_bytes(), 0).map(|rows| rows.into_iter().map(|row| row.0).collect());
        let values = |text: &str| -> Vec<u64> { read(text).unwrap() };
        assert_eq!(values("0000000000000010\n00000000000000ff"), [16, 255]);
        assert_eq!(values("0000000000000010\n0000000000000011"), [16, 17]);
        assert_eq!(values("0000000000000010\n17"), [10, 17]);
        assert_eq!(values("0xf\n00000000000000ff"), [15, 255]);
        assert_eq!(values("00000000000000ff\n0xf"), [255, 15]);
        let reason = |text: &str| -> String { read(text).map(|_: Vec<u64>| ()).unwrap_err().to_string() };
        let error = reason("0000000000000010\n00000000000000ff\n12 3");
        assert!(error.contains("line 3: \"12 3\"") && error.contains("as in line 2"), "{error}");
        let error = reason("10\n# note\nabd");
        assert!(error.contains("line 3: \"abd\"") && error.contains("in every line as 16 hexadecimal"), "{error}");
    }

    #[test]
    fn raw_files_are_split_and_invalid_ones_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.u64");
        std::fs::write(&path, [1u64, u64::MAX].map(u64::to_le_bytes).concat()).unwrap();
        let url = path.to_str().unwrap().to_string();
        let sources = Sources::find(std::slice::from_ref(&url)).unwrap();
        let row = |(fingerprint, document)| FingerprintRow { fingerprint, document };
        assert_eq!(sources.items[0].read_all(64).unwrap(), [(1, 0), (u64::MAX, 1)].map(row));
        assert!(sources.items[0].read_all(32).unwrap_err().to_string().contains("more than 32 bits"));
        std::fs::write(&path, [0; 9]).unwrap();
        assert!(Sources::find(&[url]).unwrap_err().to_string().contains("not a multiple of 8"));
        assert_eq!(Sources::find(&["/no/such".into()]).unwrap_err().exit_code(), 3);
    }
}
