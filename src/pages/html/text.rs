//! Text in the form in which it is compared: lines of words, paragraphs of lines.
//!
//! Input: words and breaks in page order. Output: words separated by one space, lines that end with
//! a line feed except for the last, one empty line between paragraphs, and no other white space.

use super::elements::Gap;
use super::entities::{self, EntityContext};

/// Writer of text. A separation is written only when a word follows, and only the strongest of
/// several.
#[derive(Debug, Default)]
pub(super) struct LineWriter {
    output: String,
    gap: Gap,
    /// Number of open preformatted elements, in which line ends are kept.
    preformatted: u32,
    character: String,
}

impl LineWriter {
    /// Removes all text, for the next page.
    pub(super) fn clear(&mut self) {
        self.output.clear();
        self.gap = Gap::None;
        self.preformatted = 0;
    }

    /// Returns the text so far.
    pub(super) fn as_str(&self) -> &str {
        &self.output
    }

    /// Separates the next word by `gap` or a stronger separation.
    #[inline(always)]
    pub(super) fn separate(&mut self, gap: Gap) {
        self.gap = self.gap.max(gap);
    }

    /// Ends a line. Ending an empty line ends the paragraph.
    pub(super) fn end_line(&mut self) {
        self.separate(if self.gap < Gap::Line { Gap::Line } else { Gap::Paragraph });
    }

    /// Keeps the line ends of the following text.
    pub(super) fn enter_preformatted(&mut self) {
        self.preformatted += 1;
    }

    /// Undoes one [`LineWriter::enter_preformatted`], if any.
    pub(super) fn leave_preformatted(&mut self) {
        self.preformatted = self.preformatted.saturating_sub(1);
    }

    /// Appends text without character references.
    pub(super) fn push(&mut self, text: &str) {
        self.append::<false>(text);
    }

    /// Appends text with its character references decoded.
    pub(super) fn push_escaped(&mut self, text: &str) {
        self.append::<true>(text);
    }

    #[inline(always)]
    fn append<const ESCAPED: bool>(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let class_at = |at: usize| bytes.get(at).map(|&byte| CLASS[byte as usize]);
        let mut position = 0;
        while let Some(class) = class_at(position) {
            match class {
                SPACE => {
                    let start = position;
                    while class_at(position) == Some(SPACE) {
                        position += 1;
                    }
                    self.space(&bytes[start..position]);
                }
                NUL => position += 1,
                AMPERSAND if ESCAPED => {
                    let mut character = std::mem::take(&mut self.character);
                    character.clear();
                    position += entities::decode(&text[position..], EntityContext::Text, &mut character);
                    self.push(&character);
                    self.character = character;
                }
                WIDE if wide_space(&bytes[position..]) > 0 => {
                    self.separate(Gap::Space);
                    position += wide_space(&bytes[position..]);
                }
                _ => {
                    // Words with single spaces between them are copied together.
                    let start = position;
                    position += 1;
                    loop {
                        position += plain_length(&bytes[position..]);
                        while class_at(position) == Some(WORD) {
                            position += 1;
                        }
                        match class_at(position) {
                            Some(SPACE) if bytes[position] == b' ' && class_at(position + 1) == Some(WORD) => {
                                position += 2
                            }
                            Some(WIDE) if wide_space(&bytes[position..]) == 0 => position += 1,
                            Some(AMPERSAND) if !ESCAPED => position += 1,
                            _ => break,
                        }
                    }
                    let end = position - usize::from(bytes[position - 1] == b' ');
                    self.word(&text[start..end]);
                    if end < position {
                        self.separate(Gap::Space);
                    }
                }
            }
        }
    }

    /// Processes a run of white space.
    #[inline(always)]
    fn space(&mut self, run: &[u8]) {
        self.separate(Gap::Space);
        if self.preformatted > 0 {
            for (position, byte) in run.iter().enumerate() {
                if *byte == b'\n' || (*byte == b'\r' && run.get(position + 1) != Some(&b'\n')) {
                    self.end_line();
                }
            }
        }
    }

    #[inline(always)]
    fn word(&mut self, word: &str) {
        if !self.output.is_empty() {
            match self.gap {
                Gap::None => {}
                Gap::Space => self.output.push(' '),
                Gap::Line => self.output.push('\n'),
                Gap::Paragraph => self.output.push_str("\n\n"),
            }
        }
        self.gap = Gap::None;
        self.output.push_str(word);
    }
}

/// Returns the length of a run of printable ASCII without `&` and without two spaces in a row. The
/// result may be a few bytes too short.
#[inline(always)]
fn plain_length(bytes: &[u8]) -> usize {
    let mut length = 0;
    while let Some(window) = bytes[length..].first_chunk::<17>() {
        // Sixteen bytes without a branch between them compile to vector instructions.
        let mut odd = [0u8; 16];
        for (position, odd) in odd.iter_mut().enumerate() {
            let (byte, next) = (window[position], window[position + 1]);
            *odd = u8::from(byte.wrapping_sub(b' ') >= 0x60) | u8::from(byte == b'&') | u8::from((byte | next) == b' ');
        }
        let odd = u128::from_le_bytes(odd);
        if odd != 0 {
            return length + odd.trailing_zeros() as usize / 8;
        }
        length += 16;
    }
    length
}

/// Returns the length of the non-ASCII white space at the beginning of `bytes`; 0 if there is none.
fn wide_space(bytes: &[u8]) -> usize {
    match bytes {
        [0xc2, 0x85 | 0xa0, ..] => 2,
        [0xe1, 0x9a, 0x80, ..] | [0xe2, 0x81, 0x9f, ..] | [0xe3, 0x80, 0x80, ..] => 3,
        [0xe2, 0x80, 0x80..=0x8a | 0xa8 | 0xa9 | 0xaf, ..] => 3,
        _ => 0,
    }
}

/// Class of bytes within a word.
const WORD: u8 = 0;
const SPACE: u8 = 1;
/// Class of NUL, which is dropped from text.
const NUL: u8 = 2;
const AMPERSAND: u8 = 3;
/// Class of the first bytes of non-ASCII white space, which also begin some other characters.
const WIDE: u8 = 4;

static CLASS: [u8; 256] = {
    let mut class = [WORD; 256];
    class[0] = NUL;
    class[b' ' as usize] = SPACE;
    let mut control = b'\t';
    while control <= b'\r' {
        class[control as usize] = SPACE;
        control += 1;
    }
    class[b'&' as usize] = AMPERSAND;
    class[0xc2] = WIDE;
    class[0xe1] = WIDE;
    class[0xe2] = WIDE;
    class[0xe3] = WIDE;
    class
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plain_text(text: &str, preformatted: bool) -> String {
        let mut lines = LineWriter::default();
        if preformatted {
            lines.enter_preformatted();
        }
        lines.push(text);
        lines.as_str().to_owned()
    }

    #[test]
    fn white_space_beyond_ascii_follows_char() {
        for point in 0x80..=0x10ffff {
            let Some(character) = char::from_u32(point) else { continue };
            let text = character.to_string();
            let expected = if character.is_whitespace() { text.len() } else { 0 };
            assert_eq!(wide_space(text.as_bytes()), expected, "{point:x}");
            assert!(expected == 0 || CLASS[text.as_bytes()[0] as usize] == WIDE, "{point:x}");
        }
    }

    #[test]
    fn empty_line_in_any_form_ends_a_paragraph() {
        assert_eq!(plain_text("\r\n a \r\n\r\n\r\n b\tc\u{a0}\nd \0\n", true), "a\n\nb c\nd");
        assert_eq!(plain_text("a\rb\r\rc", true), "a\nb\n\nc");
        assert_eq!(plain_text("a\r\n\r\nb &amp;", false), "a b &amp;");
    }

    proptest! {
        #[test]
        fn text_is_its_words(
            parts in proptest::collection::vec(
                prop_oneof!["[a-c& \t\n\r\u{b}\u{0}\u{a0}é\u{2009}\u{3000}あ\u{85}\u{7f}]{0,8}", "([!-~é]{1,9} ){1,5}"],
                0..8
            ),
            cut in 0usize..100,
        ) {
            let text = parts.concat();
            let words = |line: &str| line.replace('\0', "").split_whitespace().collect::<Vec<_>>().join(" ");
            prop_assert_eq!(plain_text(&text, false), words(&text));

            let lines = text.replace("\r\n", "\n").replace('\r', "\n");
            let lines = lines.split('\n').map(words).collect::<Vec<_>>().join("\n");
            let paragraphs = lines.split("\n\n").map(|p| p.trim_matches('\n')).filter(|p| !p.is_empty());
            prop_assert_eq!(plain_text(&text, true), paragraphs.collect::<Vec<_>>().join("\n\n"));

            // A text cut anywhere, except within a character or a line end, yields the same result.
            let cut = (0..=cut.min(text.len())).rev().find(|&cut| text.is_char_boundary(cut) && !text[..cut].ends_with('\r')).unwrap();
            let mut lines = LineWriter::default();
            lines.push(&text[..cut]);
            lines.push(&text[cut..]);
            prop_assert_eq!(lines.as_str(), plain_text(&text, false));
        }
    }
}
