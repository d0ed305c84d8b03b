use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proptest::prelude::*;
use webtwin::clusters::growth::similar_clusters;
use webtwin::clusters::link_summary::{cluster_links, link_summary};
use webtwin::clusters::union_find::{UnionFind, sizes};
use webtwin::ids::{ClusterId, DocId, HostId, Page, doc_id};
use webtwin::job::Job;
use webtwin::results::FinishedRun;
use webtwin::storage::table::Table;

use crate::support::program::{assert_same_on_any_workers, fail, files, rows, stderr_text, succeed, webtwin};

/// A page of a made-up crawl.
#[derive(Debug, Clone)]
struct SyntheticPage {
    host: u8,
    path: u8,
    text: u8,
    /// Version of the sixth word; 0 leaves the original.
    change: u8,
    links: Vec<(u8, u8)>,
}

fn url(host: u8, path: u8) -> String {
    format!("http://h{host}.example/{path}")
}

/// Returns words that are unique to text `of`, one of them replaced according to `change`.
fn text(of: u8, change: u8) -> String {
    let word = |n: u8| if n == 5 && change > 0 { format!("changed{change}") } else { format!("word{of}x{n}") };
    (0..160).map(word).collect::<Vec<_>>().join(" ")
}

fn write_crawl(path: &str, pages: &[SyntheticPage]) {
    let line = |page: &SyntheticPage| {
        let links: String =
            page.links.iter().map(|&(host, path)| format!("<a href=\"{}\">x</a>", url(host, path))).collect();
        let html = format!("<html><title>t{}</title><p>{}{links}", page.text, text(page.text, page.change));
        serde_json::json!({ "url": url(page.host, page.path), "html": html, "fetch_time": 1_700_000_000 }).to_string()
            + "\n"
    };
    std::fs::write(path, pages.iter().map(line).collect::<String>()).unwrap();
}

/// Runs a crawl for each list of pages, and builds F from the results, which are named `old0`,
/// `old1` and so on.
fn earlier_crawls(folder: &Path, crawls: &[Vec<SyntheticPage>]) -> Vec<String> {
    let at = |name: String| folder.join(name).to_str().unwrap().to_string();
    let mut results = Vec::new();
    for (number, pages) in crawls.iter().enumerate() {
        let (input, output) = (at(format!("old{number}.jsonl")), at(format!("old{number}")));
        write_crawl(&input, pages);
        succeed(&["run", "--input", &input, "--output", &output, "--set", "input.max_bad=1"]);
        results.push(output);
    }
    // If several crawls have a page, F has a row for each, the newest first. Plain functions can
    // thus determine the row that applies.
    let from: Vec<&str> = results.iter().flat_map(|result| ["--from", result]).collect();
    succeed(&[&["hamming", "build", "--output", &at("f".into())], &from[..]].concat());
    results
}

/// Returns the arguments of a batch run.
fn batch(folder: &Path, results: &[String], more: &[&str]) -> Vec<String> {
    let at = |name: &str| folder.join(name).to_str().unwrap().to_string();
    let input = at("new.jsonl");
    let settings = [
        "kind=batch".to_string(),
        format!("batch.fingerprints={}", at("f")),
        format!("batch.results={}", serde_json::json!(results)),
    ];
    let mut arguments = vec!["run".to_string(), "--input".into(), input];
    for set in settings.iter().map(String::as_str).chain(more.iter().copied()) {
        arguments.extend(["--set".into(), set.into()]);
    }
    arguments
}

/// A page with its columns in the tables.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct PageRow {
    doc_id: DocId,
    host: String,
    exact: u64,
    simhash: Option<u64>,
}

fn pages(run: &FinishedRun) -> Vec<PageRow> {
    let table = run.table("pages").unwrap();
    let column = |name: &str| table.u64(name).unwrap();
    let simhashes = table.u64_where("simhash", "has_simhash").unwrap();
    let row = |row: usize| PageRow {
        doc_id: column("doc_id")[row],
        host: table.text("host").unwrap().get(row).unwrap().into(),
        exact: column("exact")[row],
        simhash: simhashes[row],
    };
    (0..table.rows()).map(row).collect()
}

fn columns<const N: usize>(table: &Table, names: [&str; N]) -> BTreeSet<[u64; N]> {
    let value = |name: &str, row: usize| {
        let column = &table.columns.iter().find(|column| column.0 == name).unwrap().1;
        table.u64(name).map_or_else(|_| column.json(row).as_u64().unwrap(), |column| column[row])
    };
    (0..table.rows()).map(|row| names.map(|name| value(name, row))).collect()
}

/// Expected result of a batch, by plain functions over all pages: its pages, pairs within `k` bits,
/// clusters of two pages and more, `LinkSummary`, and pages of collections with the numbers of
/// their similar clusters.
struct Expected {
    pages: BTreeSet<DocId>,
    pairs: BTreeSet<[u64; 3]>,
    clusters: BTreeSet<[u64; 2]>,
    link_summary: BTreeSet<[u64; 6]>,
    members: BTreeSet<[u64; 2]>,
}

/// Computes the expected result. `made` are the pages of the new crawl, which also link to pages of
/// earlier crawls; no table has these links.
fn expected(old: &[FinishedRun], new: &FinishedRun, made: &[SyntheticPage], k: u32, job: &Job) -> Expected {
    let of_q: BTreeMap<DocId, PageRow> = pages(new).into_iter().map(|page| (page.doc_id, page)).collect();
    let mut newest: BTreeMap<DocId, (PageRow, usize)> = BTreeMap::new();
    let mut pairs: BTreeMap<(DocId, DocId), u32> = BTreeMap::new();
    for (number, run) in old.iter().enumerate() {
        for page in pages(run) {
            newest.insert(page.doc_id, (page.clone(), number));
            for other in of_q.values().filter(|_| !of_q.contains_key(&page.doc_id)) {
                let (Some(x), Some(y)) = (page.simhash, other.simhash) else { continue };
                let distance = (x ^ y).count_ones();
                if distance <= k {
                    let pair = (page.doc_id.min(other.doc_id), page.doc_id.max(other.doc_id));
                    let least = pairs.entry(pair).or_insert(distance);
                    *least = distance.min(*least);
                }
            }
        }
    }
    let near: BTreeSet<DocId> =
        pairs.keys().flat_map(|pair| [pair.0, pair.1]).filter(|page| !of_q.contains_key(page)).collect();
    let mut web: BTreeMap<DocId, PageRow> = of_q.clone();
    web.extend(near.iter().map(|page| (*page, newest[page].0.clone())));
    let ids: Vec<DocId> = web.keys().copied().collect();
    let number = |page: &DocId| ids.binary_search(page).ok();

    let mut sets = UnionFind::new(ids.len());
    for (x, page) in web.values().enumerate() {
        web.values()
            .enumerate()
            .filter(|(_, other)| other.exact == page.exact)
            .for_each(|(y, _)| _ = sets.union(x as u32, y as u32));
    }
    for (x, y) in pairs.keys() {
        sets.union(number(x).unwrap() as u32, number(y).unwrap() as u32);
    }
    let labels: Vec<ClusterId> = sets.labels().into_iter().map(ClusterId).collect();
    let mut names: Vec<&String> = web.values().map(|page| &page.host).collect();
    names.sort_unstable();
    names.dedup();
    let hosts: Vec<HostId> =
        web.values().map(|page| HostId(names.binary_search(&&page.host).unwrap() as u32)).collect();
    let mut links = BTreeSet::new();
    for page in made {
        let src = doc_id(&url(page.host, page.path));
        links.extend(
            page.links.iter().map(|&(host, path)| (src, doc_id(&url(host, path)))).filter(|link| link.0 != link.1),
        );
    }
    for (result, run) in old.iter().enumerate() {
        for [src, dst] in columns(&run.table("links").unwrap(), ["src", "dst"]) {
            if near.contains(&src) && newest[&src].1 == result {
                links.insert((src, dst));
            }
        }
    }
    let links: Vec<(Page, Page)> =
        links.iter().filter_map(|(src, dst)| Some((Page(number(src)? as u32), Page(number(dst)? as u32)))).collect();

    let of_clusters = sizes(&labels);
    let mut between = cluster_links(&labels, &hosts, &links, job.clusters.single_site);
    let id = |cluster: ClusterId| ids[cluster.0 as usize];
    let summary = link_summary(&mut between, |cluster| of_clusters[cluster]);
    let mut members = BTreeSet::new();
    for similar in similar_clusters(&labels, &hosts, &links, &job.clusters) {
        let of_collections = similar.collections.iter().flat_map(|collection| &collection.members);
        let pages: Vec<Page> = of_collections.map(|member| member.1).collect();
        let smallest = pages.iter().map(|page| ids[page.0 as usize]).min().unwrap();
        members.extend(pages.iter().map(|page| [smallest, ids[page.0 as usize]]));
    }
    let in_clusters = (0..ids.len()).filter(|&page| of_clusters[labels[page]] > 1);
    Expected {
        pages: ids.iter().copied().collect(),
        pairs: pairs.iter().map(|(pair, distance)| [pair.0, pair.1, u64::from(*distance)]).collect(),
        clusters: in_clusters.map(|page| [id(labels[page]), ids[page]]).collect(),
        link_summary: summary
            .iter()
            .map(|row| {
                [id(row.src_cluster), id(row.dst_cluster), row.a.into(), row.b.into(), row.s.into(), row.d.into()]
            })
            .collect(),
        members,
    }
}

fn ids(set: BTreeSet<[u64; 1]>) -> BTreeSet<DocId> {
    set.into_iter().map(|[id]| id).collect()
}

fn crawl(hosts: std::ops::Range<u8>) -> impl Strategy<Value = Vec<SyntheticPage>> {
    let page = (0u8..12, 0u8..3, prop::collection::vec((hosts.clone(), 0u8..6), 0..5));
    prop::collection::btree_map((hosts, 0u8..6), page, 1..24).prop_map(|pages| {
        let make_page = |((host, path), (text, change, links))| SyntheticPage { host, path, text, change, links };
        pages.into_iter().map(make_page).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// Some pages are in several of the two earlier crawls and the new one. The result of a batch
    /// must equal that of plain functions over all pages.
    #[test]
    fn a_batch_equals_plain_functions_over_all_pages(
        old in [crawl(0..3), crawl(1..4)], new in crawl(2..6), k in 3u32..9, workers in 1usize..4, single_site: bool
    ) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
        let results = earlier_crawls(folder.path(), &old);
        write_crawl(&at("new.jsonl"), &new);
        succeed(&["run", "--input", &at("new.jsonl"), "--output", &at("alone"), "--set", "input.max_bad=1"]);
        let (k_set, site) = (format!("hamming.k={k}"), format!("clusters.single_site={single_site}"));
        let more = ["similar.guard=none", "clusters.merge=extended", "input.max_bad=1", &k_set, &site];
        let mut arguments = batch(folder.path(), &results, &more);
        arguments.extend(["--output".into(), at("batch"), "--workers".into(), workers.to_string()]);
        succeed(&arguments.iter().map(String::as_str).collect::<Vec<_>>());

        let runs: Vec<FinishedRun> = results.iter().map(|result| FinishedRun::open(result).unwrap()).collect();
        let result = FinishedRun::open(&at("batch")).unwrap();
        let want = expected(&runs, &FinishedRun::open(&at("alone")).unwrap(), &new, k, &result.job().unwrap());
        let table = |name: &str| result.table(name).unwrap();
        prop_assert_eq!(ids(columns(&table("pages"), ["doc_id"])), want.pages);
        let pairs = table("pairs");
        let measures = pairs.text("measure").unwrap();
        let by_simhash: Vec<usize> = (0..pairs.rows()).filter(|&row| measures.get(row) == Some("hamming")).collect();
        prop_assert_eq!(columns(&pairs.pick(&by_simhash), ["a", "b", "value"]), want.pairs);
        prop_assert_eq!(columns(&table("clusters"), ["cluster", "doc_id"]), want.clusters);
        let names = ["src_cluster", "dst_cluster", "a", "b", "s", "d"];
        prop_assert_eq!(columns(&table("link_summary"), names), want.link_summary);
        prop_assert_eq!(columns(&table("members"), ["similar_cluster", "doc_id"]), want.members);
        // Pages of earlier crawls stay, so the avoid list of the batch does not contain them.
        let of_q = ids(columns(&FinishedRun::open(&at("alone")).unwrap().table("pages").unwrap(), ["doc_id"]));
        prop_assert!(ids(columns(&table("avoid"), ["doc_id"])).is_subset(&of_q));
    }
}

/// Returns a manual of twelve pages on a host. Each page has its own text; the pages link in a ring
/// and to the first page.
fn manual(host: u8, change: u8) -> Vec<SyntheticPage> {
    let page =
        |path: u8| SyntheticPage { host, path, text: path, change, links: vec![(host, (path + 1) % 12), (host, 0)] };
    (0..12).map(page).collect()
}

#[test]
fn mirrors_of_earlier_crawls_may_be_skipped_with_report_and_explanations() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let own = |host: u8, from: u8| {
        (from..from + 8).map(move |text| SyntheticPage { host, path: text, text, change: 0, links: vec![(host, from)] })
    };
    let mut old = manual(1, 0);
    old.extend(own(2, 100));
    let results = earlier_crawls(folder.path(), &[old]);
    // The new crawl has a mirror of the manual in a slightly different version, and pages of its
    // own.
    let mut new = manual(3, 1);
    new.extend(own(4, 150));
    write_crawl(&at("new.jsonl"), &new);
    let arguments = batch(folder.path(), &results, &["hamming.k=10"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (output, message) = assert_same_on_any_workers(folder.path(), "batch", &arguments);
    assert!(message.contains("12 pages of earlier crawls are near pages of this one"), "{message}");
    assert!(message.contains("12 similar pairs by simhash, of which the guard `mutual-best` refused 0"), "{message}");

    let avoid = rows(&output, "avoid");
    assert_eq!(avoid.len(), 12, "{avoid:?}");
    for row in &avoid {
        let (url, keep) = (row["url"].as_str().unwrap(), row["keep_url"].as_str().unwrap());
        assert_eq!(url.replace("h3.example", "h1.example"), keep);
    }
    assert_eq!(std::fs::read_to_string(format!("{output}/exports/prefixes.txt")).unwrap().trim(), "http://h3.example/");
    let collections = rows(&output, "collections");
    assert_eq!(collections.len(), 2, "{collections:?}");
    let summary: serde_json::Value =
        serde_json::from_slice(&std::fs::read(format!("{output}/summary.json")).unwrap()).unwrap();
    let counts = &summary["batch"];
    assert_eq!(
        (&counts["documents"], &counts["queries"], &counts["earlier_pages"]),
        (&20.into(), &20.into(), &12.into())
    );
    assert_eq!((&counts["superseded"], &counts["unknown_pages"]), (&0.into(), &0.into()));
    assert_eq!(summary["records"]["kept"], 20);

    let explained = succeed(&["explain", &output, "http://h3.example/4", "http://h1.example/4"]);
    assert!(explained.contains("http://h1.example/4"), "{explained}");
    succeed(&["report", &output, "--output", &at("report.html")]);
    // A third crawl. The result of a batch can be an earlier result like any other, and the links
    // of the manual on the first host come from the first result.
    succeed(&["hamming", "build", "--from", &results[0], "--from", &output, "--output", &at("f2")]);
    write_crawl(&at("new.jsonl"), &manual(5, 2));
    let fingerprints = format!("batch.fingerprints={}", at("f2"));
    let results_setting = format!("batch.results={}", serde_json::json!([&results[0], &output]));
    let third = batch(folder.path(), &results, &["hamming.k=10", &fingerprints, &results_setting]);
    let third: Vec<&str> = third.iter().map(String::as_str).collect();
    succeed(&[&third[..], &["--output", &at("third")]].concat());
    assert_eq!((rows(&at("third"), "avoid").len(), rows(&at("third"), "collections").len()), (12, 3));

    // Another crawl of the same pages. Its own pages are not reported as new copies.
    write_crawl(&at("new.jsonl"), &manual(1, 0));
    let output = at("again");
    let again = [&arguments[..], &["--output", &output]].concat();
    let stderr_text = stderr_text(&webtwin(&again).output().unwrap());
    assert!(stderr_text.contains("\n0 pages of earlier crawls"), "{stderr_text}");
    assert!(rows(&output, "avoid").is_empty());
}

#[test]
fn invalid_batch_is_rejected_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let results = earlier_crawls(folder.path(), &[manual(1, 0)]);
    write_crawl(&at("new.jsonl"), &manual(3, 1));
    let refused = |more: &[&str], results: &[String], code: i32| {
        let arguments = batch(folder.path(), results, more);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        fail(&[&arguments[..], &["--output", &at("x")]].concat(), code)
    };
    assert!(refused(&["simhash.recipe=weighted"], &results, 2).contains("idf"));
    assert!(refused(&["simhash.recipe=phrases:2"], &results, 3).contains("simhash.recipe"));
    assert!(refused(&["similar.by=minhash"], &results, 2).contains("hamming, or left out"));
    assert!(refused(&[], &[], 2).contains("batch.results"));
    assert!(refused(&[], &[at("nothing")], 3).contains("nothing"));
    assert!(refused(&["batch.max_pairs=3", "hamming.k=10"], &results, 9).contains("batch.max_pairs"));
    // A result without the pages of F is not an error. The missing pages are counted.
    let elsewhere = tempfile::tempdir().unwrap();
    let other = earlier_crawls(elsewhere.path(), &[manual(7, 0)]);
    let arguments = batch(folder.path(), &other, &["hamming.k=10"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).chain(["--output"]).collect();
    succeed(&[&arguments[..], &[&at("unknown")]].concat());
    let summary: serde_json::Value =
        serde_json::from_slice(&std::fs::read(at("unknown/summary.json")).unwrap()).unwrap();
    assert_eq!((&summary["batch"]["unknown_pages"], &summary["batch"]["earlier_pages"]), (&12.into(), &0.into()));
    assert!(files(&at("unknown")).contains_key("summary.json"));
}
