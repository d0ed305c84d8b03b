//! The index: damage to any column causes an error or changes no answer. Damage to the manifest
//! ends no process.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::OnceLock;

use super::{damaged, files, first, made};
use webtwin_view::lookup::LookupIndex;
use webtwin_view::lookup::answer::LookupSession;
use webtwin_view::lookup::{lists, sets};

struct Whole {
    folder: PathBuf,
    files: Vec<(String, Vec<u8>)>,
    urls: Vec<String>,
    answers: Vec<String>,
}

fn whole() -> &'static Whole {
    static WHOLE: OnceLock<Whole> = OnceLock::new();
    WHOLE.get_or_init(|| {
        let folder = made::folder();
        let files = files(&folder.join("index"));
        let index = LookupIndex::open(folder.join("index").to_str().expect("the path is UTF-8"))
            .expect("the index was written by this target");
        let mut urls: Vec<String> =
            (0..index.pages() as u32).map(|rank| index.url(rank).expect("the page is in the index")).collect();
        urls.push("http://nobody.example/".into());
        urls.extend(index.prefix(0).ok().map(|prefix| prefix + "never-crawled"));
        let answers =
            answers(&index, &urls).into_iter().map(|answer| answer.expect("an intact index answers")).collect();
        Whole { folder: folder.join("damaged"), files, urls, answers }
    })
}

/// Returns the answers to all queries of an index as text.
fn answers(index: &LookupIndex, urls: &[String]) -> Vec<Result<String, ()>> {
    fn message(answer: Result<impl Debug, impl Debug>) -> Result<String, ()> {
        answer.map(|answer| format!("{answer:?}")).map_err(drop)
    }
    let mut asker = LookupSession::new(index, None);
    let mut results: Vec<Result<String, ()>> = urls.iter().map(|url| message(asker.answer(url))).collect();
    results.extend((0..index.pages() as u32).map(|rank| message(index.url(rank))));
    results.extend((0..index.pages() as u32).map(|rank| message(index.content(rank))));
    for words in ["", "example", "html example"] {
        let request = lists::ListRequest { words, from: 0, limit: 50 };
        results.push(message(lists::sets(index, request)));
        results.push(message(lists::originals(index, request)));
    }
    for rank in 0..index.pages() as u32 {
        let exact = index.content(rank).map(|content| content.exact);
        results.push(message(exact.and_then(|exact| index.with_text(exact, 100))));
        let id = index.page(rank).map(|page| page.doc_id);
        results.push(match id.and_then(|id| sets::set(index, id, 0, 100)) {
            Ok(set) => Ok(serde_json::to_string(&set).expect("an answer can be serialised")),
            Err(_) => Err(()),
        });
    }
    results.extend((0..index.prefixes()).map(|number| message(index.prefix(number))));
    if let Some(tables) = index.simhashes() {
        results.extend((0..4u64).map(|n| {
            message(tables.near(n.wrapping_mul(0x9e37_79b9_7f4a_7c15), 2).map(|mut near| {
                near.sort_unstable_by_key(|one| one.fingerprint);
                near.iter().map(|one| (one.fingerprint, one.distance)).collect::<Vec<_>>()
            }))
        }));
    }
    results
}

/// Checks one input of the fuzzer.
pub fn check(data: &[u8]) {
    let Whole { folder, files, urls, answers: right } = whole();
    let Some((which, how)) = first(data) else { return };
    let which = which % files.len();
    std::fs::create_dir_all(folder).expect("the disk has space");
    for (number, (name, bytes)) in files.iter().enumerate() {
        let path = folder.join(name);
        match number == which {
            true => std::fs::write(path, damaged(bytes, how)).expect("the disk has space"),
            // The previous input has left the intact file if it damaged another one.
            false if std::fs::read(&path).is_ok_and(|found| found == *bytes) => {}
            false => std::fs::write(path, bytes).expect("the disk has space"),
        }
    }
    let Ok(index) = LookupIndex::open(folder.to_str().expect("the path is UTF-8")) else { return };
    drop(index.verify());
    let results = answers(&index, urls);
    if files[which].0 != "manifest.json" {
        assert_eq!(results.len(), right.len());
        for (result, right) in results.iter().zip(right) {
            assert!(
                result.as_ref().is_err() || result.as_ref() == Ok(right),
                "{}: {result:?}, not {right}",
                files[which].0
            );
        }
    }
}
