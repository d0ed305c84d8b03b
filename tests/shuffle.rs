use std::collections::BTreeSet;
use std::sync::Arc;

use webtwin::clusters::union_find::UnionFind;
use webtwin::dataflow::reading::worker_pages::WorkerPages;
use webtwin::dataflow::shuffle::components::{are_shared, components};
use webtwin::dataflow::shuffle::hash_partitions::HashPartitions;
use webtwin::dataflow::shuffle::memory;
use webtwin::dataflow::shuffle::page_counts::{self, SHORT_BYTES};
use webtwin::dataflow::shuffle::page_ranges::PageRanges;
use webtwin::dataflow::sinks::resemblance::{PageChunks, Resemblance, with_kept};
use webtwin::engine::{IMMEDIATE_BYTES, Net, run};
use webtwin::error::Result;
use webtwin::ids::{ClusterId, Number, Page, splitmix64};
use webtwin::job::Job;
use webtwin::overlap::chunk_counts::{ChunkCounter, ChunkCounts};
use webtwin::overlap::prune::PageSet;
use webtwin::spill::{MemoryPool, PARTITION_BYTES};

use crate::rendezvous::cluster;
use crate::support::ports::reserved_address;
use crate::support::program::{cluster_file, stderr_text, webtwin};

/// Runs a program on 1 and 3 workers and on 2 x 2 and 3 x 1 processes. Returns the results of all
/// workers by worker.
fn everywhere<T: Send + 'static>(
    program: impl Fn(&mut Net<'_>) -> Result<T> + Send + Sync + Clone + 'static,
) -> Vec<Vec<T>> {
    let on = |(processes, workers): (usize, usize)| {
        let cluster = cluster(processes, workers, "60s");
        let starts = (0..processes).map(|process| {
            let (cluster, program) = (cluster.clone(), program.clone());
            std::thread::spawn(move || run(&cluster, process, [0; 32], program).unwrap())
        });
        let starts: Vec<_> = starts.collect();
        starts.into_iter().flat_map(|process| process.join().unwrap()).collect()
    };
    [(1, 1), (1, 3), (2, 2), (3, 1)].map(on).into()
}

/// Lengths of lists of counts with one byte per entry. Some are short enough to be sent to every
/// process as a whole, others are not.
const LENGTHS: [usize; 4] = [0, 50, SHORT_BYTES, SHORT_BYTES + 3];

#[test]
fn broadcast_rows_arrive_in_the_order_of_workers() {
    // Rows of four bytes on up to four workers: in one message, in several blocks or in one block,
    // and above the limit.
    let at_once = IMMEDIATE_BYTES / 4 / 4;
    for lengths in [[50, 0, 7, 1], [at_once, 9, at_once + 1, 4 * at_once + 1]] {
        let rows = move |worker: usize| (0..lengths[worker] as u32).map(move |row| row ^ (worker as u32) << 24);
        for workers in everywhere(move |net| net.broadcast("rows", rows(net.index()).collect())) {
            let expected: Vec<u32> = (0..workers.len()).flat_map(rows).collect();
            assert!(workers.iter().all(|all| **all == expected), "{lengths:?} on {} workers", workers.len());
        }
    }
}

#[test]
fn rows_for_all_processes_arrive_once_in_the_order_of_their_sender() {
    for lengths in [[0, 0, 0, 0], [50, 0, 7, 1], [65_536, 9, 300_001, 65_537]] {
        let rows = move |worker: usize| (0..lengths[worker] as u32).map(move |row| row ^ (worker as u32) << 24);
        for workers in everywhere(move |net| {
            let no_rows = vec![Vec::new(); net.peers()];
            net.broadcast_into("rows", rows(net.index()), || no_rows, |message, from, row| message[from].push(*row))
        }) {
            let expected: Vec<Vec<u32>> = (0..workers.len()).map(|worker| rows(worker).collect()).collect();
            assert!(workers.iter().all(|message| **message == expected), "{lengths:?} on {} workers", workers.len());
        }
    }
}

#[test]
fn shared_value_moves_to_the_first_worker_of_each_process() {
    for workers in everywhere(|net| {
        let shared = net.once_per_process(|| vec![7])?;
        Ok((net.is_keeper(), net.take_back(shared)?))
    }) {
        assert!(workers.iter().all(|(is_first, back)| *back == is_first.then(|| vec![7])));
    }
}

#[test]
fn rows_of_two_kinds_arrive_in_one_round_with_their_kind() {
    // No rows, a few, and more than a worker sends before it processes what has arrived.
    for counts in [[0, 0], [3, 0], [0, 5], [70_000, 40_000]] {
        let first = move |worker: usize| (0..counts[0]).map(move |n| [splitmix64(n), worker as u64]);
        let second = move |worker: usize| (0..counts[1]).map(move |n| (splitmix64(n) as u32) ^ worker as u32);
        for workers in everywhere(move |net| {
            let (me, peers) = (net.index(), net.peers());
            let (mut of_first, mut of_second, before) = (Vec::new(), Vec::new(), net.rounds());
            net.exchange_two(
                "rows",
                (
                    first(me),
                    |row| row[0] as usize % peers,
                    |rows: &[[u64; 2]]| {
                        of_first.extend_from_slice(rows);
                        Ok(())
                    },
                ),
                (
                    second(me),
                    |row| *row as usize % peers,
                    |rows: &[u32]| {
                        of_second.extend_from_slice(rows);
                        Ok(())
                    },
                ),
            )?;
            Ok((me, of_first, of_second, net.rounds() - before))
        }) {
            let peers = workers.len();
            for (me, mut of_first, mut of_second, rounds) in workers {
                let mut expected: Vec<[u64; 2]> =
                    (0..peers).flat_map(first).filter(|row| row[0] as usize % peers == me).collect();
                expected.sort_unstable();
                of_first.sort_unstable();
                let mut second_expected: Vec<u32> =
                    (0..peers).flat_map(second).filter(|row| *row as usize % peers == me).collect();
                second_expected.sort_unstable();
                of_second.sort_unstable();
                assert!(of_first == expected && of_second == second_expected && rounds == 1, "{counts:?}");
            }
        }
    }
}

#[test]
fn every_worker_receives_the_reports_of_all_with_their_rows() {
    for message in everywhere(|net| {
        let (me, peers) = (net.index(), net.peers());
        let mut arrived = 0;
        let message = net.exchange_with_reports(
            "rows",
            7 * me as u64,
            0..1000 * me as u32,
            |row| *row as usize % peers,
            |rows| {
                arrived += rows.len();
                Ok(())
            },
        )?;
        Ok((message, net.all_sum("arrived", [arrived as u64])?[0]))
    }) {
        let workers = message.len() as u64;
        let expected: Vec<u64> = (0..workers).map(|worker| 7 * worker).collect();
        assert!(
            message.iter().all(|(message, arrived)| *message == expected && *arrived == 500 * workers * (workers - 1))
        );
    }
}

#[test]
fn counts_of_all_workers_are_summed_for_lists_of_any_length() {
    for length in LENGTHS {
        let counts =
            move |worker: usize| (0..length as u64).map(move |at| splitmix64(at * 9 + worker as u64) as u8 >> 1);
        for workers in everywhere(move |net| page_counts::sum(net, "counts", &counts(net.index()).collect::<Vec<u8>>()))
        {
            let mut expected = vec![0u8; length];
            for worker in 0..workers.len() {
                expected.iter_mut().zip(counts(worker)).for_each(|(sum, more)| *sum = sum.saturating_add(more));
            }
            assert!(workers.iter().all(|sums| **sums == expected), "{length} on {} workers", workers.len());
        }
    }
}

#[test]
fn chunks_that_the_workers_of_a_process_count_together_are_added_up_over_all_processes() {
    for pages in [1, 100, SHORT_BYTES, 3 * SHORT_BYTES + 1] {
        let page = move |worker: usize, n: usize| Page::from_index((n * (worker + 2) + n / 3) % pages);
        let is_in = |page: Page, count: u32| (count + page.0).is_multiple_of(3);
        for workers in everywhere(move |net| {
            let counts = net.once_per_process(|| ChunkCounts::<u32>::new(pages))?;
            let mut counter = ChunkCounter::new(Arc::clone(&counts), net.workers_per_process());
            let worker = net.index();
            let mut count_all = || {
                (0..pages).for_each(|n| counter.count(&[page(worker, n)]));
                counter.flush();
            };
            count_all();
            let set = page_counts::pages_by_sum_of_processes(net, "counts", &counts, is_in)?;
            // Earlier chunks do not count again.
            count_all();
            drop(counter);
            Ok((set, page_counts::sum_of_processes(net, "counts", counts)?))
        }) {
            let mut sums = vec![0; pages];
            (0..workers.len()).for_each(|worker| (0..pages).for_each(|n| sums[page(worker, n)] += 1));
            let set = PageSet::new(pages, |page| is_in(page, sums[page]));
            assert!(workers.iter().all(|found| *found.0 == set && *found.1 == sums), "{pages} on {}", workers.len());
        }
    }
}

#[test]
fn components_of_distributed_edges_equal_those_on_one_worker() {
    let most = |processes| (0..).map(|bits| 1usize << bits).take_while(|&n| are_shared(n, processes)).last().unwrap();
    for members in [1, 100, most(3), most(2), most(2) + 1] {
        let edges = move |worker: usize| {
            let number = move |n: u64| (splitmix64(n ^ (worker as u64) << 40) % members as u64) as u32;
            (0..members as u64 / 3).map(move |n| (number(2 * n), number(2 * n + 1)))
        };
        for workers in everywhere(move |net| {
            let worker = net.index();
            let own_edges = || edges(worker).map(|(x, y)| Ok((ClusterId(x), ClusterId(y))));
            components::<ClusterId, ClusterId, _>(net, "components", members, own_edges)
        }) {
            let mut sets = UnionFind::new(members);
            (0..workers.len()).flat_map(edges).for_each(|(x, y)| {
                sets.union(x, y);
            });
            let expected: Vec<ClusterId> = sets.labels().into_iter().map(ClusterId).collect();
            assert!(
                workers.iter().all(|labels| labels.to_list() == expected),
                "{members} on {} workers",
                workers.len()
            );
        }
    }
}

#[test]
fn resemblance_to_the_keeper_is_the_same_for_any_distribution_of_chunks() {
    const KEPT: u32 = 1000;
    const PAGES: u32 = 12 * KEPT;
    // A copy has all chunks of its keeper except for some; a few copies have none of them.
    let chunks = |page: u32| -> BTreeSet<u64> {
        let (of, from) = (u64::from(page % KEPT) * 1000, u64::from(page / KEPT * 9));
        let count = if page % 53 == 7 { 0 } else { 100 };
        (from..from + count).map(|chunk| splitmix64(of + chunk)).collect()
    };
    // One page is the keeper of a very large number of copies.
    let keep = |page: u32| if page % 13 == 5 { 0 } else { page % KEPT };
    let share = move |page: u32| {
        let (x, y) = (chunks(page), chunks(keep(page)));
        let common = x.intersection(&y).count() as f64;
        (common / x.union(&y).count() as f64, common / x.len() as f64)
    };
    let with_chunks = (KEPT..PAGES).filter(|&page| !chunks(page).is_empty());
    let expected: Vec<(Page, (f64, f64))> = with_chunks.map(|page| (Page(page), share(page))).collect();
    for held in [u64::MAX, 1 << 20, 0] {
        for workers in everywhere(move |net| {
            let (me, peers) = (net.index() as u32, net.peers() as u32);
            let mut local_pages = WorkerPages::new(&MemoryPool::default());
            local_pages.fprints.hold_at_most(held)?;
            for page in (me..PAGES).step_by(peers as usize) {
                local_pages.fprints.push(&chunks(page).into_iter().collect::<Vec<u64>>())?;
                local_pages.pages.push(Page(page));
            }
            let pairs = (KEPT..PAGES).filter(|page| page % 7 % peers == me).map(|page| [page, keep(page)].map(Page));
            let asks = |page: Page| (page.0 / 5 % peers) as usize;
            let texts = PageChunks::take(net, &mut local_pages)?;
            let resemblances = with_kept(net, &texts, PAGES as usize, pairs.collect(), asks)?;
            assert!(resemblances.iter().all(|row| asks(row.0) == net.index()));
            Ok(resemblances)
        }) {
            let values_of = |(page, found): (Page, Resemblance)| (page, (found.share(), found.containment()));
            let mut all: Vec<_> = workers.into_iter().flatten().map(values_of).collect();
            all.sort_unstable_by_key(|row| row.0);
            assert_eq!(all.len(), expected.len());
            type Row = (Page, (f64, f64));
            let is_near =
                |(x, y): (&Row, &Row)| x.0 == y.0 && (x.1.0 - y.1.0).abs() < 1e-6 && (x.1.1 - y.1.1).abs() < 1e-6;
            assert!(all.iter().zip(&expected).all(is_near), "{held} bytes held");
        }
    }
}

#[test]
fn partitioned_rows_meet_by_key_and_none_is_lost() {
    // The first worker has twice as many rows, so that few and many rows meet in one call.
    let few_rows = PARTITION_BYTES as usize / size_of::<[u32; 2]>() / 2;
    for rows in [0, 50, few_rows, few_rows + 3] {
        let rows_of = move |worker: usize| {
            let rows = if worker == 0 { 2 * rows } else { rows };
            (0..rows as u64).map(move |n| [(splitmix64(n) % 5000) as u32, (n as u32) << 2 | worker as u32])
        };
        for workers in everywhere(move |net| {
            let own_rows = rows_of(net.index());
            let mut laid =
                HashPartitions::new(net, "rows", own_rows.clone().count() as u64, own_rows, |row| u64::from(row[0]))?;
            let (mut shares, mut share) = (Vec::new(), Vec::new());
            for number in 0..laid.count() {
                laid.take(number, &mut share)?;
                shares.push(share.clone());
            }
            Ok(shares)
        }) {
            let mut expected: Vec<[u32; 2]> = (0..workers.len()).flat_map(rows_of).collect();
            let counts: Vec<usize> = workers.iter().map(Vec::len).collect();
            assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
            let shares: Vec<Vec<[u32; 2]>> = workers.into_iter().flatten().collect();
            let keys =
                |share: &Vec<[u32; 2]>| share.iter().map(|row| row[0]).collect::<std::collections::BTreeSet<_>>();
            let distinct: std::collections::BTreeSet<u32> = expected.iter().map(|row| row[0]).collect();
            assert_eq!(shares.iter().map(|share| keys(share).len()).sum::<usize>(), distinct.len());
            let mut all: Vec<[u32; 2]> = shares.into_iter().flatten().collect();
            all.sort_unstable();
            expected.sort_unstable();
            assert!(all == expected, "{rows}");
        }
    }
}

#[test]
fn rows_are_returned_in_page_order_with_any_memory() {
    // Memory for all rows, and memory for none: of some megabytes of rows nearly all are on disk.
    for memory_bytes in [0, 1] {
        for (pages, rows) in [(1, 0), (3, 5), (1000, 400_000)] {
            let mut job = Job::default();
            job.effort.memory_bytes = memory_bytes;
            everywhere(move |net| {
                net.memory = memory::remaining_budget(net, 0, &job.effort);
                let row = |n: u64| [splitmix64(n) % pages as u64, splitmix64(n + 7)];
                let mut ranges = PageRanges::new(net, pages, rows, 1);
                (0..rows).map(row).try_for_each(|row| ranges.push(row[0] as usize, row))?;
                let mut expected: Vec<[u64; 2]> = (0..rows).map(row).collect();
                expected.sort_unstable();
                let sorted = ranges.sorted(net, |row| *row)?;
                assert_eq!(sorted.take()?, expected, "{rows} rows of {pages} pages within {memory_bytes}");

                let mut ranges = PageRanges::new(net, pages, rows, 1);
                (0..rows).map(row).try_for_each(|row| ranges.push(row[0] as usize, row))?;
                let (mut next, mut count) = (0, 0);
                ranges.for_each(net, |places, rows| {
                    assert!(places.start == next && rows.iter().all(|row| places.contains(&(row[0] as usize))));
                    (next, count) = (places.end, count + rows.len() as u64);
                    Ok(())
                })?;
                assert_eq!((next, count), (pages, rows));
                Ok(())
            });
        }
    }
}

#[test]
fn run_takes_no_more_rounds_than_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = cluster_file(folder.path(), 1, &[(); 2].map(|()| reserved_address()));
    let output = folder.path().join("out");
    let processes = ["0", "1"].map(|process| {
        let at = ["--output", output.to_str().unwrap(), "--cluster", &cluster, "--process", process];
        webtwin(&[&["run", "--input", "synth://?pages=300&seed=1"][..], &at].concat()).spawn().unwrap()
    });
    for process in processes {
        let process = process.wait_with_output().unwrap();
        assert!(process.status.success(), "{}", stderr_text(&process));
    }
    let manifest = std::fs::read(output.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    // Each round takes the time of a message between processes, and most rounds occur in every run.
    // Lower the limit when there are fewer.
    let rounds = manifest["rounds"].as_u64().unwrap();
    assert!((20..=159).contains(&rounds), "{rounds}");
}
