use webtwin::clusters::union_find::UnionFind;
use webtwin::dataflow::shuffle::components::components;
use webtwin::dataflow::shuffle::hash_partitions::HashPartitions;
use webtwin::dataflow::shuffle::memory_budget::BUCKET_BYTES;
use webtwin::dataflow::shuffle::memory_estimate::room_beside;
use webtwin::dataflow::shuffle::page_counts;
use webtwin::engine::{AT_ONCE_BYTES, Net, run};
use webtwin::error::Result;
use webtwin::ids::{ClusterId, splitmix64};
use webtwin::job::Job;

use crate::rendezvous::cluster;
use crate::support::ports::reserved_address;
use crate::support::program::{cluster_file, said, webtwin};

/// Runs a program on 1 and 3 workers, and on 2 x 2 and 3 x 1 processes; what all workers return, by worker.
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

/// How long lists are that travel at once or not, with four bytes an entry.
const LENGTHS: [usize; 4] = [0, 50, AT_ONCE_BYTES / 4, AT_ONCE_BYTES / 4 + 3];

#[test]
fn rows_that_are_shared_come_in_the_order_of_workers_however_many_each_has() {
    for lengths in [[50, 0, 7, 1], [AT_ONCE_BYTES, 9, AT_ONCE_BYTES / 4, AT_ONCE_BYTES / 4 + 1]] {
        let rows = move |worker: usize| (0..lengths[worker] as u32).map(move |row| row ^ (worker as u32) << 24);
        for workers in everywhere(move |net| net.share("rows", rows(net.index()).collect())) {
            let expected: Vec<u32> = (0..workers.len()).flat_map(rows).collect();
            assert!(workers.iter().all(|all| **all == expected), "{lengths:?} on {} workers", workers.len());
        }
    }
}

#[test]
fn every_worker_is_told_what_each_of_them_says_with_its_rows() {
    for told in everywhere(|net| {
        let (me, peers) = (net.index(), net.peers());
        let mut arrived = 0;
        let told = net.exchange_telling(
            "rows",
            7 * me as u64,
            0..1000 * me as u32,
            |row| *row as usize % peers,
            |rows| {
                arrived += rows.len();
                Ok(())
            },
        )?;
        Ok((told, net.sum("arrived", [arrived as u64])?[0]))
    }) {
        let workers = told.len() as u64;
        let expected: Vec<u64> = (0..workers).map(|worker| 7 * worker).collect();
        assert!(told.iter().all(|(told, arrived)| *told == expected && *arrived == 500 * workers * (workers - 1)));
    }
}

#[test]
fn counts_of_all_workers_are_added_up_in_lists_of_any_length() {
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
fn components_of_edges_anywhere_are_those_of_all_edges_in_one_place() {
    for members in [1, 100, AT_ONCE_BYTES / 8, AT_ONCE_BYTES / 8 + 1] {
        let edges = move |worker: usize| {
            let number = move |n: u64| (splitmix64(n ^ (worker as u64) << 40) % members as u64) as u32;
            (0..members as u64 / 3).map(move |n| (number(2 * n), number(2 * n + 1)))
        };
        for workers in everywhere(move |net| {
            let mine = edges(net.index()).map(|(x, y)| (ClusterId(x), ClusterId(y)));
            components::<ClusterId, ClusterId>(net, "components", members, mine)
        }) {
            let mut sets = UnionFind::new(members);
            (0..workers.len()).flat_map(edges).for_each(|(x, y)| {
                sets.union(x, y);
            });
            let expected: Vec<ClusterId> = sets.labels().into_iter().map(ClusterId).collect();
            assert!(workers.iter().all(|labels| **labels == expected), "{members} on {} workers", workers.len());
        }
    }
}

#[test]
fn rows_laid_down_meet_in_one_share_by_key_and_none_is_lost() {
    // The first worker has twice as many, so that few and many meet in one call.
    let few = BUCKET_BYTES as usize / size_of::<[u32; 2]>() / 2;
    for rows in [0, 50, few, few + 3] {
        let of = move |worker: usize| {
            let rows = if worker == 0 { 2 * rows } else { rows };
            (0..rows as u64).map(move |n| [(splitmix64(n) % 5000) as u32, (n as u32) << 2 | worker as u32])
        };
        for workers in everywhere(move |net| {
            let room = room_beside(0, &Job::default());
            let mine = of(net.index());
            let mut laid = HashPartitions::laid_down(
                net,
                "rows",
                mine.clone().count() as u64,
                mine,
                |row| u64::from(row[0]),
                &room,
            )?;
            let (mut shares, mut share) = (Vec::new(), Vec::new());
            for number in 0..laid.count() {
                laid.take(number, &mut share)?;
                shares.push(share.clone());
            }
            Ok(shares)
        }) {
            let mut expected: Vec<[u32; 2]> = (0..workers.len()).flat_map(of).collect();
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
fn a_run_takes_no_more_rounds_than_it_did() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = cluster_file(folder.path(), 1, &[(); 2].map(|()| reserved_address()));
    let output = folder.path().join("out");
    let processes = ["0", "1"].map(|process| {
        let at = ["--output", output.to_str().unwrap(), "--cluster", &cluster, "--process", process];
        webtwin(&[&["run", "--input", "synth://?pages=300&seed=1"][..], &at].concat()).spawn().unwrap()
    });
    for process in processes {
        let process = process.wait_with_output().unwrap();
        assert!(process.status.success(), "{}", said(&process));
    }
    let manifest = std::fs::read(output.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    // Each takes as long as a message between the processes, and most of them come with every run. Lower it when there are fewer.
    let rounds = manifest["rounds"].as_u64().unwrap();
    assert!((20..=136).contains(&rounds), "{rounds}");
}
