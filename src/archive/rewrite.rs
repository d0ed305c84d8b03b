//! The second pass over the files to archive: copies become revisits, all else is copied byte for byte.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use data_encoding::{BASE32, HEXLOWER};
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

use super::head::Head;
use super::inputs::InputFile;
use super::matches::{Copies, Copy};
use super::pack::Packer;
use super::record::Candidate;
use super::report::{FileSummary, Laps, Records, SUMMARY, Summary};
use super::survey::{Surveyed, pieces, stored_records};
use super::threads::for_each;
use super::{Settings, written};
use crate::error::{Error, Result};
use crate::pages::warc::stored::{TRAILER, Take};
use crate::read_at::ReadAt;
use crate::storage::location::Location;
use crate::storage::manifest::{FORMAT, FileEntry, Manifest};
use crate::storage::open::open_pinned;
use crate::storage::output::{Attempt, random_id};

/// Our field with the digest of the payload that was taken out.
const PAYLOAD: &str = "Webtwin-Payload";

/// What its value begins with; the digest follows in hexadecimal.
const SHA256: &str = "sha256:";

/// Fields of a record that do not hold for its revisit.
const GONE: [&str; 4] = ["WARC-Type", "Content-Length", "WARC-Payload-Digest", "WARC-Block-Digest"];

/// Heads of originals that a thread remembers.
const REMEMBERED: usize = 1 << 12;

/// Name and version of the form of rewritten records, as in the manifest.
pub(super) const RECIPE: (&str, &str) = ("archive", "revisits with Webtwin-Line, version 1");

/// The digest of the payload that a rewritten record refers to, if this is one.
pub(super) fn payload_wanted(head: &Head) -> Option<[u8; 32]> {
    let value = std::str::from_utf8(head.only(PAYLOAD)?).ok()?;
    HEXLOWER.decode(value.strip_prefix(SHA256)?.as_bytes()).ok()?.try_into().ok()
}

/// A digest as WARC files have it.
fn sha1(digest: Sha1) -> String {
    format!("sha1:{}", BASE32.encode(&digest.finalize()))
}

/// Writes the archive and commits it.
///
/// # Errors
/// Those of inputs and stores; nothing is left behind then.
pub(super) fn rewrite(
    settings: &Settings,
    folder: &Location,
    files: &[InputFile],
    surveyed: &[Surveyed],
    referred: &[u64],
    copies: Copies,
    laps: &mut Laps,
) -> Result<Summary> {
    let attempt = Attempt::new(folder, &random_id()?)?;
    let temporary = attempt.temporary();
    let rewriter = Rewriter { files, surveyed, referred, attempt: &attempt };
    let staged = || -> Result<(Vec<FileEntry>, Summary)> {
        let done = Mutex::new(Done::default());
        for_each(settings.effort.workers, copies.parts(), |part| {
            let (numbers, copies) = copies.take(part)?;
            let mut originals = HashMap::new();
            for number in numbers {
                let first = copies.partition_point(|copy| (copy.file as usize) < number);
                let last = copies.partition_point(|copy| (copy.file as usize) <= number);
                let written = rewriter.file(number, &copies[first..last], &mut originals)?;
                done.lock().unwrap_or_else(PoisonError::into_inner).add(written);
            }
            Ok(())
        })?;
        let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        let summary = Summary::of(done.files, done.kept_small, done.kept_referred);
        let mut entries = done.entries;
        attempt.put(SUMMARY, &summary.to_json())?;
        entries.push(FileEntry::of(SUMMARY, None, &summary.to_json()));
        entries.sort_unstable();
        Ok((entries, summary))
    };
    let (entries, summary) = staged().inspect_err(|_| attempt.discard())?;
    laps.lap("rewrite");
    // From here on the attempt may be decided on, and then its files must stay.
    if let Some(temporary) = temporary {
        temporary.release();
    }
    manifest(settings, &summary, laps, entries, attempt.id()).commit(&attempt)?;
    Ok(summary)
}

fn manifest(settings: &Settings, summary: &Summary, laps: &Laps, files: Vec<FileEntry>, attempt: &str) -> Manifest {
    let job = serde_json::json!({ "kind": "archive", "input": { "urls": settings.inputs } });
    let digest = xxhash_rust::xxh3::xxh3_128(job.to_string().as_bytes());
    let Records { read, copied, revisits } = summary.records;
    let counts = [("read", read), ("copied", copied), ("revisits", revisits)];
    Manifest {
        format: FORMAT,
        attempt: attempt.into(),
        digest: format!("{digest:032x}"),
        job,
        recipes: BTreeMap::from([(RECIPE.0.into(), RECIPE.1.into())]),
        build: crate::build::version().into(),
        workers: settings.effort.workers as u64,
        counts: counts.map(|(name, count)| (name.to_string(), count)).into(),
        seconds: laps.seconds.clone(),
        peak_memory_bytes: crate::build::peak_memory_bytes(),
        files,
    }
}

/// What all threads have written.
#[derive(Default)]
struct Done {
    entries: Vec<FileEntry>,
    files: Vec<FileSummary>,
    kept_small: u64,
    kept_referred: u64,
}

impl Done {
    fn add(&mut self, mut other: Done) {
        self.entries.append(&mut other.entries);
        self.files.append(&mut other.files);
        self.kept_small += other.kept_small;
        self.kept_referred += other.kept_referred;
    }
}

/// What a revisit says of the record that holds its payload.
#[derive(Clone)]
struct Original {
    id: String,
    uri: String,
    date: String,
    payload_digest: Option<String>,
}

struct Rewriter<'r> {
    files: &'r [InputFile],
    surveyed: &'r [Surveyed],
    referred: &'r [u64],
    attempt: &'r Attempt,
}

impl Rewriter<'_> {
    /// Writes a file, whose copies are given by offset.
    fn file(&self, number: usize, copies: &[Copy], originals: &mut HashMap<(u32, u64), Original>) -> Result<Done> {
        let (file, surveyed) = (&self.files[number], &self.surveyed[number]);
        let open = open_pinned(&file.location, &file.stamp)?;
        let mut records = stored_records(&*open, file)?;
        let mut packer = Packer::new(records.compression(), records.dictionary())?;
        let mut out = self.attempt.create(&file.path)?;
        let mut done = Done::default();
        let (mut at, mut revisits) = (0, 0);
        for copy in copies {
            let mut digests = Digests::default();
            let record = records.read(copy.offset, &mut digests)?.ok_or_else(|| changed(file, copy.offset))?;
            let of = Candidate::of(&record.head, &record.http).ok_or_else(|| changed(file, copy.offset))?;
            if of.names().iter().any(|name| self.referred.binary_search(name).is_ok()) {
                done.kept_referred += 1;
                continue;
            }
            let revisit = revisit(&of, &record.http, &self.original(copy, originals)?, digests);
            let packed = packer.pack(&[&revisit, &record.http, TRAILER])?;
            if packed.len() as u64 >= record.range.end - record.range.start {
                done.kept_small += 1;
                continue;
            }
            pieces(&*open, at..copy.offset, &mut |piece| written(out.write_all(piece), &file.path))?;
            written(out.write_all(&packed), &file.path)?;
            at = record.range.end;
            revisits += 1;
        }
        pieces(&*open, at..open.len(), &mut |piece| written(out.write_all(piece), &file.path))?;
        open.still_same()?;
        let entry = out.finish(None)?;
        let read = surveyed.records;
        done.files.push(FileSummary {
            path: file.path.clone(),
            bytes_in: file.stamp.bytes,
            bytes_out: entry.bytes,
            records: Records { read, copied: read - revisits, revisits },
            others: surveyed.others,
            other_bytes: surveyed.other_bytes,
            sha256: HEXLOWER.encode(&surveyed.sha256),
        });
        done.entries.push(entry);
        Ok(done)
    }

    /// Reads what there is to say of the record that holds the payload of a copy.
    fn original(&self, copy: &Copy, known: &mut HashMap<(u32, u64), Original>) -> Result<Original> {
        let place = (copy.of_file, copy.of_offset);
        if let Some(original) = known.get(&place) {
            return Ok(original.clone());
        }
        let file = &self.files[copy.of_file as usize];
        let open = open_pinned(&file.location, &file.stamp)?;
        let head = stored_records(&*open, file)?.head(copy.of_offset)?;
        let field = |name: &str| {
            let value = Head::parse(&head)?.only(name)?.to_vec();
            String::from_utf8(value).ok()
        };
        let original = (|| {
            Some(Original {
                id: field("WARC-Record-ID")?,
                uri: super::record::without_brackets(&field("WARC-Target-URI")?).to_string(),
                date: field("WARC-Date")?,
                payload_digest: field("WARC-Payload-Digest"),
            })
        })();
        let original = original.ok_or_else(|| changed(file, copy.of_offset))?;
        if known.len() == REMEMBERED {
            known.clear();
        }
        known.insert(place, original.clone());
        Ok(original)
    }
}

fn changed(file: &InputFile, offset: u64) -> Error {
    Error::input(file.location.name(), format!("the record at {offset} changed while it was read; run again"))
}

/// Digests of a payload.
#[derive(Default)]
struct Digests {
    sha256: Sha256,
    sha1: Sha1,
}

impl Take for Digests {
    fn heads(&mut self, _: &[u8], _: &[u8]) {}

    fn payload(&mut self, bytes: &[u8]) {
        self.sha256.update(bytes);
        self.sha1.update(bytes);
    }
}

/// The head of the revisit of a record, whose block is its HTTP head alone.
///
/// Tools look for the record referred to by its target, date and payload digest: so the digest is the one that it has
/// itself, or the one that they compute if it has none, that of the payload as stored.
fn revisit(of: &Candidate, http: &[u8], original: &Original, digests: Digests) -> Vec<u8> {
    let version = if of.head.is_1_0() { "1.0" } else { "1.1" };
    let payload_digest = original.payload_digest.clone().unwrap_or_else(|| sha1(digests.sha1));
    of.head.rewritten(
        &GONE,
        &[
            ("WARC-Type", "revisit".into()),
            ("WARC-Profile", format!("http://netpreserve.org/warc/{version}/revisit/identical-payload-digest")),
            ("WARC-Refers-To", original.id.clone()),
            ("WARC-Refers-To-Target-URI", original.uri.clone()),
            ("WARC-Refers-To-Date", original.date.clone()),
            ("WARC-Payload-Digest", payload_digest),
            ("WARC-Block-Digest", sha1(Sha1::new().chain_update(http))),
            ("WARC-Truncated", "length".into()),
            ("Content-Length", http.len().to_string()),
            (PAYLOAD, format!("{SHA256}{}", HEXLOWER.encode(&digests.sha256.finalize()))),
        ],
    )
}
