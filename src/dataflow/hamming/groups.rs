//! Converts near fingerprints into groups of documents: one row for each document of a group,
//! regardless of the number of pairs.
//!
//! A group is a connected component of the pairs within k bits. It is named by its smallest
//! document that may name a group: a document of Q if there are queries, otherwise a document of F.
//!
//! # Deviations
//! Groups consist of fingerprints. A document with several rows in F may be in several groups,
//! which it does not connect. A single document is not a group.

use std::sync::Arc;

use super::rows::GroupMember;
use super::scan::{Queries, ScanMatch, with_documents};
use super::work::HammingWork;
use crate::shuffle::components::components;
use webtwin_base::error::Result;
use webtwin_base::ids::DocId;
use webtwin_core::clusters::labels::SetLabels;
use webtwin_core::hamming::rows::NearRuns;
use webtwin_engine::{HashOwners, Net, Owners, RoundRobin};

/// Finds the groups of documents of F and queries. Queries without near documents are in no group.
/// `near` are the near rows that this worker has found, piece by piece.
///
/// Takes the rounds of the union-find. Memory: 24 bytes for each document that is near a query.
pub(super) fn of_queries(
    net: &mut Net<'_>,
    work: &HammingWork,
    queries: &Queries,
    near: &[ScanMatch],
) -> Result<Vec<GroupMember>> {
    let queries = &queries.postings;
    let same_row = |x: &ScanMatch, y: &ScanMatch| (x.chunk, x.row) == (y.chunk, y.row);
    let edges = || near.chunk_by(same_row).flat_map(|row| row.windows(2).map(|two| Ok((two[0].query, two[1].query))));
    let labels: Arc<SetLabels<u32>> = components(net, "groups", queries.fingerprints().len(), edges)?;
    // Components are named by their smallest fingerprint, but users know documents.
    let names = net.once_per_process(|| {
        let mut names = vec![DocId::MAX; labels.members()];
        for query in 0..labels.members() {
            let name = &mut names[labels.label(query as u32) as usize];
            *name = (*name).min(queries.doc_ids(query)[0]);
        }
        names
    })?;
    let name = |query: u32| names[labels.label(query) as usize];
    let mut members = Vec::new();
    with_documents(net, work, near, |row_matches, documents| {
        let group = name(row_matches[0].query);
        members.extend(documents.iter().map(|&document| GroupMember { group, document, is_query: 0 }));
    })?;
    let mut query_numbers: Vec<u32> = near.iter().map(|near| near.query).collect();
    query_numbers.sort_unstable();
    query_numbers.dedup();
    for query in query_numbers {
        let group = name(query);
        let documents = queries.doc_ids(query as usize).iter();
        members.extend(documents.map(|&document| GroupMember { group, document, is_query: 1 }));
    }
    Ok(members)
}

/// Finds the groups of documents of F. A document without near documents is in no group. `near` are
/// the near runs that this worker has found.
///
/// Takes the rounds of the union-find, and two exchanges. Memory: 4 bytes for each row of F in each
/// process, and 24 for each document that is near another one.
pub(super) fn of_set(net: &mut Net<'_>, work: &HammingWork, near: &[NearRuns]) -> Result<Vec<GroupMember>> {
    let rows = work.set.manifest.count as usize;
    let edges = || near.iter().map(|near| Ok((near.x.first, near.y.first)));
    let labels: Arc<SetLabels<u32>> = components(net, "groups", rows, edges)?;
    let assignment = RoundRobin::new(net.peers());
    let runs = near.iter().flat_map(|near| [near.x, near.y]).map(|run| [run.first, run.copies]);
    let chunk = |run: &[u32; 2]| work.set.chunk_at(u64::from(run[0]));
    let mut runs = net.exchange("runs in groups", runs, |run| assignment.owner(chunk(run)))?;
    runs.sort_unstable();
    runs.dedup();
    let mut label_rows: Vec<[u64; 2]> = Vec::new();
    for runs in runs.chunk_by(|x, y| chunk(x) == chunk(y)) {
        net.check()?;
        let (first, last) = (u64::from(runs[0][0]), runs[runs.len() - 1]);
        let documents = work.set.documents_at(first..u64::from(last[0] + last[1]))?;
        for &[place, copies] in runs {
            let run_documents = &documents[(u64::from(place) - first) as usize..][..copies as usize];
            label_rows.extend(run_documents.iter().map(|&document| [u64::from(labels.label(place)), document]));
        }
    }
    let owners = HashOwners::new(net);
    let mut received_labels = net.exchange("members by label", label_rows, |row| owners.owner(row[0]))?;
    received_labels.sort_unstable();
    received_labels.dedup();
    let groups = received_labels.chunk_by(|x, y| x[0] == y[0]).filter(|group| group.len() > 1);
    let member = |group: DocId, document| GroupMember { group, document, is_query: 0 };
    Ok(groups.flat_map(|group| group.iter().map(|row| member(group[0][1], row[1]))).collect())
}
