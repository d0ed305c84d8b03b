//! All-pairs overlap, compared with the join of a database.

use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use super::super::measure::{forget_peak_memory, processor_seconds, seconds};
use super::super::table_overlap::{MeasurementLimits, overlap_of_peer_table, write_peer_table};
use super::super::{FigureRow, Options, figure};
use super::of_the_machine;
use webtwin_base::error::{Error, Result};

/// T of four-line chunks, with which the other programs were measured.
const MIN_SHARED: u32 = 15;

/// Script with the self-join, for a Python that has DuckDB.
const SCRIPT: &str = include_str!("../../../scripts/peers/duckdb_overlap.py");

/// Output of the script.
#[derive(Deserialize)]
struct SelfJoin {
    program: String,
    seconds: f64,
    peak_memory_bytes: u64,
    similar: u64,
    checksum: u64,
}

/// Compares the overlap with DuckDB on the same table.
pub(super) fn run(options: &Options) -> Result<Vec<FigureRow>> {
    // Five million documents have 58,750,324 rows.
    let docs = (options.scale as u128 * 5_000_000 / 58_750_324).clamp(1000, u128::from(u32::MAX)) as u32;
    let table = options.work.join("tuples.bin");
    let (make_seconds, rows) = seconds(|| write_peer_table(docs, &table));
    let rows_made = rows?;
    let limits = MeasurementLimits { workers: options.workers, memory_bytes: 0, spill: options.work.clone() };
    forget_peak_memory();
    let cpu_before = processor_seconds();
    let join = overlap_of_peer_table(&table, docs, MIN_SHARED, &limits)?;
    let cpu_seconds = of_the_machine(cpu_before, options.workers);
    let peer = self_join(&table, options);
    if let Ok(peer) = &peer
        && (peer.similar, peer.checksum) != (join.similar, join.checksum)
    {
        return Err(Error::Invariant(format!(
            "{} found {} pairs, webtwin {}",
            peer.program, peer.similar, join.similar
        )));
    }
    let (name, peer) = match peer {
        Ok(peer) => (peer.program.clone(), Some(peer)),
        Err(reason) => (format!("DuckDB ({reason})"), None),
    };
    let figure_of_join = |label: &str, value_of: &dyn Fn(&SelfJoin) -> f64, unit: &str| FigureRow {
        ours: peer.as_ref().map(value_of),
        ..figure(label, 0.0, unit)
    };
    let mut rows = vec![
        figure("rows", rows_made as f64, "rows"),
        figure("made in", make_seconds, "s"),
        figure("sort and all-pairs overlap, from a file", join.seconds, "s"),
        figure_of_join(&format!("self-join, {name}"), &|peer| peer.seconds, "s"),
        figure_of_join("the latter against the former", &|peer| peer.seconds / join.seconds, "times").at_least(10.0),
        figure("peak memory", join.peak_memory_bytes as f64 / 1e6, "MB"),
        figure_of_join("peak memory of the self-join", &|peer| peer.peak_memory_bytes as f64 / 1e6, "MB"),
        figure_of_join(
            "the former as a share of the latter",
            &|peer| join.peak_memory_bytes as f64 / peer.peak_memory_bytes as f64,
            "share",
        )
        .at_most(0.25),
        figure("similar pairs, of one checksum", join.similar as f64, "pairs"),
    ];
    rows.extend(cpu_seconds);
    Ok(rows)
}

/// Runs the same join in DuckDB. Returns the reason if that is not possible.
fn self_join(table: &Path, options: &Options) -> std::result::Result<SelfJoin, String> {
    let script = options.work.join("duckdb_overlap.py");
    std::fs::write(&script, SCRIPT).map_err(|cause| cause.to_string())?;
    let mut python = Command::new("python3");
    python.arg(&script).arg(table).arg(MIN_SHARED.to_string()).arg(options.workers.to_string());
    let output = python.env("TMPDIR", &options.work).output().map_err(|cause| format!("python3: {cause}"))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(message.trim().lines().last().unwrap_or("failed").to_string());
    }
    serde_json::from_slice(&output.stdout).map_err(|cause| cause.to_string())
}
