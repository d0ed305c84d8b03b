//! Change counts of hosts: pages of both crawls are visits, and pages with another text are visits
//! that found a change.

use std::collections::BTreeMap;

use super::merge::{MergeSide, merge};
use super::rates::Visits;
use webtwin_base::error::Result;
use webtwin_base::threads;
use webtwin_results::FinishedRun;
use webtwin_results::ranges::{RangedTable, Ranges};

/// Approximate number of rows of both results that are read at a time.
const RANGE_ROWS: u64 = 1 << 17;

/// Maximum number of ranges.
const RANGES: u32 = 512;

/// Counts for each host the pages of the old result that were fetched again, and those of them with
/// another text. A page that one result lacks is not a visit, nor is a page for which the new
/// result has the same capture as the old one.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::Input`] if a table differs from the manifest.
///
/// # Cost
/// Reads four columns of both tables `pages`. Each thread holds one range of doc ids in memory.
pub fn of_hosts(
    old: &FinishedRun,
    new: &FinishedRun,
    interval: i64,
    workers: usize,
) -> Result<BTreeMap<String, Visits>> {
    let ranges = Ranges::new(old.rows("pages") + new.rows("pages"), RANGE_ROWS, RANGES);
    let find = |run: &FinishedRun| RangedTable::find(run, "pages", ("doc_id", 64), ranges, workers);
    let (Some(pages_old), Some(pages_new)) = (find(old)?, find(new)?) else { return Ok(BTreeMap::new()) };
    let count = |hosts: &mut BTreeMap<String, Visits>, range: usize| {
        let old = pages_old.read(range, &["doc_id", "exact", "fetch_time"])?;
        let new = pages_new.read(range, &["doc_id", "host", "exact", "fetch_time"])?;
        let (ids, texts) = (old.u64("doc_id")?, old.u64("exact")?);
        let (times, new_times) = (old.time("fetch_time")?, new.time("fetch_time")?);
        let (new_texts, names) = (new.u64("exact")?, new.text("host")?);
        for side in merge(ids, new.u64("doc_id")?) {
            if let MergeSide::Both(row_before, row) = side
                && times[row_before] < new_times[row]
            {
                let visits = match hosts.get_mut(&names[row]) {
                    Some(visits) => visits,
                    None => hosts.entry(names[row].to_string()).or_insert(Visits { interval, ..Visits::default() }),
                };
                visits.visits += 1;
                visits.changed += u64::from(texts[row_before] != new_texts[row]);
            }
        }
        Ok(())
    };
    let mut host_visits: BTreeMap<String, Visits> = BTreeMap::new();
    for hosts in threads::for_each(workers, ranges.count(), BTreeMap::new, count)? {
        for (host, visits) in hosts {
            let sum = host_visits.entry(host).or_insert(Visits { interval, ..Visits::default() });
            sum.visits += visits.visits;
            sum.changed += visits.changed;
        }
    }
    Ok(host_visits)
}

/// Appends the visits of an interval. The `limit` newest intervals are stored separately; older
/// ones are merged into one of their mean length.
pub fn add(intervals: &mut Vec<(u32, Visits)>, crawl: u32, visits: Visits, limit: usize) {
    intervals.push((crawl, visits));
    while intervals.len() > limit.max(2) {
        let ((_, x), (crawl, y)) = (intervals[0], intervals[1]);
        let n_visits = x.visits + y.visits;
        let seconds = i128::from(x.interval) * i128::from(x.visits) + i128::from(y.interval) * i128::from(y.visits);
        let interval = (seconds / i128::from(n_visits.max(1))) as i64;
        intervals[1] = (crawl, Visits { interval: interval.max(1), visits: n_visits, changed: x.changed + y.changed });
        intervals.remove(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_intervals_become_one_and_no_visit_is_lost() {
        let mut intervals = Vec::new();
        for crawl in 0..5 {
            let visits = Visits { interval: 10 * (i64::from(crawl) + 1), visits: 10, changed: u64::from(crawl) };
            add(&mut intervals, crawl, visits, 3);
        }
        assert_eq!(intervals.len(), 3);
        let sum = |of: fn(&Visits) -> u64| intervals.iter().map(|one| of(&one.1)).sum::<u64>();
        assert_eq!((sum(|one| one.visits), sum(|one| one.changed)), (50, 10));
        assert_eq!(intervals[0], (2, Visits { interval: 20, visits: 30, changed: 3 }));
    }
}
