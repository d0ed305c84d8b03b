//! Strings by number, memory-mapped in blocks of 16. Each string is front-coded against the
//! previous one of its block.
//!
//! There are two columns: the starts of blocks, and the bytes. A string is stored as the number of
//! bytes that it shares with the previous one, the number of remaining bytes, and these bytes.

use webtwin_base::error::{Error, Result};
use webtwin_storage::output::Attempt;

use super::column::{ColumnWriter, IndexColumn, Seal};
use webtwin_storage::manifest::FileEntry;

/// Number of strings in a block.
const BLOCK: usize = 16;

/// Suffixes of the names of the two files.
pub const FILES: [&str; 2] = [".starts", ".bytes"];

/// Writes strings to their files.
pub struct StringsWriter {
    starts: ColumnWriter<u64>,
    bytes: ColumnWriter<u8>,
    last: Vec<u8>,
    count: usize,
    open: Vec<u8>,
}

impl StringsWriter {
    /// Creates the files `NAME.starts` and `NAME.bytes` of an attempt.
    ///
    /// # Errors
    /// Returns any error of [`Attempt::create`].
    pub fn new(attempt: &Attempt, name: &str) -> Result<StringsWriter> {
        let [starts, bytes] = FILES.map(|ending| attempt.create(&format!("{name}{ending}")));
        let (starts, bytes) = (ColumnWriter::new(starts?), ColumnWriter::new(bytes?));
        Ok(StringsWriter { starts, bytes, last: Vec::new(), count: 0, open: Vec::new() })
    }

    /// Appends a string. Strings are numbered from 0 in this order.
    ///
    /// # Errors
    /// Returns any error of the store.
    pub fn push(&mut self, text: &str) -> Result<()> {
        if self.count.is_multiple_of(BLOCK) {
            self.starts.push(self.bytes.rows())?;
            self.last.clear();
        }
        let text = text.as_bytes();
        let prefix_length = self.last.iter().zip(text).take_while(|(x, y)| x == y).count();
        self.open.clear();
        put_number(prefix_length, &mut self.open);
        put_number(text.len() - prefix_length, &mut self.open);
        self.open.extend_from_slice(&text[prefix_length..]);
        self.bytes.extend(&self.open)?;
        self.last.truncate(prefix_length);
        self.last.extend_from_slice(&text[prefix_length..]);
        self.count += 1;
        Ok(())
    }

    /// Completes both files. Returns them and the number of strings.
    ///
    /// # Errors
    /// Returns any error of the store.
    pub fn finish(self) -> Result<([(FileEntry, Seal); 2], u64)> {
        Ok(([self.starts.finish()?, self.bytes.finish()?], self.count as u64))
    }
}

/// Encodes a number in 7 bits per byte, the lowest first; the last byte has its highest bit clear.
fn put_number(mut number: usize, output: &mut Vec<u8>) {
    while number >= 0x80 {
        output.push(number as u8 | 0x80);
        number >>= 7;
    }
    output.push(number as u8);
}

fn take_number(bytes: &mut &[u8]) -> Option<usize> {
    let mut number = 0usize;
    for shift in (0..56).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Opened strings, accessible by number.
#[derive(Debug)]
pub struct Strings {
    starts: IndexColumn<u64>,
    bytes: IndexColumn<u8>,
    count: usize,
}

impl Strings {
    /// Creates `count` strings from their two columns.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the number of blocks does not match `count`.
    pub fn new(starts: IndexColumn<u64>, bytes: IndexColumn<u8>, count: u64) -> Result<Strings> {
        match starts.rows() as u64 == count.div_ceil(BLOCK as u64) {
            true => Ok(Strings { starts, bytes, count: count as usize }),
            false => {
                Err(Error::input("strings of an index", "their files are from different indexes; rebuild the index"))
            }
        }
    }

    /// Returns the number of strings.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the total size of the files in bytes.
    pub fn len_bytes(&self) -> usize {
        self.starts.len_bytes() + self.bytes.len_bytes()
    }

    fn block(&self, block: usize) -> Result<&[u8]> {
        let start = self.starts.get(block)? as usize;
        let end = if block + 1 < self.starts.rows() { self.starts.get(block + 1)? as usize } else { self.bytes.rows() };
        self.bytes.slice(start..end)
    }

    /// Appends a string to `output`.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if its block is damaged or the string does not exist.
    #[inline]
    pub fn append(&self, number: usize, output: &mut String) -> Result<()> {
        let start = output.len();
        let mut bytes = std::mem::take(output).into_bytes();
        let mut block = self.block(number / BLOCK)?;
        for _ in 0..=number % BLOCK {
            next(&mut block, start, &mut bytes).ok_or_else(broken_error)?;
        }
        *output = String::from_utf8(bytes).map_err(|_| broken_error())?;
        Ok(())
    }

    /// Returns a string.
    ///
    /// # Errors
    /// Returns any error of [`Strings::append`].
    pub fn get(&self, number: usize) -> Result<String> {
        let mut text = String::new();
        self.append(number, &mut text).map(|()| text)
    }

    /// Returns the number of the last string that is at most `text`, or `None` if all are larger.
    /// Strings must ascend. `scratch` is scratch.
    ///
    /// # Errors
    /// Returns any error of [`Strings::append`].
    ///
    /// # Cost
    /// Reads the first string of log n / 16 blocks, and one whole block.
    pub fn last_not_after(&self, text: &str, scratch: &mut Vec<u8>) -> Result<Option<usize>> {
        let (mut start, mut end) = (0, self.starts.rows());
        while start < end {
            let middle = start + (end - start) / 2;
            scratch.clear();
            next(&mut self.block(middle)?, 0, scratch).ok_or_else(broken_error)?;
            if &scratch[..] <= text.as_bytes() { start = middle + 1 } else { end = middle }
        }
        let Some(block) = start.checked_sub(1) else { return Ok(None) };
        let (mut bytes, first) = (self.block(block)?, block * BLOCK);
        let mut last = first;
        scratch.clear();
        for number in first..self.count.min(first + BLOCK) {
            next(&mut bytes, 0, scratch).ok_or_else(broken_error)?;
            if &scratch[..] > text.as_bytes() {
                break;
            }
            last = number;
        }
        Ok(Some(last))
    }
}

#[cold]
fn broken_error() -> Error {
    Error::Invariant("a block of strings of an index cannot be decoded".into())
}

/// Replaces the previous string, which is in `output` from `start` on, by the next one of a block.
/// The first string of a block shares no bytes with the previous one.
#[inline]
fn next(block: &mut &[u8], start: usize, output: &mut Vec<u8>) -> Option<()> {
    let (prefix_length, suffix_length) = (take_number(block)?, take_number(block)?);
    let (now, suffix) = block.split_at_checked(suffix_length)?;
    *block = suffix;
    output.truncate(start + prefix_length);
    output.extend_from_slice(now);
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use webtwin_storage::location::Location;
    use webtwin_storage::mapped::{Residence, file_bytes};

    fn strings(folder: &tempfile::TempDir, texts: &[String]) -> Strings {
        let location = Location::parse(folder.path().to_str().unwrap()).unwrap();
        let attempt = Attempt::new(&location, "aa").unwrap();
        let mut writer = StringsWriter::new(&attempt, "s").unwrap();
        texts.iter().for_each(|text| writer.push(text).unwrap());
        let ([starts, bytes], count) = writer.finish().unwrap();
        let file = |path: &str| {
            file_bytes(&location.join(&format!("_attempt-aa/{path}")).unwrap(), Residence::Mapped).unwrap()
        };
        let starts = IndexColumn::open("s", file("s.starts"), &starts.1).unwrap();
        let bytes = IndexColumn::open("b", file("s.bytes"), &bytes.1).unwrap();
        Strings::new(starts, bytes, count).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn strings_are_read_by_number_and_in_order(
            mut texts in prop::collection::vec("[ab/ü]{0,6}|http://[a-c]{1,3}/[a-z/]{0,200}", 0..60), asked in prop::collection::vec("[ab/ü]{0,5}", 8)
        ) {
            let folder = tempfile::tempdir().unwrap();
            let found = strings(&folder, &texts);
            for (number, text) in texts.iter().enumerate() {
                prop_assert_eq!(&found.get(number).unwrap(), text);
            }
            prop_assert_eq!(found.count(), texts.len());
            prop_assert!(found.get(texts.len().next_multiple_of(BLOCK)).is_err());
            texts.sort();
            let folder = tempfile::tempdir().unwrap();
            let (found, mut scratch) = (strings(&folder, &texts), Vec::new());
            for text in asked.iter().chain(&texts) {
                let want = texts.partition_point(|one| one <= text).checked_sub(1);
                prop_assert_eq!(found.last_not_after(text, &mut scratch).unwrap(), want);
            }
        }
    }
}
