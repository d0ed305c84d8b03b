//! Heads of zstd frames, with the window and the dictionary that a frame needs.

use webtwin_base::error::{Error, size};

/// First bytes of a zstd frame.
pub(super) const MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Maximum length of the head of a frame, in bytes.
pub(super) const HEAD_BYTES: usize = 18;

/// Binary logarithm of the largest window that the zstd library decodes.
pub(super) const LARGEST_WINDOW_LOG: u32 = if cfg!(target_pointer_width = "64") { 31 } else { 30 };

/// Returns the binary logarithm of the smallest window of at least `bytes`.
pub(super) fn window_log(bytes: u64) -> u32 {
    bytes.clamp(1 << 10, 1 << LARGEST_WINDOW_LOG).next_power_of_two().ilog2()
}

/// Makes the error for content whose window exceeds the limit. The caller adds the name of the
/// file.
pub(super) fn refuse_window(needed_bytes: u64, allowed_bytes: u64) -> Error {
    let remedy = match needed_bytes > 1 << LARGEST_WINDOW_LOG {
        true => "compress it again with a shorter window".to_owned(),
        false => format!(
            "set input.limits.window_bytes (of dedup: --max-window) to {needed_bytes} or more, which each worker may take"
        ),
    };
    let (needed_text, allowed_text) = (size(needed_bytes), size(allowed_bytes));
    let reason = format!(
        "its decoder needs a window of {needed_text}, but input.limits.window_bytes allows {allowed_text}; {remedy}"
    );
    Error::input("", reason)
}

/// Properties of a frame that decide whether it can be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameHead {
    /// Size of the decoded content that the decoder must keep, in bytes.
    pub window: u64,
    /// Id of the dictionary; 0 if the frame names none.
    pub dictionary: u32,
}

impl FrameHead {
    /// Parses the first bytes of a frame; returns `None` if they are too few.
    pub(crate) fn parse(bytes: &[u8]) -> Option<FrameHead> {
        let number = |position: usize, length: usize| {
            let bytes = bytes.get(position..position + length)?;
            Some(bytes.iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte)))
        };
        let descriptor = *bytes.get(MAGIC.len())?;
        let is_single_segment = descriptor & 0x20 != 0;
        let mut position = MAGIC.len() + 1;
        let mut window = 0;
        if !is_single_segment {
            let byte = number(position, 1)?;
            let base = 1u64 << (10 + (byte >> 3));
            window = base + (base >> 3) * (byte & 7);
            position += 1;
        }
        let id_bytes = [0, 1, 2, 4][usize::from(descriptor & 3)];
        let dictionary = number(position, id_bytes)? as u32;
        position += id_bytes;
        if is_single_segment {
            window = match descriptor >> 6 {
                0 => number(position, 1)?,
                1 => number(position, 2)? + 256,
                2 => number(position, 4)?,
                _ => number(position, 8)?,
            };
        }
        Some(FrameHead { window, dictionary })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_header_has_window_and_dictionary() {
        let head = |descriptor: u8, rest: &[u8]| FrameHead::parse(&[MAGIC, &[descriptor], rest].concat());
        assert_eq!(head(0, &[17 << 3]), Some(FrameHead { window: 1 << 27, dictionary: 0 }));
        assert_eq!(head(0, &[21 << 3 | 7]), Some(FrameHead { window: (2 << 30) + 7 * (1 << 28), dictionary: 0 }));
        assert_eq!(head(0x20, &[200]), Some(FrameHead { window: 200, dictionary: 0 }));
        assert_eq!(head(0x61, &[9, 1, 0]), Some(FrameHead { window: 257, dictionary: 9 }));
        assert_eq!(
            head(0xa3, &[1, 0, 0, 1, 0, 0, 0, 1]),
            Some(FrameHead { window: 1 << 24, dictionary: (1 << 24) + 1 })
        );
        assert_eq!(head(0xa3, &[1, 0, 0]), None);
    }

    #[test]
    fn frames_of_an_encoder_are_decoded() {
        for length in [0usize, 100, 255, 256, 70_000, 1 << 20] {
            let frame = zstd::bulk::compress(&vec![7; length], 3).unwrap();
            let head = FrameHead::parse(&frame).unwrap();
            assert!(head.window >= length as u64 && head.dictionary == 0, "{length}: {head:?}");
        }
    }
}
