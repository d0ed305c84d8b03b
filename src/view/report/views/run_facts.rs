//! View of the run: was the input sound, and how can the run be repeated?

use super::heading;
use crate::report::charts::bars::{bar, spot, stack};
use crate::report::charts::figure;
use crate::report::contract::{Machine, RunFacts};
use crate::report::figures::{bytes, count, counted};
use crate::report::html::Html;

/// Classes of stages, which alternate.
const CLASSES: [&str; 5] = ["f-exact", "f-collection", "f-stay", "f-similar", "f-total"];

pub(super) fn write(html: &mut Html, inputs: &[String], digest: &str, facts: &RunFacts) {
    heading(html, "run", "The run", "Origin of these figures, and defects of the input.");
    html.markup("<div class=pair>");
    // A job that does not read a crawl has no records.
    if facts.tables.contains_key("rejected") {
        html.markup("<div class=card><h2>Records</h2>");
        records(html, facts);
        if !facts.left_out.is_empty() {
            html.markup("<h2 class=gap>Text that was not compared</h2><dl class=facts>");
            for loss in &facts.left_out {
                fact(html, &loss.what, &count(loss.count));
            }
            html.markup("</dl>");
        }
        html.markup("</div>");
    }
    html.markup("<div class=card><h2>The job</h2><dl class=facts>");
    fact(html, "input", &inputs.join(", "));
    fact(html, "digest", digest);
    for (label, recipe) in &facts.recipes {
        fact(html, &format!("recipe of {label}"), recipe);
    }
    html.markup("</dl><h2 class=gap>Settings that differ from the defaults</h2>");
    if facts.settings.is_empty() {
        html.markup("<p class=note>none</p>");
    }
    html.markup("<dl class=facts>");
    for (name, value) in &facts.settings {
        fact(html, name, value);
    }
    html.markup("</dl></div>");
    if let Some(machine) = &facts.machine {
        html.markup("<div class=card><h2>Time and place</h2>");
        time(html, machine);
        html.markup("</div>");
    }
    html.markup(
        "<div class=card><h2>Tables</h2><p class=ask>Number of rows. <code>webtwin show RUN TABLE</code> prints one",
    );
    if facts.duplicates.is_none() {
        html.markup(", and <code>views.sql</code> opens all tables in DuckDB");
    }
    html.markup(".</p><dl class=facts>");
    for (table, rows) in &facts.tables {
        fact(html, table, &count(*rows));
    }
    html.markup("</dl></div></div>");
}

fn fact(html: &mut Html, label: &str, value: &str) {
    html.markup("<dt>").text(label).markup("</dt><dd>").crawled(value).markup("</dd>");
}

fn records(html: &mut Html, facts: &RunFacts) {
    let n_rejected: u64 = facts.rejected.values().sum();
    let (read, n_kept, rejected_records) =
        (counted(facts.read, "record", "records"), count(facts.kept), count(n_rejected));
    html.markup("<p>");
    match facts.duplicates.map(count) {
        None => html.text(format_args!("{read} read = {n_kept} kept as pages + {rejected_records} not kept.")),
        Some(n_removed) => {
            // Duplicates are neither kept nor rejected, so the equation has a term for them.
            html.text(format_args!(
                "{read} read = {n_kept} kept + {n_removed} duplicates + {rejected_records} rejected."
            ))
        }
    };
    html.markup("</p>");
    if n_rejected == 0 && facts.duplicates.is_none() {
        html.markup("<p class=note>Every record was a page.</p>");
    // The records of a corpus are texts, not pages.
    } else if n_rejected == 0 {
        html.markup("<p class=note>No record was rejected.</p>");
    } else {
        let longest = facts.rejected.values().copied().max().unwrap_or(0);
        html.markup("<table class=bars><caption class=unseen>records not kept, by reason</caption><tbody>");
        for (reason, &records) in &facts.rejected {
            html.markup("<tr><th scope=row>")
                .text(reason.replace('_', " "))
                .markup("</th><td class=num>")
                .text(count(records));
            html.markup("</td><td class=level>");
            bar(html, &[("f-similar", records)], longest);
            html.markup("</td></tr>");
        }
        html.markup("</tbody></table>");
    }
    for (label, records) in &facts.repaired {
        html.markup("<p class=note>").text(counted(*records, "page", "pages")).text(" kept after repair: ");
        html.text(label.replace('_', " ")).markup("</p>");
    }
    if facts.torn > 0 {
        html.markup("<p class=warn>")
            .text(counted(facts.torn, "input ends", "inputs end"))
            .markup(" within a record.</p>");
    }
    if !facts.rejected_by_input.is_empty() {
        html.markup("<details class=data><summary>").text(counted(
            facts.inputs_with_rejected,
            "input has",
            "inputs have",
        ));
        html.markup(
            " records that were not kept</summary><div class=\"scroll tall\" tabindex=0 role=group aria-label=inputs>",
        );
        html.markup("<table class=small><thead><tr><th scope=col>input</th><th scope=col>reason</th><th scope=col class=num>records</th></tr></thead><tbody>");
        for input in &facts.rejected_by_input {
            for (reason, records) in &input.by_reason {
                html.markup("<tr><td class=url>")
                    .crawled(&input.source)
                    .markup("</td><td>")
                    .text(reason.replace('_', " "));
                html.markup("</td><td class=num>").text(count(*records)).markup("</td></tr>");
            }
        }
        html.markup("</tbody></table></div></details>");
    }
}

fn time(html: &mut Html, machine: &Machine) {
    let total: f64 = machine.seconds.iter().map(|stage| stage.seconds).sum();
    let parts: Vec<(&'static str, u64)> = machine
        .seconds
        .iter()
        .zip(CLASSES.iter().cycle())
        .map(|(stage, class)| (*class, (stage.seconds * 1e3) as u64))
        .collect();
    let name = |stage: &str| stage.split_once(' ').map_or(stage.to_string(), |(_, name)| name.to_string());
    let mut chart = Html::new();
    stack(&mut chart, &parts);
    chart.markup("<ul class=legend>");
    for (stage, (class, _)) in machine.seconds.iter().zip(&parts) {
        chart.markup("<li>");
        spot(&mut chart, class);
        chart.text(name(&stage.stage)).markup("</li>");
    }
    chart.markup("</ul>");
    let rows: Vec<Vec<String>> =
        machine.seconds.iter().map(|stage| vec![name(&stage.stage), format!("{:.1}", stage.seconds)]).collect();
    figure(html, &format!("The run took {total:.1} seconds"), &chart, &["stage", "seconds"], &rows);
    html.markup("<dl class=facts>");
    fact(html, "workers", &count(machine.workers));
    fact(html, "peak memory", &bytes(machine.peak_memory_bytes));
    fact(html, "program", &machine.build);
    fact(html, "result", &format!("{}: {} files, {}", machine.folder, count(machine.files), bytes(machine.bytes)));
    fact(html, "started in", &machine.started_in);
    html.markup("</dl>");
}
