//! URL rules of a finished run, and of a comparison of two runs.

use super::FinishedRun;
use super::scan::scan;
use webtwin_base::error::Result;
use webtwin_core::url_rules::evidence::EditCounts;
use webtwin_core::url_rules::rows::RuleRow;
use webtwin_storage::table::Table;

const COLUMNS: [&str; 11] = [
    "domain",
    "rank",
    "scope",
    "kind",
    "pattern",
    "replacement",
    "support",
    "violations",
    "verified_support",
    "verified_violations",
    "saved",
];

/// Calls `with` for each rule of a run, in the order of the table. A run of an earlier build has
/// none.
///
/// # Errors
/// Returns any error of [`scan`] and of `with`.
pub fn each_rule(run: &FinishedRun, with: &mut dyn FnMut(RuleRow) -> Result<()>) -> Result<()> {
    let each_row = &mut |rows: &Table| {
        let rule = rules_of(rows)?;
        let all = [rows.u64("support")?, rows.u64("violations")?];
        let verified = [rows.u64("verified_support")?, rows.u64("verified_violations")?];
        (0..rows.rows()).try_for_each(|row| {
            let verified = EditCounts { support: verified[0][row], violations: verified[1][row] };
            let [support, violations] = [all[0][row] - verified.support, all[1][row] - verified.violations];
            with(rule(row, [EditCounts { support, violations }, verified]))
        })
    };
    scan(run, "url_rules", &COLUMNS, each_row).map(|_| ())
}

/// Name of the table of a comparison with the outcome of each rule.
pub const CHANGED: &str = "url_rules_changed";

/// Columns of [`CHANGED`].
pub const CHANGED_COLUMNS: [&str; 12] = [
    "domain",
    "rank",
    "scope",
    "kind",
    "pattern",
    "replacement",
    "what",
    "support_old",
    "violations_old",
    "support_new",
    "violations_new",
    "saved",
];

/// Values of `what` for rules in force that the newer crawl has learned.
const LEARNED: [&str; 2] = ["new", "confirmed"];

/// Value of `what` for rules that are no longer in force.
pub const WITHDRAWN: &str = "withdrawn";

/// Reads the rules of a comparison whose `what` is not `gone`, in the order of the table. Returns
/// `None` if the comparison has no such table.
///
/// # Errors
/// Returns any error of [`scan`].
pub fn rules_except(comparison: &FinishedRun, gone: &str) -> Result<Option<Vec<RuleRow>>> {
    let mut rules = Vec::new();
    let is_there = scan(comparison, CHANGED, &CHANGED_COLUMNS, &mut |rows| {
        rules.extend(changed_rules(rows, gone)?);
        Ok(())
    })?;
    Ok(is_there.then_some(rules))
}

/// Returns the rules in rows of [`CHANGED`] whose `what` is not `gone`, with the evidence by which
/// they were last learned.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::Input`] if a column is missing.
pub fn changed_rules(rows: &Table, gone: &str) -> Result<Vec<RuleRow>> {
    let (rule, what) = (rules_of(rows)?, rows.text("what")?);
    let old = [rows.u64("support_old")?, rows.u64("violations_old")?];
    let new = [rows.u64("support_new")?, rows.u64("violations_new")?];
    let in_force = (0..rows.rows()).filter(|&row| &what[row] != gone);
    let rules = in_force.map(|row| {
        let [support, violations] = if LEARNED.contains(&&what[row]) { new } else { old };
        rule(row, [EditCounts { support: support[row], violations: violations[row] }, EditCounts::default()])
    });
    Ok(rules.collect())
}

/// Returns a function that makes the rule of a row, given the evidence by which it was learned and
/// verified.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::Input`] if a column is missing.
fn rules_of(rows: &Table) -> Result<impl Fn(usize, [EditCounts; 2]) -> RuleRow + '_> {
    let text = |name: &str| rows.text(name);
    let (domain, scope, kind) = (text("domain")?, text("scope")?, text("kind")?);
    let (pattern, replacement) = (text("pattern")?, text("replacement")?);
    let (rank, saved) = (rows.u32("rank")?, rows.u64("saved")?);
    Ok(move |row: usize, [learned, verified]: [EditCounts; 2]| RuleRow {
        domain: domain[row].into(),
        rank: rank[row],
        scope: scope[row].into(),
        kind: kind[row].into(),
        pattern: pattern[row].into(),
        replacement: replacement[row].into(),
        learned,
        verified,
        saved: saved[row],
    })
}
