//! Is this page a copy of one that came before?
//!
//! The rules are those of a run, as far as they can be held to one page at a time:
//!
//! - Pages with the same text are copies \[SGM98 2.2\].
//! - Pages of two hosts are copies if they share `overlap.min_resemblance` of the chunks of the larger one. A chunk on more than
//!   `overlap.template_pages` pages of one host is site furniture, and counts nowhere. As long as neither host has shown what its
//!   furniture is, the share must be [`BEFORE_FURNITURE`].
//! - Pages of one host are copies if they have the same title, or the same notice of nothing, all their chunks resemble each other by
//!   `overlap.views`, and so do three quarters of it those that are no furniture.
//!
//! Only the samples of two pages are compared, so a resemblance is an estimate: of a page with 32 chunks or fewer it is exact.
//! Of copies, the page joins the cluster of the one that is most like it, the older one of two; clusters are not joined by later pages.

use std::collections::HashMap;

use crate::digest::Digest;
use crate::log::Log;
use crate::pages::Pages;
use crate::postings::Postings;
use crate::record::{PageRecord, Record};
use webtwin_base::error::{Error, Result};
use webtwin_job::Overlap;

/// Most pages that are found by one chunk. Another page that has it is not found by it.
const MOST_PAGES: usize = 64;

/// Units of a resemblance.
pub(crate) const WHOLE: u64 = 10_000;

/// Least resemblance of two pages of hosts whose furniture is not known yet.
const BEFORE_FURNITURE: u64 = 6_000;

/// What a page is compared with.
pub(crate) struct Earlier<'i> {
    /// The pages before it.
    pub pages: &'i Pages,
    /// Their chunks.
    pub postings: &'i Postings,
    /// Their records.
    pub log: &'i Log,
    /// When two pages share enough.
    pub overlap: &'i Overlap,
}

/// The page that a page is a copy of, and how alike they are in units of 1/10,000.
pub(crate) type Copied = Option<(u32, u16)>;

/// The chunks of a page that was looked for.
#[derive(Debug, Default)]
struct Chunks {
    /// One bit a chunk, from the lowest of each byte on: it is no furniture.
    posted: Vec<u8>,
    counting: u32,
    /// Pages, by the chunks shared that are no furniture, and those that are.
    shared: HashMap<u32, [u32; 2]>,
}

impl Earlier<'_> {
    /// Decides what a page of a host is a copy of.
    ///
    /// # Errors
    /// Those of postings and records that cannot be read.
    ///
    /// # Cost
    /// A look-up for each chunk of the sample, unless the text is known.
    pub(crate) fn decide(&self, page: &Digest, host: u32) -> Result<PageRecord> {
        let mut record = PageRecord::of(page);
        if page.exact != 0
            && let Some(same) = self.pages.by_exact(page.exact)
        {
            record.of = Some((same, WHOLE as u16));
            record.counting = self.pages.counting(same) as u16;
            return Ok(record);
        }
        let chunks = self.chunks(page)?;
        record.counting = chunks.counting.min(u32::from(u16::MAX)) as u16;
        record.of = match self.view(page, host, &chunks)? {
            Some(view) => Some(view),
            None => self.best(&chunks, host),
        };
        record.sample = page.sample.clone();
        record.posted = chunks.posted;
        Ok(record)
    }

    fn chunks(&self, page: &Digest) -> Result<Chunks> {
        let mut chunks = Chunks { posted: vec![0; page.sample.len().div_ceil(8)], ..Chunks::default() };
        let (mut pages, mut hosts) = (Vec::new(), Vec::new());
        for (at, &hash) in page.sample.iter().enumerate() {
            self.postings.find(hash, &mut pages)?;
            hosts.clear();
            hosts.extend(pages.iter().map(|&page| self.pages.host_of(page)));
            hosts.sort_unstable();
            let most = hosts.chunk_by(|x, y| x == y).map(<[u32]>::len).max().unwrap_or(0);
            let template = self.overlap.template_pages as usize;
            let is_furniture = (template > 0 && most > template) || pages.len() >= MOST_PAGES;
            for &page in &pages {
                chunks.shared.entry(page).or_default()[usize::from(is_furniture)] += 1;
            }
            if !is_furniture {
                chunks.posted[at / 8] |= 1 << (at % 8);
                chunks.counting += 1;
            }
        }
        Ok(chunks)
    }

    /// The page of another host that is most like it.
    fn best(&self, chunks: &Chunks, host: u32) -> Copied {
        let least = (self.overlap.min_resemblance * WHOLE as f64).round() as u64;
        let knows_furniture = |host: u32| self.pages.pages_of_host(host) > self.overlap.template_pages;
        let own_known = knows_furniture(host);
        let alike = |(&page, &[shared, furniture]): (&u32, &[u32; 2])| {
            let theirs = self.pages.counting(page).saturating_sub(furniture);
            let resemblance = (u64::from(shared) * WHOLE / u64::from(chunks.counting.max(theirs).max(1))).min(WHOLE);
            let other = self.pages.host_of(page);
            let least = if own_known || knows_furniture(other) { least } else { least.max(BEFORE_FURNITURE) };
            let is_copy = other != host && shared >= self.overlap.min_shared.max(1) && resemblance >= least;
            is_copy.then_some((resemblance, std::cmp::Reverse(page)))
        };
        let best = chunks.shared.iter().filter_map(alike).max();
        best.map(|(resemblance, std::cmp::Reverse(page))| (page, resemblance as u16))
    }

    /// The page of the same host that shows the same under another URL.
    fn view(&self, page: &Digest, host: u32, chunks: &Chunks) -> Result<Copied> {
        if self.overlap.views == 0.0 || page.title_or_notice() == 0 {
            return Ok(None);
        }
        let Some(other) = self.pages.by_title(host, page.title_or_notice()) else { return Ok(None) };
        let theirs = self.sample(other)?;
        let resemblance = resemblance(&page.sample, &theirs);
        let views = (self.overlap.views * WHOLE as f64).round() as u64;
        if page.sample.is_empty() || resemblance < views {
            return Ok(None);
        }
        // Of the chunks that are no furniture, counted at both.
        let [own_shared, furniture] = chunks.shared.get(&other).copied().unwrap_or_default();
        let own_all = chunks.counting + self.pages.counting(other).saturating_sub(furniture) - own_shared;
        let own = u64::from(own_shared) * WHOLE / u64::from(own_all.max(1));
        let is_view = own_all == 0 || own * 4 >= views * 3;
        Ok(is_view.then_some((other, resemblance as u16)))
    }

    /// The sample of a page.
    ///
    /// # Errors
    /// Those of its record.
    pub(crate) fn sample(&self, page: u32) -> Result<Vec<u64>> {
        let mut page = page;
        loop {
            match (Record::decode(&self.log.read(self.pages.record(page))?)?, page) {
                (Record::Page(record), number) => match record.of {
                    // Of two pages with one text, the first one has the sample.
                    Some((of, _)) if record.sample.is_empty() && of != number => page = of,
                    _ => return Ok(record.sample),
                },
                _ => return Err(Error::Invariant("the record of a page is none of a page".into())),
            }
        }
    }
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
