use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::support::manual::{crawl, url, write};
use crate::support::program::{assert_same_on_any_workers, fail, rows, succeed};

fn summary(output: &str) -> Value {
    serde_json::from_slice(&std::fs::read(Path::new(output).join("summary.json")).unwrap()).unwrap()
}

fn manifest(output: &str) -> Value {
    serde_json::from_slice(&std::fs::read(Path::new(output).join("manifest.json")).unwrap()).unwrap()
}

/// Returns the trivial cluster of each page by its URL.
fn cluster_of(output: &str) -> BTreeMap<String, String> {
    let urls: BTreeMap<String, String> =
        rows(output, "pages").iter().map(|row| (text(&row["doc_id"]), text(&row["url"]))).collect();
    rows(output, "clusters").iter().map(|row| (urls[&text(&row["doc_id"])].clone(), text(&row["cluster"]))).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_string()
}

#[test]
fn pin_keeps_its_mirror_and_the_usual_order_decides_between_two() {
    let folder = tempfile::tempdir().unwrap();
    let input = crawl(folder.path());
    let pins = [("b", 2, "\tours"), ("c", 4, ""), ("b", 4, ""), ("b", 1, ""), ("d", 0, "\tgone by now")];
    let lines: String = pins.iter().map(|(site, page, reason)| format!("{}{reason}\n", url(site, *page))).collect();
    let file = write(folder.path(), "pins.tsv", &lines);
    let set = format!("keep.pins={file}");
    let run = ["run", "--input", &input, "--set", &set];
    let (output, message) = assert_same_on_any_workers(folder.path(), "pins", &run);

    // Without pins all pages of a would stay. Two clusters have a pin on b, and one has pins on b
    // and c.
    let avoid = rows(&output, "avoid");
    assert!(avoid.len() > 6);
    assert!(avoid.iter().all(|row| text(&row["keep_url"]).starts_with("http://b.")), "{avoid:?}");
    let by_page: BTreeSet<(char, String)> =
        avoid.iter().map(|row| (text(&row["url"]).chars().nth(24).unwrap(), text(&row["lost_by"]))).collect();
    let of_page = |page: char| by_page.iter().filter(|row| row.0 == page).map(|row| row.1.as_str()).collect::<Vec<_>>();
    assert_eq!((of_page('2'), of_page('3')), (vec!["pin"], vec!["collection"]));
    // The page of c is also pinned, but loses by the next criterion.
    assert_eq!(of_page('4'), ["collection", "pin"]);

    let pin_summary = &summary(&output)["pins"];
    let counts = ["pins", "kept", "alone", "second", "gone"].map(|name| pin_summary[name].as_u64().unwrap());
    assert_eq!(counts, [5, 3, 0, 1, 1]);
    let outcomes = pin_summary["shown"].as_array().unwrap();
    assert_eq!(
        [&outcomes[0]["url"], &outcomes[0]["outcome"], &outcomes[0]["keep_url"]],
        [&url("c", 4), "second", &url("b", 4)]
    );
    assert_eq!([&outcomes[1]["reason"], &outcomes[1]["outcome"]], ["gone by now", "gone"]);
    assert_eq!([&outcomes[2]["reason"], &outcomes[2]["outcome"]], ["ours", "kept"]);
    assert!(
        message.contains("3 stay in place of their copies")
            && message.contains(&format!("{} does not stay", url("c", 4))),
        "{message}"
    );
}

#[test]
fn contents_of_a_decision_file_are_part_of_the_job_and_its_location_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let input = crawl(folder.path());
    let digest = |file: &str| {
        let checked = succeed(&["check", "--input", &input, "--set", &format!("keep.pins={file}")]);
        checked.lines().next().unwrap().to_string()
    };
    let one = write(folder.path(), "one.tsv", "http://a.example/\n");
    let same = write(folder.path(), "same.tsv", "http://a.example/\n");
    let other = write(folder.path(), "other.tsv", "http://b.example/\n");
    assert_eq!(digest(&one), digest(&same));
    assert_ne!(digest(&one), digest(&other));

    // `check` prints a complete job, which is valid only for the same contents of the file.
    let job = succeed(&["check", "--input", &input, "--set", &format!("keep.pins={one}")]);
    let job = write(folder.path(), "job.toml", &job);
    succeed(&["check", "--job", &job]);
    write(folder.path(), "one.tsv", "http://c.example/\n");
    assert!(fail(&["check", "--job", &job], 2).contains("keep.pins_sha256"));

    for (setting, lines, word) in [
        ("keep.pins", "http://a.example/\nmailto:x\n", "line 2"),
        ("pairs.apart", "http://a.example/\n", "line 1: has 1 of 2 URLs"),
    ] {
        let file = write(folder.path(), "wrong.tsv", lines);
        let out = folder.path().join("none").display().to_string();
        let run = ["run", "--input", &input, "--output", &out, "--set", &format!("{setting}={file}")];
        let message = fail(&run, 3);
        assert!(message.contains(word) && message.contains("wrong.tsv"), "{message}");
    }
    let missing = fail(&["check", "--input", &input, "--set", "pairs.apart=no/such/file"], 3);
    assert!(missing.contains("no such file"), "{missing}");
}

#[test]
fn pages_kept_apart_are_never_in_one_set_by_any_chain() {
    let folder = tempfile::tempdir().unwrap();
    let input = crawl(folder.path());
    let lines = [
        format!("{}\t{}\tother edition\n", url("a", 0), url("c", 0)),
        // These two pages have equal texts, and both are similar to that of c.
        format!("{}\t{}\n", url("b", 1), url("a", 1)),
        format!("{}\t{}\n", url("a", 2), url("b", 3)),
        format!("{}\t{}\n", url("a", 2), url("d", 2)),
    ];
    let file = write(folder.path(), "apart.tsv", &lines.concat());
    let set = format!("pairs.apart={file}");
    let (output, message) =
        assert_same_on_any_workers(folder.path(), "apart", &["run", "--input", &input, "--set", &set]);
    let cluster = cluster_of(&output);
    let are_together = |x: (&str, usize), y: (&str, usize)| {
        let cluster_of_page = |page: (&str, usize)| cluster.get(&url(page.0, page.1));
        cluster_of_page(x).is_some() && cluster_of_page(x) == cluster_of_page(y)
    };
    assert!(are_together(("a", 0), ("b", 0)) && !are_together(("a", 0), ("c", 0)) && !are_together(("b", 0), ("c", 0)));
    assert!(!are_together(("a", 1), ("b", 1)) && are_together(("a", 2), ("b", 2)) && are_together(("a", 2), ("c", 2)));
    // A refused pair is in no table, and no page is kept in place of a page that it must stay apart
    // from.
    let of_summary = &summary(&output)["apart"];
    let counts = ["pairs", "parted", "unjoined", "gone", "refused_exact", "refused_similar"];
    assert_eq!(counts.map(|name| of_summary[name].as_u64().unwrap()), [4, 2, 1, 1, 1, 1]);
    assert_eq!(of_summary["shown"][0]["reason"], "other edition");
    let similar = rows(&output, "pairs").iter().filter(|row| row["measure"] == "overlap").count();
    assert_eq!(manifest(&output)["counts"]["similar_pairs"], similar);
    let stands_for: BTreeSet<(String, String)> =
        rows(&output, "avoid").iter().map(|row| (text(&row["url"]), text(&row["keep_url"]))).collect();
    for (x, y) in [(url("a", 0), url("c", 0)), (url("b", 1), url("a", 1))] {
        assert!(!stands_for.contains(&(x.clone(), y.clone())) && !stands_for.contains(&(y, x)));
    }
    assert!(message.contains("2 would be in one set"), "{message}");
    // The decision is the reason, and not a guard that the pair has passed.
    let explained = succeed(&["explain", &output, &url("a", 0), &url("c", 0)]);
    assert!(explained.contains("keeps the two pages apart (pairs.apart): other edition"), "{explained}");
    assert!(!explained.contains("guard"), "{explained}");
}
