//! The avoid list for Heritrix 3, which compares URLs by prefixes of their SURT form, in lower
//! case, with https as http.
//!
//! In that form, two different pages may be equal, or one may be a prefix of the other. A prefix is
//! listed only if the form of no page that stays begins with it. Pages that no such prefix covers
//! are listed as regular expressions, which Heritrix compares with the original URL.
//!
//! # Source
//! `SurtPrefixedDecideRule`, `SurtPrefixSet` and `SURT` of Heritrix 3.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::prefixes::{CrawledPage, SkipPrefix};

/// Pages of one host that may be skipped, for Heritrix.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SurtRules {
    /// SURT prefixes, ascending.
    pub prefixes: Vec<String>,
    /// URLs that no prefix may cover, ascending.
    pub urls: Vec<String>,
}

/// Covers the pages to skip among all `pages` of one host, by http and by https. `cover` has the
/// prefixes that cover the pages by their URLs. `surt` converts a URL, or a prefix of one, to the
/// form that Heritrix compares.
pub fn surt_rules<'p>(
    pages: &[CrawledPage],
    cover: impl IntoIterator<Item = &'p SkipPrefix>,
    surt: impl Fn(&str) -> String,
) -> SurtRules {
    let mut forms: Vec<(String, &CrawledPage)> = pages.iter().map(|page| (surt(&page.url), page)).collect();
    forms.sort_unstable();
    let spares_others = |prefix: &str| {
        let begin = forms.partition_point(|(form, _)| form.as_str() < prefix);
        forms[begin..].iter().take_while(|(form, _)| form.starts_with(prefix)).all(|(_, page)| page.avoid)
    };
    let mut rules = SurtRules::default();
    for part in cover {
        let prefix = surt(&part.prefix);
        if spares_others(&prefix) {
            rules.prefixes.push(prefix);
            continue;
        }
        for page in pages.iter().filter(|page| page.avoid && part.covers(&page.url)) {
            let form = surt(&page.url);
            if spares_others(&form) {
                rules.prefixes.push(form);
            } else {
                rules.urls.push(page.url.clone());
            }
        }
    }
    rules.prefixes = SurtPrefixes::new(rules.prefixes).0;
    rules.urls.sort_unstable();
    rules
}

/// Prefixes in SURT form, ascending, none of which begins with another.
///
/// # Examples
/// ```
/// use webtwin_core::applications::heritrix::SurtPrefixes;
///
/// let docs = "http://(com,example,)/docs/";
/// let prefixes = SurtPrefixes::new(vec![format!("{docs}old/"), docs.into()]);
/// assert_eq!(prefixes, SurtPrefixes::new(vec![docs.into()]));
/// assert!(prefixes.cover("http://(com,example,)/docs/old/a"));
/// assert!(!prefixes.cover("http://(com,example,)/"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SurtPrefixes(Vec<String>);

impl SurtPrefixes {
    /// Creates the set without prefixes that another one covers.
    pub fn new(mut prefixes: Vec<String>) -> SurtPrefixes {
        prefixes.sort_unstable();
        prefixes.dedup_by(|longer, shorter| longer.starts_with(shorter.as_str()));
        SurtPrefixes(prefixes)
    }

    /// True if a URL in SURT form begins with one of the prefixes.
    pub fn cover(&self, form: &str) -> bool {
        // No prefix begins with another, so none can be between the form and the prefix that covers
        // it.
        let position = self.0.partition_point(|prefix| prefix.as_str() <= form);
        position > 0 && form.starts_with(&self.0[position - 1])
    }
}

/// Appends the rules of a host as lines of `surtsSource`.
pub(super) fn surt_lines(rules: &SurtRules, text: &mut String) {
    for prefix in &rules.prefixes {
        writeln!(text, "+{prefix}").expect("writing to a string");
    }
}

/// Decide rules for the beans of a crawl, up to the list of URLs: one for SURT prefixes from the
/// file in the same folder, and one for the URLs that no prefix covers.
pub(super) const BEANS_HEAD: &str = r#"<!-- Add these beans to the rules of the bean "scope", after those that accept. -->
<bean class="org.archive.modules.deciderules.surt.SurtPrefixedDecideRule">
  <property name="decision" value="REJECT"/>
  <property name="seedsAsSurtPrefixes" value="false"/>
  <property name="surtsSource">
    <bean class="org.archive.spring.ConfigFile">
      <property name="path" value="heritrix-surts.txt"/>
    </bean>
  </property>
</bean>
<bean class="org.archive.modules.deciderules.MatchesListRegexDecideRule">
  <property name="decision" value="REJECT"/>
  <property name="regexList">
    <list>
"#;

/// Text that follows the list of URLs.
pub(super) const BEANS_END: &str = "    </list>\n  </property>\n</bean>\n";

/// Appends the URLs of a host in the list of [`BEANS_HEAD`].
pub(super) fn bean_lines(rules: &SurtRules, regex: impl Fn(&str) -> String, text: &mut String) {
    for url in &rules.urls {
        let escaped = regex(url).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        writeln!(text, "      <value>{escaped}</value>").expect("writing to a string");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::prefixes::cover;
    use super::*;

    /// Converts a URL as Heritrix does, for hosts that are one label.
    fn surt(url: &str) -> String {
        let lower = url.to_lowercase().replacen("https://", "http://", 1);
        let without_scheme = lower.strip_prefix("http://").unwrap();
        let (host, path) = without_scheme.split_once('/').unwrap();
        format!("http://({host},)/{path}")
    }

    fn rules(urls: &[(&str, bool)]) -> SurtRules {
        let mut pages: Vec<CrawledPage> =
            urls.iter().map(|&(url, avoid)| CrawledPage { url: url.into(), avoid, bytes: 1, root: 0 }).collect();
        pages.sort();
        let schemes = pages.chunk_by(|x, y| x.url.split(':').next() == y.url.split(':').next());
        surt_rules(&pages, &schemes.flat_map(cover).collect::<Vec<_>>(), surt)
    }

    #[test]
    fn urls_differing_in_case_are_distinguished_and_https_equals_http() {
        let rules_found = rules(&[("https://h/m/1", true), ("https://h/m/2", true), ("https://h/m/3", true)]);
        assert_eq!(rules_found, SurtRules { prefixes: vec!["http://(h,)/m/".into()], urls: vec![] });
        let rules_found = rules(&[("https://h/m/1", false), ("http://h/m/1", true), ("http://h/m/2", true)]);
        assert_eq!(rules_found.prefixes, ["http://(h,)/m/2"]);
        assert_eq!(rules_found.urls, ["http://h/m/1"]);
        let rules_found =
            rules(&[("http://h/Manual/a", true), ("http://h/manual/a", false), ("http://h/Manual/b", true)]);
        assert_eq!(
            (rules_found.prefixes, rules_found.urls),
            (vec!["http://(h,)/manual/b".into()], vec!["http://h/Manual/a".into()])
        );
        let rules_found = rules(&[("http://h/a", true), ("http://h/ab", false)]);
        assert_eq!((rules_found.prefixes.len(), rules_found.urls), (0, vec!["http://h/a".into()]));
    }

    proptest! {
        #[test]
        fn prefixes_cover_urls_that_begin_with_one_of_them(
            prefixes in prop::collection::vec("[ab]{1,4}", 0..8), forms in prop::collection::vec("[ab]{0,5}", 1..20)
        ) {
            let surt_prefixes = SurtPrefixes::new(prefixes.clone());
            for form in forms {
                let expected = prefixes.iter().any(|prefix| form.starts_with(prefix.as_str()));
                prop_assert_eq!(surt_prefixes.cover(&form), expected, "{}: {:?}", form, prefixes);
            }
        }

        #[test]
        fn every_skipped_page_is_covered_and_no_kept_page(
            urls in prop::collection::btree_map("https?://h/([abA]{1,2}/){0,2}[abA]{0,2}", any::<bool>(), 1..25)
        ) {
            let urls: Vec<(&str, bool)> = urls.iter().map(|(url, avoid)| (url.as_str(), *avoid)).collect();
            let rules_found = rules(&urls);
            for (url, avoid) in urls {
                let form = surt(url);
                let hit = rules_found.prefixes.iter().any(|prefix| form.starts_with(prefix.as_str())) || rules_found.urls.iter().any(|other| other == url);
                prop_assert_eq!(hit, avoid, "{}: {:?}", url, &rules_found);
            }
        }
    }
}
