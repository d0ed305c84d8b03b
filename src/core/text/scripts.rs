//! Scripts that are written without spaces between words.

/// True if this character's script is written without spaces between words, and Unicode's tables do
/// not segment it either: Thai, Lao, Burmese, Khmer, Hiragana and Han. (Katakana forms words;
/// Hangul is written with spaces.)
pub(super) fn is_written_without_spaces(character: char) -> bool {
    matches!(
        u32::from(character),
        0x0e00..=0x0eff
            | 0x1000..=0x109f
            | 0x1780..=0x17ff
            | 0x3005..=0x3007
            | 0x3040..=0x309f
            | 0x3400..=0x4dbf
            | 0x4e00..=0x9fff
            | 0xf900..=0xfaff
            | 0x20000..=0x3ffff
    )
}
