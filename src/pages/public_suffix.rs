//! Registered domains of hosts, by the Public Suffix List.

use std::borrow::Cow;
use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::sync::LazyLock;

use url::Host;

/// Rules of a list, without the marks `*.` and `!`.
#[derive(Default)]
struct Rules {
    /// Names that are public suffixes.
    suffixes: HashSet<Cow<'static, str>>,
    /// Names of which every direct subdomain is a public suffix.
    wildcards: HashSet<Cow<'static, str>>,
    /// Exceptions to wildcard rules. The parent of such a name is the public suffix.
    exceptions: HashSet<Cow<'static, str>>,
}

// The list is included as data: compiled to code, it would be most of the code of this crate.
static RULES: LazyLock<Rules> = LazyLock::new(|| Rules::new(include_str!("public_suffix_list.dat")));

impl Rules {
    fn new(list: &'static str) -> Rules {
        let mut rules = Rules::default();
        let rule = |line: &'static str| line.split_whitespace().next().filter(|rule| !rule.starts_with("//"));
        for rule in list.lines().filter_map(rule) {
            match (rule.strip_prefix("*."), rule.strip_prefix('!')) {
                (Some(parent), _) => rules.wildcards.insert(ascii(parent)),
                (_, Some(exception_rule)) => rules.exceptions.insert(ascii(exception_rule)),
                _ => rules.suffixes.insert(ascii(rule)),
            };
        }
        rules
    }

    /// Returns the position at which the public suffix of a host begins. An exception rule decides
    /// if one matches, otherwise the matching rule with most labels. The suffix of a host that no
    /// rule matches is its last label.
    fn suffix(&self, host: &str) -> usize {
        let mut suffix = host.rfind('.').map_or(0, |dot| dot + 1);
        let (mut name, mut parent) = (suffix, None);
        loop {
            if self.exceptions.contains(&host[name..]) {
                return parent.unwrap_or(name);
            }
            let is_by_wildcard = parent.is_some_and(|parent| self.wildcards.contains(&host[parent..]));
            if is_by_wildcard || self.suffixes.contains(&host[name..]) {
                suffix = name;
            }
            if name == 0 {
                return suffix;
            }
            (name, parent) = (label_before(host, name), Some(name));
        }
    }
}

/// Returns the position at which the label before the one at `start` begins.
fn label_before(host: &str, start: usize) -> usize {
    host[..start - 1].rfind('.').map_or(0, |dot| dot + 1)
}

/// Converts a rule to the form of canonical hosts.
fn ascii(rule: &'static str) -> Cow<'static, str> {
    match rule.is_ascii() {
        true => rule.into(),
        false => Host::parse(rule).map_or(rule.into(), |host| host.to_string().into()),
    }
}

/// Returns the registered domain of a host: its public suffix and one label more
/// (`www.example.co.uk` → `example.co.uk`).
///
/// A host without a registered domain (an IP address, `localhost`, a public suffix) is returned
/// unchanged. `host` must be in the form of [`super::url::CanonicalUrl::host`]: lower case, IDNA in
/// ASCII form.
///
/// # Cost
/// The first call parses the list, 12 thousand lines. Later calls look up the labels of `host`.
///
/// # Source
/// The [Public Suffix List](https://publicsuffix.org) with its private section, in the version in
/// `public_suffix_list.dat` next to this file, whose head names version and licence. A newer
/// version changes results. Rules apply as described in
/// <https://github.com/publicsuffix/list/wiki/Format>.
///
/// # Examples
/// ```
/// use webtwin_pages::public_suffix::registered_domain;
///
/// assert_eq!(registered_domain("www.example.co.uk"), "example.co.uk");
/// assert_eq!(registered_domain("192.0.2.1"), "192.0.2.1");
/// ```
pub fn registered_domain(host: &str) -> &str {
    if host.starts_with('[') || host.parse::<Ipv4Addr>().is_ok() {
        return host;
    }
    let suffix = RULES.suffix(host);
    if suffix == 0 { host } else { &host[label_before(host, suffix)..] }
}

/// Returns the registered domain of the host of a canonical URL.
pub fn domain_of(canonical_url: &str) -> &str {
    let rest = canonical_url.split_once("://").map_or(canonical_url, |(_, rest)| rest);
    let host = &rest[..rest.find(['/', '?']).unwrap_or(rest.len())];
    let without_port = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    registered_domain(without_port.map_or(host, |(name, _)| name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Implements the algorithm in the description of the list literally, rule by rule.
    fn suffix_by_every_rule(host: &str) -> &str {
        let labels: Vec<&str> = host.rsplit('.').collect();
        let list = include_str!("public_suffix_list.dat");
        let rules = list.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with("//"));
        let matches = |rule: &&str| {
            let mut rule_labels = rule.trim_start_matches('!').rsplit('.').enumerate();
            rule_labels.all(|(at, label)| labels.get(at).is_some_and(|own| label == "*" || *own == ascii_of(label)))
        };
        let matching: Vec<&str> = rules.filter(matches).collect();
        let count = |rule: &str| rule.split('.').count();
        let exception_length = matching.iter().find(|rule| rule.starts_with('!')).map(|rule| count(rule) - 1);
        let longest = matching.iter().map(|rule| count(rule)).max().unwrap_or(1);
        let registered = exception_length.unwrap_or(longest) + 1;
        let start = host.rmatch_indices('.').nth(registered - 1).map_or(0, |(dot, _)| dot + 1);
        &host[start..]
    }

    fn ascii_of(label: &str) -> Cow<'_, str> {
        if label.is_ascii() { label.into() } else { Host::parse(label).unwrap().to_string().into() }
    }

    #[test]
    fn the_domain_of_a_url_is_that_of_its_host_without_the_port() {
        let domains = [
            "http://www.a.co.uk:81/x",
            "http://[::1]:8080/",
            "http://[::1]/",
            "http://127.0.0.1/",
            "http://u.github.io/",
        ];
        assert_eq!(domains.map(domain_of), ["a.co.uk", "[::1]", "[::1]", "127.0.0.1", "u.github.io"]);
    }

    /// Returns all names that occur in rules.
    fn names() -> Vec<&'static str> {
        let sets = [&RULES.suffixes, &RULES.wildcards, &RULES.exceptions];
        let mut names: Vec<&str> = sets.into_iter().flatten().map(|name| &**name).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn the_registered_domain_is_one_label_below_a_public_suffix() {
        for (host, expected) in [
            ("www.example.com", "example.com"),
            ("a.b.example.co.uk", "example.co.uk"),
            ("someone.github.io", "someone.github.io"),
            ("docs.someone.github.io", "someone.github.io"),
            ("co.uk", "co.uk"),
            ("localhost", "localhost"),
            ("192.0.2.1", "192.0.2.1"),
            ("[::1]", "[::1]"),
            ("www.python-doc.example", "python-doc.example"),
            // Private suffixes, some below others.
            ("github.io", "github.io"),
            ("a.b.blogspot.com", "b.blogspot.com"),
            ("x.y.s3.eu-west-1.amazonaws.com", "y.s3.eu-west-1.amazonaws.com"),
            ("eu-west-1.amazonaws.com", "amazonaws.com"),
            ("amazonaws.com", "amazonaws.com"),
            // Wildcard rules and their exceptions.
            ("a.b.c.ck", "b.c.ck"),
            ("b.c.ck", "b.c.ck"),
            ("c.ck", "c.ck"),
            ("a.www.ck", "www.ck"),
            ("www.ck", "www.ck"),
            ("a.b.city.kawasaki.jp", "city.kawasaki.jp"),
            ("a.b.other.kawasaki.jp", "b.other.kawasaki.jp"),
            ("other.kawasaki.jp", "other.kawasaki.jp"),
            // A rule of three labels below one of one.
            ("a.b.ide.kyoto.jp", "b.ide.kyoto.jp"),
            ("a.kyoto.jp", "a.kyoto.jp"),
            // IDNA in ASCII form.
            ("www.xn--bcher-kva.xn--p1ai", "xn--bcher-kva.xn--p1ai"),
            ("a.b.xn--55qx5d.cn", "b.xn--55qx5d.cn"),
            ("xn--55qx5d.cn", "xn--55qx5d.cn"),
            ("a.xn--mre-og-romsdal-qqb.no", "xn--mre-og-romsdal-qqb.no"),
            ("a.b.sande.xn--mre-og-romsdal-qqb.no", "b.sande.xn--mre-og-romsdal-qqb.no"),
            // No rule: the last label is the suffix.
            ("a.b.no-such-suffix", "b.no-such-suffix"),
            ("com", "com"),
            ("", ""),
        ] {
            assert_eq!(registered_domain(host), expected, "{host}");
        }
    }

    #[test]
    fn the_list_of_public_suffixes_is_data_of_a_known_version() {
        let head: Vec<&str> = include_str!("public_suffix_list.dat").lines().take(12).collect();
        assert!(head.iter().any(|line| line.starts_with("// VERSION: 20")), "{head:?}");
        assert!(head.iter().any(|line| line.contains("Mozilla Public")), "{head:?}");
    }

    #[test]
    fn wildcard_matches_labels_of_longer_rules_too() {
        // `*.r.cloud.int.apple`, and `*.ap-north-1.r.cloud.int.apple` below it.
        assert_eq!(
            registered_domain("a.ap-north-1.r.cloud.int.apple"),
            suffix_by_every_rule("a.ap-north-1.r.cloud.int.apple")
        );
        assert_eq!(registered_domain("ap-north-1.r.cloud.int.apple"), "ap-north-1.r.cloud.int.apple");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(50))]

        #[test]
        fn domain_of_a_host_follows_from_all_rules(
            name in prop::sample::select(names()), more in prop::sample::select(names()), cut in 0usize..4, below in 0usize..3
        ) {
            let more: Vec<&str> = ["b", "a"].into_iter().chain(more.split('.')).chain(name.split('.')).collect();
            let of_both = more[cut.min(more.len() - 1)..].join(".");
            let below_one = format!("{}{name}", &"c.b."[..2 * below]);
            for host in [of_both, below_one] {
                prop_assert_eq!(registered_domain(&host), suffix_by_every_rule(&host));
            }
        }
    }
}
