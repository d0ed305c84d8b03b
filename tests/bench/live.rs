//! Throughput of a live index on one core, its latency per page, and its memory.
//!
//! *Measured*: text, links and chunks of each page (digest), its comparison with all earlier pages
//! (add), and both together, where groups of 1,000 pages are synced to disk before the next group;
//! the memory of the process; and the time to open the index again. *Input*: made-up pages, or
//! those of WARC files. *Not measured*: HTTP. *How to run*:
//! `cargo bench --bench live -- 'synth://?pages=1000000&seed=1' FOLDER`; the folder must not exist.

use std::path::Path;
use std::time::{Duration, Instant};

use webtwin::build_info::memory_bytes;
use webtwin::job::Job;
use webtwin::live::{Digester, LiveIndex};
use webtwin::pages::record::ReadResult;
use webtwin::pages::work_items::WorkList;

/// Number of pages that are written to disk together.
const GROUP: u64 = 1000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let [input, folder] = &arguments[..] else {
        println!("no input: cargo bench --bench live -- 'synth://?pages=1000000&seed=1' FOLDER");
        return;
    };
    let mut job = Job::default();
    job.input.urls = vec![input.clone()];
    let work = WorkList::plan(&job.input, job.effort.shard_bytes).expect("an input that can be read");
    let mut index = LiveIndex::open(Path::new(folder), &job).expect("a folder that can be written");
    let before = memory_bytes();
    let mut digester = Digester::new(&job);
    let (mut pages, mut read) = (0, Instant::now());
    let (mut reading, mut digesting, mut adding, mut syncing) = Default::default();
    let mut waits: Vec<Duration> = Vec::new();
    let add_since = |sum: &mut Duration, since: Instant| {
        *sum += since.elapsed();
        Instant::now()
    };
    for item in &work.items {
        let outcome = work.read(item, &job.input, &mut |found| {
            let ReadResult::Page(page) = found else { return Ok(()) };
            let began = add_since(&mut reading, read);
            let digest = digester.digest(&page)?;
            let digested = add_since(&mut digesting, began);
            if let Ok(digest) = digest {
                index.add(digest)?;
                waits.push(digested.elapsed());
                pages += 1;
            }
            let added = add_since(&mut adding, digested);
            if pages % GROUP == 0 {
                let unsynced = index.flush()?;
                if let Some(unsynced) = unsynced {
                    unsynced.sync()?;
                    index.synced(&unsynced)?;
                }
            }
            read = add_since(&mut syncing, added);
            if pages % 1_000_000 == 0 {
                report(pages, memory_bytes() - before, [reading, digesting, adding, syncing], &mut waits);
            }
            Ok(())
        });
        outcome.expect("an input that can be read");
    }
    report(pages, memory_bytes() - before, [reading, digesting, adding, syncing], &mut waits);
    if let Some(unsynced) = index.flush().expect("a disk") {
        unsynced.sync().and_then(|()| index.synced(&unsynced)).expect("a disk");
    }
    println!("{:?}", index.figures());
    let reports = |index: &LiveIndex| (index.figures().pages, index.figures().clusters, index.advice(0).to_vec());
    let reports_before = reports(&index);
    drop(index);
    let began = Instant::now();
    let index = LiveIndex::open(Path::new(folder), &job).expect("the index has been written");
    println!("opened again in {:.1} s, the same: {}", began.elapsed().as_secs_f64(), reports(&index) == reports_before);
}

fn report(pages: u64, memory: u64, stage_times: [Duration; 4], waits: &mut [Duration]) {
    let [reading, digesting, adding, syncing] =
        stage_times.map(|add_since| add_since.as_secs_f64() * 1e6 / pages.max(1) as f64);
    waits.sort_unstable();
    let wait = |share: usize| waits.get(waits.len() * share / 1000).copied().unwrap_or_default();
    println!(
        "{pages} pages: reading {reading:.0} us a page, digest {digesting:.0}, add {adding:.0}, disk {syncing:.0}: {:.0} pages a second without \
         reading; add p50 {:?}, p99 {:?}, p99.9 {:?}; {:.0} bytes of memory a page",
        1e6 / (digesting + adding + syncing),
        wait(500),
        wait(990),
        wait(999),
        memory as f64 / pages.max(1) as f64
    );
}
