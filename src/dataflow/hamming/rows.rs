//! Rows of the result, and the columns of their tables.

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};
use timely::ExchangeData;

use webtwin_base::ids::DocId;
use webtwin_storage::table::{Table, TableColumn};

/// Row that is written once, even if it was found several times. Of rows that are the same, the
/// smallest is written.
pub(super) trait ResultRow: ExchangeData + Pod + Ord {
    /// Name of the table of these rows.
    const TABLE: &'static str;

    /// Returns the id by which rows are divided among parts. It is the first component of the order
    /// of rows.
    fn id(&self) -> u64;

    /// Returns true if one of the two rows suffices.
    fn is_same(&self, other: &Self) -> bool;

    /// Returns the number under which the summary counts the row, given the previous row of its
    /// part; `None` if it is not counted.
    fn counted_as(&self, previous: Option<&Self>) -> Option<u32>;

    /// Returns the table of the given rows.
    fn table(rows: &[Self]) -> Table;
}

/// Two near documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C, packed(4))]
pub struct NearPair {
    /// First document: a document of F if there are queries, otherwise the smaller one.
    pub a: DocId,
    /// Second document.
    pub b: DocId,
    /// Number of bits in which their fingerprints differ.
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
            ("a", TableColumn::Id(rows.iter().map(|row| row.a).collect())),
            ("b", TableColumn::Id(rows.iter().map(|row| row.b).collect())),
            ("measure", TableColumn::Text(rows.iter().map(|_| "hamming").collect())),
            ("value", TableColumn::U32(rows.iter().map(|row| row.distance).collect())),
        ])
    }
}

/// Document in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C, packed(4))]
pub(super) struct GroupMember {
    /// Group, named by one of its documents.
    pub group: DocId,
    /// Doc id of the member.
    pub document: DocId,
    /// 1 if the document is a query, otherwise 0.
    pub is_query: u32,
}

impl ResultRow for GroupMember {
    const TABLE: &'static str = "groups";

    fn id(&self) -> u64 {
        self.group
    }

    fn is_same(&self, other: &Self) -> bool {
        self == other
    }

    /// Counts groups under the number 0.
    fn counted_as(&self, previous: Option<&Self>) -> Option<u32> {
        let is_first = previous.is_none_or(|previous| previous.id() != self.id());
        is_first.then_some(0)
    }

    fn table(rows: &[Self]) -> Table {
        Table::new([
            ("group", TableColumn::Id(rows.iter().map(|row| row.group).collect())),
            ("doc_id", TableColumn::Id(rows.iter().map(|row| row.document).collect())),
            ("query", TableColumn::Bool(rows.iter().map(|row| row.is_query == 1).collect())),
        ])
    }
}
