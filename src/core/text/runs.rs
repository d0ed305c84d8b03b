//! Search for the starts and ends of runs of word bytes, 64 bytes at a time.
//!
//! A branch on every byte would be mispredicted at the end of every word. Therefore one pass, which
//! compilers vectorise, turns every byte into a bit, and runs are found by counting zeros.

/// One bit per byte, set if the byte is a lower-case letter, a digit, an underscore, or part of a
/// non-ASCII character.
#[derive(Debug, Default)]
pub(super) struct WordBytes {
    bits: Vec<u64>,
}

impl WordBytes {
    /// Replaces the text.
    pub(super) fn set_text(&mut self, text: &[u8]) {
        self.bits.clear();
        let (blocks, tail) = text.as_chunks::<64>();
        self.bits.extend(blocks.iter().map(bits));
        let mut last = [0; 64];
        last[..tail.len()].copy_from_slice(tail);
        // Zero bytes at the end ensure that every run ends.
        self.bits.extend([bits(&last), 0]);
    }

    /// Returns the next run that begins at or after `from`, as (start, end) in bytes. The remainder
    /// of a run that contains `from` counts as a run.
    pub(super) fn next(&self, from: usize) -> Option<(usize, usize)> {
        let mut word = from / 64;
        let mut left = *self.bits.get(word)? >> (from % 64) << (from % 64);
        while left == 0 {
            word += 1;
            left = *self.bits.get(word)?;
        }
        let start = 64 * word + left.trailing_zeros() as usize;
        Some((start, self.end(start)))
    }

    /// Returns the end of the run that contains `start`.
    pub(super) fn end(&self, start: usize) -> usize {
        let mut word = start / 64;
        let mut gaps = !self.bits[word] >> (start % 64) << (start % 64);
        while gaps == 0 {
            word += 1;
            gaps = !self.bits[word];
        }
        64 * word + gaps.trailing_zeros() as usize
    }
}

fn bits(block: &[u8; 64]) -> u64 {
    let mut flags = [0u8; 64];
    for (flag, &byte) in flags.iter_mut().zip(block) {
        let letter = byte.wrapping_sub(b'a') < 26;
        let digit = byte.wrapping_sub(b'0') < 10;
        *flag = u8::from(letter | digit | (byte == b'_') | (byte >= 0x80));
    }
    let (eights, _) = flags.as_chunks::<8>();
    // The product gathers the low bits of eight bytes in its highest byte: bit 8 i times bit 56 - 7
    // i is bit 56 + i.
    let gather = |eight: &[u8; 8]| u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    eights.iter().rev().fold(0, |all, eight| all << 8 | gather(eight))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_equal_a_scan_byte_by_byte(text in "[a-c0-9_ .@`{/:é]{0,200}", from in 0usize..220) {
            let bytes = text.as_bytes();
            let is_word_byte = |at: usize| {
                let byte = bytes.get(at).copied().unwrap_or(b' ');
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte >= 0x80
            };
            let mut runs = WordBytes::default();
            runs.set_text(b"what was here before");
            runs.set_text(bytes);
            let start = (from..bytes.len()).find(|&at| is_word_byte(at));
            let expected = start.map(|start| (start, (start..).find(|&at| !is_word_byte(at)).unwrap()));
            prop_assert_eq!(runs.next(from), expected);
        }
    }
}
