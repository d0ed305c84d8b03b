//! Cuts text into units: lines, sentences, paragraphs, words. Units are never empty.

/// Characters after which a sentence without a full stop ends (\[PBZ06\] Def. 1).
const SENTENCE_CHARACTERS: usize = 150;

/// Lines, each broken at white space so that none is longer than `wrap` characters; 0 breaks none.
///
/// A word longer than `wrap` gets a line of its own, whole.
pub(super) fn lines(text: &str, wrap: usize, push: &mut impl FnMut(&[u8])) {
    for line in text.split('\n').filter(|line| !line.is_empty()) {
        if wrap == 0 || line.len() <= wrap {
            push(line.as_bytes());
        } else {
            wrapped(line, wrap, push);
        }
    }
}

fn wrapped(line: &str, wrap: usize, push: &mut impl FnMut(&[u8])) {
    let (mut start, mut end, mut columns) = (0, 0, 0);
    for word in line.split(' ') {
        let from = word.as_ptr() as usize - line.as_ptr() as usize;
        let width = if word.is_ascii() { word.len() } else { word.chars().count() };
        if end > start && columns + 1 + width > wrap {
            push(&line.as_bytes()[start..end]);
            (start, columns) = (from, 0);
        }
        columns += width + usize::from(from > start);
        end = from + word.len();
    }
    if end > start {
        push(&line.as_bytes()[start..end]);
    }
}

/// Paragraphs: runs of lines between empty lines.
pub(super) fn paragraphs(text: &str, push: &mut impl FnMut(&[u8])) {
    text.split("\n\n")
        .map(|paragraph| paragraph.trim_matches('\n'))
        .filter(|p| !p.is_empty())
        .for_each(|p| push(p.as_bytes()));
}

/// Words between white space.
pub(super) fn words(text: &str, push: &mut impl FnMut(&[u8])) {
    text.split([' ', '\n']).filter(|word| !word.is_empty()).for_each(|word| push(word.as_bytes()));
}

/// Sentences: up to and including a full stop, or 150 characters; a full stop inside a word (`3.11`) does not end one.
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
    fn lines_wrap_at_white_space_and_long_words_stand_alone() {
        let text = "one two three\n\nfour fivefivefive six";
        assert_eq!(collect(|mut push| lines(text, 8, &mut push)), ["one two", "three", "four", "fivefivefive", "six"]);
        assert_eq!(collect(|mut push| lines(text, 0, &mut push)), ["one two three", "four fivefivefive six"]);
    }

    #[test]
    fn a_sentence_ends_at_150_characters_without_a_full_stop() {
        let text = format!("{}{}", "x".repeat(160), ". Then. v3.11 is one");
        let units = collect(|mut push| sentences(&text, &mut push));
        assert_eq!(units, ["x".repeat(150), format!("{}.", "x".repeat(10)), "Then.".into(), "v3.11 is one".into()]);
    }

    #[test]
    fn paragraphs_stand_between_empty_lines() {
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
