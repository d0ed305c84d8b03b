//! What a crawl holds, extrapolated from a sample of its work items that is read as a run would read it.

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
use webtwin_engine::{Cluster, run as run_on};
use webtwin_job::{Digest, Effort, Job, JobKind, Overlap};
use webtwin_pages::work_items::{Sample, Sampled as Kind, Work, WorkItem};

/// What a crawl holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Counts {
    /// Pages, chunks, links and pairs.
    #[serde(flatten)]
    pub held: MemoryEstimate,
    /// Of a thousand pairs, those of pages that share T chunks.
    pub heavy_thousandths: u64,
    /// Links that lead to another page of the crawl.
    pub links_within: u64,
    /// Bytes of input.
    pub read_bytes: u64,
    /// Processor seconds to read all of it on this machine, if a sample was read here.
    #[serde(skip)]
    pub read_cpu_seconds: f64,
}

impl Counts {
    /// The same of a crawl of so many pages in which everything stands in the same proportion to the pages: copies a page, too.
    pub fn of_pages(&self, pages: u64) -> Counts {
        let by = pages as f64 / self.held.pages.max(1) as f64;
        let of = |n: u64| (n as f64 * by) as u64;
        Counts {
            held: MemoryEstimate { pages, on_disk: 0, ..self.held.map(of) },
            heavy_thousandths: self.heavy_thousandths,
            links_within: of(self.links_within),
            read_bytes: of(self.read_bytes),
            read_cpu_seconds: self.read_cpu_seconds * by,
        }
    }

    /// As many pages of a crawl of mirrored manuals with 105,623 pages in 604 MB of WARC.gz, as the default job, or one by shingles, finds
    /// them there: what stands for a crawl that is not there yet.
    pub fn of_real_crawl(pages: u64, job: &Job) -> Counts {
        let held = MemoryEstimate {
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
        Counts { held, heavy_thousandths: 1000, links_within: 2_392_855, read_bytes, read_cpu_seconds: 0.0 }
            .of_pages(pages)
    }
}

/// What a sample told.
#[derive(Debug, Clone, Copy)]
pub struct Sampled {
    /// What all of the input is expected to hold.
    pub counts: Counts,
    /// Share of the input that was read.
    pub share: f64,
}

/// Reads about as much as so many work items hold, and extrapolates.
///
/// # Errors
/// Those of reading a crawl.
///
/// # Cost
/// One thread reads the sample and holds it, whatever the job allows: what it says of the whole is more than what it takes.
pub fn sampled(work: Work, job: &Job, sample_items: usize) -> Result<Sampled> {
    let bytes = work.weight();
    let Sample { work: sample, kinds } = work.sample(sample_items);
    let share_of = |weight: u64| weight as f64 / bytes.max(1) as f64;
    let share = share_of(sample.weight());
    let places: Vec<&WorkItem> =
        sample.items.iter().zip(&kinds).filter(|(_, kind)| **kind != Kind::Whole).map(|row| row.0).collect();
    let (sampled, share_of_places) = (places.len(), share_of(places.iter().map(|item| item.weight()).sum()));
    // As many places there would be if all were read like these.
    let all_places = if sampled > 0 { (sampled as f64 / share_of_places).round() as usize } else { 0 };
    let job = Job { effort: Effort { memory_bytes: 0, ..job.effort.clone() }, ..job.clone() };
    let (digest, queue) = (Digest::of(&job), Queue::new(sample));
    let shared = (Arc::new(job), queue, kinds);
    let mut read_alone = run_on(&Cluster::local(1), 0, digest.0, move |net| {
        let (job, queue, kinds) = &shared;
        let before = build_info::cpu_seconds();
        let shelf = read(net, queue, job)?;
        let cpu_seconds = build_info::cpu_seconds() - before;
        let within = share_within(&shelf, kinds, share)?;
        Ok((MemoryEstimate::on(&shelf), pairs(&shelf, kinds, job, share_of_places)?, within, cpu_seconds))
    })?;
    let (held, pairs, share_within, cpu_seconds) = read_alone.swap_remove(0);
    let scaled = |n: u64, share: f64| if share > 0.0 { (n as f64 / share) as u64 } else { 0 };
    let links = scaled(held.links, share);
    let counts = Counts {
        held: MemoryEstimate {
            pairs: scaled(pairs.within, share_of_places) + pairs.across_all(sampled, all_places),
            on_disk: 0,
            ..held.map(|n| scaled(n, share))
        },
        heavy_thousandths: pairs.heavy_thousandths,
        links_within: (links as f64 * share_within) as u64,
        read_bytes: bytes,
        read_cpu_seconds: if share > 0.0 { cpu_seconds / share } else { 0.0 },
    };
    Ok(Sampled { counts, share })
}

/// Share of the links that lead to another page of the crawl, by those of whole items: to a page of the same item, or of another one
/// of which the sample has `share`.
fn share_within(shelf: &WorkerPages, kinds: &[Kind], share: f64) -> Result<f64> {
    let item_of: HashMap<u64, u32> = shelf.captures.map(|page| (page.doc_id, page.item)).collect::<Result<_>>()?;
    let (mut links, mut within, mut elsewhere) = (0u64, 0u64, 0u64);
    let mut links_of = shelf.links.reader();
    let pages = shelf.captures.map(|page| (page.slot, page.item)).collect::<Result<Vec<_>>>()?;
    for (slot, page_item) in pages.into_iter().filter(|page| kinds[page.1 as usize] != Kind::Place) {
        for doc_id in links_of.get(slot as usize)? {
            links += 1;
            match item_of.get(doc_id) {
                Some(item) if *item == page_item => within += 1,
                Some(_) => elsewhere += 1,
                None => {}
            }
        }
    }
    Ok(((within as f64 + elsewhere as f64 / share.max(f64::MIN_POSITIVE)) / links.max(1) as f64).min(1.0))
}

/// Pairs of pages made by the chunks on the shelf of a sample, where it has `share` of the crawl in many places.
///
/// Of a chunk that is on many pages of a host, or of the crawl, a sample has few: so many fewer are too many here.
fn pairs(shelf: &WorkerPages, kinds: &[Kind], job: &Job, share: f64) -> Result<SamplePairs> {
    let settings = if job.kind == JobKind::Study { study::overlap_settings() } else { job.overlap };
    // One more than is to be expected of a chunk that just counts, for it may be the sample's luck.
    let of_sample = |most: u32, least: u32| match most {
        0 => 0,
        most => ((f64::from(most) * share) as u32 + 1).clamp(least, most.max(least)),
    };
    let settings = Overlap {
        template_pages: of_sample(settings.template_pages, 1),
        max_documents: of_sample(settings.max_documents, 2),
        ..settings
    };
    let mut numbers = BTreeMap::new();
    let (mut hosts, mut items): (Vec<HostId>, Vec<u32>) = Default::default();
    shelf.captures.each(|capture| {
        let next = HostId::from_index(numbers.len());
        hosts.push(*numbers.entry(host(capture.url()).to_string()).or_insert(next));
        items.push(capture.item);
    })?;
    let mut seen = BTreeSet::new();
    let mut copies = PageSet::new(shelf.exact.len(), |_| false);
    // A sample's pages have the numbers of their slots: in the order of reading, item by item.
    let pages = || Page::first(shelf.exact.len());
    let is_in_place = |page: &Page| kinds[items[*page] as usize] != Kind::Whole;
    pages().filter(is_in_place).filter(|&page| !seen.insert(shelf.exact[page])).for_each(|page| copies.insert(page));
    let (mut fprints, mut table) = (shelf.fprints.reader(), Vec::new());
    for page in pages().filter(is_in_place) {
        table.extend(fprints.get(page.index())?.iter().map(|&fprint| FPrintDocId::new(fprint, page)));
    }
    table.sort_unstable_by_key(FPrintDocId::key);
    Ok(sample_pairs(&table, &hosts, &copies, |page| items[page], &settings))
}
