//! Extraction of text, chunks, simhashes and links of a page, with buffers that are reused from
//! page to page.

use webtwin_base::ids::FPrint;
use webtwin_core::chunks::ChunkRecipe;
use webtwin_core::hamming;
use webtwin_core::minhash::shingles::Shingles;
use webtwin_core::signatures::random_projection;
use webtwin_core::study::paragraphs::Paragraphs;
use webtwin_core::text::language::LanguageDetector;
use webtwin_core::text::notices::Notices;
use webtwin_job::{Job, JobKind, Measure};
use webtwin_pages::html::Extractor;

/// Extractors of a worker.
pub(super) struct Tools {
    pub(super) extractor: Extractor,
    pub(super) recipe: ChunkRecipe,
    /// Replacement of the recipe in a study.
    pub(super) paragraphs: Option<Paragraphs>,
    pub(super) languages: LanguageDetector,
    pub(super) simhashes: hamming::recipe::SimhashRecipe,
    /// `None` if the job uses no signatures.
    pub(super) projections: Option<random_projection::ProjectionRecipe>,
    /// `None` if the job uses no sets of shingles.
    pub(super) shingles: Option<Shingles>,
    /// `None` if the job does not look for views.
    pub(super) notices: Option<Notices>,
    pub(super) fprints: Vec<FPrint>,
}

impl Tools {
    pub(super) fn new(job: &Job) -> Tools {
        Tools {
            extractor: Extractor::following(&job.input.limits, &job.links),
            recipe: ChunkRecipe::new(&job.chunks),
            paragraphs: (job.kind == JobKind::Study).then(|| Paragraphs::new(&job.chunks, &job.study)),
            languages: LanguageDetector::default(),
            simhashes: hamming::recipe::SimhashRecipe::new(&job.simhash),
            projections: (job.similar.by == Measure::Signatures)
                .then(|| random_projection::ProjectionRecipe::new(&job.signatures.vectors)),
            shingles: job.by_shingles().then(|| Shingles::new(job.minhash.shingle)),
            notices: job.with_views().then(Notices::default),
            fprints: Vec::new(),
        }
    }
}
