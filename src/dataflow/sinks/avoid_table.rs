//! The `avoid` table, and the same as crawlers take it.
//!
//! Two exchanges: verdicts by way of the owners of the pages that stay, who know their URLs, to those of the pages to skip. Two for
//! what crawlers take: all URLs to the owners of their hosts for the prefixes, and these to worker 0.

use std::cmp::Ordering;

use bytemuck::{Pod, Zeroable};
use itertools::Itertools;
use serde::{Deserialize, Serialize};

use super::by_host::each_host;
use super::prefix_roots::PrefixRoots;
use super::resemblance::Resemblance;
use super::verdict::Verdict;
use crate::reading::captures::Crawl;
use crate::shuffle::stretches::Stretches;
use webtwin_base::error::Result;
use webtwin_base::ids::Page;
use webtwin_core::applications::exports::AvoidLists;
use webtwin_core::applications::heritrix::{SurtRules, surt_rules};
use webtwin_core::applications::keep::{LostBy, Role, RoleNumber, Why};
use webtwin_core::applications::prefixes::{cover, site};
use webtwin_engine::{Net, Owners};
use webtwin_pages::surt::surt_prefix_of;
use webtwin_spill::{Column, Rows, Sorted, Sorter};

/// A row of the `avoid` table, with its page's owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub struct Avoid {
    /// The page to skip.
    pub page: Page,
    /// The page that stays.
    pub keep: Page,
    /// What it has in common with that page.
    pub resemblance: Resemblance,
    /// Number of its URL in [`AvoidTable::keep_urls`].
    pub keep_url: u32,
    /// When that page was fetched.
    pub keep_time: i64,
    role: RoleNumber,
    _padding: [u16; 3],
}

/// The `avoid` rows of a worker's pages.
#[derive(Debug, Default)]
pub struct AvoidTable {
    /// Ascending by page.
    pub rows: Column<Avoid>,
    /// URLs of pages that stay.
    pub keep_urls: Rows<String>,
}

/// Least resemblance of a copy; a page with less is another version.
const COPY: f64 = 0.9;

impl Avoid {
    /// Why the page may be skipped.
    pub fn why(&self) -> Why {
        self.reasons().0
    }

    /// What it has less of than the page that stays.
    pub fn lost_by(&self) -> LostBy {
        self.reasons().1
    }

    fn reasons(&self) -> (Why, LostBy) {
        match self.role.into() {
            Role::Skip(why, lost_by) => (why, lost_by),
            other => unreachable!("{} is no page to skip", other.as_str()),
        }
    }

    /// The word in the column `avoid.kind`: `copy` for a page that has nearly all its text in common with the one that stays,
    /// else `version`.
    pub fn kind(&self) -> &'static str {
        if self.resemblance.share() >= COPY { "copy" } else { "version" }
    }

    /// The word in the column `avoid.keep_is`, for a page fetched at this time (0: unknown).
    pub fn keep_is(&self, fetch_time: i64) -> &'static str {
        match self.keep_time.cmp(&fetch_time) {
            _ if self.keep_time == 0 || fetch_time == 0 => "unknown",
            Ordering::Less => "older",
            Ordering::Equal => "as-old",
            Ordering::Greater => "newer",
        }
    }
}

/// The `avoid` rows of this worker's pages. Where memory has a bound their URLs wait on the disk.
///
/// # Errors
/// Those of the disk, which captures may be on, too; or when the run has ended.
///
/// # Memory
/// 32 bytes and then 40 for each page to skip, or what the step has memory for.
pub fn rows(net: &mut Net<'_>, crawl: &Crawl, verdicts: &Column<Verdict>) -> Result<AvoidTable> {
    let directory = crawl.directory.clone();
    let (pages_here, most) = (crawl.pages.len(), verdicts.len() as u64);
    let mut asked = Stretches::new(net, pages_here, most, 2);
    let take = |rows: &[Verdict]| rows.iter().try_for_each(|row| asked.push(directory.place(row.keep), *row));
    net.exchange_into(
        "pages to skip",
        verdicts.rows().filter_ok(Verdict::skips),
        |row| directory.owner(row.keep),
        take,
    )?;
    let asked = asked.sorted(net, |row| (row.keep, row.page))?;
    let mut pages = crawl.reader();
    let rows = asked.rows().map(|row| {
        let Verdict { page, keep, role, resemblance, .. } = row?;
        let kept = pages.page(keep)?;
        let row = Avoid { page, keep, resemblance, keep_time: kept.fetch_time, keep_url: 0, role, _padding: [0; 3] };
        Ok((directory.owner(page), (row, kept.url().to_string())))
    });
    let (mut found, mut keep_urls) = (Stretches::new(net, pages_here, most, 2), Rows::new(&net.memory));
    let take = |(row, url): (Avoid, String)| {
        found.push(directory.place(row.page), Avoid { keep_url: keep_urls.len() as u32, ..row })?;
        keep_urls.push(&url)
    };
    net.exchange_values_into("avoid", rows, take)?;
    Ok(AvoidTable { rows: found.sorted(net, |row| row.page)?, keep_urls })
}

impl AvoidTable {
    /// The pages to skip, ascending.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn pages(&self) -> Result<Vec<Page>> {
        self.rows.rows().map(|row| Ok(row?.page)).collect()
    }
}

/// What covers the pages to skip and no other, by URL and for Heritrix.
#[derive(Debug)]
pub struct CrawlerLists {
    /// Site by site, all at worker 0.
    pub sites: Sorted<AvoidLists>,
    /// Prefixes that are no whole URLs, of hosts that this worker owns.
    pub wide: u64,
}

/// The lists for crawlers, of pages `to_skip` and the roots of prefixes over them.
///
/// # Errors
/// As [`each_host`].
///
/// # Memory
/// All of it; or within a bound what [`each_host`] and [`Sorter`] need.
pub fn lists(net: &mut Net<'_>, crawl: &Crawl, to_skip: &[Page], roots: &PrefixRoots) -> Result<CrawlerLists> {
    let mut wide = 0;
    let mut found = Rows::new(&net.memory);
    each_host(net, crawl, to_skip, roots, |pages| {
        // A prefix speaks for one site of the host: http or https, at one port.
        let of_sites = pages.chunk_by(|x, y| site(&x.url) == site(&y.url)).map(cover);
        let mut sites: Vec<AvoidLists> = of_sites
            .filter(|prefixes| !prefixes.is_empty())
            .map(|prefixes| AvoidLists { prefixes, surt_rules: SurtRules::default() })
            .collect();
        if !sites.is_empty() {
            let prefixes = sites.iter().flat_map(|site| &site.prefixes);
            sites[0].surt_rules = surt_rules(pages, prefixes, surt_prefix_of);
        }
        wide += sites.iter().flat_map(|site| &site.prefixes).filter(|prefix| !prefix.single).count() as u64;
        sites.iter().try_for_each(|site| found.push(site))
    })?;
    let rows = found.rows().map_ok(|site| (0, site));
    let mut sites = Sorter::new(&net.memory);
    net.exchange_values_into("avoid lists", rows, |site| sites.push(site))?;
    Ok(CrawlerLists { sites: sites.finish()?, wide })
}
