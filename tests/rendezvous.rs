//! Processes that meet, work together and fail together. In these tests they are threads, each with
//! its own sockets on loopback.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::support::ports::reserved_address;
use proptest::prelude::*;
use webtwin::engine::heartbeat::Heartbeat;
use webtwin::engine::identity::Identity;
use webtwin::engine::rendezvous::{Meeting, meet};
use webtwin::engine::{ClusterLayout, Net, run};
use webtwin::error::{Error, Result};

const JOB: [u8; 32] = [7; 32];

/// Returns the layout of a cluster on loopback.
pub(super) fn cluster(processes: usize, workers: usize, deadline: &str) -> ClusterLayout {
    let mut text = format!("workers = {workers}\ndeadline = {deadline:?}\n");
    for _ in 0..if processes > 1 { processes } else { 0 } {
        text += &format!("[[process]]\naddress = {:?}\n", reserved_address());
    }
    ClusterLayout::parse(&text, "test.toml", Path::new("")).unwrap()
}

fn with_key(cluster: &ClusterLayout, secret: &str) -> ClusterLayout {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("key"), secret.repeat(8)).unwrap();
    let key = webtwin::engine::key::ClusterKey::read(&folder.path().join("key"), false).unwrap();
    ClusterLayout { key, ..cluster.clone() }
}

fn join(cluster: &ClusterLayout, process: usize) -> JoinHandle<Result<Meeting>> {
    let me = Identity::new(cluster, process, JOB);
    join_as(cluster, me)
}

fn join_as(cluster: &ClusterLayout, me: Identity) -> JoinHandle<Result<Meeting>> {
    let cluster = cluster.clone();
    std::thread::spawn(move || {
        let heartbeat = Heartbeat::start(cluster.deadline).unwrap();
        let met = meet(&cluster, &me, &heartbeat);
        if let Err(error) = &met {
            heartbeat.stop(error.clone());
        }
        met
    })
}

/// Returns the exit code and the error message of a process that failed.
fn end<T: std::fmt::Debug>(process: JoinHandle<Result<T>>) -> (u8, String) {
    let error = process.join().unwrap().unwrap_err();
    (error.exit_code(), error.to_string())
}

fn knock(cluster: &ClusterLayout, process: usize) -> TcpStream {
    loop {
        if let Ok(stream) = TcpStream::connect(&cluster.addresses[process]) {
            return stream;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn processes_meet_in_any_starting_order() {
    let cluster = with_key(&cluster(3, 1, "10s"), "right");
    let processes = [2, 0, 1].map(|process| {
        std::thread::sleep(Duration::from_millis(50));
        (process, join(&cluster, process))
    });
    for (process, joined) in processes {
        let meeting = joined.join().unwrap().unwrap();
        let open: Vec<bool> = meeting.sockets.iter().map(Option::is_some).collect();
        assert_eq!(open, [0, 1, 2].map(|other| other != process));
    }
}

#[test]
fn unauthenticated_connections_are_counted_and_delay_no_process() {
    let cluster = with_key(&cluster(2, 1, "20s"), "right");
    let first = join(&cluster, 0);
    let mut streams = Vec::new();
    // More silent connections than may wait at a time come first, then connections that send
    // something.
    for _ in 0..80 {
        streams.push(knock(&cluster, 0));
    }
    for words in [&b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..], &[0xff; 500], b"webtwin\n", &[0; 8]] {
        let mut stream = knock(&cluster, 0);
        stream.write_all(words).unwrap();
        streams.push(stream);
    }
    let mut closed_stream = knock(&cluster, 0);
    closed_stream.write_all(b"x").unwrap();
    drop(closed_stream);

    // Handling the silent connections one after the other would take 80 times the timeout of one,
    // far longer than the deadline.
    let second = join(&cluster, 1);
    assert!(second.join().unwrap().is_ok());
    let meeting = first.join().unwrap().unwrap();
    assert!(meeting.strangers >= 18, "{}", meeting.strangers);
}

#[test]
fn random_bytes_after_the_magic_word_never_get_in() {
    let cluster = with_key(&cluster(2, 1, "20s"), "right");
    let first = join(&cluster, 0);
    for seed in 0..50u8 {
        let mut stream = knock(&cluster, 0);
        let mut words = b"webtwin\n\x03\0\0\0".to_vec();
        words.extend((0..400u32).map(|at| (at as u8).wrapping_mul(seed | 1) ^ seed));
        let _ = stream.write_all(&words);
    }
    assert!(join(&cluster, 1).join().unwrap().is_ok());
    assert!(first.join().unwrap().is_ok());
}

#[test]
fn a_wrong_key_is_refused_on_both_sides() {
    let ours = with_key(&cluster(2, 1, "2s"), "right");
    let first = join(&ours, 0);
    let (code, line) = end(join(&with_key(&ours, "wrong"), 1));
    assert_eq!(code, 2);
    assert!(line.contains("process 0 at 127.0.0.1") && line.contains("key_file"), "{line}");
    let (code, line) = end(first);
    assert_eq!(code, 2);
    assert!(line.contains("process 1 at 127.0.0.1") && line.contains("key_file"), "{line}");
}

#[test]
fn a_wrong_key_does_not_keep_the_right_one_out() {
    let ours = with_key(&cluster(2, 1, "10s"), "right");
    let first = join(&ours, 0);
    assert_eq!(end(join(&with_key(&ours, "wrong"), 1)).0, 2);
    assert!(join(&ours, 1).join().unwrap().is_ok());
    assert_eq!(first.join().unwrap().unwrap().strangers, 1);
}

/// Forwards the acceptor's greeting to a dialer as a man in the middle, and returns the dialer's
/// `hello`.
fn overhear(from: &TcpListener, cluster: &ClusterLayout) -> Vec<u8> {
    let mut dialer = from.accept().unwrap().0;
    let mut acceptor = knock(cluster, 0);
    let mut greeting = [0; 44];
    acceptor.read_exact(&mut greeting).unwrap();
    dialer.write_all(&greeting).unwrap();
    let mut hello = vec![0; 228];
    dialer.read_exact(&mut hello).unwrap();
    hello
}

#[test]
fn a_replayed_hello_is_refused() {
    let ours = with_key(&cluster(2, 1, "10s"), "right");
    let first = join(&ours, 0);
    let middle = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut detour = ours.clone();
    detour.addresses[0] = middle.local_addr().unwrap().to_string();
    detour.deadline = Duration::from_millis(500);
    // The peer would send the same `hello`, since the identity does not contain the changed
    // address.
    let overheard = Identity::new(&ours, 1, JOB);
    let dialer = join_as(&detour, overheard);
    let hello = overhear(&middle, &ours);
    drop(middle);

    let mut replay = knock(&ours, 0);
    let mut greeting = [0; 44];
    replay.read_exact(&mut greeting).unwrap();
    replay.write_all(&hello).unwrap();
    let mut answer = [1; 212];
    replay.read_exact(&mut answer).unwrap();
    assert_eq!(answer, [0; 212], "an unauthenticated connection gets zeros");
    let _ = dialer.join();

    assert!(join(&ours, 1).join().unwrap().is_ok());
    assert!(first.join().unwrap().unwrap().strangers >= 1);
}

#[test]
fn processes_that_differ_refuse_each_other_and_name_both_values() {
    let ours = cluster(2, 2, "10s");
    let right = Identity::new(&ours, 1, JOB);
    let mut build = right.build;
    build[..5].copy_from_slice(b"9.9.9");
    for (other, parts) in [
        (Identity { job: [0xee; 32], ..right }, ["job digest", "eeeeeeeeeeee", "070707070707"]),
        (Identity { build, ..right }, ["build", "9.9.9", env!("CARGO_PKG_VERSION")]),
        (Identity { workers: 5, ..right }, ["workers", "5", "2"]),
        (Identity { deadline: 20_000, ..right }, ["deadline", "20000 ms", "10000 ms"]),
        (Identity { processes: 4, ..right }, ["number of processes", "4", "2"]),
        (Identity { addresses: [0xdd; 32], ..right }, ["addresses", "dddddddddddd", ""]),
    ] {
        let ours = ClusterLayout { addresses: cluster(2, 2, "10s").addresses, ..ours.clone() };
        let first = join_as(&ours, Identity { process: 0, ..right });
        for (code, line) in [end(join_as(&ours, other)), end(first)] {
            assert_eq!(code, 2);
            assert!(parts.iter().all(|part| line.contains(part)), "{parts:?}: {line}");
        }
    }
}

#[test]
fn process_number_started_twice_is_rejected_the_second_time() {
    let ours = cluster(3, 1, "6s");
    // The identities are computed in advance, since each one reads the executable.
    let [first, second, again] = [0, 2, 2].map(|process| Identity::new(&ours, process, JOB));
    // Process 0, which learns of the second copy, reaches its deadline first, so its error becomes
    // the error of all.
    let first = join_as(&ours, first);
    std::thread::sleep(Duration::from_secs(1));
    let second = join_as(&ours, second);
    std::thread::sleep(Duration::from_millis(300));
    let (code, line) = end(join_as(&ours, again));
    assert_eq!(code, 2);
    assert!(line.contains("refused process 2") && line.contains("start each number once"), "{line}");
    // Process 1 never starts. The other processes end because of this, and not because of the
    // second copy.
    let lines = [first, second].map(|process| {
        let (code, line) = end(process);
        assert_eq!(code, 7);
        assert!(line.contains("process 1 at 127.0.0.1") && line.contains("did not join within 6 s"), "{line}");
        assert!(line.contains("each with its own number"), "{line}");
        line
    });
    assert!(lines[0].contains("process 2 was started twice"), "{}", lines[0]);
}

#[test]
fn an_absent_process_is_named_at_the_deadline_by_all() {
    let ours = cluster(3, 1, "500ms");
    let ends = [0, 1].map(|process| join(&ours, process)).map(end);
    for (code, line) in ends {
        assert_eq!(code, 7);
        assert!(line.contains(&format!("process 2 at {}", ours.addresses[2])), "{line}");
    }
}

#[test]
fn used_port_ends_a_run_immediately_and_an_unknown_name_at_the_deadline() {
    let ours = cluster(2, 1, "10s");
    let _taken = TcpListener::bind(&ours.addresses[0]).unwrap();
    let (code, line) = end(join(&ours, 0));
    assert_eq!(code, 2);
    assert!(line.contains(&format!("cannot listen on {}", ours.addresses[0])), "{line}");
    assert!(line.contains("another process with this number may be running"), "{line}");

    // The name might become resolvable at any time.
    let mut ours = with_key(&cluster(2, 1, "500ms"), "right");
    ours.addresses[1] = "no-such-host.invalid:2101".to_string();
    let (code, line) = end(join(&ours, 0));
    assert_eq!(code, 7);
    assert!(line.contains("no-such-host.invalid:2101"), "{line}");
}

/// Runs `program` on every process of a cluster. Returns the results of all workers in order, or
/// the error of each process.
pub(super) fn run_all<T: Send + 'static>(
    cluster: &ClusterLayout,
    program: impl Fn(&mut Net) -> Result<T> + Send + Sync + 'static,
) -> Vec<Result<Vec<T>>> {
    let program = Arc::new(program);
    let processes: Vec<_> = (0..cluster.processes())
        .map(|process| {
            let (cluster, program) = (cluster.clone(), Arc::clone(&program));
            std::thread::spawn(move || run(&cluster, process, JOB, move |net| program(net)))
        })
        .collect();
    processes.into_iter().map(|process| process.join().unwrap()).collect()
}

pub(super) fn results<T: Send + 'static>(
    cluster: &ClusterLayout,
    program: impl Fn(&mut Net) -> Result<T> + Send + Sync + 'static,
) -> Vec<T> {
    run_all(cluster, program).into_iter().flat_map(|results| results.unwrap()).collect()
}

fn errors(
    cluster: &ClusterLayout,
    program: impl Fn(&mut Net) -> Result<()> + Send + Sync + 'static,
) -> Vec<(u8, String)> {
    let errors = run_all(cluster, program).into_iter().map(|result| result.unwrap_err());
    errors.map(|error| (error.exit_code(), error.to_string())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn every_row_arrives_once_at_its_worker(
        rows in prop::collection::vec(any::<[u32; 3]>(), 0..5000),
        copies in 1usize..60,
        workers in 1usize..4,
        processes in 1usize..3,
        keyed: bool,
    ) {
        let cluster = cluster(processes, workers, "20s");
        let cluster = if keyed { with_key(&cluster, "right") } else { cluster };
        let sent_rows = rows.clone();
        let arrived = results(&cluster, move |net| {
            let (index, peers) = (net.index(), net.peers());
            let mut remaining = copies;
            let mut arrived = Vec::new();
            let source = |emit: &mut dyn FnMut([u32; 3])| {
                remaining = remaining.saturating_sub(1);
                rows.iter().skip(index).step_by(peers).for_each(|&row| emit(row));
                Ok(remaining > 0)
            };
            net.exchange_from("rows", source, |row| row[1] as usize % peers, |rows| {
                arrived.extend_from_slice(rows);
                Ok(())
            })?;
            arrived.sort_unstable();
            let named = net.exchange_values("names", rows.iter().skip(index).step_by(peers).map(|row| {
                Ok((row[2] as usize % peers, format!("{row:?}")))
            }))?;
            Ok((arrived, named))
        });
        let peers = arrived.len();
        prop_assert_eq!(peers, workers * processes);
        for (at, (arrived, named)) in arrived.into_iter().enumerate() {
            let mut expected: Vec<[u32; 3]> = sent_rows.iter().filter(|row| row[1] as usize % peers == at)
                .flat_map(|&row| std::iter::repeat_n(row, copies)).collect();
            expected.sort_unstable();
            prop_assert_eq!(arrived, expected);
            let expected: Vec<String> = (0..peers)
                .flat_map(|from| sent_rows.iter().skip(from).step_by(peers))
                .filter(|row| row[2] as usize % peers == at).map(|row| format!("{row:?}")).collect();
            prop_assert_eq!(named, expected);
        }
    }

    #[test]
    fn all_workers_share_the_rows_of_all_in_order(
        lengths in prop::collection::vec(0usize..40_000, 6),
        workers in 1usize..4,
        processes in 1usize..3,
    ) {
        let cluster = cluster(processes, workers, "20s");
        let peers = workers * processes;
        let rows = |worker: usize, length: usize| (0..length).map(move |at| (worker * 1_000_000 + at) as u64);
        let expected: Vec<u64> = (0..peers).flat_map(|worker| rows(worker, lengths[worker])).collect();
        let shared = results(&cluster, move |net| {
            let own_rows = rows(net.index(), lengths[net.index()]).collect();
            let first = net.broadcast("first", own_rows)?;
            let second = net.broadcast("second", vec![net.index() as u32])?;
            Ok((first, second))
        });
        for at in 0..peers {
            prop_assert!(*shared[at].0 == expected, "worker {at}");
            prop_assert_eq!(&*shared[at].1, &(0..peers as u32).collect::<Vec<_>>());
            prop_assert!(Arc::ptr_eq(&shared[at].0, &shared[at / workers * workers].0), "one copy per process");
        }
    }
}

#[test]
fn all_workers_gather_the_values_of_all_by_index() {
    for (processes, workers) in [(1, 1), (1, 3), (2, 1), (3, 2)] {
        let gathered = results(&cluster(processes, workers, "20s"), |net| {
            let place = (net.process(), net.processes(), net.workers_per_process(), net.strangers());
            net.all_gather("places", (net.index(), place))
        });
        let expected: Vec<_> = (0..processes * workers).map(|at| (at, (at / workers, processes, workers, 0))).collect();
        assert_eq!(gathered, vec![expected; processes * workers]);
    }
}

#[test]
fn slow_receiver_blocks_its_sender_at_its_part_of_16_mib() {
    const ROWS: u64 = 3_000_000;
    for processes in [1, 2] {
        let cluster = cluster(processes, 2 / processes, "20s");
        let (sent_count, received_count) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (sees_given, sees_taken) = (Arc::clone(&sent_count), Arc::clone(&received_count));
        let max_in_flight = results(&cluster, move |net| {
            let mut remaining = if net.index() == 0 { ROWS } else { 0 };
            let mut max_in_flight = 0;
            let source = |emit: &mut dyn FnMut([u64; 4])| {
                let now = remaining.min(10_000);
                (0..now).for_each(|_| emit([remaining; 4]));
                remaining -= now;
                let sent_count = sees_given.fetch_add(now, Ordering::SeqCst) + now;
                max_in_flight = max_in_flight.max(sent_count - sees_taken.load(Ordering::SeqCst));
                Ok(remaining > 0)
            };
            net.exchange_from(
                "rows",
                source,
                |_| 1,
                |rows| {
                    std::thread::sleep(Duration::from_millis(5));
                    sees_taken.fetch_add(rows.len() as u64, Ordering::SeqCst);
                    Ok(())
                },
            )?;
            Ok(max_in_flight * 32)
        });
        assert_eq!((sent_count.load(Ordering::SeqCst), received_count.load(Ordering::SeqCst)), (ROWS, ROWS));
        assert!(((4 << 20)..(10 << 20)).contains(&max_in_flight[0]), "{max_in_flight:?}");
    }
}

#[test]
fn error_of_a_sender_or_receiver_ends_the_run_equally_everywhere() {
    for (processes, workers) in [(1, 3), (2, 2)] {
        for where_it_fails in ["source", "take"] {
            let ends = errors(&cluster(processes, workers, "20s"), move |net| {
                let (fails, peers) = (net.index() == 1, net.peers() as u64);
                let fail =
                    |place| if fails && place == where_it_fails { Err(Error::input("file-1", place)) } else { Ok(()) };
                let mut next = 0;
                net.exchange_from(
                    "numbers",
                    |send: &mut dyn FnMut(u64)| {
                        (next..next + 1000).for_each(send);
                        next += 1000;
                        fail("source").map(|()| next < 100_000)
                    },
                    |number| (number % peers) as usize,
                    |_| fail("take"),
                )
            });
            assert_eq!(ends, vec![(3, format!("input file-1: {where_it_fails}")); processes]);
        }
    }
}

#[test]
fn numbers_of_all_workers_are_added_and_compared() {
    for (processes, workers) in [(1, 1), (1, 3), (2, 2)] {
        let results = results(&cluster(processes, workers, "20s"), |net| {
            let own_index = net.index() as u64;
            let longest =
                net.all_reduce("longest", "x".repeat(net.index()), |x, y| if y.len() > x.len() { y } else { x })?;
            Ok((net.all_sum("sum", [own_index, 1])?, net.all_reduce("max", own_index, u64::max)?, longest.len()))
        });
        let all = (processes * workers) as u64;
        assert_eq!(results, vec![([all * (all - 1) / 2, all], all - 1, all as usize - 1); all as usize]);
    }
}

#[test]
fn worker_that_ends_with_an_error_ends_the_run_equally_everywhere() {
    for (processes, workers) in [(1, 2), (2, 2), (3, 1)] {
        let ends = errors(&cluster(processes, workers, "20s"), |net| {
            if net.index() == 1 {
                return Err(Error::storage("s3://bucket", "no such bucket"));
            }
            net.all_gather("never complete", ()).map(drop)
        });
        assert_eq!(ends, vec![(8, "storage s3://bucket: no such bucket".to_string()); processes]);
    }
}

#[test]
fn workers_with_different_calls_fail_instead_of_hanging() {
    type Calls = fn(&mut Net<'_>) -> Result<()>;
    let different: [Calls; 3] = [
        |net| net.all_gather(if net.index() == 0 { "pairs" } else { "clusters" }, 0u32).map(drop),
        // Neither worker sends a row.
        |net| net.exchange_into(if net.index() == 0 { "pairs" } else { "clusters" }, [0u8; 0], |_| 0, |_| Ok(())),
        // One worker makes one more call.
        |net| (0..=net.index()).try_for_each(|_| net.exchange_into("pairs", [0u8; 0], |_| 0, |_| Ok(()))),
    ];
    for (processes, workers) in [(1, 2), (2, 1), (2, 2)] {
        for calls in different {
            for (code, line) in errors(&cluster(processes, workers, "20s"), calls) {
                assert_eq!(code, 70);
                assert!(line.contains("is in another collective call than worker"), "{line}");
            }
        }
    }
}

#[test]
fn a_panic_ends_the_run_everywhere_with_its_place() {
    for (processes, workers) in [(1, 2), (2, 2)] {
        let ends = errors(&cluster(processes, workers, "20s"), |net| {
            net.all_gather("before", net.index())?;
            if net.index() == 1 {
                panic!("worker 1 slipped");
            }
            net.exchange_into("never complete", [0u8; 0], |_| 0, |_| Ok(()))
        });
        assert_eq!(ends.len(), processes);
        for (code, line) in ends {
            assert_eq!(code, 70);
            assert!(line.contains("rendezvous.rs:") && line.ends_with("worker 1 slipped"), "{line}");
        }
    }
}

#[test]
fn job_with_one_missing_process_ends_at_the_deadline() {
    let cluster = cluster(2, 1, "300ms");
    let error = run(&cluster, 1, JOB, |_| Ok(())).unwrap_err();
    assert_eq!(error.exit_code(), 7);
    assert!(run(&cluster, 2, JOB, |_| Ok(())).is_err_and(|error| error.exit_code() == 2));
}

/// Not a test: the program of the real processes below, which prints and exits as `webtwin` does.
#[test]
#[ignore = "is started by the tests of real processes"]
fn child() {
    let var = |name: &str| std::env::var(name).unwrap();
    let cluster = ClusterLayout::load(Path::new(&var("CLUSTER"))).unwrap();
    let process = var("PROCESS").parse().unwrap();
    let deed = var("DEED");
    let ended = run(&cluster, process, JOB, move |net| {
        let began = Instant::now();
        net.all_gather("met", ())?;
        eprintln!("met");
        match deed.as_str() {
            "fail beside long work" if net.process() == 1 => {
                std::thread::sleep(Duration::from_millis(200));
                Err(Error::input("a.warc", "missing"))
            }
            "fail beside long work" => {
                std::thread::sleep(Duration::from_secs(60));
                eprintln!("came to the end of its work");
                Ok(())
            }
            seconds => {
                let seconds = Duration::from_secs(seconds.parse().unwrap());
                // All processes must leave the loop in the same round, so the condition uses only
                // values that they have exchanged.
                while net.all_gather("work", began.elapsed())?.into_iter().all(|elapsed| elapsed < seconds) {}
                Ok(())
            }
        }
    });
    if let Err(error) = ended {
        eprintln!("error: {error}");
        std::process::exit(error.exit_code().into());
    }
}

/// Starts two real processes and returns once they have met.
#[cfg(unix)]
fn start_two(deadline: &str, deed: &str) -> (tempfile::TempDir, [Child; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cluster.toml");
    let addresses = cluster(2, 1, deadline).addresses;
    let processes: String = addresses.iter().map(|at| format!("[[process]]\naddress = {at:?}\n")).collect();
    std::fs::write(&file, format!("workers = 1\ndeadline = {deadline:?}\n{processes}")).unwrap();
    let children = [0, 1].map(|process: usize| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "rendezvous::child", "--nocapture"])
            .env("CLUSTER", &file)
            .env("PROCESS", process.to_string())
            .env("DEED", deed)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    });
    let children = children.map(|mut child| {
        let mut met = [0; 4];
        child.stderr.as_mut().unwrap().read_exact(&mut met).unwrap();
        assert_eq!(&met, b"met\n");
        child
    });
    (folder, children)
}

#[cfg(unix)]
fn signal(child: &Child, signal: &str) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

/// Returns the exit code and the last line on stderr.
#[cfg(unix)]
fn outcome(child: Child) -> (Option<i32>, String) {
    let Output { status, stderr, stdout } = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(stdout).unwrap();
    let chatter = stdout.lines().find(|line| !line.trim().is_empty() && !line.contains("test"));
    assert_eq!(chatter, None, "only the test harness writes to stdout");
    (status.code(), String::from_utf8(stderr).unwrap().trim_end().to_string())
}

#[cfg(unix)]
#[test]
fn killed_process_ends_the_other_with_7_before_the_deadline() {
    let (_folder, [first, mut second]) = start_two("30s", "60");
    second.kill().unwrap();
    let (code, line) = outcome(first);
    assert_eq!(code, Some(7), "{line}");
    assert!(line.starts_with("error: peer lost: process 1 at 127.0.0.1") && !line.contains('\n'), "{line}");
    assert!(!line.contains("silent"), "the deadline ended it, not the broken connection: {line}");
    second.wait().unwrap();
}

#[cfg(unix)]
#[test]
fn frozen_process_is_given_up_at_the_deadline_and_ends_when_it_wakes() {
    let (_folder, [first, second]) = start_two("2s", "60");
    signal(&second, "-STOP");
    let (code, line) = outcome(first);
    assert_eq!(code, Some(7), "{line}");
    assert!(line.contains("process 1 at 127.0.0.1") && line.contains("silent for 2 s"), "{line}");
    signal(&second, "-CONT");
    let (code, line) = outcome(second);
    assert_eq!(code, Some(7), "{line}");
    assert!(line.starts_with("error: peer lost: "), "{line}");
}

#[cfg(unix)]
#[test]
fn process_frozen_for_less_than_the_deadline_continues() {
    let (_folder, [first, second]) = start_two("30s", "2");
    signal(&second, "-STOP");
    std::thread::sleep(Duration::from_millis(1500));
    signal(&second, "-CONT");
    for child in [first, second] {
        let (code, line) = outcome(child);
        assert_eq!((code, line.as_str()), (Some(0), ""));
    }
}

#[cfg(unix)]
#[test]
fn busy_process_ends_with_the_run_and_not_with_its_work() {
    let (_folder, children) = start_two("30s", "fail beside long work");
    for child in children {
        assert_eq!(outcome(child), (Some(3), "error: input a.warc: missing".to_string()));
    }
}
