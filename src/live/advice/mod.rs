//! Advice for the crawler, as it becomes certain, and until it turns out to be wrong.
//!
//! | kind | what it says | found by |
//! |---|---|---|
//! | `mirror`, `alias` | what is below a prefix is also below another one | `mirrors.rs` |
//! | `url_rule` | a part of URLs does not matter | `rules.rs` |
//! | `trap`, `placeholder` | what is below a prefix repeats itself, or says that there is nothing | `traps.rs` |
//!
//! Advice is numbered in the order in which it became certain. It is never changed: it is withdrawn by another one, with a number of its own.

pub(crate) mod advisor;
pub(crate) mod mirrors;
pub(crate) mod place;
pub(crate) mod rules;
pub(crate) mod traps;

use serde::Serialize;

use webtwin_base::ids::splitmix64;
use webtwin_core::url_rules::evidence::lower_bound;
use webtwin_core::url_rules::rows::RuleRow;

/// URLs that advice speaks against for each one that is fetched all the same.
const PROBES: u64 = 64;

/// Kind of copies that advice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CopyGroupKind {
    /// A folder that is a mirror of another one.
    Mirror,
    /// A host that is another name of another one.
    Alias,
    /// Rules of a registered domain.
    UrlRule,
    /// A folder that repeats itself.
    Trap,
    /// A folder in which there is nothing.
    Placeholder,
}

/// Action that advice recommends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AdvisedAction {
    /// Fetch the URL that has `of` in place of `prefix`, if that has not been fetched; if it does not exist, fetch the URL itself.
    Rewrite,
    /// Fetch none of them but probes.
    Skip,
    /// Fetch them again: the advice `withdraws` was wrong.
    Fetch,
}

/// Advice.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// Its number, from 1 on.
    pub sequence: u64,
    /// Kind of copies.
    pub kind: CopyGroupKind,
    /// Recommended action.
    pub action: AdvisedAction,
    /// The URLs: those that begin with this; for URL rules, the registered domain.
    pub prefix: String,
    /// Prefix of the URLs to fetch in their place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Number of the advice that this one takes back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withdraws: Option<u64>,
    /// The rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleRow>,
    /// Pages that speak for it.
    pub matched: u64,
    /// Pages that speak against it.
    pub differing: u64,
    /// Lower bound, at 95 % confidence, of the share of URLs for which it is right.
    pub bound: f64,
    /// Pages of the prefix that were fetched before.
    pub pages: u64,
}

impl Advice {
    /// Makes advice that has no number yet.
    fn new(kind: CopyGroupKind, action: AdvisedAction, prefix: &str, evidence: AdviceEvidence) -> Advice {
        Advice {
            sequence: 0,
            kind,
            action,
            prefix: prefix.to_string(),
            of: None,
            withdraws: None,
            rule: None,
            matched: evidence.matched,
            differing: evidence.differing,
            bound: f64::from(evidence.bound()) / 10_000.0,
            pages: 0,
        }
    }
}

/// Evidence for advice, and against it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AdviceEvidence {
    /// Pages that speak for it.
    pub matched: u64,
    /// Pages that speak against it.
    pub differing: u64,
}

impl AdviceEvidence {
    /// Counts a page.
    pub fn add(&mut self, is_match: bool) {
        *(if is_match { &mut self.matched } else { &mut self.differing }) += 1;
    }

    /// Counts a page that came after the advice: older ones fade, so that what was right once can turn out to be wrong.
    pub(crate) fn add_recent(&mut self, is_match: bool) {
        self.add(is_match);
        if self.matched + self.differing >= RECENT {
            *self = AdviceEvidence { matched: self.matched / 2, differing: self.differing / 2 };
        }
    }

    /// Lower bound of the share of pages that speak for it, in units of 1/10,000 (Clopper and Pearson, 95 %).
    pub fn bound(&self) -> u32 {
        lower_bound(self.differing, self.matched + self.differing)
    }

    /// Returns whether some pages speak for it and few against.
    pub(crate) fn seems_right(&self) -> bool {
        self.matched >= 2 && self.matched >= 2 * self.differing
    }

    /// Returns whether most pages speak against it, and not by chance.
    pub fn is_contrary(&self) -> bool {
        lower_bound(self.matched, self.matched + self.differing) > CONTRARY
    }
}

/// Pages after which what came before counts half.
const RECENT: u64 = 32;

/// Lower bound of the share of contrary pages above which advice is withdrawn: with four of four it is 0.398.
const CONTRARY: u32 = 3_900;

/// Returns whether a URL is a probe: fetched, whatever advice says, so that wrong advice is found out.
pub fn is_probe(place: u64) -> bool {
    splitmix64(place).is_multiple_of(PROBES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_contrary_from_four_pages_on() {
        let evidence = |matched, differing| AdviceEvidence { matched, differing };
        assert!(!evidence(0, 3).is_contrary() && evidence(0, 4).is_contrary());
        assert!(!evidence(10, 10).is_contrary() && !evidence(0, 0).is_contrary());
        assert!(evidence(12, 0).bound() >= mirrors::LEAST_BOUND && evidence(10, 0).bound() < mirrors::LEAST_BOUND);
    }
}
