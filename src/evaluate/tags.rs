//! A person's judgement of pairs, compared with the truth.
//!
//! The truth is made from names, and names deceive both ways: pages of equal name may have nothing in common, pages of
//! different names may be the same. So pairs of each [`Stratum`] are judged, and the outcomes are weighted by the sizes
//! of the strata:
//!
//! precision by tags = (found × share of true tags among the found + false × share among the false) / (found + false),
//! recall by tags = the same numerator divided by itself plus missed × share among the missed.
//!
//! The shares are over the tags true and false. They are valid for a stratum only if its pairs were drawn from this
//! very run; pairs drawn from another run are a sample of something else.

use std::collections::BTreeMap;

use super::columns::read_columns;
use super::report::row;
use super::sample::Stratum;
use super::{Comparison, PairCounts, Ratio, Row};
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::DocId;

/// A person's judgement of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tag {
    /// Copies: they differ slightly, or as versions of one page do.
    True,
    /// Not copies of each other.
    False,
    /// The person cannot tell.
    Unknown,
    /// No judgement of a pair: the first page stays for its copies. There is no second one.
    Keep,
}

/// A tagged pair, with URLs as written in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tagged {
    /// Line of the file, from 1.
    pub line: usize,
    /// URLs of the two pages; the second is empty with [`Tag::Keep`].
    pub urls: [String; 2],
    /// The judgement in the file.
    pub tag: Tag,
    /// What the person has noted.
    pub note: String,
}

/// Reads a tags file: the columns `url_a`, `url_b` and `tag`, among others; `note` if it is there.
///
/// # Errors
/// As for a truth; [`Error::Input`] with the line for a tag other than true, false, unknown and keep, for a pair without a second
/// page, and for a page to keep with one.
pub fn read_tags(file: &str, text: &str) -> Result<Vec<Tagged>> {
    let rows = read_columns(file, text, ["url_a", "url_b", "tag"], &["url_b", "note"], ["note"])?;
    let tagged = |(line, [a, b, tag], [note]): (usize, [&str; 3], [Option<&str>; 1])| {
        let refuse = |what: String| Err(Error::input(file, format!("line {line}: {what}")));
        let tag = match tag {
            "true" => Tag::True,
            "false" => Tag::False,
            "unknown" => Tag::Unknown,
            "keep" => Tag::Keep,
            other => {
                return refuse(format!("the tag of {a} is {other}, but must be true, false, unknown or keep"));
            }
        };
        match (tag, b) {
            (Tag::Keep, "") => {}
            (Tag::Keep, _) => return refuse(format!("{a} is to be kept, so url_b must be empty")),
            (_, "") => return refuse(format!("column url_b: empty, but {a} is judged with another page")),
            _ => {}
        }
        Ok(Tagged { line, urls: [a.into(), b.into()], tag, note: note.unwrap_or_default().into() })
    };
    rows.into_iter().map(tagged).collect()
}

impl Comparison<'_> {
    /// Counts of tagged pairs by stratum, and precision and recall by them; pairs with a page unknown to truth or run
    /// are only counted. Pages to keep are no pairs: leave them out.
    pub fn by_tags(&self, tagged: &[(DocId, DocId, Tag)], pairs: &PairCounts) -> Vec<Row> {
        let mut counts: BTreeMap<Stratum, BTreeMap<Tag, u64>> = BTreeMap::new();
        let (mut unknown_pages, mut apart, mut undecided) = (0, 0, 0);
        for &(a, b, tag) in tagged {
            let stratum = match self.are_together(a, b).zip(self.are_copies(a, b)) {
                None => {
                    unknown_pages += 1;
                    continue;
                }
                Some((true, true)) => Stratum::Found,
                Some((true, false)) if self.are_undecided(a, b) == Some(true) => {
                    undecided += 1;
                    continue;
                }
                Some((true, false)) => Stratum::False,
                Some((false, true)) => Stratum::Missed,
                Some((false, false)) => {
                    apart += 1;
                    continue;
                }
            };
            *counts.entry(stratum).or_default().entry(tag).or_default() += 1;
        }
        let of = |stratum, tag| counts.get(&stratum).and_then(|tags| tags.get(&tag)).copied().unwrap_or(0);
        let share = |stratum| {
            let part = of(stratum, Tag::True);
            Ratio { part, whole: part + of(stratum, Tag::False) }
        };
        let mut rows = Vec::new();
        for stratum in [Stratum::Found, Stratum::False, Stratum::Missed] {
            for (tag, word) in [(Tag::True, "true"), (Tag::False, "false"), (Tag::Unknown, "unknown")] {
                rows.push(row(&format!("{stratum} pairs tagged {word}"), Some(of(stratum, tag) as f64), "pairs"));
            }
            rows.push(row(&format!("share of true among tagged {stratum} pairs"), share(stratum).value(), "share"));
        }
        rows.push(row("tagged pairs neither predicted nor true", Some(f64::from(apart)), "pairs"));
        rows.push(row("tagged pairs that are accidental or open", Some(f64::from(undecided)), "pairs"));
        rows.push(row("tagged pairs with unknown pages", Some(f64::from(unknown_pages)), "pairs"));

        // A stratum without pairs needs no tags.
        let true_of = |stratum, size: u64| match size {
            0 => Some(0.0),
            _ => share(stratum).value().map(|share| share * size as f64),
        };
        let (found, missed) = (pairs.hits, pairs.actual - pairs.hits);
        let among_predicted = true_of(Stratum::Found, found)
            .zip(true_of(Stratum::False, pairs.decided() - found))
            .map(|(found, false_by_truth)| found + false_by_truth);
        let precision = among_predicted.filter(|_| pairs.decided() > 0).map(|hits| hits / pairs.decided() as f64);
        let recall = among_predicted.zip(true_of(Stratum::Missed, missed)).map(|(hits, missed)| hits / (hits + missed));
        rows.push(row("pair precision by tags", precision, "share"));
        rows.push(row("pair recall by tags", recall.filter(|recall| recall.is_finite()), "share"));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ClusterRow, PageRow, TruthRow};
    use super::*;

    #[test]
    fn tags_are_read_and_others_refused() {
        let rows = read_tags("t", "url_a\turl_b\ttag\tnote\nhttp://a/\thttp://b/\tfalse\t\n").unwrap();
        let urls = ["http://a/", "http://b/"].map(str::to_owned);
        assert_eq!(rows, [Tagged { line: 2, urls, tag: Tag::False, note: String::new() }]);
        let kept = read_tags("t", "url_a\turl_b\ttag\n\nhttp://a/\t\tkeep\n").unwrap();
        assert_eq!((kept[0].line, kept[0].tag, kept[0].urls[1].as_str()), (3, Tag::Keep, ""));
        for wrong in ["http://a/\t\tfalse", "http://a/\thttp://b/\tkeep", "\thttp://b/\tfalse"] {
            let error = read_tags("t", &format!("url_a\turl_b\ttag\n{wrong}\n")).unwrap_err().to_string();
            assert!(error.contains("line 2"), "{error}");
        }
        assert!(read_tags("t", "url_a\turl_b\ttag\na\tb\tperhaps\n").unwrap_err().to_string().contains("perhaps"));
    }

    /// Two pages of name p and one of q in one cluster, a third of p outside: 1 found, 2 false, 2 missed.
    #[test]
    fn strata_are_weighted_by_their_sizes() {
        let truth: Vec<TruthRow> = ["p", "p", "q", "p"]
            .into_iter()
            .enumerate()
            .map(|(at, page)| TruthRow {
                url: format!("http://h{at}/"),
                target: "t".into(),
                version: at.to_string(),
                page: page.into(),
                variant: "real".into(),
                ..Default::default()
            })
            .collect();
        let pages: Vec<PageRow> =
            (0..).zip(&truth).map(|(doc_id, row)| PageRow { doc_id, url: row.url.clone(), body: 0 }).collect();
        let clusters = [0, 1, 2].map(|doc_id| ClusterRow { cluster: 0, doc_id });
        let comparison = Comparison::new(&pages, &clusters, &truth);
        let pairs = comparison.report(&[], &[]).pairs;
        assert_eq!(pairs, PairCounts { predicted: 3, actual: 3, hits: 1, ..Default::default() });
        let drawn = comparison.draw(9).pairs();
        let of = |stratum| drawn.iter().filter(|row| row.0 == stratum).count();
        assert_eq!([Stratum::Found, Stratum::False, Stratum::Missed].map(of), [1, 2, 2]);

        let tagged = [(0, 1, Tag::True), (0, 2, Tag::True), (1, 2, Tag::False), (3, 0, Tag::True), (9, 0, Tag::True)];
        let rows = comparison.by_tags(&tagged, &pairs);
        let ours = |what: &str| rows.iter().find(|row| row.what == what).unwrap().ours;
        // 1 found and half of the 2 false are true, of 3; both missed are.
        assert_eq!(ours("pair precision by tags"), Some(2.0 / 3.0));
        assert_eq!(ours("pair recall by tags"), Some(2.0 / 4.0));
        assert_eq!(ours("tagged pairs with unknown pages"), Some(1.0));
        assert_eq!(comparison.by_tags(&[], &pairs).last().unwrap().ours, None);
    }
}
