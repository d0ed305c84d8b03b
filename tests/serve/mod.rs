//! The server: its answers, its refusals, and its robustness.

pub(crate) mod schema;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use webtwin::http::ServiceLimits;
use webtwin::ids::splitmix64;
use webtwin::serve::{ServeSettings, serve};

use crate::support::planted::write_crawl;
use crate::support::program::{fail, succeed, succeed_with};
use crate::support::server::{Answer, Client, Server, escaped};

/// Two runs over one made-up crawl that keep different pages, and their indexes.
struct TestData {
    folder: tempfile::TempDir,
    urls: Vec<String>,
}

impl TestData {
    fn at(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().into()
    }

    /// Returns the lines that `webtwin lookup` prints for all URLs.
    fn lines(&self, index: &str) -> String {
        succeed_with(&["lookup", &self.at(index)], &(self.urls.join("\n") + "\n"))
    }
}

fn test_data() -> &'static TestData {
    static TEST_DATA: OnceLock<TestData> = OnceLock::new();
    TEST_DATA.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let mut data = TestData { folder, urls: Vec::new() };
        write_crawl(&data.at("crawl"), 500, 11);
        for (name, guard) in [("a", "none"), ("b", "mutual-best")] {
            let set = format!("similar.guard={guard}");
            let share = if name == "a" { "keep.by=links" } else { "keep.by=oldest" };
            let (run, crawl) = (data.at(&format!("run-{name}")), data.at("crawl"));
            succeed(&["run", "--input", &crawl, "--output", &run, "--set", &set, "--set", share]);
            let text: &[&str] = if cfg!(feature = "search") { &["--text"] } else { &[] };
            succeed(&[&["index", &run, "--output", &data.at(name), "--chunks", "--simhashes"], text].concat());
        }
        let pages = crate::support::program::rows(&data.at("run-a"), "pages");
        data.urls = pages.iter().map(|page| page["url"].as_str().unwrap().to_string()).collect();
        data
    })
}

/// Returns a page of index `a` that may be skipped, and the page that is kept in place of it.
fn skipped() -> (String, String) {
    let lines = test_data().lines("a");
    let skipped_page =
        test_data().urls.iter().zip(lines.lines()).find_map(|(url, line)| Some((url, line.strip_prefix("skip\t")?)));
    skipped_page.map(|(url, keep)| (url.clone(), keep.into())).unwrap()
}

#[test]
fn every_path_of_the_openapi_document_answers_by_its_schema() {
    let server = Server::start(&[&test_data().at("a")]);
    let document = server.get("/openapi.json").json();
    let (url, keep) = skipped();
    let mut client = server.client();
    let page = client.get(&format!("/v1/page?url={}", escaped(&url))).json();
    assert_eq!((page["action"].as_str(), page["keep"]["url"].as_str()), (Some("skip"), Some(keep.as_str())));
    let run = client.get("/v1/run").json();
    let collections = crate::support::program::rows(&test_data().at("run-a"), "collections");
    let collection = format!("{:016x}", collections[0]["collection"].as_str().unwrap().parse::<u64>().unwrap());
    let set = client.get(&format!("/v1/set/{}", page["id"].as_str().unwrap())).json();
    let simhash =
        set["members"].as_array().unwrap().iter().find_map(|member| member["simhash"].as_str()).unwrap().to_string();

    let urls = |urls: &[&str]| json!({ "urls": urls }).to_string();
    let requests: Vec<(&str, &str, String, (&str, String))> = vec![
        ("get", "/v1/page", format!("/v1/page?url={}", escaped(&url)), ("", String::new())),
        ("get", "/v1/page", "/v1/page?url=no%20url".into(), ("", String::new())),
        ("get", "/v1/page", format!("/v1/page?id={}", page["id"].as_str().unwrap()), ("", String::new())),
        ("get", "/v1/page", "/v1/page?id=0000000000000001".into(), ("", String::new())),
        ("post", "/v1/pages", "/v1/pages".into(), ("application/json", urls(&[&url, "x", "http://never.example/"]))),
        ("post", "/v1/pages.txt", "/v1/pages.txt".into(), ("text/plain", format!("{url}\n"))),
        ("post", "/v1/check", "/v1/check".into(), ("text/plain", "Nobody ever wrote this line of text. ".repeat(9))),
        (
            "post",
            "/v1/check",
            format!("/v1/check?url={}", escaped(&url)),
            ("text/html; charset=utf-8", "<p>Some text".into()),
        ),
        ("get", "/v1/near/{fingerprint}", format!("/v1/near/{simhash}?k=2"), ("", String::new())),
        (
            "post",
            "/v1/near",
            "/v1/near".into(),
            ("application/json", json!({ "fingerprints": [simhash], "k": 3 }).to_string()),
        ),
        ("get", "/v1/page", "/v1/page?url=http://never.example/".into(), ("", String::new())),
        ("get", "/v1/sets", "/v1/sets?limit=3&from=2".into(), ("", String::new())),
        ("get", "/v1/sets", "/v1/sets?q=manual%20example".into(), ("", String::new())),
        ("get", "/v1/collections", "/v1/collections?q=example&limit=1".into(), ("", String::new())),
        ("get", "/v1/set/{id}", format!("/v1/set/{}?limit=3", page["id"].as_str().unwrap()), ("", String::new())),
        ("get", "/v1/collection/{id}", format!("/v1/collection/{collection}"), ("", String::new())),
        ("get", "/v1/explain", format!("/v1/explain?a={}&b={}", escaped(&url), escaped(&keep)), ("", String::new())),
        ("get", "/v1/alternates", format!("/v1/alternates?url={}&newest=1", escaped(&url)), ("", String::new())),
        ("get", "/v1/redirect", format!("/v1/redirect?url={}", escaped(&url)), ("", String::new())),
        ("get", "/v1/run", "/v1/run".into(), ("", String::new())),
        ("post", "/v1/reload", "/v1/reload".into(), ("", String::new())),
        ("get", "/openapi.json", "/openapi.json".into(), ("", String::new())),
        ("get", "/health", "/health".into(), ("", String::new())),
        ("get", "/ready", "/ready".into(), ("", String::new())),
        ("get", "/metrics", "/metrics".into(), ("", String::new())),
    ];
    #[cfg(feature = "search")]
    let requests = {
        let searched = |target: &str| ("get", "/v1/search", target.to_string(), ("", String::new()));
        let more =
            ["/v1/search?q=the&reorder=1&limit=50", "/v1/search?q=a%20in:mirrors", "/v1/search?q=of&roll=0&from=3"];
        [requests, more.map(searched).to_vec()].concat()
    };
    let paths = document["paths"].as_object().unwrap();
    let called = |path: &String, method: &String| requests.iter().any(|one| one.1 == path && one.0 == method);
    for (path, methods) in paths {
        assert!(methods.as_object().unwrap().keys().all(|method| called(path, method)), "{path} is not called");
    }
    for (method, path, target, (kind, body)) in &requests {
        let answer = client.ask(&method.to_uppercase(), target, &[("content-type", kind)], body.as_bytes());
        let responses = &paths[*path][*method]["responses"];
        if *path == "/v1/redirect" {
            assert_eq!((answer.status, responses["302"].is_object()), (302, true));
            assert!(test_data().urls.iter().any(|url| url == answer.header("location")));
        } else {
            assert_eq!(answer.status, 200, "{target}: {}", answer.text());
            let content = responses["200"]["content"].as_object().unwrap();
            let kind = answer.header("content-type").split(';').next().unwrap();
            let schema = &content.get(kind).unwrap_or_else(|| panic!("{target}: {kind}"))["schema"];
            let value = if kind == "application/json" { answer.json() } else { answer.text().into() };
            assert_eq!(schema::wrong(&document, schema, &value, target), None);
        }
        assert_eq!(answer.header("x-webtwin-run"), run["run"].as_str().unwrap());
    }
    let refused = client.get("/v1/page");
    let problem = &document["components"]["schemas"]["Problem"];
    assert_eq!(schema::wrong(&document, problem, &refused.json(), "a problem"), None);
}

#[test]
fn html_pages_have_no_script_and_crawled_content_is_text() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let html = "<p>".to_string() + &"What two pages say alike, and no other page. ".repeat(9);
    let urls = ["http://a.example/?q=\"><script>alert(1)</script>&x=1", "http://b.example/'\"/?<b>"];
    let rows = urls.map(|url| json!({ "url": url, "html": html }).to_string() + "\n");
    std::fs::write(at("in.jsonl"), rows.concat()).unwrap();
    succeed(&["run", "--input", &at("in.jsonl"), "--output", &at("run")]);
    succeed(&["index", &at("run"), "--output", &at("idx")]);
    let server = Server::start(&[&at("idx")]);
    let mut client = server.client();
    let id = client.get(&format!("/v1/page?url={}", escaped(urls[0]))).json()["cluster"].as_str().unwrap().to_string();
    let hostile = escaped("javascript:\"><script>\u{202e}");
    for (path, has) in [
        ("/".to_string(), "sets of copies"),
        ("/sets".into(), &id),
        ("/sets?q=a.example".into(), &id),
        (format!("/sets?q={hostile}"), "0 of 1 set"),
        ("/collections".into(), "none"),
        (format!("/set/{id}"), "2 pages"),
        ("/page".into(), "URL of a page"),
        (format!("/page?url={}", escaped(urls[0])), "same text"),
        (format!("/page?url={hostile}"), "reject"),
        ("/page?url=http://a.example/other".into(), "pages of this host, but not this one"),
        ("/page?url=http://c.example/".into(), "no page of this host"),
        ("/compare".into(), "URL of another page"),
        (format!("/compare?a={}&b={}", escaped(urls[0]), escaped(urls[1])), "Together."),
    ] {
        let answer = client.get(&path);
        assert_eq!((answer.status, answer.text().contains(has)), (200, true), "{path}: {}", answer.text());
        assert_eq!(answer.text().matches("<h1>").count(), 1);
        assert!(answer.header("content-security-policy").starts_with("default-src 'none'; style-src 'self'"));
        let text = answer.text();
        assert!(!text.contains("<script") && !text.contains("href=\"javascript") && !text.contains("<b>&"), "{text}");
        // The target of each link exists.
        for link in text.split("href=\"/").skip(1).map(|rest| rest.split('"').next().unwrap().replace("&amp;", "&")) {
            assert_eq!(client.get(&format!("/{link}")).status, 200, "{link}");
        }
    }
    let collections = crate::support::program::rows(&test_data().at("run-a"), "collections");
    let id = format!("{:016x}", collections[0]["collection"].as_str().unwrap().parse::<u64>().unwrap());
    let page = Server::start(&[&test_data().at("a")]).get(&format!("/collection/{id}"));
    assert!(page.text().contains("collections that are copies of each other"), "{}", page.text());
    // A page that cannot be shown is answered by a page with the reason.
    let long = format!("/sets?q={}", "x".repeat(500));
    let nowhere = format!("/compare?a={}&b=http://never.example/", escaped(urls[0]));
    for (path, status, has) in [
        ("/set/0000000000000000", 404, "no page of a trivial cluster has this id"),
        ("/set/x", 422, "16 hexadecimal digits"),
        ("/sets?from=x", 400, "from"),
        (&long, 422, "at most 400 bytes"),
        (&nowhere, 404, "http://never.example/ is not a page of the run"),
    ] {
        let answer = client.get(path);
        assert_eq!((answer.status, answer.text().contains(has)), (status, true), "{path}: {}", answer.text());
        assert!(answer.header("content-type").starts_with("text/html"));
    }
}

/// Runs the real Scrapy. Without `pip install scrapy`, the test prints a message and ends.
fn try_in_scrapy(script: &str) {
    let scrapy = std::process::Command::new("python3").args(["-c", "import scrapy"]).output();
    if !scrapy.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: python3 has no module scrapy");
        return;
    }
    let tried = std::process::Command::new("python3").args([script, env!("CARGO_BIN_EXE_webtwin")]).output().unwrap();
    let [stdout, stderr] = [&tried.stdout, &tried.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(tried.status.success(), "{stdout}{stderr}");
}

#[test]
fn scrapy_skips_known_pages_and_continues_without_the_server() {
    try_in_scrapy("clients/scrapy/try.py");
}

#[test]
fn scrapy_obeys_the_list_for_weeks_and_misses_no_existing_mirror() {
    try_in_scrapy("clients/scrapy/weeks.py");
}

#[test]
fn scrapy_feeds_a_live_index_and_leaves_the_mirror_that_it_finds() {
    try_in_scrapy("clients/scrapy/try_live.py");
}

#[test]
fn answers_equal_the_command_and_texts_of_the_crawl_are_known() {
    let server = Server::start(&[&test_data().at("a")]);
    let mut client = server.client();
    let all = test_data().urls.join("\n");
    let lines = client.post("/v1/pages.txt", "text/plain", all.as_bytes());
    assert_eq!(lines.text(), test_data().lines("a"));
    let json = client.post(
        "/v1/pages",
        "application/json",
        json!({ "urls": test_data().urls, "fields": ["action", "keep"] }).to_string().as_bytes(),
    );
    let answers = json.json()["answers"].as_array().unwrap().clone();
    for (answer, line) in answers.iter().zip(lines.text().lines()) {
        assert_eq!(answer["action"].as_str().unwrap(), line.split('\t').next().unwrap());
        assert_eq!(answer.as_object().unwrap().keys().collect::<Vec<_>>(), ["action", "keep"]);
    }
    let (url, _) = skipped();
    let known = client.get(&format!("/v1/page?url={}", escaped(&url)));
    let tag = known.header("etag").to_string();
    let cached_answer = client.ask("GET", &format!("/v1/page?url={}", escaped(&url)), &[("if-none-match", &tag)], b"");
    assert_eq!((cached_answer.status, cached_answer.body.len(), cached_answer.header("etag")), (304, 0, tag.as_str()));
    assert!(client.get("/metrics").text().contains("webtwin_lookups_total{action=\"skip\"}"));
}

#[test]
fn invalid_requests_are_answered_with_problems_and_the_server_continues() {
    let server = Server::start(&[&test_data().at("a"), "--host", "twins.example"]);
    let too_many = "http://a.example/\n".repeat(10_001);
    let many = json!({ "urls": vec!["http://a.example/"; 10_001] }).to_string();
    let post = |path: &str, kind: &str, body: &[u8]| server.client().post(path, kind, body).problem();
    let problem = |status: u16, code: &str| (status, code.to_string());
    assert_eq!(post("/v1/pages.txt", "text/plain", too_many.as_bytes()), problem(413, "too_many"));
    assert_eq!(server.client().post("/v1/pages.txt", "text/plain", &too_many.as_bytes()[18..]).status, 200);
    assert_eq!(post("/v1/pages", "application/json", many.as_bytes()), problem(413, "too_many"));
    assert_eq!(post("/v1/pages.txt", "text/plain", &vec![b'x'; (1 << 20) + 1]), problem(413, "too_large"));
    assert_eq!(post("/v1/pages.txt", "text/plain", b"http://a/\xff\n"), problem(400, "not_utf8"));
    assert_eq!(post("/v1/pages", "application/json", b"{"), problem(400, "bad_json"));
    assert_eq!(post("/v1/pages", "application/json", b"{\"urls\":[1]}"), problem(422, "bad_value"));
    assert_eq!(post("/v1/pages", "application/json", b"{\"urls\":[],\"ids\":[]}"), problem(422, "bad_value"));
    assert_eq!(post("/v1/pages", "application/json", b"{\"urls\":[],\"fields\":[\"x\"]}"), problem(422, "bad_value"));
    assert_eq!(post("/v1/pages", "text/plain", b"{}"), problem(415, "media_type"));
    assert_eq!(post("/v1/check", "image/png", b"x"), problem(415, "media_type"));
    assert_eq!(post("/v1/check", "text/plain", &vec![b'x'; (16 << 20) + 1]), problem(413, "too_large"));
    let get = |path: &str| server.get(path).problem();
    assert_eq!(get("/v1/page"), problem(400, "bad_query"));
    assert_eq!(get("/v1/page?url=http://a/&id=0000000000000000"), problem(400, "bad_query"));
    assert_eq!(get("/v1/page?uri=http://a/"), problem(400, "bad_query"));
    assert_eq!(get("/v1/page?id=12"), problem(422, "bad_value"));
    assert_eq!(get("/v1/near/0000000000000000?k=9"), problem(422, "bad_value"));
    assert_eq!(get("/v1/set/0000000000000000"), problem(404, "not_found"));
    assert_eq!(get("/v1/alternates?url=http://never.example/"), problem(404, "not_found"));
    assert_eq!(get("/v1/redirect?url=ftp://x/"), problem(422, "bad_value"));
    assert_eq!(get("/nothing"), problem(404, "not_found"));
    assert_eq!(get("/v1/pages.txt"), problem(405, "method"));

    let with_host = |host: &str| server.client().ask("GET", "/v1/run", &[("host", host)], b"");
    for right in ["twins.example", "TWINS.example", "localhost", &server.address] {
        assert_eq!(with_host(right).status, 200, "{right}");
    }
    for wrong in ["evil.example", "twins.example.evil", "", "127.0.0.1:1"] {
        assert_eq!(with_host(wrong).problem(), problem(421, "wrong_host"), "{wrong}");
    }
    let mut client = server.client();
    client.send(b"GET /v1/run HTTP/1.1\r\n\r\n");
    assert_eq!(client.answer().unwrap().problem(), problem(400, "no_host"));
    let mut client = server.client();
    client.send(format!("GET /health HTTP/1.1\r\nhost: x\r\nlong: {}\r\n\r\n", "x".repeat(20_000)).as_bytes());
    assert!(client.answer().is_none_or(|answer| answer.status == 431));
    assert_eq!(server.get("/health").text(), "ok\n");
}

#[test]
fn no_request_breaks_the_server() {
    let server = Server::start(&[&test_data().at("a")]);
    let parts: [&[u8]; 16] = [
        b"{\"urls\":[",
        b"\"http://a.example/\"",
        b",",
        b"]}",
        b"{\"fingerprints\":[\"0123456789abcdef\"],\"k\":",
        b"3}",
        b"99999999999}",
        b"\xff\xfe\0",
        b"<html><p>",
        b"</script>",
        b"http://",
        b"[::1]/%",
        b"\n",
        b"\xe2\x80\xae",
        b"{\"ids\":[\"\"]}",
        b"\\ud800",
    ];
    let paths = [
        "/v1/pages",
        "/v1/pages.txt",
        "/v1/check",
        "/v1/near",
        "/v1/check?charset=utf-16",
        "/v1/check?url=%00",
        "/v1/reload?x",
    ];
    let kinds =
        ["application/json", "text/plain", "text/html; charset=\"iso-2022-jp\"", "text/html;charset=x", ";", ""];
    for round in 0..400u64 {
        let draw = |what: u64, of: usize| splitmix64((round << 8) | what) as usize % of;
        let body: Vec<u8> = (0..draw(0, 9)).flat_map(|n| parts[draw(9 + n as u64, parts.len())].to_vec()).collect();
        let answer = server.client().post(paths[draw(1, paths.len())], kinds[draw(2, kinds.len())], &body);
        assert!(answer.status < 500, "{body:?}: {answer:?}");
        // The request line contains random bytes.
        let mut client = server.client();
        let head: Vec<u8> = (0..40).map(|n| splitmix64((round << 8) | (n + 100)) as u8).collect();
        client.send(&[&b"GET /v1/page?url="[..], &head, b" HTTP/1.1\r\nhost: localhost\r\n\r\n"].concat());
        assert!(client.answer().is_none_or(|answer| answer.status < 500));
    }
    let (code, message) = server.stop();
    assert_eq!(code, Some(0), "{message}");
    assert!(!message.contains("panicked"), "{message}");
}

#[test]
fn beyond_loopback_only_clients_with_a_key_are_answered() {
    use std::os::unix::fs::PermissionsExt;
    let index = test_data().at("a");
    assert!(fail(&["serve", &index, "--listen", "0.0.0.0:0"], 2).contains("needs keys"));
    assert!(fail(&["serve", &index, "--listen", "nowhere"], 2).contains("ADDRESS:PORT"));
    assert!(fail(&["serve", &test_data().at("run-a")], 3).contains("not an index"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    let key = "0123456789abcdef0123456789abcdef";
    std::fs::write(&path, format!("crawler {key}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(fail(&["serve", &index, "--key", path.to_str().unwrap()], 2).contains("chmod 600"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let server = Server::start(&[&index, "--key", path.to_str().unwrap()]);
    let with = |value: &str| server.client().ask("GET", "/v1/run", &[("authorization", value)], b"");
    assert_eq!(with(&format!("Bearer {key}")).status, 200);
    for wrong in
        ["", "Bearer", "Bearer ", &format!("Basic {key}"), &format!("Bearer {key}x"), &format!("Bearer {}", &key[1..])]
    {
        let refused = with(wrong);
        assert_eq!((refused.problem().0, refused.header("www-authenticate")), (401, "Bearer"), "{wrong}");
    }
    assert_eq!(server.get("/v1/run").status, 401);
    assert_eq!(server.get("/health").status, 200);
}

#[test]
fn a_hundred_reloads_under_load_fail_no_request_and_mix_no_runs() {
    let folder = tempfile::tempdir().unwrap();
    let current = folder.path().join("CURRENT");
    let name = |index: &str| {
        let half = folder.path().join("half");
        std::fs::write(&half, test_data().at(index) + "\n").unwrap();
        std::fs::rename(half, &current).unwrap();
    };
    name("a");
    let server = Server::start(&[folder.path().to_str().unwrap(), "--follow", "--threads", "2"]);
    let want = ["a", "b"].map(|index| test_data().lines(index));
    assert_ne!(want[0], want[1]);
    let runs = ["a", "b"].map(|index| {
        let about: Value =
            serde_json::from_slice(&std::fs::read(format!("{}/manifest.json", test_data().at(index))).unwrap())
                .unwrap();
        about["job"]["run"]["result"].as_str().unwrap().to_string()
    });
    let body = test_data().urls.join("\n");
    let (is_done, answers_by_run) = (AtomicBool::new(false), [AtomicUsize::new(0), AtomicUsize::new(0)]);
    let message: Vec<Answer> = std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut client = server.client();
                while !is_done.load(Ordering::Relaxed) {
                    let answer = client.post("/v1/pages.txt", "text/plain", body.as_bytes());
                    assert_eq!(answer.status, 200);
                    let run_number = runs.iter().position(|run| run == answer.header("x-webtwin-run")).unwrap();
                    assert!(answer.text() == want[run_number], "the answer belongs to another run");
                    answers_by_run[run_number].fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut client = server.client();
        let reload = |number: usize| {
            name(if number.is_multiple_of(2) { "b" } else { "a" });
            client.post("/v1/reload", "", b"")
        };
        let message = (0..100).map(reload).collect();
        is_done.store(true, Ordering::Relaxed);
        message
    });
    assert!(message.iter().all(|answer| answer.status == 200), "{message:?}");
    assert!(answers_by_run.iter().all(|count| count.load(Ordering::Relaxed) > 0), "{answers_by_run:?}");
    // A folder without an index is not loaded, and the answer reports this.
    std::fs::write(&current, "nowhere\n").unwrap();
    assert_eq!(server.client().post("/v1/reload", "", b"").problem().1, "not_reloaded");
    assert_eq!(server.get("/ready").json()["stale"], true);
    assert_eq!(server.get("/v1/page?url=http://a.example/").status, 200);
}

#[test]
fn followed_name_and_sighup_load_another_index_and_sigterm_ends_orderly() {
    let folder = tempfile::tempdir().unwrap();
    let current = folder.path().join("CURRENT");
    std::fs::write(&current, test_data().at("a")).unwrap();
    let mut server = Server::start(&[folder.path().to_str().unwrap(), "--follow"]);
    let first = server.get("/v1/run").json()["run"].clone();
    std::fs::write(&current, test_data().at("b")).unwrap();
    assert!(server.line().starts_with("serving "));
    assert_ne!(server.get("/v1/run").json()["run"], first);
    server.signal(Signal::SIGHUP);
    assert!(server.line().starts_with("serving "));
    // A request in progress is still answered, but no other one.
    let mut slow = server.client();
    slow.send(
        format!("POST /v1/pages.txt HTTP/1.1\r\nhost: {}\r\ncontent-length: 18\r\n\r\nhttp://a", server.address)
            .as_bytes(),
    );
    std::thread::sleep(Duration::from_millis(200));
    server.signal(Signal::SIGTERM);
    std::thread::sleep(Duration::from_millis(200));
    slow.send(b".example/\n");
    assert_eq!(slow.answer().unwrap().text(), "unknown\n");
    assert!(slow.answer().is_none());
    let (code, message) = server.ended();
    assert_eq!(code, Some(0), "{message}");
}

/// Runs a server with limits within this process.
fn within(limits: ServiceLimits, test: impl FnOnce(&str)) {
    let settings = ServeSettings {
        index: test_data().at("a"),
        follow: false,
        recheck: 1.0,
        verify: true,
        front: webtwin::http::ServiceSettings {
            listen: "127.0.0.1:0".into(),
            hosts: Vec::new(),
            keys: None,
            threads: 1,
            limits,
        },
    };
    let (send, receive) = std::sync::mpsc::channel();
    let served = std::thread::spawn(move || serve(settings, |address, handle| send.send((address, handle)).unwrap()));
    let (address, handle) = receive.recv().unwrap();
    test(&address.to_string());
    handle.stop();
    served.join().unwrap().unwrap();
}

#[test]
fn slow_clients_and_too_many_connections_do_not_block_others() {
    let second = Duration::from_millis(400);
    let limits = ServiceLimits { connections: 3, request: second, connection: 4 * second, ..ServiceLimits::default() };
    within(limits, |address| {
        // Three clients send only the beginning of a request and must not keep another one waiting.
        let mut idle: Vec<Client> = (0..3).map(|_| Client::of(address)).collect();
        let mut behind = Client::of(address);
        idle.iter_mut().for_each(|client| client.send(b"GET /hea"));
        assert_eq!(behind.get("/health").text(), "ok\n");
        let mut slow = Client::of(address);
        slow.send(
            format!("POST /v1/pages.txt HTTP/1.1\r\nhost: {address}\r\ncontent-length: 1000\r\n\r\nhttp://a/")
                .as_bytes(),
        );
        assert_eq!(slow.answer().unwrap().problem(), (408, "timeout".into()));
        // A connection is closed at its maximum age.
        let mut persistent = Client::of(address);
        assert_eq!(persistent.get("/health").status, 200);
        assert!(persistent.answer().is_none());
        // With `recheck` = 1.0, every page that may be skipped is fetched again.
        let mut client = Client::of(address);
        let (url, keep) = skipped();
        let page = client.get(&format!("/v1/page?url={}", escaped(&url)));
        assert_eq!((page.json()["action"].as_str(), page.json()["why"].as_str()), (Some("fetch"), Some("recheck")));
        assert_eq!((page.json()["keep"]["url"].as_str(), page.header("etag")), (Some(keep.as_str()), ""));
    });
}

#[test]
fn waiting_clients_are_displaced_and_an_admitted_one_last() {
    within(ServiceLimits { connections: 8, in_flight: 4, ..ServiceLimits::default() }, |address| {
        let mut persistent = Client::of(address);
        assert_eq!(persistent.get("/v1/run").status, 200);
        let body = format!("POST /v1/pages.txt HTTP/1.1\r\nhost: {address}\r\ncontent-length: 9\r\n\r\nhttp");
        let mut slow = Vec::new();
        for round in 0..40 {
            // Incomplete headers and bodies, and requests that are refused.
            let mut client = Client::of(address);
            match round % 4 {
                0 => client.send(b"GET /v1/run HT"),
                1 => client.send(b"GET /v1/run HTTP/1.1\r\nhost: another\r\n\r\n"),
                2 if round < 20 => client.send(body.as_bytes()),
                _ => {}
            }
            slow.push(client);
            assert_eq!(Client::of(address).get("/v1/run").status, 200, "{round}");
        }
        assert_eq!(persistent.get("/v1/run").status, 200);
        let metrics = persistent.get("/metrics");
        let count = |name: &str| -> u64 {
            let line = metrics.text().lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim().parse().unwrap()
        };
        assert!(count("webtwin_connections_displaced_total ") >= 32 && count("webtwin_connections ") <= 8);
    });
}

#[test]
fn slow_header_and_idle_client_lose_their_connection() {
    let short = Duration::from_millis(300);
    within(ServiceLimits { head_time: short, idle: 2 * short, ..ServiceLimits::default() }, |address| {
        let mut slow = Client::of(address);
        slow.send(b"GET /health HTTP/1.1\r\n");
        let mut silent = Client::of(address);
        let mut idle = Client::of(address);
        assert_eq!(idle.get("/health").status, 200);
        let mut late = Client::of(address);
        assert_eq!(late.get("/health").status, 200);
        late.send(b"GET /hea");
        for client in [&mut slow, &mut silent, &mut idle, &mut late] {
            assert!(client.answer().is_none());
        }
    });
}

#[cfg(not(feature = "search"))]
#[test]
fn without_the_feature_there_is_no_search_path() {
    let server = Server::start(&[&test_data().at("a")]);
    for path in ["/search?q=a", "/v1/search?q=a"] {
        assert_eq!(server.get(path).status, 404);
    }
}

#[cfg(feature = "search")]
#[test]
fn search_page_escapes_hostile_pages_and_all_links_resolve() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let title = "Manual</title><script>alert(1)</script>\u{202e}&quot;><img src=x>\u{2028}";
    let page = |n: usize, same: &str| {
        let text = format!("{same} manual {}", "What pages say alike, &lt;b onclick=x> and no other. ".repeat(9));
        let html = format!("<title>{}</title><p>{text}", title.replace('<', "&lt;"));
        json!({ "url": format!("http://h{n}.example/?q=\"><script>&x={n}"), "html": html }).to_string() + "\n"
    };
    let rows: String = (0..30).map(|n| page(n, if n < 15 { "one" } else { "another text of its own line" })).collect();
    std::fs::write(at("in.jsonl"), rows).unwrap();
    succeed(&["run", "--input", &at("in.jsonl"), "--output", &at("run")]);
    succeed(&["index", &at("run"), "--output", &at("idx"), "--text"]);
    let server = Server::start(&[&at("idx")]);
    let mut client = server.client();
    for (path, has) in [
        ("/search", "Words of a text"),
        ("/search?q=manual", "rolled up to"),
        ("/search?q=manual&roll=0", "30 pages match"),
        ("/search?q=manual&roll=0&from=10&reorder=1", "previous results"),
        ("/search?q=%22%3E%3Cscript%3Ealert(1)", "30 pages match"),
        ("/search?q=neverwritten", "0 pages match"),
        ("/search?q=manual%20host:h3.example", "1 page matches"),
    ] {
        let answer = client.get(path);
        let text = answer.text();
        assert_eq!((answer.status, text.contains(has)), (200, true), "{path}: {text}");
        assert!(answer.header("content-security-policy").starts_with("default-src 'none'; style-src 'self'"));
        assert!(!text.contains("<script") && !text.contains("<img") && !text.contains("<b onclick"), "{text}");
        for link in text.split("href=\"/").skip(1).map(|rest| rest.split('"').next().unwrap().replace("&amp;", "&")) {
            assert_eq!(client.get(&format!("/{link}")).status, 200, "{link}");
        }
    }
    assert!(client.get("/search?q=manual").text().contains("<mark>Manual</mark>"));
    for (path, status) in [("/v1/search?q=", 422), ("/v1/search?q=a&roll=7", 400), ("/v1/search?p=a", 400)] {
        assert_eq!(client.get(path).status, status, "{path}");
    }
    succeed(&["index", &at("run"), "--output", &at("bare")]);
    assert_eq!(Server::start(&[&at("bare")]).get("/v1/search?q=manual").status, 404);
}
