//! Summary of the records that a run has read, on stderr.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use webtwin_base::build_info::lacks;
use webtwin_base::console::tell;
use webtwin_dataflow::sinks::summary::Records;
use webtwin_job::READS_PDF;
use webtwin_pages::record::Reason;

/// Maximum number of reasons in the summary.
const REASONS_TOLD: usize = 6;

/// Maximum number of torn files in the summary.
const TORN_TOLD: usize = 5;

/// Reports the outcome of the records on stderr, and the remedy if a part of the crawl is missing.
pub(super) fn report(records: &Records) {
    let rejected: u64 = records.rejected.values().sum();
    tell(format_args!("{} records read: {} pages kept, {rejected} rejected", records.read, records.kept));
    for (what, counts) in [("rejected", &records.rejected), ("kept, but mended", &records.mended)] {
        if !counts.is_empty() {
            tell(format_args!("  {what}: {}", commonest(counts)));
        }
    }
    if let Some(revisits) = records.rejected.get(Reason::Revisit.as_str()) {
        tell(format_args!(
            "{revisits} revisit records refer to records that are not in the input, or are no pages; to have the pages, \
             name the files of the earlier crawl with --originals"
        ));
    }
    if let Some(unread) = records.rejected.get(Reason::NoConverter.as_str()) {
        match READS_PDF {
            true => tell(format_args!(
                "{unread} PostScript documents were not read, for Ghostscript (gs) is not installed; \
                 input.printed = \"pdf\" leaves them out"
            )),
            false => tell(format_args!(
                "{unread} PDF or PostScript documents were not read: {}; PostScript needs Ghostscript (gs). \
                 input.printed = \"skip\" leaves them out",
                lacks("reads no PDF", "pdf")
            )),
        }
    }
    for (input, offset) in records.torn.iter().take(TORN_TOLD) {
        tell(format_args!("{input} is torn: it ends within the record at offset {offset}; copy or download it again"));
    }
    if records.torn.len() > TORN_TOLD {
        let more = records.torn.len() - TORN_TOLD;
        tell(format_args!("{more} more files are torn: see records.torn in summary.json"));
    }
}

/// Formats counts by reason, the largest first. The smallest are combined if there are many.
fn commonest(counts: &BTreeMap<String, u64>) -> String {
    let mut counts: Vec<(&str, u64)> = counts.iter().map(|(reason, &n)| (reason.as_str(), n)).collect();
    counts.sort_by_key(|&(_, n)| Reverse(n));
    let mut told: Vec<String> = counts.iter().take(REASONS_TOLD).map(|(reason, n)| format!("{n} {reason}")).collect();
    let others: u64 = counts.iter().skip(REASONS_TOLD).map(|(_, n)| n).sum();
    if others > 0 {
        told.push(format!("{others} others"));
    }
    told.join(", ")
}
