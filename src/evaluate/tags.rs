//! Files with the judgements of a person about pairs of pages.

use super::columns::read_columns;
use webtwin_base::error::{Error, Result};

/// Judgement of a person about a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PairTag {
    /// The pages are copies: they differ slightly, or like versions of one page.
    True,
    /// The pages are not copies of each other.
    False,
    /// The person cannot decide.
    Unknown,
    /// Not a judgement about a pair: the first page is kept and represents its copies. There is no
    /// second page.
    Keep,
}

/// A tagged pair, with URLs as written in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaggedPair {
    /// Number of the line in the file, from 1.
    pub line: usize,
    /// URLs of the two pages. The second is empty for [`PairTag::Keep`].
    pub urls: [String; 2],
    /// Judgement in the file.
    pub tag: PairTag,
    /// Note of the person.
    pub note: String,
}

/// Reads a tags file: the columns `url_a`, `url_b` and `tag`, among others, and `note` if it
/// exists.
///
/// # Errors
/// Returns the errors of a truth file, and [`Error::Input`] with the line for a tag other than
/// true, false, unknown and keep, for a pair without a second page, and for a page to keep with a
/// second page.
///
/// # Examples
/// ```
/// use webtwin_evaluate::tags::{PairTag, read_tags};
///
/// let text = "url_a\turl_b\ttag\nhttp://a.example/\thttp://b.example/\tfalse\n";
/// let rows = read_tags("tags.tsv", text)?;
/// assert_eq!((rows[0].line, rows[0].tag), (2, PairTag::False));
/// # Ok::<(), webtwin_base::error::Error>(())
/// ```
pub fn read_tags(file: &str, text: &str) -> Result<Vec<TaggedPair>> {
    let rows = read_columns(file, text, ["url_a", "url_b", "tag"], &["url_b", "note"], ["note"])?;
    let tagged = |(line, [a, b, tag], [note]): (usize, [&str; 3], [Option<&str>; 1])| {
        TaggedPair::parse(file, line, [a, b], tag, note.unwrap_or_default())
    };
    rows.into_iter().map(tagged).collect()
}

impl TaggedPair {
    /// Makes a tagged pair of the fields of a line.
    ///
    /// # Errors
    /// Returns [`Error::Input`] with the line for a tag other than true, false, unknown and keep,
    /// for a pair without a second page, and for a page to keep with a second page.
    pub fn parse(file: &str, line: usize, [a, b]: [&str; 2], tag: &str, note: &str) -> Result<TaggedPair> {
        let refuse = |what: String| Err(Error::input(file, format!("line {line}: {what}")));
        let tag = match tag {
            "true" => PairTag::True,
            "false" => PairTag::False,
            "unknown" => PairTag::Unknown,
            "keep" => PairTag::Keep,
            other => {
                return refuse(format!("the tag of {a} is {other}, but must be true, false, unknown or keep"));
            }
        };
        match (tag, b) {
            (PairTag::Keep, "") => {}
            (PairTag::Keep, _) => return refuse(format!("the tag of {a} is keep, so column url_b must be empty")),
            (_, "") => return refuse(format!("column url_b: empty, but the tag of {a} needs another page")),
            _ => {}
        }
        Ok(TaggedPair { line, urls: [a.into(), b.into()], tag, note: note.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_read_and_others_refused() {
        let rows = read_tags("t", "url_a\turl_b\ttag\tnote\nhttp://a/\thttp://b/\tfalse\t\n").unwrap();
        let urls = ["http://a/", "http://b/"].map(str::to_owned);
        assert_eq!(rows, [TaggedPair { line: 2, urls, tag: PairTag::False, note: String::new() }]);
        let tags = read_tags("t", "url_a\turl_b\ttag\n\nhttp://a/\t\tkeep\n").unwrap();
        assert_eq!((tags[0].line, tags[0].tag, tags[0].urls[1].as_str()), (3, PairTag::Keep, ""));
        for invalid in ["http://a/\t\tfalse", "http://a/\thttp://b/\tkeep", "\thttp://b/\tfalse"] {
            let error = read_tags("t", &format!("url_a\turl_b\ttag\n{invalid}\n")).unwrap_err().to_string();
            assert!(error.contains("line 2"), "{error}");
        }
        assert!(read_tags("t", "url_a\turl_b\ttag\na\tb\tperhaps\n").unwrap_err().to_string().contains("perhaps"));
    }
}
