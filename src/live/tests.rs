//! Tests of the public interface of the index: pages are added, answers and advice are compared,
//! and an index that is opened again must give the same ones.

use std::path::Path;

use proptest::prelude::*;
use webtwin_job::Job;
use webtwin_pages::record::{PageForm, RawPage};
use webtwin_pages::url::CanonicalUrl;

use crate::advice::{Advice, AdvisedAction, CopyGroupKind};
use crate::{AddedPageAnswer, Digester, LiveIndex, PageState, UrlVerdict};

/// Returns a page of a manual: the boilerplate of the site, and forty lines of its own.
fn html(site: &str, title: &str, seed: u64) -> String {
    let lines: String =
        (0..40).map(|line| format!("<p>Line {line} of {seed} says {}.</p>", seed * 41 + line)).collect();
    format!("<title>{title}</title><body><p>Menu of {site}</p><p>Imprint of {site}</p>{lines}")
}

struct Crawl {
    index: LiveIndex,
    digester: Digester,
}

impl Crawl {
    fn open_crawl(folder: &Path) -> Crawl {
        let job = Job::default();
        Crawl { index: LiveIndex::open(folder, &job).unwrap(), digester: Digester::new(&job) }
    }

    fn add(&mut self, url: &str, html: &str) -> AddedPageAnswer {
        let page = RawPage::new(url, html.as_bytes().to_vec(), PageForm::Html);
        let digest = self.digester.digest(&page).unwrap().unwrap();
        self.index.add(digest).unwrap()
    }

    fn sync(&mut self) {
        if let Some(unsynced) = self.index.flush().unwrap() {
            unsynced.sync().unwrap();
            self.index.synced(&unsynced).unwrap();
        }
    }

    fn ask(&self, url: &str) -> UrlVerdict {
        self.index.ask(&CanonicalUrl::parse(url).unwrap()).unwrap()
    }

    /// Adds a chapter of a manual, with a URL below a prefix.
    fn chapter(&mut self, prefix: &str, chapter: u64, ending: &str) -> AddedPageAnswer {
        let text = html(prefix, &format!("Chapter {chapter}"), chapter);
        self.add(&format!("{prefix}c{chapter}{ending}"), &text)
    }
}

#[test]
fn mirror_is_detected_within_some_tens_of_pages() {
    let folder = tempfile::tempdir().unwrap();
    let mut crawl = Crawl::open_crawl(folder.path());
    let (first, second) = ("http://www.a.example/manual/", "http://mirror.example/pub/a/manual/");
    for chapter in 0..25 {
        assert_eq!(crawl.chapter(first, chapter, ".html").state, PageState::New);
        let answer = crawl.chapter(second, chapter, ".htm");
        assert_eq!((answer.state, answer.near.unwrap().url), (PageState::Near, format!("{first}c{chapter}.html")));
    }
    // Advice is not published before it is on disk.
    assert!(crawl.index.advice(0).is_empty());
    crawl.sync();
    let [
        Advice {
            sequence: 1,
            kind: CopyGroupKind::Mirror,
            action: AdvisedAction::Rewrite,
            prefix,
            of: Some(of),
            pages,
            ..
        },
    ] = crawl.index.advice(0)
    else {
        panic!("one mirror: {:?}", crawl.index.advice(0))
    };
    // Both folders have equal names, so the mirror is as wide as the common folder of the matches.
    assert_eq!((prefix.as_str(), of.as_str()), (second, first));
    assert!(*pages <= 25, "{pages}");
    let verdicts: Vec<UrlVerdict> = (25..525).map(|chapter| crawl.ask(&format!("{second}c{chapter}.htm"))).collect();
    let rewrite_verdict = UrlVerdict::Rewrite { why: "mirror", url: format!("{first}c25.html") };
    assert!(verdicts[0] == rewrite_verdict || verdicts[0] == UrlVerdict::Fetch { why: "probe" }, "{:?}", verdicts[0]);
    let probes = verdicts.iter().filter(|verdict| **verdict == UrlVerdict::Fetch { why: "probe" }).count();
    assert!((1..=25).contains(&probes), "{probes} of 500 are probes");
    // A page that the kept mirror does not have is fetched from the other one.
    let number =
        (25..).find(|n| matches!(crawl.ask(&format!("{second}c{n}.htm")), UrlVerdict::Rewrite { .. })).unwrap();
    crawl.index.note_missing(&CanonicalUrl::parse(&format!("{first}c{number}.html")).unwrap());
    assert_eq!(crawl.ask(&format!("{second}c{number}.htm")), UrlVerdict::Fetch { why: "new" });
    let collection = crawl.chapter(second, 1000, ".htm").collection.unwrap();
    assert_eq!((collection.prefix.as_str(), collection.kept.as_str()), (second, first));
    // A repeated page changes nothing.
    let figures = crawl.index.figures();
    assert_eq!(crawl.chapter(second, 1000, ".htm").state, PageState::Again);
    assert_eq!(crawl.index.figures(), figures);
}

#[test]
fn wrong_advice_is_withdrawn() {
    let folder = tempfile::tempdir().unwrap();
    let mut crawl = Crawl::open_crawl(folder.path());
    let (first, second) = ("http://www.a.example/", "http://www.b.example/");
    for chapter in 0..20 {
        crawl.chapter(first, chapter, ".html");
        crawl.chapter(second, chapter, ".html");
    }
    for chapter in 20..80 {
        crawl.chapter(first, chapter, ".html");
        let counterpart = html(second, &format!("Part {chapter}"), 9_000 + chapter);
        crawl.add(&format!("{second}c{chapter}.html"), &counterpart);
    }
    crawl.sync();
    let given_advice: Vec<(u64, AdvisedAction, Option<u64>)> =
        crawl.index.advice(0).iter().map(|advice| (advice.sequence, advice.action, advice.withdraws)).collect();
    assert_eq!(given_advice, [(1, AdvisedAction::Rewrite, None), (2, AdvisedAction::Fetch, Some(1))]);
    assert_eq!(crawl.ask(&format!("{second}c99.html")), UrlVerdict::Fetch { why: "new" });
    assert_eq!(crawl.ask(&format!("{first}c99.html")), UrlVerdict::Fetch { why: "new" });
    assert_eq!(crawl.index.advice(1).len(), 1);
}

#[test]
fn many_versions_on_one_host_are_mirrors_and_not_a_trap() {
    let folder = tempfile::tempdir().unwrap();
    let mut crawl = Crawl::open_crawl(folder.path());
    for chapter in 0..20 {
        for version in 0..30 {
            let text = html("docs", &format!("Chapter {chapter}"), chapter);
            crawl.add(&format!("http://docs.example/v{version}/c{chapter}.html"), &text);
        }
    }
    crawl.sync();
    let advice = crawl.index.advice(0);
    assert!(advice.len() == 29 && advice.iter().all(|advice| advice.kind == CopyGroupKind::Mirror), "{advice:?}");
    assert!(crawl.ask("http://docs.example/blog/1.html") == UrlVerdict::Fetch { why: "new" });
}

#[test]
fn sessions_make_a_url_rule() {
    let folder = tempfile::tempdir().unwrap();
    let mut crawl = Crawl::open_crawl(folder.path());
    for chapter in 0..200 {
        let text = html("shop", &format!("Thing {chapter}"), chapter);
        crawl.add(&format!("http://shop.example/thing/{chapter}"), &text);
        let answer = crawl.add(&format!("http://shop.example/thing/{chapter}?sid={}", 77 * chapter + 1), &text);
        assert_eq!(answer.state, PageState::Exact);
        crawl.sync();
    }
    let is_known = |crawl: &Crawl| crawl.index.advice(0).iter().any(|advice| advice.kind == CopyGroupKind::UrlRule);
    for _ in 0..500 {
        if is_known(&crawl) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        crawl.index.tend().unwrap();
        crawl.sync();
    }
    assert!(is_known(&crawl), "{:?}", crawl.index.advice(0));
    let verdict = crawl.ask("http://shop.example/thing/7?sid=abc");
    let skip = UrlVerdict::Skip { why: "url_rule", url: Some("http://shop.example/thing/7".into()) };
    assert!(verdict == skip || verdict == UrlVerdict::Fetch { why: "probe" }, "{verdict:?}");
}

#[test]
fn another_process_or_other_settings_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let crawl = Crawl::open_crawl(folder.path());
    let why = LiveIndex::open(folder.path(), &Job::default()).unwrap_err().to_string();
    assert!(why.contains("another process"), "{why}");
    drop(crawl);
    let mut job = Job::default();
    job.overlap.min_resemblance = 0.9;
    let why = LiveIndex::open(folder.path(), &job).unwrap_err().to_string();
    assert!(why.contains("other settings"), "{why}");
}

#[test]
fn index_stays_within_its_memory() {
    let folder = tempfile::tempdir().unwrap();
    let mut job = Job::default();
    job.effort.memory_bytes = 90_000_000;
    let mut crawl = Crawl { index: LiveIndex::open(folder.path(), &job).unwrap(), digester: Digester::new(&job) };
    let mut pages = 0;
    let why = loop {
        let page =
            RawPage::new(format!("http://a.example/{pages}"), format!("Text {pages}").into_bytes(), PageForm::Text);
        let digest = crawl.digester.digest(&page).unwrap().unwrap();
        match crawl.index.add(digest) {
            Ok(_) => pages += 1,
            Err(why) => break why.to_string(),
        }
    };
    assert!(why.contains("effort.memory_bytes") && pages > 1_000, "{why} after {pages}");
    crawl.sync();
    drop(crawl);
    // With more memory, the index continues where it stopped.
    let mut crawl = Crawl::open_crawl(folder.path());
    assert_eq!(crawl.index.figures().pages, pages);
    assert_eq!(crawl.chapter("http://a.example/", 1, ".html").state, PageState::New);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    /// Adds pages of four hosts in any order: some have the text of others, some are repeated, and
    /// some are missing.
    #[test]
    fn reopened_index_answers_the_same(pages in prop::collection::vec((0_u64..4, 0_u64..40, 0_u64..12), 1..300)) {
        let folder = tempfile::tempdir().unwrap();
        let (mut crawl, mut answers) = (Crawl::open_crawl(folder.path()), Vec::new());
        for (at, &(host, chapter, kind)) in pages.iter().enumerate() {
            let prefix = format!("http://h{host}.example/{}", if host == 3 { "doc/" } else { "" });
            let url = format!("{prefix}c{chapter}.html");
            match kind {
                0 => drop(crawl.add(&url, &html(&prefix, "Other", 100 + at as u64))),
                1 => crawl.index.note_missing(&CanonicalUrl::parse(&url).unwrap()),
                2 => crawl.index.note_file(&url, at as u64),
                _ => drop(crawl.chapter(&prefix, chapter, ".html")),
            }
            if kind == 3 {
                crawl.sync();
            }
            answers.push(url);
        }
        crawl.sync();
        let reports = |crawl: &Crawl| -> Vec<_> {
            let known = |url: &String| crawl.index.known(&CanonicalUrl::parse(url).unwrap()).unwrap();
            let asked = (0..40).map(|chapter| crawl.ask(&format!("http://h2.example/c{chapter}.html")));
            let files: Vec<(String, u64)> = crawl.index.files().map(|(name, at)| (name.to_string(), at)).collect();
            vec![
                format!("{:?}", crawl.index.figures()),
                format!("{:?}", crawl.index.advice(0)),
                format!("{:?}", answers.iter().map(known).collect::<Vec<_>>()),
                format!("{:?}", asked.collect::<Vec<_>>()),
                format!("{files:?}"),
            ]
        };
        let before = reports(&crawl);
        drop(crawl);
        prop_assert_eq!(before, reports(&Crawl::open_crawl(folder.path())));
    }
}
