//! Outcome for the pages that a person has pinned (`keep.pins`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::verdict::PageVerdict;
use crate::reading::captures::Crawl;
use webtwin_base::error::Result;
use webtwin_base::ids::{DocId, Page};
use webtwin_engine::Net;
use webtwin_results::decisions::Pin;
use webtwin_spill::SpillColumn;

/// Counts of pins by outcome. `pins` is the sum of the other numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinCounts {
    /// Pages that are pinned.
    pub pins: u64,
    /// Pins that are kept for their copies.
    pub kept: u64,
    /// Pins without copies, which are kept in any case.
    pub alone: u64,
    /// Pins with a copy that is pinned, too, and is kept instead.
    pub second: u64,
    /// Pins that are not in this crawl.
    pub gone: u64,
    /// First pins of the file with their outcomes. Pins that are not kept come first.
    pub shown: Vec<PinOutcome>,
}

/// Outcome of a pin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinOutcome {
    /// Canonical URL of the page.
    pub url: String,
    /// Reason that the person gave for the pin.
    pub reason: String,
    /// One of `kept`, `alone`, `second` and `gone`.
    pub outcome: String,
    /// URL of the page that is kept instead; empty unless the outcome is `second`.
    pub keep_url: String,
}

/// Maximum number of pins that are shown.
const MAX_SHOWN_PINS: usize = 100;

/// Returns the pinned pages, ascending.
///
/// # Errors
/// Returns any error of the disk, on which doc ids may be.
pub fn pages(crawl: &Crawl, pins: &[Pin]) -> Result<Vec<Page>> {
    if pins.is_empty() {
        return Ok(Vec::new());
    }
    let by_doc_id = crawl.directory.by_doc_id()?;
    let mut pages: Vec<Page> = pins.iter().filter_map(|pin| by_doc_id.page(pin.doc_id)).collect();
    pages.sort_unstable();
    Ok(pages)
}

/// Returns the outcome for all pins, the same on every worker; `None` without `keep.pins`.
/// `verdicts` must be final.
///
/// # Errors
/// Returns any error of the disk, and an error if the run has ended.
pub fn outcome(
    net: &mut Net<'_>,
    crawl: &Crawl,
    is_asked: bool,
    pins: &[Pin],
    verdicts: &SpillColumn<PageVerdict>,
) -> Result<Option<PinCounts>> {
    if !is_asked {
        return Ok(None);
    }
    let by_doc_id = crawl.directory.by_doc_id()?;
    let id = |page: Page| by_doc_id.doc_ids()[page];
    // The page that is kept, for each pinned page with copies. It is pinned, too.
    let mut own_pins: Vec<(DocId, DocId)> = Vec::new();
    for block in verdicts.blocks() {
        let block = block?;
        own_pins.extend(block.iter().filter(|row| row.is_pinned()).map(|row| (id(row.page), id(row.keep))));
    }
    let stays: BTreeMap<DocId, DocId> = net.all_gather("outcome of pins", own_pins)?.into_iter().flatten().collect();
    let urls: BTreeMap<DocId, &str> = pins.iter().map(|pin| (pin.doc_id, pin.url.as_str())).collect();
    let mut counts = PinCounts { pins: pins.len() as u64, ..PinCounts::default() };
    for pin in pins {
        let (number, outcome, keep_url) = match (by_doc_id.page(pin.doc_id), stays.get(&pin.doc_id)) {
            (None, _) => (&mut counts.gone, "gone", ""),
            (_, None) => (&mut counts.alone, "alone", ""),
            (_, Some(keep)) if *keep == pin.doc_id => (&mut counts.kept, "kept", ""),
            (_, Some(keep)) => (&mut counts.second, "second", urls.get(keep).copied().unwrap_or_default()),
        };
        *number += 1;
        let message = [&pin.url, &pin.reason, outcome, keep_url].map(str::to_owned);
        let [url, reason, outcome, keep_url] = message;
        counts.shown.push(PinOutcome { url, reason, outcome, keep_url });
    }
    counts.shown.sort_by_key(|message| matches!(message.outcome.as_str(), "kept" | "alone"));
    counts.shown.truncate(MAX_SHOWN_PINS);
    Ok(Some(counts))
}
