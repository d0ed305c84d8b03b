use std::path::Path;

use crate::support::program::{answer, fail_with, succeed_with};

fn at(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().unwrap().to_string()
}

/// Writes F of five documents, two of which have the same fingerprint.
fn fingerprints(folder: &Path) -> String {
    let (text, set) = (at(folder, "x.txt"), at(folder, "f"));
    let lines = ["00000000000000ff 10", "00000000000000ff 11", "00000000000000fe 12", "00000000000f00ff 13"];
    std::fs::write(&text, lines.join("\n") + "\nffffffffffffffff 14\n").unwrap();
    succeed_with(&["hamming", "build", "--from", &text, "--output", &set], "");
    set
}

const HEAD: &str = "query\tfingerprint\tdistance\tdoc_ids\n";

#[test]
fn queries_find_exactly_equal_and_near_fingerprints() {
    let folder = tempfile::tempdir().unwrap();
    let set = fingerprints(folder.path());
    succeed_with(&["hamming", "index", "--fingerprints", &set], "");
    let query = |arguments: &[&str], stdin: &str| {
        succeed_with(&[&["hamming", "query", "--fingerprints", &set], arguments].concat(), stdin)
    };
    // 0xfd is one bit from 0xff and two from 0xfe; 0xf00ff is four bits from 0xff.
    let near_fd = "00000000000000fd\t00000000000000ff\t1\t10,11\n00000000000000fd\t00000000000000fe\t2\t12\n";
    assert_eq!(query(&["0xfd"], ""), format!("{HEAD}{near_fd}"));
    assert_eq!(query(&["--load", "253"], ""), format!("{HEAD}{near_fd}"));
    assert_eq!(
        query(&["00000000000000fd", "--limit", "1"], ""),
        format!("{HEAD}{}", near_fd.split_inclusive('\n').next().unwrap())
    );
    assert_eq!(query(&["--k", "0", "0xf00ff"], ""), format!("{HEAD}00000000000f00ff\t00000000000f00ff\t0\t13\n"));
    assert_eq!(query(&["0x123456789"], ""), HEAD);
    let ones = "ffffffffffffffff\tffffffffffffffff\t0\t14\n";
    assert_eq!(query(&["-"], "253\n\n  18446744073709551615\n7777777777777777\n"), format!("{HEAD}{near_fd}{ones}"));
    let message = query(&["--json", "0xfd", "0x123456789"], "");
    let lines: Vec<serde_json::Value> = message.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        lines,
        [
            serde_json::json!({ "query": "00000000000000fd", "found": 2, "near": [
                { "fingerprint": "00000000000000ff", "distance": 1, "doc_ids": ["10", "11"] },
                { "fingerprint": "00000000000000fe", "distance": 2, "doc_ids": ["12"] },
            ] }),
            serde_json::json!({ "query": "0000000123456789", "found": 0, "near": [] }),
        ]
    );
}

#[test]
fn invalid_queries_are_rejected_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let set = fingerprints(folder.path());
    let query = ["hamming", "query", "--fingerprints", &set];
    let refused = |arguments: &[&str], stdin: &str, code| fail_with(&[&query[..], arguments].concat(), stdin, code);
    let missing = refused(&["7"], "", 3);
    assert!(missing.contains(&format!("webtwin hamming index --fingerprints {set}")), "{missing}");
    fail_with(&["hamming", "query", "--fingerprints", "/no/such/folder", "7"], "", 3);
    fail_with(&["hamming", "index", "--fingerprints", "/no/such/folder"], "", 3);
    succeed_with(&["hamming", "index", "--fingerprints", &set], "");
    for wrong in ["x", "0xg", "18446744073709551616", "1f"] {
        assert!(refused(&[wrong], "", 2).contains("is not a fingerprint"));
        assert!(refused(&["-"], wrong, 2).contains("is not a fingerprint"));
    }
    refused(&[], "", 2);
    let larger = refused(&["--k", "5", "7"], "", 2);
    assert!(larger.contains("up to 3, not 5") && larger.contains("--replace --k 5"), "{larger}");
}

#[test]
fn index_is_replaced_only_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let set = fingerprints(folder.path());
    let index = |arguments: &[&str]| answer(&[&["hamming", "index", "--fingerprints", &set], arguments].concat(), "");
    let tables = || {
        let names = std::fs::read_dir(&set).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("table-")).count()
    };
    assert!(index(&["--tables", "14"]).status.success());
    assert_eq!(tables(), 14);
    let refused = index(&["--tables", "4"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("--replace"));
    assert_eq!(tables(), 14);
    assert!(index(&["--tables", "4", "--k", "3", "--no-doc-ids", "--replace"]).status.success());
    assert_eq!(tables(), 4);
    let answer = succeed_with(&["hamming", "query", "--fingerprints", &set, "254"], "");
    assert!(answer.starts_with(&format!("{HEAD}00000000000000fe\t00000000000000fe\t0\t\n")), "{answer}");
    assert_eq!(index(&["--replace", "--tables", "7"]).status.code(), Some(2));
    let small = index(&["--replace", "--memory", "10"]);
    assert_eq!(small.status.code(), Some(9));
    assert!(String::from_utf8(small.stderr).unwrap().contains("but --memory allows 10 bytes"));
    assert_eq!(index(&["--replace", "--k", "64"]).status.code(), Some(2));
    assert_eq!(tables(), 4);
}

#[test]
fn a_plan_shows_the_designs_and_refuses_too_little_memory_by_its_number() {
    let message = succeed_with(&["hamming", "plan", "--documents", "1e8", "--k", "3"], "");
    for shown in ["MJS07 Example 3.1", "covering of 8 blocks", "2.40 GB", "24.0", "73.8 MB", "39.5 bits a fingerprint"]
    {
        assert!(message.contains(shown), "{shown}: {message}");
    }
    assert_eq!(message.lines().filter(|line| line.starts_with("*  ")).count(), 1);
    let refused = fail_with(&["hamming", "plan", "--documents", "100M", "--memory", "1GB"], "", 9);
    assert!(refused.contains("--memory allows 953.7 MiB; set --memory to 2403393392 or more"), "{refused}");
    let fits = ["hamming", "plan", "--documents", "100M", "--memory", "2403393392", "--json"];
    let plan: serde_json::Value = serde_json::from_str(&succeed_with(&fits, "")).unwrap();
    let designs = plan["online"]["designs"].as_array().unwrap();
    let picked: Vec<_> = designs.iter().filter(|design| design["picked"] == true).collect();
    assert_eq!(
        (picked.len(), &picked[0]["tables"], &picked[0]["table_bytes"]),
        (1, &4.into(), &2_403_393_392u64.into())
    );
    assert!(designs.iter().filter(|design| design["fits"] == true).count() == 1 && designs.len() > 5);
    assert_eq!(plan["batch"]["tables"]["conditions"], 4);
    for wrong in [&["--k", "64"][..], &["--k", "40"], &["--f", "65"], &["--memory", "much"], &["--queries", "1e12"]] {
        fail_with(&[&["hamming", "plan", "--documents", "1e6"], wrong].concat(), "", 2);
    }
    let none = succeed_with(&["hamming", "plan", "--documents", "0", "--queries", "0", "--k", "7", "--f", "32"], "");
    assert!(none.contains("no tables exist for k = 7"), "{none}");
}
