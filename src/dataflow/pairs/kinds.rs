//! Pairs of pages by the kind of evidence that found them.

use webtwin_base::error::Result;
use webtwin_core::clusters::weakest_links::EXACT;
use webtwin_core::overlap::SimilarPair;
use webtwin_spill::SpillColumn;

/// Kind of evidence for a pair, in the order of the values of the column `pairs.measure`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PairKind {
    /// Matching pages of mirrored collections.
    Context,
    /// One page declares the other as canonical.
    Declared,
    /// Equal texts. Each pair consists of the first page with a text and another one.
    Exact,
    /// Pair found by another program.
    Given,
    /// Near simhashes.
    Hamming,
    /// Resemblance of sets of shingles.
    Minhash,
    /// Shared chunks.
    Overlap,
    /// Equal notices that there is nothing at the URL.
    Placeholder,
    /// Near signatures of content and hyperlinks.
    Signatures,
    /// Views of one page.
    Views,
}

impl PairKind {
    /// All kinds, ascending.
    pub const ALL: [PairKind; 10] = [
        PairKind::Context,
        PairKind::Declared,
        PairKind::Exact,
        PairKind::Given,
        PairKind::Hamming,
        PairKind::Minhash,
        PairKind::Overlap,
        PairKind::Placeholder,
        PairKind::Signatures,
        PairKind::Views,
    ];

    /// Returns the value in the column `pairs.measure`.
    pub fn as_str(self) -> &'static str {
        match self {
            PairKind::Context => "context",
            PairKind::Declared => "declared",
            PairKind::Exact => "exact",
            PairKind::Given => "given",
            PairKind::Hamming => "hamming",
            PairKind::Minhash => "minhash",
            PairKind::Overlap => "overlap",
            PairKind::Placeholder => "placeholder",
            PairKind::Signatures => "signatures",
            PairKind::Views => "views",
        }
    }

    /// True if pairs of this kind join URLs of one site that show the same page, as opposed to
    /// pages that several sites have.
    pub fn is_within_site(self) -> bool {
        matches!(self, PairKind::Declared | PairKind::Placeholder | PairKind::Views)
    }

    /// Returns the strength of a pair with this value, which is higher for more similar pages.
    /// Values of simhashes and signatures are distances. Pairs that only collections support are
    /// the weakest.
    pub fn strength(self, value: u32) -> u32 {
        match self {
            PairKind::Context => 0,
            PairKind::Exact => EXACT,
            PairKind::Hamming => 64u32.saturating_sub(value),
            PairKind::Signatures => 1_000_000_000u32.saturating_sub(value),
            PairKind::Declared
            | PairKind::Given
            | PairKind::Minhash
            | PairKind::Overlap
            | PairKind::Placeholder
            | PairKind::Views => value,
        }
    }
}

/// Pairs of each kind at this worker.
#[derive(Debug, Default)]
pub struct PairsByKind([SpillColumn<SimilarPair>; PairKind::ALL.len()]);

impl PairsByKind {
    /// Returns the pairs of a kind.
    pub fn column(&self, kind: PairKind) -> &SpillColumn<SimilarPair> {
        &self.0[kind as usize]
    }

    /// Returns the pairs of a kind, mutable.
    pub fn of_mut(&mut self, kind: PairKind) -> &mut SpillColumn<SimilarPair> {
        &mut self.0[kind as usize]
    }

    /// Replaces the pairs of a kind.
    pub fn put(&mut self, kind: PairKind, pairs: SpillColumn<SimilarPair>) {
        self.0[kind as usize] = pairs;
    }

    /// Removes and returns the pairs of a kind.
    pub fn take(&mut self, kind: PairKind) -> SpillColumn<SimilarPair> {
        std::mem::take(&mut self.0[kind as usize])
    }

    /// Returns the pairs of every kind.
    pub fn all(&self) -> Vec<&SpillColumn<SimilarPair>> {
        self.0.iter().collect()
    }

    /// Returns the pairs of every kind except those [within a site](PairKind::is_within_site).
    pub fn between_sites(&self) -> Vec<&SpillColumn<SimilarPair>> {
        PairKind::ALL.into_iter().filter(|kind| !kind.is_within_site()).map(|kind| self.column(kind)).collect()
    }

    /// Returns the number of pairs of all kinds.
    pub fn len(&self) -> usize {
        self.0.iter().map(SpillColumn::len).sum()
    }

    /// True if there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns every pair with its kind.
    pub fn rows(&self) -> impl Iterator<Item = Result<(PairKind, SimilarPair)>> + '_ {
        PairKind::ALL.into_iter().flat_map(|kind| self.column(kind).rows().map(move |pair| Ok((kind, pair?))))
    }

    /// Returns every pair with its [strength](PairKind::strength).
    pub fn with_strength(&self) -> impl Iterator<Item = Result<(SimilarPair, u32)>> + '_ {
        self.rows().map(|row| row.map(|(kind, pair)| (pair, kind.strength(pair.value))))
    }

    /// Keeps the pairs for which `keep` returns true. Returns the numbers of removed pairs: of
    /// exact copies, of other kinds, and of kinds [within a site](PairKind::is_within_site).
    ///
    /// # Errors
    /// Returns any error of the disk, on which pairs may be.
    pub fn retain(&mut self, keep: impl Fn(&SimilarPair) -> bool) -> Result<[u64; 3]> {
        let mut removed = [0; 3];
        for kind in PairKind::ALL {
            let previous_count = self.column(kind).len();
            self.of_mut(kind).retain_mut(|pair| keep(pair))?;
            let place = if kind == PairKind::Exact { 0 } else { 1 + usize::from(kind.is_within_site()) };
            removed[place] += (previous_count - self.column(kind).len()) as u64;
        }
        Ok(removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_ordered_by_name() {
        assert!(PairKind::ALL.is_sorted_by_key(|kind| kind.as_str()));
        assert!(PairKind::ALL.iter().enumerate().all(|(place, &kind)| kind as usize == place));
    }
}
