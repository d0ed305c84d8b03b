//! A crawler that obeys the avoid list and patches it after each crawl never loses the last copy of
//! a page.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proptest::prelude::*;

use crate::support::program::{files, rows, succeed};

const SITES: [&str; 4] = ["a", "b", "c", "d"];

/// Page names in pairs, in which one name is a prefix of the other.
const NAMES: [&str; 6] = ["1", "11", "2", "22", "3", "33"];
const PAGES: u32 = NAMES.len() as u32;

/// Contents of one crawl: the sites that exist, the site that others link to, and the sites of
/// which two pages are fetched as probes.
#[derive(Debug, Clone)]
struct Week {
    there: Vec<usize>,
    linked: usize,
    probed: Vec<usize>,
}

fn week() -> impl Strategy<Value = Week> {
    let some = || prop::sample::subsequence(vec![0, 1, 2, 3], 0..=4);
    (prop::sample::subsequence(vec![0, 1, 2, 3], 2..=4), 0..4usize, some()).prop_map(|(there, linked, probed)| Week {
        there,
        linked,
        probed,
    })
}

fn url(site: usize, page: u32) -> String {
    format!("http://{}.example/manual/{}", SITES[site], NAMES[page as usize])
}

/// Lists of the crawler: URL prefixes, URLs, and the SURT prefixes of Heritrix.
#[derive(Debug, Default)]
struct Lists {
    prefixes: BTreeSet<String>,
    urls: BTreeSet<String>,
    surts: BTreeSet<String>,
}

impl Lists {
    fn forbid(&self, url: &str) -> bool {
        self.urls.contains(url) || self.prefixes.iter().any(|prefix| url.starts_with(prefix))
    }

    fn named(&mut self) -> [(&'static str, &mut BTreeSet<String>); 3] {
        let Lists { prefixes, urls, surts } = self;
        [("prefixes.txt", prefixes), ("urls.txt", urls), ("heritrix-surts.txt", surts)]
    }

    /// Adds the lines of `add-NAME`, and removes those of `remove-NAME`, which must be present.
    fn patch(&mut self, exports: &BTreeMap<String, Vec<u8>>) {
        for (name, list) in self.named() {
            let lines = |what: &str| String::from_utf8(exports[&format!("exports/{what}-{name}")].clone()).unwrap();
            for line in lines("remove").lines() {
                assert!(list.remove(line), "{line} is taken off a list that does not have it: {list:?}");
            }
            list.extend(lines("add").lines().map(String::from));
        }
    }
}

/// Writes a crawl of a crawler with these lists, runs over it, and returns the result.
fn crawl(folder: &Path, number: usize, week: &Week, lists: &Lists) -> String {
    let time = 1_700_000_000 + number as i64 * 7 * 86_400;
    let mut lines = String::new();
    let mut page = |url: String, html: String| {
        lines.push_str(&format!("{}\n", serde_json::json!({ "url": url, "html": html, "fetch_time": time })));
    };
    for &site in &week.there {
        for number in 0..PAGES {
            let is_probe = week.probed.contains(&site) && number < 2;
            if lists.forbid(&url(site, number)) && !is_probe {
                continue;
            }
            let text: String =
                (0..12).map(|line| format!("<p>Page {number} says {} about {line}", number * 100 + line)).collect();
            page(
                url(site, number),
                format!("<html>{text}<p><a href='{}'>next</a>", NAMES[((number + 1) % PAGES) as usize]),
            );
        }
    }
    let link = |at: u32| format!("<a href='{}'>{at}</a>", url(week.linked, at));
    page("http://home.example/".into(), (0..PAGES).map(link).collect());
    let input = folder.join(format!("week-{number}.jsonl"));
    std::fs::write(&input, lines).unwrap();
    let output = folder.join(format!("run-{number}")).to_str().unwrap().to_string();
    succeed(&["run", "--input", input.to_str().unwrap(), "--output", &output, "--workers", "1"]);
    output
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 20, ..ProptestConfig::default() })]

    #[test]
    fn an_existing_copy_of_each_page_may_be_fetched(weeks in prop::collection::vec(week(), 3..7)) {
        let folder = tempfile::tempdir().unwrap();
        let mut lists = Lists::default();
        let mut before: Option<(String, Option<String>)> = None;
        for (number, week) in weeks.iter().enumerate() {
            let result = crawl(folder.path(), number, week, &lists);
            let diff = before.map(|(old, history)| {
                let output = folder.path().join(format!("diff-{number}")).to_str().unwrap().to_string();
                let history = history.iter().flat_map(|history| ["--history", history]);
                let args = ["diff", &old, &result, "--output", &output, "--set", "recrawl.avoided=yes"];
                succeed(&args.into_iter().chain(history).collect::<Vec<_>>());
                lists.patch(&files(Path::new(&output)));
                output
            });
            if diff.is_none() {
                let exports = files(Path::new(&result));
                let lines = |name: &str| String::from_utf8(exports[name].clone()).unwrap();
                for (name, list) in lists.named() {
                    list.extend(lines(&format!("exports/{name}")).lines().map(String::from));
                }
            }
            for page in 0..PAGES {
                let may = |site: &&usize| !lists.forbid(&url(**site, page));
                prop_assert!(week.there.iter().any(|site| may(&site)), "no copy of page {page} in week {number}: {lists:?}");
            }
            // The list in force is the list of the newest result together with the entries that
            // still stand.
            if let Some(diff) = &diff {
                let own = files(Path::new(&result));
                let own = |name: &str| String::from_utf8(own[&format!("exports/{name}")].clone()).unwrap();
                let own: BTreeSet<String> = own("prefixes.txt").lines().chain(own("urls.txt").lines()).map(String::from).collect();
                let exports = files(Path::new(diff));
                let in_force = |name: &str| String::from_utf8(exports[&format!("exports/{name}")].clone()).unwrap();
                for (name, list) in lists.named() {
                    prop_assert_eq!(&in_force(name).lines().map(String::from).collect::<BTreeSet<_>>(), list, "{}", name);
                }
                // Heritrix refuses the same pages, either by a SURT prefix or by a URL.
                let beans = in_force("heritrix-beans.xml");
                for (site, page) in (0..SITES.len()).flat_map(|site| (0..PAGES).map(move |page| (site, page))) {
                    let url = url(site, page);
                    let form = url.replace(&format!("{}.example", SITES[site]), &format!("(example,{},)", SITES[site]));
                    let is_refused = lists.surts.iter().any(|line| form.starts_with(&line[1..]))
                        || beans.contains(&format!("<value>{}</value>", url.replace('.', "\\.")));
                    prop_assert_eq!(is_refused, lists.forbid(&url), "{}: {} {:?}", url, beans, &lists);
                }
                let standing = rows(diff, "entries_standing").into_iter().filter(|row| row["crawls_ago"] == 0);
                let standing: BTreeSet<String> = standing.map(|row| row["url"].as_str().unwrap().into()).collect();
                let list: BTreeSet<String> = lists.prefixes.union(&lists.urls).cloned().collect();
                prop_assert_eq!(list, own.union(&standing).cloned().collect::<BTreeSet<_>>());
            }
            before = Some((result, diff));
        }
    }
}
