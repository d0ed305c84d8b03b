//! Rows of the result, and the columns of their tables.

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};
use timely::ExchangeData;

use webtwin_base::ids::DocId;
use webtwin_storage::table::{Column, Table};

/// A row that is written once, however often it was found; of rows that are the same the smallest.
pub(super) trait ResultRow: ExchangeData + Pod + Ord {
    /// Name of its table.
    const TABLE: &'static str;

    /// The id by which rows are divided among parts: what rows are ordered by first.
    fn id(&self) -> u64;

    /// True if one of two rows is enough.
    fn is_same(&self, other: &Self) -> bool;

    /// The number under which the summary counts the row, which follows `previous` in its part; `None` if it does not.
    fn counted_as(&self, previous: Option<&Self>) -> Option<u32>;

    /// The table of rows.
    fn table(rows: &[Self]) -> Table;
}

/// Two near documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C, packed(4))]
pub struct NearPair {
    /// The one: of F where there are queries, else the smaller.
    pub a: DocId,
    /// The other.
    pub b: DocId,
    /// Bits in which their fingerprints differ.
    pub distance: u32,
}

impl ResultRow for NearPair {
    const TABLE: &'static str = "pairs";

    fn id(&self) -> u64 {
        self.a
    }

    fn is_same(&self, other: &Self) -> bool {
        (self.a, self.b) == (other.a, other.b)
    }

    /// Counts pairs by distance.
    fn counted_as(&self, _: Option<&Self>) -> Option<u32> {
        Some(self.distance)
    }

    fn table(rows: &[Self]) -> Table {
        Table::new([
            ("a", Column::Id(rows.iter().map(|row| row.a).collect())),
            ("b", Column::Id(rows.iter().map(|row| row.b).collect())),
            ("measure", Column::Text(rows.iter().map(|_| "hamming").collect())),
            ("value", Column::U32(rows.iter().map(|row| row.distance).collect())),
        ])
    }
}

/// A document in its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C, packed(4))]
pub(super) struct Member {
    /// The group, by the document that names it.
    pub group: DocId,
    /// The document.
    pub document: DocId,
    /// 1 if it is a query, else 0.
    pub is_query: u32,
}

impl ResultRow for Member {
    const TABLE: &'static str = "groups";

    fn id(&self) -> u64 {
        self.group
    }

    fn is_same(&self, other: &Self) -> bool {
        self == other
    }

    /// Counts groups, as number 0.
    fn counted_as(&self, previous: Option<&Self>) -> Option<u32> {
        let is_first = previous.is_none_or(|previous| previous.id() != self.id());
        is_first.then_some(0)
    }

    fn table(rows: &[Self]) -> Table {
        Table::new([
            ("group", Column::Id(rows.iter().map(|row| row.group).collect())),
            ("doc_id", Column::Id(rows.iter().map(|row| row.document).collect())),
            ("query", Column::Bool(rows.iter().map(|row| row.is_query == 1).collect())),
        ])
    }
}
