//! History of collections over twenty crawls: the cost of one more crawl, in a process that holds
//! the history and in one that restores it.

use super::super::measure::{core_seconds, forget_peak_memory};
use super::super::{FigureRow, Options, figure};
use webtwin_base::build_info::{memory_bytes, peak_memory_bytes};
use webtwin_base::error::Result;
use webtwin_base::ids::splitmix64;
use webtwin_compare::collections::{Collection, CollectionMember, CrawlCollections};
use webtwin_compare::history::History;
use webtwin_compare::saved::SavedComparison;

/// Number of crawls before the one that is measured.
const CRAWLS: u32 = 19;

/// Number of pages of each collection.
const PAGES: u64 = 8;

/// The default settings: the number of crawls whose pages are kept, minus one, and the number of
/// crawls after which a missing collection counts as ended.
const VERSIONS: usize = 4;
const PATIENCE: u8 = 2;

/// Returns a pseudorandom number below a hundred for a collection and a crawl.
fn percent(collection: u64, crawl: u32) -> u64 {
    splitmix64(splitmix64(collection) ^ u64::from(crawl)) % 100
}

/// Makes a crawl of collections in groups of four. With each crawl, of a hundred collections one
/// ends and another one takes its place, one moves to other URLs, two are missing from this crawl
/// only, and ten have other texts.
fn crawl(number: u32, collections: u64) -> CrawlCollections {
    let mut parts: Vec<(Collection, Vec<CollectionMember>)> = Vec::new();
    for slot in 0..collections {
        // Numbers of the collection in this slot, of its present address, and of the version of its
        // texts.
        let ends = (1..=number).filter(|&crawl| percent(slot, crawl) == 0).count() as u64;
        let n_moves = (1..=number).filter(|&crawl| percent(slot, crawl) == 1).count() as u64;
        let texts = (1..=number).filter(|&crawl| (10..20).contains(&percent(slot, crawl))).count() as u64;
        if (2..4).contains(&percent(slot, number)) {
            continue;
        }
        let name = splitmix64(slot + (ends << 40));
        let place_number = splitmix64(name ^ n_moves);
        let mut members: Vec<CollectionMember> = (0..PAGES)
            .map(|page| CollectionMember {
                collection: 0,
                doc_id: splitmix64(place_number ^ (page << 32)),
                text: splitmix64(name ^ (texts << 48) ^ (page << 8)),
                place: splitmix64(page),
            })
            .collect();
        members.sort_unstable();
        let collection = Collection {
            id: members[0].doc_id,
            similar_cluster: slot / 4,
            keep: slot % 4 == 0,
            size: PAGES as u32,
            host: format!("mirror-{slot}-{n_moves}.example"),
            prefix: format!("http://mirror-{slot}-{n_moves}.example/manuals/{ends}/"),
            root_url: format!("http://mirror-{slot}-{n_moves}.example/manuals/{ends}/index.html"),
            ..Collection::default()
        };
        parts.push((collection, members));
    }
    parts.sort_unstable_by_key(|one| one.0.id);
    let mut crawl = CrawlCollections { time: i64::from(number) * 604_800, ..CrawlCollections::default() };
    for (number, (collection, members)) in (0..).zip(parts) {
        crawl.collections.push(collection);
        crawl.members.extend(members.into_iter().map(|member| CollectionMember { collection: number, ..member }));
    }
    crawl
}

/// Measures one more crawl on a history of nineteen.
pub(super) fn run(options: &Options) -> Result<Vec<FigureRow>> {
    let mut history = History::new(PATIENCE);
    for number in 0..CRAWLS {
        history.append(crawl(number, options.scale))?;
        history.forget_all_but(VERSIONS + 1);
    }
    let newest = crawl(CRAWLS, options.scale);
    let comparison = SavedComparison {
        patience: PATIENCE,
        crawls: history.crawls().clone(),
        pairs: history.pairs().clone(),
        ..SavedComparison::default()
    };
    let bytes = comparison.encode(&Default::default());
    drop(comparison);
    let (append_result, changes) = core_seconds(|| history.append(newest.clone()));
    let changes = changes?;
    drop(history);

    let base = memory_bytes();
    forget_peak_memory();
    let (taken_up, history) = core_seconds(|| -> Result<History> {
        let restored_history = SavedComparison::decode("history", &bytes, &Default::default())?;
        Ok(History::from_crawls(PATIENCE, restored_history.crawls, restored_history.pairs).0)
    });
    let mut history = history?;
    let (appended, repeat_result) = core_seconds(|| history.append(newest));
    let peak = peak_memory_bytes().saturating_sub(base);
    let is_equal = repeat_result? == changes;
    let scale = options.scale as f64 / 100_000.0;
    Ok(vec![
        figure("collections of a crawl", options.scale as f64, "collections"),
        figure("the file that is saved", bytes.len() as f64 / 1e6, "MB"),
        figure("one more crawl, in a process that holds the history", append_result, "s").at_most(2.0 * scale),
        figure("taking the history up", taken_up, "s"),
        figure("one more crawl after that", appended, "s").at_most(2.0 * scale),
        figure("peak memory of both, above that of the made-up crawls", peak as f64 / f64::from(1 << 30), "GiB")
            .at_most(scale),
        figure("facts that the crawl added", changes.len() as f64, "facts"),
        figure("the same facts both times", f64::from(u8::from(is_equal)), "").at_least(1.0),
    ])
}
