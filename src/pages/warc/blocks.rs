//! Cache of the two latest blocks of a file, so that a step back after damage needs no second read.

use memchr::memmem;

use webtwin_base::error::Result;
use webtwin_base::read_at::RandomAccess;

/// Number of bytes that are requested from the store at a time.
pub(super) const BLOCK_BYTES: usize = 1 << 20;

/// Reader of a file in blocks of fixed size, aligned to that size. The two most recently used
/// blocks are cached.
pub(super) struct Blocks<'f> {
    file: &'f dyn RandomAccess,
    block_bytes: u64,
    /// Start and bytes of each cached block, most recently used first.
    held: [(u64, Vec<u8>); 2],
}

impl<'f> Blocks<'f> {
    pub(super) fn new(file: &'f dyn RandomAccess, block_bytes: usize) -> Self {
        Blocks { file, block_bytes: block_bytes as u64, held: [(u64::MAX, Vec::new()), (u64::MAX, Vec::new())] }
    }

    /// Returns the length of the file, in bytes.
    pub(super) fn len(&self) -> u64 {
        self.file.len()
    }

    /// Returns the bytes from `at` to the end of its block: at least one, except at the end of the
    /// file.
    pub(super) fn from(&mut self, at: u64) -> Result<&[u8]> {
        let start = at - at % self.block_bytes;
        if self.held[0].0 != start {
            self.held.swap(0, 1);
        }
        if self.held[0].0 != start {
            let left = self.len().saturating_sub(start).min(self.block_bytes);
            let bytes = if left == 0 { Vec::new() } else { self.file.read_at(start, left as usize)? };
            self.held[0] = (start, bytes);
        }
        let bytes = &self.held[0].1;
        Ok(&bytes[((at - start) as usize).min(bytes.len())..])
    }

    /// Returns a copy of `length` bytes from `at`, or fewer at the end of the file.
    pub(super) fn peek(&mut self, at: u64, length: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            let more = self.from(at + bytes.len() as u64)?;
            if more.is_empty() {
                break;
            }
            let wanted = length - bytes.len();
            bytes.extend_from_slice(&more[..more.len().min(wanted)]);
        }
        Ok(bytes)
    }

    /// Returns the smallest position in `from..until` at which `needle` begins. The needle may end
    /// after `until`.
    pub(super) fn find(&mut self, needle: &[u8], from: u64, until: u64) -> Result<Option<u64>> {
        self.find_any(&[needle], from, until)
    }

    /// Returns the smallest position in `from..until` at which any of `needles` begins. That needle
    /// may end after `until`.
    pub(super) fn find_any(&mut self, needles: &[&[u8]], from: u64, until: u64) -> Result<Option<u64>> {
        let longest = needles.iter().map(|needle| needle.len()).max().unwrap_or(0);
        let until = until.min(self.len());
        let mut at = from;
        while at < until {
            let bytes = self.from(at)?;
            if bytes.is_empty() {
                break;
            }
            let mut nearest = None;
            for needle in needles {
                // Only a match before the nearest one so far counts. The limit keeps the search
                // short.
                let bytes = nearest.map_or(bytes, |i: usize| &bytes[..(i + needle.len() - 1).min(bytes.len())]);
                nearest = memmem::find(bytes, needle).or(nearest);
            }
            let (found, end) = (nearest.map(|i| at + i as u64), at + bytes.len() as u64);
            // A needle that begins before the nearest match may extend beyond the block, where the
            // search above did not find it.
            let straddling = end.saturating_sub(longest as u64 - 1).max(at);
            for start in straddling..found.unwrap_or(end).min(until) {
                let bytes = self.peek(start, longest)?;
                if needles.iter().any(|needle| bytes.starts_with(needle)) {
                    return Ok(Some(start));
                }
            }
            if found.is_some() {
                return Ok(found.filter(|found| *found < until));
            }
            at = end;
        }
        Ok(None)
    }

    /// Returns the position of the first nonzero byte at or after `at`, or the length of the file.
    pub(super) fn skip_zeros(&mut self, mut at: u64) -> Result<u64> {
        loop {
            let bytes = self.from(at)?;
            match bytes.iter().position(|&byte| byte != 0) {
                Some(i) => return Ok(at + i as u64),
                None if bytes.is_empty() => return Ok(at),
                None => at += bytes.len() as u64,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use webtwin_base::read_at::Bytes;

    proptest! {
        #[test]
        fn nearest_needle_is_found_across_block_boundaries(
            bytes in prop::collection::vec(0u8..3, 0..80),
            needles in prop::collection::vec(prop::collection::vec(0u8..3, 1..5), 1..3),
            from in 0u64..90,
            until in 0u64..90,
            block_bytes in 1usize..20,
        ) {
            let file = Bytes(bytes.clone());
            let needles: Vec<&[u8]> = needles.iter().map(Vec::as_slice).collect();
            let starts = |p: &u64| needles.iter().any(|needle| bytes[*p as usize..].starts_with(needle));
            let expected = (from..until.min(bytes.len() as u64)).find(starts);
            prop_assert_eq!(Blocks::new(&file, block_bytes).find_any(&needles, from, until).unwrap(), expected);
        }
    }

    #[test]
    fn zeros_are_skipped_over_many_blocks() {
        let mut bytes = vec![0; 30];
        bytes.extend([0, 0, 7, 0]);
        let file = Bytes(bytes);
        let mut blocks = Blocks::new(&file, 4);
        assert_eq!(blocks.skip_zeros(1).unwrap(), 32);
        assert_eq!(blocks.skip_zeros(33).unwrap(), 34);
    }
}
