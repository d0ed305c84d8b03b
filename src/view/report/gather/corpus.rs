//! Duplicates removed from a corpus: counts, the largest clusters with texts side by side, and
//! counts by field.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::Value;

use super::parts::{bars, tile};
use super::{count, counts};
use crate::report::contract::{
    Bars, Duplicate, LabeledCount, ReportedCluster, ReportedClusters, ReportedRecord, TableCell, TablePreview, ViewPart,
};
use crate::report::figures;
use crate::report::side_by_side::side_by_side;
use crate::report::top::SmallestKeys;
use webtwin_base::error::Result;
use webtwin_core::explain::broken_lines::broken;
use webtwin_dedup::again::CorpusSource;
use webtwin_results::FinishedRun;
use webtwin_results::scan::scan;

/// Maximum number of rows of a table.
const ROWS: usize = 50;

/// Maximum number of members of a cluster.
const MEMBERS: usize = 10;

/// Width of a class of resemblance, in hundredths, for near-duplicates.
const CLASS: u64 = 5;

/// Labels for the outcomes of records.
const REASONS: [(&str, &str); 3] =
    [("exact", "removed: same text"), ("near", "removed: similar"), ("against", "removed: in the older corpus")];

/// Members of a cluster that are least similar to the kept record. The key is resemblance in
/// billionths, file and row.
type Members = SmallestKeys<(u64, String, u64), Duplicate>;

/// Parts of the report of a corpus.
pub struct CorpusParts {
    /// View of the corpus, and of its counts by field if there are any.
    pub parts: Vec<ViewPart>,
    /// Largest clusters.
    pub clusters: ReportedClusters,
}

/// Reads the report of a deduplicated corpus, with the texts of at most `pairs` pairs of records.
///
/// # Errors
/// Returns any error of [`scan`]. Texts that cannot be read again from the corpus are not an error:
/// the report states the reason.
///
/// # Cost
/// One pass over `removed`. Reads the files of the records that are shown side by side, up to these
/// records.
pub fn gather(run: &FinishedRun, summary: &Value, pairs: usize) -> Result<CorpusParts> {
    let mut clusters: Vec<(ReportedCluster, Members)> = Vec::new();
    for of in summary["largest_clusters"].as_array().into_iter().flatten() {
        // Earlier builds did not store the location.
        let (Some(id), Some(file), Some(row)) = (of["id"].as_str(), of["file"].as_str(), of["row"].as_u64()) else {
            continue;
        };
        let kept_record = ReportedRecord { id: id.into(), file: file.into(), row };
        let (removed_counts, members, diff, reason) = (BTreeMap::new(), Vec::new(), Vec::new(), String::new());
        let cluster = ReportedCluster {
            kept: kept_record,
            removed: count(&of["removed"]),
            removed_by: removed_counts,
            members,
            diff,
            unread: reason,
        };
        clusters.push((cluster, SmallestKeys::new(MEMBERS)));
    }
    let resemblances = read_removed(run, &mut clusters)?;
    let mut clusters: Vec<ReportedCluster> = clusters
        .into_iter()
        .map(|(cluster, members)| ReportedCluster { members: members.finish(), ..cluster })
        .collect();
    compare(run, &mut clusters, pairs);
    let mut parts = vec![corpus_view(summary, resemblances)];
    parts.extend(fields_view(summary));
    Ok(CorpusParts { parts, clusters: ReportedClusters { shown: clusters, all: count(&summary["clusters"]) } })
}

/// Adds the members of each cluster. Returns the number of near-duplicates by resemblance, in
/// hundredths rounded down to a class.
fn read_removed(run: &FinishedRun, clusters: &mut [(ReportedCluster, Members)]) -> Result<BTreeMap<u64, u64>> {
    let places: BTreeMap<(String, u64), usize> =
        clusters.iter().enumerate().map(|(at, (of, _))| ((of.kept.file.clone(), of.kept.row), at)).collect();
    let mut resemblances = BTreeMap::new();
    let columns = ["id", "file", "row", "kept_file", "kept_row", "why", "similarity"];
    scan(run, "removed", &columns, &mut |batch| {
        let (ids, files, rows) = (batch.text("id")?, batch.text("file")?, batch.u64("row")?);
        let (kept_file_column, kept_row_column) = (batch.text("kept_file")?, batch.u64("kept_row")?);
        let (why, similarity) = (batch.text("why")?, batch.f64("similarity")?);
        for row in 0..rows.len() {
            if &why[row] != "exact" {
                let hundredths = (similarity[row] * 100.0) as u64;
                *resemblances.entry(hundredths - hundredths % CLASS).or_default() += 1;
            }
            let Some(&number) = places.get(&(kept_file_column[row].to_string(), kept_row_column[row])) else {
                continue;
            };
            let (cluster, members) = &mut clusters[number];
            *cluster.removed_by.entry(why[row].into()).or_default() += 1;
            // Members that are least similar come first, because a false duplicate is most likely
            // there.
            let key = ((similarity[row] * 1e9) as u64, files[row].to_string(), rows[row]);
            if members.takes(&key) {
                let record = ReportedRecord { id: ids[row].into(), file: files[row].into(), row: rows[row] };
                members.offer(key, Duplicate { record, why: why[row].into(), similarity: similarity[row] });
            }
        }
        Ok(())
    })?;
    Ok(resemblances)
}

/// Compares the least similar text of a cluster with the kept text, for the first `pairs` clusters
/// that have one.
fn compare(run: &FinishedRun, clusters: &mut [ReportedCluster], pairs: usize) {
    let is_unlike =
        |cluster: &&mut ReportedCluster| cluster.members.first().is_some_and(|member| member.why != "exact");
    let mut selected: Vec<&mut ReportedCluster> = clusters.iter_mut().filter(is_unlike).take(pairs).collect();
    let mut rows: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for cluster in &selected {
        for record in [&cluster.kept, &cluster.members[0].record] {
            rows.entry(record.file.clone()).or_default().push(record.row);
        }
    }
    let read = || -> Result<BTreeMap<(String, u64), String>> {
        let source = CorpusSource::from_run(run)?;
        let mut texts = BTreeMap::new();
        for (file, rows) in &rows {
            texts.extend(source.texts(file, rows)?.into_iter().map(|(row, text)| ((file.clone(), row), text)));
        }
        Ok(texts)
    };
    if rows.is_empty() {
        return;
    }
    match read() {
        Err(error) => selected.iter_mut().for_each(|cluster| cluster.unread = error.to_string()),
        Ok(texts) => {
            for cluster in selected {
                let text = |of: &ReportedRecord| broken(&texts[&(of.file.clone(), of.row)]);
                cluster.diff = side_by_side(&text(&cluster.kept), &text(&cluster.members[0].record));
            }
        }
    }
}

/// Builds the view of the whole corpus.
fn corpus_view(summary: &Value, resemblances: BTreeMap<u64, u64>) -> ViewPart {
    let (records, text) = (&summary["records"], &summary["text_bytes"]);
    let [read, n_kept, n_removed, n_rejected] =
        ["read", "kept", "removed", "rejected"].map(|name| count(&records[name]));
    let [kept_bytes, removed_bytes] = ["kept", "removed"].map(|name| count(&text[name]));
    let files = summary["files"].as_array().map_or(0, Vec::len) as u64;
    // With --annotate, duplicates remain in the corpus and are only marked.
    let (action, are) = match summary["settings"]["annotate"].is_null() {
        true => ("removed", "were removed"),
        false => ("marked as duplicates", "were marked as duplicates, and stay"),
    };
    let mut fates = vec![LabeledCount { what: "kept".into(), count: n_kept }];
    fates.extend(bars("", "", &records["removed_by"], &REASONS).bars);
    // Outcomes are in the order of the equation: kept, removed by reason, rejected.
    fates.push(LabeledCount { what: "rejected".into(), count: n_rejected });
    let resemblance = resemblances.into_iter().map(|(hundredths, count)| LabeledCount {
        what: match hundredths {
            // A resemblance of 1 is a class of its own, because no value is above it.
            100 => "1".into(),
            _ => format!("{:.2} to {:.2}", hundredths as f64 / 100.0, (hundredths + CLASS) as f64 / 100.0),
        },
        count,
    });
    let sizes = summary["cluster_sizes"].as_array().into_iter().flatten().map(|size_class| {
        let (first, last) = (count(&size_class["from"]), size_class["to"].as_u64());
        let label = match last {
            Some(last) if last == first => figures::counted(first, "record", "records"),
            Some(last) => format!("{first} to {last} records"),
            None => format!("{} records or more", figures::count(first)),
        };
        LabeledCount { what: label, count: count(&size_class["clusters"]) }
    });
    let charts = [
        Bars { heading: "Records".into(), ask: "Outcome of each record of the inputs.".into(), bars: fates },
        Bars {
            heading: "Clusters by size".into(),
            ask: "Number of records of a cluster, including the kept one.".into(),
            bars: sizes.collect(),
        },
        Bars {
            heading: "Similar texts by resemblance".into(),
            ask: "Resemblance of similar texts to the record that is kept.".into(),
            bars: resemblance.collect(),
        },
        bars(
            "Rejected records",
            "Reasons for which records are in neither the corpus nor the table removed.",
            &records["rejected_by"],
            &[],
        ),
    ];
    ViewPart {
        id: "corpus",
        name: "Corpus",
        headline: match n_removed {
            0 => "No record is a duplicate of another".into(),
            _ => format!("{} of the records are duplicates", figures::share(n_removed, read)),
        },
        lead: format!(
            "{} of {}: {} stay in the corpus, {} {are}.",
            figures::counted(read, "record", "records"),
            figures::counted(files, "file", "files"),
            figures::count(n_kept + if summary["settings"]["annotate"].is_null() { 0 } else { n_removed }),
            figures::count(n_removed)
        ),
        tiles: vec![
            tile(figures::count(read), "records read"),
            tile(figures::count(n_kept), "records kept"),
            tile(figures::count(n_removed), format!("records {action}")),
            tile(figures::count(n_rejected), "records rejected"),
            tile(figures::bytes(kept_bytes), "of text kept"),
            tile(figures::bytes(removed_bytes), format!("of text {action}")),
            tile(figures::count(count(&summary["clusters"])), "clusters: kept records with duplicates"),
            tile(figures::count(count(&summary["empty_texts"])), "empty texts, all kept"),
        ],
        charts: charts.into_iter().filter(|chart| !chart.bars.is_empty()).collect(),
        tables: vec![files_table(summary)].into_iter().filter(|table| !table.rows.is_empty()).collect(),
    }
}

/// Lists the files with the most duplicates.
fn files_table(summary: &Value) -> TablePreview {
    let mut top = SmallestKeys::new(ROWS);
    let files = summary["files"].as_array().map_or(&[][..], |files| files);
    for (number, file) in files.iter().enumerate() {
        let [n_kept, n_removed, n_rejected] = ["kept", "removed", "rejected"].map(|name| count(&file[name]));
        let [name, format] =
            ["file", "format"].map(|name| TableCell::Text(file[name].as_str().unwrap_or_default().into()));
        let share = TableCell::Number(figures::share(n_removed, n_kept + n_removed + n_rejected));
        let cells = vec![
            name,
            format,
            TableCell::Count(n_kept),
            TableCell::Count(n_removed),
            TableCell::Count(n_rejected),
            share,
        ];
        top.offer((Reverse(n_removed), number), cells);
    }
    TablePreview {
        heading: "Files with the most duplicates".into(),
        heads: vec!["file", "format", "kept", "duplicates", "rejected", "share of duplicates"],
        rows: top.finish(),
        all: files.len() as u64,
        table: String::new(),
    }
}

/// Builds the view of counts by the requested fields.
fn fields_view(summary: &Value) -> Option<ViewPart> {
    let fields = summary["counts_by"].as_object().filter(|fields| !fields.is_empty())?;
    let table = |(field, values): (&String, &Value)| {
        let values = values.as_array().map_or(&[][..], |values| values);
        let row = |settings_json: &Value| {
            let [n_kept, n_removed, kept_bytes] =
                ["kept", "removed", "kept_bytes"].map(|name| count(&settings_json[name]));
            let removal_reasons = counts(&settings_json["removed_by"]);
            // Records without the field have no value.
            let value = settings_json["value"].as_str().map_or_else(|| "none".to_string(), String::from);
            // Every reason has a column, so that all rows have the same cells.
            let reasons = REASONS.map(|(why, _)| TableCell::Count(removal_reasons.get(why).copied().unwrap_or(0)));
            let share = TableCell::Number(figures::share(n_removed, n_kept + n_removed));
            let bytes = TableCell::Number(figures::bytes(kept_bytes));
            [&[TableCell::Text(value), TableCell::Count(n_kept), bytes][..], &reasons, &[share]].concat()
        };
        TablePreview {
            heading: field.clone(),
            heads: vec![
                "value",
                "kept",
                "text kept",
                "same text",
                "similar",
                "in the older corpus",
                "share of duplicates",
            ],
            rows: values.iter().take(ROWS).map(row).collect(),
            all: values.len() as u64,
            table: String::new(),
        }
    };
    Some(ViewPart {
        id: "fields",
        name: "Fields",
        headline: format!("Records by {}", fields.keys().cloned().collect::<Vec<_>>().join(", ")),
        lead: "Records of the input by the values of the fields of --count-by, the most frequent first; \
               _webtwin/summary has all values."
            .into(),
        tiles: Vec::new(),
        charts: Vec::new(),
        tables: fields.iter().map(table).collect(),
    })
}
