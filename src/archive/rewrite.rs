//! Second pass over the files to archive: copies become revisits, near-copies become differences,
//! and everything else is copied byte for byte.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use data_encoding::HEXLOWER;
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

use super::cdxj::{self, CopiedRecords, INDEX, ReplacedRecord, push_line};
use super::inputs::WarcInput;
use super::matches::{RecordCopies, RecordCopy};
use super::near::{self, InputPosition, MAX_BYTES, NearCopies};
use super::pack::Packer;
use super::record::PayloadRecord;
use super::references::{Original, differences_path, note, revisit};
use super::report::{ArchiveCounts, ArchiveSummary, FileSummary, NearSummary, SUMMARY};
use super::sorted_lines::SortedLines;
use super::survey::{FileSurvey, pieces, stored_records};
use super::{ArchiveSettings, result_of_write};
use webtwin_base::error::{Error, Result};
use webtwin_base::progress::StageTimes;
use webtwin_base::read_at::RandomAccess;
use webtwin_base::threads::for_each;
use webtwin_pages::warc::stored::{ByteReceiver, StoredRecord, TRAILER, values};
use webtwin_storage::location::Location;
use webtwin_storage::manifest::{FileEntry, Manifest};
use webtwin_storage::new_file::NewFile;
use webtwin_storage::open::{OpenFile, open_pinned};
use webtwin_storage::output::{Attempt, random_id};

/// Maximum number of original heads that a thread caches.
const MAX_CACHED_HEADS: usize = 1 << 12;

/// Name and version of the form of rewritten records, as stored in the manifest.
pub(super) const RECIPE: (&str, &str) = ("archive", "revisits with Webtwin-Line, version 1");

/// Writes the archive and commits it.
///
/// # Errors
/// Returns any error of inputs and stores. Then no file is left behind.
pub(super) fn rewrite(
    settings: &ArchiveSettings,
    folder: &Location,
    mut rewriter: Rewriter,
    copies: RecordCopies,
    stage_times: &mut StageTimes,
) -> Result<ArchiveSummary> {
    let attempt = Attempt::new(folder, &random_id()?)?;
    let temporary = attempt.temporary();
    let mut rewrite_files = || -> Result<(Vec<FileEntry>, ArchiveSummary)> {
        let totals = Mutex::new(Done::default());
        for_each(
            settings.effort.workers,
            copies.parts(),
            || (),
            |(), part| {
                let (numbers, copies) = copies.take(part)?;
                // One cache for all files of a part, because reading the head of an original takes
                // an open and a decompression.
                let mut originals = HashMap::new();
                for number in numbers {
                    let first = copies.partition_point(|copy| (copy.file as usize) < number);
                    let last = copies.partition_point(|copy| (copy.file as usize) <= number);
                    let outcome = rewriter.file(&attempt, number, &copies[first..last], &mut originals)?;
                    totals.lock().unwrap_or_else(PoisonError::into_inner).add(outcome);
                }
                Ok(())
            },
        )?;
        let totals = totals.into_inner().unwrap_or_else(PoisonError::into_inner);
        let kept_counts = [totals.n_kept_small, totals.n_kept_referred, rewriter.kept_ambiguous];
        let summary = ArchiveSummary::from_files(totals.files, totals.near_summary, totals.n_older, kept_counts);
        let mut entries = totals.entries;
        // The index can only be merged after all files have added their lines.
        if let Some(index) = rewriter.index.take() {
            entries.push(attempt.write(INDEX, |file| index.merge(|line| file.append(line)))?);
        }
        attempt.put(SUMMARY, &summary.to_json())?;
        entries.push(FileEntry::new(SUMMARY, None, &summary.to_json()));
        entries.sort_unstable();
        Ok((entries, summary))
    };
    let (entries, summary) = rewrite_files().inspect_err(|_| attempt.discard())?;
    stage_times.end_stage("rewrite");
    // After the next call the attempt may be decided on, and then its files must stay.
    if let Some(temporary) = temporary {
        temporary.release();
    }
    manifest(settings, &summary, stage_times, entries, attempt.id()).commit(&attempt)?;
    Ok(summary)
}

fn manifest(
    settings: &ArchiveSettings,
    summary: &ArchiveSummary,
    stage_times: &StageTimes,
    files: Vec<FileEntry>,
    attempt: &str,
) -> Manifest {
    let near_json = settings.near.as_ref().map(|near| serde_json::json!({ "run": near.run, "write": near.write }));
    let job = serde_json::json!({ "kind": "archive", "input": { "urls": settings.inputs }, "against": settings.against, "near": near_json,
        "cdxj": settings.cdxj });
    let ArchiveCounts { read, copied: n_copied, revisits, near: n_near } = summary.records;
    let counts =
        [("read", read), ("copied", n_copied), ("revisits", revisits), ("near", n_near), ("against", summary.against)];
    Manifest {
        recipes: BTreeMap::from([(RECIPE.0.into(), RECIPE.1.into())]),
        workers: settings.effort.workers as u64,
        counts: counts.map(|(name, count)| (name.to_string(), count)).into(),
        seconds: stage_times.seconds.clone(),
        files,
        ..Manifest::new(attempt, job)
    }
}

/// Totals of what the threads have written.
#[derive(Default)]
struct Done {
    entries: Vec<FileEntry>,
    files: Vec<FileSummary>,
    near_summary: NearSummary,
    n_older: u64,
    n_kept_small: u64,
    n_kept_referred: u64,
}

impl Done {
    fn add(&mut self, mut other: Done) {
        self.entries.append(&mut other.entries);
        self.files.append(&mut other.files);
        self.near_summary.add(&other.near_summary);
        self.n_older += other.n_older;
        self.n_kept_small += other.n_kept_small;
        self.n_kept_referred += other.n_kept_referred;
    }
}

/// Cache of originals by their positions.
type Originals = HashMap<InputPosition, Original>;

/// Data that is complete before any file is written.
pub(super) struct Rewriter<'r> {
    /// Files to archive, followed by those of older archives.
    pub files: &'r [WarcInput],
    pub surveys: &'r [FileSurvey],
    /// Hashes of the names that the input's own revisits refer to, ascending.
    pub referred_names: &'r [u64],
    /// Hashes of ambiguous names, ascending.
    pub ambiguous: &'r [u64],
    /// Number of copies that stay because only ambiguous names refer to their payload.
    pub kept_ambiguous: u64,
    pub near_copies: &'r NearCopies,
    /// True if near-copies are written as differences; false if they are only measured.
    pub writes_near: bool,
    /// Lines of the index, if one is written.
    pub index: Option<SortedLines>,
    /// Compression level, as in [`NearCopySource::level`](super::NearCopySource::level).
    pub near_level: i32,
}

/// Target of a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reference {
    Copy(InputPosition),
    Near(InputPosition),
}

/// File that is being written.
struct Writing<'w> {
    open: &'w OpenFile,
    path: &'w str,
    output_file: NewFile,
    /// Position in the input up to which it has been processed.
    position: u64,
    /// Number of bytes written.
    out_bytes: u64,
    replaced_records: Vec<ReplacedRecord>,
    /// Lines of the index for records that replace others.
    lines: Vec<u8>,
    differences: Option<NewFile>,
    /// Total size of the differences so far in bytes, written or measured.
    differences_bytes: u64,
    records: ArchiveCounts,
    bytes: ArchiveCounts,
    near_summary: NearSummary,
    n_older: u64,
    n_kept_small: u64,
    n_kept_referred: u64,
}

impl Writing<'_> {
    fn copy_up_to(&mut self, end: u64) -> Result<()> {
        let (output_file, path) = (&mut self.output_file, self.path);
        pieces(self.open, self.position..end, &mut |piece| result_of_write(output_file.write_all(piece), path))?;
        self.bytes.copied += end - self.position;
        self.out_bytes += end - self.position;
        self.position = end;
        Ok(())
    }

    /// Writes bytes in place of a range of the input.
    fn replace(&mut self, range: Range<u64>, bytes: &[u8]) -> Result<()> {
        self.copy_up_to(range.start)?;
        self.position = range.end;
        self.replaced_records.push(ReplacedRecord { range, bytes: bytes.len() as u64 });
        self.out_bytes += bytes.len() as u64;
        result_of_write(self.output_file.write_all(bytes), self.path)
    }
}

impl Rewriter<'_> {
    /// Writes a file. `copies` are its copies by offset.
    fn file(&self, attempt: &Attempt, number: usize, copies: &[RecordCopy], originals: &mut Originals) -> Result<Done> {
        let (file, survey) = (&self.files[number], &self.surveys[number]);
        let open = open_pinned(&file.location, &file.stamp)?;
        let mut records = stored_records(&*open, file)?;
        let mut packer = Packer::new(records.compression(), records.dictionary())?;
        let mut writing = Writing {
            open: &open,
            path: &file.path,
            output_file: attempt.create(&file.path)?,
            position: 0,
            out_bytes: 0,
            replaced_records: Vec::new(),
            lines: Vec::new(),
            differences: None,
            differences_bytes: 0,
            records: ArchiveCounts { read: survey.records, ..ArchiveCounts::default() },
            bytes: ArchiveCounts { read: open.len(), ..ArchiveCounts::default() },
            near_summary: NearSummary::default(),
            n_older: 0,
            n_kept_small: 0,
            n_kept_referred: 0,
        };
        let copies =
            copies.iter().map(|copy| (copy.offset, Reference::Copy((copy.of_file_number, copy.of_record_offset))));
        let near_references =
            self.near_copies.copies_in_file(number as u32).map(|(offset, base)| (offset, Reference::Near(base)));
        let mut references: Vec<(u64, Reference)> = copies.chain(near_references).collect();
        references.sort_unstable();
        for (offset, reference) in references {
            let mut block_taken =
                Taken { block: matches!(reference, Reference::Near(_)).then(Vec::new), ..Taken::default() };
            let record = match (records.read(offset, &mut block_taken)?, reference) {
                (Some(record), _) => record,
                (None, Reference::Copy(_)) => return Err(changed_input_error(file, offset)),
                // The run has found a page at this offset, but there is no complete record.
                (None, Reference::Near(_)) => continue,
            };
            let payload_record = match (PayloadRecord::parse(&record.head, &record.http), reference) {
                (Some(payload_record), _) => payload_record,
                (None, Reference::Copy(_)) => return Err(changed_input_error(file, offset)),
                (None, Reference::Near(_)) => continue,
            };
            match reference {
                Reference::Copy(_)
                    if payload_record.names().iter().any(|name| self.referred_names.binary_search(name).is_ok()) =>
                {
                    writing.n_kept_referred += 1;
                }
                Reference::Copy(place) => {
                    let revisit = revisit(
                        &payload_record,
                        &record.http,
                        &self.original(place, originals)?,
                        block_taken.digests(),
                    );
                    let member = packer.pack(&[&revisit, &record.http, TRAILER])?;
                    // A revisit that is not smaller saves nothing.
                    if member.len() as u64 >= record.range.end - record.range.start {
                        writing.n_kept_small += 1;
                        continue;
                    }
                    writing.replace(record.range.clone(), &member)?;
                    let length = member.len() as u64;
                    let archive_position =
                        cdxj::ArchivePosition { path: &file.path, offset: writing.out_bytes - length, length };
                    push_line(&mut writing.lines, &revisit, &record.http, None, &archive_position);
                    writing.records.revisits += 1;
                    writing.bytes.revisits += record.range.end - record.range.start;
                    writing.n_older += u64::from(self.files[place.0 as usize].is_older);
                }
                Reference::Near(base) => {
                    self.near_copy(attempt, &mut writing, &mut packer, (&payload_record, &record, block_taken), base)?
                }
            }
        }
        writing.copy_up_to(open.len())?;
        if let Some(index) = &self.index {
            let mut copied_records = CopiedRecords::new(&file.path, &writing.replaced_records);
            records.visit(&mut copied_records)?;
            index.add(&[&writing.lines[..], &copied_records.lines].concat())?;
        }
        // A second check, because the file may have changed since it was opened.
        open.still_same()?;
        let Writing {
            output_file,
            differences,
            mut records,
            bytes,
            near_summary,
            n_older,
            n_kept_small,
            n_kept_referred,
            ..
        } = writing;
        if bytes.read != bytes.copied + bytes.revisits + bytes.near {
            return Err(Error::Invariant(format!(
                "{}: some of its {} bytes are lost: {bytes:?}",
                file.path, bytes.read
            )));
        }
        let mut entries = vec![output_file.finish(None)?];
        if let Some(differences) = differences {
            entries.push(differences.finish(None)?);
        }
        records.copied = records.read - records.revisits - records.near;
        let summary = FileSummary {
            path: file.path.clone(),
            bytes_in: file.stamp.bytes,
            bytes_out: entries.iter().map(|entry| entry.bytes).sum(),
            records,
            bytes,
            others: survey.others,
            other_bytes: survey.other_bytes,
            sha256: HEXLOWER.encode(&survey.sha256),
        };
        Ok(Done { entries, files: vec![summary], near_summary, n_older, n_kept_small, n_kept_referred })
    }

    /// Writes or measures a near-copy, if its difference is smaller than the record itself.
    fn near_copy(
        &self,
        attempt: &Attempt,
        writing: &mut Writing,
        packer: &mut Packer,
        (payload_record, record, block_taken): (&PayloadRecord, &StoredRecord, Taken),
        (base_file, base_offset): InputPosition,
    ) -> Result<()> {
        let Some(block) = block_taken.block.filter(|block| block.len() as u64 <= MAX_BYTES) else { return Ok(()) };
        let file = &self.files[base_file as usize];
        let open = open_pinned(&file.location, &file.stamp)?;
        let mut base = Taken { block: Some(Vec::new()), ..Taken::default() };
        let Some(stored_record) = stored_records(&*open, file)?.read(base_offset, &mut base)? else { return Ok(()) };
        let base_block = base.block.take().unwrap_or_default();
        let kind = values(&stored_record.head, "WARC-Type").concat().to_ascii_lowercase();
        // A base must hold its payload itself, because a restored near-copy needs it.
        let holds = stored_record.payload_bytes > 0 && ["response", "resource"].contains(&kind.as_str());
        if base_block.len() as u64 > MAX_BYTES || !holds {
            return Ok(());
        }
        let payload = &base_block[stored_record.http.len()..];
        let frame = near::compress(payload, &block, self.near_level)?;
        let place = (writing.differences_bytes, frame.len());
        let note = note(payload_record, &stored_record.head, &base.digests().0, place);
        let member = packer.pack(&[&note.0, &note.1, TRAILER])?;
        // The record that replaces the near-copy counts towards the size of the difference.
        let (stored_bytes, near_bytes) = (record.range.end - record.range.start, (member.len() + frame.len()) as u64);
        if near_bytes >= stored_bytes {
            return Ok(());
        }
        let zstd_bytes = match self.writes_near {
            true => None,
            false => {
                // Without a base, for comparison. It takes about as long as the difference, so a
                // run that writes differences skips it.
                Some(near::compress(&[], &[&record.head, &block, TRAILER].concat(), self.near_level)?.len() as u64)
            }
        };
        writing.differences_bytes += frame.len() as u64;
        writing.near_summary.add(&NearSummary { records: 1, stored_bytes, zstd_bytes, near_bytes });
        if !self.writes_near {
            return Ok(());
        }
        if writing.differences.is_none() {
            writing.differences = Some(attempt.create(&differences_path(writing.path))?);
        }
        if let Some(differences) = &mut writing.differences {
            result_of_write(differences.write_all(&frame), writing.path)?;
        }
        writing.replace(record.range.clone(), &member)?;
        writing.records.near += 1;
        writing.bytes.near += stored_bytes;
        writing.n_older += u64::from(file.is_older);
        Ok(())
    }

    /// Returns the description of the record that holds the payload of a copy.
    fn original(&self, place: InputPosition, originals: &mut Originals) -> Result<Original> {
        if let Some(original) = originals.get(&place) {
            return Ok(original.clone());
        }
        let file = &self.files[place.0 as usize];
        let open = open_pinned(&file.location, &file.stamp)?;
        let head = stored_records(&*open, file)?.head(place.1)?;
        let is_ambiguous = |name: u64| self.ambiguous.binary_search(&name).is_ok();
        let original = Original::parse(&head, is_ambiguous).ok_or_else(|| changed_input_error(file, place.1))?;
        if originals.len() == MAX_CACHED_HEADS {
            originals.clear();
        }
        originals.insert(place, original.clone());
        Ok(original)
    }
}

fn changed_input_error(file: &WarcInput, offset: u64) -> Error {
    Error::input(file.location.name(), format!("the record at offset {offset} changed while it was read; run again"))
}

/// Digests of a payload, and the block if it is needed and not too long.
#[derive(Default)]
struct Taken {
    sha256: Sha256,
    sha1: Sha1,
    block: Option<Vec<u8>>,
}

impl Taken {
    /// Returns the SHA-256 and the SHA-1 of the payload.
    fn digests(self) -> ([u8; 32], [u8; 20]) {
        (self.sha256.finalize().into(), self.sha1.finalize().into())
    }
}

impl ByteReceiver for Taken {
    fn heads(&mut self, _: &[u8], http: &[u8]) {
        if let Some(block) = &mut self.block {
            block.extend_from_slice(http);
        }
    }

    fn payload(&mut self, bytes: &[u8]) {
        self.sha256.update(bytes);
        self.sha1.update(bytes);
        // Blocks may exceed the limit, which marks them as too long.
        if let Some(block) = self.block.as_mut().filter(|block| block.len() as u64 <= MAX_BYTES) {
            block.extend_from_slice(bytes);
        }
    }
}
