//! Pairs of pages by what they were found by.

use webtwin_base::error::Result;
use webtwin_core::clusters::weakest_links::EXACT;
use webtwin_core::overlap::SimilarPair;
use webtwin_spill::Column;

/// What pairs of pages are found by, in the order of the words of the column `pairs.measure`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Mirrored collections, in which the pages match.
    Context,
    /// Pages that say so themselves.
    Declared,
    /// Equal texts: pairs of the first page of a text with each other.
    Exact,
    /// What something else has found.
    Given,
    /// Near simhashes.
    Hamming,
    /// Shingles.
    Minhash,
    /// Shared chunks.
    Overlap,
    /// Notices that there is nothing.
    Placeholder,
    /// Signatures of content and hyperlinks.
    Signatures,
    /// Views of one page.
    Views,
}

impl Kind {
    /// All, ascending.
    pub const ALL: [Kind; 10] = [
        Kind::Context,
        Kind::Declared,
        Kind::Exact,
        Kind::Given,
        Kind::Hamming,
        Kind::Minhash,
        Kind::Overlap,
        Kind::Placeholder,
        Kind::Signatures,
        Kind::Views,
    ];

    /// Word in the column `pairs.measure`.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Context => "context",
            Kind::Declared => "declared",
            Kind::Exact => "exact",
            Kind::Given => "given",
            Kind::Hamming => "hamming",
            Kind::Minhash => "minhash",
            Kind::Overlap => "overlap",
            Kind::Placeholder => "placeholder",
            Kind::Signatures => "signatures",
            Kind::Views => "views",
        }
    }

    /// Whether the pair joins URLs of one site that show one page, rather than pages that several sites have.
    pub fn is_within_site(self) -> bool {
        matches!(self, Kind::Declared | Kind::Placeholder | Kind::Views)
    }

    /// Strength of a pair with this value, which is higher for pages that are more alike. Values of simhashes and signatures are
    /// distances; weakest are pairs that only collections tell.
    pub fn strength(self, value: u32) -> u32 {
        match self {
            Kind::Context => 0,
            Kind::Exact => EXACT,
            Kind::Hamming => 64u32.saturating_sub(value),
            Kind::Signatures => 1_000_000_000u32.saturating_sub(value),
            Kind::Declared | Kind::Given | Kind::Minhash | Kind::Overlap | Kind::Placeholder | Kind::Views => value,
        }
    }
}

/// This worker's pairs of each kind.
#[derive(Debug, Default)]
pub struct Pairs([Column<SimilarPair>; Kind::ALL.len()]);

impl Pairs {
    /// The pairs of a kind.
    pub fn of(&self, kind: Kind) -> &Column<SimilarPair> {
        &self.0[kind as usize]
    }

    /// The same, to be changed.
    pub fn of_mut(&mut self, kind: Kind) -> &mut Column<SimilarPair> {
        &mut self.0[kind as usize]
    }

    /// Puts pairs in the place of those of a kind.
    pub fn put(&mut self, kind: Kind, pairs: Column<SimilarPair>) {
        self.0[kind as usize] = pairs;
    }

    /// Takes the pairs of a kind, of which none are left.
    pub fn take(&mut self, kind: Kind) -> Column<SimilarPair> {
        std::mem::take(&mut self.0[kind as usize])
    }

    /// The pairs of every kind.
    pub fn all(&self) -> Vec<&Column<SimilarPair>> {
        self.0.iter().collect()
    }

    /// The pairs of every kind but those [within a site](Kind::is_within_site).
    pub fn between_sites(&self) -> Vec<&Column<SimilarPair>> {
        Kind::ALL.into_iter().filter(|kind| !kind.is_within_site()).map(|kind| self.of(kind)).collect()
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.0.iter().map(Column::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every pair with its kind.
    pub fn rows(&self) -> impl Iterator<Item = Result<(Kind, SimilarPair)>> + '_ {
        Kind::ALL.into_iter().flat_map(|kind| self.of(kind).rows().map(move |pair| Ok((kind, pair?))))
    }

    /// Every pair with its [strength](Kind::strength).
    pub fn with_strength(&self) -> impl Iterator<Item = Result<(SimilarPair, u32)>> + '_ {
        self.rows().map(|row| row.map(|(kind, pair)| (pair, kind.strength(pair.value))))
    }

    /// Keeps the pairs for which `keep` holds; returns how many are gone: of exact copies, of other kinds, and of those
    /// [within a site](Kind::is_within_site).
    ///
    /// # Errors
    /// Those of the disk that pairs may be on.
    pub fn retain(&mut self, keep: impl Fn(&SimilarPair) -> bool) -> Result<[u64; 3]> {
        let mut gone = [0; 3];
        for kind in Kind::ALL {
            let before = self.of(kind).len();
            self.of_mut(kind).retain_mut(|pair| keep(pair))?;
            let place = if kind == Kind::Exact { 0 } else { 1 + usize::from(kind.is_within_site()) };
            gone[place] += (before - self.of(kind).len()) as u64;
        }
        Ok(gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_in_the_order_of_their_words() {
        assert!(Kind::ALL.is_sorted_by_key(|kind| kind.as_str()));
        assert!(Kind::ALL.iter().enumerate().all(|(place, &kind)| kind as usize == place));
    }
}
