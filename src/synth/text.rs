//! An artificial language, and texts in it.
//!
//! The language has 4,096 pronounceable words, the same in every crawl, which are drawn with Zipf's
//! frequencies. The 64 most frequent words are common to all texts. The others are permuted for
//! each topic, so that two topics share a grammar and little else.
//!
//! A text is a tree of keys (text, block, sentence), so it has *ages*: the text of age `a` is the
//! newest one (age 0) with the edits of `a` steps undone. Texts of adjacent ages differ in some
//! sentences only.

use std::collections::HashSet;

use super::random::{Stream, key};

const WORDS: usize = 4096;
const COMMON: u16 = 64;
const COLUMNS: usize = 76;
/// Percentage of sentences that change when a text is edited.
const EDITED_PERCENT: u64 = 7;

/// Words of the language, and their frequencies.
#[derive(Debug)]
pub(super) struct WordModel {
    words: Vec<String>,
    /// Ranks of words, each repeated in proportion to Zipf's law. A uniform draw from this list is
    /// a Zipf draw of a word.
    zipf: Vec<u16>,
}

impl WordModel {
    pub(super) fn new() -> WordModel {
        let mut stream = Stream::new(key(0, &[1]));
        let mut seen_words = HashSet::new();
        let mut words = Vec::with_capacity(WORDS);
        while words.len() < WORDS {
            let syllables = match words.len() {
                0..=99 => 1,
                100..=999 => 2,
                _ => 2 + stream.below(3),
            };
            let word: String = (0..syllables).map(|_| syllable(&mut stream)).collect();
            if seen_words.insert(word.clone()) {
                words.push(word);
            }
        }
        let weight = |rank: usize| 2 * WORDS / (rank + 6);
        let zipf = (0..WORDS).flat_map(|rank| std::iter::repeat_n(rank as u16, weight(rank))).collect();
        WordModel { words, zipf }
    }

    /// Returns a word outside of any topic, for names.
    pub(super) fn name(&self, key: u64) -> &str {
        &self.words[usize::from(COMMON) + Stream::new(key).below((WORDS - usize::from(COMMON)) as u64) as usize]
    }

    /// Returns the writer for a topic. Half of the rare words come from the general topic, half
    /// from the particular one.
    pub(super) fn about(&self, general: u64, particular: u64) -> TopicWriter<'_> {
        let deal = |topic| Stream::new(key(topic, &[2])).draw() as u16 & (WORDS as u16 - COMMON);
        TopicWriter { language: self, deals: [deal(general), deal(particular)] }
    }
}

/// Returns the step at which a sentence or line got the form that it had `age` steps ago, or `None`
/// if that form is the newest.
fn edit(line: u64, age: u32) -> Option<u64> {
    (1..=u64::from(age)).rev().find(|&step| Stream::new(key(line, &[step])).chance(EDITED_PERCENT))
}

fn syllable(stream: &mut Stream) -> String {
    const ONSETS: [&str; 24] = [
        "b", "br", "c", "d", "dr", "f", "g", "h", "j", "k", "l", "m", "n", "p", "pl", "r", "s", "st", "t", "tr", "v",
        "w", "", "sh",
    ];
    const VOWELS: [&str; 8] = ["a", "e", "i", "o", "u", "ai", "ea", "o"];
    const CODAS: [&str; 12] = ["", "", "", "", "n", "r", "l", "s", "t", "m", "nd", "st"];
    let mut pick = |of: &[&'static str]| of[stream.below(of.len() as u64) as usize];
    [pick(&ONSETS), pick(&VOWELS), pick(&CODAS)].concat()
}

/// Writer of texts about one topic.
#[derive(Debug, Clone, Copy)]
pub(super) struct TopicWriter<'a> {
    language: &'a WordModel,
    deals: [u16; 2],
}

impl TopicWriter<'_> {
    fn word(&self, stream: &mut Stream) -> &str {
        let draw = stream.draw();
        let rank = self.language.zipf[(draw >> 32) as usize % self.language.zipf.len()];
        // Whole blocks of 64 ranks are swapped, so the rare words of a topic keep their Zipf
        // frequencies.
        let dealt_rank = if rank < COMMON { rank } else { rank ^ self.deals[draw as usize & 1] };
        &self.language.words[usize::from(dealt_rank)]
    }

    /// Appends 2 to 4 words, the first with a capital letter.
    pub(super) fn title(&self, output: &mut String, key: u64) {
        let mut stream = Stream::new(key);
        let start = output.len();
        for n in 0..2 + stream.below(3) {
            output.push_str(if n > 0 { " " } else { "" });
            output.push_str(self.word(&mut stream));
        }
        output[start..=start].make_ascii_uppercase();
    }

    /// Appends a sentence of 6 to 17 words, in lines of `COLUMNS` characters.
    fn sentence(&self, output: &mut String, column: &mut usize, key: u64) {
        let mut stream = Stream::new(key);
        let words = 6 + stream.below(12);
        for n in 0..words {
            let word = self.word(&mut stream);
            if *column > 0 && *column + 1 + word.len() > COLUMNS {
                output.push('\n');
                *column = 0;
            } else if *column > 0 {
                output.push(' ');
                *column += 1;
            }
            let start = output.len();
            output.push_str(word);
            match n {
                0 => output[start..=start].make_ascii_uppercase(),
                _ if n + 1 == words => output.push('.'),
                _ if stream.chance(6) => output.push(','),
                _ => {}
            }
            *column += output.len() - start;
        }
    }

    /// Appends the sentence with this key as it was `age` steps ago: unchanged, rewritten, followed
    /// by another one, or omitted.
    fn sentence_of_age(&self, output: &mut String, column: &mut usize, sentence: u64, age: u32) {
        let Some(step) = edit(sentence, age) else { return self.sentence(output, column, sentence) };
        let other_sentence = key(sentence, &[step, 1]);
        match other_sentence % 4 {
            0 => {}
            1 => {
                self.sentence(output, column, sentence);
                self.sentence(output, column, other_sentence);
            }
            _ => self.sentence(output, column, other_sentence),
        }
    }

    /// Appends the HTML of a text of 3 to 14 blocks (paragraphs, headings, lists, code) as it was
    /// `age` steps ago.
    pub(super) fn text(&self, output: &mut String, text: u64, age: u32) {
        let mut shape = Stream::new(text);
        for block in 0..3 + shape.skewed(12) {
            let block = key(text, &[block]);
            let sentences = 2 + shape.below(5);
            match shape.below(10) {
                0 | 1 => self.list(output, block, sentences, age),
                2 => self.code(output, block, sentences, age),
                3 | 4 => {
                    output.push_str("<h2>");
                    self.title(output, block);
                    output.push_str("</h2>\n");
                    self.paragraph(output, block, sentences, age);
                }
                _ => self.paragraph(output, block, sentences, age),
            }
        }
    }

    /// Appends the HTML of a paragraph as it was `age` steps ago.
    pub(super) fn paragraph(&self, output: &mut String, block: u64, sentences: u64, age: u32) {
        output.push_str("<p>");
        let mut column = 0;
        for n in 0..sentences {
            self.sentence_of_age(output, &mut column, key(block, &[n]), age);
        }
        output.push_str("</p>\n");
    }

    fn list(&self, output: &mut String, block: u64, items: u64, age: u32) {
        output.push_str("<ul>\n");
        for n in 0..items {
            output.push_str("<li>");
            self.sentence_of_age(output, &mut 0, key(block, &[n]), age);
            output.push_str("</li>\n");
        }
        output.push_str("</ul>\n");
    }

    fn code(&self, output: &mut String, block: u64, lines: u64, age: u32) {
        output.push_str("<pre>\n");
        for n in 0..lines + 2 {
            let line = key(block, &[n]);
            let mut stream = Stream::new(edit(line, age).map_or(line, |step| key(line, &[step, 1])));
            output.push_str(if n > 0 && stream.chance(60) { "    " } else { "" });
            output.push_str(self.word(&mut stream));
            output.push_str(" = ");
            output.push_str(self.word(&mut stream));
            output.push('(');
            output.push_str(self.word(&mut stream));
            output.push_str(", ");
            output.push_str(&stream.below(1000).to_string());
            output.push_str(")\n");
        }
        output.push_str("</pre>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(general: u64, text: u64, age: u32) -> HashSet<String> {
        let language = WordModel::new();
        let mut output = String::new();
        language.about(general, text).text(&mut output, text, age);
        output.lines().filter(|line| line.len() > 30).map(str::to_owned).collect()
    }

    #[test]
    fn words_are_many_distinct_and_short() {
        let language = WordModel::new();
        assert_eq!(language.words.iter().collect::<HashSet<_>>().len(), WORDS);
        assert!(language.words.iter().all(|word| (1..=24).contains(&word.len())));
        let first = language.zipf.iter().filter(|&&rank| rank == 0).count();
        assert!(first * 20 < language.zipf.len() && first * 50 > language.zipf.len());
        assert_eq!(language.zipf.last(), Some(&(WORDS as u16 - 1)));
    }

    #[test]
    fn a_step_of_age_changes_some_lines_and_leaves_most() {
        let (mut n_kept, mut n_all) = (0, 0);
        for text in 0..50 {
            let newest = lines(1, key(9, &[text]), 0);
            n_kept += newest.intersection(&lines(1, key(9, &[text]), 1)).count();
            n_all += newest.len();
        }
        assert!(n_kept < n_all * 95 / 100 && n_kept > n_all * 70 / 100, "{n_kept} of {n_all}");
    }

    #[test]
    fn unrelated_texts_share_no_line() {
        assert!(lines(1, 10, 0).is_disjoint(&lines(1, 11, 0)));
        assert!(lines(1, 10, 0).len() > 3);
    }
}
