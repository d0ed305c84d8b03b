//! The tables of a run: each worker turns the rows it owns into one file a partition.
//!
//! Rows lie with the owner of their key's partition, ascending, so a partition's rows are a run of them and the files of a
//! table, read in order, are sorted by key. A partition without rows has no file; a table without rows has an empty first
//! part, so that readers find its columns.

use crate::dataflow::find::ReplicaTables;
use crate::dataflow::reading::captures::{Crawl, host};
use crate::dataflow::reading::worker_pages::{Capture, Place, Rejection};
use crate::ids::Page;
use crate::pages::surt::surt_key_of;
use crate::storage::table::{Column, Table};

/// A part of a table: its name, the partition, the rows.
pub type Part = (&'static str, usize, Table);

/// Names of the tables beside `pages` that every run has, with or without rows.
pub const NAMES: [&str; 9] =
    ["links", "pairs", "clusters", "link_summary", "collections", "members", "avoid", "rejected", "server_pairs"];

/// The parts of `pages` that this worker owns. `sources` are the names of the inputs.
pub fn page_parts(crawl: &Crawl, sources: &[String]) -> Vec<Part> {
    let mut parts = Vec::new();
    split("pages", crawl, &crawl.pages, |row| row.0, |rows| pages(crawl, rows, sources), &mut parts);
    parts
}

/// All parts that this worker owns, but for `pages` and `rejected`. `sources` are the names of the inputs.
pub fn parts(found: &ReplicaTables, sources: &[String]) -> Vec<Part> {
    let crawl = &found.crawl;
    let mut parts = Vec::new();
    split("links", crawl, &found.links, |row| row.0, |rows| links(crawl, rows), &mut parts);
    let mut pairs: Vec<(Page, Page, &str, u32)> = Vec::new();
    pairs.extend(found.exact_pairs.iter().map(|pair| (pair.a, pair.b, "exact", pair.value)));
    pairs.extend(found.similar_pairs.iter().map(|pair| (pair.a, pair.b, "overlap", pair.value)));
    pairs.extend(found.hamming_pairs.iter().map(|pair| (pair.a, pair.b, "hamming", pair.value)));
    pairs.extend(found.signature_pairs.iter().map(|pair| (pair.a, pair.b, "signatures", pair.value)));
    pairs.extend(found.minhash_pairs.iter().map(|pair| (pair.a, pair.b, "minhash", pair.value)));
    pairs.extend(found.context_pairs.iter().map(|pair| (pair.a, pair.b, "context", pair.value)));
    pairs.sort_unstable();
    split("pairs", crawl, &pairs, |row| row.0, |rows| pair_table(crawl, rows), &mut parts);
    split("clusters", crawl, &found.verdicts, |row| row.cluster.smallest(), |rows| clusters(crawl, rows), &mut parts);
    split(
        "link_summary",
        crawl,
        &found.link_summary,
        |row| row.src_cluster.smallest(),
        |rows| link_summary(crawl, rows),
        &mut parts,
    );
    split(
        "collections",
        crawl,
        &found.collections,
        |row| row.similar_cluster.smallest(),
        |rows| collections(crawl, rows),
        &mut parts,
    );
    split(
        "members",
        crawl,
        &found.members,
        |row| row.similar_cluster.smallest(),
        |rows| members(crawl, rows),
        &mut parts,
    );
    let revisits: Vec<Revisit<'_>> = found.crawl.pages.iter().filter_map(Revisit::of).collect();
    split("revisits", crawl, &revisits, |row| row.page, |rows| revisit_table(crawl, rows, sources), &mut parts);
    let segments: Vec<(Page, u32, (u32, u64))> = found.crawl.pages.iter().flat_map(segments_of).collect();
    split("segments", crawl, &segments, |row| row.0, |rows| segment_table(crawl, rows, sources), &mut parts);
    split("avoid", crawl, &found.avoid, |row| row.page, |rows| avoid(crawl, rows), &mut parts);
    parts
}

/// Parts of `rejected`, of rows that are ascending.
pub fn rejected_parts(rejected: &[Rejection], sources: &[String], partitions: usize) -> Vec<Part> {
    let partition = |row: &Rejection| rejected_partition(row.source, sources.len(), partitions);
    let of_partition = rejected.chunk_by(|x, y| partition(x) == partition(y));
    of_partition.map(|rows| ("rejected", partition(&rows[0]), rejected_table(rows, sources))).collect()
}

/// Partition of a rejected record: a range of the inputs, which are in ascending order.
pub fn rejected_partition(source: u32, sources: usize, partitions: usize) -> usize {
    source as usize * partitions / sources.max(1)
}

/// The empty table of a name.
pub fn empty(name: &str, crawl: &Crawl) -> Table {
    match name {
        "pages" => pages(crawl, &[], &[]),
        "links" => links(crawl, &[]),
        "pairs" => pair_table(crawl, &[]),
        "clusters" => clusters(crawl, &[]),
        "link_summary" => link_summary(crawl, &[]),
        "collections" => collections(crawl, &[]),
        "members" => members(crawl, &[]),
        "avoid" => avoid(crawl, &[]),
        "server_pairs" => crate::dataflow::clusters::servers::empty(),
        _ => rejected_table(&[], &[]),
    }
}

pub(crate) fn split<R>(
    name: &'static str,
    crawl: &Crawl,
    rows: &[R],
    key: impl Fn(&R) -> Page,
    table: impl Fn(&[R]) -> Table,
    parts: &mut Vec<Part>,
) {
    let partition = |row: &R| crawl.directory.partition(key(row));
    for rows in rows.chunk_by(|x, y| partition(x) == partition(y)) {
        parts.push((name, partition(&rows[0]), table(rows)));
    }
}

fn ids<R>(crawl: &Crawl, rows: &[R], page: impl Fn(&R) -> Page) -> Column {
    Column::Id(rows.iter().map(|row| crawl.directory.doc_ids[page(row)]).collect())
}

fn u32s<R>(rows: &[R], value: impl Fn(&R) -> u32) -> Column {
    Column::U32(rows.iter().map(value).collect())
}

fn hashes<R>(rows: &[R], value: impl Fn(&R) -> u64) -> Column {
    Column::Id(rows.iter().map(value).collect())
}

fn counts<R>(rows: &[R], value: impl Fn(&R) -> u64) -> Column {
    Column::Count(rows.iter().map(value).collect())
}

fn texts<R>(rows: &[R], value: impl Fn(&R) -> String) -> Column {
    Column::Text(rows.iter().map(value).collect())
}

fn pages(crawl: &Crawl, rows: &[(Page, Capture)], sources: &[String]) -> Table {
    Table::new([
        ("doc_id", ids(crawl, rows, |row| row.0)),
        ("url", texts(rows, |(_, page)| page.url.clone())),
        ("surt", texts(rows, |(_, page)| surt_key_of(&page.url))),
        ("host", texts(rows, |(_, page)| host(&page.url).to_string())),
        ("title", texts(rows, |(_, page)| page.title.to_string())),
        ("fetch_time", Column::Time(rows.iter().map(|(_, page)| page.fetch_time).collect())),
        ("status", u32s(rows, |(_, page)| u32::from(page.status))),
        ("mime", texts(rows, |(_, page)| page.mime.to_string())),
        ("body_bytes", counts(rows, |(_, page)| page.body_bytes)),
        ("body", hashes(rows, |(_, page)| page.body)),
        ("text_bytes", counts(rows, |(_, page)| page.text_bytes)),
        ("chunks", u32s(rows, |(_, page)| page.chunks)),
        ("exact", hashes(rows, |(_, page)| page.exact)),
        ("simhash", hashes(rows, |(_, page)| page.simhash.unwrap_or_default())),
        ("has_simhash", Column::Bool(rows.iter().map(|(_, page)| page.simhash.is_some()).collect())),
        ("source", texts(rows, |(_, page)| sources[page.source as usize].clone())),
        ("offset", counts(rows, |(_, page)| page.offset)),
        ("length", counts(rows, |(_, page)| page.length)),
    ])
}

/// A page whose record is a revisit.
struct Revisit<'c> {
    page: Page,
    url: &'c str,
    original: &'c Place,
}

impl<'c> Revisit<'c> {
    fn of((page, capture): &'c (Page, Capture)) -> Option<Revisit<'c>> {
        Some(Revisit { page: *page, url: &capture.url, original: capture.original.as_deref()? })
    }
}

/// A run without such pages does not have this table.
fn revisit_table(crawl: &Crawl, rows: &[Revisit<'_>], sources: &[String]) -> Table {
    Table::new([
        ("doc_id", ids(crawl, rows, |row| row.page)),
        ("url", texts(rows, |row| row.url.to_string())),
        ("original_url", texts(rows, |row| row.original.url.clone())),
        ("original_source", texts(rows, |row| sources[row.original.source as usize].clone())),
        ("original_offset", counts(rows, |row| row.original.offset)),
    ])
}

/// The segments after the first that a page's content is in: the page, their numbers and places.
fn segments_of((page, capture): &(Page, Capture)) -> impl Iterator<Item = (Page, u32, (u32, u64))> + '_ {
    capture.segments.iter().zip(2..).map(|(&place, number)| (*page, number, place))
}

/// A run without pages in segments does not have this table.
fn segment_table(crawl: &Crawl, rows: &[(Page, u32, (u32, u64))], sources: &[String]) -> Table {
    Table::new([
        ("doc_id", ids(crawl, rows, |row| row.0)),
        ("number", u32s(rows, |row| row.1)),
        ("source", texts(rows, |row| sources[row.2.0 as usize].clone())),
        ("offset", counts(rows, |row| row.2.1)),
    ])
}

fn links(crawl: &Crawl, rows: &[(Page, Page)]) -> Table {
    Table::new([("src", ids(crawl, rows, |row| row.0)), ("dst", ids(crawl, rows, |row| row.1))])
}

fn pair_table(crawl: &Crawl, rows: &[(Page, Page, &str, u32)]) -> Table {
    Table::new([
        ("a", ids(crawl, rows, |row| row.0)),
        ("b", ids(crawl, rows, |row| row.1)),
        ("measure", texts(rows, |row| row.2.to_string())),
        ("value", u32s(rows, |row| row.3)),
    ])
}

fn clusters(crawl: &Crawl, rows: &[crate::dataflow::sinks::avoid::Verdict]) -> Table {
    Table::new([
        ("cluster", ids(crawl, rows, |row| row.cluster.smallest())),
        ("doc_id", ids(crawl, rows, |row| row.page)),
        ("role", texts(rows, |row| row.role.as_str().to_string())),
    ])
}

fn link_summary(crawl: &Crawl, rows: &[crate::clusters::link_summary::LinkSummary]) -> Table {
    Table::new([
        ("src_cluster", ids(crawl, rows, |row| row.src_cluster.smallest())),
        ("dst_cluster", ids(crawl, rows, |row| row.dst_cluster.smallest())),
        ("a", u32s(rows, |row| row.a)),
        ("b", u32s(rows, |row| row.b)),
        ("s", u32s(rows, |row| row.s)),
        ("d", u32s(rows, |row| row.d)),
    ])
}

fn collections(crawl: &Crawl, rows: &[crate::dataflow::sinks::report::CollectionRow]) -> Table {
    Table::new([
        ("similar_cluster", ids(crawl, rows, |row| row.similar_cluster.smallest())),
        ("collection", ids(crawl, rows, |row| row.collection)),
        ("cardinality", u32s(rows, |row| row.cardinality)),
        ("size", u32s(rows, |row| row.size)),
        ("host", texts(rows, |row| host(&row.root_url).to_string())),
        ("root", ids(crawl, rows, |row| row.root)),
        ("root_url", texts(rows, |row| row.root_url.clone())),
        ("prefix", texts(rows, |row| row.prefix.clone())),
        ("keep", Column::Bool(rows.iter().map(|row| row.kept).collect())),
        ("links_from_elsewhere", counts(rows, |row| row.links_from_elsewhere)),
        ("identical_to", ids(crawl, rows, |row| row.identical_to)),
    ])
}

fn members(crawl: &Crawl, rows: &[crate::dataflow::sinks::report::MemberRow]) -> Table {
    Table::new([
        ("similar_cluster", ids(crawl, rows, |row| row.similar_cluster.smallest())),
        ("collection", ids(crawl, rows, |row| row.collection)),
        ("cluster", ids(crawl, rows, |row| row.cluster.smallest())),
        ("doc_id", ids(crawl, rows, |row| row.page)),
        ("attached", Column::Bool(rows.iter().map(|row| row.attached == 1).collect())),
    ])
}

fn avoid(crawl: &Crawl, rows: &[crate::dataflow::sinks::avoid::Avoid]) -> Table {
    Table::new([
        ("doc_id", ids(crawl, rows, |row| row.page)),
        ("url", texts(rows, |row| crawl.page(row.page).url.clone())),
        ("keep_doc_id", hashes(rows, |row| row.keep_doc_id)),
        ("keep_url", texts(rows, |row| row.keep_url.clone())),
        ("why", texts(rows, |row| row.why.as_str().to_string())),
        ("lost_by", texts(rows, |row| row.lost_by.as_str().to_string())),
        ("resemblance", Column::F64(rows.iter().map(|row| row.resemblance.share()).collect())),
        ("kind", texts(rows, |row| row.kind().to_string())),
        ("keep_is", texts(rows, |row| row.keep_is(crawl.page(row.page).fetch_time).to_string())),
    ])
}

pub(crate) fn rejected_table(rows: &[Rejection], sources: &[String]) -> Table {
    Table::new([
        ("source", texts(rows, |row| sources[row.source as usize].clone())),
        ("offset", counts(rows, |row| row.offset)),
        ("reason", texts(rows, |row| row.reason.as_str().to_string())),
        ("detail", texts(rows, |row| row.detail.clone())),
    ])
}
