//! Search of sets by the words of their titles and URLs.
//!
//! A column has a row for each word of each set: the hash of the word, and the place of the set in
//! the list. Rows ascend, so the places of a word ascend, and a page of results ends where the next
//! one starts.

use xxhash_rust::xxh3::xxh3_64;

use super::column::IndexColumn;
use super::find::lower_bound;
use super::rows::HashRow;
use webtwin_base::error::Result;
use webtwin_core::text::words::WordSplitter;

/// Maximum length of a query, in bytes.
pub const QUESTION: usize = 400;

/// Maximum number of words of a query. Further words are ignored.
const WORDS: usize = 12;

/// Maximum number of rows that are read for one answer. It bounds any request to a few
/// milliseconds.
const MAX_READS: usize = 1 << 15;

/// Calls `word` with the hash of each word of a title or URL. Percent-encoded bytes are decoded,
/// and punctuation separates words, so *www.example.com/a%20b* has five.
pub fn each_word(words: &mut WordSplitter, text: &str, mut word: impl FnMut(u64)) {
    let letters: String =
        percent_decoded(text).chars().map(|c| if c.is_ascii_punctuation() { ' ' } else { c }).collect();
    words.for_each_word(&letters, |one| word(xxh3_64(one)));
}

/// Decodes percent-encoded bytes; bytes that are not UTF-8 become replacement characters.
fn percent_decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((&first, later_letters)) = rest.split_first() {
        let digit = |at: usize| char::from(*later_letters.get(at)?).to_digit(16);
        match digit(0).zip(digit(1)).filter(|_| first == b'%') {
            Some((high, low)) => {
                bytes.push((high << 4 | low) as u8);
                rest = &later_letters[2..];
            }
            None => {
                bytes.push(first);
                rest = later_letters;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the distinct hashes of a query's words.
pub fn question(text: &str) -> Vec<u64> {
    let mut hashes = Vec::new();
    each_word(&mut WordSplitter::default(), text, |hash| {
        if hashes.len() < WORDS && !hashes.contains(&hash) {
            hashes.push(hash);
        }
    });
    hashes
}

/// Part of the sets that have all words of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetPlaces {
    /// Places of the sets in the list, ascending.
    pub places: Vec<u32>,
    /// Number of all matching sets, if it is known without a search.
    pub all: Option<usize>,
    /// Place from which the next search must start; `None` if there are no more sets.
    pub next: Option<u32>,
}

/// Finds at most `limit` sets that have all `words`, of which there must be at least one, starting
/// at the place `first`. Stops early after a bounded number of rows; [`SetPlaces::next`] continues
/// from there.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::Input`] if a damaged part of the index is read.
///
/// # Cost
/// Reads the rows of the rarest word, each with a binary search for every other word: at most
/// 32,768 rows in total.
pub fn find(column: &IndexColumn<HashRow>, words: &[u64], first: u32, limit: usize) -> Result<SetPlaces> {
    find_within(column, words, first, limit, MAX_READS)
}

fn find_within(
    column: &IndexColumn<HashRow>,
    words: &[u64],
    first: u32,
    limit: usize,
    mut reads: usize,
) -> Result<SetPlaces> {
    let hash_at = |row: usize| Ok(column.get(row)?.hash());
    let mut ranges = Vec::with_capacity(words.len());
    for &hash in words {
        let start = lower_bound(column.rows(), hash, hash_at)?;
        let end = match hash.checked_add(1) {
            Some(next) => lower_bound(column.rows(), next, hash_at)?,
            None => column.rows(),
        };
        ranges.push(start..end);
    }
    // The rarest word has the fewest candidates.
    ranges.sort_by_key(|range| range.len());
    let mut sets = SetPlaces { places: Vec::new(), all: None, next: None };
    let Some((rarest, other_ranges)) = ranges.split_first_mut() else { return Ok(sets) };
    // The rows of a single word are the matches, so their number is known.
    if (*rarest).is_empty() || other_ranges.is_empty() {
        sets.all = Some(rarest.len());
    }
    let mut place_of = |row: usize| {
        reads = reads.saturating_sub(1);
        Ok((column.get(row)?.value, reads == 0))
    };
    rarest.start = lower(rarest.clone(), first, |row| Ok(place_of(row)?.0))?;
    'candidates: for row in rarest.clone() {
        let (place, is_spent) = place_of(row)?;
        if sets.places.len() == limit || is_spent {
            sets.next = Some(place);
            break;
        }
        for range in other_ranges.iter_mut() {
            // Places ascend, so the next candidate cannot be before this one.
            range.start = lower(range.clone(), place, |row| Ok(place_of(row)?.0))?;
            if (*range).is_empty() {
                break 'candidates;
            }
            if place_of(range.start)?.0 != place {
                continue 'candidates;
            }
        }
        sets.places.push(place);
    }
    Ok(sets)
}

/// Returns the first row of a range whose place is at least `place`.
fn lower(range: std::ops::Range<usize>, place: u32, mut place_of: impl FnMut(usize) -> Result<u32>) -> Result<usize> {
    let (mut start, mut end) = (range.start, range.end);
    while start < end {
        let middle = start + (end - start) / 2;
        if place_of(middle)? < place { start = middle + 1 } else { end = middle }
    }
    Ok(start)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::lookup::column::tests::column;
    use webtwin_storage::mapped::{Residence, file_bytes};

    #[test]
    fn words_of_urls_and_titles_are_found_as_typed() {
        let words_of = |text: &str| question(text).into_iter().collect::<BTreeSet<u64>>();
        assert_eq!(words_of("http://www.Example.com/a%20b/?c=1"), words_of("HTTP www example COM a b c 1"));
        assert!(words_of("Straßenkarte - Version 2").is_superset(&words_of("strassenkarte")));
        assert_eq!(words_of("/%E6%BC%A2%E5%AD%97"), words_of("漢字"));
        assert_eq!((words_of("100% %zz"), words_of(" -- ").len()), (words_of("zz 100"), 0));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn sets_equal_a_scan_with_any_page_size(
            sets in prop::collection::vec(prop::collection::btree_set(0u64..7, 0..5), 0..60),
            asked in prop::collection::btree_set(0u64..8, 1..4), most in 1usize..9, reads in 40usize..200
        ) {
            let mut rows: Vec<HashRow> = Vec::new();
            for (place, words) in sets.iter().enumerate() {
                rows.extend(words.iter().map(|&word| HashRow::new(word, place as u32)));
            }
            rows.sort_unstable();
            let folder = tempfile::tempdir().unwrap();
            let (at, seal) = column(&folder, "names", &rows);
            let names = IndexColumn::open("names", file_bytes(&at, Residence::Mapped).unwrap(), &seal).unwrap();
            let asked: Vec<u64> = asked.into_iter().collect();
            let has = |words: &BTreeSet<u64>| asked.iter().all(|word| words.contains(word));
            let want: Vec<u32> = (0..sets.len()).filter(|&place| has(&sets[place])).map(|place| place as u32).collect();
            let (mut got, mut from) = (Vec::new(), Some(0));
            while let Some(start) = from {
                let some = find_within(&names, &asked, start, most, reads).unwrap();
                prop_assert!(some.places.len() <= most && some.all.is_none_or(|all| all == want.len()));
                prop_assert!(some.next.is_none_or(|next| next > start || start == 0 && !some.places.is_empty()), "{:?}", some);
                got.extend(some.places);
                from = some.next;
            }
            prop_assert_eq!(got, want);
        }
    }
}
