use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::support::program::{fail, files, rows, succeed};

/// A manual of eight pages that link in a ring: its site and its version. Each version changes two
/// of the twelve lines of each page. On site x the first page links to all others, and the last two
/// have other texts after the first week. On site y the third page has another text in the first
/// week.
type Shown<'a> = (&'a str, u32);

/// Writes a crawl of sites with the manual, and of a home site that links to site a and has a
/// notice, which differs in the second week. Runs over the crawl and returns the result.
fn run(folder: &Path, week: u32, shown: &[Shown<'_>]) -> String {
    run_over(folder, week, shown, |_, _| true)
}

/// Runs over the pages of the crawl of [`run`] that were fetched, and returns the result.
/// `is_fetched` selects pages by site and number.
fn run_over(folder: &Path, week: u32, shown: &[Shown<'_>], is_fetched: impl Fn(&str, u32) -> bool) -> String {
    let time = 1_700_000_000 + i64::from(week) * 7 * 86_400;
    let mut lines = String::new();
    let mut page = |url: String, html: String| {
        let line = serde_json::json!({ "url": url, "html": html, "fetch_time": time });
        lines.push_str(&format!("{line}\n"));
    };
    for (site, version) in shown {
        for number in (0..8).filter(|&number| is_fetched(site, number)) {
            let is_own = *site == "x" && number > 5 && week > 0 || *site == "y" && number == 2 && week == 0;
            let reports = if is_own { number + 50 } else { number };
            let changed_in = |line: u32| if line / 2 < *version { line / 2 + 1 } else { 0 };
            let text: String = (0..12)
                .map(|line| {
                    format!("<p>Page {reports} says {line} about {} since {}", reports * 100 + line, changed_in(line))
                })
                .collect();
            let next = (number + 1) % 8;
            let to = if *site == "x" && number == 0 { 1..8 } else { next..next + 1 };
            let link: String = to.map(|to| format!("<p><a href='{to}.html'>next</a>")).collect();
            page(format!("http://{site}.example/manual/{number}.html"), format!("<html>{text}{link}"));
        }
    }
    page("http://home.example/".into(), "<a href='http://a.example/manual/0.html'>the manual</a>".into());
    page("http://home.example/notice".into(), format!("<p>All doors are {}.", if week == 1 { "shut" } else { "open" }));
    let input = folder.join(format!("week-{week}.jsonl"));
    std::fs::write(&input, lines).unwrap();
    let output = folder.join(format!("run-{week}")).to_str().unwrap().to_string();
    succeed(&["run", "--input", input.to_str().unwrap(), "--output", &output, "--workers", "1"]);
    output
}

/// Runs over four weeks and returns the results. b is updated at once; c is a version behind until
/// it catches up; one of d and e moves to g and the other disappears; f is added.
fn weeks(folder: &Path) -> [String; 4] {
    [
        &[("a", 1), ("b", 1), ("c", 1), ("d", 1), ("e", 1)][..],
        &[("a", 2), ("b", 2), ("c", 1), ("d", 2), ("e", 2), ("f", 2)],
        &[("a", 3), ("b", 3), ("c", 3), ("g", 3), ("f", 3)],
        &[("a", 3), ("b", 3), ("c", 3), ("g", 3), ("f", 3)],
    ]
    .into_iter()
    .enumerate()
    .map(|(week, shown)| run(folder, week as u32, shown))
    .collect::<Vec<_>>()
    .try_into()
    .unwrap()
}

/// Returns the outcome for each site's manual, and the number of crawls that it is behind.
fn report(diff: &str) -> BTreeMap<String, (String, u64)> {
    let site = |row: &Value| row["prefix"].as_str().unwrap()[7..8].to_string();
    let word = |row: &Value| (row["what"].as_str().unwrap().to_string(), row["lag_crawls"].as_u64().unwrap());
    rows(diff, "mirrors_changed").iter().map(|row| (site(row), word(row))).collect()
}

fn expect(of: &[(&str, &str, u64)]) -> BTreeMap<String, (String, u64)> {
    of.iter().map(|(site, what, lag)| (site.to_string(), (what.to_string(), *lag))).collect()
}

#[test]
fn outcome_and_lag_of_each_mirror_are_reported_week_by_week() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second, third, fourth] = &weeks(folder.path());
    let out = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (one, two, three) = (out("d1"), out("d2"), out("d3"));
    succeed(&["diff", first, second, "--output", &one]);
    let lives = |site| (site, "lives", 0);
    assert_eq!(
        report(&one),
        expect(&[lives("a"), lives("b"), ("c", "lives", 1), lives("d"), lives("e"), ("f", "born", 0)])
    );
    succeed(&["diff", second, third, "--history", &one, "--output", &two]);
    // d and e were equal, so either may have moved. The smaller id decides.
    let moved = [lives("a"), lives("b"), ("c", "caught_up", 0), ("g", "moved", 0), ("d", "missing", 0), lives("f")];
    assert_eq!(report(&two), expect(&moved));
    succeed(&["diff", third, fourth, "--history", &two, "--output", &three]);
    let died = [lives("a"), lives("b"), lives("c"), lives("g"), ("d", "died", 0), lives("f")];
    assert_eq!(report(&three), expect(&died));
    let of_c = rows(&two, "mirrors_changed").into_iter().find(|row| row["what"] == "caught_up").unwrap();
    assert_eq!((of_c["same_text"].as_u64(), of_c["changed"].as_u64()), (Some(0), Some(8)));
    let lag = rows(&one, "mirrors_changed").into_iter().find(|row| row["lag_crawls"] == 1).unwrap();
    assert_eq!((lag["lag_days"].as_f64(), lag["lag_share"].as_f64()), (Some(7.0), Some(1.0)));

    // The notice of the second week is reverted.
    let reverted = |diff: &str| -> Vec<(String, u64)> {
        let rows = rows(diff, "pages_changed").into_iter().filter(|row| row["what"] == "reverted");
        rows.map(|row| (row["url"].as_str().unwrap().into(), row["reverted_crawls"].as_u64().unwrap())).collect()
    };
    assert_eq!(reverted(&two), [("http://home.example/notice".to_string(), 2)]);
    assert_eq!((reverted(&one), reverted(&three)), (vec![], vec![]));
    let texts = |diff: &str| rows(diff, "texts_before").len();
    assert!(texts(&one) > 0 && texts(&two) > texts(&one));

    // One comparison of all results yields the same report with any number of threads. A comparison
    // whose history already has later crawls does, too.
    for (name, workers) in [("w1", "1"), ("w2", "2"), ("w3", "3")] {
        let output = out(name);
        succeed(&["diff", first, second, third, fourth, "--output", &output, "--workers", workers]);
        for table in
            ["mirrors_changed", "similar_clusters_changed", "change_rates", "revisit", "pages_changed", "texts_before"]
        {
            assert_eq!(rows(&output, table), rows(&three, table), "{table} at {workers}");
        }
        assert_eq!(files(Path::new(&output))["history"], files(Path::new(&three))["history"]);
    }
    let repeated = out("again");
    succeed(&["diff", second, third, "--history", &three, "--output", &repeated]);
    assert_eq!(files(Path::new(&repeated))["history"], files(Path::new(&two))["history"]);
    for table in ["mirrors_changed", "pages_changed", "texts_before"] {
        assert_eq!(rows(&repeated, table), rows(&two, table), "{table}");
    }

    // A history of other crawls is refused, and so is a result without a history.
    let message = fail(&["diff", third, fourth, "--history", &one, "--output", &out("x")], 2);
    assert!(message.contains("name the history of the older result"), "{message}");
    let message = fail(&["diff", third, fourth, "--history", first, "--output", &out("x")], 2);
    assert!(message.contains("has no history"), "{message}");
}

#[test]
fn deliberately_skipped_mirror_is_not_missing_and_its_pages_are_listed_for_a_visit() {
    let folder = tempfile::tempdir().unwrap();
    let first = run(folder.path(), 0, &[("a", 1), ("b", 1), ("c", 1)]);
    // The crawler obeyed the list: one mirror stays, and the others were not fetched.
    let second = run(folder.path(), 1, &[("a", 2)]);
    let out = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    succeed(&["diff", &first, &second, "--output", &out("plain")]);
    let plain = report(&out("plain"));
    assert_eq!((plain["b"].0.as_str(), plain["c"].0.as_str()), ("missing", "missing"));
    let avoided = ["--set", "recrawl.avoided=yes"];
    succeed(&[&["diff", &first, &second, "--output", &out("obeyed")][..], &avoided].concat());
    let lives = |site: &'static str, lag| (site, "lives", lag);
    // The lag of sites that were not fetched is unknown.
    assert_eq!(report(&out("obeyed")), expect(&[lives("a", 0), lives("b", 0), lives("c", 0)]));
    let known = rows(&out("obeyed"), "mirrors_changed").iter().filter(|row| row["has_lag"] == true).count();
    assert_eq!(known, 1);
    let third = run(folder.path(), 2, &[("a", 2)]);
    let history = ["--history", &out("obeyed")];
    let output = out("again");
    succeed(&[&["diff", &second, &third, "--output", &output][..], &avoided, &history].concat());
    let revisit = rows(&output, "revisit");
    assert_eq!(revisit.len(), 2);
    for row in &revisit {
        assert_eq!(
            (row["why"].as_str(), row["age"].as_u64(), row["probes"].as_u64()),
            (Some("unseen"), Some(3), Some(8))
        );
        let site = row["host"].as_str().unwrap();
        let urls: Vec<&str> = row["probe_urls"].as_str().unwrap().split(' ').collect();
        assert!(urls.iter().all(|url| url.starts_with(&format!("http://{site}/manual/"))), "{urls:?}");
    }
    // With a smaller probe share, each crawl has different probes.
    let fourth = run(folder.path(), 3, &[("a", 2)]);
    let few_probes = ["--probe-share", "0.5"];
    let fewer = |old: &str, new: &str, history: &str, name: &str| -> Vec<String> {
        let args = ["diff", old, new, "--history", history, "--output", &out(name)];
        succeed(&[&args[..], &avoided, &few_probes].concat());
        let probes = |row: &Value| row["probe_urls"].as_str().unwrap().split(' ').map(String::from).collect::<Vec<_>>();
        let urls: Vec<String> = rows(&out(name), "revisit").iter().flat_map(probes).collect();
        assert_eq!(urls.len(), 2 * 5);
        urls
    };
    let of_third = fewer(&second, &third, &out("obeyed"), "fewer");
    assert_ne!(of_third, fewer(&third, &fourth, &out("fewer"), "fewer-again"));
    // A comparison of several results uses the lists of all of them.
    let args = ["diff", &first, &second, &third, &fourth, "--output", &out("at-once")];
    succeed(&[&args[..], &avoided, &few_probes].concat());
    assert_eq!(rows(&out("at-once"), "revisit"), rows(&out("fewer-again"), "revisit"));
    // A mirror that was not fetched has not lived over any interval.
    assert_eq!(revisit.iter().map(|row| row["intervals"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 0]);
    // The budget suffices for one mirror.
    let output = out("budget");
    succeed(&[&["diff", &second, &third, "--output", &output, "--budget", "10"][..], &avoided, &history].concat());
    let within = rows(&output, "revisit").iter().filter(|row| row["within_budget"] == true).count();
    let lists = files(Path::new(&output));
    let lines =
        |name: &str| String::from_utf8(lists[name].clone()).unwrap().lines().map(String::from).collect::<Vec<_>>();
    assert_eq!((within, lines("exports/revisit.txt").len()), (1, 8));
    assert!(lines("exports/revisit-nutch.txt")[0].contains("\tnutch.score="));
    let seed: Value = serde_json::from_str(&lines("exports/revisit-scrapy.jsonl")[0]).unwrap();
    assert_eq!(seed["url"], lines("exports/revisit.txt")[0]);
}

#[test]
fn captures_copied_from_the_previous_crawl_are_not_visits() {
    let folder = tempfile::tempdir().unwrap();
    let whole = [("a", 1), ("b", 1), ("c", 1)];
    let first = run(folder.path(), 0, &whole);
    // The crawl of the second week has fetched site c and the home site. The other captures are
    // those of the first week.
    run(folder.path(), 1, &[("c", 1)]);
    let lines_of_week = |week: u32| std::fs::read_to_string(folder.path().join(format!("week-{week}.jsonl"))).unwrap();
    let old = |line: &&str| ["http://a.", "http://b."].iter().any(|site| line.contains(&format!("\"url\":\"{site}")));
    let both: String =
        lines_of_week(0).lines().filter(old).chain(lines_of_week(1).lines()).flat_map(|line| [line, "\n"]).collect();
    let input = folder.path().join("both.jsonl");
    std::fs::write(&input, both).unwrap();
    let out = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    succeed(&["run", "--input", input.to_str().unwrap(), "--output", &out("second"), "--workers", "1"]);
    succeed(&["diff", &first, &out("second"), "--output", &out("diff")]);
    let unseen = rows(&out("diff"), "mirrors_changed")
        .into_iter()
        .map(|row| (row["prefix"].as_str().unwrap()[7..8].to_string(), row["unseen"].as_u64().unwrap()));
    assert_eq!(unseen.collect::<BTreeMap<_, _>>(), [("a".into(), 1), ("b".into(), 1), ("c".into(), 0)].into());
    let visits = rows(&out("diff"), "change_rates").into_iter().filter(|row| row["scope"] == "host");
    let visits = visits.map(|row| (row["key"].as_str().unwrap().to_string(), row["visits"].as_u64().unwrap()));
    assert_eq!(visits.collect::<BTreeMap<_, _>>(), [("c.example".into(), 8), ("home.example".into(), 2)].into());
    let intervals = rows(&out("diff"), "revisit").into_iter().map(|row| {
        let known = (row["intervals"].as_u64().unwrap(), row["age"].as_u64().unwrap());
        (row["host"].as_str().unwrap()[..1].to_string(), known)
    });
    let intervals: BTreeMap<String, (u64, u64)> = intervals.collect();
    assert!(intervals.iter().all(|(site, &known)| known == if site == "c" { (1, 1) } else { (0, 2) }), "{intervals:?}");
    assert!(intervals.values().any(|known| *known == (0, 2)));
}

#[test]
fn obeying_crawl_leaves_the_list_unchanged_and_probes_show_live_mirrors() {
    let folder = tempfile::tempdir().unwrap();
    let out = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let whole = [("a", 1), ("b", 1), ("c", 1)];
    let first = run(folder.path(), 0, &whole);
    let list = files(Path::new(&first));
    let prefixes = String::from_utf8(list["exports/prefixes.txt"].clone()).unwrap();
    let on_list = |site: &str| prefixes.lines().any(|prefix| prefix.starts_with(&format!("http://{site}.")));
    let kept_site = ["a", "b", "c"].into_iter().find(|site| !on_list(site)).expect("one site is kept");
    let skipped: Vec<&str> = ["a", "b", "c"].into_iter().filter(|site| *site != kept_site).collect();
    let diff = |old: &str, new: &str, name: &str, more: &[&str]| {
        let output = out(name);
        let avoided = ["--set", "recrawl.avoided=yes"];
        succeed(&[&["diff", old, new, "--output", &output][..], &avoided, more].concat());
        output
    };
    let lives = |diff: &str| report(diff).into_values().map(|word| word.0).collect::<Vec<_>>() == ["lives"; 3];
    // Three pages of one mirror were fetched as probes, and none of the other.
    let is_probe = |site: &str, number: u32| site == kept_site || site == skipped[0] && number < 3;
    let second = run_over(folder.path(), 1, &whole, is_probe);
    let probed = diff(&first, &second, "probed", &[]);
    assert!(lives(&probed), "{:?}", report(&probed));
    assert_eq!(rows(&probed, "avoid_changed").iter().filter(|row| row["what"] == "removed").count(), 0);
    let lists = files(Path::new(&probed));
    for name in ["prefixes.txt", "urls.txt", "regex-urlfilter.txt", "heritrix-surts.txt"] {
        let removed = String::from_utf8(lists[&format!("exports/remove-{name}")].clone()).unwrap();
        assert_eq!(removed, "", "{name}");
    }
    // All pages are fetched again and unchanged.
    let third = run(folder.path(), 2, &whole);
    let again = diff(&second, &third, "again", &["--history", &probed]);
    assert!(lives(&again), "{:?}", report(&again));
    // If the kept copy has disappeared, its mirrors must be fetched again.
    let without = run_over(folder.path(), 3, &[("z", 1)], |_, _| true);
    let gone_diff = diff(&first, &without, "gone", &[]);
    let removed = rows(&gone_diff, "avoid_changed").iter().filter(|row| row["what"] == "removed").count();
    assert_eq!(removed, rows(&first, "avoid").len());
    let lists = files(Path::new(&gone_diff));
    assert_eq!(lists["exports/remove-prefixes.txt"], list["exports/prefixes.txt"]);
}

#[test]
fn dead_mirror_is_missing_after_its_probes_failed() {
    let folder = tempfile::tempdir().unwrap();
    let out = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let first = run(folder.path(), 0, &[("a", 1), ("b", 1)]);
    let list = files(Path::new(&first));
    let prefixes = String::from_utf8(list["exports/prefixes.txt"].clone()).unwrap();
    let kept_site = if prefixes.contains("http://a.") { "b" } else { "a" };
    let dead = if kept_site == "a" { "b" } else { "a" };
    let second = run(folder.path(), 1, &[(kept_site, 1)]);
    let third = run(folder.path(), 2, &[(kept_site, 1)]);
    let avoided = ["--set", "recrawl.avoided=yes"];
    succeed(&[&["diff", &first, &second, "--output", &out("one")][..], &avoided].concat());
    assert_eq!(report(&out("one"))[dead].0, "lives");
    // Three cases: it is unknown whether the crawler fetched the probes; it fetched them; it got a
    // 404 for each.
    let two = |name: &str, newer: &str, more: &[&str]| {
        let args = ["diff", &second, newer, "--history", &out("one"), "--output", &out(name)];
        succeed(&[&args[..], &avoided, more].concat());
        report(&out(name))[dead].0.clone()
    };
    assert_eq!(two("silent", &third, &[]), "lives");
    assert_eq!(two("probed", &third, &["--set", "recrawl.avoided=probed"]), "missing");
    let record = |number: u32| {
        let body = "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\n<p>not here";
        format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-00000000000{number}>\r\n\
             WARC-Target-URI: http://{dead}.example/manual/{number}.html\r\nWARC-Date: 2023-12-01T00:00:00Z\r\n\
             Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n{body}\r\n\r\n",
            body.len()
        )
    };
    let input = folder.path().join("not-found.warc");
    std::fs::write(&input, (0..4).map(record).collect::<String>()).unwrap();
    let inputs = ["--input", input.to_str().unwrap(), "--input", &out("week-2.jsonl")];
    succeed(&[&["run", "--output", &out("not-found"), "--workers", "1"][..], &inputs].concat());
    assert_eq!(two("answered", &out("not-found"), &[]), "missing");
    // A comparison that is repeated with its own history yields the same.
    let args = [
        "diff",
        &second,
        &third,
        "--history",
        &out("probed"),
        "--output",
        &out("again"),
        "--set",
        "recrawl.avoided=probed",
    ];
    succeed(&args);
    for table in ["mirrors_changed", "revisit"] {
        assert_eq!(rows(&out("again"), table), rows(&out("probed"), table), "{table}");
    }
    assert_eq!(files(Path::new(&out("again")))["history"], files(Path::new(&out("probed")))["history"]);
}

#[test]
fn a_mirror_is_unseen_where_only_its_pages_outside_of_the_list_are_fetched() {
    let folder = tempfile::tempdir().unwrap();
    let out = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let sites = [("a", 1), ("b", 1), ("x", 1)];
    let mut results = vec![run(folder.path(), 0, &sites)];
    let mut unseen = |week: u32, is_fetched: &dyn Fn(&str, u32) -> bool| {
        results.push(run_over(folder.path(), week, &sites, is_fetched));
        let [.., old, new] = &results[..] else { unreachable!("there are two") };
        let (before, output) = (out(&format!("diff-{}", week - 1)), out(&format!("diff-{week}")));
        let history = if week > 1 { vec!["--history", &before] } else { Vec::new() };
        let avoided = ["--set", "recrawl.avoided=yes", "--budget", "0"];
        succeed(&[&["diff", old, new, "--output", &output][..], &avoided, &history].concat());
        let row = rows(&output, "mirrors_changed").into_iter().find(|row| row["prefix"] == "http://x.example/manual/");
        row.unwrap()["unseen"].as_u64().unwrap()
    };
    // First all pages of the mirror are fetched as probes, then the pages that have left the list:
    // two with other texts, and those that lead to them. Then all pages again.
    let probed = |site: &str, _: u32| site != "b";
    let obeyed = |site: &str, number: u32| site == "a" || site == "x" && number > 1;
    assert_eq!(unseen(1, &probed), 0);
    assert_eq!(unseen(2, &obeyed), 1);
    assert_eq!(unseen(3, &obeyed), 2);
    assert_eq!(unseen(4, &probed), 0);
}

#[test]
fn absent_mirror_does_not_change_the_pool_in_repeated_comparisons() {
    let folder = tempfile::tempdir().unwrap();
    let out = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let away = [("a", 1), ("b", 1), ("c", 1)];
    let mirrors_by_week = [
        &[("a", 1), ("b", 1), ("c", 1), ("d", 1)][..],
        &[("a", 1), ("b", 1), ("c", 1), ("d", 1)],
        &away,
        &[("a", 1), ("b", 1), ("c", 1), ("d", 1)],
    ];
    let results: Vec<String> =
        mirrors_by_week.into_iter().zip(0..).map(|(mirrors, week)| run(folder.path(), week, mirrors)).collect();
    succeed(&["diff", &results[0], &results[1], "--output", &out("d1")]);
    succeed(&["diff", &results[1], &results[2], "--history", &out("d1"), "--output", &out("d2")]);
    succeed(&["diff", &results[2], &results[3], "--history", &out("d2"), "--output", &out("d3")]);
    succeed(&["diff", &results[2], &results[3], "--history", &out("d3"), "--output", &out("again")]);
    succeed(&["diff", &results[2], &results[3], "--history", &out("again"), "--output", &out("again2")]);
    for again in ["again", "again2"] {
        assert_eq!(rows(&out(again), "revisit"), rows(&out("d3"), "revisit"), "{again}");
        assert_eq!(files(Path::new(&out(again)))["history"], files(Path::new(&out("d3")))["history"], "{again}");
    }
}

#[test]
fn copies_outside_of_collections_use_the_remaining_budget() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    // Five notices, each on three hosts. The crawler skips the pages on the list.
    let crawl = |week: i64, list: &str| {
        let pages = (0..15u32).map(|page| (page, format!("http://h{}.example/{}.html", page % 3, page / 3)));
        let fetched = pages.filter(|(_, url)| !list.lines().any(|line| line == url));
        let line = |(page, url): (u32, String)| {
            let text: String = (0..9).map(|line| format!("<p>Notice {} says {line} of many words", page / 3)).collect();
            format!(
                "{}\n",
                serde_json::json!({ "url": url, "html": text, "fetch_time": 1_700_000_000 + week * 604_800 })
            )
        };
        let (input, output) = (at(&format!("{week}.jsonl")), at(&format!("run-{week}")));
        std::fs::write(&input, fetched.map(line).collect::<String>()).unwrap();
        succeed(&["run", "--input", &input, "--output", &output, "--workers", "1"]);
        output
    };
    let first = crawl(0, "");
    let list = String::from_utf8(files(Path::new(&first))["exports/urls.txt"].clone()).unwrap();
    assert_eq!((list.lines().count(), rows(&first, "collections").len()), (10, 0), "{list}");
    let second = crawl(1, &list);
    let urls_within = |budget: &str| {
        let output = at(&format!("diff-{budget}"));
        let avoided = ["--set", "recrawl.avoided=yes", "--budget", budget];
        succeed(&[&["diff", &first, &second, "--output", &output][..], &avoided].concat());
        let urls = String::from_utf8(files(Path::new(&output))["exports/revisit.txt"].clone()).unwrap();
        urls.lines().map(String::from).collect::<Vec<_>>()
    };
    let mut all: Vec<&str> = list.lines().collect();
    all.sort_unstable();
    assert_eq!(urls_within("100"), all);
    let urls_of_budget = urls_within("4");
    assert!(
        urls_of_budget.len() == 4 && urls_of_budget.iter().all(|url| all.contains(&url.as_str())),
        "{urls_of_budget:?}"
    );
}

/// Compares two crawls, of which the newer one obeyed the list.
fn obeying(old: &str, new: &str, output: &str, more: &[&str]) {
    succeed(&[&["diff", old, new, "--output", output, "--set", "recrawl.avoided=yes"][..], more].concat());
}

#[test]
fn a_mirror_lives_on_when_more_of_its_pages_are_put_on_the_list() {
    let folder = tempfile::tempdir().unwrap();
    let out = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let sites = [("a", 1), ("y", 1)];
    let first = run(folder.path(), 0, &sites);
    // All pages of y but the third are on the list. The third one becomes a copy in the second
    // week, and is then on the list, too.
    assert_eq!(rows(&first, "avoid").len(), 7);
    let second = run_over(folder.path(), 1, &sites, |site, number| site == "a" || number == 2);
    assert_eq!(rows(&second, "avoid").len(), 1);
    obeying(&first, &second, &out("one"), &[]);
    let third = run_over(folder.path(), 2, &sites, |site, _| site == "a");
    obeying(&second, &third, &out("two"), &["--history", &out("one")]);
    assert_eq!(report(&out("two"))["y"].0, "lives");
    assert_eq!(rows(&out("two"), "avoid_changed").len(), 0);
}

#[test]
fn unchanged_probes_do_not_end_a_mirror_of_a_changed_original() {
    let folder = tempfile::tempdir().unwrap();
    let out = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let crawl = |week: u32, versions: [u32; 2], is_fetched: &dyn Fn(u32) -> bool| {
        let is_fetched = |site: &str, number: u32| site == "a" || is_fetched(number);
        run_over(folder.path(), week, &[("a", versions[0]), ("b", versions[1])], is_fetched)
    };
    let listed = |run: &str| rows(run, "avoid").len();
    let first = crawl(0, [1, 1], &|_| true);
    assert_eq!(listed(&first), 8);
    let second = crawl(1, [1, 1], &|_| false);
    obeying(&first, &second, &out("one"), &[]);
    let third = crawl(2, [9, 1], &|number| number == 3);
    assert_eq!(listed(&third), 0);
    obeying(&second, &third, &out("two"), &["--history", &out("one")]);
    assert_eq!(report(&out("two"))["b"].0, "lives");
    // A probe with another text ends the mirror, although this text is not a copy either.
    let other = crawl(3, [9, 0], &|number| number == 3);
    assert_eq!(listed(&other), 0);
    obeying(&second, &other, &out("other"), &["--history", &out("one")]);
    assert_eq!(report(&out("other"))["b"].0, "missing");
}

#[test]
fn one_page_of_a_folder_leaves_the_list_and_the_others_stay() {
    let folder = tempfile::tempdir().unwrap();
    let out = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let sites = [("a", 1), ("x", 1)];
    let first = run(folder.path(), 0, &sites);
    let list = files(Path::new(&first));
    let prefixes = String::from_utf8(list["exports/prefixes.txt"].clone()).unwrap();
    let prefix = prefixes.lines().find(|prefix| prefix.starts_with("http://x.")).expect("most of x is on the list");
    // Of two probes, one has another text and the other links to it.
    let second = run_over(folder.path(), 1, &sites, |site, number| site == "a" || [5, 6].contains(&number));
    obeying(&first, &second, &out("one"), &[]);
    let patch = files(Path::new(&out("one")));
    let lines = |name: &str| String::from_utf8(patch[&format!("exports/{name}")].clone()).unwrap();
    assert!(lines("remove-prefixes.txt").lines().any(|line| line == prefix));
    let forbidden = |name: &str, number: u32| {
        lines(name).lines().any(|line| line == format!("http://x.example/manual/{number}.html"))
    };
    for number in [0, 1, 2, 3, 4, 7] {
        assert!(forbidden("add-urls.txt", number) && forbidden("urls.txt", number), "{number}");
    }
    assert!(![5, 6].iter().any(|&number| forbidden("urls.txt", number)));
    // A crawler that obeys this list fetches no page twice, and the next patch is empty.
    let third = run_over(folder.path(), 2, &sites, |site, number| site == "a" || [5, 6].contains(&number));
    obeying(&second, &third, &out("two"), &["--history", &out("one")]);
    let patch = files(Path::new(&out("two")));
    for name in ["prefixes.txt", "urls.txt", "regex-urlfilter.txt", "heritrix-surts.txt"] {
        let lines = |what: &str| String::from_utf8(patch[&format!("exports/{what}-{name}")].clone()).unwrap();
        assert_eq!(lines("remove"), "", "{name}");
    }
    assert!(lines_of(&patch, "urls.txt").contains(&"http://x.example/manual/7.html".to_string()));
}

fn lines_of(files: &BTreeMap<String, Vec<u8>>, name: &str) -> Vec<String> {
    let text = String::from_utf8(files[&format!("exports/{name}")].clone()).unwrap();
    text.lines().map(String::from).collect()
}

/// Runs over a crawl of pages, each given by its site, number and text, and of a page that links to
/// site a; returns the result.
fn run_saying(folder: &Path, week: u32, pages: &[(char, u32, u32)]) -> String {
    let out = |name: String| folder.join(name).to_str().unwrap().to_string();
    let text = |reports: u32| {
        (0..30).map(move |line| format!("<p>a{reports}x{line} b{line}y{reports} c{reports}z{reports}q{line}"))
    };
    let line = |&(site, page, reports): &(char, u32, u32)| {
        let next = format!("<p><a href='{}'>next</a>", (page + 1) % 6);
        let html: String = text(reports).chain([next]).collect();
        let url = format!("http://{site}.example/manual/{page}");
        let time = 1_700_000_000 + week * 604_800;
        format!("{}\n", serde_json::json!({ "url": url, "html": html, "fetch_time": time }))
    };
    let input = out(format!("saying-{week}.jsonl"));
    let home = "<a href='http://a.example/manual/0'>the manual</a>";
    let home = serde_json::json!({ "url": "http://home.example/", "html": home });
    std::fs::write(&input, pages.iter().map(line).collect::<String>() + &home.to_string()).unwrap();
    let output = out(format!("saying-run-{week}"));
    succeed(&["run", "--input", &input, "--output", &output, "--workers", "1"]);
    output
}

#[test]
fn page_leaves_the_list_when_its_keeper_is_rewritten() {
    let folder = tempfile::tempdir().unwrap();
    let out = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let crawl = |week: u32, pages: &[(char, u32, u32)]| run_saying(folder.path(), week, pages);
    let both: Vec<(char, u32, u32)> =
        "ab".chars().flat_map(|site| (0..6).map(move |page| (site, page, page))).collect();
    let first = crawl(0, &both);
    assert!(rows(&first, "avoid").iter().all(|row| row["keep_url"].as_str().unwrap().starts_with("http://a.")));
    let kept_pages: Vec<(char, u32, u32)> = (0..6).map(|page| ('a', page, if page == 2 { 99 } else { page })).collect();
    let second = crawl(1, &kept_pages);
    obeying(&first, &second, &out("rewritten"), &[]);
    let removed = rows(&out("rewritten"), "avoid_changed");
    let removed: Vec<&str> =
        removed.iter().filter(|row| row["what"] == "removed").map(|row| row["url"].as_str().unwrap()).collect();
    assert_eq!(removed, ["http://b.example/manual/2"]);
    let in_force = lines_of(&files(Path::new(&out("rewritten"))), "urls.txt");
    assert_eq!(in_force, [0, 1, 3, 4, 5].map(|page| format!("http://b.example/manual/{page}")));
}

#[test]
fn kept_mirror_has_drifted_once_most_of_it_is_rewritten_and_its_copies_are_unseen() {
    let folder = tempfile::tempdir().unwrap();
    let out = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let reports = |of: &dyn Fn(u32) -> u32| (0..6).map(|page| ('a', page, of(page))).collect::<Vec<_>>();
    let both: Vec<_> = "ab".chars().flat_map(|site| (0..6).map(move |page| (site, page, page))).collect();
    let first = run_saying(folder.path(), 0, &both);
    for (week, rewritten, what) in [(1, 0, "lives"), (2, 3, "lives"), (3, 4, "drifted"), (4, 6, "drifted")] {
        let kept_pages = reports(&|page| if page < rewritten { page + 50 } else { page });
        let second = run_saying(folder.path(), week, &kept_pages);
        let diff = out(&format!("kept-{week}"));
        obeying(&first, &second, &diff, &[]);
        assert_eq!(report(&diff), expect(&[("a", what, 0), ("b", "lives", 0)]), "{rewritten}");
        // The outcome of the copies is unknown, and the copies of rewritten pages may be the last
        // copies of the old text.
        assert_eq!(rows(&diff, "avoid_changed").len(), rewritten as usize);
    }
    // A new text is not drift if the page led to other pages when it was last fetched.
    let weeks: [&[Shown<'_>]; 4] =
        [&[("a", 1), ("b", 1), ("c", 1)], &[("a", 1), ("b", 2), ("c", 1)], &[("a", 2)], &[("a", 3)]];
    let runs: Vec<String> = (0..).zip(weeks).map(|(week, shown)| run(folder.path(), week, shown)).collect();
    obeying(&runs[0], &runs[1], &out("led-1"), &[]);
    obeying(&runs[1], &runs[2], &out("led-2"), &["--history", &out("led-1")]);
    obeying(&runs[2], &runs[3], &out("led-3"), &["--history", &out("led-2")]);
    assert!(rows(&out("led-3"), "mirrors_changed").iter().any(|row| row["is_original"] == true && row["unseen"] == 2));
    assert_eq!(report(&out("led-3"))["a"].0, "lives");
    // One comparison of all results yields the same report.
    let all = [&["diff"][..], &runs.iter().map(String::as_str).collect::<Vec<_>>(), &["--output"]].concat();
    succeed(&[&all[..], &[&out("at-once"), "--set", "recrawl.avoided=yes"]].concat());
    assert_eq!(report(&out("at-once")), report(&out("led-3")));
}

#[test]
fn returned_mirror_is_complete_while_only_probes_of_another_are_fetched() {
    let folder = tempfile::tempdir().unwrap();
    let out = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let sites = [("a", 1), ("b", 1), ("d", 1)];
    let first = run(folder.path(), 0, &sites);
    // The first comparison requests all pages of both mirrors. The pages of d are not found, and
    // later two pages of b are not.
    let second = run(folder.path(), 1, &sites[..1]);
    obeying(&first, &second, &out("back-1"), &[]);
    let third = run(folder.path(), 2, &sites[..2]);
    let probed = ["--set", "recrawl.avoided=probed"];
    obeying(&second, &third, &out("back-2"), &[&["--history", &out("back-1")][..], &probed].concat());
    assert_eq!(report(&out("back-2"))["d"].0, "missing");
    let fourth = run_over(folder.path(), 3, &sites, |site, number| site != "b" || number % 4 != 3);
    assert_eq!(rows(&fourth, "collections").iter().filter(|row| row["host"] == "d.example").count(), 2);
    obeying(&third, &fourth, &out("back-3"), &[&["--history", &out("back-2")][..], &probed].concat());
    let rows = rows(&out("back-3"), "mirrors_changed");
    let words: Vec<[&str; 2]> =
        rows.iter().map(|row| [&row["host_new"], &row["what"]].map(|text| text.as_str().unwrap())).collect();
    assert_eq!(words, [["b.example", "shrank"], ["a.example", "lives"], ["d.example", "lives"]]);
    assert!(rows.iter().all(|row| row["similar_cluster"] == rows[0]["similar_cluster"]));
}
