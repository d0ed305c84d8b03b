//! Search for moved sites and pages over all buckets of candidates. The decisions are made by
//! [`super::moved`] and [`super::sites`].

use std::collections::HashMap;
use std::sync::Mutex;

use bytemuck::{Pod, Zeroable};

use super::gather::{FirstPass, ThreadRows, bucket_of};
use super::moved::{self, MovedPair, SiteMoves, UnmatchedPage};
use super::sites::{SiteId, SiteMove, SiteVotes, between, moved_sites};
use super::two_crawls::ComparableResults;
use webtwin_base::error::Result;
use webtwin_base::ids::DocId;
use webtwin_base::threads;
use webtwin_spill::Partitions;

/// A page that moved, with its counterpart in the other crawl.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct PageMove {
    /// The page.
    pub doc_id: DocId,
    /// The counterpart in the other crawl.
    pub counterpart: UnmatchedPage,
    /// Hamming distance of the simhashes plus 1, if both have one; else 0.
    pub bits_and_one: u32,
    /// 1 if the texts are the same, else 0.
    pub same_text: u32,
}

impl PageMove {
    fn of(page: &UnmatchedPage, counterpart: &UnmatchedPage) -> PageMove {
        PageMove {
            doc_id: page.doc_id,
            counterpart: *counterpart,
            bits_and_one: page.bits(counterpart).map_or(0, |bits| bits + 1),
            same_text: u32::from(page.same_text(counterpart)),
        }
    }

    /// Returns the Hamming distance of the simhashes, if both have one.
    pub(super) fn bits(&self) -> Option<u32> {
        self.bits_and_one.checked_sub(1)
    }
}

/// All moves of sites and pages.
pub(super) struct PageMoves {
    /// Sites that moved, with their new site. Moves with the most evidence come first.
    pub sites: Vec<SiteMove>,
    /// Moved pages of the old and of the new crawl, partitioned by range of doc ids.
    pub pages: [ThreadRows<PageMove>; 2],
}

impl PageMoves {
    /// Takes the moved pages of a range, of the old and of the new crawl, ascending. A range can be
    /// taken once.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Storage`] if the disk fails.
    pub(super) fn take(&self, range: usize) -> Result<[Vec<PageMove>; 2]> {
        let take = |side: usize| -> Result<Vec<PageMove>> {
            let mut rows = self.pages[side].take(range)?;
            rows.sort_unstable_by_key(|row| row.doc_id);
            Ok(rows)
        };
        Ok([take(0)?, take(1)?])
    }
}

/// Finds all sites and pages that moved.
///
/// # Errors
/// Returns any error of the disk.
///
/// # Cost
/// Three passes over the candidates. Each thread holds one bucket in memory.
pub(super) fn find(results: &ComparableResults, first_pass: &FirstPass) -> Result<PageMoves> {
    let count = first_pass.buckets;
    let bare_names = first_pass.sites.bare_names();
    let votes = threads::for_each(results.workers, count, HashMap::new, |votes, bucket| {
        let mut candidates = first_pass.unmatched.take(bucket)?;
        moved::votes(&mut candidates, &bare_names, votes);
        first_pass.unmatched.put_back(bucket, &candidates)
    })?;
    let mut site_votes: HashMap<(SiteId, SiteId), SiteVotes> = HashMap::new();
    for (sites, votes) in votes.into_iter().flatten() {
        let sum = site_votes.entry(sites).or_default();
        *sum = SiteVotes { paths: sum.paths + votes.paths, texts: sum.texts + votes.texts };
    }
    // Sites are decided before pages: a moved page with another text can only be matched by its
    // site.
    let ranked = between(&first_pass.sites, &site_votes);
    drop(site_votes);
    let sites = moved_sites(&first_pass.sites, &ranked);
    let moves_by_source = SiteMoves::from_moves(&ranked);

    let share = results.pool.part(results.workers as u64 * 8);
    let two_shares = results.pool.part(results.workers as u64 * 4);
    let put_moves = |pages: &mut [Partitions<PageMove>; 2], pairs: &[MovedPair]| -> Result<()> {
        for [old, new] in pairs {
            pages[0].push(results.ranges.range(old.doc_id), PageMove::of(old, new))?;
            pages[1].push(results.ranges.range(new.doc_id), PageMove::of(new, old))?;
        }
        Ok(())
    };
    let pages =
        || -> [Partitions<PageMove>; 2] { std::array::from_fn(|_| Partitions::new(results.ranges.count(), &share)) };
    let outcome = || (pages(), Partitions::new(count, &two_shares));
    let outcomes = threads::for_each(results.workers, count, outcome, |(pages, text_rows), bucket| {
        let (mut pairs, mut rest) = (Vec::new(), Vec::new());
        let mut candidates = first_pass.unmatched.take(bucket)?;
        moved::by_site(&mut candidates, &moves_by_source, &mut pairs, &mut rest);
        // The remaining pages are partitioned again by text, because their paths may differ.
        rest.iter().try_for_each(|&one| text_rows.push(bucket_of(one.exact, count), one))?;
        put_moves(pages, &pairs)
    })?;
    let (partitions, text_rows): (Vec<_>, Vec<_>) = outcomes.into_iter().unzip();
    let text_rows = ThreadRows::new(text_rows);
    // A thread of this pass continues the partitions of a thread of the previous pass, because each
    // set of open partitions takes memory.
    let partitions = Mutex::new(partitions);
    let next = || partitions.lock().expect("nothing panics while it holds this").pop();
    let mut finished = threads::for_each(
        results.workers,
        count,
        || next().unwrap_or_else(pages),
        |pages, bucket| {
            let mut pairs = Vec::new();
            moved::by_text(&mut text_rows.take(bucket)?, &mut pairs);
            put_moves(pages, &pairs)
        },
    )?;
    finished.extend(std::iter::from_fn(next));
    let (old, new): (Vec<_>, Vec<_>) = finished.into_iter().map(|[old, new]| (old, new)).unzip();
    Ok(PageMoves { sites, pages: [ThreadRows::new(old), ThreadRows::new(new)] })
}
