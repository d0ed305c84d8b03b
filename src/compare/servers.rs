//! Changes of pairs of hosts that share pages.

use super::merge::{MergeSide, merge};
use webtwin_base::error::Result;
use webtwin_results::FinishedRun;
use webtwin_storage::table::{Table, TableColumn};

const NUMBERS: [&str; 4] = ["shared", "same_path", "pages_a", "pages_b"];

/// Builds `server_pairs_changed`: pairs that only one result has, or whose counts or kind differ.
///
/// # Errors
/// Returns any error of [`FinishedRun::table`].
///
/// # Cost
/// Holds both tables in memory; they have a row for each pair of hosts with many common pages.
pub(super) fn changes(old: &FinishedRun, new: &FinishedRun) -> Result<Table> {
    let tables = [old.table("server_pairs")?, new.table("server_pairs")?];
    // Both tables are sorted by these two columns, so they can be merged.
    let keys = |table: &Table| -> Result<Vec<(u64, u64)>> {
        Ok(table.u64("a")?.iter().copied().zip(table.u64("b")?.iter().copied()).collect())
    };
    let keys = [keys(&tables[0])?, keys(&tables[1])?];
    let kinds = [tables[0].text("kind")?, tables[1].text("kind")?];
    let mut numbers: [Vec<&[u32]>; 2] = Default::default();
    for (table, numbers) in tables.iter().zip(&mut numbers) {
        for name in NUMBERS {
            numbers.push(table.u32(name)?);
        }
    }
    // Change, and the row in each table.
    let mut rows: Vec<(&str, [Option<usize>; 2])> = Vec::new();
    for side in merge(&keys[0], &keys[1]) {
        match side {
            MergeSide::Old(i) => rows.push(("gone", [Some(i), None])),
            MergeSide::New(j) => rows.push(("new", [None, Some(j)])),
            MergeSide::Both(i, j) if kinds[0][i] != kinds[1][j] => rows.push(("kind_changed", [Some(i), Some(j)])),
            MergeSide::Both(i, j) if numbers[0].iter().zip(&numbers[1]).any(|(old, new)| old[i] != new[j]) => {
                rows.push(("changed", [Some(i), Some(j)]));
            }
            MergeSide::Both(..) => {}
        }
    }
    // Ids and host names are equal in both tables, so either row serves.
    let either = |row: &[Option<usize>; 2]| match *row {
        [Some(i), _] => (0, i),
        [None, j] => (1, j.expect("a row is in one of the tables")),
    };
    let ids = |name: &str| -> Result<TableColumn> {
        let columns = [tables[0].u64(name)?, tables[1].u64(name)?];
        Ok(TableColumn::Id(rows.iter().map(|row| either(&row.1)).map(|(side, at)| columns[side][at]).collect()))
    };
    let names = |name: &str| -> Result<TableColumn> {
        let columns = [tables[0].text(name)?, tables[1].text(name)?];
        Ok(TableColumn::Text(
            rows.iter().map(|row| either(&row.1)).map(|(side, at)| columns[side][at].to_string()).collect(),
        ))
    };
    let kind = |side: usize| {
        TableColumn::Text(
            rows.iter().map(|row| row.1[side].map_or(String::new(), |at| kinds[side][at].to_string())).collect(),
        )
    };
    let count = |side: usize, number: usize| {
        TableColumn::U32(rows.iter().map(|row| row.1[side].map_or(0, |at| numbers[side][number][at])).collect())
    };
    Ok(Table::new([
        ("a", ids("a")?),
        ("b", ids("b")?),
        ("host_a", names("host_a")?),
        ("host_b", names("host_b")?),
        ("what", TableColumn::Text(rows.iter().map(|row| row.0.to_string()).collect())),
        ("kind_old", kind(0)),
        ("kind_new", kind(1)),
        ("shared_old", count(0, 0)),
        ("shared_new", count(1, 0)),
        ("same_path_old", count(0, 1)),
        ("same_path_new", count(1, 1)),
        ("pages_a_old", count(0, 2)),
        ("pages_a_new", count(1, 2)),
        ("pages_b_old", count(0, 3)),
        ("pages_b_new", count(1, 3)),
    ]))
}
