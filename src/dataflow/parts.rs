//! Parts of tables, as steps make them for the end of a run.

use webtwin_storage::table::Table;

/// A part of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Name of the table.
    pub name: &'static str,
    /// The partition.
    pub partition: usize,
    /// Its rows.
    pub rows: Table,
}
