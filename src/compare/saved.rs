//! The file `history` of a comparison: what the next one has to know of the crawls before.
//!
//! # Layout
//! Magic, format, the recipes behind ids and hashes, the length of the content, its XXH3 of 128 bits; then the content, as
//! `bincode` writes it. `bincode` knows no schema, and another struct reads as garbage; so the format is counted up with every
//! change of what is in it, and nothing is decoded before magic, format, recipes, length and checksum agree.
//!
//! Rows are sorted and each is there once, so equal histories are equal bytes. The last few crawls have their collections and pages,
//! 28 bytes each, to be matched with the next; of crawls before those is known how many collections they had, and what these have
//! in common: 16 bytes for each pair of collections. Of all crawls it has the pages that were to be fetched as probes, 8 bytes each.

use std::collections::BTreeMap;

use bincode::Options;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use super::collections::Crawl;
use super::history::Pair;
use super::rates::Visits;
use super::revisit::Kind;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::DocId;
use webtwin_results::Run;

/// Path of the file in the folder of a comparison.
pub const NAME: &str = "history";

const MAGIC: [u8; 8] = *b"wthistry";

/// Format of the content. Counted up whenever [`Saved`] or a type in it changes.
const FORMAT: u32 = 3;

/// What is saved.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Saved {
    /// Crawls without a collection after which it has died, on which the pairs depend.
    pub patience: u8,
    /// Crawls of which, and of one more, the pages are there.
    pub versions: u32,
    /// The attempts that made the results of the crawls, which name them, by the crawls' numbers.
    pub results: BTreeMap<u32, String>,
    /// The crawls.
    pub crawls: BTreeMap<u32, Crawl>,
    /// What they have in common.
    pub pairs: BTreeMap<(u32, u32), Pair>,
    /// Visits to the pages of each host, by the crawl that made them; the newest last.
    pub hosts: BTreeMap<String, Vec<(u32, Visits)>>,
    /// Intervals and ends of mirrors that are no more.
    pub ended: Ended,
    /// Pages that were to be fetched as probes after each crawl, ascending.
    pub asked: BTreeMap<u32, Vec<DocId>>,
}

/// Intervals and ends of mirrors that are no more, by the crawl that missed them first; of those that came back, less by the crawl that has
/// them again.
pub type Ended = BTreeMap<(u32, Kind), (i64, i64)>;

/// What an earlier comparison saved.
pub struct SavedHistory {
    /// Its folder.
    pub url: String,
    /// The file of it, for messages.
    pub name: String,
    /// Checksum of that file.
    pub checksum: String,
    /// What is in it.
    pub saved: Saved,
}

impl SavedHistory {
    /// Reads the history of a comparison, whose crawls are to be compared with those of these recipes.
    ///
    /// # Errors
    /// [`Error::Usage`] if it has none; those of [`Run::open`], and of [`Saved::decode`].
    pub fn open(url: &str, recipes: &BTreeMap<String, String>) -> Result<SavedHistory> {
        let comparison = Run::open(url)?;
        let name = comparison.folder.join(NAME)?.name().to_string();
        let file = comparison.manifest.files.iter().find(|file| file.path == NAME);
        let file = file.ok_or_else(|| {
            let what = "has no history: it is no comparison, or one across settings; name the results themselves";
            Error::Usage(format!("--history {url}: {what}"))
        })?;
        let bytes = comparison.manifest.read_file(&comparison.folder, file)?;
        let saved = Saved::decode(&name, &bytes, recipes)?;
        Ok(SavedHistory { url: url.to_string(), name, checksum: file.xxh3.clone(), saved })
    }
}

impl Saved {
    /// The bytes of the file.
    pub fn encode(&self, recipes: &BTreeMap<String, String>) -> Vec<u8> {
        let recipes = named(recipes);
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

    /// Reads the file of a history; `name` is for messages.
    ///
    /// # Errors
    /// [`Error::Input`] if it is no such file, of another format, cut off or damaged; [`Error::Usage`] if its crawls were read by other
    /// recipes than those given, so that nothing in it can be compared.
    pub fn decode(name: &str, bytes: &[u8], recipes: &BTreeMap<String, String>) -> Result<Saved> {
        let refuse = |what: &str| Error::input(name, format!("{what}; compare the results themselves, without it"));
        let mut rest = bytes;
        let mut take = |count: usize| rest.split_off(..count).ok_or_else(|| refuse("it is cut off"));
        if take(8)? != MAGIC {
            return Err(refuse("it is no history"));
        }
        let format = u32::from_le_bytes(take(4)?.try_into().expect("four bytes"));
        if format != FORMAT {
            return Err(refuse(&format!("it has format {format}, and this build reads format {FORMAT}")));
        }
        let length = u32::from_le_bytes(take(4)?.try_into().expect("four bytes"));
        let read_by = String::from_utf8_lossy(take(length as usize)?).into_owned();
        let length = u64::from_le_bytes(take(8)?.try_into().expect("eight bytes"));
        let checksum = u128::from_le_bytes(take(16)?.try_into().expect("sixteen bytes"));
        if rest.len() as u64 != length || xxh3_128(rest) != checksum {
            return Err(refuse("it is damaged: length or checksum differ"));
        }
        if read_by != named(recipes) {
            return Err(Error::Usage(format!(
                "{name}: its crawls were read by other recipes ({read_by}) than these ({}); compare the results themselves, without it",
                named(recipes)
            )));
        }
        options(length).deserialize(rest).map_err(|cause| refuse(&cause.to_string()))
    }
}

fn options(limit: u64) -> impl Options {
    bincode::DefaultOptions::new().with_limit(limit).with_fixint_encoding()
}

/// Recipes in one line.
fn named(recipes: &BTreeMap<String, String>) -> String {
    recipes.iter().map(|(of, recipe)| format!("{of}={recipe}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collections::{Collection, Member};

    fn saved() -> (Saved, BTreeMap<String, String>) {
        let collections = vec![Collection { id: 7, size: 1, host: "a.example".into(), ..Collection::default() }];
        let members = vec![Member { collection: 0, doc_id: 7, text: 1, place: 2 }];
        let crawl = Crawl { time: 5, forgotten: 0, collections, members };
        let saved = Saved { patience: 2, crawls: BTreeMap::from([(0, crawl)]), ..Saved::default() };
        (saved, BTreeMap::from([("doc_id".into(), "d1".into())]))
    }

    #[test]
    fn what_is_saved_comes_back_and_equal_histories_are_equal_bytes() {
        let (saved, recipes) = saved();
        let bytes = saved.encode(&recipes);
        assert_eq!(Saved::decode("h", &bytes, &recipes).unwrap(), saved);
        assert_eq!(saved.clone().encode(&recipes), bytes);
    }

    #[test]
    fn no_damage_goes_unnoticed() {
        let (saved, recipes) = saved();
        let bytes = saved.encode(&recipes);
        for at in 0..bytes.len() {
            assert!(Saved::decode("h", &bytes[..at], &recipes).is_err(), "cut at {at}");
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(Saved::decode("h", &damaged, &recipes).is_err(), "damaged at {at}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(Saved::decode("h", &longer, &recipes).is_err());
    }

    #[test]
    fn another_recipe_is_refused_with_both_names() {
        let (saved, recipes) = saved();
        let other = BTreeMap::from([("doc_id".into(), "d2".into())]);
        let error = Saved::decode("h", &saved.encode(&recipes), &other).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("doc_id=d1") && error.to_string().contains("doc_id=d2"));
    }
}
