//! `webtwin live`: its answers, the requests that it refuses, and that no acknowledged page is
//! lost.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use webtwin::ids::splitmix64;

use crate::serve::schema::wrong;
use crate::support::planted::write_crawl;
use crate::support::program::{fail, files, stderr_text, succeed, succeeded, webtwin};
use crate::support::server::{Answer, Client, Server, escaped};

const NDJSON: &str = "application/x-ndjson";

/// Returns a text of some hundred words that depends on the seed.
fn words(seed: u64) -> String {
    (0..120).map(|at| format!("w{:x} ", splitmix64(seed * 1000 + at) % 5000)).collect::<String>() + "."
}

/// Returns a JSON line with a page.
fn line(url: &str, seed: u64) -> String {
    json!({ "url": url, "html": format!("<title>{seed}</title><p>{}", words(seed)) }).to_string() + "\n"
}

/// Returns a WARC record with a page.
fn record(url: &str, seed: u64) -> Vec<u8> {
    let http = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>{}", words(seed));
    let head =
        format!("WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nContent-Type: application/http\r\n");
    format!("{head}Content-Length: {}\r\n\r\n{http}\r\n\r\n", http.len()).into_bytes()
}

/// Returns the lines of an answer, and its closing line.
fn lines(answer: &Answer) -> (Vec<Value>, Value) {
    assert_eq!(answer.status, 200, "{answer:?}");
    let mut lines: Vec<Value> = answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let closing = lines.pop().unwrap();
    assert_eq!(closing["read"], lines.len());
    let sum = |a: &str, b: &str| closing[a].as_u64().unwrap() + closing[b].as_u64().unwrap();
    assert_eq!(closing["read"], sum("kept", "rejected"));
    assert_eq!(closing["read_bytes"], sum("kept_bytes", "rejected_bytes"));
    (lines, closing)
}

fn folder() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index").to_str().unwrap().to_string();
    (folder, path)
}

#[test]
fn pages_are_answered_one_by_one_and_known_after_a_restart() {
    let (_folder, index) = folder();
    let server = Server::of("live", &[&index]);
    let mut client = server.client();
    let body = [line("http://a.example/1", 1), line("http://b.example/1", 1), line("http://a.example/2", 2)].concat();
    let (answers, closing) = lines(&client.post("/v1/pages", NDJSON, body.as_bytes()));
    let states: Vec<&str> = answers.iter().map(|answer| answer["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["new", "exact", "new"]);
    assert_eq!(answers[1]["near"]["url"], "http://a.example/1");
    assert_eq!(answers[1]["cluster"], answers[0]["cluster"]);
    assert_eq!((&closing["kept"], &closing["read_bytes"]), (&json!(3), &json!(body.len())));

    let warc = [record("http://c.example/1", 3), record("http://c.example/2", 2)].concat();
    let (answers, _) = lines(&client.post("/v1/pages", "application/warc", &warc));
    assert_eq!((&answers[0]["state"], &answers[1]["near"]["url"]), (&json!("new"), &json!("http://a.example/2")));

    let urls = b"http://a.example/1\nhttp://a.example/new\nmailto:x\n";
    let verdicts = client.post("/v1/pages.txt", "text/plain", urls);
    assert_eq!(verdicts.text(), "skip\thttp://a.example/1\nfetch\nreject\n");
    let known = |client: &mut Client| client.get(&format!("/v1/page?url={}", escaped("http://b.example/1"))).json();
    let before = known(&mut client);
    assert_eq!((&before["page"]["state"], &before["verdict"]["action"]), (&json!("exact"), &json!("skip")));
    assert_eq!(client.get("/v1/page?url=http://never.example/").json()["page"], Value::Null);
    assert_eq!(client.get("/v1/advice?since=0").json(), json!({ "advice": [], "last": 0 }));
    assert!(client.get("/metrics").text().contains("webtwin_live_pages 5\n"));
    for path in ["/health", "/ready", "/openapi.json", "/v1/run"] {
        assert_eq!(client.get(path).status, 200, "{path}");
    }
    fail(&["live", &index, "--listen", "127.0.0.1:0"], 2);
    let (code, _) = server.stop();
    assert_eq!(code, Some(0));

    fail(&["live", &index, "--listen", "127.0.0.1:0", "--set", "chunks.unit=words"], 2);
    let server = Server::of("live", &[&index]);
    let mut client = server.client();
    assert_eq!(known(&mut client), before);
    let (answers, _) = lines(&client.post("/v1/pages", NDJSON, body.as_bytes()));
    assert!(answers.iter().all(|answer| answer["state"] == "again"), "{answers:?}");
}

#[test]
fn invalid_pages_are_answered_in_place_and_the_others_are_kept() {
    let (_folder, index) = folder();
    let server = Server::of("live", &[&index]);
    let mut client = server.client();
    let good = line("http://a.example/1", 1);
    let response = json!({
        "url": "http://a.example/2", "content_type": "text/html; charset=iso-8859-1", "fetch_time": 1_700_000_000,
        "body_base64": base64(format!("<p>{}", words(5)).as_bytes()),
    });
    let response = response.to_string();
    let body = [
        good.as_bytes(),
        b"{\n",
        b"\xff\xfe\n",
        b"{\"url\":\"http://a.example/x\"}\n",
        b"{\"url\":\"http://a.example/gone\",\"status\":404}\n",
        b"{\"url\":\"ftp://a.example/\",\"text\":\"x\"}\n",
        response.as_bytes(),
        b"\n{\"url\":\"http://a.example/y\",\"ht",
    ];
    let (answers, closing) = lines(&client.post("/v1/pages", NDJSON, &body.concat()));
    let rejected: Vec<&str> = answers.iter().map(|one| one["rejected"].as_str().unwrap_or("")).collect();
    assert_eq!(rejected, ["", "bad_json", "not_utf8", "bad_field", "", "bad_url", "", "bad_json"]);
    assert_eq!(answers[4]["missing"], "http://a.example/gone");
    assert_eq!(answers[1]["offset"], good.len());
    assert_eq!((&closing["kept"], &closing["rejected"]), (&json!(2), &json!(6)));

    let mut cut = [record("http://a.example/3", 3), record("http://a.example/4", 4)].concat();
    cut.truncate(cut.len() - 100);
    let (answers, _) = lines(&client.post("/v1/pages", "application/warc", &cut));
    assert_eq!((&answers[0]["state"], &answers[1]["rejected"]), (&json!("new"), &json!("truncated")));

    for (kind, body, status, code) in [
        ("application/json", &b"{}"[..], 415, "media_type"),
        ("application/x-ndjson; charset=latin1", b"{}", 415, "media_type"),
        ("application/warc", b"no archive", 422, "not_warc"),
    ] {
        assert_eq!(client.post("/v1/pages", kind, body).problem(), (status, code.to_string()));
    }
    let many = "{}\n".repeat(10_001);
    assert_eq!(client.post("/v1/pages", NDJSON, many.as_bytes()).problem(), (413, "too_many".into()));
    // The request is refused because of its header. The unread body closes the connection.
    let mut long = server.client();
    long.send(format!("POST /v1/pages HTTP/1.1\r\nhost: {}\r\ncontent-type: {NDJSON}\r\n", server.address).as_bytes());
    long.send(b"content-length: 99999999\r\n\r\n{}");
    assert_eq!(long.answer().unwrap().problem(), (413, "too_large".into()));
    assert_eq!(server.client().get("/v1/advice?wait=31").problem().0, 422);
    assert_eq!(server.client().get("/v1/run").json()["figures"]["pages"], 3);
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits = three.iter().fold(0u32, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - three.len()));
        for digit in 0..4 {
            let is_there = digit <= three.len();
            text.push(if is_there { DIGITS[(bits >> (18 - 6 * digit) & 63) as usize] as char } else { '=' });
        }
    }
    text
}

#[test]
fn clients_that_never_read_or_send_do_not_block_others() {
    let (_folder, index) = folder();
    let server = Server::of("live", &[&index]);
    let body: String = (0..2000).map(|at| format!("{{\"url\":\"http://a.example/{at}\"}}\n")).collect();
    let mut deaf = Vec::new();
    for _ in 0..20 {
        let mut client = server.client();
        let head = format!("POST /v1/pages HTTP/1.1\r\nhost: {}\r\ncontent-type: {NDJSON}\r\n", server.address);
        client.send(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes());
        let mut half = server.client();
        half.send(format!("{head}content-length: 1000000\r\n\r\n{body}").as_bytes());
        let mut events = server.client();
        let head = format!("GET /v1/advice HTTP/1.1\r\nhost: {}\r\naccept: text/event-stream\r\n\r\n", server.address);
        events.send(head.as_bytes());
        let mut poll = server.client();
        poll.send(format!("GET /v1/advice?wait=30 HTTP/1.1\r\nhost: {}\r\n\r\n", server.address).as_bytes());
        deaf.push((client, half, events, poll));
    }
    let began = Instant::now();
    let (answers, _) = lines(&server.client().post("/v1/pages", NDJSON, line("http://b.example/", 1).as_bytes()));
    assert_eq!(answers[0]["state"], "new");
    assert_eq!(server.get("/v1/run").status, 200);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

/// Returns a crawl of a site and its mirror, for which a run produces advice.
fn mirrored() -> String {
    let page_of = |host: &str, at: u64| line(&format!("http://{host}/docs/p{at}.html"), 100 + at);
    (0..60).map(|at| page_of("a.example", at) + &page_of("b.example", at)).collect()
}

#[test]
fn advice_is_delivered_by_long_poll_events_and_file() {
    let (_folder, index) = folder();
    let server = Server::of("live", &[&index]);
    let mut poll = server.client();
    poll.send(format!("GET /v1/advice?since=0&wait=30 HTTP/1.1\r\nhost: {}\r\n\r\n", server.address).as_bytes());
    lines(&server.client().post("/v1/pages", NDJSON, mirrored().as_bytes()));
    let heard = poll.answer().unwrap().json();
    let first = &heard["advice"][0];
    assert_eq!(first["sequence"], 1, "{heard}");
    let file = std::fs::read_to_string(format!("{index}/advice.ndjson")).unwrap();
    assert_eq!(&serde_json::from_str::<Value>(file.lines().next().unwrap()).unwrap(), first);

    let document = server.get("/openapi.json").json();
    for path in ["/v1/advice?since=0", "/v1/page?url=http://b.example/docs/p1.html", "/v1/run", "/ready"] {
        let answer = server.get(path);
        let content = &document["paths"][path.split('?').next().unwrap()]["get"]["responses"]["200"]["content"];
        let schema = &content[answer.header("content-type")]["schema"];
        assert_eq!(wrong(&document, schema, &answer.json(), path), None);
    }
    let problem = server.get("/v1/page").json();
    assert_eq!(wrong(&document, &document["components"]["schemas"]["Problem"], &problem, "problem"), None);

    let events = |id: &str| {
        let mut client = server.client();
        let head =
            format!("GET /v1/advice HTTP/1.1\r\nhost: {}\r\naccept: text/event-stream\r\n{id}\r\n", server.address);
        client.send(head.as_bytes());
        client.read_until("\n\n", Duration::from_secs(20))
    };
    let text = events("");
    assert!(
        text.contains("content-type: text/event-stream") && text.contains("id: 1\nevent: advice\ndata: {"),
        "{text}"
    );
    assert!(!events("last-event-id: 1\r\n").contains("id: 1\n"));
    let (code, _) = server.stop();
    assert_eq!(code, Some(0));
}

#[test]
fn followed_files_are_read_once_up_to_their_last_complete_record() {
    let (folder, index) = folder();
    let crawl = folder.path().join("crawl");
    std::fs::create_dir(&crawl).unwrap();
    let glob = format!("{}/*.warc*", crawl.display());
    let once = || -> Value {
        serde_json::from_str(&succeed(&["live", &index, "--follow", &glob, "--no-listen", "--once"])).unwrap()
    };
    let whole: Vec<Vec<u8>> = (0..9).map(|at| record(&format!("http://a.example/{at}"), at)).collect();
    let mut first = whole[..3].concat();
    first.extend(&whole[3][..200]);
    std::fs::write(crawl.join("a.warc"), &first).unwrap();
    assert_eq!(once()["records"]["kept"], 3);
    assert_eq!(once()["records"]["read"], 0);
    let mut file = std::fs::OpenOptions::new().append(true).open(crawl.join("a.warc")).unwrap();
    file.write_all(&whole[3][200..]).unwrap();
    file.write_all(&whole[4..].concat()).unwrap();
    let summary = once();
    assert_eq!((&summary["records"]["kept"], &summary["figures"]["pages"]), (&json!(6), &json!(9)));
}

#[test]
fn live_clusters_are_compared_with_those_of_a_run() {
    let (folder, index) = folder();
    let (crawl, out) = (folder.path().join("a.warc"), folder.path().join("out").display().to_string());
    let crawl_name = crawl.display().to_string();
    let missing = fail(&["live", &index, "--against", &out], 2);
    assert!(missing.contains("no live index"), "{missing}");
    // Two hosts share thirty pages and have thirty different ones.
    let pages = (0..30).flat_map(|at| {
        let urls = [("a", at), ("b", at), ("c", 100 + at)];
        urls.map(|(host, text)| record(&format!("http://{host}.example/{at}"), text))
    });
    std::fs::write(&crawl, pages.collect::<Vec<_>>().concat()).unwrap();
    succeed(&["live", &index, "--follow", &crawl_name, "--no-listen", "--once"]);
    succeed(&["run", "--input", &crawl_name, "--output", &out]);
    let agreement: Value = serde_json::from_str(&succeed(&["live", &index, "--against", &out])).unwrap();
    let expected = json!({
        "pages": 90, "live_pairs": 30, "run_pairs": 30, "common_pairs": 30, "precision": 1.0, "recall": 1.0
    });
    assert_eq!(agreement, expected);
}

#[test]
fn a_scheduled_run_restores_what_live_has_read_and_has_the_bytes_of_a_run_from_scratch() {
    let (folder, index) = folder();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (crawl, state) = (at("crawl"), at("state"));
    write_crawl(&crawl, 300, 7);
    let glob = format!("{crawl}/*.warc*");
    // Runs a command and returns its messages on stderr.
    let run = |arguments: &[&str]| {
        let output = webtwin(arguments).output().unwrap();
        let message = stderr_text(&output);
        succeeded(arguments, output);
        message
    };
    let live = || run(&["live", &index, "--follow", &glob, "--no-listen", "--once", "--state", &state]);
    let restored = |output: &str| {
        let message = run(&["run", "--state", &state, "--input", &glob, "--output", &at(output)]);
        message.lines().find(|line| line.starts_with("state: ")).unwrap().to_string()
    };
    let is_scratch = |output: &str, scratch: &str| {
        succeed(&["run", "--input", &glob, "--output", &at(scratch)]);
        assert_eq!(files(&at(output)), files(&at(scratch)));
    };
    let message = live();
    let is_warc = |name: &std::ffi::OsStr| name.to_str().unwrap().contains(".warc");
    let inputs = std::fs::read_dir(&crawl).unwrap().filter(|file| is_warc(&file.as_ref().unwrap().file_name())).count();
    assert_eq!(message.matches("is read ahead").count(), inputs, "{message}");
    assert!(!live().contains("is read ahead"), "the lists are already in the state");
    assert_eq!(
        restored("first"),
        format!(
            "state: {inputs} of {inputs} work items have checkpoints, in a new state; {inputs} of them were read ahead"
        )
    );
    is_scratch("first", "first-scratch");
    // The generation now contains these lists.
    assert_eq!(std::fs::read_dir(format!("{state}/ahead")).unwrap().count(), 0);

    // One file has grown, and one is new.
    let [grown, new] = ["grown.warc", "new.warc"].map(|name| format!("{crawl}/{name}"));
    std::fs::write(&new, record("http://new.example/", 1)).unwrap();
    std::fs::write(&grown, record("http://new.example/1", 2)).unwrap();
    assert_eq!(live().matches("is read ahead").count(), 2);
    std::fs::write(&grown, [record("http://new.example/1", 2), record("http://new.example/2", 1)].concat()).unwrap();
    let all = inputs + 2;
    let expected = format!(
        "{} of {all} work items have checkpoints, in generation 1, of which 0 were removed or have changed",
        all - 1
    );
    assert_eq!(restored("second"), format!("state: {expected}; 1 of them were read ahead"));
    is_scratch("second", "second-scratch");
}

/// Number of kills in a test. `scripts/live/kills` sets more.
fn kills() -> u64 {
    std::env::var("WEBTWIN_LIVE_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(24)
}

#[test]
fn nothing_acknowledged_is_lost_by_kills_and_no_answer_contradicts_the_log() {
    let (folder, index) = folder();
    let crawl = folder.path().join("crawl");
    write_crawl(crawl.to_str().unwrap(), 2000, 5);
    let glob = format!("{}/*.warc*", crawl.display());
    let mut acknowledged: BTreeMap<String, Value> = BTreeMap::new();
    for kill in 0..kills() {
        let server = Server::of("live", &[&index, "--follow", &glob]);
        let check: Vec<_> = acknowledged.iter().skip((kill as usize * 7) % 50).step_by(50).collect();
        let mut client = server.client();
        for (url, answer) in check {
            let page = client.get(&format!("/v1/page?url={}", escaped(url))).json();
            assert_eq!((&page["page"]["state"], &page["page"]["near"]), (&answer["state"], &answer["near"]), "{url}");
        }
        let post = |thread: u64| {
            let (mut client, mut answers) = (server.client(), Vec::new());
            for at in 0.. {
                let page = |n: u64| {
                    let number = ((kill * 3 + thread) * 1000 + at) * 4 + n;
                    line(&format!("http://h{}.example/{number}", number % 5), number / 3)
                };
                let body: String = (0..4).map(page).collect();
                let head = format!("POST /v1/pages HTTP/1.1\r\nhost: {}\r\ncontent-type: {NDJSON}\r\n", server.address);
                client.send(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes());
                match client.whole_answer() {
                    Some(answer) => answers.extend(lines(&answer).0),
                    None => break,
                }
            }
            answers
        };
        let post = &post;
        let answers: Vec<Value> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|thread| scope.spawn(move || post(thread))).collect();
            std::thread::sleep(Duration::from_micros(splitmix64(kill) % 150_000));
            server.signal(Signal::SIGKILL);
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        for answer in answers.into_iter().filter(|answer| answer["state"] != "again") {
            acknowledged.insert(answer["url"].as_str().unwrap().to_string(), answer);
        }
    }
    assert!(acknowledged.len() > 100, "{}", acknowledged.len());
    let server = Server::of("live", &[&index]);
    let mut client = server.client();
    for (url, answer) in &acknowledged {
        let page = client.get(&format!("/v1/page?url={}", escaped(url))).json();
        assert_eq!((&page["page"]["state"], &page["page"]["near"]), (&answer["state"], &answer["near"]), "{url}");
    }
    drop(client);
    server.stop();
    // The index has the followed files completely and without repetition. Reading them again from
    // the beginning adds nothing.
    let read = |index: &str| -> Value {
        serde_json::from_str(&succeed(&["live", index, "--follow", &glob, "--no-listen", "--once"])).unwrap()
    };
    let after = read(&index)["figures"]["pages"].as_u64().unwrap();
    let fresh = folder.path().join("fresh").to_str().unwrap().to_string();
    let alone = read(&fresh)["figures"]["pages"].as_u64().unwrap();
    assert!(after >= alone + acknowledged.len() as u64, "{after} {alone} {}", acknowledged.len());
    assert_eq!(read(&index)["records"]["read"], 0);
}
