//! First pass over the files: finds the records and the keys of their payloads.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use sha2::{Digest as _, Sha256};
use xxhash_rust::xxh3::xxh3_64;

use super::ArchiveEffort;
use super::head::RewritableHead;
use super::inputs::WarcInput;
use super::matches::{HOLDER_RANK, KeyedRecord, KeyedRecords, OLDER_RANK, REFERENCE_RANK};
use super::names::RecordNames;
use super::record::{self, PayloadRecord, key, referred};
use super::references::payload_wanted;
use webtwin_base::error::{Error, Result};
use webtwin_base::read_at::RandomAccess;
use webtwin_base::threads::for_each;
use webtwin_job::RecordLimits;
use webtwin_pages::warc::RecordCompression;
use webtwin_pages::warc::stored::{ByteReceiver, StoredRecord, StoredRecords, TRAILER, Visitor, values};
use webtwin_storage::open::open_pinned;

/// Maximum number of bytes outside of records that are read at a time.
const PIECE_BYTES: u64 = 1 << 20;

/// Purpose of a survey.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SurveyPurpose {
    /// Find the records that are copies.
    Archive,
    /// Find the records that hold the payloads that others refer to.
    Restore,
}

/// Content of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FileSurvey {
    pub records: u64,
    /// Number of ranges outside of complete records, and their total size in bytes.
    pub others: u64,
    pub other_bytes: u64,
    /// SHA-256 of the decompressed records and of the other bytes unchanged, in their order.
    pub sha256: [u8; 32],
}

/// Content of all files.
pub(super) struct Survey {
    pub rows: KeyedRecords,
    /// Content of each file, by number.
    pub files: Vec<FileSurvey>,
    /// Hashes of the names that the input's own revisits refer to, ascending.
    pub referred_names: Vec<u64>,
    /// Hashes of ambiguous names, ascending.
    pub ambiguous: Vec<u64>,
}

/// Surveys all files.
///
/// # Errors
/// Returns any error of the files, and [`Error::Input`] if a file to archive already belongs to an
/// archive.
pub(super) fn survey(files: &[WarcInput], purpose: SurveyPurpose, effort: &ArchiveEffort) -> Result<Survey> {
    let (rows, names) = (KeyedRecords::new(effort), RecordNames::new(effort));
    let results = Mutex::new((vec![FileSurvey::default(); files.len()], Vec::new()));
    for_each(
        effort.workers,
        files.len(),
        || (),
        |(), number| {
            let (file_survey, mut referred_rows) =
                survey_file(number as u32, &files[number], purpose, (&rows, &names))?;
            let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
            results.0[number] = file_survey;
            results.1.append(&mut referred_rows);
            results.1.sort_unstable();
            results.1.dedup();
            Ok(())
        },
    )?;
    let (files, referred_rows) = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Survey { rows, files, referred_names: referred_rows, ambiguous: names.ambiguous()? })
}

fn survey_file(
    number: u32,
    file: &WarcInput,
    purpose: SurveyPurpose,
    (rows, names): (&KeyedRecords, &RecordNames),
) -> Result<(FileSurvey, Vec<u64>)> {
    let open = open_pinned(&file.location, &file.stamp)?;
    let mut records = stored_records(&*open, file)?;
    let mut surveyor = Surveyor {
        number,
        file,
        bytes: &*open,
        is_plain: records.compression() == RecordCompression::Plain,
        purpose,
        rows,
        names,
        survey: FileSurvey::default(),
        referred_names: Vec::new(),
        sha256: Fingerprint::default(),
        payload: Sha256::new(),
    };
    records.visit(&mut surveyor)?;
    open.still_same()?;
    surveyor.survey.sha256 = surveyor.sha256.finish();
    surveyor.referred_names.sort_unstable();
    surveyor.referred_names.dedup();
    Ok((surveyor.survey, surveyor.referred_names))
}

/// Opens the records of a file.
pub(super) fn stored_records<'f>(open: &'f dyn RandomAccess, file: &WarcInput) -> Result<StoredRecords<'f>> {
    let not_warc = || {
        Error::input(file.location.name(), "not a WARC file any more, because it changed since it was found; run again")
    };
    StoredRecords::open(open, &RecordLimits::default())?.ok_or_else(not_warc)
}

/// SHA-256 of a file: of its decompressed records and of its other bytes.
#[derive(Default)]
pub(super) struct Fingerprint {
    whole_digest: Sha256,
    /// State including the current record.
    with_record: Sha256,
}

impl Fingerprint {
    pub(crate) fn finish(self) -> [u8; 32] {
        self.whole_digest.finalize().into()
    }

    pub(crate) fn record_is_whole(&mut self) {
        self.with_record.update(TRAILER);
        self.whole_digest = self.with_record.clone();
    }

    /// Adds bytes of the file that do not belong to a record.
    pub(crate) fn other(&mut self, bytes: &dyn RandomAccess, range: Range<u64>) -> Result<()> {
        pieces(bytes, range, &mut |piece| {
            self.whole_digest.update(piece);
            Ok(())
        })
    }
}

impl ByteReceiver for Fingerprint {
    fn heads(&mut self, head: &[u8], http: &[u8]) {
        self.with_record = self.whole_digest.clone();
        self.with_record.update(head);
        self.with_record.update(http);
    }

    fn payload(&mut self, bytes: &[u8]) {
        self.with_record.update(bytes);
    }
}

/// Reads a range of a file in pieces.
pub(super) fn pieces(
    bytes: &dyn RandomAccess,
    range: Range<u64>,
    take: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut position = range.start;
    while position < range.end {
        let piece = bytes.read_at(position, (range.end - position).min(PIECE_BYTES) as usize)?;
        if piece.is_empty() {
            return Err(Error::Invariant(format!("a file ends at {position} instead of {}", range.end)));
        }
        take(&piece)?;
        position += piece.len() as u64;
    }
    Ok(())
}

struct Surveyor<'s> {
    number: u32,
    file: &'s WarcInput,
    bytes: &'s dyn RandomAccess,
    is_plain: bool,
    purpose: SurveyPurpose,
    rows: &'s KeyedRecords,
    names: &'s RecordNames,
    survey: FileSurvey,
    referred_names: Vec<u64>,
    sha256: Fingerprint,
    payload: Sha256,
}

impl Surveyor<'_> {
    /// Returns the row of a record, if it may be a copy. Also collects the names of every record.
    fn copy_row(&mut self, record: &StoredRecord, payload: &[u8; 32]) -> Result<Option<KeyedRecord>> {
        let is_older = self.file.is_older;
        if let Some(names) = referred(&record.head).filter(|_| !is_older) {
            self.referred_names.extend(names);
        }
        let own_head = RewritableHead::parse(&record.head).filter(RewritableHead::has_ours);
        if own_head.is_some() && !is_older {
            return Err(Error::input(
                self.file.location.name(),
                format!(
                    "the record at offset {} is from an archive of webtwin; restore that archive first",
                    record.range.start
                ),
            ));
        }
        // A rewritten record has the names of the original, so they are read from the original
        // head.
        let original = own_head.and_then(|head| head.original());
        let head = original.as_deref().unwrap_or(&record.head);
        let record_hash = xxh3_64(format!("{} {}", self.number, record.range.start).as_bytes());
        record::id_name(head).map_or(Ok(()), |name| self.names.push(name, record_hash))?;
        // In an uncompressed file, records after other bytes stay unchanged. A forged record among
        // such bytes may claim any length, and its boundaries in the archive must not differ from
        // those in the input.
        let must_stay = record.payload_bytes == 0 || self.is_plain && self.survey.others > 0;
        let candidate = PayloadRecord::parse(&record.head, &record.http).filter(|_| !must_stay);
        let row = candidate.map(|candidate| {
            let rank = candidate.seconds + if is_older { OLDER_RANK } else { 0 };
            KeyedRecord { name: candidate.place_name(), ..self.row(record, candidate.key(payload), rank) }
        });
        let holder = match &row {
            Some(row) => Some((row.name, u64::from(row.key[0]) << 32 | u64::from(row.key[1]))),
            None => record::place_name(head).map(|name| (name, record_hash)),
        };
        holder.map_or(Ok(()), |(name, payload)| self.names.push(name, payload))?;
        Ok(row)
    }

    /// Returns the row of a record that holds a payload, or that needs one.
    fn holder_row(&self, record: &StoredRecord, payload: &[u8; 32]) -> Result<Option<KeyedRecord>> {
        let head = RewritableHead::parse(&record.head);
        if let Some(head) = head.filter(RewritableHead::has_ours) {
            if self.file.is_older {
                return Ok(None);
            }
            let payload_key = payload_wanted(&head).ok_or_else(|| {
                let place = format!(
                    "this build cannot restore the record at offset {}; use the build that wrote the archive",
                    record.range.start
                );
                Error::input(self.file.location.name(), place)
            })?;
            return Ok(Some(self.row(record, key(&payload_key), REFERENCE_RANK)));
        }
        let kind = values(&record.head, "WARC-Type").concat().to_ascii_lowercase();
        let holds = record.payload_bytes > 0 && ["response", "resource"].contains(&kind.as_str());
        Ok(holds.then(|| self.row(record, key(payload), HOLDER_RANK)))
    }

    fn row(&self, record: &StoredRecord, key: super::record::PayloadKey, rank: i64) -> KeyedRecord {
        KeyedRecord { key, file: self.number, offset: record.range.start, rank, name: 0 }
    }
}

impl ByteReceiver for Surveyor<'_> {
    fn heads(&mut self, head: &[u8], http: &[u8]) {
        self.sha256.heads(head, http);
        self.payload = Sha256::new();
    }

    fn payload(&mut self, bytes: &[u8]) {
        self.sha256.payload(bytes);
        self.payload.update(bytes);
    }
}

impl Visitor for Surveyor<'_> {
    fn record(&mut self, record: StoredRecord) -> Result<()> {
        self.survey.records += 1;
        self.sha256.record_is_whole();
        let payload: [u8; 32] = std::mem::take(&mut self.payload).finalize().into();
        let row = match self.purpose {
            SurveyPurpose::Archive => self.copy_row(&record, &payload)?,
            SurveyPurpose::Restore => self.holder_row(&record, &payload)?,
        };
        row.map_or(Ok(()), |row| self.rows.push(row))
    }

    fn receive_other(&mut self, range: Range<u64>) -> Result<()> {
        self.survey.others += 1;
        self.survey.other_bytes += range.end - range.start;
        self.sha256.other(self.bytes, range)
    }
}
