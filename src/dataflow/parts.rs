//! Parts of tables, which steps produce for the end of a run.

use webtwin_storage::table::Table;

/// Part of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct TablePart {
    /// Name of the table.
    pub name: &'static str,
    /// Number of the partition.
    pub partition: usize,
    /// Rows of this part.
    pub rows: Table,
}
