//! Writes a run: tables and exports by their owners, `summary.json`, then the manifest, which makes it a result.

use super::tables::{NAMES, empty, parts, rejected_partition};
use super::{Found, shelf::Rejection};
use crate::applications::exports::exports;
use crate::engine::Net;
use crate::error::Result;
use crate::pages::url::{CanonicalUrl, surt};
use crate::storage::location::Location;
use crate::storage::manifest::FileEntry;
use crate::storage::table::{Table, encode};

/// Writes everything but the manifest; all workers learn of all files, by path.
///
/// One exchange to bring the rejected records to their owners. Each file is held in memory while it is encoded.
pub fn result(
    net: &mut Net<'_>,
    folder: &Location,
    found: &Found,
    sources: &[String],
    rejections: Vec<Rejection>,
    partitions: usize,
) -> Result<Vec<FileEntry>> {
    let peers = net.peers();
    let owner = |row: &Rejection| rejected_partition(row.source, sources.len(), partitions) % peers;
    let rows: Vec<_> = rejections.into_iter().map(|row| (owner(&row), row)).collect();
    let mut rejected = net.exchange_rows("rejected", rows.into_iter())?;
    rejected.sort_unstable();

    let mut parts = parts(found, sources, &rejected, partitions);
    let mine: Vec<&str> = parts.iter().map(|part| part.0).collect();
    let all = net.all_gather("tables with rows", mine.iter().map(|name| name.to_string()).collect::<Vec<_>>())?;
    if net.index() == 0 {
        let without_rows = NAMES.iter().filter(|name| !all.iter().flatten().any(|other| other == *name));
        parts.extend(without_rows.map(|&name| (name, 0, empty(name, &found.crawl))));
    }
    let written = write(net, folder, found, parts);
    let written = net.agree("files", written)?;
    let mut files: Vec<FileEntry> = net.all_gather("all files", written)?.into_iter().flatten().collect();
    files.sort_unstable();
    Ok(files)
}

fn write(
    net: &Net<'_>,
    folder: &Location,
    found: &Found,
    parts: Vec<(&'static str, usize, Table)>,
) -> Result<Vec<FileEntry>> {
    let mut files = Vec::new();
    let mut put = |path: String, rows: Option<u64>, bytes: &[u8]| -> Result<()> {
        net.check()?;
        folder.join(&path)?.put(bytes)?;
        files.push(FileEntry::of(&path, rows, bytes));
        Ok(())
    };
    for (name, partition, table) in parts {
        let bytes = encode(&table)?;
        put(format!("{name}/part-{partition:05}.parquet"), Some(table.rows() as u64), &bytes)?;
    }
    if net.index() == 0 {
        let surt_of = |url: &str| CanonicalUrl::parse(url).map_or_else(|_| url.to_string(), |url| surt(&url));
        for (name, text) in exports(&found.prefixes, surt_of) {
            put(format!("avoid/{name}"), None, text.as_bytes())?;
        }
        let summary = serde_json::to_string_pretty(&found.summary).expect("a summary is plain values") + "\n";
        put("summary.json".into(), None, summary.as_bytes())?;
        put("views.sql".into(), None, views().as_bytes())?;
    }
    Ok(files)
}

/// Opens every table in DuckDB, from within the result's folder.
fn views() -> String {
    let view = |name: &&str| {
        format!("CREATE OR REPLACE VIEW {name} AS SELECT * FROM read_parquet('{name}/part-*.parquet');\n")
    };
    NAMES.iter().map(view).collect()
}
