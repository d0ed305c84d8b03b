//! Columns of pages: rows, URLs, titles and their words, hashes of texts, prefixes of the list in
//! force, and URL rules.

use std::collections::HashMap;

use super::lists::NameWords;
use super::sets::{CLUSTER, COLLECTION, ROLE, StagedFacts, WordNumbers};
use super::staged::StagedIndex;
use super::{Making, unknown};
use crate::lookup::index::RULES;
use crate::lookup::rows::{ContentRow, HashRow, IndexedPageRow, NONE};
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::DocId;
use webtwin_core::url_rules::rows::RuleRow;
use webtwin_pages::url::CanonicalUrl;
use webtwin_results::url_rules::{WITHDRAWN, each_rule, rules_except};
use webtwin_spill::Partitions;

/// Output that later steps need.
pub(super) struct BuiltPages {
    /// True for each page that is an exact copy of a page with a smaller rank; by rank.
    pub is_copy: Vec<bool>,
    /// Simhashes with their pages, if they were requested.
    pub simhashes: Vec<(u64, DocId)>,
    /// Rows by rank, if texts were requested.
    #[cfg_attr(not(feature = "search"), allow(dead_code))]
    pub rows: Vec<IndexedPageRow>,
}

/// Writes all these columns. `places` maps each cluster to its place in the list of clusters;
/// `roots` are the roots of collections with the place of their similar cluster.
pub(super) fn write(
    making: &Making<'_>,
    mut facts: StagedFacts,
    (places, mut roots): (&[u32], &[(u32, u32)]),
    words: &mut WordNumbers,
    index_files: &mut StagedIndex,
) -> Result<BuiltPages> {
    let mut texts: Partitions<HashRow> = Partitions::new(making.ranges.count(), &making.pool.part(4));
    let avoid = making.table("avoid", "doc_id")?;
    let (mut pages, mut contents) =
        (index_files.column::<IndexedPageRow>("pages")?, index_files.column::<ContentRow>("contents")?);
    let (mut urls, mut origin_strings, mut titles) =
        (index_files.strings("urls")?, index_files.strings("origins")?, index_files.strings("titles")?);
    let (mut cluster_words, mut mirror_words) = (NameWords::new(making), NameWords::new(making));
    let (mut host_numbers, mut hosts): (HashMap<String, u32>, HashMap<String, u32>) = Default::default();
    let (mut simhashes, mut hashes) = (Vec::new(), Vec::new());
    let mut counts: Vec<[u32; 3]> = Vec::new();
    for range in 0..making.ranges.count() {
        let first = pages.rows() as u32;
        let columns = ["doc_id", "url", "host", "title", "fetch_time", "exact", "simhash", "has_simhash"];
        let rows = making.pages.read(range, &columns)?;
        let (names, host_names) = (rows.text("title")?, rows.text("host")?);
        let (doc_ids, times, exact) = (rows.u64("doc_id")?, rows.time("fetch_time")?, rows.u64("exact")?);
        let simhash = rows.u64_where("simhash", "has_simhash")?;
        let blank = |(&doc_id, &time): (&u64, &i64)| IndexedPageRow {
            doc_id,
            keep: NONE,
            cluster: NONE,
            collection: NONE,
            origin: 0,
            time: u32::try_from(time.max(0)).unwrap_or(u32::MAX),
            role: 0,
            why: 0,
            bits: 0,
            zero: 0,
        };
        let mut block: Vec<IndexedPageRow> = doc_ids.iter().zip(times).map(blank).collect();
        facts.take(range, &mut counts)?;
        // If a page is in several collections, the row has the first: descending order lets it
        // overwrite the others.
        counts.sort_unstable_by(|x, y| y.cmp(x));
        for &[rank, fact_kind, value] in &counts {
            let row = &mut block[(rank - first) as usize];
            match fact_kind {
                CLUSTER => row.cluster = value,
                ROLE => row.role = value as u8,
                COLLECTION => row.collection = value,
                _ => return Err(Error::Invariant(format!("the row of a set has the unknown field {fact_kind}"))),
            }
        }
        if let Some(avoid) = &avoid {
            // All tables have the same ranges of doc ids, so these pages are in this block.
            let avoided_pages = avoid.read(range, &["doc_id", "keep_doc_id", "why"])?;
            let why = avoided_pages.text("why")?;
            for ((page, &keep), why) in
                avoided_pages.u64("doc_id")?.iter().zip(avoided_pages.u64("keep_doc_id")?).zip(why)
            {
                let row = &mut block[(making.rank(*page)? - first) as usize];
                (row.keep, row.why, row.bits) = (making.rank(keep)?, words.number(why)?, IndexedPageRow::SKIP);
            }
        }
        for (row, url) in rows.text("url")?.iter().enumerate() {
            let origin = origin_of(url)?;
            let number = match host_numbers.get(origin) {
                Some(&number) => number,
                None => {
                    let number = host_numbers.len() as u32;
                    origin_strings.push(origin)?;
                    host_numbers.insert(origin.into(), number);
                    number
                }
            };
            block[row].origin = number;
            // Origins are stored once, because many pages share one.
            urls.push(&url[origin.len()..])?;
            titles.push(&names[row])?;
            match hosts.get_mut(&host_names[row]) {
                Some(pages) => *pages += 1,
                None => _ = hosts.insert(host_names[row].to_string(), 1),
            }
            // Only sets can be found by words, not single pages.
            if block[row].cluster != NONE {
                cluster_words.add(places[block[row].cluster as usize], &names[row], url)?;
            }
            while let Some((&(_, place), rest)) = roots.split_first().filter(|of| of.0.0 == first + row as u32) {
                mirror_words.add(place, &names[row], url)?;
                roots = rest;
            }
            if let Some(simhash) = simhash[row] {
                block[row].bits |= IndexedPageRow::SIMHASH;
                if making.settings.simhashes.is_some() {
                    simhashes.push((simhash, doc_ids[row]));
                }
            }
            contents.push(ContentRow { exact: exact[row], simhash: simhash[row].unwrap_or_default() })?;
            if exact[row] != 0 {
                texts.push(making.ranges.range(exact[row]), HashRow::new(exact[row], first + row as u32))?;
            }
        }
        pages.extend(&block)?;
        if making.settings.text {
            hashes.extend(block);
        }
    }
    index_files.add("pages", pages)?;
    index_files.add("contents", contents)?;
    index_files.add_strings("urls", urls)?;
    index_files.add_strings("origins", origin_strings)?;
    index_files.add_strings("titles", titles)?;
    cluster_words.write(0, index_files)?;
    mirror_words.write(1, index_files)?;
    unknown::hosts(&hosts, index_files)?;
    prefixes(making, index_files)?;
    rules(making, index_files)?;
    let is_copy = write_texts(making, texts, index_files)?;
    Ok(BuiltPages { is_copy, simhashes, rows: hashes })
}

/// Returns the origin of a canonical URL: everything before the path.
fn origin_of(url: &str) -> Result<&str> {
    let parsed = CanonicalUrl::parse(url);
    match parsed.as_ref().map(|parsed| (parsed.origin().len(), parsed.as_str() == url)) {
        Ok((length, true)) => Ok(&url[..length]),
        _ => Err(Error::input("pages", format!("{url} is not canonical; name a result that webtwin wrote"))),
    }
}

/// Writes the hashes of texts. Returns the pages that are copies of pages with smaller ranks.
fn write_texts(
    making: &Making<'_>,
    mut texts: Partitions<HashRow>,
    index_files: &mut StagedIndex,
) -> Result<Vec<bool>> {
    let mut column = index_files.column::<HashRow>("texts")?;
    let mut is_copy = vec![false; making.doc_ids.len()];
    let mut rows = Vec::new();
    for bucket in 0..texts.count() {
        texts.take(bucket, &mut rows)?;
        rows.sort_unstable();
        for group in rows.chunk_by(|x, y| x.hash() == y.hash()) {
            group[1..].iter().for_each(|row| is_copy[row.value as usize] = true);
        }
        column.extend(&rows)?;
    }
    index_files.add("texts", column)?;
    Ok(is_copy)
}

/// Writes the URL rules as JSON, in the order of their application.
fn rules(making: &Making<'_>, index_files: &mut StagedIndex) -> Result<()> {
    let mut strings = index_files.strings(RULES)?;
    let mut push_rule = |row: RuleRow| strings.push(&serde_json::to_string(&row).expect("a rule is plain values"));
    match &making.comparison {
        Some(comparison) => {
            rules_except(comparison, WITHDRAWN)?.unwrap_or_default().into_iter().try_for_each(push_rule)?
        }
        None => each_rule(&making.run, &mut push_rule)?,
    }
    index_files.add_strings(RULES, strings)
}

/// Writes the prefixes of the avoid list, ascending. A prefix that starts with another one is left
/// out.
fn prefixes(making: &Making<'_>, index_files: &mut StagedIndex) -> Result<()> {
    let text = making.lister().export("prefixes.txt")?;
    let mut lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    lines.sort_unstable();
    let mut strings = index_files.strings("prefixes")?;
    let mut last = None;
    for prefix in lines {
        if last.is_none_or(|last| !prefix.starts_with(last)) {
            strings.push(prefix)?;
            last = Some(prefix);
        }
    }
    index_files.add_strings("prefixes", strings)
}
