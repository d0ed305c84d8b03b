//! Exports of the avoid list in the formats that crawlers read.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::file_part::FilePart;
use super::heritrix::{BEANS_END, BEANS_HEAD, SurtRules, bean_lines, surt_lines};
use super::prefixes::SkipPrefix;
use webtwin_base::error::Result;

/// Part of the avoid list for one site. Orders by its first prefix.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AvoidLists {
    /// Prefixes, ascending by URL.
    pub prefixes: Vec<SkipPrefix>,
    /// Rules for Heritrix. The first site of a host has the rules of all sites of the host.
    pub surt_rules: SurtRules,
}

/// A prefix that is not a whole URL. Orders by number of pages, largest first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WidePrefix {
    pages: Reverse<u64>,
    prefix: String,
    bytes: u64,
}

impl AvoidLists {
    /// Returns the prefixes that are not whole URLs.
    pub fn wide(&self) -> impl Iterator<Item = WidePrefix> + '_ {
        let wide = self.prefixes.iter().filter(|prefix| !prefix.single);
        wide.map(|SkipPrefix { prefix, pages, bytes, .. }| WidePrefix {
            pages: Reverse(*pages),
            prefix: prefix.clone(),
            bytes: *bytes,
        })
    }
}

/// Format of a text file made of rows, in the order in which they are passed.
pub struct RowExport<Row> {
    /// Name of the file.
    pub name: &'static str,
    pub(super) head: &'static str,
    /// Text in place of the head if there are no lines.
    pub(super) head_of_none: &'static str,
    pub(super) lines: fn(&Row, &mut String),
    pub(super) end: &'static str,
}

impl<Row: Clone> RowExport<Row> {
    pub(super) const fn of_lines(name: &'static str, lines: fn(&Row, &mut String)) -> RowExport<Row> {
        RowExport { name, head: "", head_of_none: "", lines, end: "" }
    }

    /// Writes the text of a part of the file, which has the given rows, to `put_text`, piece by
    /// piece.
    ///
    /// # Errors
    /// Returns any error of the rows and of `put_text`.
    pub fn write<'r>(
        &self,
        part: FilePart,
        rows: impl Iterator<Item = Result<Cow<'r, Row>>>,
        mut put_text: impl FnMut(&str) -> Result<()>,
    ) -> Result<()>
    where
        Row: 'r,
    {
        let (mut lines, mut head) = (String::new(), part.is_first().then_some(self.head));
        for row in rows {
            (self.lines)(&*row?, &mut lines);
            if !lines.is_empty() {
                head.take().map_or(Ok(()), &mut put_text)?;
                put_text(&lines)?;
                lines.clear();
            }
        }
        // Only a file that is not divided may have no lines at all.
        let unused_head = if part == FilePart::WHOLE { self.head_of_none } else { self.head };
        head.map_or(Ok(()), |_| put_text(unused_head))?;
        if part.is_last() { put_text(self.end) } else { Ok(()) }
    }

    /// Returns the text of some rows.
    pub fn text(&self, rows: &[Row]) -> String {
        let mut text = String::new();
        let append = |piece: &str| {
            text.push_str(piece);
            Ok(())
        };
        let rows = rows.iter().map(|row| Ok(Cow::Borrowed(row)));
        self.write(FilePart::WHOLE, rows, append).expect("neither rows nor text fail");
        text
    }
}

/// Module for Scrapy that reads these lists, as (file name, text).
pub const SCRAPY: (&str, &str) = ("scrapy_webtwin.py", include_str!("../../../clients/scrapy/scrapy_webtwin.py"));

/// Exports for crawlers, made of the avoid lists of all sites.
///
/// | file | reader | form |
/// |---|---|---|
/// | `urls.txt` | any crawler | whole URLs that no prefix covers |
/// | `prefixes.txt` | any crawler | URL prefixes |
/// | `regex-urlfilter.txt` | Nutch | `-^` and a regular expression per line, then `+.` |
/// | [`SCRAPY`] | Scrapy | a middleware that reads `urls.txt` and `prefixes.txt` |
/// | `scrapy-deny.txt` | Scrapy `LinkExtractor(deny=...)` | a regular expression per line |
/// | `browsertrix.yaml` | Browsertrix | `exclude`, a list of regular expressions |
/// | `heritrix-surts.txt` | Heritrix | `+` and a SURT prefix per line |
/// | `heritrix-beans.xml` | Heritrix | rules that read `heritrix-surts.txt`, and reject the URLs that no prefix may cover |
///
/// # Examples
/// ```
/// use webtwin_core::applications::exports::{AvoidLists, EXPORTS};
/// use webtwin_core::applications::prefixes::SkipPrefix;
///
/// let prefix = |url: &str, single| SkipPrefix { prefix: url.into(), single, pages: 1, bytes: 9 };
/// let prefixes = vec![prefix("http://a.example/m/", false), prefix("http://a.example/x", true)];
/// let sites = [AvoidLists { prefixes, ..AvoidLists::default() }];
///
/// let [urls, prefixes, ..] = &EXPORTS;
/// assert_eq!((urls.name, urls.text(&sites)), ("urls.txt", "http://a.example/x\n".into()));
/// assert_eq!(prefixes.text(&sites), "http://a.example/m/\n");
/// ```
pub const EXPORTS: [RowExport<AvoidLists>; 7] = [
    RowExport::of_lines("urls.txt", |site, text| for_each_prefix(site, |p| p.single, |p| line(text, &p.prefix))),
    RowExport::of_lines("prefixes.txt", |site, text| for_each_prefix(site, |p| !p.single, |p| line(text, &p.prefix))),
    RowExport {
        end: "+.\n",
        ..RowExport::of_lines("regex-urlfilter.txt", |site, text| {
            for_each_prefix(site, |_| true, |p| line(text, &format!("-{}", regex(p))))
        })
    },
    RowExport::of_lines("scrapy-deny.txt", |site, text| for_each_prefix(site, |_| true, |p| line(text, &regex(p)))),
    RowExport {
        head: "exclude:\n",
        head_of_none: "exclude: []\n",
        // In YAML a quote within single quotes is doubled.
        ..RowExport::of_lines("browsertrix.yaml", |site, text| {
            for_each_prefix(site, |_| true, |p| line(text, &format!("  - '{}'", regex(p).replace('\'', "''"))))
        })
    },
    RowExport::of_lines("heritrix-surts.txt", |site, text| surt_lines(&site.surt_rules, text)),
    RowExport {
        head: BEANS_HEAD,
        head_of_none: BEANS_HEAD,
        end: BEANS_END,
        ..RowExport::of_lines("heritrix-beans.xml", |site, text| bean_lines(&site.surt_rules, escape, text))
    },
];

/// Export for people: a table of prefix, pages and bytes, made of [`AvoidLists::wide`].
pub const BY_PAGES: RowExport<WidePrefix> = RowExport {
    name: "prefixes.tsv",
    head: PREFIXES_HEAD,
    head_of_none: PREFIXES_HEAD,
    lines: |WidePrefix { pages, prefix, bytes }, text| {
        writeln!(text, "{prefix}\t{}\t{bytes}", pages.0).expect("writing to a string")
    },
    end: "",
};

const PREFIXES_HEAD: &str = "prefix\tpages\tbytes\n";

fn for_each_prefix(site: &AvoidLists, is_selected: impl Fn(&SkipPrefix) -> bool, visit: impl FnMut(&SkipPrefix)) {
    site.prefixes.iter().filter(|prefix| is_selected(prefix)).for_each(visit);
}

fn line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

fn regex(prefix: &SkipPrefix) -> String {
    format!("^{}{}", escape(&prefix.prefix), if prefix.single { "$" } else { "" })
}

/// Escapes every character that has a meaning in regular expressions.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if matches!(character, '\\' | '.' | '+' | '*' | '?' | '(' | ')' | '|' | '[' | ']' | '{' | '}' | '^' | '$') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_crawler_gets_its_own_form() {
        let prefix =
            |prefix: &str, single, pages| SkipPrefix { prefix: prefix.into(), single, pages, bytes: 10 * pages };
        let site = AvoidLists {
            prefixes: vec![prefix("http://a.b/m/", false, 3), prefix("http://a.b/x?y'", true, 1)],
            surt_rules: SurtRules { prefixes: vec!["http://(b,a,)/m/".into()], urls: vec!["http://a.b/x?y&z".into()] },
        };
        let export_of = |name| EXPORTS.iter().find(|export| export.name == name).unwrap();
        let whole = |name| export_of(name).text(std::slice::from_ref(&site));
        assert_eq!(whole("urls.txt"), "http://a.b/x?y'\n");
        assert_eq!(whole("prefixes.txt"), "http://a.b/m/\n");
        assert_eq!(whole("regex-urlfilter.txt"), "-^http://a\\.b/m/\n-^http://a\\.b/x\\?y'$\n+.\n");
        assert_eq!(whole("scrapy-deny.txt"), "^http://a\\.b/m/\n^http://a\\.b/x\\?y'$\n");
        assert_eq!(whole("browsertrix.yaml"), "exclude:\n  - '^http://a\\.b/m/'\n  - '^http://a\\.b/x\\?y''$'\n");
        assert_eq!(whole("heritrix-surts.txt"), "+http://(b,a,)/m/\n");
        assert!(whole("heritrix-beans.xml").contains("<value>http://a\\.b/x\\?y&amp;z</value>"));
        let mut wide: Vec<WidePrefix> =
            [site, AvoidLists { prefixes: vec![prefix("http://c.d/", false, 4)], ..AvoidLists::default() }]
                .iter()
                .flat_map(AvoidLists::wide)
                .collect();
        wide.sort();
        assert_eq!(BY_PAGES.text(&wide), "prefix\tpages\tbytes\nhttp://c.d/\t4\t40\nhttp://a.b/m/\t3\t30\n");
    }

    #[test]
    fn parts_of_a_file_are_the_file() {
        let site = |prefix: &str| AvoidLists {
            prefixes: vec![SkipPrefix { prefix: prefix.into(), single: true, pages: 1, bytes: 1 }],
            surt_rules: SurtRules { prefixes: Vec::new(), urls: vec![prefix.into()] },
        };
        let sites = ["http://a/", "http://b/", "http://c/"].map(site);
        for export in &EXPORTS {
            let mut text = String::new();
            // The last part has no rows.
            for (number, rows) in [&sites[..1], &sites[1..], &[]].into_iter().enumerate() {
                let rows = rows.iter().map(|row| Ok(Cow::Borrowed(row)));
                let append = |piece: &str| {
                    text.push_str(piece);
                    Ok(())
                };
                export.write(FilePart { number, count: 3 }, rows, append).unwrap();
            }
            assert_eq!(text, export.text(&sites), "{}", export.name);
        }
    }

    #[test]
    fn empty_list_is_valid() {
        let whole = |name| EXPORTS.iter().find(|export| export.name == name).unwrap().text(&[]);
        assert_eq!(whole("urls.txt"), "");
        assert_eq!(whole("regex-urlfilter.txt"), "+.\n");
        assert_eq!(whole("browsertrix.yaml"), "exclude: []\n");
        assert!(whole("heritrix-beans.xml").contains("<list>\n    </list>"));
        assert_eq!(BY_PAGES.text(&[]), "prefix\tpages\tbytes\n");
    }
}
