//! Hosts and the pages that they share, from the tables `hosts` and `server_pairs`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use crate::report::contract::{Amount, HostPair, HostReport, ReportedHost};
use crate::report::top::SmallestKeys;
use webtwin_base::error::Result;
use webtwin_results::FinishedRun;
use webtwin_results::scan::scan;
use webtwin_storage::table::Table;

/// Maximum number of hosts to display.
const MAX_HOSTS: usize = 150;

/// Maximum number of pairs to display.
const PAIRS: usize = 40;

/// Number of pairs among which the hosts of the matrix are selected.
const CANDIDATE_PAIRS: usize = 1000;

/// Maximum number of hosts of the matrix.
const MATRIX: usize = 24;

/// Reads the hosts with the most pages to skip, and the pairs that share the most pages.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::Input`] if a column is missing, and any error of [`scan`].
pub fn gather(run: &FinishedRun) -> Result<HostReport> {
    let mut hosts = HostReport::default();
    let mut top = SmallestKeys::new(MAX_HOSTS);
    scan(run, "hosts", &["host", "pages", "body_bytes", "skip_pages", "skip_bytes"], &mut |batch| {
        let (names, pages, bytes) = (batch.text("host")?, batch.u64("pages")?, batch.u64("body_bytes")?);
        let (skip_pages, skip_bytes) = (batch.u64("skip_pages")?, batch.u64("skip_bytes")?);
        for row in 0..batch.rows() {
            hosts.all += 1;
            let key = (Reverse(skip_pages[row]), Reverse(pages[row]), names[row].to_string());
            let host = || ReportedHost {
                host: names[row].to_string(),
                crawl: Amount { pages: pages[row], bytes: bytes[row] },
                skip: Amount { pages: skip_pages[row], bytes: skip_bytes[row] },
            };
            // Builds the row only if it is selected, because most rows are not.
            if top.takes(&key) {
                top.offer(key, host());
            }
        }
        Ok(())
    })?;
    hosts.shown = top.finish();

    let mut top = SmallestKeys::new(CANDIDATE_PAIRS);
    each_pair(run, &mut |pair| {
        *hosts.pairs.entry(pair.kind.clone()).or_default() += 1;
        top.offer((Reverse(pair.shared), pair.a.clone(), pair.b.clone()), pair);
        Ok(())
    })?;
    let pairs = top.finish();
    let mut shared_pages: BTreeMap<&str, u64> = BTreeMap::new();
    for (host, pair) in pairs.iter().flat_map(|pair| [(&pair.a, pair), (&pair.b, pair)]) {
        *shared_pages.entry(host).or_default() += pair.shared;
    }
    let mut ranked: Vec<(u64, &str)> = shared_pages.into_iter().map(|(host, shared)| (shared, host)).collect();
    ranked.sort_unstable_by_key(|&(shared, host)| (Reverse(shared), host));
    // The pairs among these hosts need a second pass over the table.
    let selected: Vec<String> = ranked.iter().take(MATRIX).map(|of| of.1.to_string()).collect();
    each_pair(run, &mut |pair| {
        if selected.contains(&pair.a) && selected.contains(&pair.b) {
            hosts.matrix.push(pair);
        }
        Ok(())
    })?;
    hosts.matrix_hosts = next_to_similar(&selected, &hosts.matrix);
    hosts.shown_pairs = pairs.into_iter().take(PAIRS).collect();
    Ok(hosts)
}

fn each_pair(run: &FinishedRun, take: &mut dyn FnMut(HostPair) -> Result<()>) -> Result<()> {
    let columns = ["host_a", "host_b", "shared", "same_path", "pages_a", "pages_b", "kind"];
    scan(run, "server_pairs", &columns, &mut |batch| (0..batch.rows()).try_for_each(|row| take(pair(batch, row)?)))?;
    Ok(())
}

fn pair(batch: &Table, row: usize) -> Result<HostPair> {
    let number = |name: &str| Ok(u64::from(batch.u32(name)?[row]));
    Ok(HostPair {
        a: batch.text("host_a")?[row].to_string(),
        b: batch.text("host_b")?[row].to_string(),
        shared: number("shared")?,
        same_path: number("same_path")?,
        pages_a: number("pages_a")?,
        pages_b: number("pages_b")?,
        kind: batch.text("kind")?[row].to_string(),
    })
}

/// Orders hosts so that similar ones are adjacent. Each next host is the one most similar to the
/// previous ones, with weights that halve with distance.
fn next_to_similar(hosts: &[String], pairs: &[HostPair]) -> Vec<String> {
    let mut similarity: HashMap<(&str, &str), u64> = HashMap::new();
    for pair in pairs {
        // In whole millionths, so that the order is the same on all machines.
        let share = pair.shared * 1_000_000 / pair.pages_a.min(pair.pages_b).max(1);
        similarity.insert((&pair.a, &pair.b), share);
        similarity.insert((&pair.b, &pair.a), share);
    }
    let mut remaining: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let mut order: Vec<&str> = Vec::new();
    while !remaining.is_empty() {
        let nearness = |host: &str| -> u64 {
            let neighbours = order.iter().rev().enumerate().take(16);
            neighbours.map(|(far, other)| similarity.get(&(host, *other)).copied().unwrap_or(0) >> far).sum()
        };
        // Ties go to the first one; hosts are in the order of their shared pages.
        let next =
            (0..remaining.len()).max_by_key(|&at| (nearness(remaining[at]), Reverse(at))).expect("some are left");
        order.push(remaining.remove(next));
    }
    order.into_iter().map(str::to_string).collect()
}
