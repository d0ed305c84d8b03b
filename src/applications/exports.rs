//! The avoid list in the forms that crawlers read.

use std::fmt::Write;

use super::prefixes::Prefix;

/// File name and text of every export, for prefixes ascending by host, then URL.
///
/// | file | who reads it | form |
/// |---|---|---|
/// | `prefixes.tsv` | people | prefix, pages, bytes, most pages first |
/// | `urls.txt` | any crawler | whole URLs that no prefix covers |
/// | `prefixes.txt` | any crawler | URL prefixes |
/// | `regex-urlfilter.txt` | Nutch | `-^` and a regular expression per line, then `+.` |
/// | `scrapy-deny.txt` | Scrapy `LinkExtractor(deny=...)`, Browsertrix | a regular expression per line |
/// | `surt-prefixes.txt` | Heritrix | a SURT prefix per line; whole URLs are left out |
///
/// `surt` turns a URL into its SURT prefix.
pub fn exports(prefixes: &[Prefix], surt: impl Fn(&str) -> String) -> Vec<(&'static str, String)> {
    let mut by_pages: Vec<&Prefix> = prefixes.iter().filter(|prefix| !prefix.single).collect();
    by_pages.sort_by_key(|prefix| (std::cmp::Reverse(prefix.pages), &prefix.prefix));
    let mut tsv = String::from("prefix\tpages\tbytes\n");
    for Prefix { prefix, pages, bytes, .. } in by_pages {
        writeln!(tsv, "{prefix}\t{pages}\t{bytes}").expect("writing to a string");
    }
    let lines = |each: &dyn Fn(&Prefix) -> Option<String>| -> String {
        prefixes.iter().filter_map(each).map(|line| line + "\n").collect()
    };
    let regex = |prefix: &Prefix| format!("^{}{}", escape(&prefix.prefix), if prefix.single { "$" } else { "" });
    vec![
        ("prefixes.tsv", tsv),
        ("urls.txt", lines(&|p| p.single.then(|| p.prefix.clone()))),
        ("prefixes.txt", lines(&|p| (!p.single).then(|| p.prefix.clone()))),
        ("regex-urlfilter.txt", lines(&|p| Some(format!("-{}", regex(p)))) + "+.\n"),
        ("scrapy-deny.txt", lines(&|p| Some(regex(p)))),
        ("surt-prefixes.txt", lines(&|p| (!p.single).then(|| surt(&p.prefix)))),
    ]
}

/// Escapes every character with a meaning in regular expressions.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if r"\.+*?()|[]{}^$".contains(character) {
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
        let files =
            exports(&[prefix("http://a.b/m/", false, 3), prefix("http://a.b/x?y", true, 1)], |url| format!("S{url}"));
        let text = |name| &files.iter().find(|file| file.0 == name).unwrap().1;
        assert_eq!(text("prefixes.tsv"), "prefix\tpages\tbytes\nhttp://a.b/m/\t3\t30\n");
        assert_eq!(text("urls.txt"), "http://a.b/x?y\n");
        assert_eq!(text("regex-urlfilter.txt"), "-^http://a\\.b/m/\n-^http://a\\.b/x\\?y$\n+.\n");
        assert_eq!(text("scrapy-deny.txt"), "^http://a\\.b/m/\n^http://a\\.b/x\\?y$\n");
        assert_eq!(text("surt-prefixes.txt"), "Shttp://a.b/m/\n");
    }
}
