//! Explanations of why two pages are, or are not, in one trivial cluster, and why two records of a
//! corpus are, or are not, [`duplicates`].
//!
//! [`evidence`] evaluates chunks and rivals, [`chain`] finds the pairs that joined two pages, and
//! [`diff`] computes the difference of their texts, either of two pages or, with [`captures`], of
//! one page in two crawls. An [`Explanation`] combines all results with conclusions in words;
//! [`describe`] formats it for people.

pub mod broken_lines;
pub mod captures;
pub mod chain;
pub mod diff;
pub mod duplicates;
pub mod evidence;

use std::fmt::Write;

use serde::Serialize;

use diff::DiffPiece;
use webtwin_base::ids::DocId;

/// Explanation of the relation of two pages in a run.
#[derive(Debug, Serialize)]
pub struct Explanation<'t> {
    /// The two pages, in the order of the request.
    pub pages: [PageSide; 2],
    /// True if the pages are in one trivial cluster.
    pub together: bool,
    /// Reasons why they are together or apart; the first reason decides.
    pub reasons: Vec<String>,
    /// Pairs that joined the pages, in path order; empty if they are apart.
    pub chain: Vec<ChainStep>,
    /// Comparison by shared chunks.
    pub overlap: OverlapEvidence,
    /// Comparison by simhashes.
    pub hamming: HammingEvidence,
    /// Chunks on both pages, in the order of the first page.
    pub shared_chunks: Vec<SharedChunk>,
    /// Difference of the texts, line by line.
    pub diff: Vec<DiffPiece<'t>>,
}

/// One of the two pages.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PageSide {
    /// Canonical URL of the page.
    pub url: String,
    /// Id of the page.
    #[serde(with = "webtwin_base::ids::as_text")]
    pub doc_id: DocId,
    /// Trivial cluster of the page and the number of pages in it; `None` if the page is alone.
    #[serde(serialize_with = "cluster_as_text")]
    pub cluster: Option<(DocId, usize)>,
    /// URL of the smallest exact copy, which represents the page, if that is another page.
    pub copy_of: Option<String>,
    /// Length of the visible text, in bytes.
    pub text_bytes: u64,
    /// Number of distinct chunks of the text, including those that do not count.
    pub chunks: usize,
    /// Collections that contain the page: URL of the root, and number of pages.
    pub collections: Vec<(String, usize)>,
}

/// Serializes the id as a string, as everywhere in JSON.
fn cluster_as_text<S: serde::Serializer>(label: &Option<(DocId, usize)>, to: S) -> Result<S::Ok, S::Error> {
    label.map(|(cluster, pages)| (cluster.to_string(), pages)).serialize(to)
}

/// A pair of the run, as a step of the chain.
#[derive(Debug, Serialize)]
pub struct ChainStep {
    /// URLs of the two pages.
    pub pages: [String; 2],
    /// Value of the column `measure` in the table `pairs`.
    pub measure: String,
    /// Value of the column `value` in the table `pairs`.
    pub value: u32,
}

/// Extent of the known chunks of other pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Knowledge {
    /// The whole crawl is known: the chunks that count are those that counted in the run.
    Crawl,
    /// Only pages on the two hosts are known: a chunk that is boilerplate or too frequent elsewhere
    /// counts here.
    Hosts,
}

/// Comparison of the two pages by shared chunks.
#[derive(Debug, Serialize)]
pub struct OverlapEvidence {
    /// True if the run made pairs by this measure.
    pub used: bool,
    /// True if the pages have the same whole text.
    pub exact: bool,
    /// F in the run's table `pairs`, if the pages, or the copies that represent them, are a pair
    /// there.
    pub pair: Option<u32>,
    /// F: number of chunks on both pages that count by the known pages.
    pub shared: u32,
    /// Number of chunks that count, on each page.
    pub chunks: [u32; 2],
    /// Minimum number of shared chunks that makes such pages similar; `None` if all chunks would
    /// not suffice.
    pub needed: Option<u32>,
    /// True if the shared chunks suffice in general, but not for these pages: they are on two hosts
    /// and not in mirrors of each other, and such a pair must share more.
    pub weak: bool,
    /// Pages whose chunks are known.
    pub known: Knowledge,
    /// Better matches that the guard preferred, for each page on the host of the other.
    pub better: [Vec<Rival>; 2],
}

/// A page that is a better match.
#[derive(Debug, Serialize)]
pub struct Rival {
    /// URL of the rival.
    pub url: String,
    /// Number of chunks shared with the rival.
    pub shared: u32,
    /// Number of chunks of the larger of the two pages.
    pub larger: u32,
}

/// Comparison of the two pages by simhashes.
#[derive(Debug, Serialize)]
pub struct HammingEvidence {
    /// True if the run made pairs by this measure.
    pub used: bool,
    /// Number of differing bits, if both pages have a simhash.
    pub distance: Option<u32>,
    /// Maximum number of bits in which similar pages differ.
    pub k: u32,
    /// Nearest page on the other's host, for each page, and its distance in bits, if that page
    /// is nearer than the other.
    pub nearer: [Option<(String, u32)>; 2],
}

/// A chunk on both pages.
#[derive(Debug, Serialize)]
pub struct SharedChunk {
    /// Text of the chunk.
    pub text: String,
    /// `counts`, or the reason why the chunk does not count: `template` or `frequent`.
    pub verdict: &'static str,
    /// Number of known pages that have the chunk.
    pub pages: u32,
}

/// Message for pages with so few chunks that the other page cannot be similar to them.
pub const TOO_FEW_CHUNKS: &str = "more than the smaller page has are needed";

/// Formats the difference of two texts, at most `limit` lines, and passes each line to
/// `line`.
fn difference(diff: &[DiffPiece<'_>], limit: usize, mut line: impl FnMut(&str)) {
    let mut lines: Vec<String> = Vec::new();
    for piece in diff {
        let mut add = |mark: char, text: &[&str]| lines.extend(text.iter().map(|text| format!("{mark} {text}")));
        match piece {
            DiffPiece::Same(same) => add(' ', same),
            DiffPiece::Changed { left, right } => {
                add('-', left);
                add('+', right);
            }
            DiffPiece::Skipped(skipped) => lines.push(format!("  ({skipped} lines of both)")),
        }
    }
    lines.iter().take(limit).for_each(|text| line(text));
    if lines.len() > limit {
        line(&format!("  ... and {} more (--limit)", lines.len() - limit));
    }
}

/// Adds a line of output for people. Replaces control characters of a page, which must not reach a
/// terminal.
fn printable(out: &mut String, text: &str) {
    out.extend(text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }));
    out.push('\n');
}

/// Formats the explanation for people, with at most `limit` chunks and `limit` lines of difference.
pub fn describe(explanation: &Explanation<'_>, limit: usize) -> String {
    let mut out = String::new();
    let mut line = |text: &str| printable(&mut out, text);
    for (name, side) in ["A", "B"].into_iter().zip(&explanation.pages) {
        line(&format!("{name}  {}", side.url));
        let mut description = format!("   {} bytes of text", side.text_bytes);
        if let Some(url) = &side.copy_of {
            let _ = write!(description, "; an exact copy of {url}, which represents it");
        }
        if let Some((_, pages)) = side.cluster {
            let _ = write!(description, "; in a trivial cluster of {pages} pages");
        }
        line(&description);
        for (root, pages) in &side.collections {
            line(&format!("   in a collection of {pages} pages at {root}"));
        }
    }
    line(if explanation.together { "TOGETHER in one trivial cluster:" } else { "APART:" });
    explanation.reasons.iter().for_each(|reason| line(&format!("  {reason}")));
    for (at, ChainStep { pages: [a, b], measure, value }) in explanation.chain.iter().enumerate() {
        line(&format!("  {}. {measure} {value}: {a} and {b}", at + 1));
        // The values of views and context are resemblances rather than F, so they need an
        // explanation.
        if measure == "views" {
            let percent = value / 10_000;
            line(&format!(
                "     two texts of one host with one title: without the boilerplate of the host their chunks have a \
                 resemblance of {percent} %, and with it of overlap.views or more"
            ));
        }
        if measure == "context" {
            let percent = value / 10_000;
            line(&format!(
                "     too little text in common, or kept apart by the guard; but they have the same name in mirrored \
                 collections, and their links to and from copies of the same pages (or their places below the roots, \
                 if a copy has no links) and all of their chunks agree by {percent} % on average, more than with any \
                 other page there"
            ));
        }
    }

    let not_used = |used: bool| if used { "" } else { " (not used by the run)" };
    let overlap = &explanation.overlap;
    line("BY MEASURE:");
    line(&format!(
        "  exact: {}",
        if overlap.exact { "the same text (or the same bytes, if there is little text)" } else { "not the same text" }
    ));
    if let Some(shared) = overlap.pair {
        line(&format!("  overlap: a pair of the run, {shared} chunks shared"));
    }
    let needed_text = overlap.needed.map_or(TOO_FEW_CHUNKS.into(), |needed| format!("{needed} are needed"));
    line(&format!(
        "  overlap: {} shared of {} and {} chunks that count, {needed_text}{}",
        overlap.shared,
        overlap.chunks[0],
        overlap.chunks[1],
        not_used(overlap.used)
    ));
    // With partial knowledge the counts may differ from those of the run, so the limitation is
    // printed with them.
    if overlap.known == Knowledge::Hosts {
        line(
            "    counted on the pages of the two hosts only; use --read-crawl, or output.fprint_docid in the run, \
            for exact counts",
        );
    }
    let distance =
        explanation.hamming.distance.map_or("not both pages have a simhash".into(), |bits| format!("{bits} bits"));
    line(&format!("  hamming: {distance}, k = {}{}", explanation.hamming.k, not_used(explanation.hamming.used)));

    line(&format!("CHUNKS ON BOTH: {}", explanation.shared_chunks.len()));
    for chunk in explanation.shared_chunks.iter().take(limit) {
        // Chunks can be long, and their beginning suffices to identify them.
        let text: String = chunk.text.chars().take(100).collect();
        line(&format!("  {:<8} on {:>5} pages  {}", chunk.verdict, chunk.pages, text.replace('\n', " | ")));
    }
    if explanation.shared_chunks.len() > limit {
        line(&format!("  ... and {} more (--limit)", explanation.shared_chunks.len() - limit));
    }

    line("DIFFERENCE, A - and B +:");
    difference(&explanation.diff, limit, line);
    out
}
