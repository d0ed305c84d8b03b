//! URL rules: learned domain by domain at the owners of domains ([`each_domain`]), for the table
//! `url_rules` and, at worker 0, for the exports.

use serde::{Deserialize, Serialize};

use super::by_domain::{DomainRow, UrlState, WorkerPageFacts, each_domain};
use crate::parts::TablePart;
use crate::shuffle::directory::TablePartitions;
use webtwin_base::error::Result;
use webtwin_base::ids::Number;
use webtwin_core::url_rules::evidence::DomainPage;
use webtwin_core::url_rules::learn::{EvidenceThreshold, learn};
use webtwin_core::url_rules::redirects::{DomainRedirect, add_redirects};
use webtwin_core::url_rules::rows::RuleRow;
use webtwin_engine::Net;
use webtwin_pages::public_suffix::domain_of;
use webtwin_spill::{SortedOutput, Sorter};
use webtwin_storage::table::{Table, TableColumn};

/// Name of the table.
pub const TABLE: &str = "url_rules";

/// Counts of rules and of what they save.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleCounts {
    /// Number of rules.
    pub rules: u64,
    /// Number of domains with rules.
    pub domains: u64,
    /// Pages of the crawl whose URL is rewritten to the URL of another page.
    pub saved: u64,
}

/// Rules of a crawl.
#[derive(Debug)]
pub struct FoundRules {
    /// Parts of the table at this worker.
    pub parts: Vec<TablePart>,
    /// All rules, at worker 0.
    pub sorted_rules: SortedOutput<RuleRow>,
    /// Counts, the same on every worker.
    pub counts: RuleCounts,
}

/// Rules of the domains that this worker owns.
#[derive(Debug, Default)]
pub struct RulesWriter {
    /// Rules with the keys of their domains, ascending by key.
    rows: Vec<(u64, RuleRow)>,
    domains: u64,
}

impl RulesWriter {
    /// Learns the rules of a domain. A domain without copies and redirects has none.
    pub fn add(&mut self, rows: Vec<DomainRow>) {
        let Some(DomainRow { domain: key, url, .. }) = rows.first() else { return };
        let (key, domain) = (*key, domain_of(url).to_string());
        let (mut pages, mut redirects) = (Vec::with_capacity(rows.len()), Vec::new());
        for DomainRow { url, what, .. } in rows {
            match what {
                UrlState::Page(cluster, skipped) => {
                    pages.push(DomainPage { url, cluster: cluster.number(), skipped, is_page: true });
                }
                UrlState::Redirect(to) => redirects.push(DomainRedirect { url, to }),
            }
        }
        add_redirects(&mut pages, &redirects);
        let mut clusters: Vec<u32> = pages.iter().map(|page| page.cluster).collect();
        clusters.sort_unstable();
        if clusters.windows(2).all(|pair| pair[0] != pair[1]) {
            return;
        }
        let rules = learn(&domain, pages, &EvidenceThreshold::default());
        self.domains += u64::from(!rules.is_empty());
        self.rows.extend(rules.iter().zip(0..).map(|(rule, rank)| (key, RuleRow::from_rule(rule, rank))));
    }

    /// Builds the table, and sends all rules to worker 0. Takes two exchanges.
    ///
    /// # Errors
    /// Returns any error of the disk, and an error if the run has ended.
    pub fn finish(self, net: &mut Net<'_>, partitions: TablePartitions) -> Result<FoundRules> {
        let saved = self.rows.iter().map(|row| row.1.saved).sum();
        let [rules, domains, saved] = net.all_sum("URL rules", [self.rows.len() as u64, self.domains, saved])?;
        let partition_rows = self.rows.chunk_by(|x, y| partitions.partition(x.0) == partitions.partition(y.0));
        let part = |rows: &[(u64, RuleRow)]| TablePart {
            name: TABLE,
            partition: partitions.partition(rows[0].0),
            rows: table(rows),
        };
        let parts = partition_rows.map(part).collect();
        let mut sorter = Sorter::new(&net.memory);
        let rows = self.rows.into_iter().map(|row| Ok((0, row.1)));
        net.exchange_values_into("URL rules", rows, |row| sorter.push(row))?;
        Ok(FoundRules { parts, sorted_rules: sorter.finish()?, counts: RuleCounts { rules, domains, saved } })
    }
}

/// Learns the rules of all domains from the properties of their pages.
///
/// # Errors
/// Returns any error of the disk, and an error if the run has ended.
pub fn learn_rules(net: &mut Net<'_>, facts: &WorkerPageFacts<'_>, partitions: TablePartitions) -> Result<FoundRules> {
    let mut rules = RulesWriter::default();
    each_domain(net, facts, partitions, |pages| {
        rules.add(pages);
        Ok(())
    })?;
    rules.finish(net, partitions)
}

/// Returns the table of the given rules, which have the keys of their domains.
pub fn table(rows: &[(u64, RuleRow)]) -> Table {
    let texts = |value: fn(&RuleRow) -> &str| TableColumn::Text(rows.iter().map(|row| value(&row.1)).collect());
    let counts = |value: fn(&RuleRow) -> u64| TableColumn::Count(rows.iter().map(|row| value(&row.1)).collect());
    Table::new([
        ("domain_id", TableColumn::Id(rows.iter().map(|row| row.0).collect())),
        ("domain", texts(|row| &row.domain)),
        ("rank", TableColumn::U32(rows.iter().map(|row| row.1.rank).collect())),
        ("scope", texts(|row| &row.scope)),
        ("kind", texts(|row| &row.kind)),
        ("pattern", texts(|row| &row.pattern)),
        ("replacement", texts(|row| &row.replacement)),
        ("support", counts(|row| row.counts().support)),
        ("violations", counts(|row| row.counts().violations)),
        ("verified_support", counts(|row| row.verified.support)),
        ("verified_violations", counts(|row| row.verified.violations)),
        ("bound", TableColumn::F64(rows.iter().map(|row| f64::from(row.1.counts().bound()) / 10_000.0).collect())),
        ("saved", counts(|row| row.saved)),
    ])
}
