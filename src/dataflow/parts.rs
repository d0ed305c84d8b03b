//! Parts of tables, as steps make them for the end of a run.

use webtwin_storage::table::Table;

/// A part of a table: its name, the partition, the rows.
pub type Part = (&'static str, usize, Table);
