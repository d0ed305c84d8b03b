//! The avoid list in the forms that crawlers read.

use std::fmt::Write;

use super::heritrix::{SurtRules, beans, surt_lines};
use super::prefixes::Prefix;

/// The middleware for Scrapy that reads these lists.
const SCRAPY: &str = include_str!("scrapy_webtwin.py");

/// What the exports are made of.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct AvoidLists {
    /// By URL, ascending by host, then URL.
    pub prefixes: Vec<Prefix>,
    /// For Heritrix, a set a host, in an order of their own.
    pub surt_rules: Vec<SurtRules>,
}

/// File name and text of every export, one after the other.
///
/// | file | who reads it | form |
/// |---|---|---|
/// | `prefixes.tsv` | people | prefix, pages, bytes, most pages first |
/// | `urls.txt` | any crawler | whole URLs that no prefix covers |
/// | `prefixes.txt` | any crawler | URL prefixes |
/// | `regex-urlfilter.txt` | Nutch | `-^` and a regular expression per line, then `+.` |
/// | `scrapy_webtwin.py` | Scrapy | a middleware that reads `urls.txt` and `prefixes.txt` |
/// | `scrapy-deny.txt` | Scrapy `LinkExtractor(deny=...)` | a regular expression per line |
/// | `browsertrix.yaml` | Browsertrix | `exclude`, a list of regular expressions |
/// | `heritrix-surts.txt` | Heritrix | `+` and a SURT prefix per line |
/// | `heritrix-beans.xml` | Heritrix | rules that read this file, and reject the URLs that no prefix may stand for |
pub fn exports(lists: &AvoidLists) -> impl Iterator<Item = (&'static str, String)> + '_ {
    of_prefixes(&lists.prefixes).chain(of_surt_rules(&lists.surt_rules))
}

/// Those made of prefixes. Each is made when it is asked for: together they take more memory than the lists.
pub fn of_prefixes(prefixes: &[Prefix]) -> impl Iterator<Item = (&'static str, String)> + '_ {
    OF_PREFIXES.iter().map(|(name, text)| (*name, text(prefixes)))
}

/// Those made of rules for Heritrix, likewise.
pub fn of_surt_rules(surt_rules: &[SurtRules]) -> impl Iterator<Item = (&'static str, String)> + '_ {
    OF_SURT_RULES.iter().map(|(name, text)| (*name, text(surt_rules)))
}

/// What makes the text of an export.
type Text<Of> = fn(&[Of]) -> String;

const OF_PREFIXES: [(&str, Text<Prefix>); 7] = [
    ("prefixes.tsv", by_pages),
    ("urls.txt", |prefixes| lines(prefixes, |p| p.single.then(|| p.prefix.clone()))),
    ("prefixes.txt", |prefixes| lines(prefixes, |p| (!p.single).then(|| p.prefix.clone()))),
    ("regex-urlfilter.txt", |prefixes| lines(prefixes, |p| Some(format!("-{}", regex(p)))) + "+.\n"),
    ("scrapy_webtwin.py", |_| SCRAPY.to_string()),
    ("scrapy-deny.txt", |prefixes| lines(prefixes, |p| Some(regex(p)))),
    ("browsertrix.yaml", excluded),
];

const OF_SURT_RULES: [(&str, Text<SurtRules>); 2] =
    [("heritrix-surts.txt", surt_lines), ("heritrix-beans.xml", |rules| beans(rules, escape))];

fn by_pages(prefixes: &[Prefix]) -> String {
    let mut by_pages: Vec<&Prefix> = prefixes.iter().filter(|prefix| !prefix.single).collect();
    by_pages.sort_by_key(|prefix| (std::cmp::Reverse(prefix.pages), &prefix.prefix));
    let mut text = String::from("prefix\tpages\tbytes\n");
    for Prefix { prefix, pages, bytes, .. } in by_pages {
        writeln!(text, "{prefix}\t{pages}\t{bytes}").expect("writing to a string");
    }
    text
}

fn excluded(prefixes: &[Prefix]) -> String {
    // In YAML a quote within single quotes is doubled.
    let excluded = lines(prefixes, |p| Some(format!("  - '{}'", regex(p).replace('\'', "''"))));
    if excluded.is_empty() { "exclude: []\n".into() } else { format!("exclude:\n{excluded}") }
}

fn lines(prefixes: &[Prefix], each: impl Fn(&Prefix) -> Option<String>) -> String {
    prefixes.iter().filter_map(each).map(|line| line + "\n").collect()
}

fn regex(prefix: &Prefix) -> String {
    format!("^{}{}", escape(&prefix.prefix), if prefix.single { "$" } else { "" })
}

/// Escapes every character with a meaning in regular expressions.
fn escape(text: &str) -> String {
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
        let prefix = |prefix: &str, single, pages| Prefix { prefix: prefix.into(), single, pages, bytes: 10 * pages };
        let lists = AvoidLists {
            prefixes: vec![prefix("http://a.b/m/", false, 3), prefix("http://a.b/x?y'", true, 1)],
            surt_rules: vec![SurtRules {
                prefixes: vec!["http://(b,a,)/m/".into()],
                urls: vec!["http://a.b/x?y&z".into()],
            }],
        };
        let files: Vec<_> = exports(&lists).collect();
        let text = |name| &files.iter().find(|file| file.0 == name).unwrap().1;
        assert_eq!(text("prefixes.tsv"), "prefix\tpages\tbytes\nhttp://a.b/m/\t3\t30\n");
        assert_eq!(text("urls.txt"), "http://a.b/x?y'\n");
        assert_eq!(text("regex-urlfilter.txt"), "-^http://a\\.b/m/\n-^http://a\\.b/x\\?y'$\n+.\n");
        assert_eq!(text("scrapy-deny.txt"), "^http://a\\.b/m/\n^http://a\\.b/x\\?y'$\n");
        assert_eq!(text("browsertrix.yaml"), "exclude:\n  - '^http://a\\.b/m/'\n  - '^http://a\\.b/x\\?y''$'\n");
        assert_eq!(text("heritrix-surts.txt"), "+http://(b,a,)/m/\n");
        assert!(text("heritrix-beans.xml").contains("<value>http://a\\.b/x\\?y&amp;z</value>"));
        let nothing: Vec<_> = exports(&AvoidLists::default()).collect();
        assert_eq!(nothing.iter().find(|file| file.0 == "browsertrix.yaml").unwrap().1, "exclude: []\n");
    }
}
