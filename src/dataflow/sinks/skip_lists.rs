//! Lists for crawlers: the avoid list, URL prefixes and URL rules.

use std::mem::take;

use super::avoid_table::{self, AvoidTable, CrawlerLists};
use super::by_domain;
use super::hosts::hosts;
use super::kept::KeepResult;
use super::prefix_roots::PrefixRoots;
use super::url_rules::{self, FoundRules};
use crate::parts::TablePart;
use crate::run::WorkerRun;
use crate::steps::RunStep;
use crate::web::WorkerWeb;
use webtwin_base::error::Result;
use webtwin_base::ids::ClusterId;
use webtwin_core::clusters::labels::SetLabels;

/// Bytes of the trivial cluster of each page in each process; URL rules are learned from them.
const PAGE_BYTES: u64 = 4;

const AVOID: RunStep = RunStep { name: "avoid list", bytes_a_page: PAGE_BYTES, bytes_an_own_page: 0 };
const PREFIXES: RunStep = RunStep { name: "prefixes", bytes_a_page: PAGE_BYTES, bytes_an_own_page: 0 };
const URL_RULES: RunStep = RunStep { name: "URL rules", bytes_a_page: PAGE_BYTES, bytes_an_own_page: 0 };

/// Lists for crawlers of this worker.
pub struct SkipListRows {
    /// Avoid list, at the owner of the page.
    pub avoid: AvoidTable,
    /// Avoid list in the form that crawlers use.
    pub lists: CrawlerLists,
    /// URL rules.
    pub rules: FoundRules,
    /// Parts of the table `hosts`.
    pub hosts: Vec<TablePart>,
}

impl SkipListRows {
    /// Builds the lists from the pages that are kept. `labels` are the trivial clusters of all
    /// pages.
    ///
    /// # Errors
    /// Returns any error of the disk, and an error if the run has ended.
    pub fn build(
        run: &mut WorkerRun<'_, '_>,
        web: &WorkerWeb,
        labels: &SetLabels<ClusterId>,
        keep_result: &KeepResult,
    ) -> Result<SkipListRows> {
        let (crawl, partitions) = (&web.crawl, run.partitions);
        let avoid = run.step(web, AVOID, |run| avoid_table::rows(run.net, crawl, &keep_result.verdicts))?;
        let pages_to_skip = avoid.pages()?;
        let lists = run.step(web, PREFIXES, |run| {
            let roots = PrefixRoots::new(run.net, crawl, &keep_result.collections, &keep_result.members)?;
            avoid_table::lists(run.net, crawl, &pages_to_skip, &roots, run.job.output.export_bytes)
        })?;
        let redirects = take(&mut run.local_pages.redirects);
        let facts = by_domain::WorkerPageFacts { crawl, labels, pages_to_skip: &pages_to_skip, redirects: &redirects };
        let rules = run.step(web, URL_RULES, |run| url_rules::learn_rules(run.net, &facts, partitions))?;
        let hosts = hosts(run.net, crawl, &pages_to_skip, partitions)?;
        Ok(SkipListRows { avoid, lists, rules, hosts })
    }
}
