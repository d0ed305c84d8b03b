//! A report has the contents of the tables, whatever text the pages have.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::support::program::{assert_same_on_any_workers, fail, rows, succeed};
use crate::support::report::{report, tile};

fn at(folder: &tempfile::TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_string()
}

fn page(run: &str) -> String {
    succeed(&["report", run, "--output", "-", "--no-run-facts"])
}

fn sum<'r>(rows: impl IntoIterator<Item = &'r Value>, column: &str) -> u64 {
    rows.into_iter().map(|row| row[column].as_u64().unwrap()).sum()
}

/// Returns rows by the text of the column `key`.
fn by<'r>(rows: &'r [Value], key: &str) -> BTreeMap<&'r str, &'r Value> {
    rows.iter().map(|row| (row[key].as_str().unwrap(), row)).collect()
}

/// Returns the connected components of a graph of pages: for each page the smallest name of its
/// component.
fn parts<'p>(links: &[(&'p str, &'p str)]) -> BTreeMap<&'p str, &'p str> {
    let mut part: BTreeMap<&str, &str> = links.iter().flat_map(|&(a, b)| [(a, a), (b, b)]).collect();
    while let Some(&(a, b)) = links.iter().find(|(a, b)| part[a] != part[b]) {
        let (small, large) = (part[a].min(part[b]), part[a].max(part[b]));
        part.values_mut().filter(|of| **of == large).for_each(|of| *of = small);
    }
    part
}

#[test]
fn every_figure_is_a_plain_sum_over_the_tables() {
    let folder = tempfile::tempdir().unwrap();
    let run = at(&folder, "out");
    succeed(&["run", "--input", "synth://?pages=1200&seed=5", "--output", &run]);
    let report_json = report(&run, &[]);
    let (pages, avoid, clusters) = (rows(&run, "pages"), rows(&run, "avoid"), rows(&run, "clusters"));
    let (collections, members, pairs) = (rows(&run, "collections"), rows(&run, "members"), rows(&run, "pairs"));
    let page = by(&pages, "doc_id");
    let skipped: BTreeSet<&str> = avoid.iter().map(|row| row["doc_id"].as_str().unwrap()).collect();

    let overview = &report_json["overview"];
    assert_eq!(overview["crawl"]["pages"], pages.len());
    assert_eq!(overview["crawl"]["bytes"], sum(&pages, "body_bytes"));
    assert_eq!(overview["skip"]["pages"], avoid.len());
    assert_eq!(overview["skip"]["bytes"], sum(skipped.iter().map(|id| page[id]), "body_bytes"));
    for why in ["exact", "collection", "similar"] {
        let of_reason = avoid.iter().filter(|row| row["why"] == why).count();
        assert_eq!(overview["by_reason"][why]["pages"].as_u64().unwrap_or(0), of_reason as u64, "{why}");
    }
    let hosts = rows(&run, "hosts");
    assert_eq!(overview["hosts"], hosts.len());
    assert_eq!(overview["links"], rows(&run, "links").len());
    assert_eq!(overview["collections"], collections.len());
    assert_eq!(overview["pages_in_collections"], members.len());
    let sets: BTreeSet<&str> = clusters.iter().map(|row| row["cluster"].as_str().unwrap()).collect();
    assert_eq!(
        (&report_json["sets"]["all"], &report_json["sets"]["looked_at"]),
        (&sets.len().into(), &sets.len().into())
    );
    assert_eq!(report_json["sets"]["pairs"]["exact"], pairs.iter().filter(|row| row["measure"] == "exact").count());
    for exact in [true, false] {
        let bars = overview["replication"].as_array().unwrap();
        assert_eq!(sum(bars, if exact { "exact" } else { "similar" }), pages.len() as u64);
    }

    assert!(!collections.is_empty() && report_json["mirrors"]["shown"].as_array().unwrap().len() > 1);
    for mirror in report_json["mirrors"]["shown"].as_array().unwrap() {
        let of_mirror: Vec<&Value> = collections.iter().filter(|row| row["similar_cluster"] == mirror["id"]).collect();
        let kept_row = of_mirror.iter().find(|row| row["keep"] == true).unwrap();
        assert_eq!(mirror["copies"], of_mirror.len());
        assert_eq!(mirror["pages"], sum(of_mirror.iter().copied(), "size"));
        assert_eq!(mirror["surplus"], sum(of_mirror.iter().copied(), "size") - kept_row["size"].as_u64().unwrap());
        assert_eq!(mirror["largest"], of_mirror.iter().map(|row| row["size"].as_u64().unwrap()).max().unwrap());
        assert_eq!((&mirror["url"], &mirror["shown"][0]["keep"]), (&kept_row["root_url"], &true.into()));
        assert_eq!(mirror["title"], page[kept_row["root"].as_str().unwrap()]["title"]);
        assert_eq!(mirror["shown"][0]["links_from_elsewhere"], kept_row["links_from_elsewhere"]);
        let on: BTreeSet<&str> = of_mirror.iter().map(|row| row["host"].as_str().unwrap()).collect();
        assert_eq!(mirror["hosts"], on.len());
        let of_members = members.iter().filter(|row| row["similar_cluster"] == mirror["id"]);
        let of_members = of_members.map(|row| row["doc_id"].as_str().unwrap()).filter(|id| skipped.contains(id));
        let to_skip: Vec<&Value> = of_members.map(|id| page[id]).collect();
        assert_eq!(mirror["skip"]["pages"], to_skip.len());
        assert_eq!(mirror["skip"]["bytes"], sum(to_skip, "body_bytes"));
    }

    let of_host = by(&hosts, "host");
    for host in report_json["hosts"]["shown"].as_array().unwrap() {
        let row = of_host[host["host"].as_str().unwrap()];
        assert_eq!([&host["crawl"]["pages"], &host["crawl"]["bytes"]], [&row["pages"], &row["body_bytes"]]);
        assert_eq!([&host["skip"]["pages"], &host["skip"]["bytes"]], [&row["skip_pages"], &row["skip_bytes"]]);
    }
    let server_pairs = rows(&run, "server_pairs");
    assert_eq!(
        report_json["hosts"]["pairs"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum::<u64>(),
        server_pairs.len() as u64
    );
    let max_shared = server_pairs.iter().map(|row| row["shared"].as_u64().unwrap()).max();
    assert_eq!(report_json["hosts"]["shown_pairs"][0]["shared"].as_u64(), max_shared);

    let run_facts = &report_json["run"];
    assert_eq!(run_facts["kept"], pages.len());
    assert_eq!(run_facts["tables"]["members"], members.len());
    for set in report_json["sets"]["shown"].as_array().unwrap() {
        let of_set = clusters.iter().filter(|row| row["cluster"] == set["id"]);
        let roles: BTreeMap<&str, &Value> = of_set.map(|row| (row["doc_id"].as_str().unwrap(), &row["role"])).collect();
        assert_eq!(set["pages"], roles.len());
        for member in set["members"].as_array().unwrap() {
            let id = member["id"].as_str().unwrap();
            assert_eq!((roles[id], &page[id]["url"]), (&member["role"], &member["url"]));
            assert_eq!((&page[id]["title"], &page[id]["text_bytes"]), (&member["title"], &member["text_bytes"]));
        }
    }
}

#[test]
fn below_the_weakest_link_of_a_set_it_falls_apart() {
    let folder = tempfile::tempdir().unwrap();
    let run = at(&folder, "out");
    succeed(&["run", "--input", "synth://?pages=600&seed=2", "--output", &run]);
    let pairs = rows(&run, "pairs");
    let strength = |row: &Value| match row["measure"].as_str().unwrap() {
        "exact" => u64::MAX,
        _ => row["value"].as_u64().unwrap(),
    };
    let cluster_of: BTreeMap<String, String> = rows(&run, "clusters")
        .iter()
        .map(|row| (row["doc_id"].as_str().unwrap().into(), row["cluster"].as_str().unwrap().into()))
        .collect();
    let mut weakest = Vec::new();
    let sets: BTreeSet<&String> = cluster_of.values().collect();
    for &set in &sets {
        let of_set: Vec<(u64, (&str, &str))> = pairs
            .iter()
            .map(|row| (strength(row), (row["a"].as_str().unwrap(), row["b"].as_str().unwrap())))
            .filter(|pair| cluster_of[pair.1.0] == *set)
            .collect();
        let pages = cluster_of.values().filter(|of| *of == set).count();
        // True if the pairs of at least this strength connect the whole set.
        let holds = |least: u64| {
            let links: Vec<(&str, &str)> = of_set.iter().filter(|pair| pair.0 >= least).map(|pair| pair.1).collect();
            let parts = parts(&links);
            parts.len() == pages && parts.values().collect::<BTreeSet<_>>().len() == 1
        };
        let strengths: BTreeSet<u64> = of_set.iter().map(|pair| pair.0).collect();
        let at = *strengths.iter().rev().find(|least| holds(**least)).unwrap();
        if at < u64::MAX {
            weakest.push(at);
        }
    }
    weakest.sort_unstable();
    let report_json = report(&run, &[]);
    let shown = report_json["sets"]["shown"].as_array().unwrap();
    let shown = &shown[..report_json["sets"]["weakest"].as_u64().unwrap() as usize];
    let weakest_shown: Vec<u64> = shown.iter().map(|set| set["links"][0]["by"]["value"].as_u64().unwrap()).collect();
    assert!(weakest_shown.len() > 5, "{weakest_shown:?}");
    assert_eq!(weakest_shown, weakest[..weakest_shown.len()]);
}

#[test]
fn equal_tables_yield_equal_reports_on_any_workers() {
    let folder = tempfile::tempdir().unwrap();
    let run = ["run", "--input", "synth://?pages=300&seed=4"];
    let (first, _) = assert_same_on_any_workers(folder.path(), "out", &run);
    let one = page(&first);
    for workers in ["2", "3"] {
        assert_eq!(page(&at(&folder, &format!("out-{workers}"))), one);
    }
    let json = |options: &[&str]| report(&first, options)["run"]["machine"].clone();
    assert_eq!(json(&["--no-run-facts"]), Value::Null);
    assert_eq!(json(&[])["workers"], 1);
}

/// Writes an HTML page with its title and some lines of text.
fn html(path: &Path, title: &str, lines: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text: String =
        lines.split(',').map(|line| format!("<p>{line} is a line of some length that stands here</p>")).collect();
    std::fs::write(path, format!("<meta charset=utf-8><title>{title}</title>{text}")).unwrap();
}

#[test]
fn content_of_pages_changes_only_text() {
    let folder = tempfile::tempdir().unwrap();
    let titles = [
        "a plain one",
        "&lt;/script>&lt;img src=x onerror=alert(1)>",
        "\u{202e}\u{2028}\u{2029}\" onload=\"x",
        &"long ".repeat(2000),
    ];
    let mut shapes = Vec::new();
    for (number, title) in titles.into_iter().enumerate() {
        for host in ["a.example", "b.example"] {
            html(&folder.path().join(format!("crawl-{number}/{host}/x.html")), title, "one,two,three,four");
        }
        let run = at(&folder, &format!("out-{number}"));
        succeed(&["run", "--input", &at(&folder, &format!("crawl-{number}")), "--output", &run]);
        let page = page(&run);
        // The elements of the page without attributes and text.
        let tags: Vec<&str> = page.split('<').skip(1).map(|tag| tag.split([' ', '>']).next().unwrap()).collect();
        assert!(!page.contains("<img") && page.matches("<script").count() == 1, "{title}");
        assert!(page.len() < 120_000, "{} bytes", page.len());
        shapes.push(tags.join(" "));
    }
    assert!(shapes.iter().all(|shape| *shape == shapes[0]));
}

#[test]
fn pages_kept_for_their_language_are_in_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let shared: String =
        (0..30).map(|n| format!("<p>alpha{n} beta{n} gamma{n} delta{n} epsilon{n} zeta{n}</p>")).collect();
    let english = "The quick brown fox runs over the lazy dog and then it goes to the river with its friends";
    let french = "Le renard brun saute par dessus le chien paresseux et puis il court vers la rivière avec ses amis";
    for (host, line) in [("en.example", english), ("fr.example", french), ("x.example", english)] {
        let own: String = (0..25).map(|n| format!("<p>{line} {n}</p>")).collect();
        let path = folder.path().join(format!("crawl/{host}/a.html"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("<meta charset=utf-8><title>T</title>{shared}{own}")).unwrap();
    }
    let run = at(&folder, "out");
    succeed(&["run", "--input", &at(&folder, "crawl"), "--output", &run]);
    let roles = crate::support::program::rows(&run, "clusters");
    assert!(roles.iter().any(|row| row["role"] == "language"), "{roles:?}");
    assert!(page(&run).contains("stays: another language"));
}

#[test]
fn crawl_without_pages_or_copies_has_a_report() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(at(&folder, "none.warc"), "").unwrap();
    html(&folder.path().join("one/a.example/x.html"), "alone", "one,two,three");
    for (input, run, headline) in
        [("none.warc", "empty", "This crawl has no pages"), ("one", "alone", "Every page of this crawl")]
    {
        let run = at(&folder, run);
        succeed(&["run", "--input", &at(&folder, input), "--output", &run]);
        let page = page(&run);
        assert!(page.contains(headline), "{page}");
        assert!(
            page.contains("No two pages of this crawl are similar")
                && page.contains("No collection of this crawl has a mirror")
        );
    }
}

#[test]
fn a_large_set_is_shown_by_its_weakest_links() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..400 {
        html(
            &folder.path().join(format!("crawl/a.example/{number}.html")),
            &format!("page {number}"),
            "one,two,three,four",
        );
    }
    let run = at(&folder, "out");
    succeed(&[
        "run",
        "--input",
        &at(&folder, "crawl"),
        "--output",
        &run,
        "--set",
        "overlap.template_pages=0",
        "--set",
        "overlap.max_documents=0",
    ]);
    let report_json = report(&run, &["--pairs", "0"]);
    let set = &report_json["sets"]["shown"][0];
    assert_eq!(set["pages"], 400);
    assert!(set["members"].as_array().unwrap().len() < 50 && set["links"].as_array().unwrap().len() < 50);
    assert!(page(&run).len() < 150_000);
}

#[test]
fn report_is_shown_without_readable_pages() {
    let folder = tempfile::tempdir().unwrap();
    for (host, last) in [("a.example", "four"), ("b.example", "five")] {
        html(&folder.path().join(format!("crawl/{host}/x.html")), "a title", &format!("one,two,three,{last}"));
    }
    let run = at(&folder, "out");
    succeed(&["run", "--input", &at(&folder, "crawl"), "--output", &run]);
    let compared = report(&run, &[])["compare"]["shown"][0].clone();
    assert_eq!(
        (&compared["together"], &compared["same_text"], &compared["unread"]),
        (&true.into(), &false.into(), &"".into())
    );
    assert!(compared["diff"].to_string().contains("five"));
    std::fs::remove_dir_all(folder.path().join("crawl")).unwrap();
    let compared = report(&run, &[])["compare"]["shown"][0].clone();
    assert_eq!(compared["diff"], serde_json::json!([]));
    assert_ne!(compared["unread"], "");
    assert!(page(&run).contains("could not be read again"));
}

#[test]
fn only_a_finished_run_over_pages_has_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let stderr_text = fail(&["report", &at(&folder, "nothing"), "--output", "-"], 3);
    let is_folder = folder.path().to_str().unwrap();
    assert!(fail(&["report", &at(&folder, "nothing"), "--output", is_folder], 2).contains("/report.html"));
    assert!(stderr_text.contains("not a result"), "{stderr_text}");
    let run = at(&folder, "out");
    let message = crate::support::program::webtwin(&["run", "--input", "synth://?pages=300&seed=1", "--output", &run])
        .output()
        .unwrap();
    assert!(crate::support::program::stderr_text(&message).contains(&format!("next: webtwin report {run}")));
    let file = at(&folder, "made.html");
    succeed(&["report", &run, "--output", &file]);
    succeed(&["report", &run, "--output", &file]);
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("<!doctype html>"));
}

/// Returns the bars of a chart by their labels.
fn bars(part: &Value, heading: &str) -> BTreeMap<String, u64> {
    let chart = part["charts"].as_array().unwrap().iter().find(|chart| chart["heading"] == heading);
    let bars = chart.unwrap_or_else(|| panic!("{heading}: {part}"))["bars"].as_array().unwrap().clone();
    bars.iter().map(|bar| (bar["what"].as_str().unwrap().into(), bar["count"].as_u64().unwrap())).collect()
}

#[test]
fn reports_of_a_study_and_a_fingerprint_join_equal_their_tables() {
    let folder = tempfile::tempdir().unwrap();
    let study = at(&folder, "study");
    succeed(&["run", "--input", "synth://?pages=300&seed=3", "--output", &study, "--set", "preset=study"]);
    let part = report(&study, &[])["parts"][0].clone();
    let duplicates = rows(&study, "duplicates");
    let of_role = |role: &str| duplicates.iter().filter(|row| row["role"] == role).count();
    assert!(of_role("duplicate") > 0);
    assert_eq!(tile(&part, "documents"), duplicates.len().to_string());
    assert_eq!(tile(&part, "duplicates"), of_role("duplicate").to_string());
    assert_eq!(tile(&part, "unique documents"), of_role("unique").to_string());
    assert_eq!(bars(&part, "Clusters by size").values().sum::<u64>(), of_role("original") as u64);
    let mut sizes: BTreeMap<&str, u64> = BTreeMap::new();
    let clustered = duplicates.iter().filter(|row| row["role"] != "unique");
    clustered.for_each(|row| *sizes.entry(row["cluster"].as_str().unwrap()).or_default() += 1);
    let largest = part["tables"].as_array().unwrap().iter().find(|table| table["table"] == "duplicates").unwrap();
    assert_eq!(
        (largest["all"].as_u64(), largest["rows"][0][1].as_u64()),
        (Some(sizes.len() as u64), sizes.values().max().copied())
    );
    assert!(page(&study).contains("of the documents are duplicates"));

    let (text, set, near) = (at(&folder, "x.txt"), at(&folder, "f"), at(&folder, "near"));
    std::fs::write(&text, "00000000000000ff 10\n00000000000000fe 12\n00000000000f00ff 13\nffffffffffffffff 14\n")
        .unwrap();
    succeed(&["hamming", "build", "--from", &text, "--output", &set]);
    let fingerprints = format!("batch.fingerprints={set}");
    succeed(&["run", "--set", "kind=hamming", "--set", &fingerprints, "--set", "hamming.k=4", "--output", &near]);
    let part = report(&near, &[])["parts"][0].clone();
    assert_eq!(part["headline"], "2 pairs of documents are within 4 bits");
    assert_eq!(bars(&part, "Pairs by distance"), BTreeMap::from([("1 bit".into(), 1), ("4 bits".into(), 1)]));
    assert_eq!(part["tables"][0]["rows"], serde_json::json!([["10", "12", 1], ["10", "13", 4]]));
    assert!(page(&near).contains("Nearest pairs"));
    assert!(fail(&["report", &near, "--against", &study, "--output", "-"], 2).contains("--against"));
}

#[test]
fn comparison_is_a_report_and_a_view_of_the_newer_run() {
    let folder = tempfile::tempdir().unwrap();
    let [may, june, diff] = ["may", "june", "diff"].map(|name| at(&folder, name));
    for (run, pages) in [(&may, 300), (&june, 350)] {
        succeed(&["run", "--input", &format!("synth://?pages={pages}&seed=1"), "--output", run]);
    }
    succeed(&["diff", &may, &june, "--output", &diff]);
    let report_json = report(&diff, &["--no-run-facts"]);
    let part = &report_json["parts"][0];
    let pages = bars(part, "Pages");
    let changed = rows(&diff, "pages_changed");
    let count_of = |what: &str| changed.iter().filter(|row| row["what"] == what).count() as u64;
    assert!(count_of("gone") > 0 && count_of("new") > 0);
    assert_eq!(
        [pages["gone"], pages["new"], pages["moved here"]],
        [count_of("gone"), count_of("new"), count_of("moved_to")]
    );
    assert_eq!(report_json["inputs"], serde_json::json!([may, june]));
    let sites = part["tables"].as_array().unwrap().iter().find(|table| table["table"] == "hosts_changed").unwrap();
    assert_eq!(sites["all"], rows(&diff, "hosts_changed").len());
    assert!(page(&diff).contains("have the same text as before"));

    // The view is also part of the report of the newer run, but of no other report.
    assert_eq!(report(&june, &["--against", &diff])["parts"], report_json["parts"]);
    assert_eq!(report(&june, &[])["parts"], Value::Null);
    assert!(fail(&["report", &may, "--against", &diff, "--output", "-"], 2).contains("not"));
    assert!(fail(&["report", &june, "--against", &may, "--output", "-"], 2).contains("webtwin diff"));
}
