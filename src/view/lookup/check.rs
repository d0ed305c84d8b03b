//! Check of a text against an index: exact and near copies among the pages.

use serde::Serialize;

use super::answer::{PageAnswer, UrlAction, hexadecimal};
use super::chunks::{TextComparison, compare};
use super::index::LookupIndex;
use super::rows::{IndexedPageRow, NONE};
use webtwin_base::error::Result;
use webtwin_base::ids::doc_id;
use webtwin_core::chunks::{ChunkRecipe, bytes, instead_of_text};
use webtwin_core::hamming;
use webtwin_job::{Job, Measure};
use webtwin_pages::html::Extractor;
use webtwin_pages::url::CanonicalUrl;

/// Maximum number of near pages in an answer.
const MAX_NEAR_PAGES: usize = 20;

/// Maximum number of pages with an equal text that are examined for one that is not the page
/// itself.
const MAX_COPIES: usize = 1000;

/// Format of a page's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestForm {
    /// HTML as fetched.
    Html,
    /// XHTML as fetched.
    Xhtml,
    /// Plain text.
    Text,
}

/// Request to check a page.
#[derive(Debug, Clone, Copy)]
pub struct CheckRequest<'a> {
    /// Bytes of the page.
    pub body: &'a [u8],
    /// Format of the bytes.
    pub form: RequestForm,
    /// Charset that the transport declares.
    pub charset: Option<&'a str>,
    /// URL of the page, if known. It excludes the page from its own copies.
    pub url: Option<&'a CanonicalUrl>,
}

/// Page that is near a text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NearPage {
    /// Doc id in hexadecimal, and URL.
    #[serde(flatten)]
    pub page: PageAnswer,
    /// `overlap` or `hamming`.
    pub measure: &'static str,
    /// Number of shared chunks, by `overlap`.
    pub shared: Option<u32>,
    /// Hamming distance of the simhashes, by `hamming`.
    pub distance: Option<u32>,
    /// Shared chunks as a fraction of the larger text's chunks, by `overlap`.
    pub resemblance: Option<f64>,
    /// Page that is kept for it; absent if it is kept itself.
    pub keep: Option<PageAnswer>,
}

/// Use of each measure: `used`, or the reason why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Measures {
    /// Overlap of chunks.
    pub overlap: &'static str,
    /// Simhashes.
    pub hamming: &'static str,
    /// MinHash.
    pub minhash: &'static str,
}

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// Page with the same text; the kept one, if there are several.
    pub exact: Option<PageAnswer>,
    /// Near pages, the nearest first; at most 20.
    pub near: Vec<NearPage>,
    /// `skip` if it is a copy of a page by the job's measure, else `fetch`.
    pub action: UrlAction,
    /// `exact` or `similar`.
    pub why: Option<&'static str>,
    /// Page that is kept for it.
    pub keep: Option<PageAnswer>,
    /// Size of its text, in bytes.
    pub text_bytes: usize,
    /// Simhash, if the text has one that can be compared.
    pub fingerprint: Option<String>,
    /// Number of distinct chunks of its text.
    pub chunks: u32,
    /// Number of its chunks that count; absent if the index has no chunks.
    pub counting: Option<u32>,
    /// Use of each measure: `used`, or the reason why not.
    pub measures: Measures,
}

/// Checks texts. Each thread has its own, because of scratch buffers.
pub struct Checker {
    extractor: Extractor,
    recipe: ChunkRecipe,
    simhashes: Option<hamming::recipe::SimhashRecipe>,
    job: Job,
    fprints: Vec<u64>,
}

impl Checker {
    /// Creates a checker that reads texts like the job of the index's run.
    pub fn new(index: &LookupIndex) -> Checker {
        let job = index.about.run.job.clone();
        // Feature weights from a whole crawl are not available for a single text.
        let simhashes = (job.simhash.bits > 0 && !job.simhash.features.idf)
            .then(|| hamming::recipe::SimhashRecipe::new(&job.simhash));
        let extractor = Extractor::new(&job.input.limits);
        Checker { extractor, recipe: ChunkRecipe::new(&job.chunks), simhashes, job, fprints: Vec::new() }
    }

    /// Checks the body of a page.
    ///
    /// # Errors
    /// Returns any error of [`LookupIndex::rank`].
    ///
    /// # Cost
    /// One pass over the body, one look-up for each chunk, and one in each table of simhashes.
    pub fn check(&mut self, index: &LookupIndex, request: CheckRequest<'_>) -> Result<Check> {
        let blank = CanonicalUrl::parse("http://localhost/").expect("this is a URL");
        let text = match request.form {
            RequestForm::Html => self.extractor.html(request.body, request.charset, request.url.unwrap_or(&blank)).text,
            RequestForm::Xhtml => {
                self.extractor.xhtml(request.body, request.charset, request.url.unwrap_or(&blank)).text
            }
            RequestForm::Text => self.extractor.text(request.body, request.charset).text,
        };
        let document = self.recipe.fingerprint(text, &mut self.fprints);
        // The job identifies pages with little text by their bytes, so the check must do so too.
        let is_too_short = text.len() < self.job.chunks.min_text as usize;
        let exact = if is_too_short { instead_of_text(bytes(request.body)) } else { document.exact };
        let simhash = match &mut self.simhashes {
            // A page with too little text has no near pages.
            Some(recipe) => recipe.simhash(if document.exact == 0 { "" } else { text }),
            None => None,
        };
        let text_bytes = text.len();

        let own_rank = match request.url {
            Some(url) => index.rank(doc_id(url.as_str()))?,
            None => None,
        };
        let exact = self.find_same_text(index, exact, own_rank)?;
        let comparison = compare(index, &self.fprints, &self.job.overlap)?;
        let mut near_pages = Vec::new();
        if let Some(comparison) = &comparison {
            add_shared(index, comparison, own_rank, &mut near_pages)?;
        }
        let mut hash_status = "not in the index: made without --simhashes";
        if let Some(tables) = index.simhashes() {
            hash_status = match (&self.simhashes, simhash) {
                (None, _) => "not comparable: the job weighs features by the crawl",
                (Some(_), None) => "the text has too few features",
                (Some(_), Some(simhash)) => {
                    bits(index, tables, simhash, own_rank, &mut near_pages)?;
                    "used"
                }
            };
        }
        let measure = self.job.similar.by;
        let decides = |entry: &&(u32, NearPage)| match entry.1.measure {
            "overlap" => matches!(measure, Measure::Overlap | Measure::Both),
            _ => matches!(measure, Measure::Hamming | Measure::Both) && entry.1.distance <= Some(self.job.hamming.k),
        };
        let nearest = near_pages.iter().find(decides).map(|one| one.0);
        let original = exact.or(nearest);
        let kept_url = |rank: u32| -> Result<u32> {
            let keep = index.page(rank)?.keep;
            Ok(if keep == NONE { rank } else { keep })
        };
        let keep = original.map(kept_url).transpose()?.filter(|keep| own_rank != Some(*keep));
        // The kept page itself must be fetched.
        let why = keep.and(if exact.is_some() { Some("exact") } else { Some("similar") });
        let is_minhash = measure == Measure::Minhash;
        Ok(Check {
            exact: exact.map(|rank| PageAnswer::read(index, rank)).transpose()?,
            action: if keep.is_some() { UrlAction::Skip } else { UrlAction::Fetch },
            why,
            keep: keep.map(|rank| PageAnswer::read(index, rank)).transpose()?,
            text_bytes,
            fingerprint: simhash.map(hexadecimal),
            chunks: self.fprints.len() as u32,
            counting: comparison.as_ref().map(|compared| compared.counting),
            measures: Measures {
                overlap: if comparison.is_some() { "used" } else { "not in the index: made without --chunks" },
                hamming: hash_status,
                minhash: if is_minhash {
                    "not in the index: it has no sets of shingles"
                } else {
                    "not the job's measure"
                },
            },
            near: near_pages.into_iter().map(|one| one.1).take(MAX_NEAR_PAGES).collect(),
        })
    }

    /// Returns a page with the same text that is not the page itself; the kept one, if there are
    /// several.
    fn find_same_text(&self, index: &LookupIndex, exact: u64, own_rank: Option<u32>) -> Result<Option<u32>> {
        if exact == 0 {
            return Ok(None);
        }
        let mut first = None;
        for rank in index.with_text(exact, MAX_COPIES)?.into_iter().filter(|rank| own_rank != Some(*rank)) {
            if !index.page(rank)?.is_skipped() {
                return Ok(Some(rank));
            }
            first = first.or(Some(rank));
        }
        Ok(first)
    }
}

fn keep_of(index: &LookupIndex, row: &IndexedPageRow) -> Result<Option<PageAnswer>> {
    (row.keep != NONE).then(|| PageAnswer::read(index, row.keep)).transpose()
}

/// Adds pages that share chunks.
fn add_shared(
    index: &LookupIndex,
    comparison: &TextComparison,
    own_rank: Option<u32>,
    near_pages: &mut Vec<(u32, NearPage)>,
) -> Result<()> {
    for candidate in comparison.near.iter().filter(|one| own_rank != Some(one.page)).take(MAX_NEAR_PAGES) {
        near_pages.push((
            candidate.page,
            NearPage {
                page: PageAnswer::read(index, candidate.page)?,
                measure: "overlap",
                shared: Some(candidate.shared),
                distance: None,
                resemblance: Some(f64::from(candidate.shared) / f64::from(candidate.larger.max(1))),
                keep: keep_of(index, &index.page(candidate.page)?)?,
            },
        ));
    }
    Ok(())
}

/// Adds pages with a near simhash.
fn bits(
    index: &LookupIndex,
    tables: &hamming::online::OnlineIndex<webtwin_storage::mapped::FileBytes>,
    simhash: u64,
    own_rank: Option<u32>,
    near_pages: &mut Vec<(u32, NearPage)>,
) -> Result<()> {
    let mut matches = tables.near(simhash, tables.manifest().design.k)?;
    matches.sort_unstable_by_key(|one| (one.distance, one.fingerprint));
    let mut message = 0;
    for candidate in matches {
        for id in tables.doc_ids(candidate.fingerprint)? {
            let Some(rank) = index.rank(id)?.filter(|rank| own_rank != Some(*rank)) else { continue };
            if message == MAX_NEAR_PAGES {
                return Ok(());
            }
            message += 1;
            let (page, keep) = (PageAnswer::read(index, rank)?, keep_of(index, &index.page(rank)?)?);
            let (shared_chunks, resemblance) = (None, None);
            near_pages.push((
                rank,
                NearPage {
                    page,
                    measure: "hamming",
                    shared: shared_chunks,
                    distance: Some(candidate.distance),
                    resemblance,
                    keep,
                },
            ));
        }
    }
    Ok(())
}
