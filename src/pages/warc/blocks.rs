//! Cache of the two latest blocks of a file, so that a step back after damage needs no second read.

use memchr::memmem;

use webtwin_base::error::Result;
use webtwin_base::read_at::RandomAccess;

/// Number of bytes that are requested from the store at a time.
pub(super) const BLOCK_BYTES: usize = 1 << 20;

/// Number of bytes that are searched for one needle after another. A needle that does not occur is
/// searched for in at most this number of bytes beyond the nearest match of another needle.
/// Without the limit, a block with many matches of one needle would be searched to its end for the
/// other one again and again.
const SEARCH_BYTES: usize = 16 << 10;

/// Reader of a file in blocks of fixed size, aligned to that size. The two most recently used
/// blocks are cached.
pub(super) struct Blocks<'f> {
    file: &'f dyn RandomAccess,
    block_bytes: u64,
    /// Start and bytes of each cached block, most recently used first.
    cached: [(u64, Vec<u8>); 2],
}

impl<'f> Blocks<'f> {
    pub(super) fn new(file: &'f dyn RandomAccess, block_bytes: usize) -> Self {
        Blocks { file, block_bytes: block_bytes as u64, cached: [(u64::MAX, Vec::new()), (u64::MAX, Vec::new())] }
    }

    /// Returns the length of the file, in bytes.
    pub(super) fn len(&self) -> u64 {
        self.file.len()
    }

    /// Returns the bytes from `position` to the end of its block: at least one, except at the end
    /// of the file.
    pub(super) fn from(&mut self, position: u64) -> Result<&[u8]> {
        let start = position - position % self.block_bytes;
        if self.cached[0].0 != start {
            self.cached.swap(0, 1);
        }
        if self.cached[0].0 != start {
            let left = self.len().saturating_sub(start).min(self.block_bytes);
            let bytes = if left == 0 { Vec::new() } else { self.file.read_at(start, left as usize)? };
            self.cached[0] = (start, bytes);
        }
        let bytes = &self.cached[0].1;
        Ok(&bytes[((position - start) as usize).min(bytes.len())..])
    }

    /// Returns a copy of `length` bytes from `position`, or fewer at the end of the file.
    pub(super) fn peek(&mut self, position: u64, length: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            let next_bytes = self.from(position + bytes.len() as u64)?;
            if next_bytes.is_empty() {
                break;
            }
            let remaining = length - bytes.len();
            bytes.extend_from_slice(&next_bytes[..next_bytes.len().min(remaining)]);
        }
        Ok(bytes)
    }

    /// Returns the smallest position in `start..end` at which `needle` begins. The needle may end
    /// after `end`.
    pub(super) fn find(&mut self, needle: &[u8], start: u64, end: u64) -> Result<Option<u64>> {
        self.find_any(&[needle], start, end)
    }

    /// Returns the smallest position in `start..end` at which any of `needles` begins. That needle
    /// may end after `end`.
    pub(super) fn find_any(&mut self, needles: &[&[u8]], start: u64, end: u64) -> Result<Option<u64>> {
        let longest = needles.iter().map(|needle| needle.len()).max().unwrap_or(0);
        let limit = end.min(self.len());
        let mut position = start;
        while position < limit {
            let bytes = self.from(position)?;
            if bytes.is_empty() {
                break;
            }
            let bytes_to_limit = usize::try_from(limit - position).unwrap_or(usize::MAX).saturating_add(longest);
            let bytes = &bytes[..bytes.len().min(SEARCH_BYTES).min(bytes_to_limit)];
            let mut nearest = None;
            for needle in needles {
                // Only a match before the nearest one so far counts. The limit keeps the search
                // short.
                let bytes = nearest.map_or(bytes, |i: usize| &bytes[..(i + needle.len() - 1).min(bytes.len())]);
                nearest = memmem::find(bytes, needle).or(nearest);
            }
            let (hit, end) = (nearest.map(|i| position + i as u64), position + bytes.len() as u64);
            // A needle that begins before the nearest match may extend beyond the block, where the
            // search above did not find it.
            let straddling = end.saturating_sub(longest as u64 - 1).max(position);
            for start in straddling..hit.unwrap_or(end).min(limit) {
                let bytes = self.peek(start, longest)?;
                if needles.iter().any(|needle| bytes.starts_with(needle)) {
                    return Ok(Some(start));
                }
            }
            if hit.is_some() {
                return Ok(hit.filter(|found| *found < limit));
            }
            position = end;
        }
        Ok(None)
    }

    /// Returns the position of the first nonzero byte at or after `position`, or the length of the
    /// file.
    pub(super) fn skip_zeros(&mut self, mut position: u64) -> Result<u64> {
        loop {
            let bytes = self.from(position)?;
            match bytes.iter().position(|&byte| byte != 0) {
                Some(i) => return Ok(position + i as u64),
                None if bytes.is_empty() => return Ok(position),
                None => position += bytes.len() as u64,
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
    fn needle_is_found_across_the_bounds_of_a_search() {
        let needles: [&[u8]; 2] = [b"abc", b"defg"];
        for position in SEARCH_BYTES - 5..SEARCH_BYTES + 5 {
            for needle in needles {
                let mut bytes = vec![0; 2 * SEARCH_BYTES];
                bytes[position..position + needle.len()].copy_from_slice(needle);
                let (file, position) = (Bytes(bytes), position as u64);
                let mut blocks = Blocks::new(&file, BLOCK_BYTES);
                assert_eq!(blocks.find_any(&needles, 0, u64::MAX).unwrap(), Some(position));
                assert_eq!(blocks.find_any(&needles, 0, position + 1).unwrap(), Some(position));
                assert_eq!(blocks.find_any(&needles, 0, position).unwrap(), None);
            }
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
