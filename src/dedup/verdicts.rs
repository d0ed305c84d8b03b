//! Outcome of each record.

use super::corpus::Corpus;
use super::exact::NONE;
use super::order::Order;
use webtwin_core::minhash::star_cover::DroppedText;

/// Reason for the removal of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RemovalReason {
    /// A kept record has the same text.
    Exact,
    /// A kept record is similar.
    Near,
    /// A record of `against` has the same text, or is similar.
    Against,
}

impl RemovalReason {
    /// Returns the value in the column `removed.why`.
    pub fn as_str(self) -> &'static str {
        match self {
            RemovalReason::Exact => "exact",
            RemovalReason::Near => "near",
            RemovalReason::Against => "against",
        }
    }
}

/// Record that is removed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RemovedRecord {
    /// Number of the record that is kept in its place.
    pub kept: u32,
    /// Reason for the removal.
    pub why: RemovalReason,
    /// Resemblance of the two texts; 1 if they are identical.
    pub similarity: f64,
}

/// Outcomes of all records.
pub struct Verdicts {
    order: Order,
    /// First place with the same text, by place.
    copies: Vec<u32>,
    /// Near-duplicates by place, ascending.
    left_out: Vec<DroppedText>,
    against: u32,
    /// Bit set of the numbers of records in whose place others are removed.
    has_copies: Vec<u64>,
}

impl Verdicts {
    /// Combines the exact copies, given by place, with the near-duplicates among the other records.
    pub fn new(corpus: &Corpus, order: Order, copies: Vec<u32>, left_out: Vec<DroppedText>) -> Verdicts {
        let has_copies = vec![0; (order.records as usize).div_ceil(64)];
        let mut verdicts = Verdicts { order, copies, left_out, against: corpus.against(), has_copies };
        for record in verdicts.against..verdicts.order.records {
            if let Some(removed) = verdicts.removal(record) {
                verdicts.has_copies[removed.kept as usize / 64] |= 1 << (removed.kept % 64);
            }
        }
        verdicts
    }

    /// Returns the removal of a record, or `None` if it is kept, which applies to all records of
    /// `against`.
    pub fn removal(&self, record: u32) -> Option<RemovedRecord> {
        if record < self.against {
            return None;
        }
        let place = self.order.place(record);
        let first = self.copies[place as usize];
        let stands_for_it = if first == NONE { place } else { first };
        let near = self.left_out.binary_search_by_key(&stands_for_it, |left_out| left_out.text).ok();
        let (kept, similarity) = match near.map(|at| self.left_out[at]) {
            // An exact copy of a removed record has the similarity of that record.
            Some(near) => (self.order.record(near.centre), near.resemblance),
            None if first == NONE => return None,
            None => (self.order.record(first), 1.0),
        };
        let why = match near {
            _ if kept < self.against => RemovalReason::Against,
            Some(_) => RemovalReason::Near,
            None => RemovalReason::Exact,
        };
        Some(RemovedRecord { kept, why, similarity })
    }

    /// True if other records are removed in favour of this one.
    pub fn has_copies(&self, record: u32) -> bool {
        self.has_copies[record as usize / 64] >> (record % 64) & 1 == 1
    }
}
