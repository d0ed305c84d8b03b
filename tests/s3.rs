//! All storage operations against moto's S3 server on the loopback interface.
//!
//! Needs `moto[server]` for Python 3. Without it, each test prints a message and ends.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::planted::write_crawl_to;
use crate::support::ports::reserved_address;
use webtwin::pages::sniff::is_html;
use webtwin::read_at::RandomAccess;
use webtwin::storage::expand::expand_with;
use webtwin::storage::location::Location;
use webtwin::storage::manifest::{FileEntry, Manifest};
use webtwin::storage::open::open;
use webtwin::storage::output::Attempt;
use webtwin::storage::stores::Stores;

/// A server that this test has started and ends.
struct Moto {
    child: Child,
    port: u16,
}

impl Moto {
    /// Starts a server on a free port. Returns `None` if moto is not installed.
    fn start() -> Option<Moto> {
        let installed =
            Command::new("python3").args(["-c", "import moto.server, flask"]).stderr(Stdio::null()).status();
        if !installed.is_ok_and(|status| status.success()) {
            println!("skipped: moto is not installed");
            return None;
        }
        let port: u16 = reserved_address().rsplit(':').next().unwrap().parse().unwrap();
        let child = Command::new("python3")
            .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let moto = Moto { child, port };
        let deadline = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "moto does not answer on port {port}");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(moto)
    }

    /// Creates a bucket by a hand-written request, so that the tests do not depend on another
    /// client.
    fn create_bucket(&self, bucket: &str) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let request = format!(
            "PUT /{bucket} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            self.port
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    /// Returns the program, configured to use this server.
    fn webtwin(&self, arguments: &[&str]) -> Command {
        let mut command = crate::support::program::webtwin(arguments);
        command
            .env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", self.port))
            .env("AWS_ACCESS_KEY_ID", "canary-key-id")
            .env("AWS_SECRET_ACCESS_KEY", "canary-secret")
            .env("AWS_REGION", "us-east-1");
        command
    }

    fn stores(&self) -> Stores {
        Stores::with_settings([
            ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", self.port)),
            ("AWS_ACCESS_KEY_ID", "canary-key-id".into()),
            ("AWS_SECRET_ACCESS_KEY", "canary-secret".into()),
            ("AWS_REGION", "us-east-1".into()),
        ])
        .with_patience(Duration::from_secs(5))
    }
}

/// Forwards requests to a store, and flips a bit in the first answer to each GET of an object or of
/// a list without folders. Returns the port.
fn flipping_proxy(store: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen_requests: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let seen_requests = Arc::clone(&seen_requests);
            std::thread::spawn(move || forward(client, store, &seen_requests).unwrap_or_default());
        }
    });
    port
}

/// Forwards one request. Both servers close the connection after it.
fn forward(client: TcpStream, store: u16, seen: &Mutex<BTreeSet<String>>) -> std::io::Result<()> {
    let mut client = BufReader::new(client);
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let start = head.len();
        if client.read_line(&mut head)? == 0 {
            return Ok(());
        }
        let line = head[start..].to_ascii_lowercase();
        length = line.strip_prefix("content-length:").map_or(length, |value| value.trim().parse().unwrap());
    }
    let mut body = vec![0; length];
    client.read_exact(&mut body)?;
    let mut server = TcpStream::connect(("127.0.0.1", store))?;
    server.write_all(head.replacen("\r\n", "\r\nConnection: close\r\n", 1).as_bytes())?;
    server.write_all(&body)?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    let request_line = head.lines().next().unwrap();
    let body = answer.windows(4).position(|four| four == b"\r\n\r\n").map_or(answer.len(), |end| end + 4);
    let is_chosen = request_line.starts_with("GET ") && !request_line.contains("delimiter") && body < answer.len();
    if is_chosen && seen.lock().unwrap().insert(request_line.into()) {
        let middle = body + (answer.len() - body) / 2;
        answer[middle] ^= 1;
    }
    client.get_mut().write_all(&answer)
}

#[test]
fn bits_flipped_in_transit_cost_requests_but_no_result() {
    let Some(mut moto) = Moto::start() else { return };
    moto.create_bucket("out");
    let run = |moto: &Moto, name: &str| {
        let output = format!("s3://out/{name}");
        let run = ["run", "--input", "synth://?pages=120&seed=1", "--output", &output, "--workers", "1"];
        let ended =
            moto.webtwin(&[&run[..], &["--state", &format!("s3://out/state-{name}")]].concat()).output().unwrap();
        (ended.status.code(), crate::support::program::stderr_text(&ended))
    };
    assert_eq!(run(&moto, "undisturbed").0, Some(0));
    let store = std::mem::replace(&mut moto.port, 0);
    for round in 0..3 {
        moto.port = flipping_proxy(store);
        let name = format!("flipped-{round}");
        let (code, message) = run(&moto, &name);
        assert!([Some(0), Some(6)].contains(&code), "{message}");
        moto.port = store;
        let stores = moto.stores();
        let files = |name: &str| {
            let folder = Location::parse_with(&format!("s3://out/{name}"), &stores).unwrap();
            let manifest = Manifest::read(&folder).unwrap();
            manifest.verify(&folder).unwrap();
            manifest.files
        };
        assert!(files(&name) == files("undisturbed"), "{message}");
        // The result is read through the same faulty connection.
        moto.port = flipping_proxy(store);
        let show = moto.webtwin(&["show", &format!("s3://out/{name}/pages"), "--limit", "0"]).output().unwrap();
        assert_eq!(show.status.code(), Some(0), "{}", crate::support::program::stderr_text(&show));
        let check = moto.webtwin(&["state", "check", &format!("s3://out/state-{name}")]).output().unwrap();
        assert_eq!(check.status.code(), Some(0), "{}", crate::support::program::stderr_text(&check));
        moto.port = store;
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn manifest(attempt: &str) -> Manifest {
    Manifest {
        files: vec![FileEntry::new("pairs/part-00000.parquet", Some(1), b"rows")],
        ..Manifest::new(attempt, serde_json::Value::Null)
    }
}

/// Runs the whole program with input and output on S3.
#[test]
fn a_crawl_on_s3_is_read_and_its_result_written_there() {
    let Some(moto) = Moto::start() else { return };
    moto.create_bucket("crawls");
    let webtwin = |arguments: &[&str]| {
        let output = moto.webtwin(arguments).output().unwrap();
        let stderr_text =
            String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert!(!stderr_text.contains("canary"), "a secret was told: {stderr_text}");
        (output.status.code(), stderr_text)
    };
    write_crawl_to(&Location::parse_with("s3://crawls/in", &moto.stores()).unwrap(), 300, 1);
    let run = ["run", "--input", "s3://crawls/in/*.warc.gz", "--output", "s3://crawls/out", "--workers", "2"];
    let (code, stderr_text) = webtwin(&run);
    assert_eq!(code, Some(0), "{stderr_text}");
    assert_eq!(webtwin(&run).0, Some(4), "the second run into one output is refused");
    let (code, stderr_text) = webtwin(&["show", "s3://crawls/out/pages", "--limit", "0"]);
    assert_eq!((code, stderr_text.lines().count()), (Some(0), 301), "{stderr_text}");
}

#[test]
fn state_on_s3_is_continued_and_yields_the_bytes_of_a_run_from_scratch() {
    let Some(moto) = Moto::start() else { return };
    moto.create_bucket("crawls");
    let webtwin = |arguments: &[&str], code: i32| {
        let output = moto.webtwin(arguments).output().unwrap();
        let stderr_text =
            String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{stderr_text}");
        stderr_text
    };
    let run = |output: &str, more: &[&str], code: i32| {
        let output = format!("s3://crawls/{output}");
        webtwin(&[&["run", "--input", "s3://crawls/in/", "--output", &output, "--workers", "2"], more].concat(), code)
    };
    let state = ["--state", "s3://crawls/state"];
    let write_crawl = |folder: &str, pages, seed| {
        write_crawl_to(&Location::parse_with(folder, &moto.stores()).unwrap(), pages, seed);
    };
    write_crawl("s3://crawls/in/1", 300, 1);
    run("first", &state, 0);
    write_crawl("s3://crawls/in/2", 200, 2);
    let message = run("second", &[&state[..], &["--diff", "s3://crawls/changes"]].concat(), 0);
    assert!(message.contains("1 work items restored from checkpoints, 1 saved"), "{message}");
    run("third", &state, 10);
    run("scratch", &[], 0);
    let files = |name: &str| {
        let folder = Location::parse_with(&format!("s3://crawls/{name}"), &moto.stores()).unwrap();
        Manifest::read(&folder).unwrap().files
    };
    assert_eq!(files("second"), files("scratch"));
    assert!(files("changes").iter().any(|file| file.path.starts_with("pages_changed/")));
    let message = webtwin(&["state", "check", "s3://crawls/state"], 0);
    assert!(message.contains("generations: 2, checkpoints: 2"), "{message}");
    webtwin(&["state", "prune", "s3://crawls/state", "--keep", "1"], 0);
    assert!(webtwin(&["state", "show", "s3://crawls/state"], 0).contains("s3://crawls/second"));
}

#[test]
fn one_of_two_jobs_into_one_output_on_s3_wins_completely_and_the_other_reports_it() {
    let Some(moto) = Moto::start() else { return };
    moto.create_bucket("out");
    let stores = moto.stores();
    let run = |job: usize, output: &str| {
        let input = ["synth://?pages=120&seed=1", "synth://?pages=120&seed=2"][job];
        moto.webtwin(&["run", "--input", input, "--output", output, "--workers", "1"])
    };
    let files = |output: &str| {
        let listed = Location::parse_with(output, &stores).unwrap().list(None).unwrap();
        let files = listed
            .into_iter()
            .map(|file| (file.location.name()[output.len()..].to_string(), file.location.get().unwrap().unwrap()));
        files.filter(|file| file.0 != "/manifest.json").collect::<std::collections::BTreeMap<_, _>>()
    };
    let began = Instant::now();
    let undisturbed = [0, 1].map(|job| {
        let output = format!("s3://out/undisturbed-{job}");
        assert!(run(job, &output).status().unwrap().success());
        files(&output)
    });
    let took = began.elapsed() / 2;
    assert!(undisturbed[0] != undisturbed[1]);
    for round in 0..4u32 {
        let output = format!("s3://out/{round}");
        let first = run(0, &output).spawn().unwrap();
        std::thread::sleep(took * (round % 4) / 6);
        let second = run(1, &output).spawn().unwrap();
        let winner = crate::outputs::assert_one_won(
            &[first, second].map(|run| run.wait_with_output().unwrap()),
            &format!("round {round}"),
        );
        assert!(files(&output) == undisturbed[winner], "round {round}");
        let folder = Location::parse_with(&output, &stores).unwrap();
        Manifest::read(&folder).unwrap().verify(&folder).unwrap();
    }

    // The run is killed while it writes, and started again.
    for round in 0..2u32 {
        let output = format!("s3://out/killed-{round}");
        let mut killed = run(0, &output).spawn().unwrap();
        std::thread::sleep(took * (round + 7) / 10);
        killed.kill().unwrap();
        killed.wait().unwrap();
        let second_run = run(0, &output).output().unwrap();
        assert!(
            [Some(0), Some(4)].contains(&second_run.status.code()),
            "{}",
            crate::support::program::stderr_text(&second_run)
        );
        assert!(files(&output) == undisturbed[0], "round {round}: {:?}", files(&output).keys());
    }
}

#[test]
fn storage_works_the_same_on_s3() {
    let Some(moto) = Moto::start() else { return };
    moto.create_bucket("crawls");
    let stores = moto.stores();
    let at = |url: &str| Location::parse_with(url, &stores).unwrap();

    // Put, get, exists and list treat keys literally.
    let odd = ["a b.jsonl", "a%2Fb.jsonl", "a#b.jsonl", "a+b?c.jsonl", "ü.jsonl", "deep/er/x.jsonl"];
    for name in odd {
        let location = at(&format!("s3://crawls/in/{name}"));
        assert!(!location.exists().unwrap());
        location.put(name.as_bytes()).unwrap();
        assert_eq!(location.get().unwrap().unwrap(), name.as_bytes());
    }
    assert_eq!(at("s3://crawls/in/none").get().unwrap(), None);
    let listed = at("s3://crawls/in").list(None).unwrap();
    let mut expected: Vec<String> = odd.iter().map(|name| format!("s3://crawls/in/{name}")).collect();
    expected.sort();
    assert_eq!(listed.iter().map(|file| file.location.name()).collect::<Vec<_>>(), expected);
    assert_eq!(listed[0].stamp, listed[0].location.stamp().unwrap().unwrap(), "listing and HEAD agree");

    // Inputs given by globs, folders and lists.
    let names = |inputs: &[&str]| -> Result<Vec<String>, webtwin::error::Error> {
        let inputs: Vec<String> = inputs.iter().map(|input| input.to_string()).collect();
        let expanded = expand_with(&inputs, is_html, &stores)?;
        let locations: BTreeSet<Location> = expanded.into_iter().flat_map(|one| one.locations).collect();
        Ok(locations.iter().map(|location| location.name().to_string()).collect())
    };
    assert_eq!(names(&["s3://crawls/in/*.jsonl"]).unwrap().len(), 5);
    assert_eq!(names(&["s3://crawls/in/**/*.jsonl"]).unwrap().len(), 6);
    assert_eq!(names(&["s3://crawls/in", "s3://crawls/in/"]).unwrap(), expected);
    at("s3://crawls/lists/paths").put(b"# two\n../x\n").unwrap();
    assert_eq!(names(&["@s3://crawls/lists/paths"]).unwrap_err().exit_code(), 3, "keys have no parent");
    at("s3://crawls/lists/paths").put(b"one\ns3://crawls/two\n").unwrap();
    assert_eq!(names(&["@s3://crawls/lists/paths"]).unwrap(), ["s3://crawls/lists/one", "s3://crawls/two"]);
    for missing in ["s3://crawls/none", "s3://crawls/none/*", "@s3://crawls/none"] {
        assert_eq!(names(&[missing]).unwrap_err().exit_code(), 3, "{missing}");
    }

    // Ranged reads of a large object, which was uploaded in parts.
    let large: Vec<u8> = (0..40u32 << 20).map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
    let object = at("s3://crawls/large");
    object.put(&large).unwrap();
    let file = open(&object).unwrap();
    assert_eq!(file.len(), large.len() as u64);
    for (offset, length) in [(0, 10), (5, 100_000), (16 << 20, 5 << 20), (large.len() - 7, 100), (large.len() + 5, 3)] {
        let until = large.len().min(offset + length);
        assert!(file.read_at(offset as u64, length).unwrap() == large[offset.min(until)..until], "{offset} {length}");
    }
    for start in (0..4 << 20).step_by(10_000) {
        assert!(file.read_at(start as u64, 10_000).unwrap() == large[start..start + 10_000]);
    }
    file.still_same().unwrap();

    // The next request detects that the object has changed.
    object.put(&large[..large.len() - 1]).unwrap();
    assert_eq!(file.read_at(30 << 20, 10).unwrap_err().exit_code(), 3);
    assert_eq!(file.still_same().unwrap_err().exit_code(), 3);
    object.remove().unwrap();
    assert_eq!(file.read_at(35 << 20, 10).unwrap_err().exit_code(), 3);

    // Of sixteen runs that race, one commits, and its result verifies.
    let output = at("s3://crawls/out");
    let ends: Vec<u8> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..16)
            .map(|run| {
                let output = &output;
                scope.spawn(move || {
                    let attempt = Attempt::new(output, &format!("{run:x}")).unwrap();
                    let staged = attempt.put("pairs/part-00000.parquet", b"rows");
                    let committed = staged.and_then(|()| manifest(attempt.id()).commit(&attempt));
                    committed.map_or_else(|error| error.exit_code(), |()| 0)
                })
            })
            .collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    assert_eq!(ends.iter().filter(|&&end| end == 0).count(), 1, "{ends:?}");
    assert!(ends.iter().all(|&end| end == 0 || end == 4), "{ends:?}");
    Manifest::read(&output).unwrap().verify(&output).unwrap();
    assert_eq!(output.list(None).unwrap().len(), 2, "the losing runs have removed their files");

    // An unreachable store is a storage error that names the location and discloses no secret.
    drop(moto);
    let unreachable_stores = stores.with_patience(Duration::from_secs(1));
    for error in [
        Location::parse_with("s3://crawls/in/x", &unreachable_stores).unwrap().get().unwrap_err(),
        output.exists().unwrap_err(),
    ] {
        assert_eq!(error.exit_code(), 8);
        let message = error.to_string();
        assert!(message.contains("s3://crawls/") && !message.contains("canary"), "{message}");
    }
}
