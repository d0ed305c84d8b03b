//! Is this page a copy of one that came before?
//!
//! The rules are those of a run, as far as they can be held to one page at a time:
//!
//! - Pages with the same text are copies \[SGM98 2.2\].
//! - Pages in one place of folders that seem to be mirrors are copies if they share `overlap.min_resemblance` of the chunks of the
//!   larger one, and once the mirror is certain [`IN_PLACE`]. Pages at different places of mirrors are no copies: the chapters
//!   of a manual are like each other.
//! - Other pages of two hosts are copies if they share `overlap.min_resemblance_alone`, or [`UNDER_OTHER_NAMES`] where their last
//!   names differ; but not if the other's cluster has a page of this host already, which is then a neighbour.
//!   As long as neither host has shown what its furniture is, the share must be [`MIN_BOILERPLATE_PAGES`].
//! - Pages of one host are copies if they have the same title, or the same notice of nothing, all their chunks resemble each other by
//!   `overlap.views`, and so do three quarters of it those that are no furniture.
//!
//! A chunk on more than `overlap.template_pages` pages of one host is site furniture, and counts for none of these but the views of one host.
//!
//! Only the samples of two pages are compared, so a resemblance is an estimate: of a page with 32 chunks or fewer it is exact.
//! Of copies, the page joins the cluster of the one that is most like it, the older one of two. If several mirrors have a copy in its
//! place, it joins the clusters of all: so the versions of a page come together one by one.

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

/// Most pages that are found by one chunk. Another page that has it is not found by it.
const MOST_PAGES: usize = 64;

/// Units of a resemblance.
pub(crate) const WHOLE: u64 = 10_000;

/// Least resemblance of two pages in one place of mirrors.
const IN_PLACE: u64 = 1_000;

/// Least resemblance of two pages whose last names differ, where no mirror speaks for them.
const UNDER_OTHER_NAMES: u64 = 8_000;

/// Pages of a cluster that are looked through for one of the same host.
const MOST_MEMBERS: usize = 256;

/// Least resemblance of two pages of hosts whose furniture is not known yet.
const MIN_BOILERPLATE_PAGES: u64 = 6_000;

/// The pages that came before, with which a page is compared.
pub(crate) struct EarlierPages<'i> {
    /// The pages before it.
    pub pages: &'i LivePages,
    /// Their chunks.
    pub postings: &'i ChunkPostings,
    /// Their records.
    pub log: &'i Log,
    /// Folders that may be mirrors.
    pub mirrors: &'i FolderGroups,
    /// When two pages share enough.
    pub overlap: &'i OverlapSettings,
}

/// Pages that are most like a page, of which one may be its original.
const MOST_COMPARED: usize = 8;

/// The page that a page is a copy of, and how alike they are in units of 1/10,000.
pub(crate) type CopyMatch = (u32, u16);

/// The chunks of a page that was looked for.
#[derive(Debug, Default)]
struct Chunks {
    /// One bit a chunk, from the lowest of each byte on: it is no furniture.
    posted: Vec<u8>,
    counting: u32,
    /// Pages, by the chunks shared that are no furniture, and those that are.
    shared: HashMap<u32, [u32; 2]>,
}

impl EarlierPages<'_> {
    /// Decides what a page of a host is a copy of.
    ///
    /// # Errors
    /// Those of postings and records that cannot be read.
    ///
    /// # Cost
    /// A look-up for each chunk of the sample, unless the text is known.
    pub(crate) fn decide(&self, page: &PageDigest, host: u32) -> Result<LoggedPage> {
        let mut record = LoggedPage::undecided(page);
        if page.exact != 0
            && let Some(same) = self.pages.by_exact(page.exact)
        {
            record.of = Some((same, WHOLE as u16));
            record.counting = self.pages.counting(same) as u16;
            return Ok(record);
        }
        let chunks = self.chunks(page)?;
        record.counting = chunks.counting.min(u32::from(u16::MAX)) as u16;
        let mut copied = self.others(page, host, &chunks)?;
        copied.splice(0..0, self.view(page, host, &chunks)?);
        record.of = copied.first().copied();
        record.joins = copied.iter().skip(1).map(|&(other, _)| other).collect();
        record.sample = page.sample.clone();
        record.posted = chunks.posted;
        Ok(record)
    }

    fn chunks(&self, page: &PageDigest) -> Result<Chunks> {
        let mut chunks = Chunks { posted: vec![0; page.sample.len().div_ceil(8)], ..Chunks::default() };
        let (mut pages, mut hosts) = (Vec::new(), Vec::new());
        for (at, &hash) in page.sample.iter().enumerate() {
            self.postings.find(hash, &mut pages)?;
            hosts.clear();
            hosts.extend(pages.iter().map(|&page| self.pages.host_of(page)));
            hosts.sort_unstable();
            let most = hosts.chunk_by(|x, y| x == y).map(<[u32]>::len).max().unwrap_or(0);
            let template = self.overlap.template_pages as usize;
            let is_boilerplate = (template > 0 && most > template) || pages.len() >= MOST_PAGES;
            for &page in &pages {
                chunks.shared.entry(page).or_default()[usize::from(is_boilerplate)] += 1;
            }
            if !is_boilerplate {
                chunks.posted[at / 8] |= 1 << (at % 8);
                chunks.counting += 1;
            }
        }
        Ok(chunks)
    }

    /// Pages that it is a copy of, the one that is most like it first: those in its place of mirrors, or one of another host.
    fn others(&self, page: &PageDigest, host: u32, chunks: &Chunks) -> Result<Vec<CopyMatch>> {
        let OverlapSettings { min_shared, min_resemblance, min_resemblance_alone, doubt, .. } = *self.overlap;
        let shared = |other: u32| {
            let [shared, boilerplate] = chunks.shared.get(&other).copied().unwrap_or_default();
            let theirs = self.pages.counting(other).saturating_sub(boilerplate);
            (u64::from(shared), u64::from(chunks.counting.max(theirs).max(1)))
        };
        let resemblance = |other: u32| {
            let (shared, larger) = shared(other);
            (shared * WHOLE / larger).min(WHOLE)
        };
        let mut copied: Vec<CopyMatch> = Vec::new();
        for (other, is_certain) in self.mirrors.counterparts(self.pages, &page.url) {
            let least = if is_certain { IN_PLACE } else { units(min_resemblance) };
            let resemblance = resemblance(other);
            if resemblance >= least {
                copied.push((other, resemblance as u16));
            }
        }
        let order = |&(other, resemblance): &CopyMatch| (Reverse(resemblance), other);
        copied.sort_unstable_by_key(order);
        if !copied.is_empty() {
            return Ok(copied);
        }

        let knows_boilerplate = |host: u32| self.pages.pages_of_host(host) > self.overlap.template_pages;
        let own_known = knows_boilerplate(host);
        let mut alike = Vec::new();
        for &other in chunks.shared.keys() {
            let its_host = self.pages.host_of(other);
            let is_furnished = own_known || knows_boilerplate(its_host);
            let least = units(min_resemblance_alone).max(if is_furnished { 0 } else { MIN_BOILERPLATE_PAGES });
            let (shared, larger) = shared(other);
            let is_enough = shared >= min_shared.max(1).into() && shared * WHOLE >= least * (larger + u64::from(doubt));
            if its_host != host && is_enough {
                alike.push((other, resemblance(other) as u16));
            }
        }
        alike.sort_unstable_by_key(order);
        for &(other, resemblance) in alike.iter().take(MOST_COMPARED) {
            let url = crate::record::url_of(self.log, self.pages, other)?;
            let (shared, larger) = shared(other);
            let has_its_name = aligned(&page.url, &url).is_some();
            let is_enough = has_its_name || shared * WHOLE >= UNDER_OTHER_NAMES * (larger + u64::from(doubt));
            if is_enough && !self.mirrors.are_apart(&page.url, &url) && !self.has_neighbour(&page.url, host, other)? {
                return Ok(vec![(other, resemblance)]);
            }
        }
        Ok(Vec::new())
    }

    /// Returns whether the cluster of a page has a page of a host under another name than this URL's: then a page with another text is a
    /// neighbour of that one.
    fn has_neighbour(&self, url: &str, host: u32, page: u32) -> Result<bool> {
        let members = std::iter::once(page).chain(self.pages.copies(page).take(MOST_MEMBERS));
        match members.into_iter().find(|&member| self.pages.host_of(member) == host) {
            Some(member) => Ok(aligned(url, &crate::record::url_of(self.log, self.pages, member)?).is_none()),
            None => Ok(false),
        }
    }

    /// The page of the same host that shows the same under another URL.
    fn view(&self, page: &PageDigest, host: u32, chunks: &Chunks) -> Result<Option<CopyMatch>> {
        if self.overlap.views == 0.0 || page.title == 0 {
            return Ok(None);
        }
        let Some(other) = self.pages.by_title(host, page.title) else { return Ok(None) };
        let theirs = sample_of(self.log, self.pages, other)?;
        let resemblance = resemblance(&page.sample, &theirs);
        let views = units(self.overlap.views);
        if page.sample.is_empty() || resemblance < views {
            return Ok(None);
        }
        // Of the chunks that are no furniture, counted at both.
        let [own_shared, boilerplate] = chunks.shared.get(&other).copied().unwrap_or_default();
        let own_all = chunks.counting + self.pages.counting(other).saturating_sub(boilerplate) - own_shared;
        let own = u64::from(own_shared) * WHOLE / u64::from(own_all.max(1));
        let is_view = own_all == 0 || own * 4 >= views * 3;
        Ok(is_view.then_some((other, resemblance as u16)))
    }
}

/// The sample of a page.
///
/// # Errors
/// Those of its record.
pub(crate) fn sample_of(log: &Log, pages: &LivePages, page: u32) -> Result<Vec<u64>> {
    let record = page_record(log, pages, page)?;
    match record.of {
        // Of two pages with one text, the first one has the sample.
        Some((of, _)) if record.sample.is_empty() => sample_of(log, pages, of),
        _ => Ok(record.sample),
    }
}

/// A share in units of 1/10,000.
fn units(share: f64) -> u64 {
    (share * WHOLE as f64).round() as u64
}

/// Resemblance of two samples in units of 1/10,000: the share of what both have among what either has, as far as both reach.
pub(crate) fn resemblance(ours: &[u64], theirs: &[u64]) -> u64 {
    let (Some(our_last), Some(their_last)) = (ours.last(), theirs.last()) else { return 0 };
    // A sample that was cut says nothing of the hashes beyond its last one.
    let (ours, theirs) = match crate::digest::is_cut(ours) || crate::digest::is_cut(theirs) {
        true => {
            let last = our_last.min(their_last);
            let up_to = |of: &[u64]| of.partition_point(|hash| hash <= last);
            (&ours[..up_to(ours)], &theirs[..up_to(theirs)])
        }
        false => (ours, theirs),
    };
    let (mut shared, mut at) = (0, 0);
    for hash in ours {
        at += theirs[at..].partition_point(|other| other < hash);
        shared += u64::from(theirs.get(at) == Some(hash));
    }
    let all = (ours.len() + theirs.len()) as u64 - shared;
    shared * WHOLE / all.max(1)
}
