use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::json;

use crate::support::program::{assert_same_on_any_workers, rows, succeed};

/// A page of a made-up site: its URL, and all of its HTML.
type Page = (String, String);

/// Returns the sentence with a number; no other number has the same one.
fn sentence(number: usize) -> String {
    const WORDS: [&str; 16] = [
        "river", "stone", "window", "garden", "letter", "bridge", "copper", "winter", "harbour", "market", "silver",
        "forest", "candle", "mountain", "paper", "engine",
    ];
    let word = |place: usize| WORDS[(number.wrapping_mul(2_654_435_761) >> place) & 15];
    format!("The {} and the {} of {} {} see a {}.", word(2), word(5), word(7), number, word(11))
}

/// Returns a page with the frame of its site: a menu and a footer around a title and paragraphs.
fn framed(title: &str, paragraphs: &[String], links: &[String]) -> String {
    let menu: String =
        ["Home", "News", "About us", "Contact"].iter().map(|entry| format!("<li><a href='/'>{entry}</a>")).collect();
    let links: String = links.iter().map(|link| format!("<li><a href='{link}'>next</a>")).collect();
    let body: String = paragraphs.iter().map(|paragraph| format!("<p>{paragraph}")).collect();
    format!("<title>{title}</title><ul>{menu}</ul><h1>{title}</h1>{body}<ul>{links}</ul><p>All rights reserved.")
}

/// Returns an article as its site shows it in the `view`-th request, with a counter and an
/// advertisement.
fn article(number: usize, view: usize) -> String {
    let mut paragraphs: Vec<String> = (0..24).map(|line| sentence(1_000 * (number + 1) + line)).collect();
    paragraphs.push(format!("Read {} times.", 17 * view + number));
    paragraphs.insert(3, format!("Advertisement: {}", sentence(view % 3)));
    framed(&format!("Article about {}", sentence(number)), &paragraphs, &["/a".into(), "/b".into()])
}

fn write(folder: &Path, pages: &[Page]) -> String {
    let line = |(url, html): &Page| format!("{}\n", json!({"url": url, "html": html}));
    let path = folder.join("crawl.jsonl");
    std::fs::write(&path, pages.iter().map(line).collect::<String>()).unwrap();
    path.to_str().unwrap().to_string()
}

/// Returns the clusters of the pages by default settings as sets of URLs, and the kind of each page
/// in a cluster.
fn clusters(pages: &[Page], settings: &[&str]) -> (BTreeSet<BTreeSet<String>>, BTreeMap<String, String>) {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (write(folder.path(), pages), folder.path().join("out").to_str().unwrap().to_string());
    succeed(&[&["run", "--input", &input, "--output", &output], settings].concat());
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_string();
    let urls: BTreeMap<String, String> =
        rows(&output, "pages").iter().map(|row| (text(&row["doc_id"]), text(&row["url"]))).collect();
    let (mut sets, mut kinds) = (BTreeMap::<String, BTreeSet<String>>::new(), BTreeMap::new());
    for row in rows(&output, "clusters") {
        let url = &urls[&text(&row["doc_id"])];
        sets.entry(text(&row["cluster"])).or_default().insert(url.clone());
        kinds.insert(url.clone(), text(&row["kind"]));
    }
    (sets.into_values().collect(), kinds)
}

fn urls(pages: &[Page]) -> BTreeSet<String> {
    pages.iter().map(|page| page.0.clone()).collect()
}

#[test]
fn an_article_with_twelve_session_ids_is_one_page() {
    let views: Vec<Page> =
        (0..12).map(|view| (format!("http://news.example/story?sid={view}"), article(0, view))).collect();
    let (sets, kinds) = clusters(&views, &[]);
    assert_eq!(sets, [urls(&views)].into());
    assert!(kinds.values().all(|kind| kind == "page"));
    // Without `overlap.views` these views are not found.
    assert!(clusters(&views, &["--set", "overlap.views=0"]).0.is_empty());
}

#[test]
fn orders_of_a_list_and_urls_of_a_message_are_joined_and_messages_stay_apart() {
    let message = |number: usize| (0..18).map(|line| sentence(500 * (number + 1) + line)).collect::<Vec<String>>();
    let link = |number: usize| format!("/message?id={number}");
    let links: Vec<String> = (0..5).map(link).collect();
    let entries: Vec<String> = (0..14).map(sentence).collect();
    let list = |order: usize| {
        let mut entries = entries.clone();
        entries.rotate_left(order * 3);
        (format!("http://forum.example/list?order={order}"), framed("All messages", &entries, &links))
    };
    let lists: Vec<Page> = (0..4).map(list).collect();
    let (mut pages, mut expected) = (lists.clone(), BTreeSet::from([urls(&lists)]));
    for number in 0..5 {
        let urls_of = |query: &str| {
            let html = framed(&format!("Message {}", sentence(number)), &message(number), &links);
            (
                format!("http://forum.example/message?id={number}{query}"),
                html.replace("rights", &format!("rights{query}")),
            )
        };
        let both = [urls_of(""), urls_of("&thread=all")];
        expected.insert(urls(&both));
        pages.extend(both);
    }
    assert_eq!(clusters(&pages, &[]).0, expected);
}

#[test]
fn wrong_urls_with_a_page_each_are_placeholders() {
    let missing = |number: usize| {
        let path = format!("/old/{}-{number}.html", ["tea", "coffee", "cocoa"][number % 3]);
        let paragraphs =
            [format!("The page {path} was not found."), "Try our search, or begin at the home page.".into()];
        (format!("http://shop.example{path}"), framed("Page not found", &paragraphs, &[]))
    };
    let missing: Vec<Page> = (0..30).map(missing).collect();
    let (sets, kinds) = clusters(&missing, &[]);
    assert_eq!(sets, [urls(&missing)].into());
    assert!(kinds.values().all(|kind| kind == "placeholder"), "{kinds:?}");

    // The placeholders are also recognised among articles. No article is taken for a placeholder,
    // not even one about missing pages.
    let mut pages: Vec<Page> = missing.clone();
    pages.extend((0..60).map(|number| (format!("http://shop.example/article/{number}"), article(number, 0))));
    let about = framed("On links", &[sentence(1), "The page /a was not found.".into(), sentence(2)], &[]);
    pages.push(("http://shop.example/on-links".into(), about));
    assert_eq!(clusters(&pages, &[]).0, [urls(&missing)].into());
}

#[test]
fn hosts_of_one_domain_show_one_site_and_other_hosts_do_not() {
    let article_on = |host: &str, number: usize| {
        let html = article(number, 0).replace("Article about", &format!("{host}: article about"));
        (format!("{host}/article/{number}"), html)
    };
    let hosts = ["http://shop.example", "https://shop.example", "http://staging.shop.example"];
    let (mut pages, mut expected) = (Vec::new(), BTreeSet::new());
    for number in 0..20 {
        let views: Vec<Page> = hosts.iter().map(|host| article_on(host, number)).collect();
        expected.insert(urls(&views));
        pages.extend(views);
    }
    assert_eq!(clusters(&pages, &["--set", "overlap.min_shared=1000"]).0, expected);
    let elsewhere = [article_on(hosts[0], 1), article_on("http://shop.invalid", 1)];
    assert!(clusters(&elsewhere, &["--set", "overlap.min_shared=1000"]).0.is_empty());
}

#[test]
fn page_with_a_canonical_link_is_a_copy_if_the_texts_agree() {
    let calling = |canonical: &str, html: String| format!("<link rel=canonical href='{canonical}'>{html}");
    let short = |number: usize, lines: usize, title: &str| {
        let lines: Vec<String> = (0..lines).map(|line| sentence(1_000 * (number + 1) + line)).collect();
        framed(title, &lines, &[])
    };
    let article = ("http://a.example/long/article/7".to_string(), short(7, 20, "An article"));
    let print = ("http://b.example/p7".to_string(), calling(&article.0, short(7, 14, "For the printer")));
    let first = ("http://a.example/list".to_string(), short(40, 20, "List"));
    let second = ("http://a.example/list/2".to_string(), calling(&first.0, short(41, 20, "List")));
    let pages = [article.clone(), print.clone(), first, second];
    let settings = ["--set", "overlap.min_shared=1000"];
    assert_eq!(clusters(&pages, &settings).0, [urls(&[article.clone(), print.clone()])].into());

    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (write(folder.path(), &pages), folder.path().join("out").to_str().unwrap().to_string());
    succeed(&[&["run", "--input", &input, "--output", &output], &settings[..]].concat());
    let avoid = rows(&output, "avoid");
    assert_eq!(avoid.len(), 1);
    assert_eq!(avoid[0]["url"], json!(print.0));
    assert_eq!((&avoid[0]["keep_url"], &avoid[0]["lost_by"]), (&json!(article.0), &json!("canonical")));
    assert_eq!(rows(&output, "pairs")[0]["measure"], json!("declared"));
    let summary: serde_json::Value =
        serde_json::from_slice(&std::fs::read(Path::new(&output).join("summary.json")).unwrap()).unwrap();
    assert_eq!((&summary["views"]["declared"], &summary["views"]["contradicted"]), (&json!(1), &json!(1)));
}

#[test]
fn exactly_all_views_of_many_articles_are_found() {
    let (mut pages, mut expected) = (Vec::new(), BTreeSet::new());
    for number in 0..200 {
        let url = |view: usize| format!("http://h{}.example/article/{number}?view={view}", number % 10);
        let views: Vec<Page> = (0..1 + number * 7 % 12).map(|view| (url(view), article(number, view))).collect();
        if views.len() > 1 {
            expected.insert(urls(&views));
        }
        pages.extend(views);
    }
    let clusters_found = clusters(&pages, &[]).0;
    assert_eq!(clusters_found, expected);
}

#[test]
fn views_are_the_same_on_any_workers_reported_and_explained() {
    let folder = tempfile::tempdir().unwrap();
    let article =
        |number: usize| (0..9).map(move |view| (format!("http://n.example/{number}?s={view}"), article(number, view)));
    let pages: Vec<Page> = (0..5).flat_map(article).collect();
    let input = write(folder.path(), &pages);
    let (output, report) = assert_same_on_any_workers(folder.path(), "views", &["run", "--input", &input]);
    assert!(report.contains("40 pairs of views"), "{report}");
    let report = succeed(&["explain", &output, &pages[0].0, &pages[8].0]);
    assert!(report.contains("views") && report.contains("with one title"), "{report}");
}
