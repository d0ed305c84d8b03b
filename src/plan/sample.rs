//! Size of a crawl, extrapolated from a sample of its work items, which is read in the same way as
//! in a run.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde::Serialize;

use webtwin_base::build_info;
use webtwin_base::error::Result;
use webtwin_base::ids::{HostId, Number, Page};
use webtwin_core::overlap::FPrintDocId;
use webtwin_core::overlap::prune::PageSet;
use webtwin_core::overlap::sample::{SamplePairs, sample_pairs};
use webtwin_dataflow::memory_estimate::MemoryEstimate;
use webtwin_dataflow::reading::captures::host;
use webtwin_dataflow::reading::ingest::{Queue, read};
use webtwin_dataflow::reading::worker_pages::WorkerPages;
use webtwin_dataflow::study;
use webtwin_engine::{ClusterLayout, run as run_on};
use webtwin_job::{Effort, Job, JobDigest, JobKind, OverlapSettings};
use webtwin_pages::public_suffix::domain_of;
use webtwin_pages::work_items::{Sample, SampleItem, WorkItem, WorkList};

/// Size of a crawl.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct CrawlCounts {
    /// Pages, chunks, links and pairs.
    #[serde(flatten)]
    pub held: MemoryEstimate,
    /// Pairs of pages that share at least T chunks, out of a thousand generated pairs.
    pub heavy_thousandths: u64,
    /// Number of links to another page of the crawl.
    pub links_within: u64,
    /// Pages of the largest registered domain of the sample, as many of all pages.
    pub largest_domain: DomainSize,
    /// Bytes of input.
    pub read_bytes: u64,
    /// Processor seconds to read the whole input on this machine, if a sample was read here.
    #[serde(skip)]
    pub read_cpu_seconds: f64,
}

/// Size of a registered domain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DomainSize {
    /// Number of pages.
    pub pages: u64,
    /// Bytes of their URLs.
    pub url_bytes: u64,
}

impl DomainSize {
    /// Returns the size of the largest domain among local pages.
    fn of_largest(local_pages: &WorkerPages) -> Result<DomainSize> {
        let mut domains: HashMap<String, DomainSize> = HashMap::new();
        local_pages.captures.for_each(|capture| {
            let size = domains.entry(domain_of(capture.url()).to_string()).or_default();
            size.pages += 1;
            size.url_bytes += capture.url().len() as u64;
        })?;
        Ok(domains.into_values().max_by_key(|size| (size.pages, size.url_bytes)).unwrap_or_default())
    }

    fn map(self, scale: impl Fn(u64) -> u64) -> DomainSize {
        DomainSize { pages: scale(self.pages), url_bytes: scale(self.url_bytes) }
    }
}

impl CrawlCounts {
    /// Scales the counts to a crawl of `pages` pages with the same proportions, including the
    /// number of copies of each page.
    pub fn of_pages(&self, pages: u64) -> CrawlCounts {
        let factor = pages as f64 / self.held.pages.max(1) as f64;
        let scaled = |n: u64| (n as f64 * factor) as u64;
        CrawlCounts {
            held: MemoryEstimate { pages, on_disk: 0, ..self.held.map(scaled) },
            heavy_thousandths: self.heavy_thousandths,
            links_within: scaled(self.links_within),
            largest_domain: self.largest_domain.map(scaled),
            read_bytes: scaled(self.read_bytes),
            read_cpu_seconds: self.read_cpu_seconds * factor,
        }
    }

    /// Returns the counts of a crawl of `pages` pages, scaled from a real crawl of mirrored manuals
    /// with 105,623 pages in 604 MB of WARC.gz. The counts are those of the default job, or of a
    /// job by shingles. They replace a sample if the crawl does not exist yet.
    pub fn of_real_crawl(pages: u64, job: &Job) -> CrawlCounts {
        let estimate = MemoryEstimate {
            pages: 105_623,
            captures: 25_000_000,
            tuples: 18_527_758,
            features: 0,
            shingles: if job.by_shingles() { 103_163_969 } else { 0 },
            links: 3_600_000,
            resolved: 0,
            pairs: 24_478_115,
            on_disk: 0,
        };
        let read_bytes = 603_824_563;
        CrawlCounts {
            held: estimate,
            heavy_thousandths: 1000,
            links_within: 2_392_855,
            largest_domain: DomainSize::default(),
            read_bytes,
            read_cpu_seconds: 0.0,
        }
        .of_pages(pages)
    }
}

/// Result of reading a sample.
#[derive(Debug, Clone, Copy)]
pub struct SampleReport {
    /// Expected counts of the whole input.
    pub counts: CrawlCounts,
    /// Fraction of the input that was read.
    pub share: f64,
}

/// Reads about as much input as `sample_items` work items contain, and extrapolates.
///
/// # Errors
/// Returns any error of reading a crawl.
///
/// # Cost
/// One thread reads the sample and holds it in memory, regardless of the memory limit of the job.
/// The limit is about the whole crawl, which is larger than the sample.
pub fn sampled(work: WorkList, job: &Job, sample_items: usize) -> Result<SampleReport> {
    let bytes = work.weight();
    let Sample { work: sample, kinds } = work.sample(sample_items);
    let share_of = |weight: u64| weight as f64 / bytes.max(1) as f64;
    let share = share_of(sample.weight());
    let places: Vec<&WorkItem> =
        sample.items.iter().zip(&kinds).filter(|(_, kind)| **kind != SampleItem::Whole).map(|row| row.0).collect();
    let (n_sampled, share_of_places) = (places.len(), share_of(places.iter().map(|item| item.weight()).sum()));
    // The number of places there would be if the whole input were read in places like these.
    let all_places = if n_sampled > 0 { (n_sampled as f64 / share_of_places).round() as usize } else { 0 };
    // The sample is read without a memory limit, so that nothing of it is refused or spilled.
    let job = Job { effort: Effort { memory_bytes: 0, ..job.effort.clone() }, ..job.clone() };
    let (digest, queue) = (JobDigest::from_job(&job), Queue::new(sample));
    let shared_inputs = (Arc::new(job), queue, kinds);
    let mut read_alone = run_on(&ClusterLayout::local(1), 0, digest.0, move |net| {
        let (job, queue, kinds) = &shared_inputs;
        let cpu_before = build_info::cpu_seconds();
        let local_pages = read(net, queue, job)?;
        let cpu_seconds = build_info::cpu_seconds() - cpu_before;
        let share_inside = share_within(&local_pages, kinds, share)?;
        Ok((
            MemoryEstimate::on(&local_pages),
            pairs(&local_pages, kinds, job, share_of_places)?,
            share_inside,
            DomainSize::of_largest(&local_pages)?,
            cpu_seconds,
        ))
    })?;
    let (estimate, pairs, share_within, largest_domain, cpu_seconds) = read_alone.swap_remove(0);
    let scaled = |n: u64, share: f64| if share > 0.0 { (n as f64 / share) as u64 } else { 0 };
    let links = scaled(estimate.links, share);
    let counts = CrawlCounts {
        held: MemoryEstimate {
            pairs: scaled(pairs.within, share_of_places) + pairs.across_all(n_sampled, all_places),
            on_disk: 0,
            ..estimate.map(|n| scaled(n, share))
        },
        heavy_thousandths: pairs.heavy_thousandths,
        links_within: (links as f64 * share_within) as u64,
        largest_domain: largest_domain.map(|n| scaled(n, share)),
        read_bytes: bytes,
        read_cpu_seconds: if share > 0.0 { cpu_seconds / share } else { 0.0 },
    };
    Ok(SampleReport { counts, share })
}

/// Returns the fraction of links that lead to another page of the crawl, computed from whole work
/// items. A target is in the same item, or in another item of which the sample contains the
/// fraction `share`.
fn share_within(local_pages: &WorkerPages, kinds: &[SampleItem], share: f64) -> Result<f64> {
    let item_of: HashMap<u64, u32> =
        local_pages.captures.map(|page| (page.doc_id, page.item)).collect::<Result<_>>()?;
    let (mut links, mut n_within, mut n_elsewhere) = (0u64, 0u64, 0u64);
    let mut links_of = local_pages.links.reader();
    let pages = local_pages.captures.map(|page| (page.slot, page.item)).collect::<Result<Vec<_>>>()?;
    for (slot, page_item) in pages.into_iter().filter(|page| kinds[page.1 as usize] != SampleItem::Place) {
        for doc_id in links_of.get(slot as usize)? {
            links += 1;
            match item_of.get(doc_id) {
                Some(item) if *item == page_item => n_within += 1,
                Some(_) => n_elsewhere += 1,
                None => {}
            }
        }
    }
    Ok(((n_within as f64 + n_elsewhere as f64 / share.max(f64::MIN_POSITIVE)) / links.max(1) as f64).min(1.0))
}

/// Counts the pairs of pages that the chunks of a sample produce. The sample has the fraction
/// `share` of the crawl, in many places.
///
/// A chunk on many pages of a host, or of the crawl, is on few pages of a sample. So the limits on
/// pages of a chunk are scaled down.
fn pairs(local_pages: &WorkerPages, kinds: &[SampleItem], job: &Job, share: f64) -> Result<SamplePairs> {
    let settings = if job.kind == JobKind::Study { study::overlap_settings() } else { job.overlap };
    // One more than the expected number for a chunk at the limit, because the sample may contain
    // more of its pages by chance.
    let scaled_limit = |limit: u32, minimum: u32| match limit {
        0 => 0,
        limit => ((f64::from(limit) * share) as u32 + 1).clamp(minimum, limit.max(minimum)),
    };
    let settings = OverlapSettings {
        template_pages: scaled_limit(settings.template_pages, 1),
        max_documents: scaled_limit(settings.max_documents, 2),
        ..settings
    };
    let mut numbers = BTreeMap::new();
    let (mut hosts, mut items): (Vec<HostId>, Vec<u32>) = Default::default();
    local_pages.captures.for_each(|capture| {
        let next = HostId::from_index(numbers.len());
        hosts.push(*numbers.entry(host(capture.url()).to_string()).or_insert(next));
        items.push(capture.item);
    })?;
    let mut pairs_seen = BTreeSet::new();
    let mut copies = PageSet::new(local_pages.exact.len(), |_| false);
    // The pages of a sample are numbered by their slots: in the order of reading, item by item.
    let pages = || Page::first(local_pages.exact.len());
    let is_in_place = |page: &Page| kinds[items[*page] as usize] != SampleItem::Whole;
    pages()
        .filter(is_in_place)
        .filter(|&page| !pairs_seen.insert(local_pages.exact[page]))
        .for_each(|page| copies.insert(page));
    let (mut fprints, mut table) = (local_pages.fprints.reader(), Vec::new());
    for page in pages().filter(is_in_place) {
        table.extend(fprints.get(page.index())?.iter().map(|&fprint| FPrintDocId::new(fprint, page)));
    }
    table.sort_unstable_by_key(FPrintDocId::key);
    Ok(sample_pairs(&table, &hosts, &copies, |page| items[page], &settings))
}
