//! Changes of a page between two crawls.

use serde::Serialize;

use super::diff::DiffPiece;
use super::{difference, printable};

/// A page in two crawls, the older one first.
#[derive(Debug, Serialize)]
pub struct Captures<'t> {
    /// Canonical URL of the page.
    pub url: String,
    /// Capture of the page in each crawl.
    pub captures: [ExplainedCapture; 2],
    /// True if both captures have the same bytes.
    pub same_bytes: bool,
    /// True if both captures have the same text.
    pub same_text: bool,
    /// Number of differing bits of the simhashes, if both captures have one of the same recipe.
    pub bits: Option<u32>,
    /// Number of distinct chunks that both texts have.
    pub shared_chunks: u32,
    /// Difference of the texts, line by line.
    pub diff: Vec<DiffPiece<'t>>,
}

/// A page in one crawl.
#[derive(Debug, Clone, Serialize)]
pub struct ExplainedCapture {
    /// Time of the fetch, in ISO 8601.
    pub fetched: String,
    /// Length of the visible text, in bytes.
    pub text_bytes: u64,
    /// Number of distinct chunks of the text.
    pub chunks: u32,
    /// File that contains the record.
    pub source: String,
    /// Offset of the record in the file.
    pub offset: u64,
}

/// Formats the change for people, with at most `limit` lines of difference.
pub fn describe(explanation: &Captures<'_>, limit: usize) -> String {
    let mut out = String::new();
    let mut line = |text: &str| printable(&mut out, text);
    line(&explanation.url);
    for (mark, capture) in ["OLD -", "NEW +"].into_iter().zip(&explanation.captures) {
        let ExplainedCapture { fetched, text_bytes, source, offset, .. } = capture;
        line(&format!("{mark}  {fetched}: {text_bytes} bytes of text; {source} at offset {offset}"));
    }
    line(match (explanation.same_bytes, explanation.same_text) {
        (true, _) => "SAME: equal bytes",
        (_, true) => "SAME TEXT, different bytes",
        _ => "CHANGED:",
    });
    let chunk_count = explanation.captures[0].chunks.max(explanation.captures[1].chunks);
    line(&format!("  {} chunks shared of {chunk_count}", explanation.shared_chunks));
    line(
        &explanation
            .bits
            .map_or("  not both captures have a simhash".into(), |bits| format!("  {bits} bits between the simhashes")),
    );
    if !explanation.same_text {
        line("DIFFERENCE:");
        difference(&explanation.diff, limit, line);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::diff::pieces;

    #[test]
    fn change_is_shown_line_by_line_without_repeating_equal_lines() {
        let capture =
            ExplainedCapture { fetched: "then".into(), text_bytes: 3, chunks: 2, source: "f".into(), offset: 7 };
        let mut explanation = Captures {
            url: "http://a/".into(),
            captures: [capture.clone(), capture],
            same_bytes: false,
            same_text: false,
            bits: Some(4),
            shared_chunks: 1,
            diff: pieces("a\nb\u{1b}", "a\nc", 2),
        };
        let text = describe(&explanation, 2);
        assert!(text.contains("CHANGED:\n  1 chunks shared of 2\n  4 bits"), "{text}");
        assert!(text.ends_with("  a\n- b\u{fffd}\n  ... and 1 more (--limit)\n"), "{text}");
        explanation.same_text = true;
        assert!(describe(&explanation, 2).ends_with("4 bits between the simhashes\n"));
    }
}
