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

/// Selects at most `most` pairs. Two of three are the weakest links of different sets; the others
/// are a page of the largest mirrors in two copies.
pub fn choose(mirrors: &MirrorReport, of: &MirrorDetails, sets: &SetReport, most: usize) -> Vec<ChosenPair> {
    let ends = |(number, set): (usize, &SimilarSet)| {
        let link = set.links.first()?;
        let why = format!("weakest link {}", number + 1);
        Some(ChosenPair { why, pages: [set.members[link.a].id, set.members[link.b].id] })
    };
    let weak = sets.shown[..sets.weakest as usize].iter().enumerate().filter_map(ends);
    let mut pairs: Vec<ChosenPair> = weak.take(most - most / 3).collect();
    let roots = (0..mirrors.shown.len()).filter_map(|number| {
        Some(ChosenPair { why: "a page of a mirror".into(), pages: [*of.roots.get(number)?, of.counterpart(number)?] })
    });
    pairs.extend(roots.take(most - pairs.len()));
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
    let shown = pairs.iter().filter_map(|pair| compared(pair, forest, pages, &texts));
    Ok(Compare { shown: shown.collect() })
}

/// Texts by page, and the frequency of their chunks.
struct Texts {
    texts: HashMap<DocId, String>,
    /// Reason why there are no texts.
    unread: String,
    recipe: Option<ChunkRecipe>,
    /// Number of pages with each chunk.
    pages_with: HashMap<FPrint, u64>,
}

impl Texts {
    fn read(run: &FinishedRun, pairs: &[ChosenPair]) -> Result<Texts> {
        let mut texts =
            Texts { texts: HashMap::new(), unread: String::new(), recipe: None, pages_with: HashMap::new() };
        let job = match run.job() {
            Ok(job) => job,
            Err(error) => {
                texts.unread = error.to_string();
                return Ok(texts);
            }
        };
        let mut wanted: Vec<DocId> = pairs.iter().flat_map(|pair| pair.pages).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let pages = PageTable::some(run, &wanted)?;
        let (doc_ids, places) = (pages.doc_ids()?.to_vec(), (0..pages.doc_ids()?.len()).collect::<Vec<_>>());
        let read = pages.read(&places, &job.input, &mut |row, _, text| {
            let end = (0..=TEXT.min(text.len())).rfind(|&at| text.is_char_boundary(at)).unwrap_or(0);
            texts.texts.insert(doc_ids[row], text[..end].to_string());
            Ok(())
        });
        if let Err(error) = read {
            texts.unread = error.to_string();
        }
        let recipe = ChunkRecipe::new(&job.chunks);
        let mut asked: Vec<FPrint> = Vec::new();
        for text in texts.texts.values() {
            asked.extend(recipe.chunks(text).into_iter().map(|chunk| chunk.0));
        }
        asked.sort_unstable();
        asked.dedup();
        texts.recipe = Some(recipe);
        texts.pages_with = pages_with(run, &asked)?;
        Ok(texts)
    }
}

/// Counts the pages with each of these chunks, from the table `fprint_docid`. Empty if the result
/// lacks the table.
fn pages_with(run: &FinishedRun, wanted: &[FPrint]) -> Result<HashMap<FPrint, u64>> {
    let mut pages = HashMap::new();
    scan(run, "fprint_docid", &["fprint"], &mut |batch| {
        for fprint in batch.u64("fprint")?.iter().filter(|fprint| wanted.binary_search(fprint).is_ok()) {
            *pages.entry(*fprint).or_default() += 1;
        }
        Ok(())
    })?;
    Ok(pages)
}

fn compared(pair: &ChosenPair, forest: &Forest, rows: &PageRows, texts: &Texts) -> Option<PageComparison> {
    let [a, b] = pair.pages;
    let (row_a, row_b) = (rows.get(a)?, rows.get(b)?);
    let member =
        |page: DocId, of: &SetMember| SetMember { role: forest.role(page).unwrap_or("alone").into(), ..of.clone() };
    let set = forest.set_of(a).filter(|set| forest.set_of(b) == Some(*set));
    let mut compared = PageComparison {
        why: pair.why.clone(),
        pages: [member(a, &row_a.member), member(b, &row_b.member)],
        together: set.is_some(),
        same_text: row_a.exact != 0 && row_a.exact == row_b.exact,
        bits: row_a.simhash.zip(row_b.simhash).map(|(x, y)| (x ^ y).count_ones()),
        chain: set.map(|set| chain(pair, &forest.tree(set), rows)).unwrap_or_default(),
        shared: None,
        diff: Vec::new(),
        unread: texts.unread.clone(),
    };
    if let (Some(left), Some(right), Some(recipe)) = (texts.texts.get(&a), texts.texts.get(&b), &texts.recipe) {
        compared.unread.clear();
        compared.shared = Some(shared(recipe, left, right, &texts.pages_with));
        compared.diff = side_by_side(left, right);
    }
    Some(compared)
}

/// Returns the path from one page to the other along the tree of their set.
fn chain(pair: &ChosenPair, tree: &[(DocId, DocId, MeasuredValue)], rows: &PageRows) -> Vec<ReportedStep> {
    let edges: Vec<(DocId, DocId)> = tree.iter().map(|link| (link.0, link.1)).collect();
    let path = shortest(&edges, pair.pages[0], pair.pages[1]).unwrap_or_default();
    if path.len() > STEPS {
        return Vec::new();
    }
    let mut at = pair.pages[0];
    let step = |edge: usize| {
        let (a, b, by) = tree[edge];
        at = if at == a { b } else { a };
        let named = rows.get(at).map(|row| row.member.clone());
        ReportedStep {
            id: at,
            url: named.as_ref().map_or_else(String::new, |member| member.url.clone()),
            host: named.map_or_else(String::new, |member| member.host),
            by,
        }
    };
    path.into_iter().map(step).collect()
}

fn shared(recipe: &ChunkRecipe, left: &str, right: &str, pages_with: &HashMap<FPrint, u64>) -> SharedTexts {
    let distinct = |text: &str| {
        let mut seen = HashSet::new();
        let mut chunks = recipe.chunks(text);
        chunks.retain(|chunk| seen.insert(chunk.0));
        (chunks, seen)
    };
    let ((chunks, of_left), (_, of_right)) = (distinct(left), distinct(right));
    let both: Vec<&(FPrint, String)> = chunks.iter().filter(|chunk| of_right.contains(&chunk.0)).collect();
    let some = both.iter().take(CHUNKS).map(|(fprint, text)| SharedText {
        text: text.chars().take(CHUNK).collect(),
        pages: pages_with.get(fprint).copied(),
    });
    SharedTexts { both: both.len() as u64, of: [of_left.len() as u64, of_right.len() as u64], some: some.collect() }
}
