use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;
use webtwin::dataflow::clusters::links;
use webtwin::dataflow::pairs::minhash_pairs::{self, MinhashCounts};
use webtwin::dataflow::reading::captures::settle;
use webtwin::dataflow::shuffle::directory::TablePartitions;
use webtwin::engine::{ClusterLayout, run};
use webtwin::ids::Page;
use webtwin::job::{Guard, Job, Minhash};
use webtwin::minhash::bands::BandLayout;
use webtwin::minhash::pairs::by_definition;
use webtwin::minhash::resemblance::Threshold;
use webtwin::minhash::signature::Permutations;
use webtwin::overlap::SimilarPair;
use webtwin::overlap::neighbours::{LinkSample, keep_apart};

use crate::support::crawl::{MadePage, exact_pairs, local_pages};
use crate::support::planted::{figures, write_crawl};
use crate::support::program::{assert_same_on_any_workers, fail, files, rows, stderr_text, succeed, webtwin};

/// Generates pages on a few hosts, some of them captured twice and some without text. Their sets of
/// shingles resemble each other.
fn crawl() -> impl Strategy<Value = Vec<MadePage>> {
    let page = (0u32..4, 0u32..12, 0u64..4, prop::collection::vec(0u64..40, 0..5), any::<bool>());
    let links = prop::collection::vec(prop::collection::vec((0u32..4, 0u32..12), 0..4), 60);
    (prop::collection::vec(page, 1..60), links).prop_map(|(pages, links)| {
        let url = |host: u32, path: u32| format!("http://h{host}.example/{path}");
        let pages_made =
            pages.into_iter().zip(links).enumerate().map(|(time, ((host, path, like, own, is_empty), links))| {
                // Pages with the same `like` share 30 numbers and differ in `own`.
                let shared = (0..30).map(|number| 100 * like + 60 + number);
                let all = shared.chain(own).filter(|_| !is_empty || path > 0);
                let links = links.into_iter().map(|(host, path)| url(host, path));
                MadePage { time: time as i64, ..MadePage::at(url(host, path)).chunks(all).links(links) }
            });
        pages_made.collect()
    })
}

fn settings() -> impl Strategy<Value = Minhash> {
    let guard = prop::sample::select(vec![Guard::None, Guard::Neighbours]);
    (1u32..12, 1u32..4, 10u32..=100, 2u32..15, guard).prop_map(|(bands, rows, hundredths, max_documents, guard)| {
        let threshold = f64::from(hundredths) / 100.0;
        Minhash { bands, rows, threshold, max_documents, guard, ..Job::default().minhash }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn pairs_of_all_workers_equal_the_definition(
        pages in crawl(), settings in settings(), workers in 1usize..4
    ) {
        let parts = run(&ClusterLayout::local(workers), 0, [0; 32], move |net| {
            let mut local_pages = local_pages(&pages, net.index(), net.peers());
            let partitions = TablePartitions::new(8, net.peers());
            let crawl = settle(net, &mut local_pages, &[0], partitions)?;
            let exact_pairs = exact_pairs(net, &crawl)?;
            let job = Job { minhash: settings, ..Job::default() };
            let links = links::resolve(net, &mut local_pages, &crawl)?;
            let pairs_found = minhash_pairs::similar_pairs(net, &local_pages, &crawl, &exact_pairs, &links, &job)?;
            let sets = local_pages.sets.as_ref().unwrap();
            let set = |slot| Ok(sets.get(slot, &mut Vec::new())?.to_vec());
            let sets = local_pages.kept().map(|(slot, page)| Ok((page, set(slot)?))).collect::<webtwin::error::Result<Vec<_>>>()?;
            Ok((pairs_found, sets, exact_pairs.take()?, links.read(0..links.len())?, crawl.directory.hosts.clone()))
        }).unwrap();
        let exact_pairs: Vec<SimilarPair> = parts.iter().flat_map(|part| part.2.clone()).collect();
        let sets: BTreeMap<Page, Vec<u32>> = parts.iter().flat_map(|part| part.1.clone()).collect();
        let sets: Vec<Vec<u32>> = sets.into_values().collect();
        let (bands, hosts) = (BandLayout::from_settings(&settings), &parts[0].4);
        let permutations = Permutations::new(bands.permutations());
        let keys: Vec<Vec<u64>> = sets.iter().zip(Page::first(sets.len())).map(|(set, page)| {
            let mut signature = Vec::new();
            permutations.signature(set, &mut signature);
            let is_compared = !set.is_empty() && exact_pairs.iter().all(|pair| pair.b != page);
            bands.keys(&signature).filter(|_| is_compared).collect()
        }).collect();

        let threshold = Threshold::new(settings.threshold);
        let resemblance = |x: &[u32], y: &[u32]| threshold.reached_millionths(x, y);
        let (similar, left_out) = by_definition(&keys, &sets, settings.max_documents as usize, resemblance);
        let mut want: Vec<_> = similar.iter().map(|&(a, b, value)| SimilarPair { a, b, value }).collect();
        if settings.guard != Guard::None {
            let links: Vec<(Page, Page)> = parts.iter().flat_map(|part| part.3.clone()).collect();
            let linked: Vec<LinkSample> = Page::first(hosts.len()).map(|page| {
                let home = |target: &Page| hosts[*target] == hosts[page];
                LinkSample::new(page, links.iter().filter(|link| link.0 == page).map(|link| link.1).filter(home))
            }).collect();
            let has_links = |host| links.iter().any(|link| hosts[link.0] == host);
            keep_apart(&mut want, &exact_pairs, &linked, hosts, has_links, |_, _| 1);
        }
        let mut got: Vec<SimilarPair> = parts.iter().flat_map(|part| part.0.0.clone()).collect();
        got.sort_unstable();
        let guarded = (similar.len() - want.len()) as u64;
        prop_assert_eq!(got, want);

        let compared = keys.iter().filter(|keys| !keys.is_empty()).count() as u64;
        let (every_pair, _) = by_definition(&keys, &sets, settings.max_documents as usize, |_, _| Some(0));
        let candidates = every_pair.len() as u64;
        let counts = MinhashCounts { pages: compared, candidates, left_out, similar: similar.len() as u64, guarded };
        prop_assert!(parts.iter().all(|part| part.0.1 == counts), "{:?}, not {counts:?}", parts[0].0.1);
    }
}

/// Returns texts of 80 words in groups of four. Each text but the first of a group has some words
/// replaced by its own.
fn texts() -> Vec<String> {
    let text = |number: usize| {
        let (group, member) = (number / 4, number % 4);
        let is_own = |at: usize| member > 0 && at % 40 < member * 2;
        let word = |at: usize| if is_own(at) { format!("own{number}x{at}") } else { format!("w{group}x{at}") };
        (0..80).map(word).collect::<Vec<_>>().join(" ")
    };
    (0..120).map(text).collect()
}

#[test]
fn run_finds_the_duplicates_of_dedup_with_the_same_resemblance() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let url = |row: usize| format!("http://h{row}.example/");
    let line = |(row, text): (usize, String)| format!("{}\n", json!({ "url": url(row), "text": text }));
    std::fs::write(at("texts.jsonl"), texts().into_iter().enumerate().map(line).collect::<String>()).unwrap();
    let set = |setting: &'static str| ["--set", setting];
    let settings = [set("similar.by=minhash"), set("minhash.threshold=0.6"), set("similar.guard=none")].concat();
    let input = at("texts.jsonl");
    let (out, message) =
        assert_same_on_any_workers(folder.path(), "run", &[&["run", "--input", &input], &settings[..]].concat());
    succeed(&["dedup", &input, "--output", &at("dedup"), "--threshold", "0.6"]);

    let urls: BTreeMap<String, String> = rows(&out, "pages")
        .iter()
        .map(|row| (row["doc_id"].to_string(), row["url"].as_str().unwrap().to_string()))
        .collect();
    let pairs: BTreeMap<[String; 2], u64> = rows(&out, "pairs")
        .iter()
        .map(|row| {
            assert_eq!(row["measure"], "minhash");
            let mut ends = ["a", "b"].map(|end| urls[&row[end].to_string()].clone());
            ends.sort();
            (ends, row["value"].as_u64().unwrap())
        })
        .collect();
    let removed = rows(&at("dedup"), "removed");
    assert!(removed.len() > 60, "{}", removed.len());
    for row in &removed {
        let mut ends = ["row", "kept_row"].map(|end| url(row[end].as_u64().unwrap() as usize));
        ends.sort();
        let millionths = (row["similarity"].as_f64().unwrap() * 1e6) as u64;
        assert!(pairs.get(&ends).is_some_and(|value| value.abs_diff(millionths) <= 1), "{row}");
    }
    assert!(message.contains(&format!("{} similar pairs by minhash", pairs.len())), "{message}");
    let manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(format!("{out}/manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["recipes"]["minhash"], "shingles-words-5-nfkc.fold-xxh3-32-minima-xor-multiply-v2");
    assert_eq!(manifest["counts"]["similar_pairs"], json!(pairs.len()));
}

#[test]
fn crawl_by_shingles_has_the_same_bytes_on_any_workers_in_little_memory_and_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    write_crawl(&at("crawl"), 3000, 7);
    let input = at("crawl") + "/*.warc.gz";
    let common = ["run", "--input", &input, "--set", "effort.shard_bytes=65536", "--set", "similar.by=minhash"];
    let (whole, message) = assert_same_on_any_workers(folder.path(), "run", &common);
    assert!(message.contains("similar pairs by minhash, of which the guard `neighbours` refused"), "{message}");

    let ours = figures(&whole, "synth://?pages=3000&seed=7");
    assert!(ours["pair precision"] > 0.9 && ours["pair recall"] > 0.4, "{ours:?}");

    // This memory bound is too small for the whole input. The run records the items it has read
    // before it ends.
    let with = |more: &[&'static str]| [&common[..], &["--workers", "2"], more].concat();
    let small_memory = ["--output", "", "--resume", "--set", "effort.memory_bytes=40500000"];
    let output = at("little");
    let mut stopped = with(&small_memory);
    let place = stopped.iter().position(|argument| argument.is_empty()).unwrap();
    stopped[place] = &output;
    fail(&stopped, 9);
    let mut resumed = with(&["--output", "", "--resume", "--set", "effort.memory_bytes=300000000"]);
    resumed[place] = &output;
    let ended = webtwin(&resumed).output().unwrap();
    assert!(
        ended.status.success() && !stderr_text(&ended).contains(" 0 work items restored"),
        "{}",
        stderr_text(&ended)
    );
    assert!(files(&output) == files(&whole));
}
