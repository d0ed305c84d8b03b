//! List in force after the newer crawl: the list of its result and the entries that stand next to
//! it.

use std::cmp::Reverse;
use std::collections::HashSet;

use super::exports::lines;
use super::standing::StandingEntries;
use super::stood::ListEntry;
use super::two_crawls::ComparableResults;
use webtwin_base::error::Result;
use webtwin_core::applications::exports::AvoidLists;
use webtwin_core::applications::heritrix::{SurtPrefixes, SurtRules};
use webtwin_pages::surt::surt_prefix_of;

/// Builds the list for the exports from the entries that the newer result lists and the standing
/// entries. Heritrix receives the SURT prefixes of both, and the URL of each page on the list that
/// no prefix covers.
///
/// # Errors
/// Returns any error of the tables and the stores.
///
/// # Cost
/// Reads the URLs of the newer result's table `avoid`. Holds the list in memory.
pub(super) fn list(
    results: &ComparableResults,
    mut new_entries: Vec<ListEntry>,
    standing_entries: &StandingEntries,
) -> Result<AvoidLists> {
    let surts = lines(&results.new, "heritrix-surts.txt")?.unwrap_or_default();
    let mut prefixes: Vec<String> = surts.lines().filter_map(|line| line.strip_prefix('+')).map(String::from).collect();
    let known_prefixes: HashSet<String> = prefixes.iter().cloned().collect();
    let standing_prefixes =
        standing_entries.entries.iter().filter(|entry| entry.heritrix).map(|entry| surt_prefix_of(&entry.url));
    prefixes.extend(standing_prefixes.filter(|form| !known_prefixes.contains(form)));

    let covered_urls = SurtPrefixes::new(prefixes.clone());
    let is_left = |url: &&str| !covered_urls.cover(&surt_prefix_of(url));
    let mut urls: Vec<String> = Vec::new();
    for range in 0..results.ranges.count() {
        let Some([_, avoid]) = &results.avoid else { break };
        urls.extend(avoid.read(range, &["url"])?.text("url")?.iter().filter(is_left).map(String::from));
    }
    let single_urls = standing_entries.entries.iter().filter(|entry| entry.is_single).map(|entry| entry.url.as_str());
    let standing_urls = single_urls.chain(standing_entries.without_line.iter().map(String::as_str));
    urls.extend(standing_urls.filter(is_left).map(String::from));
    urls.sort_unstable();
    urls.dedup();

    new_entries.extend(standing_entries.entries.iter().cloned());
    // If both lists have an entry, the larger counts are kept: they were taken when most of its
    // pages had been crawled.
    new_entries.sort_unstable_by(|x, y| {
        let key = |entry: &ListEntry| (entry.is_single, Reverse((entry.pages, entry.bytes)));
        x.url.cmp(&y.url).then_with(|| key(x).cmp(&key(y)))
    });
    new_entries.dedup_by(|x, y| (&x.url, x.is_single) == (&y.url, y.is_single));
    let entries = new_entries.iter().map(ListEntry::prefix).collect();
    Ok(AvoidLists { prefixes: entries, surt_rules: SurtRules { prefixes, urls } })
}
