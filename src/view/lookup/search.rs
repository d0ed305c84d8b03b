//! Full-text search whose results roll up replicas.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use serde::Serialize;

use super::answer::{PageAnswer, hexadecimal};
use super::chunks::counts;
use super::column::IndexColumn;
use super::index::LookupIndex;
use super::rows::NONE;
use crate::search::reorder::{ReorderedResult, reorder};
use crate::search::rollup::{MatchGroup, PageHit, PageOfText, by_collection, roll_up};
use crate::search::texts::{MarkedWords, TextIndex, TextIndexFile};
use crate::search::words::Question;
use webtwin_base::error::{Error, Result};
use webtwin_core::chunks::ChunkRecipe;

/// Prefix of the names of columns that are files of the full-text index.
pub(super) const FILES: &str = "words/";
/// Name of the column with the position of each text's first page in [`PAGES`], and the total.
pub(super) const STARTS: &str = "words.starts";
/// Name of the column with the pages of texts.
pub(super) const PAGES: &str = "words.pages";

/// Number of top results whose order can change.
pub const WINDOW: usize = 100;

/// Maximum number of pages of a collection, and of mirrors or copies, that an answer lists.
pub const MAX_LISTED: usize = 20;

/// Texts of the run by their words, and the pages of each text.
#[derive(Debug)]
pub struct WordIndex {
    /// Full-text index.
    pub texts: TextIndex,
    pub(super) starts: IndexColumn<u64>,
    pub(super) pages: IndexColumn<PageOfText>,
}

impl TextIndexFile for IndexColumn<u8> {
    fn len(&self) -> usize {
        self.rows()
    }

    fn read(&self, range: Range<usize>) -> Result<&[u8]> {
        self.slice(range)
    }
}

/// Requested form and part of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchOptions {
    /// True to roll pages up into one result for each group.
    pub roll: bool,
    /// True to move a result down if it repeats the content of a higher one.
    pub reorder: bool,
    /// Index of the first result to return.
    pub from: usize,
    /// Maximum number of results.
    pub limit: usize,
}

/// Results of a search.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SearchMatches {
    /// Number of all pages that match.
    pub pages: usize,
    /// Number of all results into which the pages are rolled up.
    pub results: usize,
    /// True if pages are rolled up.
    pub rolled_up: bool,
    /// True if results are reordered.
    pub reordered: bool,
    /// Index of the first result in `shown`.
    pub from: usize,
    /// Part of the results, the best first.
    pub shown: Vec<SearchResult>,
}

impl SearchMatches {
    /// Formats the counts as one line.
    pub fn head(&self) -> String {
        let count_text =
            |count: usize, one: &str, several: &str| format!("{count} {}", if count == 1 { one } else { several });
        let pages = count_text(self.pages, "page matches", "pages match");
        if !self.rolled_up || self.pages == 0 {
            return pages;
        }
        let hidden = count_text(self.pages - self.results, "page is", "pages are");
        format!(
            "{pages}, rolled up to {}; {hidden} listed under Collection and Replica",
            count_text(self.results, "result", "results")
        )
    }
}

/// Result of a search.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SearchResult {
    /// Page that represents the group.
    #[serde(flatten)]
    pub page: PageAnswer,
    /// Title of the page, which may be empty.
    pub title: MarkedWords,
    /// Excerpt of its text.
    pub snippet: MarkedWords,
    /// Best score in its group; comparable within an answer only.
    pub score: f32,
    /// Number of matching pages in the group.
    pub pages: usize,
    /// Matching pages of its collection.
    pub collection: Option<CollectionMatches>,
    /// Other collections or copies.
    pub replica: Option<OtherReplicas>,
    /// Higher result that has most of its chunks.
    pub said_by: Option<RepeatOf>,
}

/// Matching pages of a collection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CollectionMatches {
    /// Id of the collection, in hexadecimal.
    pub id: String,
    /// Number of pages that match.
    pub pages: usize,
    /// First of these pages.
    pub named: Vec<PageAnswer>,
}

/// Other collections of a similar cluster, or other copies of a page.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OtherReplicas {
    /// `collections` or `copies`.
    pub kind: &'static str,
    /// Number of them.
    pub count: usize,
    /// First of them.
    pub named: Vec<Replica>,
}

/// Another collection of a similar cluster, or another copy of a page.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Replica {
    /// Id of the collection or of the page, in hexadecimal.
    pub id: String,
    /// URL of the collection's root or of the page.
    pub url: String,
    /// Number of its pages that match.
    pub pages: usize,
}

/// Higher result whose content a result repeats.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RepeatOf {
    /// Page of the higher result.
    #[serde(flatten)]
    pub page: PageAnswer,
    /// Number of common chunks.
    pub shared: usize,
    /// Number of chunks of this result.
    pub chunks: usize,
}

/// Returns all pages that match. Each page is in one group.
///
/// # Errors
/// Returns any error of [`search`].
pub fn hits(index: &LookupIndex, question: &Question, roll: bool) -> Result<Vec<PageHit>> {
    let words = words_of(index)?;
    let mut meant: HashMap<u32, bool> = HashMap::new();
    let mut hits = Vec::new();
    words.texts.matching(&question.words, |text, score| {
        let (start, end) = (words.starts.get(text as usize)?, words.starts.get(text as usize + 1)?);
        for row in words.pages.range(start as usize..end as usize)? {
            let PageOfText { page, group, collection, origin, keep } = row;
            if question.in_mirrors && collection == NONE {
                continue;
            }
            if !question.hosts.is_empty() {
                let is_meant = match meant.get(&origin) {
                    Some(&row) => row,
                    None => {
                        let origin_url = index.origin(origin)?;
                        let is_meant = question.hosts.iter().any(|host| host == host_of(&origin_url));
                        meant.insert(origin, is_meant);
                        is_meant
                    }
                };
                if !is_meant {
                    continue;
                }
            }
            let group = if roll { group } else { page };
            hits.push(PageHit { group, collection, page, text, score, is_kept: keep != 0 });
        }
        Ok(())
    })?;
    Ok(hits)
}

fn words_of(index: &LookupIndex) -> Result<&WordIndex> {
    let missing = || {
        let message = "the index has no texts; build one with `webtwin index RUN --output IDX --text`";
        Error::Usage(format!("{}: {message}", index.folder))
    };
    index.words().ok_or_else(missing)
}

/// Returns the host of an origin, without scheme and port.
fn host_of(origin: &str) -> &str {
    let host = origin.split_once("://").map_or(origin, |(_, host)| host).trim_end_matches('/');
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Answers a query.
///
/// # Errors
/// Returns [`Error::Usage`] if the index has no texts, and [`Error::Input`] if a damaged part of
/// the index is read.
///
/// # Cost
/// All matching pages are collected, 24 bytes each, and sorted. One text is decompressed for each
/// result in the answer, with `reorder` for [`WINDOW`] results.
pub fn search(index: &LookupIndex, question: &Question, options: SearchOptions) -> Result<SearchMatches> {
    let words = words_of(index)?;
    let end = options.from.saturating_add(options.limit);
    let groups = roll_up(hits(index, question, options.roll)?, if options.reorder { end.max(WINDOW) } else { end });
    let mut order: Vec<(usize, Option<RepeatOf>)> = (0..groups.best.len()).map(|place| (place, None)).collect();
    if options.reorder {
        let window = groups.best.len().min(WINDOW);
        order.splice(..window, reorder_best(index, words, &groups.best[..window])?);
    }
    let message = order.into_iter().take(end).skip(options.from);
    let results = message.map(|(place, said_by)| {
        let group = &groups.best[place];
        let members = &groups.hits[group.members.clone()];
        Ok(SearchResult { said_by, ..result_of_group(index, words, question, group, members, options.roll)? })
    });
    Ok(SearchMatches {
        pages: groups.hits.len(),
        results: groups.groups,
        rolled_up: options.roll,
        reordered: options.reorder,
        from: options.from,
        shown: results.collect::<Result<_>>()?,
    })
}

/// Reorders results. Returns their previous places, each with the higher result that it repeats.
fn reorder_best(index: &LookupIndex, words: &WordIndex, best: &[MatchGroup]) -> Result<Vec<(usize, Option<RepeatOf>)>> {
    let mut recipe = ChunkRecipe::new(&index.about.run.job.chunks);
    let (mut scores, mut chunks) = (Vec::with_capacity(best.len()), Vec::with_capacity(best.len()));
    for group in best {
        let mut fprints = Vec::new();
        recipe.fingerprint(&words.texts.stored(group.best.text)?.text, &mut fprints);
        fprints.sort_unstable();
        fprints.dedup();
        let mut n_chunks = Vec::with_capacity(fprints.len());
        for fprint in fprints {
            // Chunks that a site or the crawl repeats on many pages are no evidence that two
            // results repeat each other.
            if counts(index, fprint)? {
                n_chunks.push(fprint);
            }
        }
        scores.push(group.score);
        chunks.push(n_chunks);
    }
    let said_by = |ReorderedResult { rank: original_rank, said_by }| {
        let said_by = said_by.map(|(cause, shared_chunks): (usize, usize)| {
            let page = PageAnswer::read(index, best[cause].best.page)?;
            Ok(RepeatOf { page, shared: shared_chunks, chunks: chunks[original_rank].len() })
        });
        Ok((original_rank, said_by.transpose()?))
    };
    reorder(&scores, &chunks).into_iter().map(said_by).collect()
}

fn result_of_group(
    index: &LookupIndex,
    words: &WordIndex,
    question: &Question,
    group: &MatchGroup,
    members: &[PageHit],
    roll: bool,
) -> Result<SearchResult> {
    let stored = words.texts.stored(group.best.text)?;
    // The text starts with the title, which the result shows separately.
    let text = stored.text.strip_prefix(&stored.title).unwrap_or(&stored.text);
    let (collection, replicas) = match roll {
        true => (collection_matches(index, group, members)?, replicas(index, group, members)?),
        false => (None, None),
    };
    Ok(SearchResult {
        page: PageAnswer::read(index, group.best.page)?,
        title: MarkedWords::new(&stored.title, &question.words),
        snippet: words.texts.snippet(text, &question.words)?,
        score: group.score,
        pages: members.len(),
        collection,
        replica: replicas,
        said_by: None,
    })
}

/// Returns the matching pages of the collection of the page that represents the group.
fn collection_matches(
    index: &LookupIndex,
    group: &MatchGroup,
    members: &[PageHit],
) -> Result<Option<CollectionMatches>> {
    let own_collection = group.best.collection;
    let Some((_, pages)) =
        by_collection(members).find(|one| one.0 == own_collection).filter(|_| own_collection != NONE)
    else {
        return Ok(None);
    };
    let examples = pages.iter().take(MAX_LISTED).map(|hit| PageAnswer::read(index, hit.page)).collect::<Result<_>>()?;
    Ok(Some(CollectionMatches {
        id: hexadecimal(index.collection(own_collection)?.id),
        pages: pages.len(),
        named: examples,
    }))
}

/// Returns the other collections, or the other copies of a page that is in no collection.
fn replicas(index: &LookupIndex, group: &MatchGroup, members: &[PageHit]) -> Result<Option<OtherReplicas>> {
    let row = index.page(group.best.page)?;
    if row.collection != NONE {
        let page_counts: BTreeMap<u32, usize> = by_collection(members).map(|(one, pages)| (one, pages.len())).collect();
        let mirrors = index.mirrors(index.collection(row.collection)?.similar_cluster)?;
        let count = mirrors.len().saturating_sub(1);
        let examples = mirrors.filter(|&one| one != row.collection).take(MAX_LISTED).map(|mirror| {
            let (mirror_collection, pages) =
                (index.collection(mirror)?, page_counts.get(&mirror).copied().unwrap_or_default());
            Ok(Replica { id: hexadecimal(mirror_collection.id), url: index.url(mirror_collection.root)?, pages })
        });
        return Ok(Some(OtherReplicas { kind: "collections", count, named: examples.collect::<Result<_>>()? }));
    }
    if row.cluster == NONE {
        return Ok(None);
    }
    let pages = index.cluster(row.cluster)?;
    let count = pages.len().saturating_sub(1);
    let examples = pages.filter(|&page| page != group.best.page).take(MAX_LISTED).map(|page| {
        let PageAnswer { id, url } = PageAnswer::read(index, page)?;
        Ok(Replica { id, url, pages: usize::from(members.binary_search_by_key(&page, |hit| hit.page).is_ok()) })
    });
    Ok(Some(OtherReplicas { kind: "copies", count, named: examples.collect::<Result<_>>()? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_an_origin_is_without_scheme_and_port() {
        for (origin, host) in [
            ("http://www.a.example", "www.a.example"),
            ("https://a.example:8443", "a.example"),
            ("http://[2001:db8::1]:80", "[2001:db8::1]"),
            ("http://[2001:db8::1]", "[2001:db8::1]"),
        ] {
            assert_eq!(host_of(origin), host);
        }
    }
}
