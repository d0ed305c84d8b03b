//! From near fingerprints to pairs of documents: the reduce stage, which puts them in order and leaves each once.

use std::collections::BTreeMap;

use super::scan::{Near, with_documents};
use super::{Tables, Work, all_pairs, parts};
use crate::engine::Net;
use crate::error::Result;
use crate::hamming::postings::Postings;
use crate::job::Job;
use crate::storage::table::{Column, Table};

/// A pair of documents as it travels: the one, the other, their distance.
type Pair = [u64; 3];

/// Pairs of a document of F (`a`) and one of Q (`b`). A document that stands in both is not paired with itself, where
/// documents have ids of their own.
///
/// One exchange. Memory: 24 bytes a pair.
///
/// # Errors
/// [`crate::error::Error::Input`] when doc ids are damaged.
pub(super) fn with_queries(
    net: &mut Net<'_>,
    job: &Job,
    work: &Work,
    queries: &Postings,
    near: Vec<Near>,
) -> Result<Tables> {
    let same = work.set.doc_ids && work.queries.as_ref().is_some_and(|queries| queries.doc_ids);
    let mut rows: Vec<Pair> = Vec::new();
    let expanded = with_documents(net, work, &near, |of_row, documents| {
        for near in of_row {
            let others = queries.doc_ids(near.query as usize);
            let all = documents.iter().flat_map(|&a| others.iter().map(move |&b| [a, b, u64::from(near.distance)]));
            rows.extend(all.filter(|pair| !same || pair[0] != pair[1]));
        }
    });
    expanded?;
    drop(near);
    reduce(net, job, rows)
}

/// Pairs of two documents of F, `a < b`. A document that stands on several rows of F is not paired with itself.
pub(super) fn of_set(net: &mut Net<'_>, job: &Job, found: all_pairs::Found) -> Result<Tables> {
    let mut rows = found.pairs(net)?;
    rows.retain(|[a, b, _]| a != b);
    rows.iter_mut().for_each(|[a, b, _]| (*a, *b) = ((*a).min(*b), (*a).max(*b)));
    reduce(net, job, rows)
}

/// Pairs in order and each once, at its smallest distance.
fn reduce(net: &mut Net<'_>, job: &Job, rows: Vec<Pair>) -> Result<Tables> {
    let (rows, parts) = parts(net, job, "pairs", rows, 2, table)?;
    let mut by_distance = BTreeMap::new();
    rows.iter().for_each(|row| *by_distance.entry(row[2] as u32).or_default() += 1);
    Ok(Tables { parts, groups: 0, pairs_by_distance: Some(by_distance) })
}

fn table(rows: &[Pair]) -> Table {
    let column = |at: usize| rows.iter().map(move |row| row[at]);
    Table::new([
        ("a", Column::U64(column(0).collect())),
        ("b", Column::U64(column(1).collect())),
        ("measure", Column::Text(rows.iter().map(|_| "hamming".to_string()).collect())),
        ("value", Column::U32(column(2).map(|value| value as u32).collect())),
    ])
}
