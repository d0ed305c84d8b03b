//! Comparisons of synthetic results, checked against nested loops over their pages.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use proptest::prelude::*;

use super::moved::COMMON;
use super::pages::{MAX_NEAR_BITS, PageChange, PageContent, REWRITTEN_BITS, what};
use super::past_texts::PastIntervals;
use super::sites::{Site, SiteId, SiteMove, SiteVotes, Sites, between, site_id, split};
use super::two_crawls::{CompareSettings, diff};
use super::writer::ResultWriter;
use webtwin_base::ids::{DocId, doc_id};
use webtwin_job::{AvoidancePolicy, Job, Recrawl};
use webtwin_results::FinishedRun;
use webtwin_storage::location::Location;
use webtwin_storage::manifest::Manifest;
use webtwin_storage::table::{Table, TableColumn};
use webtwin_storage::texts::StringTable;

/// Pages by URL.
type Crawl = BTreeMap<String, PageContent>;

fn texts<'a>(values: impl Iterator<Item = &'a str>) -> TableColumn {
    TableColumn::Text(values.into_iter().collect())
}

/// Row of a synthetic `avoid`: page, kept page, reason.
type Skip<'a> = (&'a str, &'a str, &'a str);

/// Writes a synthetic result.
fn result(folder: &Path, crawl: &Crawl, skip: &[Skip<'_>], rejected_urls: &[(&str, &str)], job: &Job) -> String {
    let mut pages: Vec<(DocId, &String, &PageContent)> =
        crawl.iter().map(|(url, page)| (doc_id(url), url, page)).collect();
    pages.sort_by_key(|row| row.0);
    let ids =
        |value: &dyn Fn(&(DocId, &String, &PageContent)) -> u64| TableColumn::Id(pages.iter().map(value).collect());
    let table = Table::new([
        ("doc_id", ids(&|row| row.0)),
        ("url", texts(pages.iter().map(|row| row.1.as_str()))),
        ("fetch_time", TableColumn::Time(pages.iter().map(|row| row.2.body as i64).collect())),
        ("body", ids(&|row| row.2.body)),
        ("text_bytes", TableColumn::Count(pages.iter().map(|row| row.2.exact * 100).collect())),
        ("chunks", TableColumn::U32(pages.iter().map(|row| row.2.exact as u32).collect())),
        ("exact", ids(&|row| row.2.exact)),
        ("simhash", ids(&|row| row.2.simhash.unwrap_or_default())),
        ("has_simhash", TableColumn::Bool(pages.iter().map(|row| row.2.simhash.is_some()).collect())),
    ]);
    let location = Location::parse(folder.to_str().unwrap()).unwrap();
    let mut writer = ResultWriter::new(&location).unwrap();
    writer.add("pages", table).unwrap();
    let mut skip: Vec<(DocId, &Skip<'_>)> = skip.iter().map(|row| (doc_id(row.0), row)).collect();
    skip.sort();
    let avoid = Table::new([
        ("doc_id", TableColumn::Id(skip.iter().map(|row| row.0).collect())),
        ("url", texts(skip.iter().map(|row| row.1.0))),
        ("keep_doc_id", TableColumn::Id(skip.iter().map(|row| doc_id(row.1.1)).collect())),
        ("keep_url", texts(skip.iter().map(|row| row.1.1))),
        ("why", texts(skip.iter().map(|row| row.1.2))),
    ]);
    writer.add("avoid", avoid).unwrap();
    let rejected_table = Table::new([
        ("reason", texts(rejected_urls.iter().map(|row| row.0))),
        ("detail", texts(rejected_urls.iter().map(|row| row.1))),
    ]);
    writer.add("rejected", rejected_table).unwrap();
    let no_rows = || TableColumn::U32(Vec::new());
    let names = || TableColumn::Text(StringTable::new());
    let servers = Table::new([
        ("a", TableColumn::Id(Vec::new())),
        ("b", TableColumn::Id(Vec::new())),
        ("host_a", names()),
        ("host_b", names()),
        ("shared", no_rows()),
        ("pages_a", no_rows()),
        ("pages_b", no_rows()),
        ("same_path", no_rows()),
        ("kind", names()),
    ]);
    writer.add("server_pairs", servers).unwrap();
    for name in ["prefixes.txt", "urls.txt"] {
        let lines: String = skip.iter().flat_map(|row| [row.1.0, "\n"]).collect();
        writer.file(&format!("exports/{name}"), &lines).unwrap();
    }
    let manifest = Manifest {
        recipes: BTreeMap::from([("simhash".into(), job.simhash.recipe())]),
        ..Manifest::new(writer.attempt(), serde_json::to_value(job).unwrap())
    };
    writer.commit(&"made", manifest).unwrap();
    location.name().into()
}

/// Temporary folder for results and their comparisons.
struct Made(tempfile::TempDir);

impl Made {
    fn new() -> Made {
        Made(tempfile::tempdir().unwrap())
    }

    fn result(&self, name: &str, crawl: &Crawl) -> String {
        result(&self.0.path().join(name), crawl, &[], &[], &Job::default())
    }

    fn settings(&self, [old, new, output]: [&str; 3], recrawl: Recrawl) -> CompareSettings {
        let path = |name: &str| self.0.path().join(name).to_str().unwrap().to_string();
        CompareSettings {
            old: path(old),
            new: path(new),
            past: PastIntervals::default(),
            output: path(output),
            recrawl,
            workers: 2,
            memory_bytes: 0,
            spill: std::env::temp_dir(),
            range_rows: 4,
        }
    }

    fn diff(&self, names: [&str; 3], recrawl: Recrawl) -> FinishedRun {
        self.diff_by(2, names, recrawl)
    }

    fn diff_by(&self, workers: usize, names: [&str; 3], recrawl: Recrawl) -> FinishedRun {
        let settings = CompareSettings { workers, ..self.settings(names, recrawl) };
        diff(&settings, None).unwrap();
        FinishedRun::open(&settings.output).unwrap()
    }
}

/// Reads the changes of pages from a comparison: the change of each page, and its counterpart.
fn message(run: &FinishedRun) -> BTreeMap<DocId, (String, DocId)> {
    let table = run.table("pages_changed").unwrap();
    let counterparts =
        table.text("what").unwrap().iter().map(String::from).zip(table.u64("other_doc_id").unwrap().iter().copied());
    let message: BTreeMap<_, _> = table.u64("doc_id").unwrap().iter().copied().zip(counterparts).collect();
    assert_eq!(message.len(), table.rows());
    message
}

/// Computes the change of each page by loops over all pairs of pages.
fn expected_changes(old: &Crawl, new: &Crawl) -> BTreeMap<DocId, (String, DocId)> {
    let only = |other_crawl: &Crawl, counterpart: &Crawl| -> Vec<(DocId, String, PageContent)> {
        let pages = other_crawl.iter().filter(|(url, _)| !counterpart.contains_key(*url));
        let mut pages: Vec<_> = pages.map(|(url, page)| (doc_id(url), url.clone(), *page)).collect();
        pages.sort_by_key(|row| row.0);
        pages
    };
    let (gone_pages, new_pages) = (only(old, new), only(new, old));
    let is_near = |x: &PageContent, y: &PageContent, most: u32| x.bits(y).is_some_and(|bits| bits <= most);
    let mut sites = Sites::default();
    for url in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
        let (in_old, in_new) = (u64::from(old.contains_key(url)), u64::from(new.contains_key(url)));
        let name = split(url).0;
        let site = sites.0.entry(site_id(name)).or_insert_with(|| Site { name: name.into(), ..Site::default() });
        site.pages = [site.pages[0] + in_old, site.pages[1] + in_new];
        site.n_common += in_old * in_new;
    }
    let text = |x: &PageContent, y: &PageContent| x.exact != 0 && x.exact == y.exact;
    let mut votes: HashMap<(SiteId, SiteId), SiteVotes> = HashMap::new();
    for (_, old_id, x) in &gone_pages {
        for (_, new_id, y) in new_pages.iter().filter(|row| split(&row.1).1 == split(old_id).1) {
            let votes = votes.entry((site_id(split(old_id).0), site_id(split(new_id).0))).or_default();
            votes.paths += 1;
            votes.texts += u64::from(text(x, y) || is_near(x, y, MAX_NEAR_BITS));
        }
    }
    let mut moved_ids: BTreeMap<DocId, DocId> = BTreeMap::new();
    let mut arrived: BTreeMap<DocId, DocId> = BTreeMap::new();
    for SiteMove { source, target, one_host, .. } in between(&sites, &votes) {
        for (x, old_url, old_page) in gone_pages.iter().filter(|row| site_id(split(&row.1).0) == source) {
            for (y, new_url, new_page) in new_pages.iter().filter(|row| site_id(split(&row.1).0) == target) {
                let bits = old_page.bits(new_page);
                let is_similar = text(old_page, new_page) || bits.is_none_or(|bits| bits <= REWRITTEN_BITS);
                let free = !moved_ids.contains_key(x) && !arrived.contains_key(y);
                if split(old_url).1 == split(new_url).1 && (one_host || is_similar) && free {
                    moved_ids.insert(*x, *y);
                    arrived.insert(*y, *x);
                }
            }
        }
    }
    let steps: [fn(&str) -> String; 3] = [|url| split(url).1.into(), |url| split(url).0.into(), |_| String::new()];
    for step in steps {
        let previous_moves = (moved_ids.clone(), arrived.clone());
        for (x, old_url, old_page) in &gone_pages {
            let left = |pages: &[(DocId, String, PageContent)], taken_ids: &BTreeMap<DocId, DocId>| -> Vec<DocId> {
                let same_text_pages =
                    pages.iter().filter(|row| !taken_ids.contains_key(&row.0) && text(&row.2, old_page));
                same_text_pages.filter(|row| step(&row.1) == step(old_url)).map(|row| row.0).collect()
            };
            if moved_ids.contains_key(x)
                || left(&gone_pages, &previous_moves.0).len().max(left(&new_pages, &previous_moves.1).len()) > COMMON
            {
                continue;
            }
            if let Some(y) = left(&new_pages, &arrived).first() {
                moved_ids.insert(*x, *y);
                arrived.insert(*y, *x);
            }
        }
    }
    let mut message = BTreeMap::new();
    for (url, page) in old {
        if let Some(now) = new.get(url) {
            let what = what(page, now, page.bits(now), None);
            if what != PageChange::Same {
                message.insert(doc_id(url), (what.as_str().to_string(), 0));
            }
        }
    }
    let word = |what: PageChange, other: Option<&DocId>| (what.as_str().to_string(), other.copied().unwrap_or(0));
    for (id, ..) in &gone_pages {
        let target = moved_ids.get(id);
        message.insert(*id, word(if target.is_some() { PageChange::MovedFrom } else { PageChange::Gone }, target));
    }
    for (id, ..) in &new_pages {
        let source = arrived.get(id);
        message.insert(*id, word(if source.is_some() { PageChange::MovedTo } else { PageChange::New }, source));
    }
    message
}

fn crawl() -> impl Strategy<Value = Crawl> {
    let hosts =
        ["http://a.example", "https://a.example", "https://www.a.example", "http://b.example", "http://c.example"];
    let url = (prop::sample::select(hosts.to_vec()), 0..6u8).prop_map(|(site, path)| format!("{site}/{path}?q"));
    let simhash = prop::option::weighted(0.8, prop::sample::select(vec![0, 1, 0xff, 0xff_ffff, u64::MAX]));
    let page = (0u64..5, 0u64..2, simhash);
    let page = page.prop_map(|(exact, other, simhash)| PageContent { exact, body: 2 * exact + other, simhash });
    prop::collection::btree_map(url, page, 0..24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn pages_equal_nested_loops(old in crawl(), new in crawl()) {
        let made = Made::new();
        made.result("old", &old);
        made.result("new", &new);
        let message = message(&made.diff(["old", "new", "diff"], Recrawl::default()));
        prop_assert_eq!(&message, &expected_changes(&old, &new));
        // Applying the changes to the old pages must yield the new pages.
        let mut pages: BTreeSet<DocId> = old.keys().map(|url| doc_id(url)).collect();
        for (page, (what, _)) in &message {
            match what.as_str() {
                "gone" | "moved_from" => prop_assert!(pages.remove(page)),
                "new" | "moved_to" => prop_assert!(pages.insert(*page)),
                _ => prop_assert!(pages.contains(page)),
            }
        }
        prop_assert_eq!(pages, new.keys().map(|url| doc_id(url)).collect::<BTreeSet<_>>());
    }

    #[test]
    fn all_crawls_are_compared_with_each_other(crawls in prop::collection::vec(crawl(), 3..5)) {
        let made = Made::new();
        let names: Vec<String> = (0..crawls.len()).map(|n| format!("crawl{n}")).collect();
        names.iter().zip(&crawls).for_each(|(name, crawl)| drop(made.result(name, crawl)));
        let [past @ .., old, new] = &names[..] else { unreachable!() };
        let past = past.iter().rev().map(|name| made.0.path().join(name).to_str().unwrap().to_string());
        let past = PastIntervals { results: past.collect(), ..PastIntervals::default() };
        let settings = CompareSettings { past, ..made.settings([old, new, "diff"], Recrawl::default()) };
        diff(&settings, None).unwrap();
        let table = FinishedRun::open(&settings.output).unwrap().table("crawl_overlap").unwrap();
        let names = ["new", "old", "old-1", "old-2"];
        let crawl = |name: &str| &crawls[crawls.len() - 1 - names.iter().position(|one| *one == name).unwrap()];
        let units = |crawl: &Crawl, unit: &str| -> BTreeSet<String> {
            let host = |url: &str| split(url).0.split_once("//").unwrap().1.to_string();
            let number = |number: u64| (number != 0).then(|| number.to_string());
            let of = crawl.iter().filter_map(|(url, page)| match unit {
                "url" => Some(url.clone()),
                "host" => Some(host(url)),
                "text" => number(page.exact),
                _ => number(page.body),
            });
            of.collect()
        };
        let (a, b, unit) = (table.text("a").unwrap(), table.text("b").unwrap(), table.text("unit").unwrap());
        prop_assert_eq!(table.rows(), 4 * crawls.len() * (crawls.len() - 1) / 2);
        for row in 0..table.rows() {
            let [old, new] = [&a[row], &b[row]].map(|name| units(crawl(name), &unit[row]));
            let both = old.intersection(&new).count();
            let found = ["size_a", "size_b", "both"].map(|column| table.u64(column).unwrap()[row] as usize);
            prop_assert_eq!(found, [old.len(), new.len(), both], "{} {} {}", &a[row], &b[row], &unit[row]);
        }
    }

    #[test]
    fn reversed_comparison_only_swaps_outcomes(old in crawl(), new in crawl()) {
        let made = Made::new();
        made.result("old", &old);
        made.result("new", &new);
        let there = message(&made.diff(["old", "new", "there"], Recrawl::default()));
        let back = message(&made.diff(["new", "old", "back"], Recrawl::default()));
        let mirrored = |word: &str| PageChange::ALL.iter().find(|what| what.as_str() == word).unwrap().mirrored().as_str();
        let turned: BTreeMap<_, _> =
            back.into_iter().map(|(page, (what, other))| (page, (mirrored(&what).to_string(), other))).collect();
        prop_assert_eq!(turned, there);
    }
}

fn page(exact: u64, body: u64) -> PageContent {
    PageContent { exact, body, simhash: Some(exact * 0x0101_0101) }
}

fn site(name: &str, pages: std::ops::Range<u64>) -> impl Iterator<Item = (String, PageContent)> + use<> {
    let name = name.to_string();
    pages.map(move |n| (format!("{name}/{n}.html"), page(n + 1, n + 1)))
}

#[test]
fn a_crawl_compared_with_itself_has_no_changes() {
    let fixture = Made::new();
    let crawl: Crawl = site("http://a.example", 0..300).collect();
    fixture.result("a", &crawl);
    fixture.result("b", &crawl);
    let run = fixture.diff(["a", "b", "diff"], Recrawl::default());
    for table in ["pages_changed", "hosts_changed", "avoid_changed", "server_pairs_changed"] {
        assert_eq!((table, run.table(table).unwrap().rows()), (table, 0));
    }
    assert_eq!(run.table("crawl_overlap").unwrap().f64("jaccard").unwrap(), [1.0; 4]);
}

#[test]
fn any_number_of_threads_and_any_memory_yield_the_same_bytes() {
    let fixture = Made::new();
    let old: Crawl = site("http://a.example", 0..400).chain(site("http://b.example", 0..90)).collect();
    let new: Crawl = site("https://a.example", 100..500).chain(site("http://b.example", 30..120)).collect();
    fixture.result("old", &old);
    fixture.result("new", &new);
    let files = |workers, memory_bytes, output| {
        let settings = fixture.settings(["old", "new", output], Recrawl::default());
        diff(&CompareSettings { workers, memory_bytes, ..settings.clone() }, None).unwrap();
        FinishedRun::open(&settings.output).unwrap().manifest.files
    };
    let expected_files = files(1, 1 << 30, "one");
    assert_eq!(expected_files, files(2, 0, "two"));
    assert_eq!(expected_files, files(3, 100_000, "three"));
}

#[test]
fn change_of_scheme_is_one_move_among_any_number_of_sites() {
    let fixture = Made::new();
    // More sites share these few paths than the maximum for a path that counts as evidence.
    let names: Vec<String> = (0..2 * COMMON).map(|n| format!("host{n}.example")).collect();
    let old: Crawl = names.iter().flat_map(|name| site(&format!("http://{name}"), 0..3)).collect();
    let new: Crawl = names.iter().flat_map(|name| site(&format!("https://www.{name}"), 0..3)).collect();
    fixture.result("old", &old);
    fixture.result("new", &new);
    let run = fixture.diff(["old", "new", "diff"], Recrawl::default());
    let hosts = run.table("hosts_changed").unwrap();
    let rows =
        hosts.text("site").unwrap().iter().zip(hosts.text("what").unwrap()).zip(hosts.text("other_site").unwrap());
    for ((site, what), counterpart) in rows {
        let (expected, is_present) = match site.strip_prefix("http://") {
            Some(name) => ("moved_from", format!("https://www.{name}")),
            None => ("moved_to", site.replace("https://www.", "http://")),
        };
        assert_eq!((what, counterpart), (expected, is_present.as_str()));
    }
    let message = message(&run);
    assert!(message.values().all(|(what, _)| what.starts_with("moved")), "{message:?}");
    assert_eq!(message[&doc_id("http://host7.example/1.html")].1, doc_id("https://www.host7.example/1.html"));
}

#[test]
fn text_on_many_pages_is_no_evidence_of_a_move() {
    let fixture = Made::new();
    let pages = |site: &str, count: usize| -> Crawl {
        (0..count).map(|n| (format!("{site}/{n}-{}", site.len()), page(7, 7))).collect()
    };
    for (count, is_moved) in [(COMMON, true), (COMMON + 1, false)] {
        fixture.result(&format!("old{count}"), &pages("http://a.example", count));
        fixture.result(&format!("new{count}"), &pages("http://bb.example", count));
        let run =
            fixture.diff([&format!("old{count}"), &format!("new{count}"), &format!("diff{count}")], Recrawl::default());
        assert_eq!(message(&run).values().all(|(what, _)| what.starts_with("moved")), is_moved);
    }
}

#[test]
fn absence_has_a_reason() {
    let fixture = Made::new();
    let urls =
        ["http://a.example/1", "http://a.example/2", "http://a.example/3", "http://b.example/", "http://c.example/"];
    let old: Crawl = urls.iter().zip(1..).map(|(url, n)| (url.to_string(), page(n, n))).collect();
    let new: Crawl = [("http://a.example/9".to_string(), page(90, 90))].into();
    let skip: [Skip<'_>; 1] = [("http://a.example/3", "http://a.example/2", "exact")];
    result(&fixture.0.path().join("old"), &old, &skip, &[], &Job::default());
    let rejected_urls =
        [("too_large", "over 5: http://a.example:80/2"), ("bad_http", "no head: http://c.example/x"), ("x", "404")];
    result(&fixture.0.path().join("new"), &new, &[], &rejected_urls, &Job::default());
    let why = |output: &str, policy: AvoidancePolicy| -> Vec<String> {
        let run = fixture.diff(["old", "new", output], Recrawl { avoided: policy, ..Recrawl::default() });
        let table = run.table("pages_changed").unwrap();
        let ids = table.u64("doc_id").unwrap();
        let reason_of =
            |url: &&str| table.text("why_gone").unwrap()[ids.binary_search(&doc_id(url)).unwrap()].to_string();
        urls.iter().map(reason_of).collect()
    };
    assert_eq!(why("plain", AvoidancePolicy::No), ["absent", "rejected:too_large", "absent", "host_absent", "absent"]);
    assert_eq!(
        why("avoided", AvoidancePolicy::Yes),
        ["absent", "rejected:too_large", "avoided", "host_absent", "absent"]
    );
}

#[test]
fn the_avoid_list_changes_page_by_page_and_line_by_line() {
    let fixture = Made::new();
    let crawl: Crawl = site("http://a.example", 0..5).collect();
    let url = |n: u32| format!("http://a.example/{n}.html");
    let (a, b, c, d) = (url(0), url(1), url(2), url(3));
    result(
        &fixture.0.path().join("old"),
        &crawl,
        &[(&a, &d, "exact"), (&b, &d, "exact"), (&c, &d, "similar")],
        &[],
        &Job::default(),
    );
    let now: [Skip<'_>; 3] = [(&b, &a, "exact"), (&c, &d, "exact"), (&d, &a, "similar")];
    result(&fixture.0.path().join("new"), &crawl, &now, &[], &Job::default());
    let run = fixture.diff(["old", "new", "diff"], Recrawl::default());
    let table = run.table("avoid_changed").unwrap();
    let rows = table.text("url").unwrap().iter().map(String::from).zip(table.text("what").unwrap());
    let change_kinds: BTreeMap<String, &str> = rows.collect();
    let expected = [(a.clone(), "removed"), (b, "keep_changed"), (c, "why_changed"), (d.clone(), "added")];
    assert_eq!(change_kinds, expected.into());
    assert!(table.text("page").unwrap().iter().all(|page| page == "same"));
    let export = |name: &str| {
        let bytes = run.folder.join(&format!("exports/{name}")).unwrap().get().unwrap().unwrap();
        String::from_utf8(bytes).unwrap()
    };
    assert_eq!((export("add-urls.txt"), export("remove-urls.txt")), (format!("{d}\n"), format!("{a}\n")));
}

#[test]
fn results_of_other_settings_are_refused_unless_only_pages_are_compared() {
    let fixture = Made::new();
    let crawl: Crawl = site("http://a.example", 0..5).collect();
    fixture.result("old", &crawl);
    let mut job = Job::default();
    job.overlap.min_shared = 9;
    result(&fixture.0.path().join("new"), &crawl, &[], &[], &job);
    let settings = fixture.settings(["old", "new", "diff"], Recrawl::default());
    let error = diff(&settings, None).unwrap_err();
    assert!(error.exit_code() == 2 && error.to_string().contains("overlap.min_shared = 1"), "{error}");
    let run = fixture.diff(["old", "new", "diff"], Recrawl { across_settings: true, ..Recrawl::default() });
    let tables: BTreeSet<&str> =
        run.manifest.files.iter().filter_map(|file| file.path.split_once("/part-")).map(|p| p.0).collect();
    assert_eq!(tables, ["crawl_overlap", "hosts_changed", "pages_changed"].into());
}
