//! The index of a run answers according to the tables of the run.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::OnceLock;

use proptest::prelude::*;
use serde_json::Value;
use webtwin::chunks::ChunkRecipe;
use webtwin::ids::doc_id;
use webtwin::lookup::LookupIndex;
use webtwin::lookup::answer::{LookupSession, hexadecimal};
use webtwin::lookup::check::{CheckRequest, Checker, RequestForm};
use webtwin::lookup::chunks::compare;
use webtwin::lookup::{lists, names};
use webtwin::results::FinishedRun;
use webtwin::results::pages::PageTable;
use webtwin::text::words::WordSplitter;

use crate::support::planted::write_crawl;
use crate::support::program::{answer, fail, files, stderr_text, succeed, succeed_with, webtwin};

#[cfg(not(feature = "search"))]
#[test]
fn without_the_feature_search_reports_how_to_build_it() {
    let folder = tempfile::tempdir().unwrap();
    let idx = folder.path().join("idx").to_str().unwrap().to_string();
    let tried: [&[&str]; 3] = [
        &["index", &test_data().at("run"), "--output", &idx, "--text"],
        &["search", &test_data().at("idx"), "some", "words", "--json", "--roll", "off"],
        &["search"],
    ];
    for arguments in tried {
        let message = fail(arguments, 2);
        assert!(message.contains("--features search") && message.lines().count() == 1, "{message}");
    }
    assert!(!folder.path().join("idx").exists());
    assert!(succeed(&["search", "--help"]).contains("--features search"));
}

/// A made-up crawl, its run, and the index of the run.
struct TestData {
    folder: tempfile::TempDir,
}

impl TestData {
    fn at(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().into()
    }

    fn run(&self) -> FinishedRun {
        FinishedRun::open(&self.at("run")).unwrap()
    }

    fn index(&self) -> LookupIndex {
        LookupIndex::open(&self.at("idx")).unwrap()
    }
}

/// Returns the test data, which is made once and never changed.
fn test_data() -> &'static TestData {
    static TEST_DATA: OnceLock<TestData> = OnceLock::new();
    TEST_DATA.get_or_init(|| {
        let data = TestData { folder: tempfile::tempdir().unwrap() };
        // An index contains the pairs before any guard.
        let sets = ["--set", "similar.guard=none", "--set", "output.fprint_docid=true"];
        let input = "synth://?pages=1200&seed=5";
        succeed(&[&["run", "--input", input, "--output", &data.at("run")][..], &sets].concat());
        succeed(&["index", &data.at("run"), "--output", &data.at("idx"), "--chunks", "--simhashes"]);
        data
    })
}

/// The contents of the tables by page, from a plain scan.
struct Plain {
    pages: BTreeMap<u64, String>,
    avoid: HashMap<u64, (u64, String)>,
    prefixes: Vec<String>,
    clusters: HashMap<u64, u64>,
}

impl Plain {
    fn of(run: &FinishedRun) -> Plain {
        let (pages, avoid, clusters) =
            (run.table("pages").unwrap(), run.table("avoid").unwrap(), run.table("clusters").unwrap());
        let ids = |table: &webtwin::storage::table::Table, name: &str| table.u64(name).unwrap().to_vec();
        let why = avoid.text("why").unwrap().iter().map(String::from);
        let skipped = ids(&avoid, "keep_doc_id").into_iter().zip(why);
        let file = run.manifest.files.iter().find(|file| file.path == "exports/prefixes.txt").unwrap();
        let prefixes = String::from_utf8(run.manifest.read_file(&run.folder, file).unwrap()).unwrap();
        Plain {
            pages: ids(&pages, "doc_id").into_iter().zip(pages.text("url").unwrap().iter().map(String::from)).collect(),
            avoid: ids(&avoid, "doc_id").into_iter().zip(skipped).collect(),
            prefixes: prefixes.lines().map(String::from).collect(),
            clusters: ids(&clusters, "doc_id").into_iter().zip(ids(&clusters, "cluster")).collect(),
        }
    }

    fn line(&self, url: &str) -> String {
        let Ok(url) = webtwin::pages::url::CanonicalUrl::parse(url) else { return "reject".into() };
        let id = doc_id(url.as_str());
        if let Some((keep, _)) = self.avoid.get(&id) {
            return format!("skip\t{}", self.pages[keep]);
        }
        if self.pages.contains_key(&id) {
            return "fetch".into();
        }
        match self.prefixes.iter().any(|prefix| url.as_str().starts_with(prefix)) {
            true => "skip".into(),
            false => "unknown".into(),
        }
    }
}

fn plain() -> &'static Plain {
    static PLAIN: OnceLock<Plain> = OnceLock::new();
    PLAIN.get_or_init(|| Plain::of(&test_data().run()))
}

/// Generates URLs of the crawl, modified ones, and others.
fn some_url() -> impl Strategy<Value = String> {
    let urls: Vec<String> = plain().pages.values().cloned().collect();
    let prefixes = plain().prefixes.clone();
    assert!(prefixes.len() > 2);
    prop_oneof![
        4 => prop::sample::select(urls.clone()),
        1 => (prop::sample::select(urls.clone()), "[a-z/?#]{1,4}").prop_map(|(url, end)| url + &end),
        1 => (prop::sample::select(urls), 1usize..20).prop_map(|(url, cut)| url[..url.len().saturating_sub(cut)].into()),
        2 => (prop::sample::select(prefixes), "[a-z0-9]{0,5}").prop_map(|(prefix, end)| prefix + &end),
        1 => "[ -~]{0,30}",
        1 => "HTTPS?://[a-z.]{1,12}(:80)?/[a-z]{0,3}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn look_ups_equal_a_scan_of_the_tables(urls in prop::collection::vec(some_url(), 1..20)) {
        let (index, plain) = (test_data().index(), plain());
        let mut asker = LookupSession::new(&index, None);
        for url in &urls {
            let verdict = asker.url(url).unwrap();
            let mut line = String::new();
            asker.line(&verdict, &mut line).unwrap();
            prop_assert_eq!(line.trim_end_matches('\n'), plain.line(url), "{}", url);
            let full = asker.answer(url).unwrap();
            prop_assert_eq!(full.action.as_str(), line.split(['\t', '\n']).next().unwrap());
            let id = full.canonical.as_deref().map(doc_id);
            let cluster = id.and_then(|id| plain.clusters.get(&id)).map(|cluster| hexadecimal(*cluster));
            prop_assert_eq!(full.cluster, cluster);
            let why = id.and_then(|id| plain.avoid.get(&id)).map(|one| one.1.clone());
            if full.known {
                prop_assert_eq!(full.why, why);
            }
        }
    }
}

#[test]
fn lines_of_the_command_equal_the_tables_in_order() {
    let (index, plain) = (test_data().at("idx"), plain());
    let mut urls: Vec<String> = plain.pages.values().cloned().collect();
    urls.extend(["no url".into(), String::new(), "http://never.example/".into(), " <http://never.example/x>\r".into()]);
    let message = succeed_with(&["lookup", &index], &(urls.join("\n") + "\n"));
    let want: Vec<String> = urls.iter().map(|url| plain.line(url)).collect();
    assert_eq!(message.lines().collect::<Vec<_>>(), want);
    assert!(want.iter().filter(|line| line.starts_with("skip\t")).count() > 100);

    let ids: String = plain.pages.keys().map(|id| hexadecimal(*id) + "\n").collect();
    let by_id = succeed_with(&["lookup", &index, "--id"], &ids);
    assert_eq!(by_id.lines().collect::<Vec<_>>(), want[..plain.pages.len()]);

    let json = succeed_with(&["lookup", &index, "--json"], &(urls.join("\n") + "\n"));
    for ((url, line), want) in urls.iter().zip(json.lines()).zip(&want) {
        let object: Value = serde_json::from_str(line).unwrap();
        assert_eq!(object["url"], url.trim_end_matches('\r'));
        assert_eq!(object["action"].as_str().unwrap(), want.split('\t').next().unwrap());
        assert_eq!(object["keep"]["url"].as_str(), want.split_once('\t').map(|one| one.1));
    }
    let bad = answer(&["lookup", &index], "http://a.example/\u{fffd}\n");
    assert!(bad.status.success());
}

#[test]
fn sets_and_collections_have_the_members_of_the_tables() {
    let (run, index) = (test_data().run(), test_data().index());
    let clusters = run.table("clusters").unwrap();
    let mut pages_of_cluster: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    for (cluster, page) in clusters.u64("cluster").unwrap().iter().zip(clusters.u64("doc_id").unwrap()) {
        pages_of_cluster.entry(*cluster).or_default().insert(hexadecimal(*page));
    }
    assert_eq!(index.clusters(), pages_of_cluster.len());
    for (id, pages) in &pages_of_cluster {
        let set = webtwin::lookup::sets::set(&index, *id, 0, usize::MAX).unwrap().unwrap();
        assert_eq!(set.members.iter().map(|member| member.id.clone()).collect::<BTreeSet<_>>(), *pages);
    }
    let (collections, members) = (run.table("collections").unwrap(), run.table("members").unwrap());
    assert!(collections.rows() > 3);
    for (row, id) in collections.u64("collection").unwrap().iter().enumerate() {
        let collection = webtwin::lookup::sets::collection(&index, *id, 0, usize::MAX).unwrap().unwrap();
        let member_ids = members.u64("collection").unwrap().iter().zip(members.u64("doc_id").unwrap());
        let want: BTreeSet<String> = member_ids.filter(|one| one.0 == id).map(|one| hexadecimal(*one.1)).collect();
        assert_eq!(collection.members.iter().map(|member| member.id.clone()).collect::<BTreeSet<_>>(), want);
        assert_eq!(collection.cardinality, collections.u32("cardinality").unwrap()[row]);
        assert_eq!(collection.mirrors.len(), collection.cardinality as usize);
        assert_eq!(collection.own.root.url, collections.text("root_url").unwrap()[row]);
        assert_eq!(collection.mirrors.iter().filter(|mirror| mirror.keep).count(), 1);
    }
}

#[test]
fn lists_have_the_largest_first_and_words_equal_a_scan_of_the_tables() {
    let (run, index) = (test_data().run(), test_data().index());
    let (pages, clusters) = (run.table("pages").unwrap(), run.table("clusters").unwrap());
    let named: HashMap<u64, (String, String)> = (0..pages.rows())
        .map(|row| {
            let text = |name: &str| pages.text(name).unwrap()[row].to_string();
            (pages.u64("doc_id").unwrap()[row], (text("title"), text("url")))
        })
        .collect();
    let words = |ids: &[u64]| -> BTreeSet<u64> {
        let texts = ids.iter().flat_map(|id| [&named[id].0, &named[id].1]);
        let mut hashes = BTreeSet::new();
        texts.for_each(|text| names::each_word(&mut WordSplitter::default(), text, |word| _ = hashes.insert(word)));
        hashes
    };
    // Sets are ordered by their number of pages, then by id.
    let mut pages_of_cluster: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for (cluster, page) in clusters.u64("cluster").unwrap().iter().zip(clusters.u64("doc_id").unwrap()) {
        pages_of_cluster.entry(*cluster).or_default().push(*page);
    }
    let mut sets: Vec<(u64, Vec<u64>)> = pages_of_cluster.into_iter().collect();
    sets.sort_by_key(|set| std::cmp::Reverse(set.1.len()));
    let keeps: BTreeMap<u64, u64> = (0..clusters.rows())
        .filter(|&row| clusters.text("role").unwrap()[row] == *"keep")
        .map(|row| (clusters.u64("cluster").unwrap()[row], clusters.u64("doc_id").unwrap()[row]))
        .collect();
    let (title, url) = &named[&sets[3].1[0]];
    let host = url.split('/').nth(2).unwrap();
    let questions =
        ["", "  ", "manual", "www example", host, title, &format!("{title} {host}"), "neverwritten manual", "--"];
    for question in questions {
        let hashes = names::question(question);
        let has = |ids: &[u64]| {
            let all = words(ids);
            question.trim().is_empty() || !hashes.is_empty() && hashes.iter().all(|hash| all.contains(hash))
        };
        let want: Vec<&(u64, Vec<u64>)> = sets.iter().filter(|set| has(&set.1)).collect();
        let (mut got, mut from) = (Vec::new(), Some(0));
        while let Some(start) = from {
            let some = lists::sets(&index, lists::ListRequest { words: question, from: start, limit: 7 }).unwrap();
            assert!(some.shown.len() <= 7 && some.all == sets.len(), "{question}");
            assert!(some.matches.is_none_or(|matches| matches == want.len()), "{question}");
            got.extend(some.shown);
            from = some.next;
        }
        let ids: Vec<String> = want.iter().map(|set| hexadecimal(set.0)).collect();
        assert_eq!(got.iter().map(|set| set.id.clone()).collect::<Vec<_>>(), ids, "{question}");
        for (set, (cluster, pages)) in got.iter().zip(&want) {
            let hosts: BTreeSet<&str> = pages.iter().map(|id| named[id].1.split('/').nth(2).unwrap()).collect();
            let expected_page = &named[&keeps[cluster]];
            assert_eq!((set.pages, set.hosts), (pages.len(), hosts.len()));
            assert_eq!((&set.title, &set.page.url), (&expected_page.0, &expected_page.1));
        }
    }

    let collections = run.table("collections").unwrap();
    let mut originals: BTreeMap<u64, (Vec<u64>, u32, u32)> = BTreeMap::new();
    for row in 0..collections.rows() {
        let (id, size) = (collections.u64("similar_cluster").unwrap()[row], collections.u32("size").unwrap()[row]);
        let original = originals.entry(id).or_default();
        original.0.push(collections.u64("root").unwrap()[row]);
        let is_kept = collections.bool("keep").unwrap()[row];
        if is_kept { original.1 = size } else { original.2 += size }
    }
    for question in ["", host, "index", "neverwritten"] {
        let hashes = names::question(question);
        let mut want: Vec<(usize, u32, u32)> = originals
            .values()
            .filter(|original| hashes.iter().all(|hash| words(&original.0).contains(hash)))
            .map(|original| (original.0.len(), original.1, original.2))
            .collect();
        let list = lists::originals(&index, lists::ListRequest { words: question, from: 0, limit: 100 }).unwrap();
        assert!(list.shown.is_sorted_by_key(|original| std::cmp::Reverse(original.surplus)));
        assert_eq!((list.all, list.next), (originals.len(), None));
        let got = list.shown.iter().map(|original| (original.copies as usize, original.pages, original.surplus));
        let mut got: Vec<_> = got.collect();
        want.sort_unstable();
        got.sort_unstable();
        assert_eq!(got, want, "{question}");
    }
}

/// Returns a WARC record.
fn record(number: usize, url: &str, status: &str, html: &str) -> String {
    let http = format!("HTTP/1.1 {status}\r\nContent-Type: text/html\r\n\r\n{html}");
    format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-{number:012}>\r\n\
         WARC-Date: 2026-01-01T00:00:00Z\r\nWARC-Target-URI: {url}\r\nContent-Type: application/http; msgtype=response\r\n\
         Content-Length: {}\r\n\r\n{http}\r\n\r\n",
        http.len()
    )
}

#[test]
fn why_a_url_is_unknown_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let text = "<title>A page</title>".to_string() + &"<p>What this page says, and no other page does.".repeat(9);
    let crawl = [
        ("http://a.example/", "200 OK", text.as_str()),
        ("http://a.example/gone", "404 Not Found", "gone"),
        ("http://a.example/twice", "404 Not Found", "gone"),
        ("http://a.example/twice", "200 OK", &text),
    ];
    let records = crawl.iter().enumerate().map(|(number, (url, status, html))| record(number, url, status, html));
    std::fs::write(at("crawl.warc"), records.collect::<String>()).unwrap();
    succeed(&["run", "--input", &at("crawl.warc"), "--output", &at("run")]);
    succeed(&["index", &at("run"), "--output", &at("idx")]);
    let answer = |line: &str, more: &[&str]| -> Value {
        let json = succeed_with(&[&["lookup", &at("idx"), "--json"][..], more].concat(), line);
        serde_json::from_str(&json).unwrap()
    };
    for (url, reason, host_pages, rejected) in [
        ("http://A.example/gone#x", "rejected", 2, Some("status_not_2xx")),
        ("http://a.example/other", "not_crawled", 2, None),
        ("https://a.example/other", "not_crawled", 2, None),
        ("http://b.example/", "outside_run", 0, None),
    ] {
        let answer = answer(url, &[]);
        let unknown = &answer["unknown"];
        assert_eq!(
            (answer["action"].as_str(), unknown["reason"].as_str()),
            (Some("unknown"), Some(reason)),
            "{answer}"
        );
        assert_eq!((unknown["host_pages"].as_u64(), unknown["rejected"].as_str()), (Some(host_pages), rejected));
        assert!(unknown["advice"].as_str().is_some_and(|advice| advice.contains("etch")));
    }
    for url in ["http://a.example/", "http://a.example/twice", "ftp://a.example/"] {
        assert!(answer(url, &[])["unknown"].is_null(), "{url}");
    }
    assert_eq!(answer("http://a.example/", &[])["title"], "A page");
    let gone_id = hexadecimal(doc_id("http://a.example/gone"));
    assert_eq!(answer(&gone_id, &["--id"])["unknown"]["rejected"], "status_not_2xx");
    let by_id = &answer("0000000000000001", &["--id"])["unknown"];
    assert_eq!((by_id["reason"].as_str(), by_id["host_pages"].is_null()), (Some("not_crawled"), true));
}

#[test]
fn texts_of_the_crawl_are_near_their_paired_pages() {
    let (run, index) = (test_data().run(), test_data().index());
    let job = run.job().unwrap();
    let pages = PageTable::from_run(&run).unwrap();
    let doc_ids = pages.doc_ids().unwrap();
    let table = run.table("pairs").unwrap();
    let mut want: HashMap<u64, BTreeSet<(u64, u32)>> = HashMap::new();
    let mut copies = BTreeSet::new();
    for row in 0..table.rows() {
        let (a, b) = (table.u64("a").unwrap()[row], table.u64("b").unwrap()[row]);
        let value = table.u32("value").unwrap()[row];
        match &table.text("measure").unwrap()[row] {
            "overlap" => {
                want.entry(a).or_default().insert((b, value));
                want.entry(b).or_default().insert((a, value));
            }
            "exact" => _ = copies.insert(b),
            _ => {}
        }
    }
    assert!(want.len() > 50 && !copies.is_empty());
    let mut recipe = ChunkRecipe::new(&job.chunks);
    let (mut fprints, mut compared) = (Vec::new(), 0);
    let rows: Vec<usize> = (0..doc_ids.len()).collect();
    pages
        .read(&rows, &job.input, &mut |row, _, text| {
            if copies.contains(&doc_ids[row]) {
                return Ok(());
            }
            recipe.fingerprint(text, &mut fprints);
            let comparison = compare(&index, &fprints, &job.overlap).unwrap().unwrap();
            let near: BTreeSet<(u64, u32)> = comparison
                .near
                .iter()
                .map(|one| (doc_ids[one.page as usize], one.shared))
                .filter(|one| one.0 != doc_ids[row])
                .collect();
            assert_eq!(near, want.remove(&doc_ids[row]).unwrap_or_default(), "{}", &pages.urls().unwrap()[row]);
            compared += 1;
            Ok(())
        })
        .unwrap();
    assert!(want.is_empty() && compared > 500);
}

#[test]
fn repeated_pages_are_recognised_by_text_chunks_and_simhash() {
    let (run, index) = (test_data().run(), test_data().index());
    let job = run.job().unwrap();
    let pages = PageTable::from_run(&run).unwrap();
    let simhashes = pages.0.u64_where("simhash", "has_simhash").unwrap();
    let mut checker = Checker::new(&index);
    let (mut exact, mut near, mut bits) = (0, 0, 0);
    let rows: Vec<usize> = (0..pages.0.rows()).step_by(7).collect();
    pages
        .read(&rows, &job.input, &mut |row, page, text| {
            let (charset, url) = (page.charset.as_deref(), None);
            let verdict = checker
                .check(&index, CheckRequest { body: &page.body, form: RequestForm::Html, charset, url })
                .unwrap();
            assert_eq!((verdict.text_bytes, verdict.action.as_str(), verdict.why), (text.len(), "skip", Some("exact")));
            assert_eq!(verdict.fingerprint, simhashes[row].map(hexadecimal));
            exact += usize::from(verdict.exact.is_some());
            let changed = format!("{}\n\nA last line that no page has, about nothing at all.", text);
            let request = CheckRequest { body: changed.as_bytes(), form: RequestForm::Text, charset: None, url: None };
            let verdict = checker.check(&index, request).unwrap();
            assert!(
                verdict.exact.is_none() && verdict.measures.overlap == "used" && verdict.measures.hamming != "used"
                    || bits < 5000
            );
            near += usize::from(verdict.near.iter().any(|one| one.measure == "overlap"));
            bits += usize::from(verdict.near.iter().any(|one| one.measure == "hamming"));
            Ok(())
        })
        .unwrap();
    assert_eq!(exact, rows.len());
    assert!(near * 2 > rows.len() && bits * 4 > rows.len(), "{near} and {bits} of {}", rows.len());
    let nothing = CheckRequest { body: b"Nobody ever wrote this.", form: RequestForm::Text, charset: None, url: None };
    let verdict = checker.check(&index, nothing).unwrap();
    assert_eq!((verdict.action.as_str(), verdict.near.len(), verdict.exact), ("fetch", 0, None));
}

#[test]
fn page_is_not_a_copy_of_itself_and_its_keeper_is_kept() {
    let (run, index) = (test_data().run(), test_data().index());
    let pages = PageTable::from_run(&run).unwrap();
    let mut checker = Checker::new(&index);
    let kept_pages: BTreeSet<u64> = plain().avoid.values().map(|one| one.0).collect();
    let row = pages.row(*kept_pages.first().unwrap()).unwrap().unwrap();
    pages
        .read(&[row], &run.job().unwrap().input, &mut |_, page, _| {
            let url = webtwin::pages::url::CanonicalUrl::parse(&page.url).unwrap();
            let charset = page.charset.as_deref();
            let verdict = checker
                .check(&index, CheckRequest { body: &page.body, form: RequestForm::Html, charset, url: Some(&url) })
                .unwrap();
            assert_eq!(verdict.action.as_str(), "fetch", "{verdict:?}");
            Ok(())
        })
        .unwrap();
}

#[test]
fn index_has_the_same_bytes_with_any_threads_memory_and_chunk_table() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    write_crawl(&at("crawl"), 400, 3);
    let input = at("crawl");
    succeed(&["run", "--input", &input, "--output", &at("plain")]);
    succeed(&["run", "--input", &input, "--output", &at("table"), "--set", "output.fprint_docid=true"]);
    let build = |name: &str, run: &str, more: &[&str]| {
        succeed(&[&["index", &at(run), "--output", &at(name), "--chunks", "--simhashes", "5"][..], more].concat());
        files(&at(name))
    };
    let one = build("one", "plain", &["--workers", "1"]);
    assert!(one.keys().any(|name| name == "table-00.fptable") && one.contains_key("chunks"));
    assert!(build("three", "plain", &["--workers", "3"]) == one);
    assert!(build("tight", "plain", &["--workers", "2", "--memory", "1"]) == one);
    assert!(build("tabled", "table", &[]) == one);
    // Another index in the same folder, or a run, is not mistaken for the index.
    assert!(fail(&["index", &at("plain"), "--output", &at("one")], 4).contains("already"));
    assert!(fail(&["lookup", &at("plain")], 3).contains("not an index"));
    assert!(fail(&["index", &at("one"), "--output", &at("of-index")], 3).contains("this is an index of"));
}

#[test]
fn damage_anywhere_is_an_error_and_never_a_different_answer() {
    let folder = tempfile::tempdir().unwrap();
    let idx = folder.path().join("idx");
    let index = idx.to_str().unwrap();
    succeed(&["index", &test_data().at("run"), "--output", index]);
    let urls: String = plain().pages.values().map(|url| url.clone() + "\n").collect();
    let good = succeed_with(&["lookup", index], &urls);
    assert!(succeed_with(&["lookup", index, "--verify"], "").is_empty());
    let mut noticed = 0;
    for name in files(index).into_keys() {
        let path = idx.join(&name);
        let whole = std::fs::read(&path).unwrap();
        for at in [0, whole.len() / 2, whole.len() - 1] {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x40;
            std::fs::write(&path, &bytes).unwrap();
            let output = answer(&["lookup", index], &urls);
            let message = String::from_utf8(output.stdout.clone()).unwrap();
            // Lines before the error are complete and correct. Damage to a part that is not read is
            // not detected.
            assert!(good.starts_with(&message), "{name} at {at}");
            match output.status.code() {
                Some(0) => assert_eq!(message, good),
                Some(3) => noticed += 1,
                code => panic!("{name} at {at}: {code:?}: {}", stderr_text(&output)),
            }
            assert!(!answer(&["lookup", index, "--verify"], "").status.success(), "{name} at {at}");
        }
        std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        assert_eq!(webtwin(&["lookup", index]).output().unwrap().status.code(), Some(3), "{name}");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(webtwin(&["lookup", index]).output().unwrap().status.code(), Some(3), "{name}");
        std::fs::write(&path, &whole).unwrap();
    }
    assert!(noticed > 15, "{noticed}");
}

#[test]
fn copies_are_listed_by_nearness_or_recency() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let line = |n: usize| format!("<p>Line {n} says {} and nothing that any other line says.", n * 31);
    let text = |changed: usize| (0..40).map(|n| line(if n < changed { n + 1000 } else { n })).collect::<String>();
    let pages = [
        ("http://gone.example/a", text(0), "20250101000000"),
        ("http://near.example/a", text(1), "20250301000000"),
        ("http://same.example/a", text(0), "20250201000000"),
        ("http://gone.example/b", text(2), "20250401000000"),
    ];
    let row = |(url, html, time): &(&str, String, &str)| {
        serde_json::json!({ "url": url, "html": html, "timestamp": time }).to_string() + "\n"
    };
    std::fs::write(at("in.jsonl"), pages.iter().map(row).collect::<String>()).unwrap();
    succeed(&[
        "run",
        "--input",
        &at("in.jsonl"),
        "--output",
        &at("run"),
        "--set",
        "similar.guard=none",
        "--set",
        "hamming.k=20",
    ]);
    succeed(&["index", &at("run"), "--output", &at("idx")]);
    let copies = |more: &[&str]| -> Vec<String> {
        let message = succeed_with(
            &[&["lookup", &at("idx"), "--alternates"][..], more].concat(),
            "http://gone.example/a\nhttp://x.example/\n",
        );
        message.lines().map(|line| line.split_once('\t').unwrap().1.to_string()).collect()
    };
    assert_eq!(copies(&[])[0], "http://same.example/a");
    assert_eq!(copies(&[]).len(), 3);
    assert_eq!(copies(&["--newest"]), ["http://gone.example/b", "http://near.example/a", "http://same.example/a"]);
    assert_eq!(copies(&["--newest", "--elsewhere"]), ["http://near.example/a", "http://same.example/a"]);
    assert_eq!(copies(&["--limit", "1"]).len(), 1);
    let json =
        succeed_with(&["lookup", &at("idx"), "--alternates", "--json"], "http://gone.example/a\nhttp://x.example/\n");
    let arrays: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((arrays[0][0]["same_text"].as_bool(), arrays[1].as_array().unwrap().len()), (Some(true), 0));
}

#[test]
fn run_without_its_input_can_be_indexed_without_chunks() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let rows = (0..30).map(|n| {
        serde_json::json!({ "url": format!("http://a.example/{n}"), "html": format!("<p>page {n}") }).to_string() + "\n"
    });
    std::fs::write(at("in.jsonl"), rows.collect::<String>()).unwrap();
    succeed(&["run", "--input", &at("in.jsonl"), "--output", &at("run")]);
    std::fs::remove_file(at("in.jsonl")).unwrap();
    assert!(fail(&["index", &at("run"), "--output", &at("idx"), "--chunks"], 3).contains("in.jsonl"));
    assert!(!Path::new(&at("idx")).join("manifest.json").exists());
    assert_eq!(std::fs::read_dir(at("idx")).map_or(0, Iterator::count), 0);
    succeed(&["index", &at("run"), "--output", &at("idx")]);
}

#[test]
fn commands_for_results_name_those_for_an_index() {
    let (run, idx) = (test_data().at("run"), test_data().at("idx"));
    let table = format!("{idx}/pages");
    for arguments in [&["report", &idx][..], &["show", &idx], &["show", &idx, "pages"], &["show", &table]] {
        let message = fail(arguments, 3);
        assert!(message.contains("this is an index of") && message.contains(&run), "{message}");
        assert!(message.contains("`webtwin lookup`"), "{message}");
    }
}
