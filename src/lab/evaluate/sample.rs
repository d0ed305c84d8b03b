//! Random samples of pairs, and the sheet on which a person judges them.
//!
//! Pairs are drawn by a hash of their doc ids. The same run yields the same pairs, evenly spread
//! over each stratum, for any order of rows.
//!
//! # Source
//! \[MJS07\] section 4.1: "we randomly sampled an equal number of pairs of fingerprints that are at
//! Hamming distance exactly k" and tagged each as true positive, false positive or unknown.

use std::collections::{BTreeMap, BinaryHeap};
use std::fmt::Write;

use webtwin_base::ids::{DocId, splitmix64};
use webtwin_core::explain::diff::{DiffPiece, pieces};
use webtwin_evaluate::TruthComparison;

/// Number of unchanged lines that are shown around a change.
const CONTEXT: usize = 3;

/// Relation of a pair to the run and the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stratum {
    /// In one trivial cluster, and copies by the truth.
    Found,
    /// In one trivial cluster, but not copies by the truth.
    False,
    /// Copies by the truth, but not in one trivial cluster.
    Missed,
    /// A pair of the run at this Hamming distance, in bits.
    Distance(u32),
}

impl std::fmt::Display for Stratum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stratum::Found => f.write_str("found"),
            Stratum::False => f.write_str("false"),
            Stratum::Missed => f.write_str("missed"),
            Stratum::Distance(bits) => write!(f, "distance {bits}"),
        }
    }
}

/// Pairs drawn from each stratum, with their hashes.
#[derive(Debug, Default)]
pub(super) struct Draw {
    strata: BTreeMap<Stratum, BinaryHeap<(u64, DocId, DocId)>>,
    per_stratum: usize,
}

impl Draw {
    /// Makes a draw of at most `per_stratum` pairs from every stratum.
    pub(super) fn new(per_stratum: usize) -> Draw {
        Draw { strata: BTreeMap::new(), per_stratum }
    }

    /// Adds a pair to the draw. Each pair must be added only once.
    pub(super) fn add(&mut self, stratum: Stratum, x: DocId, y: DocId) {
        let (a, b) = (x.min(y), x.max(y));
        let heap = self.strata.entry(stratum).or_default();
        let hash = splitmix64(a ^ splitmix64(b));
        if heap.len() < self.per_stratum || heap.peek().is_some_and(|last| hash < last.0) {
            heap.push((hash, a, b));
            if heap.len() > self.per_stratum {
                heap.pop();
            }
        }
    }

    /// Returns the drawn pairs, by stratum.
    pub(super) fn pairs(self) -> Vec<(Stratum, DocId, DocId)> {
        let pairs_of_stratum = |(stratum, pairs): (Stratum, BinaryHeap<_>)| {
            pairs.into_sorted_vec().into_iter().map(move |(_, a, b)| (stratum, a, b))
        };
        self.strata.into_iter().flat_map(pairs_of_stratum).collect()
    }
}

/// Draws pairs that were found, found falsely, and missed by the truth. Pairs that the truth leaves
/// undecided are omitted.
///
/// # Cost
/// One hash per pair, so trivial clusters of a hundred thousand pages take long.
pub(super) fn draw(comparison: &TruthComparison<'_>, per_stratum: usize) -> Draw {
    let mut draw = Draw::new(per_stratum);
    let mut rows: Vec<(Option<DocId>, Option<u32>, DocId)> = comparison.known_pages().collect();
    rows.sort_unstable();
    for cluster in rows.chunk_by(|x, y| x.0 == y.0).filter(|cluster| cluster[0].0.is_some()) {
        for (number, x) in cluster.iter().enumerate() {
            for y in &cluster[number + 1..] {
                if x.1.is_some() && x.1 == y.1 {
                    draw.add(Stratum::Found, x.2, y.2);
                } else if comparison.are_undecided(x.2, y.2) == Some(false) {
                    draw.add(Stratum::False, x.2, y.2);
                }
            }
        }
    }
    rows.retain(|row| row.1.is_some());
    rows.sort_unstable_by_key(|row| (row.1, row.0, row.2));
    for copies in rows.chunk_by(|x, y| x.1 == y.1) {
        for (number, x) in copies.iter().enumerate() {
            for y in copies[number + 1..].iter().filter(|y| x.0.is_none() || x.0 != y.0) {
                draw.add(Stratum::Missed, x.2, y.2);
            }
        }
    }
    draw
}

/// A drawn pair with its pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SampledPair {
    /// Stratum for which the pair was drawn.
    pub(super) stratum: Stratum,
    /// URLs of the two pages.
    pub(super) urls: [String; 2],
    /// Visible texts of the two pages.
    pub(super) texts: [String; 2],
}

/// Returns the tags file for the person to fill in, with every pair tagged unknown.
pub(super) fn tags_file(pairs: &[SampledPair]) -> String {
    let mut tsv = String::from("url_a\turl_b\ttag\tnote\tstratum\n");
    for SampledPair { stratum, urls: [a, b], .. } in pairs {
        let _ = writeln!(tsv, "{a}\t{b}\tunknown\t\t{stratum}");
    }
    tsv
}

/// Returns the sheet: an HTML page with the texts of each pair next to each other. Unchanged lines
/// far from any change are omitted.
pub(super) fn sheet(pairs: &[SampledPair]) -> String {
    let mut html = String::from(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<title>Pairs to judge</title>\n<style>\n\
         body { font: 14px sans-serif } table { width: 100%; table-layout: fixed; border-collapse: collapse }\n\
         td { width: 50%; vertical-align: top; white-space: pre-wrap; overflow-wrap: anywhere; padding: 0 .5em }\n\
         .gone { background: #fdd } .come { background: #dfd } .skipped { color: #888; text-align: center }\n</style>\n",
    );
    for (number, SampledPair { stratum, urls, texts: [left, right] }) in pairs.iter().enumerate() {
        let [a, b] = urls.each_ref().map(|url| escape(url));
        let _ = writeln!(
            html,
            "<h2>{}: {stratum}</h2>\n<table>\n<tr><th><a href=\"{a}\">{a}</a><th><a href=\"{b}\">{b}</a>",
            number + 1
        );
        for piece in pieces(left, right, CONTEXT) {
            let _ = match piece {
                DiffPiece::Skipped(lines) => {
                    writeln!(html, "<tr><td colspan=\"2\" class=\"skipped\">{lines} lines of both")
                }
                DiffPiece::Same(lines) => {
                    let text = escape(&lines.join("\n"));
                    writeln!(html, "<tr><td>{text}<td>{text}")
                }
                DiffPiece::Changed { left, right } => writeln!(
                    html,
                    "<tr><td class=\"gone\">{}<td class=\"come\">{}",
                    escape(&left.join("\n")),
                    escape(&right.join("\n"))
                ),
            };
        }
        html.push_str("</table>\n");
    }
    html
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_is_independent_of_order_and_at_most_the_requested_size() {
        let pairs: Vec<(DocId, DocId)> = (0..50).map(|n| (n, n + 100)).collect();
        let draw = |pairs: &mut dyn Iterator<Item = &(DocId, DocId)>| {
            let mut draw = Draw::new(7);
            pairs.for_each(|&(a, b)| draw.add(Stratum::Distance((a % 2) as u32), b, a));
            draw.pairs()
        };
        let pairs_drawn = draw(&mut pairs.iter());
        assert_eq!(
            (pairs_drawn.len(), pairs_drawn[6].0, pairs_drawn[7].0),
            (14, Stratum::Distance(0), Stratum::Distance(1))
        );
        assert!(
            pairs_drawn.iter().all(|&(stratum, a, b)| b == a + 100 && stratum == Stratum::Distance((a % 2) as u32))
        );
        assert_eq!(pairs_drawn, draw(&mut pairs.iter().rev()));
    }

    #[test]
    fn a_page_cannot_write_into_the_sheet() {
        let [left, right] = ["<script>\nx", "</table>\nx"].map(str::to_owned);
        let urls = ["http://a/?\"&", "http://b/"].map(str::to_owned);
        let pair = SampledPair { stratum: Stratum::Missed, urls, texts: [left, right] };
        let html = sheet(std::slice::from_ref(&pair));
        assert!(html.contains("&lt;script&gt;") && !html.contains("<script") && html.matches("</table>").count() == 1);
        assert!(html.contains("href=\"http://a/?&quot;&amp;\""));
        assert_eq!(tags_file(&[pair]).lines().nth(1), Some("http://a/?\"&\thttp://b/\tunknown\t\tmissed"));
    }
}
