//! Writes a run: tables and exports by their owners, `summary.json`, then the manifest, which makes it a result.

use std::collections::BTreeMap;

use super::tables::{NAMES, Part, empty, parts, rejected_partition, rejected_parts};
use super::{Found, shelf::Rejection};
use crate::applications::exports::exports;
use crate::engine::Net;
use crate::error::{Error, Result};
use crate::job::{Digest, Job};
use crate::pages::url::{CanonicalUrl, surt_prefix};
use crate::storage::location::Location;
use crate::storage::manifest::{FORMAT, FileEntry, Manifest};
use crate::storage::table::{Table, encode};

/// Writes everything but the manifest; all workers learn of all files, by path.
///
/// One exchange to bring the rejected records to their owners. Each file is held in memory while it is encoded.
pub fn result(
    net: &mut Net<'_>,
    folder: &Location,
    found: &mut Found,
    sources: &[String],
    rejections: Vec<Rejection>,
    partitions: usize,
) -> Result<Vec<FileEntry>> {
    let mut parts = parts(found, sources);
    parts.append(&mut rejected(net, rejections, sources, partitions)?);
    parts.append(&mut found.more_tables);
    with_empty(net, &mut parts, &NAMES, |name| empty(name, &found.crawl))?;
    let written = tables(net, folder, parts)?;
    let mut files: Vec<FileEntry> = net.all_gather("files", written)?.into_iter().flatten().collect();
    files.sort_unstable();
    let rest = if net.index() == 0 { rest(folder, found, &files)? } else { Vec::new() };
    files.extend(net.all_gather("all files", rest)?.into_iter().flatten());
    files.sort_unstable();
    if net.index() == 0 {
        only_these(folder, &files)?;
    }
    Ok(files)
}

/// This worker's parts of `rejected`. One exchange, to bring the records to their owners.
pub(super) fn rejected(
    net: &mut Net<'_>,
    rejections: Vec<Rejection>,
    sources: &[String],
    partitions: usize,
) -> Result<Vec<Part>> {
    let peers = net.peers();
    let owner = |row: &Rejection| rejected_partition(row.source, sources.len(), partitions) % peers;
    let rows = rejections.into_iter().map(|row| (owner(&row), row));
    let mut rejected = net.exchange_rows("rejected", rows)?;
    rejected.sort_unstable();
    Ok(rejected_parts(&rejected, sources, partitions))
}

/// Gives worker 0 an empty part of each table that no worker has rows of.
pub(super) fn with_empty(
    net: &mut Net<'_>,
    parts: &mut Vec<Part>,
    names: &[&'static str],
    empty: impl Fn(&str) -> Table,
) -> Result<()> {
    let mine: Vec<String> = parts.iter().map(|part| part.0.to_string()).collect();
    let all = net.all_gather("tables with rows", mine)?;
    if net.index() == 0 {
        let without_rows = names.iter().filter(|name| !all.iter().flatten().any(|other| other == *name));
        parts.extend(without_rows.map(|&name| (name, 0, empty(name))));
    }
    Ok(())
}

/// Writes the parts of tables, `summary.json` and `views.sql`; all workers learn of all files, by path.
pub fn put_tables(net: &mut Net<'_>, folder: &Location, parts: Vec<Part>, summary: &str) -> Result<Vec<FileEntry>> {
    let written = tables(net, folder, parts)?;
    put_summary(net, folder, written, summary)
}

/// Writes `summary.json` and `views.sql` beside the parts of tables that this worker has `written`; all workers learn of all
/// files, by path.
pub(super) fn put_summary(
    net: &mut Net<'_>,
    folder: &Location,
    written: Vec<FileEntry>,
    summary: &str,
) -> Result<Vec<FileEntry>> {
    let mut files: Vec<FileEntry> = net.all_gather("files", written)?.into_iter().flatten().collect();
    files.sort_unstable();
    let put = |path: &str, text: &str| -> Result<FileEntry> {
        folder.join(path)?.put(text.as_bytes())?;
        Ok(FileEntry::of(path, None, text.as_bytes()))
    };
    let rest = if net.index() == 0 {
        vec![put("summary.json", &format!("{summary}\n"))?, put("views.sql", &views(&files))?]
    } else {
        Vec::new()
    };
    files.extend(net.all_gather("all files", rest)?.into_iter().flatten());
    files.sort_unstable();
    if net.index() == 0 {
        only_these(folder, &files)?;
    }
    Ok(files)
}

/// Commits a run: worker 0 writes the manifest, which names all files.
///
/// # Errors
/// As [`Manifest::commit`], the same on all workers.
pub fn commit(
    net: &mut Net<'_>,
    job: &Job,
    folder: &Location,
    counts: &[(&str, u64)],
    recipes: &[(&str, String)],
    seconds: BTreeMap<String, f64>,
    files: Vec<FileEntry>,
) -> Result<()> {
    if net.index() == 0 {
        manifest(net, job, counts, recipes, seconds, files)?.commit(folder)?;
    }
    Ok(())
}

fn manifest(
    net: &Net<'_>,
    job: &Job,
    counts: &[(&str, u64)],
    recipes: &[(&str, String)],
    seconds: BTreeMap<String, f64>,
    files: Vec<FileEntry>,
) -> Result<Manifest> {
    let mut attempt = [0u8; 16];
    getrandom::fill(&mut attempt).map_err(|cause| Error::Invariant(format!("no random numbers: {cause}")))?;
    Ok(Manifest {
        format: FORMAT,
        attempt: attempt.iter().map(|byte| format!("{byte:02x}")).collect(),
        digest: Digest::of(job).hex(),
        job: serde_json::to_value(job).expect("a job is plain values"),
        recipes: recipes.iter().map(|(name, recipe)| (name.to_string(), recipe.clone())).collect(),
        build: crate::build::VERSION.into(),
        workers: net.peers() as u64,
        seconds,
        counts: counts.iter().map(|(name, n)| (name.to_string(), *n)).collect(),
        peak_memory_bytes: crate::build::peak_memory_bytes(),
        files,
    })
}

fn tables(net: &Net<'_>, folder: &Location, parts: Vec<Part>) -> Result<Vec<FileEntry>> {
    let mut files = Vec::new();
    for part in parts {
        net.check()?;
        files.push(put_part(folder, &part)?);
    }
    Ok(files)
}

/// Writes a part of a table.
pub(super) fn put_part(folder: &Location, (name, partition, table): &Part) -> Result<FileEntry> {
    let bytes = encode(table)?;
    let path = format!("{name}/part-{partition:05}.parquet");
    folder.join(&path)?.put(&bytes)?;
    Ok(FileEntry::of(&path, Some(table.rows() as u64), &bytes))
}

/// Exports, summary and views: the files that only worker 0 writes.
fn rest(folder: &Location, found: &Found, tables: &[FileEntry]) -> Result<Vec<FileEntry>> {
    let mut files = Vec::new();
    let mut put = |path: String, text: &str| -> Result<()> {
        folder.join(&path)?.put(text.as_bytes())?;
        files.push(FileEntry::of(&path, None, text.as_bytes()));
        Ok(())
    };
    let surt_of = |url: &str| CanonicalUrl::parse(url).map_or_else(|_| url.to_string(), |url| surt_prefix(&url));
    for (name, text) in exports(&found.prefixes, surt_of) {
        // Readers of Parquet folders pass over names that begin with an underscore.
        put(format!("avoid/_exports/{name}"), &text)?;
    }
    put(
        "summary.json".into(),
        &(serde_json::to_string_pretty(&found.summary).expect("a summary is plain values") + "\n"),
    )?;
    put("views.sql".into(), &views(tables))?;
    Ok(files)
}

/// Opens every table in DuckDB, from within the result's folder.
fn views(tables: &[FileEntry]) -> String {
    let table = |file: &FileEntry| file.path.split('/').next().unwrap_or_default().to_string();
    tables
        .chunk_by(|x, y| table(x) == table(y))
        .map(|files| {
            let names: Vec<String> = files.iter().map(|file| format!("'{}'", file.path)).collect();
            format!(
                "CREATE OR REPLACE VIEW {} AS SELECT * FROM read_parquet([{}]);\n",
                table(&files[0]),
                names.join(", ")
            )
        })
        .collect()
}

/// Holds what lies in the folder against what was written: every file must be there, and parts that an earlier, unfinished
/// run has left are removed, for a reader who asks for all parts would find them.
fn only_these(folder: &Location, files: &[FileEntry]) -> Result<()> {
    let root = folder.name().trim_end_matches('/').len() + 1;
    let listed = folder.list(None)?;
    let mut lengths = std::collections::BTreeMap::new();
    for file in &listed {
        let path = file.location.name().get(root..).unwrap_or_default();
        if files.binary_search_by(|entry| entry.path.as_str().cmp(path)).is_ok() {
            lengths.insert(path, file.stamp.bytes);
        } else if path.contains("/part-") && path.ends_with(".parquet") {
            file.location.remove()?;
        }
    }
    match files.iter().find(|file| lengths.get(file.path.as_str()) != Some(&file.bytes)) {
        None => Ok(()),
        Some(file) => Err(Error::storage(
            folder.join(&file.path)?.name(),
            "not there as it was written; all processes must write to the same place, not each to its own disk",
        )),
    }
}
