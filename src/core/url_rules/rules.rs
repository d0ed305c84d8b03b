//! Rules, and their application to URLs.

use std::collections::HashMap;

use super::address::UrlParts;
use super::edit::UrlEdit;
use super::evidence::EditCounts;
use super::scope::SiteScope;

/// An edit that is applied within a scope, and the evidence for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Registered domain of the hosts that it was learned from.
    pub domain: String,
    /// URLs to which the rule applies.
    pub scope: SiteScope,
    /// Edit of these URLs.
    pub edit: UrlEdit,
    /// Evidence from the half of the clusters that the rule was learned from.
    pub learned: EditCounts,
    /// Evidence from the other half.
    pub verified: EditCounts,
    /// Number of pages of the crawl that this rule rewrote to the URL of another page, after the
    /// rules before it.
    pub saved: u64,
}

impl Rule {
    /// Returns the sum of the evidence of both halves.
    pub fn counts(&self) -> EditCounts {
        EditCounts::sum(&[self.learned, self.verified])
    }

    /// Returns the rewritten URL, or `None` if the rule does not change it.
    pub fn rewrite(&self, url: &str) -> Option<String> {
        let address = UrlParts::parse(url)?;
        if self.scope.holds(&address) { self.edit.apply(&address) } else { None }
    }
}

/// The rules of any number of domains.
///
/// ```
/// use webtwin_core::url_rules::{edit::UrlEdit, evidence::EditCounts, rules::{Rule, Rules}, scope::SiteScope};
///
/// let rule = |scope, name: &str| Rule {
///     domain: "a.example".into(),
///     scope: SiteScope::parse(scope).unwrap(),
///     edit: UrlEdit::Parameters(vec![name.into()]),
///     learned: EditCounts::default(),
///     verified: EditCounts::default(),
///     saved: 0,
/// };
/// let rules = Rules::new(vec![rule("*.a.example/*", "sid"), rule("b.a.example/*", "id")]);
/// let (url, used) = rules.rewrite("http://www.a.example/x?id=1&sid=2").unwrap();
/// assert_eq!((url.as_str(), used), ("http://www.a.example/x?id=1", vec![0]));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    /// Indices of rules by domain.
    by_domain: HashMap<String, Vec<usize>>,
}

impl Rules {
    /// Creates a set of rules from the order in which they are applied.
    pub fn new(rules: Vec<Rule>) -> Rules {
        let mut by_domain: HashMap<String, Vec<usize>> = HashMap::new();
        for (number, rule) in rules.iter().enumerate() {
            by_domain.entry(rule.domain.clone()).or_default().push(number);
        }
        Rules { rules, by_domain }
    }

    /// Returns all rules.
    pub fn all(&self) -> &[Rule] {
        &self.rules
    }

    /// Applies all rules to a URL, each once. Returns the URL and the indices of the rules that
    /// changed it, or `None` if no rule does.
    pub fn rewrite(&self, url: &str) -> Option<(String, Vec<usize>)> {
        // The rules are those of the host's domain. A rule may change the host, but not its domain.
        let mut name = UrlParts::parse(url)?.host();
        let numbers = loop {
            match self.by_domain.get(name) {
                Some(numbers) => break numbers,
                None => name = name.split_once('.')?.1,
            }
        };
        let (mut rewritten, mut rule_numbers) = (url.to_string(), Vec::new());
        for &number in numbers {
            if let Some(next) = self.rules[number].rewrite(&rewritten) {
                rewritten = next;
                rule_numbers.push(number);
            }
        }
        (rewritten != url).then_some((rewritten, rule_numbers))
    }
}
