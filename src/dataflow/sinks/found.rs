//! Result of a run, from which its tables are built.

use std::sync::Arc;

use super::avoid_table::{AvoidTable, CrawlerLists};
use super::by_first::{PairRow, by_first};
use super::collection_rows::{CollectionRow, MemberRow};
use super::kept::KeepResult;
use super::skip_lists::SkipListRows;
use super::summarise::{by_size, summarise};
use super::summary::RunSummary;
use super::verdict::PageVerdict;
use crate::clusters::context_pairs::ContextPassCounts;
use crate::clusters::giant_clusters::GiantCluster;
use crate::clusters::grown::GrowthResult;
use crate::clusters::links::WorkerLinks;
use crate::clusters::servers::ServerOverlap;
use crate::clusters::trivial::TrivialClusters;
use crate::pairs::apart::SeparationCounts;
use crate::pairs::editions::EditionCounts;
use crate::pairs::kinds::PairKind;
use crate::pairs::similar::SimilarPages;
use crate::parts::TablePart;
use crate::reading::captures::Crawl;
use crate::run::WorkerRun;
use crate::shuffle::page_set::page_set;
use crate::steps::RunStep;
use crate::web::WorkerWeb;
use webtwin_base::error::Result;
use webtwin_base::ids::Page;
use webtwin_core::clusters::link_summary::LinkSummary;
use webtwin_core::overlap::prune::PageSet;
use webtwin_core::url_rules::rows::RuleRow;
use webtwin_spill::{SortedOutput, SpillColumn};

/// All results that one worker owns. Every list is ascending by its key.
pub struct ReplicaTables {
    /// Pages of the crawl.
    pub crawl: Crawl,
    /// Links between pages.
    pub links: WorkerLinks,
    /// Exact copies with their centres, and pairs by each measure, at the owner of their smaller
    /// page.
    pub pairs: SpillColumn<PairRow>,
    /// Verdicts on the pages of trivial clusters, at the owner of the cluster's smallest page.
    pub verdicts: SpillColumn<PageVerdict>,
    /// Placeholders of all workers.
    pub placeholders: Arc<PageSet>,
    /// Rows of `LinkSummary`, at the owner of the source cluster's smallest page.
    pub link_summary: SpillColumn<LinkSummary>,
    /// Collections, at the owner of their similar cluster's smallest page.
    pub collections: Vec<CollectionRow>,
    /// Pages of collections, at the owner of their similar cluster's smallest page.
    pub members: SpillColumn<MemberRow>,
    /// Avoid list, at the owner of the page.
    pub avoid: AvoidTable,
    /// Avoid list in the form that crawlers use.
    pub lists: CrawlerLists,
    /// URL rules, at worker 0.
    pub url_rules: SortedOutput<RuleRow>,
    /// Parts of further tables, such as `hosts`, and `fprint_docid` if the job requests it.
    pub more_tables: Vec<TablePart>,
    /// Steps that were restored from checkpoints, the same on every worker.
    pub restored_steps: Vec<RunStep>,
    /// Attempt that wrote the earlier result of `keep.sticky`, if there is one.
    pub previous_attempt: Option<String>,
    /// Summary of the results, the same on every worker. The caller fills in `records`.
    pub summary: RunSummary,
}

/// Results of clustering.
pub struct ClusterResults {
    /// Trivial clusters.
    pub trivial: TrivialClusters,
    /// Result of their growth, without the similar clusters.
    pub collections: GrowthResult,
    /// Changes of the context pass.
    pub context: ContextPassCounts,
    /// Outcome for pages that a person marked as different.
    pub separation: SeparationCounts,
    /// Outcome for editions in other languages.
    pub editions: EditionCounts,
    /// Overlap of servers.
    pub servers: ServerOverlap,
    /// Largest trivial clusters.
    pub giants: Vec<GiantCluster>,
}

/// Step that orders pairs and rows of `LinkSummary` for their tables.
const ORDER: RunStep = RunStep::named("order of tables");

impl ReplicaTables {
    /// Sends rows to the owners of their tables, and computes the summary. `previous_attempt` is
    /// the attempt that wrote the result of `keep.sticky`.
    ///
    /// # Errors
    /// Returns any error of the disk, and an error if the run has ended.
    pub fn build(
        run: &mut WorkerRun<'_, '_>,
        web: WorkerWeb,
        similar: SimilarPages,
        clustered: ClusterResults,
        keep_result: KeepResult,
        skip: SkipListRows,
        previous_attempt: Option<String>,
    ) -> Result<ReplicaTables> {
        let ClusterResults { trivial, collections, mut context, separation, editions, servers, giants } = clustered;
        let SimilarPages { pairs, counts, parts: mut more_tables, .. } = similar;
        let paired_placeholders =
            pairs.column(PairKind::Placeholder).rows().map(|pair| pair.map(|pair| [pair.a, pair.b]));
        let placeholders = paired_placeholders.collect::<Result<Vec<[Page; 2]>>>()?.into_flattened();
        // Broadcast, because the owner of a cluster must mark the placeholders of all owners.
        let placeholders = page_set(run.net, "placeholders", placeholders, web.crawl.directory.len())?;
        let trivial_clusters = by_size(&trivial.sizes);
        drop(trivial);
        let (pairs, link_summary) =
            run.step(&web, ORDER, |run| by_first(run.net, &web.crawl, pairs, collections.link_summary))?;
        more_tables.extend(servers.parts);
        more_tables.extend(skip.rules.parts);
        more_tables.extend(skip.hosts);
        let mut tables = ReplicaTables {
            crawl: web.crawl,
            links: web.links,
            pairs,
            verdicts: keep_result.verdicts,
            placeholders,
            link_summary,
            collections: keep_result.collections,
            members: keep_result.members,
            avoid: skip.avoid,
            lists: skip.lists,
            url_rules: skip.rules.sorted_rules,
            more_tables,
            restored_steps: run.restored_steps(),
            previous_attempt,
            summary: RunSummary::default(),
        };
        tables.summary =
            summarise(run.net, run.job, &tables, &counts, trivial_clusters, keep_result.taken_out, &servers.server)?;
        context.attached = keep_result.attached;
        tables.summary.servers = servers.counts;
        tables.summary.second_look = context;
        tables.summary.editions = editions;
        tables.summary.giant_trivial_clusters = giants;
        tables.summary.ways = keep_result.ways;
        tables.summary.kept_before = keep_result.kept_before;
        tables.summary.pins = keep_result.pins;
        tables.summary.url_rules = skip.rules.counts;
        tables.summary.apart = (!run.job.pairs.apart.is_empty()).then_some(separation);
        Ok(tables)
    }
}
