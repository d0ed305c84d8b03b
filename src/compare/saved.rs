//! File `history` of a comparison: the state of earlier crawls that the next comparison needs.
//!
//! # Layout
//! Magic number, format, the recipes of ids and hashes, the length of the content, its 128-bit
//! XXH3; then the content, as `bincode` writes it. `bincode` has no schema, and decodes the bytes
//! of another struct as garbage. So the format number is incremented with every change of the
//! content, and nothing is decoded before magic number, format, recipes, length and checksum agree.
//!
//! Rows are sorted and distinct, so equal histories have equal bytes. For the last few crawls the
//! file has the collections and their pages, 28 bytes each, to be matched with the next crawl. For
//! older crawls it has the number of their collections, and 16 bytes for each pair of collections
//! that match. For all crawls it has the pages that were requested as probes, 8 bytes each.

use std::collections::BTreeMap;

use bincode::Options;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use super::collections::CrawlCollections;
use super::history::CrawlPairFacts;
use super::rates::Visits;
use super::revisit::HostRelation;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::DocId;
use webtwin_results::FinishedRun;

/// Path of the file in the folder of a comparison.
pub const NAME: &str = "history";

const MAGIC: [u8; 8] = *b"wthistry";

/// Format of the content. Incremented whenever [`SavedComparison`] or a type in it changes.
const FORMAT: u32 = 3;

/// Content of the file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SavedComparison {
    /// Number of crawls without a match after which a collection has died. The pairs depend on it.
    pub patience: u8,
    /// Number of crawls that the next comparison needs with their pages. The file has one crawl
    /// more.
    pub versions: u32,
    /// Attempt that wrote the result of each crawl, by the crawl's number.
    pub results: BTreeMap<u32, String>,
    /// Crawls, by number.
    pub crawls: BTreeMap<u32, CrawlCollections>,
    /// Matches of two crawls, by their numbers.
    pub pairs: BTreeMap<(u32, u32), CrawlPairFacts>,
    /// Visits to the pages of each host, by the crawl that made them; the newest last.
    pub hosts: BTreeMap<String, Vec<(u32, Visits)>>,
    /// Intervals and ends of mirrors that no longer exist.
    pub ended: EndedMirrors,
    /// Pages that were requested as probes after each crawl, ascending.
    pub asked: BTreeMap<u32, Vec<DocId>>,
}

/// Intervals and ends of mirrors that no longer exist, by the crawl that first lacked them. The
/// intervals and ends of a mirror that came back are subtracted at the crawl that has it again.
pub type EndedMirrors = BTreeMap<(u32, HostRelation), (i64, i64)>;

/// History of an earlier comparison.
pub struct SavedHistory {
    /// Folder of the comparison.
    pub url: String,
    /// File of the history, for messages.
    pub name: String,
    /// Checksum of the file.
    pub checksum: String,
    /// Content of the file.
    pub saved: SavedComparison,
}

impl SavedHistory {
    /// Reads the history of a comparison. Its crawls must have been read with `recipes`.
    ///
    /// # Errors
    /// Returns [`Error::Usage`] if the comparison has no history, and any error of
    /// [`FinishedRun::open`] and [`SavedComparison::decode`].
    pub fn open(url: &str, recipes: &BTreeMap<String, String>) -> Result<SavedHistory> {
        let comparison = FinishedRun::open(url)?;
        let name = comparison.folder.join(NAME)?.name().to_string();
        let file = comparison.manifest.files.iter().find(|file| file.path == NAME);
        let file = file.ok_or_else(|| {
            let message =
                "has no history, because it is not a comparison, or one across settings; name the results themselves";
            Error::Usage(format!("--history {url}: {message}"))
        })?;
        let bytes = comparison.manifest.read_file(&comparison.folder, file)?;
        let comparison = SavedComparison::decode(&name, &bytes, recipes)?;
        Ok(SavedHistory { url: url.to_string(), name, checksum: file.xxh3.clone(), saved: comparison })
    }
}

impl SavedComparison {
    /// Encodes the file.
    pub fn encode(&self, recipes: &BTreeMap<String, String>) -> Vec<u8> {
        let recipes = format_recipes(recipes);
        let content = options(u64::MAX).serialize(self).expect("a history is plain values");
        let mut bytes = MAGIC.to_vec();
        bytes.extend(FORMAT.to_le_bytes());
        bytes.extend((recipes.len() as u32).to_le_bytes());
        bytes.extend(recipes.as_bytes());
        bytes.extend((content.len() as u64).to_le_bytes());
        bytes.extend(xxh3_128(&content).to_le_bytes());
        bytes.extend(content);
        bytes
    }

    /// Decodes the file of a history. `name` is for messages.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the bytes are not such a file, have another format, are
    /// truncated or damaged. Returns [`Error::Usage`] if the crawls were read with other recipes
    /// than `recipes`, because then ids and hashes are not comparable.
    pub fn decode(name: &str, bytes: &[u8], recipes: &BTreeMap<String, String>) -> Result<SavedComparison> {
        let refuse = |what: &str| Error::input(name, format!("{what}; compare the results without --history"));
        let mut rest = bytes;
        let mut take = |count: usize| rest.split_off(..count).ok_or_else(|| refuse("the file is truncated"));
        if take(8)? != MAGIC {
            return Err(refuse("not a history"));
        }
        let format = u32::from_le_bytes(take(4)?.try_into().expect("four bytes"));
        if format != FORMAT {
            return Err(refuse(&format!("its format is {format}, but this build reads format {FORMAT}")));
        }
        let length = u32::from_le_bytes(take(4)?.try_into().expect("four bytes"));
        let reader_version = String::from_utf8_lossy(take(length as usize)?).into_owned();
        let length = u64::from_le_bytes(take(8)?.try_into().expect("eight bytes"));
        let checksum = u128::from_le_bytes(take(16)?.try_into().expect("sixteen bytes"));
        if rest.len() as u64 != length || xxh3_128(rest) != checksum {
            return Err(refuse("the file is damaged: its length or checksum differs"));
        }
        if reader_version != format_recipes(recipes) {
            return Err(Error::Usage(format!(
                "{name}: its crawls were read by other recipes ({reader_version}) than these ({}); compare the results \
                 without --history",
                format_recipes(recipes)
            )));
        }
        options(length).deserialize(rest).map_err(|cause| refuse(&cause.to_string()))
    }
}

fn options(limit: u64) -> impl Options {
    bincode::DefaultOptions::new().with_limit(limit).with_fixint_encoding()
}

/// Formats recipes on one line.
fn format_recipes(recipes: &BTreeMap<String, String>) -> String {
    recipes.iter().map(|(of, recipe)| format!("{of}={recipe}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collections::{Collection, CollectionMember};

    fn example() -> (SavedComparison, BTreeMap<String, String>) {
        let collections = vec![Collection { id: 7, size: 1, host: "a.example".into(), ..Collection::default() }];
        let members = vec![CollectionMember { collection: 0, doc_id: 7, text: 1, place: 2 }];
        let crawl = CrawlCollections { time: 5, forgotten: 0, collections, members };
        let comparison =
            SavedComparison { patience: 2, crawls: BTreeMap::from([(0, crawl)]), ..SavedComparison::default() };
        (comparison, BTreeMap::from([("doc_id".into(), "d1".into())]))
    }

    #[test]
    fn histories_are_read_back_and_equal_ones_have_equal_bytes() {
        let (comparison, recipes) = example();
        let bytes = comparison.encode(&recipes);
        assert_eq!(SavedComparison::decode("h", &bytes, &recipes).unwrap(), comparison);
        assert_eq!(comparison.clone().encode(&recipes), bytes);
    }

    #[test]
    fn all_damage_is_detected() {
        let (comparison, recipes) = example();
        let bytes = comparison.encode(&recipes);
        for length in 0..bytes.len() {
            assert!(SavedComparison::decode("h", &bytes[..length], &recipes).is_err(), "cut at {length}");
            let mut damaged_bytes = bytes.clone();
            damaged_bytes[length] ^= 0x10;
            assert!(SavedComparison::decode("h", &damaged_bytes, &recipes).is_err(), "damaged at {length}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(SavedComparison::decode("h", &longer, &recipes).is_err());
    }

    #[test]
    fn rejects_another_recipe_with_both_names() {
        let (comparison, recipes) = example();
        let other_recipes = BTreeMap::from([("doc_id".into(), "d2".into())]);
        let error = SavedComparison::decode("h", &comparison.encode(&recipes), &other_recipes).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("doc_id=d1") && error.to_string().contains("doc_id=d2"));
    }
}
