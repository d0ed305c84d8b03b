//! Files of sections behind a checked head: the form of fingerprint files and permuted tables.
//!
//! ```text
//! magic (8 bytes) | format (4) | length of the description (4) | description | XXH3 of all before (8) | zeros to 64
//! section | section | ...
//! ```
//!
//! Numbers are little-endian. The description is JSON: the subject of the file, and length and XXH3
//! (64 bits, in hexadecimal) of each section. Sections follow each other without gaps, from a
//! multiple of 64 bytes.

use std::ops::Range;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use webtwin_base::error::{Error, Result};
use webtwin_base::read_at::RandomAccess;

/// Bytes of magic, format and length.
const FIXED: usize = 16;

/// Maximum length of a description that is read, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 1 << 20;

/// Properties that distinguish a kind of file from others.
#[derive(Debug, Clone, Copy)]
pub struct FileKind {
    /// First bytes of the file.
    pub magic: &'static [u8; 8],
    /// Format that this build writes and reads.
    pub format: u32,
    /// Name of the kind, for messages: "a fingerprint file".
    pub description: &'static str,
    /// Action that makes a new file, for messages.
    pub remedy: &'static str,
}

/// Reads a list of files in JSON. `name` is the name of the list in messages, `format` its expected
/// format, and `content` its kind.
///
/// # Errors
/// Returns [`Error::Input`] if the bytes are not such a list, or have another format.
pub fn read_list<List: DeserializeOwned>(name: &str, bytes: &[u8], format: u32, content: &str) -> Result<List> {
    #[derive(Deserialize)]
    struct Versioned {
        format: u32,
    }
    let unreadable =
        |error| Error::input(name, format!("not a valid {content}: {error}; fetch it again or make it again"));
    let Versioned { format: version } = serde_json::from_slice(bytes).map_err(unreadable)?;
    if version != format {
        let reason = format!("{content} of format {version}, but this build reads format {format}; make it again");
        return Err(Error::input(name, reason));
    }
    serde_json::from_slice(bytes).map_err(unreadable)
}

#[derive(Serialize, Deserialize)]
struct Description<About> {
    about: About,
    sections: Vec<SectionEntry>,
}

#[derive(Serialize, Deserialize)]
struct SectionEntry {
    bytes: u64,
    xxh3: String,
}

/// Returns the checksum of bytes in the form of descriptions and manifests.
pub fn checksum(bytes: &[u8]) -> String {
    format!("{:016x}", xxh3_64(bytes))
}

/// Returns the checksum of bytes that are given in consecutive parts.
pub fn checksum_of_parts(parts: &[&[u8]]) -> String {
    let mut hasher = Xxh3Default::new();
    parts.iter().for_each(|part| hasher.update(part));
    format!("{:016x}", hasher.digest())
}

/// Returns the checksum of a block of a section: the low half of XXH3.
pub fn short_checksum(bytes: &[u8]) -> u32 {
    xxh3_64(bytes) as u32
}

/// Returns the head of a file with the given sections, which must follow it.
pub fn head<About: Serialize>(kind: FileKind, header: &About, sections: &[&[u8]]) -> Vec<u8> {
    let entry = |section: &&[u8]| SectionEntry { bytes: section.len() as u64, xxh3: checksum(section) };
    let description = Description { about: header, sections: sections.iter().map(entry).collect() };
    let description = serde_json::to_vec(&description).expect("a description is plain values");
    let mut head = kind.magic.to_vec();
    head.extend(kind.format.to_le_bytes());
    head.extend((description.len() as u32).to_le_bytes());
    head.extend(description);
    head.extend(xxh3_64(&head).to_le_bytes());
    head.resize(head.len().next_multiple_of(64), 0);
    head
}

/// Verified head of a file.
#[derive(Debug, Clone)]
pub struct SectionHead<About> {
    pub(crate) header: About,
    sections: Vec<(Range<u64>, String)>,
    checksum: String,
    name: String,
    kind: FileKind,
}

impl<About: DeserializeOwned> SectionHead<About> {
    /// Reads and verifies the head of a file that has `sections` sections.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the file is of another kind or format, damaged or truncated, and
    /// any error of reading.
    pub fn open(kind: FileKind, name: &str, file: &dyn RandomAccess, sections: usize) -> Result<SectionHead<About>> {
        let damaged = |how: &str| damaged(kind, name, how);
        // Most heads fit in 4 KiB, so a second read is rare.
        let mut head = file.read_at(0, 4 << 10)?;
        let start = head.strip_prefix(kind.magic).and_then(|rest| rest.first_chunk::<8>());
        let Some(&[a, b, c, d, e, f, g, h]) = start else {
            return Err(Error::input(name, format!("not {}; fetch it again or {}", kind.description, kind.remedy)));
        };
        let format = u32::from_le_bytes([a, b, c, d]);
        if format != kind.format {
            let (content, known_format, remedy) = (kind.description, kind.format, kind.remedy);
            let reason = format!("{content} of format {format}, but this build reads format {known_format}; {remedy}");
            return Err(Error::input(name, reason));
        }
        let length = u32::from_le_bytes([e, f, g, h]) as usize;
        if length > MAX_DESCRIPTION_BYTES {
            return Err(damaged("its description is too long"));
        }
        let end = (FIXED + length + 8).next_multiple_of(64);
        if head.len() < end {
            head = file.read_at(0, end)?;
        }
        let (Some(checked), Some(tail)) = (head.get(..FIXED + length), head.get(FIXED + length..end)) else {
            return Err(damaged("it ends within its head"));
        };
        // The padding is checked as well, because no checksum covers it.
        if tail[..8] != xxh3_64(checked).to_le_bytes() || tail[8..].iter().any(|&byte| byte != 0) {
            return Err(damaged("the checksum of its head is wrong"));
        }
        let description: Description<About> = serde_json::from_slice(&checked[FIXED..])
            .map_err(|error| damaged(&format!("its description cannot be read: {error}")))?;
        // Only lengths are stored. The sections follow each other, so their positions are sums.
        let mut at = end as u64;
        let mut spans = Vec::new();
        for section in description.sections {
            let end = at.checked_add(section.bytes).ok_or_else(|| damaged("its sections are too long"))?;
            spans.push((at..end, section.xxh3));
            at = end;
        }
        if at != file.len() {
            let reason = format!("it has {} bytes, but {at} bytes by its head", file.len());
            return Err(damaged(&reason));
        }
        if spans.len() != sections {
            return Err(damaged("its number of sections is wrong"));
        }
        let checksum = checksum(&head[..end]);
        Ok(SectionHead { header: description.about, sections: spans, checksum, name: name.into(), kind })
    }
}

fn damaged(kind: FileKind, name: &str, fault: &str) -> Error {
    Error::input(name, format!("{} is damaged: {fault}; fetch it again or {}", kind.description, kind.remedy))
}

impl<About> SectionHead<About> {
    /// Returns the range of a section in the file.
    pub fn span(&self, section: usize) -> Range<u64> {
        self.sections[section].0.clone()
    }

    /// True if this head has the given checksum. The head contains the checksums of all sections,
    /// so the whole file is then the same.
    pub fn is(&self, checksum: &str) -> bool {
        self.checksum == checksum
    }

    /// Returns an error with the damage `fault` and the remedy.
    pub fn damaged(&self, fault: &str) -> Error {
        damaged(self.kind, &self.name, fault)
    }

    /// Returns an error for a damaged block of a section.
    #[cold]
    pub fn damaged_block(&self, section: usize) -> Error {
        self.damaged(&format!("the checksum of a block of section {section} is wrong"))
    }

    /// Verifies the bytes of a section.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the bytes are not those that were written.
    pub fn check(&self, section: usize, bytes: &[u8]) -> Result<()> {
        let (span, xxh3) = &self.sections[section];
        if bytes.len() as u64 == span.end - span.start && checksum(bytes) == *xxh3 {
            return Ok(());
        }
        Err(self.damaged(&format!("the checksum of section {section} is wrong")))
    }

    /// Reads and verifies a whole section.
    ///
    /// # Errors
    /// Returns any error of [`SectionHead::check`] and of reading.
    pub fn read(&self, file: &dyn RandomAccess, section: usize) -> Result<Vec<u8>> {
        let span = self.span(section);
        let length = usize::try_from(span.end - span.start).map_err(|_| self.damaged("a section is too long"))?;
        let bytes = file.read_at(span.start, length)?;
        self.check(section, &bytes)?;
        Ok(bytes)
    }
}
