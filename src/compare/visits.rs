//! Of the pages of each host that two crawls have, how many have another text: visits, and those that found a change.

use std::collections::BTreeMap;

use super::merge::{Side, merge};
use super::rates::Visits;
use webtwin_base::error::Result;
use webtwin_base::threads;
use webtwin_results::Run;
use webtwin_results::ranges::{RangedTable, Ranges};

/// Rows of both results that are read at a time.
const RANGE_ROWS: u64 = 1 << 17;

/// The most ranges.
const RANGES: u32 = 512;

/// Counts for each host how many pages of the old result were fetched again since, and how many of these have another text. A page
/// that one of them lacks is no visit, nor is one of which the new result has the capture that the old one has.
///
/// # Errors
/// [`webtwin_base::error::Error::Input`] if a table is not what the manifest names.
///
/// # Cost
/// Four columns of both tables `pages`, a range of doc ids a thread in memory.
pub fn of_hosts(old: &Run, new: &Run, interval: i64, workers: usize) -> Result<BTreeMap<String, Visits>> {
    let ranges = Ranges::of(old.rows("pages") + new.rows("pages"), RANGE_ROWS, RANGES);
    let find = |run: &Run| RangedTable::find(run, "pages", ("doc_id", 64), ranges, workers);
    let (Some(pages_old), Some(pages_new)) = (find(old)?, find(new)?) else { return Ok(BTreeMap::new()) };
    let count = |hosts: &mut BTreeMap<String, Visits>, range: usize| {
        let old = pages_old.read(range, &["doc_id", "exact", "fetch_time"])?;
        let new = pages_new.read(range, &["doc_id", "host", "exact", "fetch_time"])?;
        let (ids, texts) = (old.u64("doc_id")?, old.u64("exact")?);
        let (times, new_times) = (old.time("fetch_time")?, new.time("fetch_time")?);
        let (new_texts, names) = (new.u64("exact")?, new.text("host")?);
        for side in merge(ids, new.u64("doc_id")?) {
            if let Side::Both(at, row) = side
                && times[at] < new_times[row]
            {
                let visits = match hosts.get_mut(&names[row]) {
                    Some(visits) => visits,
                    None => hosts.entry(names[row].to_string()).or_insert(Visits { interval, ..Visits::default() }),
                };
                visits.visits += 1;
                visits.changed += u64::from(texts[at] != new_texts[row]);
            }
        }
        Ok(())
    };
    let mut all: BTreeMap<String, Visits> = BTreeMap::new();
    for hosts in threads::for_each(workers, ranges.count(), BTreeMap::new, count)? {
        for (host, visits) in hosts {
            let sum = all.entry(host).or_insert(Visits { interval, ..Visits::default() });
            sum.visits += visits.visits;
            sum.changed += visits.changed;
        }
    }
    Ok(all)
}

/// Adds visits to those before them, of which the `most` newest intervals are kept apart; older ones become one of their mean length.
pub fn add(to: &mut Vec<(u32, Visits)>, crawl: u32, visits: Visits, most: usize) {
    to.push((crawl, visits));
    while to.len() > most.max(2) {
        let ((_, x), (crawl, y)) = (to[0], to[1]);
        let both = x.visits + y.visits;
        let seconds = i128::from(x.interval) * i128::from(x.visits) + i128::from(y.interval) * i128::from(y.visits);
        let interval = (seconds / i128::from(both.max(1))) as i64;
        to[1] = (crawl, Visits { interval: interval.max(1), visits: both, changed: x.changed + y.changed });
        to.remove(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_intervals_become_one_and_no_visit_is_lost() {
        let mut all = Vec::new();
        for crawl in 0..5 {
            let visits = Visits { interval: 10 * (i64::from(crawl) + 1), visits: 10, changed: u64::from(crawl) };
            add(&mut all, crawl, visits, 3);
        }
        assert_eq!(all.len(), 3);
        let sum = |of: fn(&Visits) -> u64| all.iter().map(|one| of(&one.1)).sum::<u64>();
        assert_eq!((sum(|one| one.visits), sum(|one| one.changed)), (50, 10));
        assert_eq!(all[0], (2, Visits { interval: 20, visits: 30, changed: 3 }));
    }
}
