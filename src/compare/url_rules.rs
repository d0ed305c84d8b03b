//! Changes of URL rules: a rule is confirmed by the newer crawl, withdrawn because the crawl
//! contradicts it, standing without evidence, or new.
//!
//! A crawler that obeys a rule fetches no page that could confirm it. So a rule that the newer
//! crawl has not learned again is checked against its pages, and only contradicting evidence
//! withdraws a rule.
//!
//! # Memory
//! All rules. For each domain with rules that were not learned again, 200 bytes and the URL of each
//! page.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::two_crawls::ComparableResults;
use super::writer::ResultWriter;
use webtwin_base::error::Result;
use webtwin_base::ids::DocId;
use webtwin_core::url_rules::evidence::{DomainPage, DomainPages, EditCounts};
use webtwin_core::url_rules::rows::RuleRow;
use webtwin_pages::public_suffix::domain_of;
use webtwin_results::FinishedRun;
use webtwin_results::scan::scan;
use webtwin_results::url_rules::{CHANGED, CHANGED_COLUMNS, WITHDRAWN, each_rule, rules_except};
use webtwin_storage::table::{Table, TableColumn};

/// Change of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Confirmed,
    New,
    Standing,
    Withdrawn,
}

impl What {
    fn as_str(self) -> &'static str {
        ["confirmed", "new", "standing", WITHDRAWN][self as usize]
    }
}

/// A rule and its change. Its evidence from the older crawl is that of the crawl which last learned
/// it.
#[derive(Debug, Clone)]
struct Changed {
    rule: RuleRow,
    what: What,
    old: EditCounts,
    new: EditCounts,
}

/// Effect of a rule, without the evidence for it.
type Key<'r> = (&'r str, &'r str, &'r str, &'r str, &'r str);

fn key(row: &RuleRow) -> Key<'_> {
    (&row.domain, &row.scope, &row.kind, &row.pattern, &row.replacement)
}

/// Writes the table. Returns the rules in force, and the number of rules by change.
///
/// # Errors
/// Returns any error of the tables and stores.
///
/// # Cost
/// Reads `pages` and `clusters` of the newer result again, unless it has learned all rules again.
pub(super) fn write(
    results: &ComparableResults,
    writer: &mut ResultWriter,
) -> Result<(Vec<RuleRow>, BTreeMap<&'static str, u64>)> {
    let (old_rules, mut new_rules) = (in_force_before(results)?, Vec::new());
    each_rule(&results.new, &mut |row| {
        new_rules.push(row);
        Ok(())
    })?;
    let changed_rules = changes(&old_rules, &new_rules, |rules| seen_again(&results.new, rules))?;
    writer.add(CHANGED, table(&changed_rules))?;
    let mut counts = BTreeMap::new();
    changed_rules.iter().for_each(|row| *counts.entry(row.what.as_str()).or_default() += 1);
    let rules_in_force = changed_rules.into_iter().filter(|row| row.what != What::Withdrawn).map(|row| row.rule);
    Ok((rules_in_force.collect(), counts))
}

/// Returns the rules of the older result, and those that stood next to them according to an earlier
/// comparison.
fn in_force_before(results: &ComparableResults) -> Result<Vec<RuleRow>> {
    if let Some(saved_past) = results.saved.as_ref().filter(|saved| saved.newest == 1 && saved.later <= 1) {
        // If the saved comparison is the one being repeated, its own table has the rules that were
        // in force before it.
        let dropped_kind = if saved_past.later == 0 { What::Withdrawn } else { What::New };
        if let Some(rules) = rules_except(&FinishedRun::open(&saved_past.comparison)?, dropped_kind.as_str())? {
            return Ok(rules);
        }
    }
    let mut rules = Vec::new();
    each_rule(&results.old, &mut |row| {
        rules.push(row);
        Ok(())
    })?;
    Ok(rules)
}

/// Classifies the change of each rule. Ordered by domain; within a domain the rules of the newer
/// result come first, in their order, then those that stand, then those withdrawn.
fn changes(
    old_rules: &[RuleRow],
    new_rules: &[RuleRow],
    seen_again: impl FnOnce(&[&RuleRow]) -> Result<Vec<EditCounts>>,
) -> Result<Vec<Changed>> {
    let old_counts: HashMap<Key<'_>, EditCounts> = old_rules.iter().map(|row| (key(row), row.counts())).collect();
    let new_keys: HashSet<Key<'_>> = new_rules.iter().map(key).collect();
    let missing: Vec<&RuleRow> = old_rules.iter().filter(|row| !new_keys.contains(&key(row))).collect();
    let mut changed_rules: Vec<Changed> = Vec::new();
    for row in new_rules {
        let (what, old) =
            old_counts.get(&key(row)).map_or((What::New, EditCounts::default()), |old| (What::Confirmed, *old));
        changed_rules.push(Changed { rule: row.clone(), what, old, new: row.counts() });
    }
    for (row, new) in missing.iter().zip(if missing.is_empty() { Vec::new() } else { seen_again(&missing)? }) {
        let what = if is_refuted(&new) { What::Withdrawn } else { What::Standing };
        changed_rules.push(Changed { rule: (*row).clone(), what, old: row.counts(), new });
    }
    let is_old = |what: What| what.max(What::New);
    changed_rules.sort_by(|x, y| {
        let order = |row: &Changed| (row.rule.domain.clone(), is_old(row.what), row.rule.rank);
        order(x).cmp(&order(y))
    });
    for domain_rows in changed_rules.chunk_by_mut(|x, y| x.rule.domain == y.rule.domain) {
        domain_rows.iter_mut().zip(0..).for_each(|(row, rank)| row.rule.rank = rank);
    }
    Ok(changed_rules)
}

/// True if a crawl contradicts a rule: at least three pages, and more than one in twenty, are not
/// copies of the page that the rule names.
fn is_refuted(new: &EditCounts) -> bool {
    new.violations >= 3 && 20 * new.violations > new.support + new.violations
}

/// Counts the evidence in a result for rules that it has not learned.
fn seen_again(run: &FinishedRun, rules: &[&RuleRow]) -> Result<Vec<EditCounts>> {
    let mut pages: BTreeMap<&str, Vec<(String, DocId)>> =
        rules.iter().map(|row| (row.domain.as_str(), Vec::new())).collect();
    scan(run, "pages", &["doc_id", "url"], &mut |rows| {
        for (&doc_id, url) in rows.u64("doc_id")?.iter().zip(rows.text("url")?) {
            // Holds only pages of domains with such rules.
            if let Some(domain_rows) = pages.get_mut(domain_of(url)) {
                domain_rows.push((url.to_string(), doc_id));
            }
        }
        Ok(())
    })?;
    // Numbers clusters by the index of one of their pages among all pages. A page without copies is
    // a cluster of its own.
    let mut cluster_numbers: HashMap<DocId, u32> = pages.values().flatten().map(|page| page.1).zip(0..).collect();
    let mut number_of: HashMap<DocId, u32> = HashMap::new();
    scan(run, "clusters", &["cluster", "doc_id"], &mut |rows| {
        for (&cluster, doc_id) in rows.u64("cluster")?.iter().zip(rows.u64("doc_id")?) {
            if let Some(number) = cluster_numbers.get_mut(doc_id) {
                *number = *number_of.entry(cluster).or_insert(*number);
            }
        }
        Ok(())
    })?;
    let pages: BTreeMap<&str, Vec<DomainPage>> = pages
        .into_iter()
        .map(|(domain, pages)| {
            let page = |(url, id): (String, DocId)| DomainPage {
                url,
                cluster: cluster_numbers[&id],
                skipped: false,
                is_page: true,
            };
            let mut pages: Vec<DomainPage> = pages.into_iter().map(page).collect();
            pages.sort_unstable();
            (domain, pages)
        })
        .collect();
    let evidence = |row: &&RuleRow| {
        let Some(rule) = row.rule() else { return EditCounts::default() };
        let domain_pages = DomainPages { domain: &row.domain, pages: &pages[row.domain.as_str()] };
        EditCounts::sum(&domain_pages.evidence_within(&rule.edit, &rule.scope).halves)
    };
    Ok(rules.iter().map(evidence).collect())
}

fn table(rows: &[Changed]) -> Table {
    let texts = |value: fn(&Changed) -> &str| TableColumn::Text(rows.iter().map(value).collect());
    let counts = |value: fn(&Changed) -> u64| TableColumn::Count(rows.iter().map(value).collect());
    let [domain, rank, scope, kind, pattern, replacement, what, old, old_violations, new, new_violations, saved_bytes] =
        CHANGED_COLUMNS;
    Table::new([
        (domain, texts(|row| &row.rule.domain)),
        (rank, TableColumn::U32(rows.iter().map(|row| row.rule.rank).collect())),
        (scope, texts(|row| &row.rule.scope)),
        (kind, texts(|row| &row.rule.kind)),
        (pattern, texts(|row| &row.rule.pattern)),
        (replacement, texts(|row| &row.rule.replacement)),
        (what, texts(|row| row.what.as_str())),
        (old, counts(|row| row.old.support)),
        (old_violations, counts(|row| row.old.violations)),
        (new, counts(|row| row.new.support)),
        (new_violations, counts(|row| row.new.violations)),
        (saved_bytes, counts(|row| row.rule.saved)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use webtwin_results::url_rules::changed_rules;

    fn rule(domain: &str, rank: u32, name: &str, support: u64) -> RuleRow {
        RuleRow {
            domain: domain.into(),
            rank,
            scope: format!("*.{domain}/*"),
            kind: "parameter".into(),
            pattern: name.into(),
            replacement: String::new(),
            learned: EditCounts { support, violations: 0 },
            verified: EditCounts::default(),
            saved: support,
        }
    }

    #[test]
    fn rule_is_valid_until_a_crawl_contradicts_it() {
        let old_rules = [rule("a.b", 0, "sid", 80), rule("a.b", 1, "brand", 90), rule("a.b", 2, "sort", 100)];
        let new_rules = [rule("a.b", 0, "new", 75), rule("a.b", 1, "sid", 85)];
        let check_rules = |rules: &[&RuleRow]| {
            assert_eq!(rules.iter().map(|row| row.pattern.as_str()).collect::<Vec<_>>(), ["brand", "sort"]);
            Ok(vec![EditCounts { support: 2, violations: 3 }, EditCounts { support: 0, violations: 1 }])
        };
        let rule_changes = changes(&old_rules, &new_rules, check_rules).unwrap();
        let actual: Vec<_> =
            rule_changes.iter().map(|row| (row.rule.pattern.as_str(), row.what, row.rule.rank)).collect();
        let expected = [
            ("new", What::New, 0),
            ("sid", What::Confirmed, 1),
            ("sort", What::Standing, 2),
            ("brand", What::Withdrawn, 3),
        ];
        assert_eq!(actual, expected);
        // The next comparison starts with the rules in force; this comparison, if repeated, with
        // those in force before.
        let patterns = |dropped_kind: What| -> Vec<String> {
            changed_rules(&table(&rule_changes), dropped_kind.as_str())
                .unwrap()
                .into_iter()
                .map(|row| row.pattern)
                .collect()
        };
        assert_eq!(patterns(What::Withdrawn), ["new", "sid", "sort"]);
        assert_eq!(patterns(What::New), ["sid", "sort", "brand"]);
        assert_eq!(changed_rules(&table(&rule_changes), "new").unwrap()[0].counts().support, 85);
    }
}
