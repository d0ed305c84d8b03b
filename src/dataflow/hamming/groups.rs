//! From near fingerprints to groups of documents: one row a document, however many pairs there are.
//!
//! A group is what pairs within k bits connect. It is named by the smallest document in it that can name one: of Q where
//! there are queries, of F otherwise.

use std::sync::Arc;

use super::scan::{Near, with_documents};
use super::{Tables, Work, all_pairs, parts};
use crate::dataflow::components::components;
use crate::engine::Net;
use crate::error::Result;
use crate::hamming::postings::Postings;
use crate::ids::DocId;
use crate::job::Job;
use crate::storage::table::{Column, Table};

/// A document in its group, as it travels: group, document, 1 for a query.
type Member = [u64; 3];

/// Groups of documents of F and queries; queries near nothing are in none.
///
/// Two exchanges and the rounds of the union-find. Memory: 24 bytes a document that is near a query.
pub(super) fn of_queries(
    net: &mut Net<'_>,
    job: &Job,
    work: &Work,
    queries: &Arc<Postings>,
    near: Vec<Near>,
) -> Result<Tables> {
    let same_row = |x: &Near, y: &Near| (x.chunk, x.row) == (y.chunk, y.row);
    let edges = near.chunk_by(same_row).flat_map(|row| row.windows(2).map(|two| (two[0].query, two[1].query)));
    let labels = components(net, "groups", queries.fingerprints().len(), edges)?;
    // Components are named by their smallest fingerprint; people know documents.
    let names = net.once(|| {
        let mut names = vec![DocId::MAX; labels.len()];
        for (query, &label) in labels.iter().enumerate() {
            let name = &mut names[label as usize];
            *name = (*name).min(queries.doc_ids(query)[0]);
        }
        names
    })?;
    let name = |query: u32| names[labels[query as usize] as usize];
    let mut rows: Vec<Member> = Vec::new();
    let read = with_documents(net, work, &near, |of_row, documents| {
        rows.extend(documents.iter().map(|&document| [name(of_row[0].query), document, 0]));
    });
    read?;
    let mut met: Vec<u32> = near.iter().map(|near| near.query).collect();
    met.sort_unstable();
    met.dedup();
    for query in met {
        rows.extend(queries.doc_ids(query as usize).iter().map(|&document| [name(query), document, 1]));
    }
    drop(near);
    write(net, job, rows)
}

/// Groups of documents of F; a document near no other is in none.
pub(super) fn of_set(net: &mut Net<'_>, job: &Job, found: all_pairs::Found) -> Result<Tables> {
    let rows = found.members(net)?;
    write(net, job, rows)
}

/// Members in order and each once, by group.
fn write(net: &mut Net<'_>, job: &Job, rows: Vec<Member>) -> Result<Tables> {
    let (rows, parts) = parts(net, job, "groups", rows, 3, table)?;
    let groups = rows.chunk_by(|x, y| x[0] == y[0]).count() as u64;
    Ok(Tables { parts, groups, pairs_by_distance: None })
}

fn table(rows: &[Member]) -> Table {
    Table::new([
        ("group", Column::U64(rows.iter().map(|row| row[0]).collect())),
        ("doc_id", Column::U64(rows.iter().map(|row| row[1]).collect())),
        ("query", Column::Bool(rows.iter().map(|row| row[2] == 1).collect())),
    ])
}
