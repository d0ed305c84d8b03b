//! Lists for crawlers: the avoid list, URL prefixes and URL rules.

use std::mem::take;

use super::avoid_table::{self, AvoidTable, CrawlerLists};
use super::by_domain;
use super::hosts::hosts;
use super::kept::Kept;
use super::prefix_roots::PrefixRoots;
use super::url_rules::{self, FoundRules};
use crate::parts::Part;
use crate::run::Run;
use crate::steps::Step;
use crate::web::Web;
use webtwin_base::error::Result;
use webtwin_base::ids::ClusterId;

/// Bytes of the trivial cluster of each page in each process; URL rules are learned from them.
const A_PAGE: u64 = 4;

const AVOID: Step = Step { name: "avoid list", bytes_a_page: A_PAGE, bytes_an_own_page: 0 };
const PREFIXES: Step = Step { name: "prefixes", bytes_a_page: A_PAGE, bytes_an_own_page: 0 };
const URL_RULES: Step = Step { name: "URL rules", bytes_a_page: A_PAGE, bytes_an_own_page: 0 };

/// Lists for crawlers of this worker.
pub struct SkipLists {
    /// Avoid list, at the owner of the page.
    pub avoid: AvoidTable,
    /// Avoid list in the form that crawlers use.
    pub lists: CrawlerLists,
    /// URL rules.
    pub rules: FoundRules,
    /// Parts of the table `hosts`.
    pub hosts: Vec<Part>,
}

impl SkipLists {
    /// Builds the lists from the pages that are kept. `labels` are the trivial clusters of all
    /// pages.
    ///
    /// # Errors
    /// Returns any error of the disk, and an error if the run has ended.
    pub fn of(run: &mut Run<'_, '_>, web: &Web, labels: &[ClusterId], kept: &Kept) -> Result<SkipLists> {
        let (crawl, partitions) = (&web.crawl, run.partitions);
        let avoid = run.step(web, AVOID, |run| avoid_table::rows(run.net, crawl, &kept.verdicts))?;
        let to_skip = avoid.pages()?;
        let lists = run.step(web, PREFIXES, |run| {
            let roots = PrefixRoots::new(run.net, crawl, &kept.collections, &kept.members)?;
            avoid_table::lists(run.net, crawl, &to_skip, &roots)
        })?;
        let redirects = take(&mut run.shelf.redirects);
        let known = by_domain::Known { crawl, labels, to_skip: &to_skip, redirects: &redirects };
        let rules = run.step(web, URL_RULES, |run| url_rules::learned(run.net, &known, partitions))?;
        let hosts = hosts(run.net, crawl, &to_skip, partitions)?;
        Ok(SkipLists { avoid, lists, rules, hosts })
    }
}
