//! What a history has to know of a crawl, read from the tables of its result.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64;

use super::rates::DAY;
use super::revisit::Kind;
use super::{Collection, Crawl, Member};
use webtwin_base::error::Result;
use webtwin_base::ids::DocId;
use webtwin_results::Run;
use webtwin_storage::table::{Table, decode_columns};

/// One whole, where shares are counted.
pub const MILLION: u64 = 1_000_000;

/// Reads the collections of a result with their pages.
///
/// # Errors
/// [`webtwin_base::error::Error::Input`] if a file is missing or is not what the manifest names, or a table lacks a column.
///
/// # Cost
/// The table `pages` once, a file at a time; in memory the pages of collections.
pub fn crawl(run: &Run) -> Result<Crawl> {
    let mut collections = collections(run)?;
    let ids: Vec<DocId> = collections.iter().map(|collection| collection.id).collect();
    let mut members = Vec::new();
    each_part(run, "members", &["collection", "doc_id"], |part| {
        for (collection, &doc_id) in part.u64("collection")?.iter().zip(part.u64("doc_id")?) {
            if let Ok(at) = ids.binary_search(collection) {
                members.push(Member { collection: at as u32, doc_id, text: 0, place: 0 });
            }
        }
        Ok(())
    })?;
    members.sort_unstable_by_key(|member| member.doc_id);
    members.dedup_by_key(|member| member.doc_id);

    let mut days: BTreeMap<i64, Day> = BTreeMap::new();
    each_part(run, "pages", &["doc_id", "url", "fetch_time", "exact"], |part| {
        let (urls, texts, times) = (part.text("url")?, part.u64("exact")?, part.time("fetch_time")?);
        for (row, doc_id) in part.u64("doc_id")?.iter().enumerate() {
            let day = days.entry(times[row].div_euclid(DAY)).or_default();
            (day.pages, day.newest) = (day.pages + 1, day.newest.max(times[row]));
            if let Ok(at) = members.binary_search_by_key(doc_id, |member| member.doc_id) {
                let collection = &mut collections[members[at].collection as usize];
                collection.fetched = collection.fetched.max(times[row]);
                let prefix = &collection.prefix;
                let place = urls[row].strip_prefix(prefix.as_str()).unwrap_or(&urls[row]);
                (members[at].text, members[at].place) = (texts[row], xxh3_64(place.as_bytes()));
            }
        }
        Ok(())
    })?;
    for member in &members {
        let collection = &mut collections[member.collection as usize];
        (collection.size, collection.looked_at) = (collection.size + 1, collection.looked_at + 1);
    }

    let mut alike = vec![0u64; collections.len()];
    each_part(run, "avoid", &["doc_id", "resemblance"], |part| {
        for (doc_id, resemblance) in part.u64("doc_id")?.iter().zip(part.f64("resemblance")?) {
            if let Ok(at) = members.binary_search_by_key(doc_id, |member| member.doc_id) {
                let of = members[at].collection as usize;
                collections[of].skipped += 1;
                alike[of] += (resemblance * MILLION as f64).round() as u64;
            }
        }
        Ok(())
    })?;
    for (collection, alike) in collections.iter_mut().zip(alike) {
        let mean = alike / u64::from(collection.size.max(1));
        collection.resemblance = (!collection.keep).then_some(mean as u32);
    }
    members.sort_unstable();
    Ok(Crawl { time: made(&days), forgotten: 0, collections, members })
}

/// The pages fetched on a day.
#[derive(Default)]
struct Day {
    pages: u64,
    /// The newest time.
    newest: i64,
}

/// When a crawl was made: the newest time of the last day on which, and after which, a thousandth of its pages were fetched. So a few
/// pages with a date of the future say nothing.
fn made(days: &BTreeMap<i64, Day>) -> i64 {
    let least = days.values().map(|day| day.pages).sum::<u64>().div_ceil(1000);
    let mut since = 0;
    let reached = days.values().rev().find(|day| {
        since += day.pages;
        since >= least
    });
    reached.map_or(0, |day| day.newest)
}

/// The collections of a result, ascending by id, with how their hosts are related to those of the ones kept.
fn collections(run: &Run) -> Result<Vec<Collection>> {
    let mut collections = Vec::new();
    let columns = ["similar_cluster", "collection", "host", "root_url", "prefix", "keep"];
    each_part(run, "collections", &columns, |part| {
        let (clusters, ids, keeps) = (part.u64("similar_cluster")?, part.u64("collection")?, part.bool("keep")?);
        let (hosts, roots, prefixes) = (part.text("host")?, part.text("root_url")?, part.text("prefix")?);
        collections.extend((0..part.rows()).map(|row| Collection {
            id: ids[row],
            similar_cluster: clusters[row],
            keep: keeps[row],
            host: hosts[row].to_string(),
            prefix: prefixes[row].to_string(),
            root_url: roots[row].to_string(),
            ..Collection::default()
        }));
        Ok(())
    })?;
    collections.sort_unstable_by_key(|collection| collection.id);

    let mut kinds: BTreeMap<(String, String), Kind> = BTreeMap::new();
    each_part(run, "server_pairs", &["host_a", "host_b", "kind"], |part| {
        let (a, b, words) = (part.text("host_a")?, part.text("host_b")?, part.text("kind")?);
        for (row, word) in words.iter().enumerate() {
            kinds.insert((a[row].to_string(), b[row].to_string()), Kind::of(word));
        }
        Ok(())
    })?;
    let kept = collections.iter().filter(|one| one.keep).map(|one| (one.similar_cluster, one.host.clone()));
    let kept: BTreeMap<DocId, String> = kept.collect();
    for one in collections.iter_mut() {
        let Some(keep) = kept.get(&one.similar_cluster) else { continue };
        let pair = (one.host.clone(), keep.clone());
        let turned = (keep.clone(), one.host.clone());
        one.kind = kinds.get(&pair).or_else(|| kinds.get(&turned)).copied().unwrap_or_default();
    }
    Ok(collections)
}

/// Calls `with` for some columns of each file of a table; never for a table that the result does not have.
pub fn each_part(run: &Run, table: &str, columns: &[&str], mut with: impl FnMut(&Table) -> Result<()>) -> Result<()> {
    for file in run.manifest.table(table) {
        let bytes = run.manifest.read_file(&run.folder, file)?;
        with(&decode_columns(&file.path, bytes, |name| columns.contains(&name))?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(pages: &[(i64, u64)]) -> BTreeMap<i64, Day> {
        pages.iter().map(|&(day, pages)| (day, Day { pages, newest: day * DAY + 7 })).collect()
    }

    #[test]
    fn a_crawl_was_made_when_a_thousandth_of_it_had_come_and_a_few_dates_of_the_future_say_nothing() {
        assert_eq!(made(&days(&[])), 0);
        assert_eq!(made(&days(&[(5, 1)])), 5 * DAY + 7);
        assert_eq!(made(&days(&[(5, 900), (6, 98), (47_000, 1)])), 47_000 * DAY + 7);
        assert_eq!(made(&days(&[(5, 1900), (6, 99), (47_000, 1)])), 6 * DAY + 7);
        // A segment of a hundred that was fetched anew is not few.
        assert_eq!(made(&days(&[(5, 99_000), (6, 1_000)])), 6 * DAY + 7);
    }
}
