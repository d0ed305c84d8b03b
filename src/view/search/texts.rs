//! Full-text index of texts: texts that have all words of a query, with score and snippet.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Serialize;
use tantivy::columnar::Column;
use tantivy::query::{BooleanQuery, BoostQuery, EnableScoring, Occur, Query, TermQuery};
use tantivy::schema::{
    Field, IndexRecordOption, NumericOptions, STORED, Schema, TextFieldIndexing, TextOptions, Value,
};
use tantivy::snippet::SnippetGenerator;
use tantivy::tokenizer::{TextAnalyzer, Token, TokenStream, Tokenizer, TokenizerManager};
use tantivy::{DocAddress, Index, ReloadPolicy, Searcher, SegmentReader, TantivyDocument, Term};

use super::sealed_folder::SealedFolder;
use super::words::{fold, marks, words};
use webtwin_base::error::{Error, Result};

/// Name of [`Words`] in the schema.
const TOKENIZER: &str = "words";

/// Weight of a word in the title, in addition to its weight in the text.
const TITLE: f32 = 1.0;

/// Approximate length of a snippet, in bytes.
const SNIPPET: usize = 240;

/// File of the index.
pub trait TextIndexFile: Send + Sync {
    /// Returns the length in bytes.
    fn len(&self) -> usize;

    /// True if the file has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a range of the bytes.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if they are damaged or do not exist.
    fn read(&self, range: Range<usize>) -> Result<&[u8]>;
}

/// Fields of the schema.
#[derive(Debug, Clone, Copy)]
pub(super) struct SchemaFields {
    pub number: Field,
    pub title: Field,
    pub text: Field,
}

impl SchemaFields {
    pub(super) fn schema() -> (Schema, SchemaFields) {
        let mut schema = Schema::builder();
        let indexing =
            TextFieldIndexing::default().set_tokenizer(TOKENIZER).set_index_option(IndexRecordOption::WithFreqs);
        let text = TextOptions::default().set_indexing_options(indexing) | STORED;
        let fields = SchemaFields {
            number: schema.add_u64_field("number", NumericOptions::default().set_fast()),
            title: schema.add_text_field("title", text.clone()),
            text: schema.add_text_field("text", text),
        };
        (schema.build(), fields)
    }
}

/// Tokenizer for tantivy that finds the words of [`words`].
#[derive(Clone, Default)]
struct Words {
    marks: Vec<Range<usize>>,
    token: Token,
}

struct Stream<'t> {
    text: &'t str,
    marks: std::slice::Iter<'t, Range<usize>>,
    token: &'t mut Token,
}

impl Tokenizer for Words {
    type TokenStream<'t> = Stream<'t>;

    fn token_stream<'t>(&'t mut self, text: &'t str) -> Stream<'t> {
        words(text, &mut self.marks);
        self.token.reset();
        Stream { text, marks: self.marks.iter(), token: &mut self.token }
    }
}

impl TokenStream for Stream<'_> {
    fn advance(&mut self) -> bool {
        let Some(range) = self.marks.next() else { return false };
        (self.token.offset_from, self.token.offset_to) = (range.start, range.end);
        self.token.position = self.token.position.wrapping_add(1);
        fold(&self.text[range.clone()], &mut self.token.text);
        true
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

/// Returns the tokenizers that the schema names.
pub(super) fn tokenizers() -> TokenizerManager {
    // tantivy needs its own tokenizers for numbers too.
    let tokenizers = TokenizerManager::default();
    tokenizers.register(TOKENIZER, TextAnalyzer::from(Words::default()));
    tokenizers
}

/// Returns the numbers of a segment's texts.
pub(super) fn numbers(segment: &SegmentReader) -> tantivy::Result<std::sync::Arc<dyn tantivy::columnar::ColumnValues>> {
    let column: Column<u64> = segment.fast_fields().u64("number")?;
    Ok(column.values)
}

/// Text with marked query words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MarkedWords {
    /// The text.
    pub text: String,
    /// Start and end of each query word in the text, in bytes of UTF-8.
    pub marks: Vec<(usize, usize)>,
}

impl MarkedWords {
    /// Marks query words, which are folded, in a text.
    pub fn new(text: &str, query_words: &[String]) -> MarkedWords {
        let marks = marks(text, query_words).into_iter().map(|range| (range.start, range.end)).collect();
        MarkedWords { text: text.into(), marks }
    }

    /// Splits the text into pieces; the flag is true for marked pieces.
    pub fn pieces(&self) -> impl Iterator<Item = (bool, &str)> {
        let ends = self.marks.iter().flat_map(|&(start, end)| [(false, start), (true, end)]);
        let mut position = 0;
        let piece = move |(is_marked, end): (bool, usize)| {
            let piece = &self.text[position..end];
            position = end;
            (is_marked, piece)
        };
        ends.chain([(false, self.text.len())]).map(piece).filter(|(_, piece)| !piece.is_empty())
    }
}

/// Stored text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredText {
    /// Title of the text.
    pub title: String,
    /// The complete text.
    pub text: String,
}

/// Opened full-text index. Threads may share it.
pub struct TextIndex {
    name: String,
    index: Index,
    searcher: Searcher,
    fields: SchemaFields,
    /// Numbers of the texts, by segment.
    segments: Vec<std::sync::Arc<dyn tantivy::columnar::ColumnValues>>,
}

impl std::fmt::Debug for TextIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} texts of {}", self.len(), self.name)
    }
}

fn broken_index(name: &str, cause: impl std::fmt::Display) -> Error {
    Error::input(name, format!("the index of texts cannot be read: {cause}; fetch the index again or rebuild it"))
}

impl TextIndex {
    /// Opens a full-text index from its files. `name` is for messages.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if a damaged part of the index is read. All functions below return
    /// this error too.
    pub fn open(name: &str, files: BTreeMap<String, Box<dyn TextIndexFile>>) -> Result<TextIndex> {
        let failed = |cause: tantivy::TantivyError| broken_index(name, cause);
        let mut index = Index::open(SealedFolder::new(files)).map_err(failed)?;
        let (schema, fields) = SchemaFields::schema();
        if index.schema() != schema {
            return Err(broken_index(name, "it was built by another version"));
        }
        index.set_tokenizers(tokenizers());
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into().map_err(failed)?;
        let searcher = reader.searcher();
        let segments =
            searcher.segment_readers().iter().map(numbers).collect::<tantivy::Result<Vec<_>>>().map_err(failed)?;
        Ok(TextIndex { name: name.into(), index, searcher, fields, segments })
    }

    /// Returns the number of texts.
    pub fn len(&self) -> u64 {
        self.searcher.num_docs()
    }

    /// True if there are no texts.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn failed(&self, cause: impl std::fmt::Display) -> Error {
        broken_index(&self.name, cause)
    }

    /// Calls `take` with the number and the score of each text that has all words, which are
    /// folded. Scores are BM25 over text and title, and depend on the texts only.
    ///
    /// # Errors
    /// Returns any error of [`TextIndex::open`], and the first error of `take`.
    ///
    /// # Cost
    /// Reads all postings of the words; none is skipped for its score.
    pub fn matching(&self, query_words: &[String], mut take: impl FnMut(u32, f32) -> Result<()>) -> Result<()> {
        let term_query = |field: Field, word: &String| -> Box<dyn Query> {
            Box::new(TermQuery::new(Term::from_field_text(field, word), IndexRecordOption::WithFreqs))
        };
        let mut parts: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        for word in query_words {
            parts.push((Occur::Must, term_query(self.fields.text, word)));
            parts.push((Occur::Should, Box::new(BoostQuery::new(term_query(self.fields.title, word), TITLE))));
        }
        let query = BooleanQuery::new(parts);
        let scoring = EnableScoring::enabled_from_searcher(&self.searcher);
        let weight = query.weight(scoring).map_err(|cause| self.failed(cause))?;
        for (segment, numbers) in self.searcher.segment_readers().iter().zip(&self.segments) {
            let mut outcome = Ok(());
            let mut visit = |doc, score| {
                if outcome.is_ok() {
                    outcome = take(numbers.get_val(doc) as u32, score);
                }
            };
            weight.for_each(segment, &mut visit).map_err(|cause| self.failed(cause))?;
            outcome?;
        }
        Ok(())
    }

    /// Returns a text by its number.
    ///
    /// # Errors
    /// Returns any error of [`TextIndex::open`], and [`Error::Input`] if the text does not exist.
    ///
    /// # Cost
    /// Decompresses a block of texts.
    pub fn stored(&self, number: u32) -> Result<StoredText> {
        let number = u64::from(number);
        // Texts are numbered in the order of segments, and within them.
        let mut address = None;
        for (ordinal, numbers) in self.segments.iter().enumerate() {
            let count = u64::from(numbers.num_vals());
            let first = if count > 0 { numbers.get_val(0) } else { u64::MAX };
            if (first..first.saturating_add(count)).contains(&number) {
                address = Some(DocAddress::new(ordinal as u32, (number - first) as u32));
            }
        }
        let address = address.ok_or_else(|| self.failed(format!("text {number} is missing")))?;
        let document: TantivyDocument = self.searcher.doc(address).map_err(|cause| self.failed(cause))?;
        let field_text =
            |field| document.get_first(field).and_then(|value| value.as_str()).unwrap_or_default().to_string();
        Ok(StoredText { title: field_text(self.fields.title), text: field_text(self.fields.text) })
    }

    /// Returns an excerpt of a text that has many of the words, which are folded; its start if it
    /// has none. White space is collapsed.
    ///
    /// # Errors
    /// Returns any error of [`TextIndex::open`].
    pub fn snippet(&self, text: &str, query_words: &[String]) -> Result<MarkedWords> {
        let tokenizer = self.index.tokenizer_for_field(self.fields.text).map_err(|cause| self.failed(cause))?;
        let terms = query_words.iter().map(|word| (word.clone(), 1.0)).collect();
        let generated = SnippetGenerator::new(terms, tokenizer, self.fields.text, SNIPPET).snippet(text);
        let part = match generated.fragment() {
            "" => text
                .char_indices()
                .map(|(at, _)| &text[..at])
                .take_while(|part| part.len() <= SNIPPET)
                .last()
                .unwrap_or(""),
            part => part,
        };
        Ok(MarkedWords::new(&part.split_whitespace().collect::<Vec<_>>().join(" "), query_words))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::search::write::TextWriter;

    struct Bytes(Vec<u8>);

    impl TextIndexFile for Bytes {
        fn len(&self) -> usize {
            self.0.len()
        }

        fn read(&self, range: Range<usize>) -> Result<&[u8]> {
            self.0.get(range).ok_or_else(|| Error::input("a file", "is cut"))
        }
    }

    fn write_texts(texts: &[(String, String)]) -> BTreeMap<String, Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = TextWriter::new(folder.path()).unwrap();
        texts.iter().for_each(|(title, text)| writer.add(title, text).unwrap());
        assert_eq!(writer.texts(), texts.len() as u64);
        let files = writer.finish().unwrap();
        files.into_iter().map(|file| (file.name, std::fs::read(file.path).unwrap())).collect()
    }

    fn open_texts(files: BTreeMap<String, Vec<u8>>) -> Result<TextIndex> {
        let boxed = files.into_iter().map(|(name, bytes)| (name, Box::new(Bytes(bytes)) as Box<dyn TextIndexFile>));
        TextIndex::open("texts", boxed.collect())
    }

    fn owned_words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| word.to_string()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn texts_with_all_words_are_found_and_files_are_deterministic(
            made in prop::collection::vec(("[a-d]{0,3}", "([a-d]{1,2}|Ä|日本| |-){0,20}"), 0..30),
            wanted in prop::collection::btree_set("[a-d]{1,2}|ä|日", 1..3)
        ) {
            let files = write_texts(&made);
            prop_assert!(files == write_texts(&made));
            let texts = open_texts(files).unwrap();
            let wanted: Vec<String> = wanted.into_iter().collect();
            let mut found = BTreeMap::new();
            texts.matching(&wanted, |number, score| {
                found.insert(number, score);
                Ok(())
            }).unwrap();
            let has = |text: &str, word: &String| !marks(text, std::slice::from_ref(word)).is_empty();
            let want: BTreeSet<u32> = (0..).zip(&made)
                .filter(|(_, (_, text))| wanted.iter().all(|word| has(text, word))).map(|one| one.0).collect();
            prop_assert_eq!(found.keys().copied().collect::<BTreeSet<_>>(), want);
            prop_assert!(found.values().all(|score| *score > 0.0));
            for (number, (title, text)) in (0..).zip(&made) {
                prop_assert_eq!(texts.stored(number).unwrap(), StoredText { title: title.clone(), text: text.clone() });
            }
            prop_assert!(texts.stored(made.len() as u32).is_err());
        }
    }

    #[test]
    fn a_word_in_the_title_counts_more_and_a_snippet_is_where_the_words_are() {
        let filler = "nothing to see here ".repeat(60);
        let body = format!("{filler}the manual of\n pumps {filler}");
        let texts = [("", body.as_str()), ("Manual", &format!("Manual {}", &body[..body.len() - 7])), ("", "other")];
        let texts = open_texts(write_texts(&texts.map(|(title, text)| (title.into(), text.into())))).unwrap();
        let mut scores = [0.0; 3];
        texts
            .matching(&owned_words(&["manual"]), |number, score| {
                scores[number as usize] = score;
                Ok(())
            })
            .unwrap();
        assert!(scores[1] > scores[0] && scores[0] > scores[2], "{scores:?}");
        let snippet = texts.snippet(&body, &owned_words(&["manual", "pumps"])).unwrap();
        let pieces: Vec<(bool, &str)> = snippet.pieces().collect();
        assert!(pieces.contains(&(true, "manual")) && pieces.contains(&(true, "pumps")), "{snippet:?}");
        assert!(
            pieces.iter().map(|piece| piece.1).collect::<String>() == snippet.text && snippet.text.len() <= SNIPPET
        );
        let beginning = texts.snippet(&"äöü ".repeat(200), &owned_words(&["absent"])).unwrap();
        assert!(beginning.marks.is_empty() && beginning.text.starts_with("äöü äöü") && beginning.text.len() <= SNIPPET);
        assert_eq!(texts.snippet("", &owned_words(&["a"])).unwrap().text, "");
    }

    #[test]
    fn first_error_of_the_receiver_ends_a_search_and_a_missing_file_is_an_error() {
        let files = write_texts(&[("".into(), "one text".into()), ("".into(), "one more".into())]);
        let texts = open_texts(files.clone()).unwrap();
        let mut calls = 0;
        let message = texts.matching(&owned_words(&["one"]), |_, _| {
            calls += 1;
            Err(Error::Usage("enough".into()))
        });
        assert_eq!((message.unwrap_err().to_string().contains("enough"), calls), (true, 1));
        for name in files.keys() {
            let mut smaller = files.clone();
            smaller.remove(name);
            let outcome = open_texts(smaller).and_then(|texts| {
                texts.matching(&owned_words(&["one"]), |_, _| Ok(()))?;
                texts.stored(0)
            });
            // The positions file is never read: positions are not indexed.
            assert!(name.ends_with(".pos") || outcome.is_err_and(|error| error.exit_code() == 3), "{name}");
        }
    }
}
