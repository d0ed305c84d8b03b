//! Exports of a comparison for crawlers: the list in force, and the lines that a crawler with the
//! old list adds and removes.

use std::collections::HashSet;

use xxhash_rust::xxh3::xxh3_64;

use super::in_force;
use super::standing::{self, AvoidListInForce, StandingEntries};
use super::stood::{self, ENTRIES_STANDING, ListEntry};
use super::two_crawls::ComparableResults;
use super::writer::ResultWriter;
use webtwin_base::error::Result;
use webtwin_core::applications::exports::{BY_PAGES, EXPORTS, SCRAPY, WidePrefix};
use webtwin_core::applications::rule_exports::RULE_EXPORTS;
use webtwin_core::url_rules::rows::RuleRow;

/// Exports that are lists with one entry a line, and so can be patched. Other exports must be
/// replaced as a whole.
const LISTS: [&str; 6] =
    ["prefixes.txt", "urls.txt", "regex-urlfilter.txt", "scrapy-deny.txt", "browsertrix.yaml", "heritrix-surts.txt"];

/// Writes the exports of the list and of the URL rules in force, under the names that they have in
/// a run.
///
/// For each of [`LISTS`] it also writes `exports/add-NAME` and `exports/remove-NAME`: lines in
/// force now but not before, and lines in force before but not now, each in the order of its list.
/// These patches are not written if the list that the crawler has is unknown. Entries that stand
/// next to the new list are written to the table `entries_standing`. Returns the numbers of lines
/// added and removed, by list.
///
/// # Errors
/// Returns any error of the stores.
///
/// # Cost
/// Holds the lists in memory, and for one list at a time its old and new text and 8 bytes for each
/// of its lines.
pub(super) fn write(
    results: &ComparableResults,
    avoid_list: Option<&AvoidListInForce>,
    rules: &[RuleRow],
    writer: &mut ResultWriter,
) -> Result<Vec<(String, [u64; 2])>> {
    let former_entries = results.stood.as_ref().map_or(&[][..], |stood| &stood.entries);
    let standing_entries = avoid_list.map_or(Ok(StandingEntries::default()), |standing| standing.stands(results))?;
    let new_entries = standing::entries(&results.new)?;
    if results.has_avoid() {
        let new_entries: HashSet<(&str, bool)> =
            new_entries.iter().map(|entry| (entry.url.as_str(), entry.is_single)).collect();
        let is_listed = |entry: &&ListEntry| new_entries.contains(&(entry.url.as_str(), entry.is_single));
        let unlisted_entries: Vec<ListEntry> =
            standing_entries.entries.iter().filter(|entry| !is_listed(entry)).cloned().collect();
        writer.add(ENTRIES_STANDING, stood::entries(former_entries, &unlisted_entries))?;
    }
    let list = in_force::list(results, new_entries, &standing_entries)?;
    let mut wide: Vec<WidePrefix> = list.wide().collect();
    wide.sort_unstable();
    let lines_stood = standing::lines_of(former_entries);
    let mut counts = Vec::new();
    let mut file = |name: &str, text: String| -> Result<()> {
        writer.file(&format!("exports/{name}"), &text)?;
        // Without the crawler's list there is nothing to patch, and other exports are replaced as a
        // whole.
        if results.list_is_lost || !LISTS.contains(&name) {
            return Ok(());
        }
        let mut old_text = results.old.export(name)?;
        // The crawler's list also had the lines of the entries that stood next to the older list.
        old_text.extend(lines_stood[name].iter().flat_map(|line| [line.as_str(), "\n"]));
        let [added_lines, removed_lines] = [lines_without(&text, &old_text), lines_without(&old_text, &text)];
        counts.push((name.to_string(), [&added_lines, &removed_lines].map(|text| text.lines().count() as u64)));
        writer.file(&format!("exports/add-{name}"), &added_lines)?;
        writer.file(&format!("exports/remove-{name}"), &removed_lines)
    };
    EXPORTS.iter().try_for_each(|export| file(export.name, export.text(std::slice::from_ref(&list))))?;
    file(BY_PAGES.name, BY_PAGES.text(&wide))?;
    RULE_EXPORTS.iter().try_for_each(|export| file(export.name, export.text(rules)))?;
    let (name, text) = SCRAPY;
    file(name, text.to_string())?;
    Ok(counts)
}

/// Returns the lines of `list` that `others` lacks. Lines that are not entries are left out: the
/// last line of a Nutch filter, which accepts all remaining URLs, and the head of a YAML list.
fn lines_without(list: &str, excluded: &str) -> String {
    let excluded_hashes: HashSet<u64> = excluded.lines().map(|line| xxh3_64(line.as_bytes())).collect();
    let is_entry = |line: &&str| *line != "+." && !line.starts_with("exclude:");
    let missing = list.lines().filter(|line| !excluded_hashes.contains(&xxh3_64(line.as_bytes()))).filter(is_entry);
    missing.flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_missing_in_the_other_text_stay_in_order_without_common_heads_and_ends() {
        assert_eq!(lines_without("-^b\n-^a\n-^c\n+.\n", "-^a\n"), "-^b\n-^c\n");
        assert_eq!(lines_without("exclude:\n  - '^x'\n", "exclude: []\n"), "  - '^x'\n");
        assert_eq!(lines_without("a\n", "a\n"), "");
    }
}
