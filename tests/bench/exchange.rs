//! Throughput of the exchange of rows of 12 bytes. A multiplicative hash selects the receiving
//! worker, which consumes rows as they arrive.
//!
//! Measured: making the rows, `Net::exchange`, and a sum over the received rows, with two threads
//! of one process and then with two processes (here threads with sockets on loopback) of one thread
//! each, in the clear and encrypted. Not measured: the work of a step on its rows.
//!
//! Run with `cargo bench --bench exchange [-- MILLIONS]`.

use std::time::Instant;

use webtwin::engine::{ClusterLayout, Net, run};
use webtwin::error::Result;

fn rows(net: &mut Net<'_>, millions: u64) -> Result<(f64, u64)> {
    let (own_rows, peers) = (millions * 1_000_000 / net.peers() as u64, net.peers() as u64);
    net.all_gather("begin", ())?;
    let began = Instant::now();
    let mut sum = 0u64;
    let to = |row: &[u32; 3]| (((u64::from(row[0]) * 0x9e37_79b9) >> 16) % peers) as usize;
    net.exchange_into("rows", (0..own_rows as u32).map(|n| [n, n ^ 7, 1]), to, |rows| {
        sum += rows.iter().map(|row| u64::from(row[2])).sum::<u64>();
        Ok(())
    })?;
    net.all_gather("end", ())?;
    Ok((began.elapsed().as_secs_f64(), sum))
}

fn together(cluster: &ClusterLayout, millions: u64) -> (f64, u64) {
    let processes: Vec<_> = (0..cluster.processes())
        .map(|process| {
            let cluster = cluster.clone();
            std::thread::spawn(move || run(&cluster, process, [0; 32], move |net| rows(net, millions)).unwrap())
        })
        .collect();
    let all: Vec<_> = processes.into_iter().flat_map(|process| process.join().unwrap()).collect();
    (all.iter().map(|one| one.0).fold(0.0, f64::max), all.iter().map(|one| one.1).sum())
}

fn main() {
    let millions = std::env::args().filter_map(|word| word.parse().ok()).next().unwrap_or(200);
    let two = "workers = 1\n[[process]]\naddress = \"127.0.0.1:42101\"\n[[process]]\naddress = \"127.0.0.1:42102\"\n";
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("key"), "a key for a bench, on loopback alone").unwrap();
    let parse = |text: &str| ClusterLayout::parse(text, "bench", folder.path()).unwrap();
    let keyed = parse(&format!("key_file = \"key\"\n{two}"));
    for (name, cluster) in
        [("two threads", ClusterLayout::local(2)), ("two processes", parse(two)), ("two processes, encrypted", keyed)]
    {
        let mut rates: Vec<f64> = (0..5)
            .map(|_| {
                let (seconds, sum) = together(&cluster, millions);
                assert_eq!(sum, millions * 1_000_000 / 2 * 2);
                millions as f64 / seconds
            })
            .collect();
        rates.sort_by(f64::total_cmp);
        println!("{name}: {:.0} million rows a second (median of 5; {:.0} to {:.0})", rates[2], rates[0], rates[4]);
    }
}
