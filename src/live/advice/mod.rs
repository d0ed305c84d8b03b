//! Advice for the crawler. Advice is given as soon as it is certain, and withdrawn if it turns out
//! to be wrong.
//!
//! | kind | statement | found by |
//! |---|---|---|
//! | `mirror`, `alias` | what is below a prefix is also below another one | `mirrors/` |
//! | `url_rule` | a part of URLs does not matter | `rules.rs` |
//! | `trap`, `placeholder` | pages below a prefix repeat each other, or state that there is nothing | `traps.rs` |
//!
//! Advice has sequence numbers in the order in which it became certain. It never changes; other
//! advice, with its own number, withdraws it.

pub(crate) mod advisor;
pub(crate) mod mirrors;
pub(crate) mod place;
pub(crate) mod rules;
pub(crate) mod traps;

use serde::Serialize;

use webtwin_base::ids::splitmix64;
use webtwin_core::url_rules::evidence::lower_bound;
use webtwin_core::url_rules::rows::RuleRow;

/// Number of URLs that advice excludes for each one of them that is fetched as a probe.
const PROBES: u64 = 64;

/// Kind of copies that advice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CopyGroupKind {
    /// A folder that is a mirror of another folder.
    Mirror,
    /// A host name that is another name of one site.
    Alias,
    /// A URL rule of a registered domain.
    UrlRule,
    /// A folder whose pages repeat other pages of their host.
    Trap,
    /// A folder whose pages state that there is nothing at their URLs.
    Placeholder,
}

/// Action that advice recommends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AdvisedAction {
    /// Fetch the URL that has `of` in place of `prefix`, unless it has been fetched. If that URL
    /// does not exist, fetch the original one.
    Rewrite,
    /// Fetch none of the URLs, except probes.
    Skip,
    /// Fetch the URLs again: the advice with the number `withdraws` was wrong.
    Fetch,
}

/// A piece of advice about all URLs with one prefix, or of one registered domain.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// Sequence number, from 1 on.
    pub sequence: u64,
    /// Kind of copies that the advice is about.
    pub kind: CopyGroupKind,
    /// Recommended action.
    pub action: AdvisedAction,
    /// Prefix of the URLs that the advice is about; for URL rules, the registered domain.
    pub prefix: String,
    /// Prefix of the URLs to fetch instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Number of the advice that this advice withdraws.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withdraws: Option<u64>,
    /// The URL rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleRow>,
    /// Number of pages that support the advice.
    pub matched: u64,
    /// Number of pages that contradict the advice.
    pub differing: u64,
    /// Lower bound, at 95 % confidence, of the fraction of URLs for which the advice is right.
    pub bound: f64,
    /// Number of pages with the prefix that had been fetched when the advice was given.
    pub pages: u64,
}

impl Advice {
    /// Creates advice that has no sequence number yet.
    fn new(kind: CopyGroupKind, action: AdvisedAction, prefix: &str, evidence: AdviceEvidence) -> Advice {
        Advice {
            sequence: 0,
            kind,
            action,
            prefix: prefix.to_string(),
            of: None,
            withdraws: None,
            rule: None,
            matched: evidence.n_matched,
            differing: evidence.n_differing,
            bound: f64::from(evidence.bound()) / 10_000.0,
            pages: 0,
        }
    }
}

/// Evidence for and against advice, in pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AdviceEvidence {
    /// Number of pages that support the advice.
    pub n_matched: u64,
    /// Number of pages that contradict the advice.
    pub n_differing: u64,
}

impl AdviceEvidence {
    /// Counts a page.
    pub fn add(&mut self, is_match: bool) {
        *(if is_match { &mut self.n_matched } else { &mut self.n_differing }) += 1;
    }

    /// Counts a page that was fetched after the advice was given. All counts are halved whenever
    /// there are [`HALF_LIFE_PAGES`] pages, so that advice that was right once can turn out to be
    /// wrong.
    pub(crate) fn add_recent(&mut self, is_match: bool) {
        self.add(is_match);
        if self.n_matched + self.n_differing >= HALF_LIFE_PAGES {
            *self = AdviceEvidence { n_matched: self.n_matched / 2, n_differing: self.n_differing / 2 };
        }
    }

    /// Returns the lower bound of the fraction of supporting pages, in units of 1/10,000 (Clopper
    /// and Pearson, 95 %).
    pub fn bound(&self) -> u32 {
        lower_bound(self.n_differing, self.n_matched + self.n_differing)
    }

    /// Returns true if at least two pages support the advice, and at most half as many contradict
    /// it.
    pub(crate) fn seems_right(&self) -> bool {
        self.n_matched >= 2 && self.n_matched >= 2 * self.n_differing
    }

    /// Returns true if significantly many pages contradict the advice: the lower bound of their
    /// fraction is above 0.39.
    pub fn is_contrary(&self) -> bool {
        lower_bound(self.n_matched, self.n_matched + self.n_differing) > MAX_CONTRARY_BOUND
    }
}

/// Number of pages at which the evidence is halved.
const HALF_LIFE_PAGES: u64 = 32;

/// Lower bound of the fraction of contradicting pages above which advice is withdrawn, in units of
/// 1/10,000. With four contradicting pages of four, the bound is 0.398.
const MAX_CONTRARY_BOUND: u32 = 3_900;

/// Returns true if the URL at a place is a probe: it is fetched regardless of advice, so that wrong
/// advice is discovered.
pub fn is_probe(place: u64) -> bool {
    splitmix64(place).is_multiple_of(PROBES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_contrary_pages_are_contrary_evidence() {
        let evidence = |matched, differing| AdviceEvidence { n_matched: matched, n_differing: differing };
        assert!(!evidence(0, 3).is_contrary() && evidence(0, 4).is_contrary());
        assert!(!evidence(10, 10).is_contrary() && !evidence(0, 0).is_contrary());
        assert!(evidence(12, 0).bound() >= mirrors::MIN_BOUND && evidence(10, 0).bound() < mirrors::MIN_BOUND);
    }
}
