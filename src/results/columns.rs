//! Meaning of the ids in tables: pages, by their own id or as the smallest of a set, or hosts.

use std::collections::BTreeMap;

use super::FinishedRun;
use webtwin_base::error::{Error, Result};
use webtwin_storage::table::{Table, TableColumn, decode_columns};

/// Tables with ids of pages, or of sets of pages by their smallest page, and the columns with such
/// ids. Both jobs with a table `pairs` have the same columns in it.
pub const PAGE_TABLES: [(&str, &[&str]); 12] = [
    ("pages", &["doc_id"]),
    ("links", &["src", "dst"]),
    ("pairs", &["a", "b"]),
    ("clusters", &["cluster", "doc_id"]),
    ("link_summary", &["src_cluster", "dst_cluster"]),
    ("collections", &["similar_cluster", "collection", "root"]),
    ("members", &["similar_cluster", "collection", "cluster", "doc_id"]),
    ("avoid", &["doc_id", "keep_doc_id"]),
    ("revisits", &["doc_id"]),
    ("signatures", &["doc_id"]),
    ("fprint_docid", &["doc_id"]),
    ("duplicates", &["doc_id", "cluster", "multiset"]),
];

/// Tables with ids of hosts, and the columns with such ids.
const HOST_TABLES: [(&str, &[&str]); 2] = [("hosts", &["host_id"]), ("server_pairs", &["a", "b"])];

/// Kind of object that an id identifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedId {
    /// A page, or a set of pages by its smallest one: `pages.doc_id`.
    Page,
    /// A host: `hosts.host_id`.
    Host,
}

/// Returns the kind of object that the ids of a column identify, or `None` for columns of other
/// values and for hashes of content.
///
/// # Examples
/// ```
/// use webtwin_results::columns::{NamedId, named};
///
/// assert_eq!(named("pairs", "a"), Some(NamedId::Page));
/// assert_eq!(named("server_pairs", "a"), Some(NamedId::Host));
/// assert_eq!(named("pairs", "value"), None);
/// ```
pub fn named(table: &str, column: &str) -> Option<NamedId> {
    let is_in = |tables: &[(&str, &[&str])]| tables.iter().any(|of| of.0 == table && of.1.contains(&column));
    match is_in(&PAGE_TABLES) {
        true => Some(NamedId::Page),
        false => is_in(&HOST_TABLES).then_some(NamedId::Host),
    }
}

/// Names of the pages and hosts of a run.
///
/// # Cost
/// Holds all URLs in memory.
pub struct RunNames {
    pages: Table,
    hosts: BTreeMap<u64, String>,
}

impl RunNames {
    /// Reads the names from the tables `pages`, or `duplicates` of a study, and `hosts`.
    ///
    /// # Errors
    /// Returns [`Error::Usage`] if the result has no such table, and any error of
    /// [`FinishedRun::table`].
    pub fn from_run(run: &FinishedRun) -> Result<RunNames> {
        let table = ["pages", "duplicates"].into_iter().find(|table| run.manifest.table(table).next().is_some());
        let table = table.ok_or_else(|| {
            Error::Usage(format!(
                "{}: has no table of pages, so its ids have no URLs; name a result of `webtwin run`",
                run.folder
            ))
        })?;
        let pages = columns_of(run, table, &["doc_id", "url"])?;
        let mut hosts = BTreeMap::new();
        let host_rows = columns_of(run, "hosts", &["host_id", "host"])?;
        if !host_rows.columns.is_empty() {
            hosts.extend(
                host_rows.u64("host_id")?.iter().copied().zip(host_rows.text("host")?.iter().map(String::from)),
            );
        }
        Ok(RunNames { pages, hosts })
    }

    /// Converts a column of ids to names. Ids without a name are formatted as numbers.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if a table lacks a column.
    pub fn instead_of(&self, ids: &[u64], id_kind: NamedId) -> Result<TableColumn> {
        let (doc_ids, urls) = (self.pages.u64("doc_id")?, self.pages.text("url")?);
        let name = |id: &u64| match id_kind {
            NamedId::Page => doc_ids.binary_search(id).ok().map(|row| urls[row].to_string()),
            NamedId::Host => self.hosts.get(id).cloned(),
        };
        Ok(TableColumn::Text(ids.iter().map(|id| name(id).unwrap_or_else(|| id.to_string())).collect()))
    }
}

/// Reads some columns of a table. Returns a table without columns if the run does not have the
/// table.
fn columns_of(run: &FinishedRun, table: &str, columns: &[&str]) -> Result<Table> {
    let mut rows = Table::default();
    for file in run.manifest.table(table) {
        let bytes = run.manifest.read_file(&run.folder, file)?;
        rows.append(decode_columns(&file.path, bytes, |name| columns.contains(&name))?)?;
    }
    Ok(rows)
}
