//! URL rules of registered domains. The rules of a domain are learned again whenever it has a
//! quarter more copies than the last time.
//!
//! The learner is that of a run ([`webtwin_core::url_rules`]). It works on a background thread, and
//! its result is written to the log, so an index that is opened again does not repeat the work.

use std::collections::HashMap;
use std::thread::JoinHandle;

use super::{Advice, AdviceEvidence, AdvisedAction, CopyGroupKind};
use crate::log::{LogPosition, LogReader};
use crate::record::LogPayload;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::splitmix64;
use webtwin_base::threads;
use webtwin_core::url_rules::evidence::DomainPage;
use webtwin_core::url_rules::learn::{EvidenceThreshold, learn};
use webtwin_core::url_rules::rows::RuleRow;
use webtwin_core::url_rules::rules::{Rule, Rules};

/// Minimum number of copies within a domain from which rules are learned.
const MIN_COPIES: u64 = 24;

/// Approximate maximum number of pages of a domain that rules are learned from. A larger domain is
/// reduced to a sample of its clusters.
const MAX_PAGES: usize = 20_000;

/// A domain, and the rules that were learned for it.
type Learned = (Box<str>, Vec<RuleRow>);

/// URL rules of all domains.
#[derive(Debug, Default)]
pub(crate) struct DomainRules {
    domains: HashMap<Box<str>, Domain>,
    /// Domains with enough copies, which wait for the learner.
    waiting_domains: Vec<Box<str>>,
    work: Option<JoinHandle<Result<Learned>>>,
    rules: Rules,
}

/// Pages and rules of a registered domain.
#[derive(Debug, Default)]
struct Domain {
    pages: Vec<u32>,
    copies: u64,
    /// Number of copies when rules were last learned.
    learned_at: u64,
    is_waiting: bool,
    /// Rules of the domain, each with the sequence number of its advice.
    rules: Vec<(RuleRow, u64)>,
}

impl DomainRules {
    /// Observes a page of a domain. `is_copy` is true if the page is a copy of another page of the
    /// domain.
    pub(crate) fn observe(&mut self, domain: &str, page: u32, is_copy: bool) {
        if !self.domains.contains_key(domain) {
            self.domains.insert(domain.into(), Domain::default());
        }
        let domain_state = self.domains.get_mut(domain).expect("it was put there");
        domain_state.pages.push(page);
        domain_state.copies += u64::from(is_copy);
        if !domain_state.is_waiting
            && domain_state.copies >= MIN_COPIES
            && domain_state.copies >= domain_state.learned_at * 5 / 4
        {
            domain_state.is_waiting = true;
            self.waiting_domains.push(domain.into());
        }
    }

    /// Advances background learning. Returns a domain and its rules if they have just been learned;
    /// the caller logs them and passes them to [`DomainRules::take`]. `page` returns the position
    /// of the record of a page, and its cluster.
    ///
    /// # Errors
    /// Returns any error of reading the log.
    pub(crate) fn tend(
        &mut self,
        log: &LogReader,
        page: impl Fn(u32) -> (LogPosition, u32),
    ) -> Result<Option<(String, Vec<RuleRow>)>> {
        let mut learned = None;
        if self.work.as_ref().is_some_and(JoinHandle::is_finished) {
            let work = self.work.take().expect("there is some").join();
            let panicked = |_| Error::Invariant("a thread that learns URL rules has panicked".into());
            let (domain, rules) = work.map_err(panicked)??;
            learned = Some((domain.to_string(), rules));
        }
        if self.work.is_none()
            && let Some(domain) = self.waiting_domains.pop()
        {
            let domain_state = self.domains.get_mut(&domain).expect("it waits");
            (domain_state.is_waiting, domain_state.learned_at) = (false, domain_state.copies);
            // The sample has all pages of a cluster or none of them, because rules follow from
            // pairs of copies.
            let parts = domain_state.pages.len().div_ceil(MAX_PAGES) as u64;
            let pages = domain_state.pages.iter().map(|&number| page(number));
            let pages: Vec<(LogPosition, u32)> =
                pages.filter(|(_, cluster)| splitmix64(u64::from(*cluster)).is_multiple_of(parts)).collect();
            let log = log.clone();
            self.work = Some(threads::start(move || {
                let rules = rules_of(&domain, &log, &pages)?;
                Ok((domain, rules))
            })?);
        }
        Ok(learned)
    }

    /// Replaces the rules of a domain; returns the advice that follows.
    pub(crate) fn take(&mut self, domain: &str, rules: Vec<RuleRow>) -> Vec<Advice> {
        let domain_state = self.domains.entry(domain.into()).or_default();
        let is_same = |x: &RuleRow, y: &RuleRow| {
            (&x.scope, &x.kind, &x.pattern, &x.replacement) == (&y.scope, &y.kind, &y.pattern, &y.replacement)
        };
        // A rule that was learned again keeps its advice and its number; only changes are advised.
        let (stay, withdrawn_rules): (Vec<_>, Vec<_>) = std::mem::take(&mut domain_state.rules)
            .into_iter()
            .partition(|(known, _)| rules.iter().any(|rule| is_same(rule, known)));
        let withdrawn =
            withdrawn_rules.into_iter().map(|(rule, number)| advice(domain, rule, AdvisedAction::Fetch, Some(number)));
        let mut withdrawn_rules: Vec<Advice> = withdrawn.collect();
        for rule in rules {
            let number = stay.iter().find(|(known, _)| is_same(known, &rule)).map_or(0, |known| known.1);
            if number == 0 {
                withdrawn_rules.push(advice(domain, rule.clone(), AdvisedAction::Rewrite, None));
            }
            domain_state.rules.push((rule, number));
        }
        let rules = self.domains.values().flat_map(|of| &of.rules).filter_map(|(rule, _)| rule.rule());
        let mut rules: Vec<Rule> = rules.collect();
        // The sort is stable: the rules of one domain stay in their order.
        rules.sort_by(|x, y| x.domain.cmp(&y.domain));
        self.rules = Rules::new(rules);
        withdrawn_rules
    }

    /// Stores the sequence number of advice for a rule.
    pub(crate) fn numbered(&mut self, advice: &Advice) {
        let (Some(rule), AdvisedAction::Rewrite) = (&advice.rule, advice.action) else { return };
        let domain_rules = self.domains.get_mut(&*advice.prefix).map(|of| &mut of.rules);
        if let Some((_, number)) = domain_rules.and_then(|rules| rules.iter_mut().find(|known| known.0 == *rule)) {
            *number = advice.sequence;
        }
    }

    /// Returns the URL to which the rules rewrite a URL; `None` if they do not change it.
    pub(crate) fn rewrite(&self, url: &str) -> Option<String> {
        self.rules.rewrite(url).map(|(url, _)| url).filter(|rewritten| rewritten != url)
    }

    /// Returns the number of rules.
    pub(crate) fn count(&self) -> usize {
        self.rules.all().len()
    }
}

/// Learns the rules of a domain from its pages.
fn rules_of(domain: &str, log: &LogReader, pages: &[(LogPosition, u32)]) -> Result<Vec<RuleRow>> {
    let mut rules_by_page = Vec::with_capacity(pages.len());
    for &(place, cluster) in pages {
        if let LogPayload::Page(page) = LogPayload::decode(&log.read(place)?)? {
            rules_by_page.push(DomainPage { url: page.url, cluster, skipped: false, is_page: true });
        }
    }
    let rules = learn(domain, rules_by_page, &EvidenceThreshold::default());
    Ok(rules.iter().zip(0..).map(|(rule, rank)| RuleRow::from_rule(rule, rank)).collect())
}

fn advice(domain: &str, rule: RuleRow, action: AdvisedAction, withdraws: Option<u64>) -> Advice {
    let counts = rule.counts();
    let evidence = AdviceEvidence { n_matched: counts.support, n_differing: counts.violations };
    Advice { withdraws, rule: Some(rule), ..Advice::new(CopyGroupKind::UrlRule, action, domain, evidence) }
}
