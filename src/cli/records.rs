//! Summary of the records that a run has read, on stderr.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use webtwin_base::build_info::lacks;
use webtwin_base::console::notify;
use webtwin_dataflow::sinks::summary::RecordTotals;
use webtwin_job::READS_PDF;
use webtwin_pages::record::Reason;

/// Maximum number of reasons in the summary.
const MAX_REASONS_LISTED: usize = 6;

/// Maximum number of torn files in the summary.
const MAX_TORN_LISTED: usize = 5;

/// Reports the outcome of the records on stderr, and the remedy if a part of the crawl is missing.
pub(super) fn report(records: &RecordTotals) {
    let n_rejected: u64 = records.rejected.values().sum();
    notify(format_args!("{} records read: {} pages kept, {n_rejected} rejected", records.read, records.kept));
    for (label, counts) in [("rejected", &records.rejected), ("kept, but repaired", &records.repaired)] {
        if !counts.is_empty() {
            notify(format_args!("  {label}: {}", format_reasons(counts)));
        }
    }
    if let Some(revisits) = records.rejected.get(Reason::Revisit.as_str()) {
        notify(format_args!(
            "{revisits} revisit records refer to records that are not in the input or are not \
             pages; to include these pages, name the files of the earlier crawl with --originals"
        ));
    }
    if let Some(n_unread) = records.rejected.get(Reason::NoConverter.as_str()) {
        match READS_PDF {
            true => notify(format_args!(
                "{n_unread} PostScript documents were not read, because Ghostscript (gs) is not \
                 installed; install it, or leave them out with input.printed = \"pdf\""
            )),
            false => notify(format_args!(
                "{n_unread} PDF or PostScript documents were not read: {}; install Ghostscript (gs) \
                 for PostScript, or leave them out with input.printed = \"skip\"",
                lacks("cannot read PDF", "pdf")
            )),
        }
    }
    for (input, offset) in records.torn.iter().take(MAX_TORN_LISTED) {
        notify(format_args!("{input} is truncated within the record at offset {offset}; copy or download it again"));
    }
    if records.torn.len() > MAX_TORN_LISTED {
        let n_omitted = records.torn.len() - MAX_TORN_LISTED;
        notify(format_args!("{n_omitted} more files are truncated; see records.torn in summary.json"));
    }
}

/// Formats counts by reason, the largest first. The smallest are combined if there are many.
fn format_reasons(counts: &BTreeMap<String, u64>) -> String {
    let mut counts: Vec<(&str, u64)> = counts.iter().map(|(reason, &n)| (reason.as_str(), n)).collect();
    counts.sort_by_key(|&(_, n)| Reverse(n));
    let mut message: Vec<String> =
        counts.iter().take(MAX_REASONS_LISTED).map(|(reason, n)| format!("{n} {reason}")).collect();
    let n_other: u64 = counts.iter().skip(MAX_REASONS_LISTED).map(|(_, n)| n).sum();
    if n_other > 0 {
        message.push(format!("{n_other} others"));
    }
    message.join(", ")
}
