//! Rules as rows of the table `url_rules`.

use serde::{Deserialize, Serialize};

use super::edit::UrlEdit;
use super::evidence::EditCounts;
use super::rules::Rule;
use super::scope::SiteScope;

/// A row of the table. Orders by domain, then rank.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RuleRow {
    /// Registered domain.
    pub domain: String,
    /// Position among the rules of the domain, from 0, in the order in which they are applied.
    pub rank: u32,
    /// Scope of the rule, as text.
    pub scope: String,
    /// Kind of the edit.
    pub kind: String,
    /// Text that the edit replaces.
    pub pattern: String,
    /// Text that the edit inserts.
    pub replacement: String,
    /// Evidence from the half of the clusters that the rule was learned from.
    pub learned: EditCounts,
    /// Evidence from the other half.
    pub verified: EditCounts,
    /// Number of pages that were rewritten to the URL of another page.
    pub saved: u64,
}

impl RuleRow {
    /// Creates the row of a rule.
    pub fn from_rule(rule: &Rule, rank: u32) -> RuleRow {
        let Rule { domain, scope, edit, learned: learned_counts, verified, saved } = rule;
        let (pattern, replacement) = edit.texts();
        RuleRow {
            domain: domain.clone(),
            rank,
            scope: scope.to_string(),
            kind: edit.kind().to_string(),
            pattern,
            replacement,
            learned: *learned_counts,
            verified: *verified,
            saved: *saved,
        }
    }

    /// Returns the rule of the row, or `None` if this program does not have such a scope or edit.
    pub fn rule(&self) -> Option<Rule> {
        Some(Rule {
            domain: self.domain.clone(),
            scope: SiteScope::parse(&self.scope)?,
            edit: UrlEdit::parse(&self.kind, &self.pattern, &self.replacement)?,
            learned: self.learned,
            verified: self.verified,
            saved: self.saved,
        })
    }

    /// Returns the sum of the evidence of both halves.
    pub fn counts(&self) -> EditCounts {
        EditCounts::sum(&[self.learned, self.verified])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url_rules::edit::tests::EDITS;

    #[test]
    fn a_rule_is_read_from_its_row() {
        for (kind, pattern, replacement) in EDITS {
            let rule = Rule {
                domain: "a.example".into(),
                scope: SiteScope::parse("*.a.example/x/*?y=z").unwrap(),
                edit: UrlEdit::parse(kind, pattern, replacement).unwrap(),
                learned: EditCounts { support: 40, violations: 1 },
                verified: EditCounts { support: 50, violations: 0 },
                saved: 90,
            };
            assert_eq!(RuleRow::from_rule(&rule, 3).rule(), Some(rule));
        }
    }
}
