//! Cuts text into units: lines, sentences, paragraphs, words. Units are never empty.

use memchr::memchr_iter;

use super::columns::pieces;

/// Number of characters after which a sentence without a full stop ends (\[PBZ06\] Def. 1).
const SENTENCE_CHARACTERS: usize = 150;

/// Splits text into lines, and breaks each so that none is wider than `wrap` columns; 0 breaks
/// none.
///
/// A line is broken at white space and, in scripts without spaces, between pieces ([`pieces`]). A
/// word wider than `wrap` gets a line of its own and is not broken.
pub(super) fn lines(text: &str, wrap: usize, push: &mut impl FnMut(&[u8])) {
    for line in split(text, b'\n').filter(|line| !line.is_empty()) {
        // No character has more columns than bytes.
        if wrap == 0 || line.len() <= wrap {
            push(line.as_bytes());
        } else {
            wrapped(line, wrap, push);
        }
    }
}

/// Splits text like [`str::split`] at one ASCII byte, in half the time.
fn split(text: &str, separator: u8) -> impl Iterator<Item = &str> {
    let mut start = 0;
    memchr_iter(separator, text.as_bytes()).chain([text.len()]).map(move |end| {
        let piece = &text[start..end];
        start = end + 1;
        piece
    })
}

fn wrapped(line: &str, wrap: usize, push: &mut impl FnMut(&[u8])) {
    let (mut start, mut end, mut columns) = (0, 0, 0);
    let mut add = |from: usize, bytes: usize, width: usize| {
        // The gap is a space, or nothing if the piece is the next one of the same word.
        let mut gap = from - end;
        if end > start && columns + gap + width > wrap {
            push(&line.as_bytes()[start..end]);
            (start, columns, gap) = (from, 0, 0);
        }
        columns += gap + width;
        end = from + bytes;
    };
    for word in split(line, b' ') {
        let from = word.as_ptr() as usize - line.as_ptr() as usize;
        match word.is_ascii() {
            true => add(from, word.len(), word.len()),
            false => pieces(word, wrap, |piece, width| add(from + piece.start, piece.len(), width)),
        }
    }
    if end > start {
        push(&line.as_bytes()[start..end]);
    }
}

/// Splits text into paragraphs: runs of lines between empty lines.
pub(super) fn paragraphs(text: &str, push: &mut impl FnMut(&[u8])) {
    text.split("\n\n")
        .map(|paragraph| paragraph.trim_matches('\n'))
        .filter(|p| !p.is_empty())
        .for_each(|p| push(p.as_bytes()));
}

/// Splits text into words between white space.
pub(super) fn words(text: &str, push: &mut impl FnMut(&[u8])) {
    text.split([' ', '\n']).filter(|word| !word.is_empty()).for_each(|word| push(word.as_bytes()));
}

/// Splits text into sentences: up to and including a full stop, or 150 characters. A full stop
/// inside a word (`3.11`) does not end a sentence.
pub(super) fn sentences(text: &str, push: &mut impl FnMut(&[u8])) {
    let (mut start, mut characters) = (0, 0);
    let bytes = text.as_bytes();
    for (at, character) in text.char_indices() {
        if characters == 0 && (character == ' ' || character == '\n') {
            start = at + 1;
            continue;
        }
        characters += 1;
        let end = at + character.len_utf8();
        let stop = character == '.' && matches!(bytes.get(end), None | Some(b' ' | b'\n'));
        if stop || characters == SENTENCE_CHARACTERS {
            push(&bytes[start..end]);
            (start, characters) = (end, 0);
        }
    }
    if characters > 0 {
        push(text[start..].trim_end_matches([' ', '\n']).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn collect(split: impl Fn(&mut dyn FnMut(&[u8]))) -> Vec<String> {
        let mut units = Vec::new();
        split(&mut |unit| units.push(String::from_utf8(unit.to_vec()).unwrap()));
        units
    }

    #[test]
    fn lines_wrap_at_white_space_and_long_words_have_their_own_line() {
        let text = "one two three\n\nfour fivefivefive six";
        assert_eq!(collect(|mut push| lines(text, 8, &mut push)), ["one two", "three", "four", "fivefivefive", "six"]);
        assert_eq!(collect(|mut push| lines(text, 0, &mut push)), ["one two three", "four fivefivefive six"]);
    }

    #[test]
    fn text_without_spaces_wraps_at_columns_and_keeps_its_characters() {
        for text in ["漢字".repeat(100), "ไทย".repeat(100), "カタカナ、ひらがな。".repeat(30), "啊".repeat(300)]
        {
            let units = collect(|mut push| lines(&text, 80, &mut push));
            assert_eq!(units.concat(), text);
            assert!(units.len() > 2 && units.iter().all(|unit| unicode_width::UnicodeWidthStr::width(&**unit) <= 80));
        }
        // Text in two scripts keeps its words.
        let mixed = "webtwin は近い写しを見つけるprogramです。 ".repeat(10);
        assert!(collect(|mut push| lines(mixed.trim(), 40, &mut push)).iter().all(|unit| !unit.starts_with("gram")));
    }

    /// Returns the mean fraction of lines that a text and its edited form have in common; `word`
    /// makes a word for each number.
    fn kept_lines(word: impl Fn(u64) -> String, between: &str, words: u64) -> f64 {
        use std::collections::BTreeSet;
        let edits = [(1, 1), (0, 2), (2, 0)];
        let fractions = (0..300u64).map(|seed| {
            let word = |number: u64| word(webtwin_base::ids::splitmix64(seed << 32 | number));
            let (out, put_in) = edits[seed as usize % 3];
            let at = 10 + seed % (words - 20);
            let original: Vec<String> = (0..words).map(word).collect();
            let new = (0..put_in).map(|number| word(words + number));
            let edited: Vec<String> = (0..at).map(word).chain(new).chain((at + out..words).map(word)).collect();
            let lines_of = |words: &[String]| -> BTreeSet<String> {
                collect(|mut push| lines(&words.join(between), 80, &mut push)).into_iter().collect()
            };
            let (original_lines, edited_lines) = (lines_of(&original), lines_of(&edited));
            original_lines.intersection(&edited_lines).count() as f64
                / original_lines.union(&edited_lines).count() as f64
        });
        fractions.sum::<f64>() / 300.0
    }

    #[test]
    fn edited_text_keeps_equally_many_lines_with_and_without_spaces() {
        let characters = |first: u32, alphabet: u64, count: u64| {
            move |hash: u64| {
                let character =
                    |k| char::from_u32(first + (webtwin_base::ids::splitmix64(hash ^ k) % alphabet) as u32).unwrap();
                (0..count).map(character).collect::<String>()
            }
        };
        let letter = |hash: u64, k: u64| char::from(b'a' + (webtwin_base::ids::splitmix64(hash ^ k) % 26) as u8);
        let english = |hash: u64| (0..2 + hash % 8).map(|k| letter(hash, k)).collect::<String>();
        let english = kept_lines(english, " ", 130);
        for (script, first, alphabet, width) in [
            ("Chinese", 0x4e00, 4000, 2),
            ("Japanese", 0x3041, 80, 2),
            ("Thai", 0x0e01, 46, 1),
            ("Khmer", 0x1780, 35, 1),
            ("Burmese", 0x1000, 33, 1),
        ] {
            // The same number of columns in words of that width, with nothing between them.
            let other = kept_lines(characters(first, alphabet, 6 / width), "", 130);
            assert!(other > english - 0.03, "{script}: {other:.3} of lines, English {english:.3}");
            println!("{script}: {other:.3}, English {english:.3}");
        }
    }

    #[test]
    fn a_sentence_ends_at_150_characters_without_a_full_stop() {
        let text = format!("{}{}", "x".repeat(160), ". Then. v3.11 is one");
        let units = collect(|mut push| sentences(&text, &mut push));
        assert_eq!(units, ["x".repeat(150), format!("{}.", "x".repeat(10)), "Then.".into(), "v3.11 is one".into()]);
    }

    #[test]
    fn paragraphs_are_separated_by_empty_lines() {
        assert_eq!(collect(|mut push| paragraphs("a\nb\n\nc", &mut push)), ["a\nb", "c"]);
    }

    proptest! {
        #[test]
        fn wrapping_keeps_every_word_in_order_and_no_line_could_take_its_successors_first_word(
            words in prop::collection::vec("[a-zäß]{1,12}", 1..40), wrap in 16usize..40
        ) {
            let units = collect(|mut push| lines(&words.join(" "), wrap, &mut push));
            prop_assert_eq!(units.join(" "), words.join(" "));
            for pair in units.windows(2) {
                let first = pair[1].split(' ').next().unwrap();
                prop_assert!(pair[0].chars().count() <= wrap);
                prop_assert!(pair[0].chars().count() + 1 + first.chars().count() > wrap);
            }
        }
    }
}
