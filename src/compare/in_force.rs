//! List in force after the newer crawl: the list of its result and the entries that stand next to
//! it.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};
use std::ops::Bound::{Excluded, Included, Unbounded};

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
/// Reads the URLs of the pages of the newer result, and of both tables `avoid`. Holds the list in
/// memory.
pub(super) fn list(
    results: &ComparableResults,
    new_entries: Vec<ListEntry>,
    standing_entries: &StandingEntries,
) -> Result<AvoidLists> {
    let entries = merged_entries(new_entries, &standing_entries.entries);
    let mut prefixes = surt_prefixes(results, &standing_entries.entries)?;
    let shadowing = shadowing_forms(results, &entries, &prefixes)?;
    prefixes.retain(|form| !shadowing.contains(form));
    let urls = uncovered_urls(results, standing_entries, &prefixes)?;
    let entries = entries.iter().map(ListEntry::prefix).collect();
    Ok(AvoidLists { prefixes: entries, surt_rules: SurtRules { prefixes, urls } })
}

/// Returns the entries of both lists, ascending by URL. Of an entry in both lists the larger counts
/// are kept: they were taken when most of its pages had been crawled.
fn merged_entries(mut entries: Vec<ListEntry>, standing_entries: &[ListEntry]) -> Vec<ListEntry> {
    entries.extend_from_slice(standing_entries);
    entries.sort_unstable_by(|x, y| {
        let key = |entry: &ListEntry| (entry.is_single, Reverse((entry.pages, entry.bytes)));
        x.url.cmp(&y.url).then_with(|| key(x).cmp(&key(y)))
    });
    entries.dedup_by(|x, y| (&x.url, x.is_single) == (&y.url, y.is_single));
    entries
}

/// Returns the SURT prefixes of the newer result, followed by those of standing entries that it
/// does not have.
fn surt_prefixes(results: &ComparableResults, standing_entries: &[ListEntry]) -> Result<Vec<String>> {
    let surts = results.new.export("heritrix-surts.txt")?;
    let mut prefixes: Vec<String> = surts.lines().filter_map(|line| line.strip_prefix('+')).map(String::from).collect();
    let known_prefixes: HashSet<String> = prefixes.iter().cloned().collect();
    let standing_prefixes =
        standing_entries.iter().filter(|entry| entry.heritrix).map(|entry| surt_prefix_of(&entry.url));
    prefixes.extend(standing_prefixes.filter(|form| !known_prefixes.contains(form)));
    Ok(prefixes)
}

/// Returns the URLs of the pages on the list that no SURT prefix covers, ascending.
fn uncovered_urls(
    results: &ComparableResults,
    standing_entries: &StandingEntries,
    prefixes: &[String],
) -> Result<Vec<String>> {
    let covered_urls = SurtPrefixes::new(prefixes.to_vec());
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
    Ok(urls)
}

/// Returns those of the SURT prefixes that are the form of a single URL on the list, and that the
/// form of another URL begins with which a crawler may fetch. The other URL may be new, or may have
/// left the list, so that neither result could know it when it made the prefix.
fn shadowing_forms(
    results: &ComparableResults,
    entries: &[ListEntry],
    prefixes: &[String],
) -> Result<BTreeSet<String>> {
    let (singles, ranges): (Vec<&ListEntry>, Vec<&ListEntry>) = entries.iter().partition(|entry| entry.is_single);
    let range_forms: HashSet<String> = ranges.iter().map(|entry| surt_prefix_of(&entry.url)).collect();
    let known_prefixes: HashSet<&str> = prefixes.iter().map(String::as_str).collect();
    let mut single_forms: BTreeSet<String> = singles.iter().map(|entry| surt_prefix_of(&entry.url)).collect();
    single_forms.retain(|form| known_prefixes.contains(form.as_str()) && !range_forms.contains(form));
    if single_forms.is_empty() {
        return Ok(single_forms);
    }
    let single_urls: HashSet<&str> = singles.iter().map(|entry| entry.url.as_str()).collect();
    let skipped = SurtPrefixes::new(ranges.iter().map(|entry| entry.url.clone()).collect());
    let mut shadowing = BTreeSet::new();
    let mut check = |url: &str| {
        let form = surt_prefix_of(url);
        for shorter in beginnings(&single_forms, &form) {
            if !single_urls.contains(url) && !skipped.cover(url) {
                shadowing.insert(shorter.to_string());
            }
        }
    };
    for range in 0..results.ranges.count() {
        let tables = [Some(&results.pages[1]), results.avoid.as_ref().map(|[old, _]| old)];
        for table in tables.into_iter().flatten() {
            table.read(range, &["url"])?.text("url")?.iter().for_each(&mut check);
        }
    }
    let former_entries = results.stood.iter().flat_map(|stood| stood.entries.iter());
    former_entries.filter(|entry| entry.is_single).for_each(|entry| check(&entry.url));
    Ok(shadowing)
}

/// Returns the texts of a set that `text` begins with, apart from `text` itself.
fn beginnings<'a>(set: &'a BTreeSet<String>, text: &'a str) -> impl Iterator<Item = &'a str> {
    let mut limit = Excluded(text);
    std::iter::from_fn(move || {
        loop {
            let candidate = set.range::<str, _>((Unbounded, limit)).next_back()?;
            if text.starts_with(candidate.as_str()) {
                limit = Excluded(candidate);
                return Some(candidate.as_str());
            }
            // Only texts up to the common beginning can follow.
            let common = candidate.bytes().zip(text.bytes()).take_while(|(x, y)| x == y).count();
            let end = (0..=common).rev().find(|&end| text.is_char_boundary(end))?;
            limit = Included(&text[..end]);
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn beginnings_are_those_of_a_scan(
            set in prop::collection::btree_set("[ab\u{e9}]{1,5}", 0..12), text in "[ab\u{e9}]{0,7}"
        ) {
            let expected: Vec<&str> =
                set.iter().rev().map(String::as_str).filter(|shorter| text.starts_with(shorter) && *shorter != text).collect();
            prop_assert_eq!(beginnings(&set, &text).collect::<Vec<_>>(), expected);
        }
    }
}
