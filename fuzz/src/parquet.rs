//! Parquet: a file that opens yields each of its rows once, read by row group or as a whole; an
//! undamaged file has the rows that were written.

use std::sync::{Arc, OnceLock};

use super::{damaged, first, found, offset};
use webtwin_base::read_at::Bytes;
use webtwin_job::{FieldNames, RecordLimits};
use webtwin_pages::parquet_rows::ParquetRows;
use webtwin_pages::record::{ReadResult, Reason};
use webtwin_storage::table::{Table, TableColumn, encode};

const ROWS: usize = 70;

/// Checks one input of the fuzzer.
pub fn check(data: &[u8]) {
    static WHOLE: OnceLock<Vec<u8>> = OnceLock::new();
    let Some((how, rest)) = first(data) else { return };
    let whole = WHOLE.get_or_init(|| {
        let text = |of: &str| TableColumn::Text((0..ROWS).map(|row| format!("{of}{row}")).collect());
        let time = TableColumn::Time((0..ROWS as i64).collect());
        let columns = [("url", text("http://a.example/")), ("text", text("words ")), ("fetch_time", time)];
        encode(&Table::new(columns)).expect("a table can be written")
    });
    let bytes = if how % 2 == 0 { damaged(whole, rest) } else { rest.to_vec() };
    let is_whole = bytes == *whole;
    let (limits, fields) = (RecordLimits::default(), FieldNames::default());
    let Ok(file) = ParquetRows::open(Arc::new(Bytes(bytes)), "fuzzed", &fields) else {
        assert!(!is_whole);
        return;
    };
    let groups = file.groups() as u64;
    let rows: u64 = (0..groups).map(|group| file.rows(group)).sum();
    if rows > 1 << 16 {
        return;
    }
    let ((), all) = found(|sink| file.read_groups(0..groups, &limits, sink));
    let is_rest =
        |one: &&ReadResult| matches!(one, ReadResult::Refused(refused) if refused.reason == Reason::BadParquet);
    // The rejection for the rest of a group without rows has the offset at which the next group
    // begins.
    assert!(all.is_sorted_by(|x, y| offset(x) < offset(y) || is_rest(&x) && offset(x) == offset(y)));
    assert!(all.iter().all(|one| offset(one) < rows || is_rest(&one) && offset(one) == rows));
    let by_group = (0..groups).flat_map(|group| found(|sink| file.read_groups(group..group + 1, &limits, sink)).1);
    assert_eq!(by_group.collect::<Vec<ReadResult>>(), all);
    // One rejection covers the rest of its group.
    assert!(all.iter().filter(is_rest).count() as u64 <= groups);
    assert!(all.iter().any(|one| is_rest(&one)) || all.len() as u64 == rows);
    assert!(!is_whole || all.len() == ROWS && all.iter().all(|one| matches!(one, ReadResult::Page(_))));
}
