use std::collections::BTreeMap;

use proptest::prelude::*;
use webtwin::clusters::union_find::UnionFind;
use webtwin::dataflow::memory_estimate::MemoryEstimate;
use webtwin::dataflow::reading::worker_pages::WorkerPages;
use webtwin::dataflow::study::find;
use webtwin::engine::{ClusterLayout, run};
use webtwin::ids::{Number, Page, splitmix64};
use webtwin::job::resolve;
use webtwin::overlap::prune::PageSet;
use webtwin::study::matches::DocumentMatch;
use webtwin::study::paragraphs::{mark, whole};
use webtwin::study::report::{Findings, NEAR_PERCENTAGES, near, tables};
use webtwin::study::steps::by_steps;

use crate::support::program::{fail, files, succeed};

/// Names of the shingle paragraphs of a page; empty if the page is not a document.
type Text = Vec<u64>;

fn marks(text: &Text) -> Vec<u64> {
    let mut marks: Vec<u64> = text.iter().map(|&name| splitmix64(name)).collect();
    mark(&mut marks);
    marks
}

fn page() -> impl Strategy<Value = Page> {
    (0u32..40).prop_map(Page)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// \[PBZ06\] sections 3 and 4.1: the workers together find the same as a comparison of every
    /// pair of pages.
    #[test]
    fn study_of_all_workers_equals_a_comparison_of_every_pair(
        texts in prop::collection::vec(prop::collection::vec(0u64..6, 0..9), 1..40),
        links in prop::collection::btree_set((page(), page()), 0..60),
        steps in 1u32..9, seed in prop::option::of(page()), workers in 1usize..4
    ) {
        let pages = texts.len();
        let inside = |page: &Page| page.index() < pages;
        let links: Vec<(Page, Page)> = links.into_iter().filter(|(a, b)| inside(a) && inside(b)).collect();
        let seed = seed.filter(inside);
        let set = format!("study.steps={steps}");
        let job = resolve("", "preset = \"study\"", &[set]).unwrap();
        let inputs = (texts.clone(), links.clone());
        let parts = run(&ClusterLayout::local(workers), 0, [0; 32], move |net| {
            let is_own = |page: Page| page.index() % net.peers() == net.index();
            let mut local_pages = WorkerPages::default();
            for (page, text) in Page::first(pages).zip(&inputs.0).filter(|(page, _)| is_own(*page)) {
                let marks = marks(text);
                local_pages.exact.push(whole(&marks));
                local_pages.fprints.push(&marks)?;
                local_pages.pages.push(page);
            }
            let links = inputs.1.iter().copied().filter(|link| is_own(link.0)).map(<[Page; 2]>::from).collect();
            let findings_found = find(net, &job, &local_pages, pages, MemoryEstimate::default(), links, seed)?;
            let near: Vec<_> = findings_found.near.iter().map(|near| (**near).clone()).collect();
            Ok(((*findings_found.tables).clone(), near, findings_found.web.seed, findings_found.web.reach.clone()))
        }).unwrap();
        let (got_tables, got_near, got_seed, reach) = &parts[0];
        prop_assert!(parts.iter().all(|part| part == &parts[0]));

        let documents = PageSet::new(pages, |page| !texts[page].is_empty());
        let mut first: BTreeMap<Vec<u64>, Page> = BTreeMap::new();
        let same: Vec<Page> = texts.iter().zip(Page::first(pages)).map(|(text, page)| {
            if text.is_empty() { page } else { *first.entry(marks(text)).or_insert(page) }
        }).collect();
        let (mut matches, mut sets) = (Vec::new(), NEAR_PERCENTAGES.map(|_| UnionFind::new(pages)));
        let with_text = || Page::first(pages).zip(&texts).filter(|(_, text)| !text.is_empty());
        for (d, left) in with_text() {
            for (e, right) in with_text().filter(|&(e, _)| e != d) {
                let found_in = left.len() == right.len() && left.iter().all(|paragraph| right.contains(paragraph));
                if found_in && same[d] == d && same[e] == e {
                    matches.push(DocumentMatch { document: d, within: e });
                }
                let mut left_over = right.clone();
                let shared = left.iter().filter(|paragraph| {
                    left_over.iter().position(|other| other == *paragraph).map(|at| left_over.remove(at)).is_some()
                }).count();
                for (sets, percent) in sets.iter_mut().zip(NEAR_PERCENTAGES) {
                    if shared * 100 >= percent as usize * left.len().max(right.len()) {
                        sets.union(d.0, e.0);
                    }
                }
            }
        }
        // Near-duplicates are the matches that share enough paragraphs, together with those that
        // the m steps find. Not every match is one.
        let pages_of: Vec<Page> = Page::first(pages).filter(|&page| documents.contains(page)).collect();
        let in_steps = by_steps(&texts.iter().filter(|text| !text.is_empty()).cloned().collect::<Vec<_>>(), steps);
        for (at, &first) in in_steps.labels.iter().enumerate() {
            sets.iter_mut().for_each(|sets| _ = sets.union(pages_of[at].0, pages_of[first].0));
        }
        for (sets, (got, percent)) in sets.into_iter().zip(got_near.iter().zip(NEAR_PERCENTAGES)) {
            let labels: Vec<Page> = sets.labels().into_iter().map(Page).collect();
            prop_assert_eq!(got, &near(&labels, &documents, percent));
        }
        let mut reached = PageSet::new(pages, |page| Some(page) == *got_seed);
        for _ in 0..pages {
            let before = reached.clone();
            links.iter().filter(|link| before.contains(link.0)).for_each(|link| reached.insert(link.1));
        }
        prop_assert!(seed.is_none() || seed == *got_seed);
        prop_assert_eq!(reach.connected, reached.count());
        let findings = Findings { same_text: &same, matches: &matches, documents: &documents, reachable: &reached, steps };
        prop_assert_eq!(got_tables, &tables(&findings));
    }
}

const CRAWL: &str = "synth://?pages=800&seed=7";

#[test]
fn a_study_has_the_same_bytes_on_any_workers() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let run = ["run", "--job", "jobs/study.toml", "--input", CRAWL];
    for workers in ["1", "2", "3"] {
        let means = ["--set", "effort.shard_bytes=65536", "--workers", workers, "--output", &at(workers)];
        succeed(&[&run[..], &means].concat());
    }
    let one = files(&folder.path().join("1"));
    assert!(one.contains_key("summary.json") && one.contains_key("rejected/part-00000.parquet"));
    for other in ["2", "3"] {
        assert!(files(&folder.path().join(other)) == one, "{other}");
    }
    let nowhere = ["--set", "study.seed=http://nowhere.example/", "--output", &at("no")];
    assert!(fail(&[&run[..], &nowhere].concat(), 2).contains("study.seed"));
    assert!(fail(&["run", "--set", "kind=study", "--input", CRAWL, "--output", &at("no")], 2).contains("preset"));
}
