//! Folding: converts text to the form in which words are compared, so that equal text typed in two
//! ways has one form.
//!
//! 1. Every space (`White_Space`: U+00A0, U+202F, U+2009, U+3000, ...) becomes U+0020. So does
//!    U+200B, the zero width space, which separates words by UAX #29; between two characters of a
//!    script without spaces it is dropped.
//! 2. Invisible characters (`Default_Ignorable_Code_Point`: soft hyphens, joiners, byte order
//!    marks, variation selectors, marks of direction, ...) are dropped.
//! 3. The remaining text is normalised to NFKC.
//! 4. Case is folded by Unicode's full default folding (`CaseFolding.txt`, statuses C and F), and
//!    the result is normalised to NFKC again, because folding can undo the normal form.
//!
//! Folding only converts ASCII text to lower case. A text may be divided before ASCII white space,
//! because no step depends on characters on both sides of it.

use icu_casemap::{CaseMapper, CaseMapperBorrowed};
use icu_normalizer::{ComposingNormalizer, ComposingNormalizerBorrowed};
use icu_properties::props::DefaultIgnorableCodePoint;
use icu_properties::{CodePointSetData, CodePointSetDataBorrowed};

use super::plain;
use super::scripts::is_written_without_spaces;

const CASE: CaseMapperBorrowed<'static> = CaseMapper::new();
const NFKC: ComposingNormalizerBorrowed<'static> = ComposingNormalizer::new_nfkc();
const INVISIBLE: CodePointSetDataBorrowed<'static> = CodePointSetData::new::<DefaultIgnorableCodePoint>();

const ZERO_WIDTH_SPACE: char = '\u{200b}';

/// Folding of one text after another, which reuses its buffers.
///
/// # Examples
/// ```
/// use webtwin_core::text::fold::Folding;
///
/// let mut folding = Folding::default();
/// assert_eq!(folding.folded("Stra\u{df}e \u{fb01}le"), "strasse file");
/// // A soft hyphen is not displayed.
/// assert_eq!(folding.composed("Mir\u{ad}ror"), "Mirror");
/// ```
#[derive(Debug, Default)]
pub struct Folding {
    visible: String,
    folded_text: String,
}

impl Folding {
    /// Applies steps 1 to 3: returns the text as it is displayed, in upper and lower case.
    ///
    /// # Cost
    /// One pass over the text, and two more if it has a character that is not plain.
    pub fn composed(&mut self, text: &str) -> &str {
        if !plain::composed(text, &mut self.folded_text) {
            visible(text, &mut self.visible);
            self.folded_text.clear();
            self.folded_text.push_str(&NFKC.normalize(&self.visible));
        }
        &self.folded_text
    }

    /// Applies all steps.
    ///
    /// # Cost
    /// One pass over the text, and four more if it has a character that is not plain.
    pub fn folded(&mut self, text: &str) -> &str {
        if !plain::folded(text, &mut self.folded_text) {
            self.by_definition(text);
        }
        &self.folded_text
    }

    fn by_definition(&mut self, text: &str) {
        visible(text, &mut self.visible);
        let composed = NFKC.normalize(&self.visible);
        let case_folded = CASE.fold_string(&composed);
        self.folded_text.clear();
        self.folded_text.push_str(&NFKC.normalize(&case_folded));
    }
}

/// Folds a single character by definition. Returns its form after step 3, and after all steps.
pub(super) fn of_character(character: char) -> [String; 2] {
    let mut visible_text = String::new();
    visible(character.encode_utf8(&mut [0; 4]), &mut visible_text);
    let composed = NFKC.normalize(&visible_text).into_owned();
    let folded_form = NFKC.normalize(&CASE.fold_string(&composed)).into_owned();
    [composed, folded_form]
}

/// Applies steps 1 and 2.
fn visible(text: &str, into: &mut String) {
    into.clear();
    // Last character before a zero width space.
    let mut before_gap = None;
    for character in text.chars() {
        if character == ZERO_WIDTH_SPACE {
            before_gap = before_gap.or(into.chars().next_back());
        } else if character.is_ascii() || !INVISIBLE.contains(character) {
            let character = if character.is_whitespace() { ' ' } else { character };
            if let Some(previous) = before_gap.take()
                && ![previous, character].into_iter().all(is_written_without_spaces)
            {
                into.push(' ');
            }
            into.push(character);
        }
    }
}

#[cfg(test)]
mod tests {
    use icu_normalizer::{DecomposingNormalizer, DecomposingNormalizerBorrowed};
    use proptest::prelude::*;

    use super::*;

    const NFC: ComposingNormalizerBorrowed<'static> = ComposingNormalizer::new_nfc();
    const NFD: DecomposingNormalizerBorrowed<'static> = DecomposingNormalizer::new_nfd();

    fn folded(text: &str) -> String {
        Folding::default().folded(text).to_string()
    }

    #[test]
    fn differently_encoded_equal_texts_are_one_text() {
        for (text, form) in [
            ("Zu\u{308}rich", "zürich"),
            ("1\u{202f}000\u{2009}km\u{a0}!", "1 000 km !"),
            ("co\u{ad}op\u{feff}era\u{200d}te\u{2060}\u{200e}", "cooperate"),
            ("Straße STRASSE Straẞe", "strasse strasse strasse"),
            ("ΟΔΟΣ οδος", "οδοσ οδοσ"),
            ("I İ ı i", "i i\u{307} ı i"),
            ("ﬁnd Ｆｕｌｌ ｶﾞ", "find full ガ"),
            ("می\u{200c}خواهم", "میخواهم"),
            ("two\u{200b}words", "two words"),
            ("\u{200b}ភាសា\u{200b}\u{2060}\u{200b}ខ្មែរ\u{200b}", "ភាសាខ្មែរ"),
            ("日本\u{200b}v2\u{200b}語", "日本 v2 語"),
            ("a\u{ad}\u{301}", "á"),
            ("J\u{30c} ǰ", "ǰ ǰ"),
        ] {
            assert_eq!(folded(text), form, "{text:?}");
        }
        assert_eq!(Folding::default().composed("Zu\u{308}rich\u{ad} ﬁ"), "Zürich fi");
    }

    #[test]
    fn every_character_is_its_own_upper_and_lower_case() {
        let mut odd = Vec::new();
        for character in (0..=0x10_ffffu32).filter_map(char::from_u32) {
            let form = folded(&character.to_string());
            let cases = [character.to_uppercase().to_string(), character.to_lowercase().to_string()];
            // Turkish: by default folding a dotless i is a separate letter, whose capital is not I.
            if character != 'ı' && cases.iter().any(|case| folded(case) != form) {
                odd.push(character);
            }
        }
        assert!(odd.is_empty(), "{odd:?}");
    }

    proptest! {
        #[test]
        fn all_normal_forms_of_a_text_are_one_and_so_is_the_result(text in "\\PC{0,12}") {
            let form = folded(&text);
            for other in [NFKC.normalize(&text), NFC.normalize(&text), NFD.normalize(&text)] {
                prop_assert_eq!(folded(&other), form.as_str());
            }
            prop_assert_eq!(folded(&form), form);
        }

        #[test]
        fn fast_path_for_plain_characters_equals_the_definition(
            text in "([A-Za-z .,]|[À-ſ]|[Ͱ-Ͽ]|[А-я]|[Ა-Ჿ]|[Ḁ-ỿ]|[ἀ-῾]|[א-ת]|[؀-ۿ]|[ऀ-෿]|[฀-໿]|[ᄀ-ᇿ]|[‐-‧]|[、-〩]|[ぁ-ヿ]|[一-三]|[가-갛]|[！-～]|\\PC){0,9}"
        ) {
            let mut by_definition = Folding::default();
            by_definition.by_definition(&text);
            prop_assert_eq!(folded(&text), by_definition.folded_text.as_str());
            visible(&text, &mut by_definition.visible);
            let composed = Folding::default().composed(&text).to_string();
            prop_assert_eq!(composed, NFKC.normalize(&by_definition.visible));
        }

        #[test]
        fn ascii_is_put_into_lower_case(text in "[ -~\t\n]{0,40}") {
            let spaces = text.replace(['\t', '\n'], " ");
            prop_assert_eq!(folded(&text), spaces.to_ascii_lowercase());
        }

        #[test]
        fn text_may_be_cut_before_ascii_white_space(parts in prop::collection::vec("[a-zé\u{308}\u{ad}\u{200b}ก=\u{338}]{0,5}", 0..5)) {
            let words = |text: &str| text.split_whitespace().map(String::from).collect::<Vec<_>>();
            let cut: Vec<String> = parts.iter().flat_map(|part| words(&folded(part))).collect();
            prop_assert_eq!(words(&folded(&parts.join(" "))), cut);
        }
    }
}
