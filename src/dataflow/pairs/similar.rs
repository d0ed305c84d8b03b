//! Similar pages by the measures that a job uses (\[CSG00\] Definition 4 leaves the test open).

use itertools::Itertools;

use super::counts::PairCounts;
use super::given::{self, GivenPair};
use super::kinds::{PairKind, PairsByKind};
use super::overlap_before::{self, PriorRun, RowForwarder};
use super::simhash_pairs::SimhashCounts;
use super::{fprint_docid, given_tables, minhash_pairs, overlap, signatures, simhash_pairs, views};
use crate::hamming::NearPair;
use crate::parts::TablePart;
use crate::run::WorkerRun;
use crate::steps::RunStep;
use crate::web::WorkerWeb;
use webtwin_base::error::Result;
use webtwin_base::ids::{DocId, Page};
use webtwin_core::overlap::SimilarPair;
use webtwin_job::Measure;
use webtwin_spill::SpillColumn;
use webtwin_storage::table::Table;

/// Step that finds views of one page, placeholders and declared copies.
pub const VIEWS: RunStep = RunStep::named("views");
/// Step that finds similar pairs by shared chunks.
pub const OVERLAP: RunStep = RunStep::named("overlap");
/// Step that finds similar pairs by simhashes.
pub const HAMMING: RunStep = RunStep::named("hamming");
/// Step that finds similar pairs by signatures.
pub const SIGNATURES: RunStep = RunStep::named("signatures");
/// Step that finds similar pairs by sets of shingles.
pub const MINHASH: RunStep = RunStep::named("minhash");

/// Step that reads similar pairs found by another program. Doc ids of all pages are in memory.
pub const GIVEN: RunStep = RunStep { name: "given", bytes_a_page: size_of::<DocId>() as u64, bytes_an_own_page: 0 };

/// Fraction of changed pages, of their chunks, or of the pairs that these produce, beyond which
/// similar pairs are found from scratch. Inspecting the changes then costs as much as it saves.
/// Measured.
const MAX_CHANGE: f64 = 0.25;

/// Similar pages of this worker.
#[derive(Default)]
pub struct SimilarPages {
    /// Pairs by the kind of evidence that found them.
    pub pairs: PairsByKind,
    /// Pairs by shared chunks that are too weak without the support of collections, ascending.
    pub weak: Vec<SimilarPair>,
    /// Pages that other pages declare canonical and whose text agrees with theirs. May contain
    /// repetitions.
    pub originals: Vec<Page>,
    /// Counts of the measures.
    pub counts: PairCounts,
    /// Parts of tables that measures produce.
    pub parts: Vec<TablePart>,
}

impl SimilarPages {
    /// Finds the similar pages. `exact` are this worker's pairs of centre and copy.
    ///
    /// # Errors
    /// Returns any error of the measures.
    pub fn pages(
        run: &mut WorkerRun<'_, '_>,
        web: &WorkerWeb,
        exact: SpillColumn<SimilarPair>,
    ) -> Result<SimilarPages> {
        let mut similar = SimilarPages::default();
        similar.pairs.put(PairKind::Exact, exact);
        let measure = run.job.similar.by;
        if matches!(measure, Measure::Overlap | Measure::Both) {
            similar.views(run, web)?;
            similar.by_overlap(run, web)?;
        }
        if let Some(earlier_pairs) = run.earlier_pairs.as_mut() {
            let pairs = std::mem::take(&mut earlier_pairs.pairs);
            similar.by_batch(run, web, &pairs)?;
        } else if matches!(measure, Measure::Hamming | Measure::Both) {
            similar.by_hamming(run, web)?;
        }
        if measure == Measure::Signatures {
            similar.by_signatures(run, web)?;
        }
        if measure == Measure::Minhash {
            similar.by_minhash(run, web)?;
        }
        if !run.job.pairs.from.is_empty() {
            similar.by_given_pairs(run, web)?;
        }
        if run.job.output.fprint_docid {
            let (partitions, bits) = (run.partitions, run.job.chunks.bits);
            similar.parts.extend(fprint_docid::fprint_docid(run.net, run.local_pages, &web.crawl, partitions, bits)?);
        }
        Ok(similar)
    }

    fn put(&mut self, run: &WorkerRun<'_, '_>, kind: PairKind, similar_pairs: Vec<SimilarPair>) -> Result<()> {
        self.pairs.put(kind, run.spill_column(similar_pairs)?);
        Ok(())
    }

    /// Finds views of one page, placeholders and declared copies.
    fn views(&mut self, run: &mut WorkerRun<'_, '_>, web: &WorkerWeb) -> Result<()> {
        let result = run.recorded(web, VIEWS, |run| views::views(run.net, run.local_pages, &web.crawl, run.job))?;
        (self.originals, self.counts.views) = (result.originals, result.counts);
        for (kind, kind_pairs) in views::KINDS.into_iter().zip(result.pairs) {
            self.put(run, kind, kind_pairs)?;
        }
        Ok(())
    }

    /// Finds pairs of pages with F >= T equal chunks (\[SGM98\] section 2).
    fn by_overlap(&mut self, run: &mut WorkerRun<'_, '_>, web: &WorkerWeb) -> Result<()> {
        let (resume, job) = (run.resume, run.job);
        let (index, workers) = (run.net.index(), run.net.peers());
        let each_page = |forward: RowForwarder<'_>| {
            if let Some(resume) = resume {
                overlap_before::each_left_page(resume, job.effort.memory_bytes > 0, index, workers, forward);
            }
        };
        let notify = |what| drop(resume.map(|resume| resume.pairs.set(what)));
        let shares = resume.and_then(|resume| resume.store.shares());
        let prior_run =
            shares.map(|shares| PriorRun { shares, each_page: &each_page, notify: &notify, max_change: MAX_CHANGE });
        let exact = self.pairs.column(PairKind::Exact);
        let similar_pairs;
        (similar_pairs, self.weak, self.counts.overlap) = run.recorded(web, OVERLAP, |run| {
            overlap::similar_pairs(run.net, run.local_pages, &web.crawl, exact, &web.links, job, prior_run.as_ref())
        })?;
        self.put(run, PairKind::Overlap, similar_pairs)
    }

    /// Finds pairs of pages whose simhashes are within k bits of each other (\[MJS07\] section 3).
    fn by_hamming(&mut self, run: &mut WorkerRun<'_, '_>, web: &WorkerWeb) -> Result<()> {
        let exact = self.pairs.column(PairKind::Exact);
        let similar_pairs;
        (similar_pairs, self.counts.hamming) = run
            .recorded(web, HAMMING, |run| simhash_pairs::similar_pairs(run.net, &web.crawl, exact, &run.job.hamming))?;
        self.put(run, PairKind::Hamming, similar_pairs)
    }

    /// Looks up the pairs of a page of earlier crawls and a page of the new crawl whose simhashes
    /// are within k bits of each other (\[MJS07\] section 3.3).
    fn by_batch(&mut self, run: &mut WorkerRun<'_, '_>, web: &WorkerWeb, near: &SpillColumn<NearPair>) -> Result<()> {
        let (mut similar_pairs, counts) = run.step(web, HAMMING, |run| {
            let (expected_rows, guard) = (near.len() as u64, run.job.hamming.guard);
            // Given values are higher for more similar pages, while distances are lower.
            let page_pairs =
                near.rows().map_ok(|NearPair { a, b, distance }| GivenPair { a, b, value: u64::BITS - distance });
            given::similar_pairs(run.net, &web.crawl, guard, expected_rows, page_pairs)
        })?;
        similar_pairs.retain_mut(|pair| {
            pair.value = u64::BITS - pair.value;
            true
        })?;
        let (near, guarded) = (counts.similar, counts.guarded);
        self.counts.hamming = SimhashCounts { near, guarded, similar: near - guarded, ..self.counts.hamming };
        self.pairs.put(PairKind::Hamming, similar_pairs);
        Ok(())
    }

    /// Finds pairs of pages whose signatures of content and hyperlinks are within (C, D)
    /// (\[DDGMP03\] section 2).
    fn by_signatures(&mut self, run: &mut WorkerRun<'_, '_>, web: &WorkerWeb) -> Result<()> {
        let exact = self.pairs.column(PairKind::Exact);
        let (similar_pairs, parts): (_, Vec<(u64, Table)>);
        (similar_pairs, self.counts.signatures, parts) = run.recorded(web, SIGNATURES, |run| {
            let result = signatures::similar_pairs(run.net, &web.crawl, &web.links, exact, run.job)?;
            let parts = result.parts.into_iter().map(|part| (part.partition as u64, part.rows)).collect();
            Ok((result.pairs, result.counts, parts))
        })?;
        let part = |(partition, rows)| TablePart { name: signatures::TABLE, partition: partition as usize, rows };
        self.parts.extend(parts.into_iter().map(part));
        self.put(run, PairKind::Signatures, similar_pairs)
    }

    /// Finds pairs of pages whose sets of shingles resemble each other.
    fn by_minhash(&mut self, run: &mut WorkerRun<'_, '_>, web: &WorkerWeb) -> Result<()> {
        let exact = self.pairs.column(PairKind::Exact);
        let similar_pairs;
        (similar_pairs, self.counts.minhash) = run.recorded(web, MINHASH, |run| {
            minhash_pairs::similar_pairs(run.net, run.local_pages, &web.crawl, exact, &web.links, run.job)
        })?;
        run.local_pages.sets = None;
        self.put(run, PairKind::Minhash, similar_pairs)
    }

    /// Reads pairs that another program has found.
    fn by_given_pairs(&mut self, run: &mut WorkerRun<'_, '_>, web: &WorkerWeb) -> Result<()> {
        let similar_pairs: SpillColumn<SimilarPair>;
        (similar_pairs, self.counts.given) =
            run.recorded(web, GIVEN, |run| given_tables::similar_pairs(run.net, &web.crawl, run.job))?;
        self.pairs.put(PairKind::Given, similar_pairs.onto(&run.net.memory)?);
        Ok(())
    }
}
