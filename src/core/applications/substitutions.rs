//! URL rules as regular expressions, in the part of their syntax that Java and Python share.
//!
//! Each expression matches a whole URL, so that tools that search and tools that match give the
//! same result, and all its groups take part in every match. Expressions expect canonical URLs,
//! without fragments.
//!
//! # Deviations
//! Two edits cannot be expressed by regular expressions: the order of parameters, and lower case.
//! If a URL has a parameter more than twice, two of its occurrences are dropped.

use std::fmt::Write;

use super::exports::escape;
use crate::url_rules::edit::{SHORTEST_ID, Slash, UrlEdit};
use crate::url_rules::rules::Rule;
use crate::url_rules::scope::{HostScope, Paths, SiteScope};

/// A regular expression, and the replacement of its match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Substitution {
    /// Regular expression that matches a whole URL.
    pub pattern: String,
    /// Texts between the groups, one more than there are groups. The replacement is text, `$1`,
    /// text, `$2`, and so on.
    texts: Vec<String>,
}

impl Substitution {
    /// Returns the replacement in the syntax of Java's `Matcher`: a `$` in other text is escaped by
    /// a backslash.
    pub fn replacement(&self) -> String {
        let mut text = String::new();
        for (number, piece) in self.texts.iter().enumerate() {
            if number > 0 {
                write!(text, "${number}").expect("writing to a string");
            }
            text.push_str(&piece.replace('\\', "\\\\").replace('$', "\\$"));
        }
        text
    }
}

/// Returns the edit of a rule as substitutions that must be made one after the other, or none if
/// regular expressions cannot express the edit.
///
/// # Examples
/// ```
/// use webtwin_core::applications::substitutions::substitutions;
/// use webtwin_core::url_rules::{edit::UrlEdit, evidence::EditCounts, rules::Rule, scope::SiteScope};
///
/// let rule = |edit| Rule {
///     domain: "a.example".into(),
///     scope: SiteScope::parse("a.example/*").unwrap(),
///     edit,
///     learned: EditCounts::default(),
///     verified: EditCounts::default(),
///     saved: 0,
/// };
/// let [one] = &substitutions(&rule(UrlEdit::Page("http://a.example/".into())))[..] else { panic!() };
/// assert_eq!(one.pattern, r"^(?=[a-z]+://a\.example(?::[0-9]+)?/).+$");
/// assert_eq!(one.replacement(), "http://a.example/");
/// // No regular expression sorts parameters.
/// assert!(substitutions(&rule(UrlEdit::Order)).is_empty());
/// ```
pub fn substitutions(rule: &Rule) -> Vec<Substitution> {
    let scope = lookahead(&rule.scope);
    let substitution = |pattern: String, texts: &[&str]| Substitution {
        pattern: format!("^{scope}{pattern}$"),
        texts: texts.iter().map(|text| text.to_string()).collect(),
    };
    // Scheme and authority; the rest of a query, which may be missing.
    const ORIGIN: &str = "[a-z]+://[^/?]+";
    const QUERY: &str = "((?:\\?.*)?)";
    // A piece of a query is removed with one separator, which is after it, before it, or the `?`
    // itself. No single expression covers these three cases.
    let removals = |piece: &str| {
        vec![
            substitution(format!("([^?]*\\?(?:.*[&;])?){piece}[&;](.*)"), &["", "", ""]),
            substitution(format!("([^?]*\\?.*)[&;]{piece}"), &["", ""]),
            substitution(format!("([^?]*)\\?{piece}"), &["", ""]),
        ]
    };
    match &rule.edit {
        UrlEdit::Order | UrlEdit::Case(_) => Vec::new(),
        UrlEdit::Parameters(names) => {
            names.iter().flat_map(|name| removals(&format!("{}(?:=[^&;]*)?", escape(name)))).collect()
        }
        UrlEdit::Default(piece) => removals(&escape(piece)),
        UrlEdit::Value(from, to) => {
            let pattern = format!("([^?]*\\?(?:.*[&;])?){}((?:[&;].*)?)", escape(from));
            vec![substitution(pattern, &["", to, ""])]
        }
        UrlEdit::Origin(from, to) => vec![substitution(format!("{}(/.*)", escape(from)), &[to, ""])],
        UrlEdit::PathParameter(name) => {
            vec![substitution(format!("({ORIGIN}[^?]*?);{}=[^;/?]*(.*)", escape(name)), &["", "", ""])]
        }
        UrlEdit::Slash(Slash::Add) => {
            vec![substitution(format!("({ORIGIN}/(?:[^?]*/)?[^/?.]+){QUERY}"), &["", "/", ""])]
        }
        UrlEdit::Slash(Slash::Drop) => vec![substitution(format!("({ORIGIN}/[^?]*)/{QUERY}"), &["", "", ""])],
        UrlEdit::Part(from, to) => vec![substitution(format!("({ORIGIN}[^?]*?){}(.*)", escape(from)), &["", to, ""])],
        UrlEdit::End(from, to) => vec![substitution(format!("({ORIGIN}[^?]*){}{QUERY}", escape(from)), &["", to, ""])],
        UrlEdit::Tail(head) => vec![substitution(format!("({ORIGIN}{})/[^?]*{QUERY}", escape(head)), &["", "", ""])],
        // An id is recognized by its length, so that words between slashes are not removed.
        UrlEdit::Segment(prefix, suffix) => {
            let id = format!("{}[0-9A-Za-z]{{{SHORTEST_ID},}}{}", escape(prefix), escape(suffix));
            vec![substitution(format!("({ORIGIN}[^?]*?)/{id}(/.*)"), &["", "", ""])]
        }
        UrlEdit::Template(from, to) => {
            let Some(((prefix, suffix), (start, end))) = from.split_once('*').zip(to.split_once('*')) else {
                return Vec::new();
            };
            let pattern = format!("({ORIGIN}){}([-A-Za-z0-9_.~%+]+){}", escape(prefix), escape(suffix));
            vec![substitution(pattern, &["", start, end])]
        }
        UrlEdit::Page(to) => vec![substitution(".+".into(), &[to])],
    }
}

/// Returns lookaheads that match at the beginning of a URL in the scope.
fn lookahead(scope: &SiteScope) -> String {
    let host = match &scope.hosts {
        HostScope::Domain(domain) => format!("(?:[^/?:]*\\.)?{}", escape(domain)),
        HostScope::Host(host) => escape(host),
    };
    let path = match &scope.paths {
        Paths::Below(folder) => escape(folder),
        Paths::Is(path) => format!("{}(?:\\?|$)", escape(path)),
    };
    let mut text = format!("(?=[a-z]+://{host}(?::[0-9]+)?{path})");
    if let Some(parameter) = &scope.parameter {
        write!(text, "(?=[^?]*\\?(?:.*[&;])?{}(?:[&;]|$))", escape(parameter)).expect("writing to a string");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url_rules::evidence::EditCounts;

    fn rewrites_of(scope: &str, kind: &str, pattern: &str, replacement: &str) -> Vec<(String, String)> {
        let rule = Rule {
            domain: "a.b".into(),
            scope: SiteScope::parse(scope).unwrap(),
            edit: UrlEdit::parse(kind, pattern, replacement).unwrap(),
            learned: EditCounts::default(),
            verified: EditCounts::default(),
            saved: 0,
        };
        substitutions(&rule).iter().map(|one| (one.pattern.clone(), one.replacement())).collect()
    }

    #[test]
    fn a_rule_is_an_expression_over_whole_urls() {
        let host = rewrites_of("*.a.b/*", "host", "http://www.a.b", "http://a.b");
        let pattern = "^(?=[a-z]+://(?:[^/?:]*\\.)?a\\.b(?::[0-9]+)?/)http://www\\.a\\.b(/.*)$";
        assert_eq!(host, [(pattern.to_string(), "http://a.b$1".to_string())]);
        let value = rewrites_of("a.b/x?do=y", "value", "h=$1", "h=$2");
        let scope = "(?=[a-z]+://a\\.b(?::[0-9]+)?/x(?:\\?|$))(?=[^?]*\\?(?:.*[&;])?do=y(?:[&;]|$))";
        let pattern = format!("^{scope}([^?]*\\?(?:.*[&;])?)h=\\$1((?:[&;].*)?)$");
        assert_eq!(value, [(pattern, "$1h=\\$2$2".to_string())]);
        assert_eq!(rewrites_of("a.b/*", "parameter", "s&t", "").len(), 6);
        assert_eq!(rewrites_of("a.b/*", "order", "", ""), []);
    }
}
