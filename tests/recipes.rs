//! Recomputes the worked example of `docs/recipes.md` from the text of that page. No function of
//! the program is used, except for the hash, which is a library's.

use std::collections::{BTreeMap, BTreeSet};

use webtwin::minhash::bands::BandLayout;
use webtwin::minhash::shingles::{Shingles, Shingling};
use webtwin::minhash::signature::Permutations;
use webtwin::storage::table::TableColumn;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::hamming::table;
use crate::support::program::succeed;

/// Name, text and links.
type Page = (&'static str, &'static str, &'static [usize]);

/// The pages of the example.
const PAGES: [Page; 3] = [
    ("a", "the quick brown fox jumps over the lazy dog near the river bank at dawn", &[1]),
    ("b", "the quick brown fox jumps over the lazy cat near the river bank at dawn", &[2]),
    ("c", "a page that says nothing of the kind is far away from the others", &[0, 1]),
];

/// Dimensions of RP and HM by default.
const DIMS: u64 = 5;

fn doc_id(name: &str) -> u64 {
    xxh3_64(format!("http://e.example/{name}").as_bytes())
}

/// Returns the words of a text of the example: runs of lower-case letters between blanks.
fn terms(text: &str) -> Vec<u64> {
    text.split(' ').map(|word| xxh3_64(word.as_bytes())).collect()
}

fn phrases(text: &str, length: usize) -> Vec<u64> {
    let hash = |run: &[u64]| xxh3_64(&run.iter().flat_map(|term| term.to_le_bytes()).collect::<Vec<u8>>());
    terms(text).windows(length).map(hash).collect()
}

fn counts(features: &[u64]) -> BTreeMap<u64, u64> {
    let mut counts = BTreeMap::new();
    features.iter().for_each(|feature| *counts.entry(*feature).or_default() += 1);
    counts
}

/// Returns log2 in sixteenths, rounded down.
fn sixteenths(n: u64) -> i64 {
    ((n as f64).log2() * 16.0).floor() as i64
}

fn simhash(weighted: &[(u64, i64)]) -> u64 {
    let sum =
        |bit: u32| weighted.iter().map(move |&(hash, weight)| if hash >> bit & 1 == 1 { weight } else { -weight });
    (0..64).filter(|&bit| sum(bit).sum::<i64>() > 0).fold(0, |simhash, bit| simhash | 1 << bit)
}

/// Returns the default simhash: phrases of three words, weighted by count.
fn by_count(text: &str) -> u64 {
    simhash(&counts(&phrases(text, 3)).into_iter().map(|(hash, n)| (hash, 16 * n as i64)).collect::<Vec<_>>())
}

/// Returns the fingerprint of the preset `simhash`: phrases of two words, weighted by log and
/// inverse document frequency.
fn by_log_and_idf(text: &str) -> u64 {
    let of_pages = PAGES.map(|page| counts(&phrases(page.1, 2)));
    let pages_with = |hash: &u64| of_pages.iter().filter(|counts| counts.contains_key(hash)).count() as u64;
    let weight = |(hash, n): (u64, u64)| {
        let idf = (sixteenths(PAGES.len() as u64) - sixteenths(pages_with(&hash))).max(1);
        (hash, (16 + sixteenths(n)) * idf)
    };
    simhash(&counts(&phrases(text, 2)).into_iter().map(weight).collect::<Vec<_>>())
}

fn splitmix64(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

fn projected(text: &str) -> Vec<i64> {
    let entry = |term: u64, d: u64| {
        2 * (splitmix64(term ^ splitmix64(1 + ((d / 4) << 32))) >> (16 * (d % 4)) & 0xffff) as i64 - 65_535
    };
    (0..DIMS).map(|d| terms(text).iter().map(|&term| 16 * entry(term, d)).sum()).collect()
}

/// Returns RP of all pages in units of 10^-12.
fn rp() -> Vec<Vec<i128>> {
    let all = PAGES.map(|page| projected(page.1));
    let component = |d: usize, page: usize| {
        let values = || all.iter().map(|projected| i128::from(projected[d]));
        let (low, high) = (values().min().unwrap(), values().max().unwrap());
        (i128::from(all[page][d]) - low) * 1_000_000_000_000 / (high - low).max(1)
    };
    (0..PAGES.len()).map(|page| (0..DIMS as usize).map(|d| component(d, page)).collect()).collect()
}

/// Returns HM of all pages in units of 10^-12: the paper's sum with γ = 0.001 and three iterations.
fn hm() -> Vec<Vec<i128>> {
    let r: Vec<Vec<f64>> = rp().iter().map(|rp| rp.iter().map(|&part| part as f64 / 1e12).collect()).collect();
    let mut x = r.clone();
    for _ in 0..3 {
        let next = |page: usize, d: usize| {
            let mut children = PAGES[page].2.to_vec();
            children.sort_by_key(|&child| doc_id(PAGES[child].0));
            r[page][d] + 0.001 * children.iter().fold(0.0, |sum, &child| sum + x[child][d] * r[child][d])
        };
        x = (0..PAGES.len()).map(|page| (0..DIMS as usize).map(|d| next(page, d)).collect()).collect();
    }
    let largest = x.iter().flatten().copied().fold(0.0, f64::max);
    x.iter().map(|x| x.iter().map(|x| (x / largest * 1e12) as i128).collect()).collect()
}

fn joined(numbers: &[impl ToString]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// Returns every row of the example.
fn worked() -> Vec<(String, String)> {
    let (rp, hm) = (rp(), hm());
    let mut rows = Vec::new();
    for (at, (name, text, _)) in PAGES.iter().enumerate() {
        let mut row = |what: &str, value: String| rows.push((format!("{name}: {what}"), value));
        row("doc id", doc_id(name).to_string());
        row("first term", format!("{:016x}", terms(text)[0]));
        row("first phrase of three", format!("{:016x}", phrases(text, 3)[0]));
        row("simhash by default", format!("{:016x}", by_count(text)));
        row("simhash, preset `simhash`", format!("{:016x}", by_log_and_idf(text)));
        row("ΠD, K = 5, seed 1, by count", joined(&projected(text)));
        row("RP in 10^12ths", joined(&rp[at]));
        row("HM in 10^12ths, γ = 0.001, 3 iterations", joined(&hm[at]));
    }
    rows
}

#[test]
fn worked_example_of_the_recipes_is_reproduced() {
    let document = std::fs::read_to_string("docs/recipes.md").unwrap();
    let rows = worked().into_iter().map(|(name, value)| format!("| {name} | {value} |"));
    let missing: Vec<String> = rows.filter(|row| !document.contains(row)).collect();
    assert!(missing.is_empty(), "docs/recipes.md lacks\n{}", missing.join("\n"));
    for (name, text, _) in PAGES {
        assert!(document.contains(&format!("| {name} | `http://e.example/{name}` | `{text}` |")));
    }
}

/// Resolves `\u{...}` escapes.
fn unescaped(text: &str) -> String {
    let mut parts = text.split("\\u{");
    let first = parts.next().unwrap().to_string();
    parts.fold(first, |all, part| {
        let (code, rest) = part.split_once('}').unwrap();
        format!("{all}{}{rest}", char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap())
    })
}

#[test]
fn texts_of_the_recipes_are_folded_as_in_their_table() {
    let document = std::fs::read_to_string("docs/recipes.md").unwrap();
    let (_, table) = document.split_once("| text | folded |\n|---|---|\n").unwrap();
    let rows: Vec<&str> = table.lines().take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() >= 7);
    let mut shingles = Shingles::new(Shingling::Chars(1));
    for row in rows {
        let [text, folded] =
            row.strip_prefix("| `").unwrap().strip_suffix("` |").unwrap().split_once("` | `").unwrap().into();
        let (text, folded) = (unescaped(text), unescaped(folded));
        let set: BTreeSet<u32> =
            folded.chars().map(|letter| (splitmix64(splitmix64(letter.into())) >> 32) as u32).collect();
        assert_eq!(shingles.hashes(&text), set.into_iter().collect::<Vec<_>>(), "{row}");
    }
}

#[test]
fn program_output_equals_the_recipes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let line = |(name, text, links): &Page| {
        let links: String = links.iter().map(|&to| format!("<a href='/{}'></a>", PAGES[to].0)).collect();
        let html = format!("<p>{text}</p>{links}");
        serde_json::json!({ "url": format!("http://e.example/{name}"), "html": html }).to_string() + "\n"
    };
    std::fs::write(at("pages.jsonl"), PAGES.iter().map(line).collect::<String>()).unwrap();
    let run = |out: &str, set: &str| {
        succeed(&["run", "--input", &at("pages.jsonl"), "--output", &at(out), "--set", set]);
    };
    run("default", "similar.by=hamming");
    run("preset", "preset=simhash");
    run("signatures", "kind=signatures");

    let simhashes = |out: &str| -> BTreeMap<u64, Option<u64>> {
        let pages = table(&at(out), "pages");
        let simhashes = pages.u64_where("simhash", "has_simhash").unwrap();
        pages.u64("doc_id").unwrap().iter().copied().zip(simhashes).collect()
    };
    let expected =
        |of: fn(&str) -> u64| PAGES.iter().map(|page| (doc_id(page.0), Some(of(page.1)))).collect::<BTreeMap<_, _>>();
    assert_eq!(simhashes("default"), expected(by_count));
    assert_eq!(simhashes("preset"), expected(by_log_and_idf));

    let signatures = table(&at("signatures"), "signatures");
    let ids = signatures.u64("doc_id").unwrap();
    for (kind, expected) in [("rp", rp()), ("hm", hm())] {
        for d in 0..DIMS as usize {
            let (_, column) = signatures.columns.iter().find(|(name, _)| *name == format!("{kind}_{d}")).unwrap();
            let TableColumn::F64(values) = column else { panic!("{kind}_{d} is a number") };
            for (page, expected) in PAGES.iter().zip(&expected) {
                let row = ids.iter().position(|&id| id == doc_id(page.0)).unwrap();
                assert_eq!(values[row], expected[d] as f64 / 1e12, "{kind}_{d} of {}", page.0);
            }
        }
    }
}

#[test]
fn shingles_minima_and_keys_equal_the_recipes() {
    let high = |x: u64| (x >> 32) as u32;
    let append = |hash: u64, unit: &u64| hash.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(*unit);
    let shingle = |units: &[u64]| high(splitmix64(units.iter().fold(0, append)));
    for (_, text, _) in PAGES {
        let letters: Vec<u64> = text.chars().map(|letter| splitmix64(letter.into())).collect();
        for (shingling, units, length) in [
            (Shingling::Words(5), terms(text), 5),
            (Shingling::Tokens(3), terms(text), 3),
            (Shingling::Chars(20), letters, 20),
            (Shingling::Words(100), terms(text), terms(text).len()),
        ] {
            let set: BTreeSet<u32> = units.windows(length).map(shingle).collect();
            let set: Vec<u32> = set.into_iter().collect();
            assert_eq!(Shingles::new(shingling).hashes(text), set, "{shingling}");

            let permuted = |i: u64, x: u32| (x ^ high(splitmix64(2 * i))).wrapping_mul(high(splitmix64(2 * i + 1)) | 1);
            let minima: Vec<u32> =
                (0..128).map(|i| set.iter().map(|&shingle| permuted(i, shingle)).min().unwrap()).collect();
            let mut signature = Vec::new();
            Permutations::new(128).signature(&set, &mut signature);
            assert_eq!(signature, minima, "{shingling}");

            let bytes = |rows: &[u32]| rows.iter().flat_map(|row| row.to_le_bytes()).collect::<Vec<u8>>();
            let keys: Vec<u64> =
                minima.chunks_exact(6).zip(1..).map(|(rows, j)| xxh3_64_with_seed(&bytes(rows), j)).collect();
            assert_eq!(BandLayout { bands: 21, rows: 6 }.keys(&signature).collect::<Vec<_>>(), keys);
        }
    }
}
