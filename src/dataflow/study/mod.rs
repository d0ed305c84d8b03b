//! Runs the `study` job on one worker (\[PBZ06\]): read, find, write, commit.
//!
//! Reading and the deduplication of captures are those of the `replicas` job. Instead of chunks, a
//! page has the marks of its shingle paragraphs ([`webtwin_core::study::paragraphs`]). A page that
//! is not a document has no marks.

mod find;
mod matches;
mod near;
mod web;

use serde::{Deserialize, Serialize};

use super::clusters::links;
use super::reading::captures;
use super::replicas::{CrawlInput, account, read_crawl};
use crate::enough_memory::reserve_memory;
use crate::memory_estimate::MemoryEstimate;
use crate::reading::captures::Crawl;
use crate::reading::ingest::Queue;
use crate::shuffle::directory::TablePartitions;
use crate::shuffle::memory::agree;
use crate::sinks::drafts::by_page;
use crate::sinks::files::{TableMaker, put_tables};
use crate::sinks::rejected::{self, RejectedRows};
use crate::sinks::stage::{StagedFiles, attempt, commit, or_discard, put_summary};
use crate::sinks::summary::RecordTotals;
pub use find::{StudyFindings, find};
pub use near::overlap_settings;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{Page, doc_id};
use webtwin_base::progress::StageTimes;
use webtwin_core::study::clusters::GrowthStep;
use webtwin_core::study::estimate::{Estimate, PERCENTS, estimate};
use webtwin_core::study::report::Tables;
use webtwin_engine::{Net, Owners};
use webtwin_job::Job;
use webtwin_pages::url::CanonicalUrl;
use webtwin_storage::location::Location;
use webtwin_storage::manifest::Manifest;
use webtwin_storage::table::{Table, TableColumn};
use webtwin_storage::texts::StringTable;

/// Content of `summary.json` of a study.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StudySummary {
    /// Digest of the job.
    pub digest: String,
    /// Counts of records by outcome.
    pub records: RecordTotals,
    /// Numbers of connected and disconnected pages.
    pub web: web::ReachReport,
    /// Tables of the paper.
    pub tables: Tables,
    /// Estimates of the number of all duplicates from the growth in `study.reference` (section
    /// 4.2).
    pub estimates_by_reference: Vec<Estimate>,
}

/// Runs the job. Every worker returns the same summary after the result is committed.
///
/// # Errors
/// Returns any [`Error`], the same on all workers; no result exists then.
pub fn run(net: &mut Net<'_>, job: &Job, queue: &Queue, folder: &Location) -> Result<StudySummary> {
    let mut stage_times = StageTimes::start();
    let reference = reference_growth(net, job)?;
    let CrawlInput { mut local_pages, floors, .. } = read_crawl(net, job, queue)?;
    stage_times.end_stage("1 read");

    queue.progress.enter("finding");
    let partitions = TablePartitions::new(job.output.partitions, net.peers());
    reserve_memory(net, "pages, links and the steps after reading", &mut local_pages, job)?;
    let crawl = captures::settle(net, &mut local_pages, &floors, partitions)?;
    let seed = seed(job, &crawl)?;
    agree(net, MemoryEstimate::with(&local_pages, &crawl.pages, None).local_pages_bytes(), 0, &job.effort)?;
    let links = links::resolve(net, &mut local_pages, &crawl)?;
    let links = links.read(0..links.len())?.into_iter().map(<[Page; 2]>::from).collect();
    // Links are moved out of the local pages, so the estimate is taken again without them.
    let lists_estimate = MemoryEstimate::with(&local_pages, &crawl.pages, None);
    let findings = find(net, job, &local_pages, crawl.directory.len(), lists_estimate, links, seed)?;
    let mut summary = StudySummary {
        digest: webtwin_job::JobDigest::from_job(job).hex(),
        records: account(net, &local_pages, &crawl, &queue.work)?,
        web: findings.web.reach.clone(),
        tables: findings.tables.0.clone(),
        estimates_by_reference: Vec::new(),
    };
    let near = findings.near.iter().map(|near| near.0);
    summary.tables.near = near.collect();
    summary.web.seed = url_of(net, &crawl, findings.web.seed)?;
    let growth = &summary.tables.complete.growth;
    summary.estimates_by_reference =
        PERCENTS.iter().filter_map(|&percent| estimate(growth, &reference, percent)).collect();
    stage_times.end_stage("2 find");

    queue.progress.enter("writing");
    let sources = &queue.work.inputs;
    let pages = crawl.directory.owned(net.index());
    let documents: Vec<Page> = pages.filter(|&page| findings.documents.contains(page)).collect();
    let rejections = std::mem::take(&mut local_pages.rejections);
    // Records are gathered before the attempt begins, so that an error here leaves no staged files.
    let not_kept = RejectedRows::gather(net, rejections, sources.len(), partitions.count())?;
    let mut parts =
        by_page("duplicates", &crawl.directory, &documents, |&page| page, |rows| table(&crawl, &findings, rows));
    parts.extend(not_kept.drafts(sources));
    let empty = |name: &str| match name {
        "duplicates" => table(&crawl, &findings, &[]),
        _ => Ok(rejected::table(&[], &[])),
    };
    let making = TableMaker::by(net, job, &["duplicates", "rejected"], &empty)?;
    let reach = serde_json::to_string_pretty(&summary).expect("plain values");
    let attempt = attempt(net, folder)?;
    let files = or_discard(net, &attempt, |net| {
        let own_files = put_tables(net, &attempt, parts, making)?;
        put_summary(net, &attempt, own_files, &reach)
    })?;
    stage_times.end_stage("3 write");
    let complete = &summary.tables.complete;
    let counts = [
        ("records", summary.records.read),
        ("pages", summary.records.kept),
        ("links", summary.web.links),
        ("documents", complete.documents),
        ("clusters", complete.clusters),
        ("duplicates", complete.duplicates),
        ("connected", summary.tables.connected.documents),
    ];
    let recipes = [("chunks", job.chunks.recipe()), ("doc_id", "xxh3-64-v1".into())];
    commit(net, job, &counts, &recipes, stage_times, StagedFiles::new(attempt, files))?;
    Ok(summary)
}

/// Returns the growth in `study.reference`, on every worker; empty without a reference.
fn reference_growth(net: &mut Net<'_>, job: &Job) -> Result<Vec<GrowthStep>> {
    if job.study.reference.is_empty() {
        return Ok(Vec::new());
    }
    let own_growth = match net.index() {
        0 => read_summary(&job.study.reference)?.tables.complete.growth,
        _ => Vec::new(),
    };
    Ok(net.all_gather("growth of the reference", own_growth)?.swap_remove(0))
}

/// Reads the summary of a finished study.
///
/// # Errors
/// Returns [`Error::Input`] if the folder is not a result, or not the result of a study.
pub fn read_summary(url: &str) -> Result<StudySummary> {
    let folder = Location::parse(url)?;
    let manifest = Manifest::read(&folder)?;
    let file = manifest.files.iter().find(|file| file.path == "summary.json");
    let file = file.ok_or_else(|| Error::input(url, "has no summary.json; name the result of a job of kind study"))?;
    serde_json::from_slice(&manifest.read_file(&folder, file)?).map_err(|cause| {
        Error::input(url, format!("summary.json is not that of a study by this build: {cause}; run the study again"))
    })
}

/// Returns the page that `study.seed` names.
fn seed(job: &Job, crawl: &Crawl) -> Result<Option<Page>> {
    if job.study.seed.is_empty() {
        return Ok(None);
    }
    let pages = crawl.directory.by_doc_id()?;
    let page = CanonicalUrl::parse(&job.study.seed).ok().and_then(|url| pages.page(doc_id(url.as_str())));
    let seed = page.ok_or_else(|| Error::Setting {
        file: "the job".into(),
        setting: "study.seed".into(),
        got: job.study.seed.clone(),
        must_be: "the URL of a page of this crawl".into(),
    })?;
    Ok(Some(seed))
}

/// Returns the URL of a page, on every worker; empty for a crawl without pages.
fn url_of(net: &mut Net<'_>, crawl: &Crawl, page: Option<Page>) -> Result<String> {
    let own_page = page.filter(|&page| crawl.directory.owner(page) == net.index());
    let own_url = own_page.map(|page| Ok(crawl.reader().page(page)?.url().to_string())).transpose()?;
    let urls = net.all_gather("seed", own_url)?;
    Ok(urls.into_iter().flatten().next().unwrap_or_default())
}

/// Returns the rows of some documents.
///
/// # Errors
/// Returns any error of the disk, on which captures may be.
fn table(crawl: &Crawl, findings: &StudyFindings, rows: &[Page]) -> Result<Table> {
    let (_, clusters) = &*findings.tables;
    let doc_ids = crawl.directory.doc_ids()?;
    let id = |page: Page| doc_ids[page];
    let ids = |of: &dyn Fn(Page) -> Page| TableColumn::Id(rows.iter().map(|&page| id(of(page))).collect());
    let words = |of: &dyn Fn(Page) -> String| TableColumn::Text(rows.iter().map(|&page| of(page)).collect());
    let bools = |of: &dyn Fn(Page) -> bool| TableColumn::Bool(rows.iter().map(|&page| of(page)).collect());
    let role = |page: Page| match clusters.labels[page] {
        original if original != page => "duplicate",
        _ if findings.clustered.contains(page) => "original",
        _ => "unique",
    };
    let near = |at: usize| bools(&|page| findings.near[at].1.contains(page));
    let (mut pages, mut urls, mut paragraphs) = (crawl.reader(), StringTable::new(), Vec::with_capacity(rows.len()));
    for &page in rows {
        let row = pages.page(page)?;
        urls.push(row.url());
        paragraphs.push(row.chunks);
    }
    Ok(Table::new([
        ("doc_id", ids(&|page| page)),
        ("url", TableColumn::Text(urls)),
        ("paragraphs", TableColumn::U32(paragraphs)),
        ("cluster", ids(&|page| clusters.labels[page])),
        ("role", words(&|page| role(page).into())),
        ("multiset", ids(&|page| findings.same_multiset[page])),
        ("near_90", near(0)),
        ("near_70", near(1)),
        ("near_50", near(2)),
        ("connected", bools(&|page| findings.web.reachable.contains(page))),
        ("place", words(&|page| findings.web.places[page].as_str().into())),
    ]))
}
