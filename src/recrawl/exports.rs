//! What a crawler that has the old avoid list adds to it, and takes off it.

use std::collections::HashSet;

use xxhash_rust::xxh3::xxh3_64;

use super::Comparison;
use super::standing::{self, Standing};
use super::stood::{self, ENTRIES_STANDING, Entry};
use super::writer::Writer;
use crate::error::Result;
use crate::results::Run;

/// Exports that are a list of entries, one a line; `scrapy_webtwin.py` reads two of them, and `heritrix-beans.xml` is to be
/// replaced as a whole.
const LISTS: [&str; 6] =
    ["prefixes.txt", "urls.txt", "regex-urlfilter.txt", "scrapy-deny.txt", "browsertrix.yaml", "heritrix-surts.txt"];

/// Writes `exports/add-NAME` and `exports/remove-NAME` for each list that both results have: the lines in force now and not before,
/// and those in force before and not now, each in its order. Lines for entries that stand, or stood, beside a list come after its own. The
/// entries that stand are in the table `entries_standing`, and with those of the new list in `exports/in-force-NAME`. Where nobody knows
/// what list the crawler has, there is only that. Returns lines added and removed by list.
///
/// # Errors
/// Those of the stores.
///
/// # Cost
/// A list of each result in memory, and 8 bytes for each of its lines.
pub fn write(of: &Comparison, standing: Option<&Standing>, writer: &mut Writer) -> Result<Vec<(String, [u64; 2])>> {
    let mut counts = Vec::new();
    let stood = of.stood.as_ref().map_or(&[][..], |stood| &stood.entries);
    let stands = standing.map_or(Ok(Vec::new()), |standing| standing.entries(of))?;
    let [lines_stood, lines_stand] = [stood, &stands].map(standing::lines_of);
    for name in LISTS {
        let (Some(mut was), Some(is)) = (lines(&of.old, name)?, lines(&of.new, name)?) else { continue };
        was.extend(lines_stood[name].iter().flat_map(|line| [line.as_str(), "\n"]));
        let beside = without(&lines_stand[name].join("\n"), &is);
        writer.file(&format!("exports/in-force-{name}"), whole(name, &is, &beside))?;
        if of.list_is_lost {
            continue;
        }
        let in_force = format!("{is}{beside}");
        let added = without(&in_force, &was);
        let removed = without(&was, &in_force);
        counts.push((name.to_string(), [&added, &removed].map(|text| text.lines().count() as u64)));
        writer.file(&format!("exports/add-{name}"), &added)?;
        writer.file(&format!("exports/remove-{name}"), &removed)?;
    }
    if of.has_avoid() {
        let listed = standing::entries(&of.new)?;
        let listed: HashSet<(&str, bool)> = listed.iter().map(|entry| (entry.url.as_str(), entry.single)).collect();
        let is_listed = |entry: &Entry| listed.contains(&(entry.url.as_str(), entry.single));
        let beside: Vec<Entry> = stands.into_iter().filter(|entry| !is_listed(entry)).collect();
        writer.add(ENTRIES_STANDING, stood::entries(stood, &beside))?;
    }
    Ok(counts)
}

/// An export of a result, if it has it.
pub(super) fn lines(run: &Run, name: &str) -> Result<Option<String>> {
    let path = format!("exports/{name}");
    let Some(file) = run.manifest.files.iter().find(|file| file.path == path) else { return Ok(None) };
    let bytes = run.manifest.read_file(&run.folder, file)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// The lines of a list that another does not have. Lines that are no entries are left out: the last of a Nutch filter, which takes
/// what nothing before it refuses, and the head of a YAML list.
fn without(list: &str, others: &str) -> String {
    let others: HashSet<u64> = others.lines().map(|line| xxh3_64(line.as_bytes())).collect();
    let is_entry = |line: &&str| *line != "+." && !line.starts_with("exclude:");
    let missing = list.lines().filter(|line| !others.contains(&xxh3_64(line.as_bytes()))).filter(is_entry);
    missing.flat_map(|line| [line, "\n"]).collect()
}

/// A list with more entries, and the head and end that it has.
fn whole(name: &str, list: &str, more: &str) -> String {
    match (name, list.strip_suffix("+.\n"), list.strip_prefix("exclude: []\n")) {
        ("regex-urlfilter.txt", Some(entries), _) => format!("{entries}{more}+.\n"),
        ("browsertrix.yaml", _, Some(_)) if !more.is_empty() => format!("exclude:\n{more}"),
        _ => format!("{list}{more}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_with_more_entries_keeps_its_head_and_end() {
        assert_eq!(whole("regex-urlfilter.txt", "-^a\n+.\n", "-^b\n"), "-^a\n-^b\n+.\n");
        assert_eq!(whole("browsertrix.yaml", "exclude: []\n", "  - '^b'\n"), "exclude:\n  - '^b'\n");
        assert_eq!(whole("browsertrix.yaml", "exclude: []\n", ""), "exclude: []\n");
        assert_eq!(whole("browsertrix.yaml", "exclude:\n  - '^a'\n", "  - '^b'\n"), "exclude:\n  - '^a'\n  - '^b'\n");
        assert_eq!(whole("prefixes.txt", "a\n", "b\n"), "a\nb\n");
    }

    #[test]
    fn lines_that_the_other_lacks_stay_in_order_without_heads_and_ends() {
        assert_eq!(without("-^b\n-^a\n-^c\n+.\n", "-^a\n"), "-^b\n-^c\n");
        assert_eq!(without("exclude:\n  - '^x'\n", "exclude: []\n"), "  - '^x'\n");
        assert_eq!(without("a\n", "a\n"), "");
    }
}
