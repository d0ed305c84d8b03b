//! The URL rules of a finished run.

use super::Run;
use super::scan::scan;
use crate::error::Result;
use crate::storage::table::Table;
use crate::url_rules::evidence::Counts;
use crate::url_rules::rows::RuleRow;

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

/// Calls `with` for each rule of a run, in the order of the table. A run of an earlier build has none.
///
/// # Errors
/// Those of [`scan`], and of `with`.
pub fn each_rule(run: &Run, with: &mut dyn FnMut(RuleRow) -> Result<()>) -> Result<()> {
    let each_row = &mut |rows: &Table| {
        let text = |name: &str| rows.text(name);
        let (domain, scope, kind) = (text("domain")?, text("scope")?, text("kind")?);
        let (pattern, replacement) = (text("pattern")?, text("replacement")?);
        let (rank, saved) = (rows.u32("rank")?, rows.u64("saved")?);
        let all = [rows.u64("support")?, rows.u64("violations")?];
        let verified = [rows.u64("verified_support")?, rows.u64("verified_violations")?];
        (0..rows.rows()).try_for_each(|row| {
            let verified = Counts { support: verified[0][row], violations: verified[1][row] };
            let [support, violations] = [all[0][row] - verified.support, all[1][row] - verified.violations];
            with(RuleRow {
                domain: domain[row].into(),
                rank: rank[row],
                scope: scope[row].into(),
                kind: kind[row].into(),
                pattern: pattern[row].into(),
                replacement: replacement[row].into(),
                learned: Counts { support, violations },
                verified,
                saved: saved[row],
            })
        })
    };
    scan(run, "url_rules", &COLUMNS, each_row).map(|_| ())
}
