//! Selected pairs of pages side by side: the ends of weak links, and pages of mirrors. Their texts
//! are read again from the input.

use std::collections::{HashMap, HashSet};

use super::mirrors::MirrorDetails;
use super::page_rows::PageRows;
use super::sets::Forest;
use crate::report::contract::{
    Compare, MeasuredValue, MirrorReport, PageComparison, ReportedStep, SetMember, SetReport, SharedText, SharedTexts,
    SimilarSet,
};
use crate::report::side_by_side::side_by_side;
use webtwin_base::error::Result;
use webtwin_base::ids::{DocId, FPrint};
use webtwin_core::chunks::ChunkRecipe;
use webtwin_core::explain::chain::shortest;
use webtwin_results::FinishedRun;
use webtwin_results::pages::PageTable;
use webtwin_results::scan::scan;

/// Maximum number of bytes of a text that are compared.
const TEXT: usize = 200_000;

/// Maximum number of common chunks to display.
const CHUNKS: usize = 8;

/// Maximum number of characters of a chunk.
const CHUNK: usize = 120;

/// Maximum number of steps of a displayed path; longer paths are omitted.
const STEPS: usize = 30;

/// Selected pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenPair {
    /// Reason for the selection.
    pub why: String,
    /// The two pages.
    pub pages: [DocId; 2],
}

/// Selects at most `limit` pairs. Two of three are the weakest links of different sets; the others
/// are a page of the largest mirrors in two copies.
pub fn choose(mirrors: &MirrorReport, details: &MirrorDetails, sets: &SetReport, limit: usize) -> Vec<ChosenPair> {
    let ends = |(number, set): (usize, &SimilarSet)| {
        let link = set.links.first()?;
        let why = format!("weakest link {}", number + 1);
        Some(ChosenPair { why, pages: [set.members[link.a].id, set.members[link.b].id] })
    };
    let weak_links = sets.shown[..sets.weakest as usize].iter().enumerate().filter_map(ends);
    let mut pairs: Vec<ChosenPair> = weak_links.take(limit - limit / 3).collect();
    let roots = (0..mirrors.shown.len()).filter_map(|number| {
        Some(ChosenPair {
            why: "a page of a mirror".into(),
            pages: [*details.roots.get(number)?, details.counterpart(number)?],
        })
    });
    pairs.extend(roots.take(limit - pairs.len()));
    pairs
}

/// Compares the pairs.
///
/// # Errors
/// Returns any error of the tables. Pages that cannot be read again are not an error: the
/// comparison states the reason.
///
/// # Cost
/// One pass over `pages`, and over `fprint_docid` if the result has it. Reads the records of the
/// pages in the input. Holds both texts of each pair in memory.
pub fn gather(run: &FinishedRun, pairs: &[ChosenPair], forest: &Forest, pages: &PageRows) -> Result<Compare> {
    let texts = Texts::read(run, pairs)?;
    let comparisons = pairs.iter().filter_map(|pair| compare_pair(pair, forest, pages, &texts));
    Ok(Compare { shown: comparisons.collect() })
}

/// Texts by page, and the frequency of their chunks.
struct Texts {
    texts: HashMap<DocId, String>,
    /// Reason why there are no texts.
    missing_reason: String,
    recipe: Option<ChunkRecipe>,
    /// Number of pages with each chunk.
    page_counts: HashMap<FPrint, u64>,
}

impl Texts {
    fn read(run: &FinishedRun, pairs: &[ChosenPair]) -> Result<Texts> {
        let mut texts =
            Texts { texts: HashMap::new(), missing_reason: String::new(), recipe: None, page_counts: HashMap::new() };
        let job = match run.job() {
            Ok(job) => job,
            Err(error) => {
                texts.missing_reason = error.to_string();
                return Ok(texts);
            }
        };
        let mut ids: Vec<DocId> = pairs.iter().flat_map(|pair| pair.pages).collect();
        ids.sort_unstable();
        ids.dedup();
        let pages = PageTable::some(run, &ids)?;
        let (doc_ids, places) = (pages.doc_ids()?.to_vec(), (0..pages.doc_ids()?.len()).collect::<Vec<_>>());
        let read = pages.read(&places, &job.input, &mut |row, _, text| {
            let end = (0..=TEXT.min(text.len())).rfind(|&at| text.is_char_boundary(at)).unwrap_or(0);
            texts.texts.insert(doc_ids[row], text[..end].to_string());
            Ok(())
        });
        if let Err(error) = read {
            texts.missing_reason = error.to_string();
        }
        let recipe = ChunkRecipe::new(&job.chunks);
        let mut fprints: Vec<FPrint> = Vec::new();
        for text in texts.texts.values() {
            fprints.extend(recipe.chunks(text).into_iter().map(|chunk| chunk.0));
        }
        fprints.sort_unstable();
        fprints.dedup();
        texts.recipe = Some(recipe);
        texts.page_counts = count_pages(run, &fprints)?;
        Ok(texts)
    }
}

/// Counts the pages with each of these chunks, from the table `fprint_docid`. Empty if the result
/// lacks the table.
fn count_pages(run: &FinishedRun, fprints: &[FPrint]) -> Result<HashMap<FPrint, u64>> {
    let mut pages = HashMap::new();
    scan(run, "fprint_docid", &["fprint"], &mut |batch| {
        for fprint in batch.u64("fprint")?.iter().filter(|fprint| fprints.binary_search(fprint).is_ok()) {
            *pages.entry(*fprint).or_default() += 1;
        }
        Ok(())
    })?;
    Ok(pages)
}

fn compare_pair(pair: &ChosenPair, forest: &Forest, rows: &PageRows, texts: &Texts) -> Option<PageComparison> {
    let [a, b] = pair.pages;
    let (row_a, row_b) = (rows.get(a)?, rows.get(b)?);
    let member =
        |page: DocId, of: &SetMember| SetMember { role: forest.role(page).unwrap_or("alone").into(), ..of.clone() };
    let set = forest.set_of(a).filter(|set| forest.set_of(b) == Some(*set));
    let mut comparison = PageComparison {
        why: pair.why.clone(),
        pages: [member(a, &row_a.member), member(b, &row_b.member)],
        together: set.is_some(),
        same_text: row_a.exact != 0 && row_a.exact == row_b.exact,
        bits: row_a.simhash.zip(row_b.simhash).map(|(x, y)| (x ^ y).count_ones()),
        chain: set.map(|set| chain(pair, &forest.tree(set), rows)).unwrap_or_default(),
        shared: None,
        diff: Vec::new(),
        unread: texts.missing_reason.clone(),
    };
    if let (Some(left_text), Some(right), Some(recipe)) = (texts.texts.get(&a), texts.texts.get(&b), &texts.recipe) {
        comparison.unread.clear();
        comparison.shared = Some(shared_texts(recipe, left_text, right, &texts.page_counts));
        comparison.diff = side_by_side(left_text, right);
    }
    Some(comparison)
}

/// Returns the path from one page to the other along the tree of their set.
fn chain(pair: &ChosenPair, tree: &[(DocId, DocId, MeasuredValue)], rows: &PageRows) -> Vec<ReportedStep> {
    let edges: Vec<(DocId, DocId)> = tree.iter().map(|link| (link.0, link.1)).collect();
    let path = shortest(&edges, pair.pages[0], pair.pages[1]).unwrap_or_default();
    if path.len() > STEPS {
        return Vec::new();
    }
    let mut page = pair.pages[0];
    let step = |edge: usize| {
        let (a, b, measured) = tree[edge];
        page = if page == a { b } else { a };
        let names = rows.get(page).map(|row| row.member.clone());
        ReportedStep {
            id: page,
            url: names.as_ref().map_or_else(String::new, |member| member.url.clone()),
            host: names.map_or_else(String::new, |member| member.host),
            by: measured,
        }
    };
    path.into_iter().map(step).collect()
}

fn shared_texts(recipe: &ChunkRecipe, left_text: &str, right: &str, page_counts: &HashMap<FPrint, u64>) -> SharedTexts {
    let distinct = |text: &str| {
        let mut distinct_hashes = HashSet::new();
        let mut chunks = recipe.chunks(text);
        chunks.retain(|chunk| distinct_hashes.insert(chunk.0));
        (chunks, distinct_hashes)
    };
    let ((chunks, left_hashes), (_, right_hashes)) = (distinct(left_text), distinct(right));
    let common_chunks: Vec<&(FPrint, String)> = chunks.iter().filter(|chunk| right_hashes.contains(&chunk.0)).collect();
    let examples = common_chunks.iter().take(CHUNKS).map(|(fprint, text)| SharedText {
        text: text.chars().take(CHUNK).collect(),
        pages: page_counts.get(fprint).copied(),
    });
    SharedTexts {
        both: common_chunks.len() as u64,
        of: [left_hashes.len() as u64, right_hashes.len() as u64],
        some: examples.collect(),
    }
}
