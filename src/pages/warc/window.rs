//! Sliding window over decoded bytes, which grows at its end and drops bytes at its start.

use webtwin_base::error::Result;

/// Way in which a source of bytes ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The end of a plain file.
    File,
    /// A compressed member ended properly.
    Member,
    /// A compressed member ended properly, but its checksum or length is wrong.
    WrongCrc,
    /// The file ended within a compressed member.
    Cut,
    /// The compressed member cannot be decoded further.
    Damaged,
    /// The compressed member expands beyond the limits.
    Bomb,
}

/// A buffer that is filled from its start. The bytes after the filled part stay initialised, so
/// that a decoder can get far more space than a member needs, without clearing the space for each
/// member.
#[derive(Default)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    length: usize,
}

impl Buffer {
    /// Returns the filled part.
    pub(super) fn filled(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Returns space for `length` bytes after the filled part.
    pub(super) fn capacity(&mut self, length: usize) -> &mut [u8] {
        let end = self.length + length;
        if self.bytes.len() < end {
            self.bytes.resize(end.max(self.bytes.len() * 3 / 2), 0);
        }
        &mut self.bytes[self.length..end]
    }

    /// Adds the first `length` bytes of [`Buffer::capacity`] to the filled part.
    pub(super) fn advance(&mut self, length: usize) {
        self.length += length;
        debug_assert!(self.length <= self.bytes.len());
    }

    /// Appends bytes to the filled part.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.capacity(bytes.len()).copy_from_slice(bytes);
        self.advance(bytes.len());
    }

    /// Drops the filled bytes after the first `length`.
    fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// Drops the first `length` filled bytes.
    pub(super) fn forget(&mut self, length: usize) {
        self.bytes.copy_within(length..self.length, 0);
        self.length -= length;
    }

    /// Drops all bytes and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.length = 0;
    }
}

/// Source of bytes in which WARC records follow one another: plain, or decoded from members.
pub(super) trait ByteSource {
    /// Appends the next bytes to `output`. Returns how the source ended, once it has.
    fn more(&mut self, output: &mut Buffer) -> Result<Option<Ending>>;

    /// Continues at `position`, if that requires no decoding of the bytes between. Returns true if
    /// it did.
    fn jump(&mut self, position: u64) -> bool;

    /// Returns `length` bytes from `position`, and whether the file ends with them, if that
    /// requires no reading of the bytes between.
    fn peek(&mut self, position: u64, length: usize) -> Result<Option<(Vec<u8>, bool)>>;

    /// Returns an upper bound of the length of a record in this source.
    fn longest(&self) -> u64;

    /// Returns the first bytes of members, if this source is decoded from members.
    fn member_magics(&self) -> &'static [&'static [u8]] {
        &[]
    }

    /// True if a member starts at `position` of the file, among plain bytes.
    fn is_member(&mut self, _position: u64) -> Result<bool> {
        Ok(false)
    }

    /// Returns the first member in `from..until` that starts with a record, among plain bytes.
    fn find_member(&mut self, _from: u64, _until: u64) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Returns the offset in the file of the record that starts at `position`.
    fn offset(&self, position: u64) -> u64 {
        position
    }

    /// Returns the number of bytes of the file that the record at `start..end` occupies; 0 if
    /// unknown. `last` is true if the source ends with the record.
    fn length(&self, start: u64, end: u64, _last: bool) -> u64 {
        end - start
    }

    /// Returns the position in the file that corresponds to `position`, estimated within a member.
    fn file_position(&self, position: u64) -> u64 {
        position
    }

    /// Returns the first position from `position` on at which a member ends and another continues.
    fn edge(&self, _position: u64) -> Option<u64> {
        None
    }

    /// Permits the source to drop the mapping of positions before `position` to the file.
    fn pass(&mut self, _position: u64) {}
}

/// Window on a source: the bytes from `base` on that have been read and not yet dropped.
pub(super) struct Window<S> {
    pub source: S,
    buffer: Buffer,
    base: u64,
    ending: Option<Ending>,
}

impl<S: ByteSource> Window<S> {
    /// Opens a window on `source`. `buffer` contains the bytes already read, from position `base`
    /// on.
    pub(super) fn new(source: S, buffer: Buffer, base: u64, ending: Option<Ending>) -> Self {
        Window { source, buffer, base, ending }
    }

    /// Returns the buffer, for the next window.
    pub(super) fn into_buffer(self) -> Buffer {
        self.buffer
    }

    /// Returns the position of the first byte in the window.
    pub(super) fn base(&self) -> u64 {
        self.base
    }

    /// Returns the position after the last byte in the window.
    pub(super) fn end(&self) -> u64 {
        self.base + self.buffer.filled().len() as u64
    }

    /// Returns how the source ended, if its end is in the window.
    pub(super) fn ended(&self) -> Option<Ending> {
        self.ending
    }

    /// Reads until the window reaches `end` or the source ends. Returns true if `end` was reached.
    pub(super) fn fill(&mut self, end: u64) -> Result<bool> {
        while self.end() < end && self.ending.is_none() {
            self.ending = self.source.more(&mut self.buffer)?;
        }
        Ok(self.end() >= end)
    }

    /// Returns the bytes at `start..end` that are in the window.
    pub(super) fn get(&self, start: u64, end: u64) -> &[u8] {
        let start = start.clamp(self.base, self.end());
        let end = end.clamp(start, self.end());
        &self.buffer.filled()[(start - self.base) as usize..(end - self.base) as usize]
    }

    /// Permits dropping the bytes before `position`. They are dropped once they are half of the
    /// window, so that each byte moves once on average.
    pub(super) fn forget(&mut self, position: u64) {
        let dead = position.clamp(self.base, self.end()) - self.base;
        if dead as usize * 2 > self.buffer.filled().len() {
            self.buffer.forget(dead as usize);
            self.base += dead;
        }
    }

    /// Ends the source at `position`, before bytes that have already been read.
    pub(super) fn end_at(&mut self, position: u64, ending: Ending) {
        self.buffer.truncate((position.max(self.base) - self.base) as usize);
        self.ending = Some(ending);
    }

    /// Moves forward to `position` without keeping the bytes between.
    pub(super) fn seek(&mut self, position: u64) -> Result<()> {
        if position > self.end() && self.source.jump(position) {
            self.buffer.clear();
            self.base = position;
            self.ending = None;
        }
        while self.end() < position && self.ending.is_none() {
            self.base = self.end();
            self.buffer.clear();
            self.ending = self.source.more(&mut self.buffer)?;
        }
        self.forget(position);
        Ok(())
    }
}
