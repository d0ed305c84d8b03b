//! Decides whether a page is a copy of a page that was added before.
//!
//! The rules are those of a run, where they can be applied to one page at a time:
//!
//! - Pages with equal texts are copies \[SGM98 2.2\].
//! - Two pages at one place of folders that seem to be mirrors are copies if they share
//!   `overlap.min_resemblance` of the chunks of the larger page. Once the mirror is certain,
//!   [`MIN_RESEMBLANCE_IN_PLACE`] is enough. Pages at different places of mirrors are not copies:
//!   the chapters of a manual resemble each other.
//! - Other pages of two hosts are copies if they share `overlap.min_resemblance_alone` of the
//!   chunks of the larger page, or [`MIN_RESEMBLANCE_RENAMED`] if their file names differ. They are
//!   not copies if the cluster of the other page already has a page of this host under another
//!   name: then the two pages of this host are neighbours. While the boilerplate of both hosts is
//!   unknown, the shared fraction must be at least [`MIN_RESEMBLANCE_UNFILTERED`].
//! - Pages of one host are views of one page if they have the same title, or the same notice that
//!   there is nothing at the URL; if their samples, boilerplate included, have a resemblance of
//!   `overlap.views`; and if their chunks without boilerplate have three quarters of that.
//!
//! A chunk on more than `overlap.template_pages` pages of one host is boilerplate of the site. It
//! counts in none of these rules, except in the resemblance with boilerplate of views.
//!
//! Only the samples of two pages are compared, so a resemblance is an estimate; it is exact for
//! pages of fewer than 32 chunks. Among several copies, the page joins the cluster of the one with
//! the highest resemblance, and of the older one in a tie. If several mirrors have a copy at the
//! place of the page, the page joins the clusters of all of them: so the versions of a page are
//! brought together one by one.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::advice::mirrors::FolderGroups;
use crate::advice::place::aligned;
use crate::digest::PageDigest;
use crate::log::Log;
use crate::pages::LivePages;
use crate::postings::ChunkPostings;
use crate::record::{LoggedPage, page_record};
use webtwin_base::error::Result;
use webtwin_job::OverlapSettings;

/// Maximum number of pages that are found by one chunk. Further pages with the chunk are not found
/// by it.
const MAX_PAGES: usize = 64;

/// Number of units of a resemblance of 1.
pub(crate) const WHOLE_UNITS: u64 = 10_000;

/// Minimum resemblance of two pages at one place of mirrors that are certain, in units of 1/10,000.
const MIN_RESEMBLANCE_IN_PLACE: u64 = 1_000;

/// Minimum resemblance of two pages whose file names differ and that are not in mirrors, in units
/// of 1/10,000.
const MIN_RESEMBLANCE_RENAMED: u64 = 8_000;

/// Maximum number of pages of a cluster that are searched for a page of the same host.
const MAX_MEMBERS: usize = 256;

/// Minimum resemblance of two pages of hosts whose boilerplate is not known yet, in units of
/// 1/10,000.
const MIN_RESEMBLANCE_UNFILTERED: u64 = 6_000;

/// The earlier pages, with which a new page is compared.
pub(crate) struct EarlierPages<'i> {
    /// Table of the earlier pages.
    pub pages: &'i LivePages,
    /// Postings of the chunks of the earlier pages.
    pub postings: &'i ChunkPostings,
    /// Log with the records of the earlier pages.
    pub log: &'i Log,
    /// Folders that may be mirrors.
    pub mirrors: &'i FolderGroups,
    /// Thresholds at which two pages share enough chunks.
    pub overlap: &'i OverlapSettings,
}

/// Maximum number of pages, in descending order of resemblance, that are tested as the original of
/// a page.
const MAX_COMPARED: usize = 8;

/// The number of the page that a page is a copy of, and their resemblance in units of 1/10,000.
pub(crate) type CopyMatch = (u32, u16);

/// Chunks of a new page, and the earlier pages that share them.
#[derive(Debug, Default)]
struct Chunks {
    /// Bit set with one bit for each chunk of the sample, from the lowest bit of each byte on: 1 if
    /// the chunk is not boilerplate.
    posted_bits: Vec<u8>,
    n_counted: u32,
    /// Number of shared chunks for each earlier page: those that are not boilerplate, and those
    /// that are.
    shared_counts: HashMap<u32, [u32; 2]>,
}

impl EarlierPages<'_> {
    /// Decides which earlier page a page of the host `host` is a copy of, if any.
    ///
    /// # Errors
    /// Returns any error of reading postings and records.
    ///
    /// # Cost
    /// One look-up for each chunk of the sample; only one look-up if the text is known.
    pub(crate) fn decide(&self, page: &PageDigest, host: u32) -> Result<LoggedPage> {
        let mut record = LoggedPage::undecided(page);
        if page.exact != 0
            && let Some(exact_copy) = self.pages.by_exact(page.exact)
        {
            record.of = Some((exact_copy, WHOLE_UNITS as u16));
            record.counting = self.pages.counting(exact_copy) as u16;
            return Ok(record);
        }
        let chunks = self.chunks(page)?;
        record.counting = chunks.n_counted.min(u32::from(u16::MAX)) as u16;
        let mut best = self.find_originals(page, host, &chunks)?;
        // If the page is a view of a page of its host, that page is its original, and the page
        // joins the clusters of the other copies.
        best.splice(0..0, self.view(page, host, &chunks)?);
        record.of = best.first().copied();
        record.joins = best.iter().skip(1).map(|&(other, _)| other).collect();
        record.sample = page.sample.clone();
        record.posted = chunks.posted_bits;
        Ok(record)
    }

    fn chunks(&self, page: &PageDigest) -> Result<Chunks> {
        let mut chunks = Chunks { posted_bits: vec![0; page.sample.len().div_ceil(8)], ..Chunks::default() };
        let (mut pages, mut hosts) = (Vec::new(), Vec::new());
        for (number, &hash) in page.sample.iter().enumerate() {
            self.postings.find(hash, &mut pages)?;
            hosts.clear();
            hosts.extend(pages.iter().map(|&page| self.pages.host_of(page)));
            hosts.sort_unstable();
            let limit = hosts.chunk_by(|x, y| x == y).map(<[u32]>::len).max().unwrap_or(0);
            let template = self.overlap.template_pages as usize;
            let is_boilerplate = (template > 0 && limit > template) || pages.len() >= MAX_PAGES;
            for &page in &pages {
                chunks.shared_counts.entry(page).or_default()[usize::from(is_boilerplate)] += 1;
            }
            if !is_boilerplate {
                chunks.posted_bits[number / 8] |= 1 << (number % 8);
                chunks.n_counted += 1;
            }
        }
        Ok(chunks)
    }

    /// Returns the pages that `page` is a copy of, in descending order of resemblance: those at its
    /// place of mirrors, or else at most one page of another host.
    fn find_originals(&self, page: &PageDigest, host: u32, chunks: &Chunks) -> Result<Vec<CopyMatch>> {
        let OverlapSettings { min_shared, min_resemblance, min_resemblance_alone, doubt, .. } = *self.overlap;
        let shared_with = |page_b: u32| {
            let [n_shared, boilerplate] = chunks.shared_counts.get(&page_b).copied().unwrap_or_default();
            let n_counted = self.pages.counting(page_b).saturating_sub(boilerplate);
            (u64::from(n_shared), u64::from(chunks.n_counted.max(n_counted).max(1)))
        };
        let resemblance = |page_b: u32| {
            let (n_shared, larger) = shared_with(page_b);
            (n_shared * WHOLE_UNITS / larger).min(WHOLE_UNITS)
        };
        let mut best: Vec<CopyMatch> = Vec::new();
        for (candidate, is_certain) in self.mirrors.counterparts(self.pages, &page.url) {
            let min_units = if is_certain { MIN_RESEMBLANCE_IN_PLACE } else { units(min_resemblance) };
            let resemblance = resemblance(candidate);
            if resemblance >= min_units {
                best.push((candidate, resemblance as u16));
            }
        }
        let order = |&(other, resemblance): &CopyMatch| (Reverse(resemblance), other);
        best.sort_unstable_by_key(order);
        // Pages of mirrors are matched by their places; the search over all pages is only for pages
        // that have no match there.
        if !best.is_empty() {
            return Ok(best);
        }

        let knows_boilerplate = |host: u32| self.pages.pages_of_host(host) > self.overlap.template_pages;
        let own_known = knows_boilerplate(host);
        let mut similar_pages = Vec::new();
        for &candidate in chunks.shared_counts.keys() {
            let its_host = self.pages.host_of(candidate);
            let is_filtered = own_known || knows_boilerplate(its_host);
            // Boilerplate that is not yet recognized counts as shared content, so the threshold is
            // higher until one of the hosts has enough pages.
            let min_units = units(min_resemblance_alone).max(if is_filtered { 0 } else { MIN_RESEMBLANCE_UNFILTERED });
            let (n_shared, larger) = shared_with(candidate);
            let is_enough = n_shared >= min_shared.max(1).into()
                && n_shared * WHOLE_UNITS >= min_units * (larger + u64::from(doubt));
            if its_host != host && is_enough {
                similar_pages.push((candidate, resemblance(candidate) as u16));
            }
        }
        similar_pages.sort_unstable_by_key(order);
        // URLs are in the log, and each one costs a read, so only the first few pages are tested by
        // name.
        for &(candidate, resemblance) in similar_pages.iter().take(MAX_COMPARED) {
            let url = crate::record::url_of(self.log, self.pages, candidate)?;
            let (n_shared, larger) = shared_with(candidate);
            let has_its_name = aligned(&page.url, &url).is_some();
            let is_enough =
                has_its_name || n_shared * WHOLE_UNITS >= MIN_RESEMBLANCE_RENAMED * (larger + u64::from(doubt));
            if is_enough
                && !self.mirrors.are_apart(&page.url, &url)
                && !self.has_neighbour(&page.url, host, candidate)?
            {
                return Ok(vec![(candidate, resemblance)]);
            }
        }
        Ok(Vec::new())
    }

    /// Returns true if the cluster of `page` has a page of `host` under another name than that of
    /// `url`. Then a page at `url` with another text is a neighbour of that page and not a copy of
    /// it.
    fn has_neighbour(&self, url: &str, host: u32, page: u32) -> Result<bool> {
        let members = std::iter::once(page).chain(self.pages.copies(page).take(MAX_MEMBERS));
        match members.into_iter().find(|&member| self.pages.host_of(member) == host) {
            Some(member) => Ok(aligned(url, &crate::record::url_of(self.log, self.pages, member)?).is_none()),
            None => Ok(false),
        }
    }

    /// Returns the page of the same host that shows the same content under another URL.
    fn view(&self, page: &PageDigest, host: u32, chunks: &Chunks) -> Result<Option<CopyMatch>> {
        if self.overlap.views == 0.0 || page.title == 0 {
            return Ok(None);
        }
        let Some(candidate) = self.pages.by_title(host, page.title) else { return Ok(None) };
        let candidate_sample = sample_of(self.log, self.pages, candidate)?;
        let resemblance = resemblance(&page.sample, &candidate_sample);
        let views = units(self.overlap.views);
        if page.sample.is_empty() || resemblance < views {
            return Ok(None);
        }
        // Resemblance without boilerplate: shared chunks as a fraction of the chunks that either
        // page has.
        let [own_shared, boilerplate] = chunks.shared_counts.get(&candidate).copied().unwrap_or_default();
        let own_all = chunks.n_counted + self.pages.counting(candidate).saturating_sub(boilerplate) - own_shared;
        let shared_fraction = u64::from(own_shared) * WHOLE_UNITS / u64::from(own_all.max(1));
        let is_view = own_all == 0 || shared_fraction * 4 >= views * 3;
        Ok(is_view.then_some((candidate, resemblance as u16)))
    }
}

/// Returns the sample of a page.
///
/// # Errors
/// Returns any error of reading the record of the page.
pub(crate) fn sample_of(log: &Log, pages: &LivePages, page: u32) -> Result<Vec<u64>> {
    let record = page_record(log, pages, page)?;
    match record.of {
        // Of the pages with one text, only the first one stores the sample.
        Some((original, _)) if record.sample.is_empty() => sample_of(log, pages, original),
        _ => Ok(record.sample),
    }
}

/// Converts a fraction to units of 1/10,000.
fn units(share: f64) -> u64 {
    (share * WHOLE_UNITS as f64).round() as u64
}

/// Returns the resemblance of two samples in units of 1/10,000: the hashes in both as a fraction of
/// the hashes in either, up to the hash to which both samples are complete.
pub(crate) fn resemblance(sample_a: &[u64], sample_b: &[u64]) -> u64 {
    let (Some(our_last), Some(their_last)) = (sample_a.last(), sample_b.last()) else { return 0 };
    // A cut sample gives no evidence about hashes above its last one.
    let (sample_a, sample_b) = match crate::digest::is_cut(sample_a) || crate::digest::is_cut(sample_b) {
        true => {
            let last = our_last.min(their_last);
            let up_to = |of: &[u64]| of.partition_point(|hash| hash <= last);
            (&sample_a[..up_to(sample_a)], &sample_b[..up_to(sample_b)])
        }
        false => (sample_a, sample_b),
    };
    let (mut n_shared, mut position) = (0, 0);
    for hash in sample_a {
        position += sample_b[position..].partition_point(|other| other < hash);
        n_shared += u64::from(sample_b.get(position) == Some(hash));
    }
    let union_size = (sample_a.len() + sample_b.len()) as u64 - n_shared;
    n_shared * WHOLE_UNITS / union_size.max(1)
}
