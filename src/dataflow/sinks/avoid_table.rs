//! The `avoid` table, and the same list in the form that crawlers use.
//!
//! Takes two exchanges: verdicts are sent to the owners of the pages that are kept, which know
//! their URLs, and from there to the owners of the pages to skip. For the lists for crawlers, all
//! URLs are sent to the owners of their hosts, which compute prefixes, and these are sorted over
//! all workers.

use std::cmp::Ordering;

use bytemuck::{Pod, Zeroable};
use itertools::Itertools;
use serde::{Deserialize, Serialize};

use super::by_host::each_host;
use super::prefix_roots::PrefixRoots;
use super::resemblance::Resemblance;
use super::verdict::PageVerdict;
use crate::reading::captures::Crawl;
use crate::shuffle::page_ranges::PageRanges;
use crate::shuffle::sorted_ranges::{RangedRow, SortedRanges};
use webtwin_base::error::Result;
use webtwin_base::ids::Page;
use webtwin_core::applications::exports::{AvoidLists, WidePrefix};
use webtwin_core::applications::heritrix::{SurtRules, surt_rules};
use webtwin_core::applications::keep::{CopyRole, LossKind, RoleNumber, SkipReason};
use webtwin_core::applications::prefixes::{cover, site};
use webtwin_engine::{Net, Owners};
use webtwin_pages::surt::surt_prefix_of;
use webtwin_spill::{SpillColumn, SpillRows};

/// Row of the `avoid` table, at the owner of its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub struct Avoid {
    /// Page to skip.
    pub page: Page,
    /// Page that is kept instead.
    pub keep: Page,
    /// Resemblance of the two pages.
    pub resemblance: Resemblance,
    /// Number of the URL of the kept page in [`AvoidTable::keep_urls`].
    pub keep_url: u32,
    /// Fetch time of the kept page.
    pub keep_time: i64,
    role: RoleNumber,
    _padding: [u16; 3],
}

/// Rows of `avoid` for a worker's pages.
#[derive(Debug, Default)]
pub struct AvoidTable {
    /// Rows, ascending by page.
    pub rows: SpillColumn<Avoid>,
    /// URLs of pages that are kept.
    pub keep_urls: SpillRows<String>,
}

/// Minimum resemblance of a copy. A page with less is another version.
const COPY: f64 = 0.9;

impl Avoid {
    /// Returns the reason for which the page may be skipped.
    pub fn reason(&self) -> SkipReason {
        self.reasons().0
    }

    /// Returns the criterion by which the page is inferior to the kept page.
    pub fn lost_by(&self) -> LossKind {
        self.reasons().1
    }

    fn reasons(&self) -> (SkipReason, LossKind) {
        match self.role.into() {
            CopyRole::Skip(why, lost_by) => (why, lost_by),
            other => unreachable!("{} is not a page to skip", other.as_str()),
        }
    }

    /// Returns the value in the column `avoid.kind`: `copy` for a page that has nearly all its text
    /// in common with the kept page, `unknown` if the text of the kept page is unknown, otherwise
    /// `version`.
    pub fn kind(&self) -> &'static str {
        match self.resemblance {
            resemblance if resemblance.is_unknown() => "unknown",
            resemblance if resemblance.share() >= COPY => "copy",
            _ => "version",
        }
    }

    /// Returns the value in the column `avoid.keep_is`, for a page with the given fetch time (0:
    /// unknown).
    pub fn keep_is(&self, fetch_time: i64) -> &'static str {
        match self.keep_time.cmp(&fetch_time) {
            _ if self.keep_time == 0 || fetch_time == 0 => "unknown",
            Ordering::Less => "older",
            Ordering::Equal => "as-old",
            Ordering::Greater => "newer",
        }
    }
}

/// Builds the rows of `avoid` for this worker's pages. If memory is limited, the URLs of kept pages
/// are on disk.
///
/// # Errors
/// Returns any error of the disk, on which captures may be, too, and an error if the run has ended.
///
/// # Memory
/// Takes 32 bytes and then 40 for each page to skip, or the budget of the step if it is smaller.
pub fn rows(net: &mut Net<'_>, crawl: &Crawl, verdicts: &SpillColumn<PageVerdict>) -> Result<AvoidTable> {
    let directory = crawl.directory.clone();
    let (pages_here, max_rows) = (crawl.pages.len(), verdicts.len() as u64);
    let mut keep_requests = PageRanges::new(net, pages_here, max_rows, 2);
    let take =
        |rows: &[PageVerdict]| rows.iter().try_for_each(|row| keep_requests.push(directory.place(row.keep), *row));
    net.exchange_into(
        "pages to skip",
        verdicts.rows().filter_ok(PageVerdict::skips),
        |row| directory.owner(row.keep),
        take,
    )?;
    let sorted_requests = keep_requests.sorted(net, |row| (row.keep, row.page))?;
    let mut pages = crawl.reader();
    let rows = sorted_requests.rows().map(|row| {
        let PageVerdict { page, keep, role, resemblance, .. } = row?;
        let keep_row = pages.page(keep)?;
        let row =
            Avoid { page, keep, resemblance, keep_time: keep_row.fetch_time, keep_url: 0, role, _padding: [0; 3] };
        Ok((directory.owner(page), (row, keep_row.url().to_string())))
    });
    let (mut avoid_rows, mut keep_urls) = (PageRanges::new(net, pages_here, max_rows, 2), SpillRows::new(&net.memory));
    let take = |(row, url): (Avoid, String)| {
        avoid_rows.push(directory.place(row.page), Avoid { keep_url: keep_urls.len() as u32, ..row })?;
        keep_urls.push(&url)
    };
    net.exchange_values_into("avoid", rows, take)?;
    Ok(AvoidTable { rows: avoid_rows.sorted(net, |row| row.page)?, keep_urls })
}

impl AvoidTable {
    /// Returns the pages to skip, ascending.
    ///
    /// # Errors
    /// Returns any error of the disk.
    pub fn pages(&self) -> Result<Vec<Page>> {
        self.rows.rows().map(|row| Ok(row?.page)).collect()
    }
}

/// Lists that cover exactly the pages to skip: URL prefixes, and rules for Heritrix.
#[derive(Debug)]
pub struct CrawlerLists {
    /// Lists of one site after the other.
    pub sites: SortedRanges<AvoidLists>,
    /// Prefixes that are not whole URLs.
    pub wide_prefixes: SortedRanges<WidePrefix>,
    /// Number of prefixes that are not whole URLs, on hosts that this worker owns.
    pub wide: u64,
}

impl RangedRow for AvoidLists {
    type Key = String;

    fn key(&self) -> String {
        self.prefixes[0].prefix.clone()
    }
}

impl RangedRow for WidePrefix {
    type Key = WidePrefix;

    fn key(&self) -> WidePrefix {
        self.clone()
    }
}

/// Builds the lists for crawlers from the pages `pages_to_skip` and the roots that bound their
/// prefixes, in ranges of about `range_bytes` bytes.
///
/// # Errors
/// Returns any error of [`each_host`] and [`SortedRanges::sort`].
///
/// # Memory
/// Takes the memory of the lists of this worker; or, if memory is limited, that of [`each_host`]
/// and [`SortedRanges::sort`].
pub fn lists(
    net: &mut Net<'_>,
    crawl: &Crawl,
    pages_to_skip: &[Page],
    roots: &PrefixRoots,
    range_bytes: u64,
) -> Result<CrawlerLists> {
    let mut wide = 0;
    let mut site_rows = SpillRows::new(&net.memory);
    each_host(net, crawl, pages_to_skip, roots, |pages| {
        // A prefix applies to one site of the host: http or https, at one port.
        let site_lists = pages.chunk_by(|x, y| site(&x.url) == site(&y.url)).map(cover);
        let mut sites: Vec<AvoidLists> = site_lists
            .filter(|prefixes| !prefixes.is_empty())
            .map(|prefixes| AvoidLists { prefixes, surt_rules: SurtRules::default() })
            .collect();
        if !sites.is_empty() {
            let prefixes = sites.iter().flat_map(|site| &site.prefixes);
            sites[0].surt_rules = surt_rules(pages, prefixes, surt_prefix_of);
        }
        wide += sites.iter().flat_map(|site| &site.prefixes).filter(|prefix| !prefix.single).count() as u64;
        sites.iter().try_for_each(|site| site_rows.push(site))
    })?;
    let sites = SortedRanges::sort(net, "avoid lists", &site_rows, range_bytes)?;
    let mut wide_rows = SpillRows::new(&net.memory);
    sites.each_range(|_, rows| {
        for site in rows {
            wide_rows.extend(site?.wide())?;
        }
        Ok(())
    })?;
    let wide_prefixes = sites.sort_derived(net, "wide prefixes", &wide_rows, range_bytes)?;
    Ok(CrawlerLists { sites, wide_prefixes, wide })
}
