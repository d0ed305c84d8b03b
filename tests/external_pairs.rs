use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::support::manual::{crawl, url, write};
use crate::support::program::{assert_same_on_any_workers, fail, rows, succeed};

fn summary(output: &str) -> Value {
    serde_json::from_slice(&std::fs::read(Path::new(output).join("summary.json")).unwrap()).unwrap()
}

/// Returns the rows of a table as text, without the columns `without`, which depend on the
/// comparison method.
fn table(output: &str, name: &str, without: &[&str]) -> BTreeSet<String> {
    let row = |mut row: Value| {
        without.iter().for_each(|column| drop(row.as_object_mut().unwrap().remove(*column)));
        row.to_string()
    };
    rows(output, name).into_iter().map(row).collect()
}

#[test]
fn pairs_or_clusters_of_a_run_yield_its_clusters_and_collections_in_another() {
    let folder = tempfile::tempdir().unwrap();
    let input = crawl(folder.path());
    for merge in ["exact", "tolerant"] {
        let merge = format!("clusters.merge={merge}");
        let out = folder.path().join(&merge).to_str().unwrap().to_string();
        succeed(&["run", "--input", &input, "--output", &out, "--set", &merge]);
        assert!(rows(&out, "collections").len() == 3 && summary(&out).get("given").is_none());
        let tables = [out.clone(), format!("{out}/pairs/*.parquet"), format!("{out}/clusters")];
        for (number, from) in tables.iter().enumerate() {
            let from = format!("pairs.from={from}");
            let run = ["run", "--input", &input, "--set", "similar.by=given", "--set", "similar.guard=none"];
            let run = [&run[..], &["--set", &merge, "--set", &from]].concat();
            let at = folder.path().join(format!("given-{merge}-{number}"));
            std::fs::create_dir(&at).unwrap();
            let (output, message) = assert_same_on_any_workers(&at, "out", &run);
            for (name, without) in
                [("clusters", &["role"][..]), ("link_summary", &[]), ("collections", &[]), ("members", &[])]
            {
                assert_eq!(table(&output, name, without), table(&out, name, without), "{name} by {from}");
            }
            let counts = &summary(&output)["given"];
            assert_eq!((&counts["rows"]["read"], &counts["guarded"]), (&counts["rows"]["used"], &0.into()), "{counts}");
            assert!(
                message.contains("0 are malformed") && message.contains("similar pairs by pairs.from"),
                "{message}"
            );
        }
    }
}

#[test]
fn external_pairs_are_added_to_those_of_a_measure() {
    let folder = tempfile::tempdir().unwrap();
    let input = crawl(folder.path());
    // No measure finds this pair.
    let more = format!("a,b\n{},http://home.example/\n", url("a", 3));
    let more = format!("pairs.from={}", write(folder.path(), "more.csv", &more));
    for by in ["overlap", "hamming", "both", "signatures", "minhash"] {
        let by = format!("similar.by={by}");
        let at = |name: &str| folder.path().join(format!("{by}-{name}")).to_str().unwrap().to_string();
        let run = ["run", "--input", &input, "--set", &by, "--output"];
        succeed(&[&run[..], &[&at("plain")]].concat());
        succeed(&[&run[..], &[&at("more"), "--set", &more]].concat());
        let (plain, more) = (table(&at("plain"), "pairs", &[]), table(&at("more"), "pairs", &[]));
        let added: Vec<Value> = more.difference(&plain).map(|row| serde_json::from_str(row).unwrap()).collect();
        assert!(plain.is_subset(&more) && added.len() == 1, "{by}: {added:?}");
        assert_eq!((&added[0]["measure"], &added[0]["value"]), (&"given".into(), &1_000_000.into()));
        let digest = |output: &str| summary(output)["digest"].clone();
        assert_ne!(digest(&at("plain")), digest(&at("more")));
    }
}

#[test]
fn the_pairs_of_a_join_of_fingerprints_are_those_of_its_simhashes() {
    let folder = tempfile::tempdir().unwrap();
    let input = crawl(folder.path());
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let run = ["run", "--input", &input, "--set", "similar.guard=none", "--set", "hamming.k=20", "--output"];
    succeed(&[&run[..], &[&at("plain"), "--set", "similar.by=hamming"]].concat());
    succeed(&["hamming", "build", "--from", &at("plain"), "--output", &at("f")]);
    succeed(&["hamming", "batch", "--fingerprints", &at("f"), "--k", "20", "--output", &at("joined")]);
    let from = format!("pairs.from={}", at("joined"));
    succeed(&[&run[..], &[&at("given"), "--set", "similar.by=given", "--set", &from]].concat());
    assert_eq!(table(&at("given"), "clusters", &["role"]), table(&at("plain"), "clusters", &["role"]));
    let near = rows(&at("joined"), "pairs").len();
    assert!(near > 0 && summary(&at("given"))["given"]["rows"]["used"] == near);
}

#[test]
fn every_row_of_a_table_is_accounted_for() {
    let folder = tempfile::tempdir().unwrap();
    let input = crawl(folder.path());
    let [a, b, c] = ["a", "b", "c"].map(|site| url(site, 0));
    let text = format!(
        "url_a,url_b,value,why\n{a},{b},0.75,x\n{b},{a}#top,0.5,again\n{a},{a},1,itself\n{a},http://gone.example/,1,gone\n\
         {a},not a url,1,y\n{a},,1,y\n{a},{c},1.5,too much\n\n\"{b}\",\"{c}\",12,\"so, it \"\"is\"\"\"\n"
    );
    let pairs = write(folder.path(), "pairs.csv", &text);
    let labels = write(
        folder.path(),
        "labels.tsv",
        &format!("label\tpage\nx\t{}\nx\t{}\nx\t{}\ny\t{}\n", url("a", 1), url("b", 1), url("a", 1), url("c", 1)),
    );
    let run = ["run", "--input", &input, "--set", "similar.by=given"];
    let from = format!("pairs.from=[{pairs:?}, {labels:?}]");
    let (output, message) = assert_same_on_any_workers(folder.path(), "rows", &[&run[..], &["--set", &from]].concat());
    let counts = &summary(&output)["given"];
    let names = ["read", "used", "unknown", "malformed", "self_pairs", "duplicates"];
    assert_eq!(names.map(|name| counts["rows"][name].as_u64().unwrap()), [12, 5, 1, 3, 1, 2], "{counts}");
    assert_eq!((&counts["similar"], &counts["guarded"]), (&3.into(), &0.into()), "{counts}");
    let malformed = [format!("{a},not a url,1,y\n"), format!("{a},,1,y\n"), format!("{a},{c},1.5,too much\n")];
    assert_eq!(counts["rows"]["malformed_bytes"], malformed.iter().map(String::len).sum::<usize>());
    assert!(message.contains("of 12 rows") && message.contains("3 are malformed"), "{message}");
    let pairs = rows(&output, "pairs").into_iter().filter(|row| row["measure"] == "given");
    let mut values: Vec<u64> = pairs.map(|row| row["value"].as_u64().unwrap()).collect();
    values.sort_unstable();
    assert_eq!(values, [12, 750_000, 1_000_000]);
}

#[test]
fn invalid_table_of_pairs_ends_the_run_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let input = crawl(folder.path());
    let out = folder.path().join("out").to_str().unwrap().to_string();
    let run = ["run", "--input", &input, "--output", &out, "--workers", "2", "--set", "similar.by=given"];
    let refused = |from: &str, code| fail(&[&run[..], &["--set", &format!("pairs.from={from}")]].concat(), code);
    assert!(fail(&run, 2).contains("pairs.from"));
    assert!(refused("[]", 2).contains("pairs.from"));
    let none = folder.path().join("none.csv").to_str().unwrap().to_string();
    assert!(refused(&none, 3).contains("none.csv"));
    let other = write(folder.path(), "other.csv", "left,right\n1,2\n");
    let error = refused(&other, 3);
    assert!(error.contains("other.csv") && error.contains("left, right") && error.contains("url_a"), "{error}");
    let parquet = write(folder.path(), "cut.parquet", "PAR1 and no more");
    assert!(refused(&parquet, 3).contains("bad_parquet"));
    let empty = write(folder.path(), "empty.csv", "");
    assert!(refused(&empty, 3).contains("is empty"));
    // The job includes the contents of the tables, but not their location.
    let digest = |from: &str| {
        let checked = succeed(&["check", "--input", &input, "--set", &format!("pairs.from={from}")]);
        checked.lines().next().unwrap().to_string()
    };
    let [one, same] = ["one.csv", "same.csv"].map(|name| write(folder.path(), name, "a,b\n1,2\n"));
    assert_eq!(digest(&one), digest(&same));
    assert_ne!(digest(&one), digest(&write(folder.path(), "another.csv", "a,b\n1,3\n")));
}
