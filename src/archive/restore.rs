//! Restoration of the files that an archive was made of.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use data_encoding::HEXLOWER;

use super::head::RewritableHead;
use super::inputs::{WarcInput, archived, older_files};
use super::matches::{RecordCopies, RecordCopy, holders};
use super::pack::MemberWriter;
use super::references::{difference, differences_path};
use super::report::{ArchiveSummary, RestoreReport};
use super::survey::{Fingerprint, SurveyPurpose, pieces, stored_records, survey};
use super::{ArchiveEffort, near, result_of_write};
use webtwin_base::error::{Error, Result};
use webtwin_base::progress::StageTimes;
use webtwin_base::read_at::RandomAccess;
use webtwin_base::threads::for_each;
use webtwin_pages::warc::RecordCompression;
use webtwin_pages::warc::stored::{ByteReceiver, StoredRecord, TRAILER, Visitor, values};
use webtwin_storage::location::Location;
use webtwin_storage::manifest::{FileEntry, Manifest};
use webtwin_storage::new_file::NewFile;
use webtwin_storage::open::{open as opened, open_pinned};
use webtwin_storage::output::{Attempt, random_id};

/// Restores the files of the archive in `source` into `folder`, and commits them.
///
/// # Errors
/// Returns the errors of [`super::restore`]. Then no file is left behind.
pub(super) fn restore(
    source: &Location,
    older_archives: &[String],
    folder: &Location,
    effort: &ArchiveEffort,
    notify: &dyn Fn(String),
) -> Result<RestoreReport> {
    let mut stage_times = StageTimes::start();
    let (mut files, summary, compared_with) = archived(source)?;
    files.extend(older_files(older_archives, notify)?);
    let survey = survey(&files, SurveyPurpose::Restore, effort)?;
    let (copies, missing) = holders(survey.rows, summary.files.len(), effort)?;
    if let Some(row) = missing {
        let offset = row.offset;
        let mut message =
            format!("the record at offset {offset} refers to a payload that is in no file of the archive");
        if !compared_with.is_empty() {
            message +=
                &format!("; the archive was made against {}, so add it with --against", compared_with.join(", "));
        }
        return Err(Error::input(files[row.file as usize].location.name(), message));
    }
    stage_times.end_stage("survey");
    let attempt = Attempt::new(folder, &random_id()?)?;
    let temporary = attempt.temporary();
    let restore_files = || {
        let results = Mutex::new((Vec::new(), RestoreReport::default()));
        let restorer = Restorer { source, files: &files, summary: &summary, attempt: &attempt };
        for_each(effort.workers, copies.parts(), || (), |(), part| restorer.part(&copies, part, &results))?;
        Ok(results.into_inner().unwrap_or_else(PoisonError::into_inner))
    };
    let (mut entries, report): (Vec<FileEntry>, RestoreReport) =
        restore_files().inspect_err(|_: &Error| attempt.discard())?;
    entries.sort_unstable();
    stage_times.end_stage("restore");
    if let Some(temporary) = temporary {
        temporary.release();
    }
    manifest((source, older_archives), effort, &report, &stage_times, entries, attempt.id()).commit(&attempt)?;
    Ok(report)
}

fn manifest(
    (source, older_archives): (&Location, &[String]),
    effort: &ArchiveEffort,
    report: &RestoreReport,
    stage_times: &StageTimes,
    files: Vec<FileEntry>,
    attempt: &str,
) -> Manifest {
    let job = serde_json::json!({ "kind": "restore", "input": { "urls": [source.name()] }, "against": older_archives });
    let counts = [("records", report.records), ("restored", report.restored)];
    Manifest {
        workers: effort.workers as u64,
        counts: counts.map(|(name, count)| (name.to_string(), count)).into(),
        seconds: stage_times.seconds.clone(),
        files,
        ..Manifest::new(attempt, job)
    }
}

struct Restorer<'r> {
    source: &'r Location,
    /// Files of the archive, followed by those of older archives.
    files: &'r [WarcInput],
    summary: &'r ArchiveSummary,
    attempt: &'r Attempt,
}

impl Restorer<'_> {
    fn part(&self, copies: &RecordCopies, part: usize, results: &Mutex<(Vec<FileEntry>, RestoreReport)>) -> Result<()> {
        let (numbers, copies) = copies.take(part)?;
        for number in numbers {
            let first = copies.partition_point(|copy| (copy.file as usize) < number);
            let last = copies.partition_point(|copy| (copy.file as usize) <= number);
            let (entry, records) = self.file(number, &copies[first..last])?;
            let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
            results.1.files += 1;
            results.1.same_files += u64::from(first == last);
            results.1.records += records;
            results.1.restored += (last - first) as u64;
            results.1.bytes += entry.bytes;
            results.0.push(entry);
        }
        Ok(())
    }

    /// Restores a file. `copies` are its rewritten records, by offset. Also returns its number of
    /// records.
    fn file(&self, number: usize, copies: &[RecordCopy]) -> Result<(FileEntry, u64)> {
        let file = &self.files[number];
        let open = open_pinned(&file.location, &file.stamp)?;
        let mut records = stored_records(&*open, file)?;
        let mut writer = FileWriter {
            source: self.source,
            files: self.files,
            file,
            bytes: &*open,
            compression: records.compression(),
            dictionary: records.dictionary().map(<[u8]>::to_vec),
            copies: copies.iter(),
            output_file: self.attempt.create(&file.path)?,
            position: 0,
            block: None,
            fingerprint: Fingerprint::default(),
            records: 0,
        };
        records.visit(&mut writer)?;
        writer.copy_up_to(open.len())?;
        open.still_same()?;
        let archived = &self.summary.files[number];
        let is_same = HEXLOWER.encode(&std::mem::take(&mut writer.fingerprint).finish()) == archived.sha256;
        if !is_same || writer.records != archived.records.read {
            let message = "its restored records differ from the archived ones, so the archive has changed or is damaged; \
                        put the file back";
            return Err(Error::input(file.location.name(), message));
        }
        Ok((writer.output_file.finish(None)?, writer.records))
    }
}

struct FileWriter<'w> {
    source: &'w Location,
    files: &'w [WarcInput],
    file: &'w WarcInput,
    bytes: &'w dyn RandomAccess,
    compression: RecordCompression,
    dictionary: Option<Vec<u8>>,
    copies: std::slice::Iter<'w, RecordCopy>,
    output_file: NewFile,
    /// Position in the archived file up to which it has been processed.
    position: u64,
    /// Block of the current record, if it is a rewritten one.
    block: Option<Vec<u8>>,
    fingerprint: Fingerprint,
    records: u64,
}

impl FileWriter<'_> {
    /// Copies the bytes that have not been processed, up to a position.
    fn copy_up_to(&mut self, end: u64) -> Result<()> {
        let (output_file, path) = (&mut self.output_file, &self.file.path);
        pieces(self.bytes, self.position..end, &mut |piece| result_of_write(output_file.write_all(piece), path))?;
        self.position = end;
        Ok(())
    }

    fn restore(&mut self, record: &StoredRecord, block: &[u8]) -> Result<()> {
        let damaged_error = || {
            let message = format!(
                "the record at offset {} cannot be restored, so the archive is damaged; put the file back",
                record.range.start
            );
            Error::input(self.file.location.name(), message)
        };
        let copy = *self.copies.next().filter(|copy| copy.offset == record.range.start).ok_or_else(damaged_error)?;
        let own_head = RewritableHead::parse(&record.head).ok_or_else(damaged_error)?;
        let head = own_head.original().ok_or_else(damaged_error)?;
        let holder = &self.files[copy.of_file_number as usize];
        let open = open_pinned(&holder.location, &holder.stamp)?;
        let difference = difference(&own_head);
        let block = match difference.clone() {
            Some(range) => {
                &self.near_copy(&head, range, &*open, holder, copy.of_record_offset)?.ok_or_else(damaged_error)?
            }
            None => block,
        };
        self.fingerprint.heads(&head, block);
        let path = &self.file.path;
        let mut member = result_of_write(
            MemberWriter::begin(&mut self.output_file, self.compression, self.dictionary.as_deref()),
            path,
        )?;
        result_of_write(member.write_all(&head).and_then(|()| member.write_all(block)), path)?;
        if difference.is_some() {
            return result_of_write(member.write_all(TRAILER).and_then(|()| member.end()), path);
        }
        let mut payload = Payload { member: &mut member, fingerprint: &mut self.fingerprint, result: Ok(()) };
        stored_records(&*open, holder)?.read(copy.of_record_offset, &mut payload)?.ok_or_else(damaged_error)?;
        result_of_write(payload.result, path)?;
        result_of_write(member.write_all(TRAILER).and_then(|()| member.end()), path)
    }
}

impl FileWriter<'_> {
    /// Returns the block of a near-copy, from its difference and the payload at `offset` of the
    /// file `open`.
    fn near_copy(
        &self,
        head: &[u8],
        range: Range<u64>,
        open: &dyn RandomAccess,
        holder: &WarcInput,
        offset: u64,
    ) -> Result<Option<Vec<u8>>> {
        let differences = opened(&self.source.join(&differences_path(&self.file.path))?)?;
        let length = values(head, "Content-Length").concat().parse().ok();
        let Some(length) = length.filter(|&length: &usize| length as u64 <= near::MAX_BYTES) else { return Ok(None) };
        let mut base = Vec::new();
        let mut payload = Payload { member: &mut base, fingerprint: &mut Fingerprint::default(), result: Ok(()) };
        stored_records(open, holder)?.read(offset, &mut payload)?;
        let frame = differences.read_at(range.start, (range.end - range.start) as usize)?;
        Ok(near::decompress(&base, &frame, length))
    }
}

impl ByteReceiver for FileWriter<'_> {
    fn heads(&mut self, head: &[u8], http: &[u8]) {
        let is_ours = RewritableHead::parse(head).is_some_and(|head| head.has_ours());
        self.block = is_ours.then(|| http.to_vec());
        if !is_ours {
            self.fingerprint.heads(head, http);
        }
    }

    fn payload(&mut self, bytes: &[u8]) {
        match &mut self.block {
            Some(block) => block.extend_from_slice(bytes),
            None => self.fingerprint.payload(bytes),
        }
    }
}

impl Visitor for FileWriter<'_> {
    fn record(&mut self, record: StoredRecord) -> Result<()> {
        self.records += 1;
        if let Some(block) = self.block.take() {
            self.copy_up_to(record.range.start)?;
            self.restore(&record, &block)?;
            self.position = record.range.end;
        }
        self.fingerprint.record_is_whole();
        Ok(())
    }

    fn receive_other(&mut self, range: Range<u64>) -> Result<()> {
        self.fingerprint.other(self.bytes, range)
    }
}

/// Receiver of a payload from the record that holds it.
struct Payload<'p, W: Write> {
    member: W,
    fingerprint: &'p mut Fingerprint,
    result: io::Result<()>,
}

impl<W: Write> ByteReceiver for Payload<'_, W> {
    fn heads(&mut self, _: &[u8], _: &[u8]) {}

    fn payload(&mut self, bytes: &[u8]) {
        self.fingerprint.payload(bytes);
        if self.result.is_ok() {
            self.result = self.member.write_all(bytes);
        }
    }
}
