//! Converts pairs of near fingerprints of F into pairs of documents. Near runs are sent to the
//! worker that reads the documents of the first run, and from there to the worker that reads the
//! documents of the second run.
//!
//! # Memory
//! Takes the memory of a [`RowSorter`] for near runs, and of another one for documents with the
//! runs that they are near; and the doc ids of a chunk.

use std::ops::Range;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};
use timely::ExchangeData;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Exchange;
use timely::dataflow::operators::generic::Operator;

use super::merge::BATCH;
use super::pace::Pace;
use super::rows::NearPair;
use super::tally::ProcessTally;
use super::work::HammingWork;
use webtwin_base::error::Result;
use webtwin_base::ids::DocId;
use webtwin_core::hamming::rows::{FingerprintRun, NearRuns};
use webtwin_engine::{Failures, RowStream};
use webtwin_spill::{MemoryPool, RowSorter, SortedRows};

/// Row with a run whose documents are needed. Ordered by the run.
trait RunRow: ExchangeData + Pod + Ord {
    fn run(&self) -> FingerprintRun;
}

impl RunRow for NearRuns {
    fn run(&self) -> FingerprintRun {
        self.x
    }
}

/// Document, and the run whose documents are near it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
struct NearDocument {
    other: FingerprintRun,
    document: DocId,
    distance: u32,
    /// 1 if the run has the document's fingerprint, otherwise 0.
    is_one: u32,
}

impl RunRow for NearDocument {
    fn run(&self) -> FingerprintRun {
        self.other
    }
}

/// Shared state of the operators that read documents.
pub(super) struct DocumentReader<'a> {
    pub work: &'a Arc<HammingWork>,
    pub tally: &'a Arc<ProcessTally>,
    /// Memory pool of a sorter.
    pub sorter: &'a MemoryPool,
    pub failures: &'a Failures,
}

impl DocumentReader<'_> {
    /// Sends the pairs of documents that near runs stand for to the workers that `to` returns.
    /// Sends none if there are more pairs than the job allows.
    pub(super) fn near_documents<'s>(
        &self,
        near: RowStream<'s, NearRuns>,
        to: impl Fn(&NearPair) -> u64 + 'static,
    ) -> RowStream<'s, NearPair> {
        let (work, tally) = (Arc::clone(self.work), Arc::clone(self.tally));
        let reader = move |run: FingerprintRun| work.set.chunk_at(u64::from(run.first)) as u64;
        let reader_of_other = reader.clone();
        let half = self.with_documents(
            near.exchange(move |near| reader(near.x)),
            "documents of the one",
            move |near| tally.add_runs(near),
            |near, document| {
                let NearRuns { y, distance, .. } = *near;
                Some(NearDocument { document, is_one: near.is_one().into(), other: y, distance })
            },
            move |row| reader_of_other(row.other),
        );
        self.with_documents(
            half,
            "documents of the other",
            |_| true,
            |row, other| {
                let (a, b) = (row.document.min(other), row.document.max(other));
                // A run paired with itself yields each pair in both orders. Of two different runs,
                // a document may be in both, because it may have several rows of F.
                let is_pair = if row.is_one == 1 { row.document < other } else { a != b };
                is_pair.then_some(NearPair { a, b, distance: row.distance })
            },
            to,
        )
    }

    /// Sends the rows that `expand` returns for each row and each document of its run to the
    /// workers that `to` returns. Starts after all rows have arrived, if `is_allowed` has returned
    /// true for all of them.
    fn with_documents<'s, R: RunRow, O: ExchangeData>(
        &self,
        rows: RowStream<'s, R>,
        name: &str,
        mut is_allowed: impl FnMut(&[R]) -> bool + 'static,
        expand: impl Fn(&R, DocId) -> Option<O> + 'static,
        to: impl Fn(&O) -> u64 + 'static,
    ) -> RowStream<'s, O> {
        let (scope, work, failures) = (rows.scope(), Arc::clone(self.work), self.failures.clone());
        // The sorter is dropped as soon as the pairs are too many: rows are then only counted.
        let mut sorter = Some(RowSorter::new(self.sorter));
        let pace = Pace::default();
        let mut own_pace = pace.clone();
        let stream = rows.unary_frontier(Pipeline, name, move |capability, info| {
            let activator = scope.activator_for(info.address);
            let mut held_capability = Some(capability);
            let mut source: Option<WithDocuments<R>> = None;
            move |(arriving, rows_to_come), output| {
                arriving.for_each(|_, rows| {
                    if !is_allowed(rows) {
                        sorter = None;
                    }
                    let added = sorter.as_mut().map_or(Ok(()), |sorter| sorter.extend(rows));
                    added.unwrap_or_else(|error| failures.notify(error));
                });
                // Documents are read only after all rows have arrived and are sorted, so that F is
                // read in order.
                let Some(capability) = held_capability.as_mut().filter(|_| rows_to_come.is_empty()) else { return };
                match sorter.take().map(RowSorter::finish).transpose() {
                    Ok(Some(rows)) => source = Some(WithDocuments::new(rows)),
                    Ok(None) => {}
                    Err(error) => failures.notify(error),
                }
                let Some(reading) = &mut source else {
                    held_capability = None;
                    return;
                };
                if !own_pace.begin_batch(capability) {
                    activator.activate_after(Pace::PATIENCE);
                    return;
                }
                let mut session = output.session(&*capability);
                let mut sent_documents = 0;
                let is_end = loop {
                    match reading.next(&work) {
                        Ok(Some((row, documents))) => {
                            sent_documents += documents.len();
                            session.give_iterator(documents.iter().filter_map(|&document| expand(&row, document)));
                        }
                        Ok(None) => break true,
                        Err(error) => {
                            failures.notify(error);
                            break true;
                        }
                    }
                    if sent_documents >= BATCH {
                        break false;
                    }
                };
                drop(session);
                if is_end {
                    (source, held_capability) = (None, None);
                } else {
                    activator.activate();
                }
            }
        });
        pace.send(stream, to)
    }
}

/// Rows in the order of their runs, with the documents of these runs.
struct WithDocuments<R> {
    rows: SortedRows<R>,
    batch: Vec<R>,
    at: usize,
    /// Documents from place `first` on: the part of a chunk that the rest of the batch needs.
    documents: Vec<DocId>,
    first: u64,
}

impl<R: RunRow> WithDocuments<R> {
    fn new(rows: SortedRows<R>) -> WithDocuments<R> {
        WithDocuments { rows, batch: Vec::new(), at: 0, documents: Vec::new(), first: 0 }
    }

    fn next(&mut self, work: &HammingWork) -> Result<Option<(R, &[DocId])>> {
        if self.at == self.batch.len() {
            self.rows.take(BATCH, &mut self.batch)?;
            self.at = 0;
        }
        let Some(&row) = self.batch.get(self.at) else { return Ok(None) };
        let Range { start, end } = places(row.run());
        if self.documents.is_empty() || end > self.first + self.documents.len() as u64 {
            let chunk = work.set.chunk_at(start);
            let batch_places = self.batch[self.at..].iter().map(|row| places(row.run()));
            let chunk_places = batch_places.take_while(|places| work.set.chunk_at(places.start) == chunk);
            let end = chunk_places.map(|places| places.end).max().unwrap_or(end);
            (self.first, self.documents) = (start, work.set.documents_at(start..end)?);
        }
        self.at += 1;
        Ok(Some((row, &self.documents[(start - self.first) as usize..(end - self.first) as usize])))
    }
}

/// Returns the places of a run's rows in F.
fn places(run: FingerprintRun) -> Range<u64> {
    u64::from(run.first)..u64::from(run.first + run.copies)
}
