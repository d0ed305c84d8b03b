//! Provenance of the figures: records, settings, recipes, and facts of the machine.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::Value;

use super::{count, counts};
use crate::report::contract::{LabeledCount, Machine, RejectingInput, RunFacts, Stage};
use crate::report::top::SmallestKeys;
use webtwin_base::error::Result;
use webtwin_dedup::settings::DedupSettings;
use webtwin_job::Job;
use webtwin_results::FinishedRun;
use webtwin_results::scan::scan;

/// Maximum number of inputs to list that have records which were not kept.
const INPUTS: usize = 20;

/// Settings that name locations or resources and do not affect the answer. For a comparison, its
/// inputs.
const PLACES: [&str; 8] = ["kind", "inputs", "input.urls", "output.url", "effort.", "old.", "new.", "beside."];

/// Reads the facts. `machine` requests those of the machine.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::Input`] if a column is missing, and any error of [`scan`].
pub fn gather(run: &FinishedRun, summary: &Value, machine: bool) -> Result<RunFacts> {
    let (manifest, records, overlap) = (&run.manifest, &summary["records"], &summary["overlap"]);
    let (inputs_with_rejected, rejected_by_input) = count_rejected(run)?;
    let mut tables: BTreeMap<String, u64> = BTreeMap::new();
    for file in &manifest.files {
        if let Some(table) = file.table() {
            *tables.entry(table.into()).or_default() += file.rows.unwrap_or(0);
        }
    }
    let omissions = [
        ("distinct chunks of text", "chunks"),
        ("of these boilerplate of a site", "template_chunks"),
        ("of these on too many pages", "frequent_chunks"),
        ("similar pairs refused by the guard", "guarded"),
    ];
    let facts = || Machine {
        folder: run.folder.name().into(),
        build: manifest.build.clone(),
        workers: manifest.workers,
        seconds: manifest.seconds.iter().map(|(stage, &seconds)| Stage { stage: stage.clone(), seconds }).collect(),
        peak_memory_bytes: manifest.peak_memory_bytes,
        started_in: manifest.started_in.clone(),
        files: manifest.files.len() as u64,
        bytes: manifest.files.iter().map(|file| file.bytes).sum(),
    };
    Ok(RunFacts {
        read: count(&records["read"]),
        kept: count(&records["kept"]),
        duplicates: records["removed"].as_u64(),
        // The summary of a corpus has the reasons in `rejected_by`, other summaries in `rejected`.
        rejected: counts(if records["rejected_by"].is_object() {
            &records["rejected_by"]
        } else {
            &records["rejected"]
        }),
        repaired: counts(&records["mended"]),
        torn: records["torn"].as_object().map_or(0, |torn| torn.len() as u64),
        inputs_with_rejected,
        rejected_by_input,
        // Only jobs that compare chunks have these counts.
        left_out: match overlap.is_object() {
            true => {
                omissions.map(|(what, name)| LabeledCount { what: what.into(), count: count(&overlap[name]) }).into()
            }
            false => Vec::new(),
        },
        settings: settings(&manifest.job),
        recipes: manifest.recipes.clone(),
        tables,
        machine: machine.then(facts),
    })
}

/// Counts the inputs with records that were not kept, and finds those with the most such records.
fn count_rejected(run: &FinishedRun) -> Result<(u64, Vec<RejectingInput>)> {
    let (mut inputs, mut top, mut current) = (0, SmallestKeys::new(INPUTS), None::<RejectingInput>);
    let mut push_input = |input: RejectingInput| {
        inputs += 1;
        let records: u64 = input.by_reason.values().sum();
        top.offer((Reverse(records), input.source.clone()), input);
    };
    // The table is sorted by input.
    scan(run, "rejected", &["source", "reason"], &mut |batch| {
        let (sources, reasons) = (batch.text("source")?, batch.text("reason")?);
        for (source, reason) in sources.iter().zip(reasons) {
            if current.as_ref().is_none_or(|of| of.source != *source) {
                let next = RejectingInput { source: source.to_string(), by_reason: BTreeMap::new() };
                current.replace(next).into_iter().for_each(&mut push_input);
            }
            let current_input = current.as_mut().expect("it was begun");
            *current_input.by_reason.entry(reason.to_string()).or_default() += 1;
        }
        Ok(())
    })?;
    current.into_iter().for_each(&mut push_input);
    Ok((inputs, top.finish()))
}

/// Returns the settings of a job that differ from the default.
fn settings(job: &Value) -> BTreeMap<String, String> {
    let (mut settings, mut default) = (BTreeMap::new(), BTreeMap::new());
    flatten("", job, &mut settings);
    let defaults = match job["kind"] == "dedup" {
        true => DedupSettings::default().answer(),
        false => serde_json::to_value(Job::default()).expect("a job is plain values"),
    };
    flatten("", &defaults, &mut default);
    let place =
        |name: &str| PLACES.iter().any(|place| name == *place || place.ends_with('.') && name.starts_with(place));
    settings.retain(|name, value| default.get(name) != Some(value) && !place(name));
    settings
}

fn flatten(name: &str, value: &Value, output: &mut BTreeMap<String, String>) {
    match value.as_object() {
        None => _ = output.insert(name.into(), value.to_string()),
        Some(parts) => parts.iter().for_each(|(part, value)| {
            let dot = if name.is_empty() { "" } else { "." };
            flatten(&format!("{name}{dot}{part}"), value, output);
        }),
    }
}
