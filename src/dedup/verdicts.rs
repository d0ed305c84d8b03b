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
    pub kept_record: u32,
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
    dropped_texts: Vec<DroppedText>,
    n_against: u32,
    /// Bit set of the numbers of records in whose place others are removed.
    has_copies: Vec<u64>,
}

impl Verdicts {
    /// Combines the exact copies, given by place, with the near-duplicates among the other records.
    pub fn new(corpus: &Corpus, order: Order, copies: Vec<u32>, dropped_texts: Vec<DroppedText>) -> Verdicts {
        let has_copies = vec![0; (order.records as usize).div_ceil(64)];
        let mut verdicts = Verdicts { order, copies, dropped_texts, n_against: corpus.against(), has_copies };
        for record in verdicts.n_against..verdicts.order.records {
            if let Some(removal) = verdicts.removal(record) {
                verdicts.has_copies[removal.kept_record as usize / 64] |= 1 << (removal.kept_record % 64);
            }
        }
        verdicts
    }

    /// Returns the removal of a record, or `None` if it is kept, which applies to all records of
    /// `against`.
    pub fn removal(&self, record: u32) -> Option<RemovedRecord> {
        if record < self.n_against {
            return None;
        }
        let place = self.order.place(record);
        let first = self.copies[place as usize];
        let stands_for_it = if first == NONE { place } else { first };
        let dropped_text = self.dropped_texts.binary_search_by_key(&stands_for_it, |left_out| left_out.text).ok();
        let (kept_record, similarity) = match dropped_text.map(|at| self.dropped_texts[at]) {
            // An exact copy of a removed record has the similarity of that record.
            Some(dropped_text) => (self.order.record(dropped_text.centre), dropped_text.resemblance),
            None if first == NONE => return None,
            None => (self.order.record(first), 1.0),
        };
        let why = match dropped_text {
            _ if kept_record < self.n_against => RemovalReason::Against,
            Some(_) => RemovalReason::Near,
            None => RemovalReason::Exact,
        };
        Some(RemovedRecord { kept_record, why, similarity })
    }

    /// True if other records are removed in favour of this one.
    pub fn has_copies(&self, record: u32) -> bool {
        self.has_copies[record as usize / 64] >> (record % 64) & 1 == 1
    }
}
