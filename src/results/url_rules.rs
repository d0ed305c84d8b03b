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

/// Calls `visit` for each rule of a run, in the order of the table. A run of an earlier build has
/// none.
///
/// # Errors
/// Returns any error of [`scan`] and of `visit`.
pub fn each_rule(run: &FinishedRun, visit: &mut dyn FnMut(RuleRow) -> Result<()>) -> Result<()> {
    let each_row = &mut |rows: &Table| {
        let rule = rules_of(rows)?;
        let learned_columns = [rows.u64("support")?, rows.u64("violations")?];
        let verified_columns = [rows.u64("verified_support")?, rows.u64("verified_violations")?];
        (0..rows.rows()).try_for_each(|row| {
            let verified_counts =
                EditCounts { support: verified_columns[0][row], violations: verified_columns[1][row] };
            let [support, violations] = [
                learned_columns[0][row] - verified_counts.support,
                learned_columns[1][row] - verified_counts.violations,
            ];
            visit(rule(row, [EditCounts { support, violations }, verified_counts]))
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
const LEARNED_KINDS: [&str; 2] = ["new", "confirmed"];

/// Value of `what` for rules that are no longer in force.
pub const WITHDRAWN: &str = "withdrawn";

/// Reads the rules of a comparison whose `what` is not `excluded_kind`, in the order of the table.
/// Returns `None` if the comparison has no such table.
///
/// # Errors
/// Returns any error of [`scan`].
pub fn rules_except(comparison: &FinishedRun, excluded_kind: &str) -> Result<Option<Vec<RuleRow>>> {
    let mut rules = Vec::new();
    let is_there = scan(comparison, CHANGED, &CHANGED_COLUMNS, &mut |rows| {
        rules.extend(changed_rules(rows, excluded_kind)?);
        Ok(())
    })?;
    Ok(is_there.then_some(rules))
}

/// Returns the rules in rows of [`CHANGED`] whose `what` is not `excluded_kind`, with the evidence
/// by which they were last learned.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::Input`] if a column is missing.
pub fn changed_rules(rows: &Table, excluded_kind: &str) -> Result<Vec<RuleRow>> {
    let (rule, what) = (rules_of(rows)?, rows.text("what")?);
    let old = [rows.u64("support_old")?, rows.u64("violations_old")?];
    let new = [rows.u64("support_new")?, rows.u64("violations_new")?];
    let rows_in_force = (0..rows.rows()).filter(|&row| &what[row] != excluded_kind);
    let rules = rows_in_force.map(|row| {
        let [support, violations] = if LEARNED_KINDS.contains(&&what[row]) { new } else { old };
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
    let (rank, saved_bytes) = (rows.u32("rank")?, rows.u64("saved")?);
    Ok(move |row: usize, [learned, verified_counts]: [EditCounts; 2]| RuleRow {
        domain: domain[row].into(),
        rank: rank[row],
        scope: scope[row].into(),
        kind: kind[row].into(),
        pattern: pattern[row].into(),
        replacement: replacement[row].into(),
        learned,
        verified: verified_counts,
        saved: saved_bytes[row],
    })
}
