//! Search over made-up pages: 10,000 texts of about 1.6 kB, each on two hosts that mirror each
//! other.
//!
//! Measured is the median of many queries: finding, scoring and rolling up all pages that contain a
//! word, with exact counts; finding and scoring alone; and ten snippets. The rows of pages are in
//! memory, without the checks of an index on disk.
//!
//! Run with `cargo bench -p webtwin-search --features search --bench search`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use webtwin_view::search::rollup::{NONE, PageHit, PageOfText, roll_up};
use webtwin_view::search::texts::{TextIndex, TextIndexFile};
use webtwin_view::search::write::TextWriter;

const TEXTS: u32 = 10_000;
const WORDS: u32 = 270;

struct Bytes(Vec<u8>);

impl TextIndexFile for Bytes {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn read(&self, range: Range<usize>) -> webtwin_base::error::Result<&[u8]> {
        Ok(&self.0[range])
    }
}

/// Returns the SplitMix64 hash of a number.
fn mixed(seed: u64) -> u64 {
    webtwin_base::ids::splitmix64(seed)
}

/// Returns a text. The name of a word states the fraction of texts that contain it.
fn text(number: u32) -> String {
    let word = |at: u32| {
        let share = (mixed(u64::from(number) << 32 | u64::from(at)) >> 11) as f64 / (1u64 << 53) as f64;
        format!("w{}", (f64::from(WORDS) * 20_000f64.powf(share) / f64::from(WORDS)) as u32)
    };
    // Words that a known fraction of the texts contains.
    let shares = [(2, "half"), (9, "ninth"), (55, "fiftieth")];
    let known = shares
        .iter()
        .filter(|(share, _)| mixed(u64::from(number)).is_multiple_of(*share))
        .map(|(_, word)| word.to_string());
    (0..WORDS).map(word).chain(known).collect::<Vec<_>>().join(" ")
}

fn median(mut measure: impl FnMut()) -> Duration {
    let mut all: Vec<Duration> = (0..301)
        .map(|_| {
            let began = Instant::now();
            measure();
            began.elapsed()
        })
        .collect();
    all.sort_unstable();
    all[all.len() / 2]
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let mut writer = TextWriter::new(folder.path()).unwrap();
    (0..TEXTS).for_each(|number| writer.add("", &text(number)).unwrap());
    let files = writer.finish().unwrap();
    let bytes = |file: webtwin_view::search::write::TextFile| (file.name, std::fs::read(file.path).unwrap());
    let files: BTreeMap<String, Vec<u8>> = files.into_iter().map(bytes).collect();
    let stored: usize = files.values().map(Vec::len).sum();
    println!("index of {TEXTS} texts: {:.2?}, {:.1} MB", began.elapsed(), stored as f64 / 1e6);
    let boxed =
        files.into_iter().map(|(name, bytes)| (name, Box::new(Bytes(bytes)) as Box<dyn TextIndexFile>)).collect();
    let texts = TextIndex::open("made up", boxed).unwrap();

    // A collection of ten pages and its mirror form a group. One page in eight is in no group.
    let page = |text: u32, mirror: u32| {
        let collection = if (text / 10).is_multiple_of(8) { NONE } else { 2 * (text / 10) + mirror };
        let group = if collection == NONE { TEXTS + text } else { text / 10 };
        PageOfText { page: text + mirror * TEXTS, group, collection, origin: mirror, keep: 1 - mirror }
    };
    let pages: Vec<[PageOfText; 2]> = (0..TEXTS).map(|text| [page(text, 0), page(text, 1)]).collect();
    for word in ["fiftieth", "ninth", "half"] {
        let question_words = [word.to_string()];
        let hits = || {
            let mut hits = Vec::new();
            let take = |text: u32, score: f32| {
                hits.extend(pages[text as usize].iter().map(|row| {
                    let PageOfText { page, group, collection, keep, .. } = *row;
                    PageHit { group, collection, page, text, score, is_kept: keep != 0 }
                }));
                Ok(())
            };
            texts.matching(&question_words, take).unwrap();
            hits
        };
        let all = roll_up(hits(), 10);
        let finding_time = median(|| assert!(!hits().is_empty()));
        let rolled = median(|| assert_eq!(roll_up(hits(), 10).groups, all.groups));
        let snippets = median(|| {
            for group in &all.best {
                let stored = texts.stored(group.best.text).unwrap();
                assert!(!texts.snippet(&stored.text, &question_words).unwrap().marks.is_empty());
            }
        });
        let (pages, groups) = (all.hits.len(), all.groups);
        println!(
            "{pages} pages, {groups} results: found {finding_time:.0?}, rolled up {rolled:.0?}; snippets of ten {snippets:.0?}"
        );
    }
}
