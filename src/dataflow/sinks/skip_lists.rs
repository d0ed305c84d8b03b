//! What a crawler is told: the avoid list, URL prefixes and URL rules.

use std::mem::take;

use super::avoid_table::{self, AvoidTable, CrawlerLists};
use super::by_domain::{self, each_domain};
use super::kept::Kept;
use super::paper_tables;
use super::prefix_roots::PrefixRoots;
use super::tables::Part;
use super::url_rules::{FoundRules, RulesWriter};
use crate::run::Run;
use crate::web::Web;
use webtwin_base::error::Result;
use webtwin_base::ids::ClusterId;

/// Bytes a page of its trivial cluster, which URL rules are learned from, in each process.
const LABELS_A_PAGE: u64 = 4;

/// What a crawler is told, this worker's share.
pub struct SkipLists {
    /// The avoid list, with the owner of the page.
    pub avoid: AvoidTable,
    /// The avoid list as crawlers take it.
    pub lists: CrawlerLists,
    /// URL rules.
    pub rules: FoundRules,
    /// Parts of the table `hosts`.
    pub hosts: Vec<Part>,
}

impl SkipLists {
    /// Makes the lists of what is kept; `labels` are the trivial clusters of all pages.
    ///
    /// # Errors
    /// Those of the disk; or when the run has ended.
    pub fn of(run: &mut Run<'_, '_>, web: &Web, labels: &[ClusterId], kept: &Kept) -> Result<SkipLists> {
        let crawl = &web.crawl;
        run.agree_on_memory(web, LABELS_A_PAGE)?;
        let avoid = avoid_table::rows(run.net, crawl, &kept.verdicts)?;
        run.net.memory.give_back();
        let to_skip = avoid.pages()?;
        run.agree_on_memory(web, 0)?;
        let members = (&kept.collections[..], &kept.members);
        let roots = PrefixRoots::new(run.net, crawl, members, run.job.keep.prefix_scope)?;
        run.net.memory.give_back();
        let partitions = run.partitions;
        let lists = avoid_table::lists(run.net, crawl, (&to_skip, &roots))?;
        drop(roots);
        let mut rules = RulesWriter::new(&run.job.url_rules);
        let redirects = take(&mut run.shelf.redirects);
        let known = by_domain::Known { crawl, labels, to_skip: &to_skip, redirects: &redirects };
        each_domain(run.net, &known, partitions, |pages| {
            rules.add(pages);
            Ok(())
        })?;
        let rules = rules.finish(run.net, partitions)?;
        let hosts = paper_tables::hosts(run.net, crawl, &to_skip, partitions)?;
        Ok(SkipLists { avoid, lists, rules, hosts })
    }
}
