//! Search with rolled-up results equals a plain scan of texts and tables.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::OnceLock;

use proptest::prelude::*;
use serde_json::{Value, json};
use webtwin::lookup::LookupIndex;
use webtwin::lookup::search::{SearchOptions, hits, search};
use webtwin::results::FinishedRun;
use webtwin::results::pages::PageTable;
use webtwin::search::rollup::roll_up;
use webtwin::search::words::{Question, fold, words};

use crate::support::program::{fail, files, succeed};

/// A page with its columns in the tables and its text in the input.
struct Page {
    url: String,
    host: String,
    words: BTreeSet<String>,
    same_text: u64,
    /// Its collection and similar cluster, and true if that collection is kept.
    collection: Option<(u64, u64)>,
    kept: bool,
    cluster: Option<u64>,
    skipped: bool,
}

struct TestData {
    folder: tempfile::TempDir,
    /// Pages by doc id.
    pages: BTreeMap<u64, Page>,
    vocabulary: Vec<String>,
}

impl TestData {
    fn at(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().into()
    }

    fn index(&self) -> LookupIndex {
        LookupIndex::open(&self.at("idx")).unwrap()
    }
}

/// Returns the test data, which is made once and never changed.
fn test_data() -> &'static TestData {
    static TEST_DATA: OnceLock<TestData> = OnceLock::new();
    TEST_DATA.get_or_init(|| {
        let mut data =
            TestData { folder: tempfile::tempdir().unwrap(), pages: BTreeMap::new(), vocabulary: Vec::new() };
        succeed(&["run", "--input", "synth://?pages=700&seed=8", "--output", &data.at("run")]);
        succeed(&["index", &data.at("run"), "--output", &data.at("idx"), "--text"]);
        (data.pages, data.vocabulary) = plain(&FinishedRun::open(&data.at("run")).unwrap());
        data
    })
}

fn plain(run: &FinishedRun) -> (BTreeMap<u64, Page>, Vec<String>) {
    let pages = PageTable::from_run(run).unwrap();
    let ids = |table: &webtwin::storage::table::Table, name: &str| table.u64(name).unwrap().to_vec();
    let (clusters, avoid) = (run.table("clusters").unwrap(), run.table("avoid").unwrap());
    let (collections, members) = (run.table("collections").unwrap(), run.table("members").unwrap());
    let clusters: HashMap<u64, u64> = ids(&clusters, "doc_id").into_iter().zip(ids(&clusters, "cluster")).collect();
    let skipped: BTreeSet<u64> = ids(&avoid, "doc_id").into_iter().collect();
    let kept: HashMap<u64, bool> =
        ids(&collections, "collection").into_iter().zip(collections.bool("keep").unwrap().to_vec()).collect();
    let mut collection_of: HashMap<u64, (u64, u64)> = HashMap::new();
    let collection_ids = ids(&members, "similar_cluster").into_iter().zip(ids(&members, "collection"));
    for (doc_id, one) in ids(&members, "doc_id").into_iter().zip(collection_ids) {
        let first = collection_of.entry(doc_id).or_insert(one);
        *first = one.min(*first);
    }
    let (doc_ids, urls) = (pages.doc_ids().unwrap(), pages.urls().unwrap());
    let (hosts, exact) = (pages.0.text("host").unwrap(), pages.0.u64("exact").unwrap());
    let rows: Vec<usize> = (0..doc_ids.len()).collect();
    let (mut all, mut vocabulary) = (BTreeMap::new(), BTreeSet::new());
    pages
        .read(&rows, &run.job().unwrap().input, &mut |row, _, text| {
            let (mut found_words, mut word) = (Vec::new(), String::new());
            words(text, &mut found_words);
            let all_words: BTreeSet<String> = found_words
                .into_iter()
                .map(|range| {
                    fold(&text[range], &mut word);
                    word.clone()
                })
                .collect();
            vocabulary.extend(all_words.iter().cloned());
            let id = doc_ids[row];
            let collection = collection_of.get(&id).copied();
            let page = Page {
                url: urls[row].to_string(),
                host: hosts[row].to_string(),
                words: all_words,
                same_text: exact[row],
                collection,
                kept: collection.is_some_and(|(_, one)| kept[&one]),
                cluster: clusters.get(&id).copied(),
                skipped: skipped.contains(&id),
            };
            all.insert(id, page);
            Ok(())
        })
        .unwrap();
    (all, vocabulary.into_iter().collect())
}

/// Returns the group of a page in rolled-up results, according to its tables.
fn key(id: u64, page: &Page, roll: bool) -> (u8, u64) {
    match (page.collection, page.cluster) {
        _ if !roll => (2, id),
        (Some((similar, _)), _) => (0, similar),
        (None, Some(cluster)) => (1, cluster),
        (None, None) => (2, id),
    }
}

fn some_question() -> impl Strategy<Value = (Vec<String>, bool, Option<String>)> {
    let words = test_data().vocabulary.clone();
    let common: Vec<String> = words
        .iter()
        .filter(|word| test_data().pages.values().filter(|page| page.words.contains(*word)).count() > 20)
        .cloned()
        .collect();
    assert!(common.len() > 5);
    let hosts: BTreeSet<String> = test_data().pages.values().map(|page| page.host.clone()).collect();
    let word = prop_oneof![3 => prop::sample::select(common), 1 => prop::sample::select(words), 1 => "[a-z]{2,5}"];
    let host = prop::option::weighted(0.3, prop::sample::select(hosts.into_iter().collect::<Vec<_>>()));
    (prop::collection::vec(word, 1..4), prop::bool::weighted(0.3), host)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn groups_counts_and_order_equal_those_of_a_scan(
        (asked, in_mirrors, host) in some_question(), roll in any::<bool>(), limit in 1usize..8
    ) {
        let (data, index) = (test_data(), test_data().index());
        let question = Question { words: asked.clone(), hosts: host.iter().cloned().collect(), in_mirrors };
        let matches_found = hits(&index, &question, roll).unwrap();
        let id_of = |rank: u32| index.page(rank).unwrap().doc_id;
        let scores: BTreeMap<u64, f32> = matches_found.iter().map(|hit| (id_of(hit.page), hit.score)).collect();
        // Each page occurs once, and the pages are those that the scan finds.
        prop_assert_eq!(scores.len(), matches_found.len());
        let matches = |page: &&Page| {
            asked.iter().all(|word| page.words.contains(word))
                && host.as_ref().is_none_or(|host| *host == page.host)
                && (!in_mirrors || page.collection.is_some())
        };
        let want: BTreeSet<u64> = data.pages.iter().filter(|(_, page)| matches(page)).map(|(id, _)| *id).collect();
        prop_assert_eq!(scores.keys().copied().collect::<BTreeSet<_>>(), want.clone());
        // Pages with the same text must have the same score.
        let mut of_text: HashMap<u64, f32> = HashMap::new();
        for (id, score) in &scores {
            prop_assert_eq!(of_text.entry(data.pages[id].same_text).or_insert(*score), score);
            prop_assert!(*score > 0.0);
        }

        let mut groups: BTreeMap<(u8, u64), Vec<u64>> = BTreeMap::new();
        want.iter().for_each(|id| groups.entry(key(*id, &data.pages[id], roll)).or_default().push(*id));
        let mut results: Vec<(f32, u64, usize)> = Vec::new();
        for members in groups.values() {
            let stays = |id: &&u64| {
                let page = &data.pages[id];
                page.kept || page.collection.is_none() && !page.skipped
            };
            let staying: Vec<u64> = members.iter().filter(stays).copied().collect();
            let candidates = if staying.is_empty() { members } else { &staying };
            let best = |ids: &[u64]| ids.iter().map(|id| scores[id]).fold(0.0, f32::max);
            let shown = candidates.iter().copied().filter(|id| scores[id] == best(candidates)).min().unwrap();
            results.push((best(members), shown, members.len()));
        }
        results.sort_by(|x, y| y.0.total_cmp(&x.0).then(x.1.cmp(&y.1)));
        let rolled = roll_up(matches_found, usize::MAX);
        let message: Vec<_> = rolled.best.iter().map(|one| (one.score, id_of(one.best.page), one.members.len())).collect();
        prop_assert_eq!(&message, &results);

        let answer = search(&index, &question, SearchOptions { roll, reorder: false, from: 1, limit }).unwrap();
        prop_assert_eq!((answer.pages, answer.results), (want.len(), results.len()));
        prop_assert_eq!(answer.shown.len(), limit.min(results.len().saturating_sub(1)));
        for (shown, (score, id, members)) in answer.shown.iter().zip(&results[1.min(results.len())..]) {
            prop_assert_eq!((&shown.page.url, shown.score, shown.pages), (&data.pages[id].url, *score, *members));
            if let Some(collection) = shown.collection.as_ref() {
                let same = |one: &&u64| data.pages[one].collection == data.pages[id].collection;
                let of_group = &groups[&key(*id, &data.pages[id], roll)];
                prop_assert_eq!(collection.pages, of_group.iter().filter(same).count());
            }
        }
    }
}

#[test]
fn manual_and_its_mirrors_are_one_result_with_both_listed() {
    let data = test_data();
    let (id, page) = data.pages.iter().find(|(_, page)| page.kept).unwrap();
    let words: Vec<String> = page.words.iter().take(30).cloned().collect();
    let text = succeed(&["search", &data.at("idx"), &words.join(" "), "in:mirrors", "--json"]);
    let output: Value = serde_json::from_str(&text).unwrap();
    let first = &output["shown"][0];
    let size = |of: &str| first[of]["named"].as_array().unwrap().len();
    assert!(first["collection"]["pages"].as_u64().unwrap() >= 1 && size("collection") >= 1);
    assert_eq!(first["replica"]["kind"], "collections");
    assert_eq!(first["replica"]["count"].as_u64().unwrap() as usize, size("replica"));
    assert!(size("replica") > 0 && data.pages[id].collection.is_some());
    let lines = succeed(&["search", &data.at("idx"), &words.join(" "), "--roll", "off", "--limit", "1"]);
    assert!(lines.contains(" match") && !lines.contains("Replica"), "{lines}");
}

#[test]
fn repetitions_move_down_with_the_reason() {
    let (data, index) = (test_data(), test_data().index());
    let question = |word: &str| Question { words: vec![word.into()], ..Question::default() };
    let page_count = |word: &String| data.pages.values().filter(|page| page.words.contains(word)).count();
    let word = data.vocabulary.iter().find(|word| (40..200).contains(&page_count(word))).unwrap();
    let wanted = SearchOptions { roll: false, reorder: false, from: 0, limit: 100 };
    let plain = search(&index, &question(word), wanted).unwrap();
    let reordered = search(&index, &question(word), SearchOptions { reorder: true, ..wanted }).unwrap();
    let urls = |found: &webtwin::lookup::search::SearchMatches| {
        found.shown.iter().map(|one| one.page.url.clone()).collect::<Vec<_>>()
    };
    let (before, after) = (urls(&plain), urls(&reordered));
    assert_ne!(before, after);
    assert_eq!(before.iter().collect::<BTreeSet<_>>(), after.iter().collect::<BTreeSet<_>>());
    let mut repetitions = 0;
    for (place, shown) in reordered.shown.iter().enumerate() {
        if let Some(better_result) = &shown.said_by {
            assert!(
                after[..place].contains(&better_result.page.url)
                    && (1..=better_result.chunks).contains(&better_result.shared)
            );
            repetitions += 1;
        }
    }
    assert!(repetitions > 0);
    // Results that share no chunk with a better one are not moved, so they stay in the order of
    // scores.
    let new: Vec<f32> = reordered.shown.iter().filter(|one| one.said_by.is_none()).map(|one| one.score).collect();
    assert!(new.is_sorted_by(|x, y| x >= y));
}

#[test]
fn equal_runs_yield_equal_files_and_damage_is_an_error_or_harmless() {
    let data = test_data();
    let other = tempfile::tempdir().unwrap();
    let at = other.path().join("idx").to_str().unwrap().to_string();
    succeed(&["index", &data.at("run"), "--output", &at, "--text", "--workers", "3"]);
    let files_of = |folder: &str| -> BTreeMap<String, Vec<u8>> {
        files(folder).into_iter().filter(|(name, _)| !name.ends_with("manifest.json")).collect()
    };
    assert_eq!(files_of(&at), files_of(&data.at("idx")));
    let word = &data.vocabulary[data.vocabulary.len() / 2];
    let ask = || {
        let index = LookupIndex::open(&at)?;
        let question = Question { words: vec![word.clone()], ..Question::default() };
        search(&index, &question, SearchOptions { roll: true, reorder: true, from: 0, limit: 20 })
    };
    let want = ask().unwrap();
    let mut errors = 0;
    for (name, bytes) in files_of(&at).into_iter().filter(|(name, _)| name.contains("words")) {
        let path = other.path().join("idx").join(&name);
        for place in 0..16 {
            let mut damaged = bytes.clone();
            damaged[place * (bytes.len() - 1) / 15] ^= 0x10;
            std::fs::write(&path, damaged).unwrap();
            match ask() {
                Ok(found) => assert!(found == want, "{name}"),
                Err(error) => {
                    assert_eq!(error.exit_code(), 3, "{name}: {error}");
                    errors += 1;
                }
            }
        }
        std::fs::write(&path, bytes).unwrap();
    }
    assert!(errors > 50 && ask().unwrap() == want);
}

#[test]
fn invalid_queries_are_rejected() {
    let data = test_data();
    for question in ["host:a.example", "...", &"w ".repeat(600)] {
        assert!(fail(&["search", &data.at("idx"), question], 2).contains("word") || question.len() > 1000);
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("idx").to_str().unwrap().to_string();
    succeed(&["index", &data.at("run"), "--output", &at]);
    assert!(fail(&["search", &at, "word"], 2).contains("--text"));
    let output: Value = serde_json::from_str(&succeed(&["search", &data.at("idx"), "neverwritten", "--json"])).unwrap();
    assert_eq!((&output["pages"], &output["results"], &output["shown"]), (&json!(0), &json!(0), &json!([])));
}
