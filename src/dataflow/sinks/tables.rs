//! Tables of a run: each worker converts the rows that it owns into parts, one for each partition.
//!
//! Rows are at the owner of their key's partition, ascending. So the rows of a partition are a
//! range of them, and the files of a table, read in order, are sorted by key. A partition without
//! rows has no part. A table without rows has an empty first part, so that readers find its
//! columns.

use std::ops::Range;
use std::sync::Arc;

use crate::clusters::servers;
use crate::pairs::kinds::PairKind;
use crate::reading::capture_rows::Numbers;
use crate::reading::captures::{Crawl, host};
use crate::sinks::avoid_table::Avoid;
use crate::sinks::by_first::PairRow;
use crate::sinks::collection_rows::{CollectionRow, MemberRow};
use crate::sinks::drafts::{Draft, PartRows, by_page, spilled_by_page};
use crate::sinks::found::ReplicaTables;
use crate::sinks::rejected;
use crate::sinks::url_rules;
use crate::sinks::verdict::PageVerdict;
use webtwin_base::error::Result;
use webtwin_base::ids::{DocId, Page};
use webtwin_core::clusters::link_summary::LinkSummary;
use webtwin_core::overlap::prune::PageSet;
use webtwin_pages::surt::surt_key_of;
use webtwin_storage::table::{Table, TableColumn};
use webtwin_storage::texts::StringTable;

/// Names of the tables that every run has, with or without rows.
pub const NAMES: [&str; 11] = [
    "pages",
    "links",
    "pairs",
    "clusters",
    "link_summary",
    "collections",
    "members",
    "avoid",
    "rejected",
    "server_pairs",
    url_rules::TABLE,
];

/// Row of `segments`: a page, and the number and place of a segment after the first that contains
/// its content.
type SegmentRow = (Page, u32, (u32, u64));

/// Rows of this worker that only tables need, ascending.
pub struct TableRows {
    /// Pages whose records are revisits.
    revisits: Vec<Page>,
    segments: Vec<SegmentRow>,
    /// Doc ids in the order of page numbers.
    doc_ids: Arc<Vec<DocId>>,
}

impl TableRows {
    /// Collects the rows from the results.
    ///
    /// # Errors
    /// Returns any error of the disk, on which captures may be.
    pub fn collect(tables: &ReplicaTables) -> Result<TableRows> {
        let (mut revisits, mut segments) = (Vec::new(), Vec::new());
        tables.crawl.pages.for_each(|row| {
            let rare_fields = row.rare_fields();
            revisits.extend(rare_fields.original.map(|_| row.page));
            segments.extend(rare_fields.segments.into_iter().zip(2..).map(|(place, number)| (row.page, number, place)));
        })?;
        let doc_ids = tables.crawl.directory.doc_ids()?;
        Ok(TableRows { revisits, segments, doc_ids })
    }
}

/// Returns the parts of tables that this worker owns, except `rejected` and tables that earlier
/// steps have built. `sources` are the names of the inputs.
///
/// # Errors
/// Returns any error of the disk, on which rows may be.
pub fn drafts<'r>(tables: &'r ReplicaTables, rows: &'r TableRows, sources: &'r [String]) -> Result<Vec<Draft<'r>>> {
    let crawl = &tables.crawl;
    let directory = &*crawl.directory;
    let TableRows { revisits, segments, doc_ids } = rows;
    let doc_ids = &doc_ids[..];
    // All parts are built when they are written, because tables take more memory than the rows that
    // they are built from.
    let links_of = |(partition, places): (usize, Range<usize>)| {
        let make = move |piece: Range<usize>| {
            Ok(links(doc_ids, &tables.links.read(places.start + piece.start..places.start + piece.end)?))
        };
        Draft { name: "links", partition, rows: PartRows::Unbuilt(places.len(), Box::new(make)) }
    };
    let mut drafts: Vec<Draft<'_>> = tables.links.by_partition().into_iter().map(links_of).collect();
    drafts.extend(spilled_by_page(
        "pairs",
        directory,
        &tables.pairs,
        |row| Page(row[0]),
        |rows| Ok(pair_table(doc_ids, rows)),
    )?);
    let cluster = |row: &PageVerdict| row.cluster.smallest();
    drafts.extend(spilled_by_page("clusters", directory, &tables.verdicts, cluster, |rows| {
        Ok(clusters(doc_ids, rows, &tables.placeholders))
    })?);
    let cluster = |row: &LinkSummary| row.src_cluster.smallest();
    let make = |rows: &[LinkSummary]| Ok(link_summary(doc_ids, rows));
    drafts.extend(spilled_by_page("link_summary", directory, &tables.link_summary, cluster, make)?);
    let cluster = |row: &CollectionRow| row.similar_cluster.smallest();
    drafts
        .extend(by_page("collections", directory, &tables.collections, cluster, |rows| Ok(collections(doc_ids, rows))));
    let cluster = |row: &MemberRow| row.similar_cluster.smallest();
    drafts.extend(spilled_by_page("members", directory, &tables.members, cluster, |rows| Ok(members(doc_ids, rows)))?);
    drafts.extend(by_page(
        "revisits",
        directory,
        revisits,
        |&page| page,
        |rows| revisit_table(crawl, doc_ids, rows, sources),
    ));
    drafts.extend(by_page(
        "segments",
        directory,
        segments,
        |row| row.0,
        |rows| Ok(segment_table(doc_ids, rows, sources)),
    ));
    let make = |rows: &[Avoid]| avoid(crawl, doc_ids, rows, &tables.avoid.keep_urls);
    drafts.extend(spilled_by_page("avoid", directory, &tables.avoid.rows, |row| row.page, make)?);
    drafts.extend(crawl.directory.parts(tables.links.worker()).map(|(partition, own_places)| {
        let make = move |piece: Range<usize>| {
            pages(crawl, own_places.start + piece.start as u32..own_places.start + piece.end as u32, sources)
        };
        Draft { name: "pages", partition, rows: PartRows::Unbuilt(own_places.len(), Box::new(make)) }
    }));
    Ok(drafts)
}

/// Returns the empty table of a name.
///
/// # Errors
/// Returns no error, because nothing is read.
pub fn empty(name: &str, crawl: &Crawl) -> Result<Table> {
    Ok(match name {
        "pages" => pages(crawl, 0..0, &[])?,
        "links" => links(&[], &[]),
        "pairs" => pair_table(&[], &[]),
        "clusters" => clusters(&[], &[], &PageSet::new(0, |_| false)),
        "link_summary" => link_summary(&[], &[]),
        "collections" => collections(&[], &[]),
        "members" => members(&[], &[]),
        "avoid" => avoid(crawl, &[], &[], &webtwin_spill::SpillRows::default())?,
        "server_pairs" => servers::empty(),
        url_rules::TABLE => url_rules::table(&[]),
        _ => rejected::table(&[], &[]),
    })
}

pub(crate) fn ids<R>(doc_ids: &[DocId], rows: &[R], page: impl Fn(&R) -> Page) -> TableColumn {
    TableColumn::Id(rows.iter().map(|row| doc_ids[page(row)]).collect())
}

pub(crate) fn u32s<R>(rows: &[R], value: impl Fn(&R) -> u32) -> TableColumn {
    TableColumn::U32(rows.iter().map(value).collect())
}

fn hashes<R>(rows: &[R], value: impl Fn(&R) -> u64) -> TableColumn {
    TableColumn::Id(rows.iter().map(value).collect())
}

fn counts<R>(rows: &[R], value: impl Fn(&R) -> u64) -> TableColumn {
    TableColumn::Count(rows.iter().map(value).collect())
}

fn texts<'r, R>(rows: &'r [R], value: impl Fn(&'r R) -> &'r str) -> TableColumn {
    TableColumn::Text(rows.iter().map(value).collect())
}

/// Returns the table `pages` of a range of page numbers within one partition.
fn pages(crawl: &Crawl, page_range: Range<u32>, sources: &[String]) -> Result<Table> {
    let mut rows: Vec<Numbers> = Vec::with_capacity(page_range.len());
    let [mut urls, mut surts, mut hosts, mut titles, mut mimes] = [const { StringTable::new() }; 5];
    let mut reader = crawl.reader();
    for page in page_range {
        let row = reader.page(Page(page))?;
        rows.push(row.numbers());
        urls.push(row.url());
        surts.push(&surt_key_of(row.url()));
        hosts.push(host(row.url()));
        titles.push(row.title());
        mimes.push(row.mime());
    }
    let rows = &rows[..];
    Ok(Table::new([
        ("doc_id", hashes(rows, |row| row.doc_id)),
        ("url", TableColumn::Text(urls)),
        ("surt", TableColumn::Text(surts)),
        ("host", TableColumn::Text(hosts)),
        ("title", TableColumn::Text(titles)),
        ("language", texts(rows, |row| row.language().code())),
        ("fetch_time", TableColumn::Time(rows.iter().map(|row| row.fetch_time).collect())),
        ("status", u32s(rows, |row| u32::from(row.status))),
        ("mime", TableColumn::Text(mimes)),
        ("body_bytes", counts(rows, |row| row.body_bytes)),
        ("body", hashes(rows, |row| row.body)),
        ("text_bytes", counts(rows, |row| row.text_bytes)),
        ("chunks", u32s(rows, |row| row.chunks)),
        ("exact", hashes(rows, |row| row.exact)),
        ("simhash", hashes(rows, |row| row.simhash().unwrap_or_default())),
        ("has_simhash", TableColumn::Bool(rows.iter().map(|row| row.simhash().is_some()).collect())),
        ("source", texts(rows, |row| &sources[row.source as usize])),
        ("offset", counts(rows, |row| row.offset)),
        ("length", counts(rows, |row| row.length)),
    ]))
}

/// Returns the table `revisits`. A run without pages from revisits does not have this table.
fn revisit_table(crawl: &Crawl, doc_ids: &[DocId], rows: &[Page], sources: &[String]) -> Result<Table> {
    let (mut reader, mut urls, mut originals) = (crawl.reader(), StringTable::new(), Vec::with_capacity(rows.len()));
    for &page in rows {
        let row = reader.page(page)?;
        urls.push(row.url());
        originals.extend(row.rare_fields().original);
    }
    let originals = &originals[..];
    Ok(Table::new([
        ("doc_id", ids(doc_ids, rows, |&page| page)),
        ("url", TableColumn::Text(urls)),
        ("original_url", texts(originals, |place| &place.url)),
        ("original_source", texts(originals, |place| &sources[place.source as usize])),
        ("original_offset", counts(originals, |place| place.offset)),
    ]))
}

/// Returns the table `segments`. A run without pages in segments does not have this table.
fn segment_table(doc_ids: &[DocId], rows: &[SegmentRow], sources: &[String]) -> Table {
    Table::new([
        ("doc_id", ids(doc_ids, rows, |row| row.0)),
        ("number", u32s(rows, |row| row.1)),
        ("source", texts(rows, |row| &sources[row.2.0 as usize])),
        ("offset", counts(rows, |row| row.2.1)),
    ])
}

fn links(doc_ids: &[DocId], rows: &[(Page, Page)]) -> Table {
    Table::new([("src", ids(doc_ids, rows, |row| row.0)), ("dst", ids(doc_ids, rows, |row| row.1))])
}

fn pair_table(doc_ids: &[DocId], rows: &[PairRow]) -> Table {
    Table::new([
        ("a", ids(doc_ids, rows, |row| Page(row[0]))),
        ("b", ids(doc_ids, rows, |row| Page(row[1]))),
        ("measure", texts(rows, |row| PairKind::ALL[row[2] as usize].as_str())),
        ("value", u32s(rows, |row| row[3])),
    ])
}

fn clusters(doc_ids: &[DocId], rows: &[PageVerdict], placeholders: &PageSet) -> Table {
    let kind = |row: &PageVerdict| if placeholders.contains(row.page) { "placeholder" } else { "page" };
    Table::new([
        ("cluster", ids(doc_ids, rows, |row| row.cluster.smallest())),
        ("doc_id", ids(doc_ids, rows, |row| row.page)),
        ("role", texts(rows, |row| row.role().as_str())),
        ("kind", texts(rows, |row| kind(row))),
    ])
}

pub(crate) fn link_summary(doc_ids: &[DocId], rows: &[LinkSummary]) -> Table {
    Table::new([
        ("src_cluster", ids(doc_ids, rows, |row| row.src_cluster.smallest())),
        ("dst_cluster", ids(doc_ids, rows, |row| row.dst_cluster.smallest())),
        ("a", u32s(rows, |row| row.a)),
        ("b", u32s(rows, |row| row.b)),
        ("s", u32s(rows, |row| row.s)),
        ("d", u32s(rows, |row| row.d)),
    ])
}

fn collections(doc_ids: &[DocId], rows: &[CollectionRow]) -> Table {
    Table::new([
        ("similar_cluster", ids(doc_ids, rows, |row| row.similar_cluster.smallest())),
        ("collection", ids(doc_ids, rows, |row| row.collection)),
        ("cardinality", u32s(rows, |row| row.cardinality)),
        ("size", u32s(rows, |row| row.size)),
        ("host", texts(rows, |row| host(&row.root_url))),
        ("root", ids(doc_ids, rows, |row| row.root)),
        ("root_url", texts(rows, |row| &row.root_url)),
        ("prefix", texts(rows, |row| &row.prefix)),
        ("keep", TableColumn::Bool(rows.iter().map(|row| row.kept).collect())),
        ("links_from_elsewhere", counts(rows, |row| row.links_from_elsewhere)),
        ("identical_to", ids(doc_ids, rows, |row| row.identical_to)),
    ])
}

pub(crate) fn members(doc_ids: &[DocId], rows: &[MemberRow]) -> Table {
    Table::new([
        ("similar_cluster", ids(doc_ids, rows, |row| row.similar_cluster.smallest())),
        ("collection", ids(doc_ids, rows, |row| row.collection)),
        ("cluster", ids(doc_ids, rows, |row| row.cluster.smallest())),
        ("doc_id", ids(doc_ids, rows, |row| row.page)),
        ("attached", TableColumn::Bool(rows.iter().map(|row| row.attached == 1).collect())),
    ])
}

fn avoid(
    crawl: &Crawl,
    doc_ids: &[DocId],
    rows: &[Avoid],
    keep_urls: &webtwin_spill::SpillRows<String>,
) -> Result<Table> {
    let (mut reader, mut url_reader) = (crawl.reader(), keep_urls.reader());
    let [mut urls, mut keep_urls, mut keep_is] = [const { StringTable::new() }; 3];
    for row in rows {
        let page = reader.page(row.page)?;
        urls.push(page.url());
        keep_is.push(row.keep_is(page.fetch_time));
        keep_urls.push(&url_reader.get(row.keep_url as usize)?);
    }
    Ok(Table::new([
        ("doc_id", ids(doc_ids, rows, |row| row.page)),
        ("url", TableColumn::Text(urls)),
        ("keep_doc_id", ids(doc_ids, rows, |row| row.keep)),
        ("keep_url", TableColumn::Text(keep_urls)),
        ("why", texts(rows, |row| row.reason().as_str())),
        ("lost_by", texts(rows, |row| row.lost_by().as_str())),
        ("resemblance", TableColumn::F64(rows.iter().map(|row| row.resemblance.share()).collect())),
        ("contained", TableColumn::F64(rows.iter().map(|row| row.resemblance.containment()).collect())),
        ("kind", texts(rows, |row| row.kind())),
        ("keep_is", TableColumn::Text(keep_is)),
    ]))
}
