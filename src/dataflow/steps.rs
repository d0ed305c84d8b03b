//! Steps that end with a record of what they have found, so that an interrupted run goes on after the last of them.
//!
//! Each worker records its own share ([`webtwin_storage::step_records`]), and takes up its own share. What a later step sees
//! is then what it would have seen in an unbroken run, so a share must not depend on what another worker takes up or makes
//! anew: a step is taken up by all workers, from the records of one run, or by none. A record is of the same step only if
//! the digest of what the steps see - pages, texts and links, of all workers, and the earlier result that they have to do
//! with - is the same, and if job, build and number of workers are.

use std::io::BufWriter;
use std::sync::atomic::Ordering;

use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::Xxh3;

use super::clusters::links::Links;
use super::reading::capture_rows::Numbers;
use super::reading::captures::Crawl;
use super::reading::resume::Resume;
use super::reading::worker_pages::WorkerPages;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{Page, splitmix64};
use webtwin_engine::Net;
use webtwin_storage::step_records::{Stamp, StepRecords};

/// A step, declared where it is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Its name in messages, manifests and names of files.
    pub name: &'static str,
    /// Bytes of each page of the crawl that it takes in each process, whatever is on disk.
    pub bytes_a_page: u64,
    /// The same of each page that the process owns.
    pub bytes_an_own_page: u64,
}

impl Step {
    /// A step that can put all that grows with the crawl on disk.
    pub const fn named(name: &'static str) -> Step {
        Step { name, bytes_a_page: 0, bytes_an_own_page: 0 }
    }
}

/// The steps of a run, some of which an earlier run may have finished; none are recorded by default.
#[derive(Default)]
pub struct Steps<'a> {
    recording: Option<Recording<'a>>,
    /// Those that were taken from records, the same on all workers.
    pub taken_up: Vec<Step>,
}

struct Recording<'a> {
    resume: &'a Resume,
    records: StepRecords,
    stamp: Stamp,
    /// Whether this is the first worker of all.
    is_first: bool,
    /// Those on record with all workers.
    ready: Vec<Step>,
}

/// What the steps of a worker see.
pub struct Seen<'a> {
    /// Its pages.
    pub crawl: &'a Crawl,
    /// Their texts.
    pub shelf: &'a WorkerPages,
    /// Links from its pages.
    pub links: &'a Links,
    /// Attempt that made the earlier result of `keep.sticky`, if there is one.
    pub earlier: Option<&'a str>,
}

/// What a worker knows of its own records.
type Known = (u64, u64, Vec<(String, u64, u64)>);

impl<'a> Steps<'a> {
    /// The steps that follow when pages are settled and links resolved, of which those in `recorded` are. Nothing is recorded unless all
    /// processes have a place for it.
    ///
    /// One exchange. Whatever is on record is read once, to see whether it is whole.
    ///
    /// # Errors
    /// Those of the disk that texts' fingerprints may be on; or when the run has ended.
    pub fn begin(
        net: &mut Net<'_>,
        resume: Option<&'a Resume>,
        seen: Seen<'_>,
        recorded: &[Step],
    ) -> Result<Steps<'a>> {
        let here = resume.and_then(|resume| Some((resume, resume.store.steps(net.index(), net.peers())?)));
        let mine: Option<Known> = match &here {
            None => None,
            Some((_, records)) => {
                let found = recorded.iter().filter_map(|step| {
                    let Stamp { seen, run } = records.stamp(step.name)?;
                    Some((step.name.to_string(), seen, run))
                });
                Some((seen.digest()?, random()?, found.collect()))
            }
        };
        let all: Option<Vec<Known>> = net.all_gather("steps on record", mine)?.into_iter().collect();
        let (Some(all), Some((resume, records))) = (all, here) else {
            return Ok(Steps::default());
        };
        let seen = all.iter().fold(0u64, |sum, known| sum.wrapping_add(known.0));
        let stamp = Stamp { seen, run: all[0].1 };
        let of_this = |known: &Known, step: &Step| {
            known.2.iter().find(|found| found.0 == step.name && found.1 == seen).map(|found| found.2)
        };
        let with_all = |step: &Step| {
            let run = of_this(&all[0], step);
            run.is_some() && all.iter().all(|known| of_this(known, step) == run)
        };
        let ready = recorded.iter().copied().filter(with_all).collect();
        let is_first = net.position().is_first();
        Ok(Steps { recording: Some(Recording { resume, records, stamp, is_first, ready }), taken_up: Vec::new() })
    }

    /// What this worker found in a step of an earlier run, if all workers have a record of it.
    ///
    /// # Errors
    /// [`Error::Storage`] when a record cannot be read that could be a moment before.
    pub fn restored<T: DeserializeOwned>(&mut self, step: Step) -> Result<Option<T>> {
        let Some(Recording { resume, records, is_first, ready, .. }) = &self.recording else { return Ok(None) };
        if !ready.contains(&step) {
            return Ok(None);
        }
        let failed = |cause: String| Error::storage(format!("record of \"{}\"", step.name), cause);
        let from = records.read(step.name).map_err(|cause| failed(cause.to_string()))?;
        let made = bincode::deserialize_from(from).map_err(|cause| failed(cause.to_string()))?;
        self.taken_up.push(step);
        if *is_first {
            resume.steps().taken_up.push(step.name);
        }
        Ok(Some(made))
    }

    /// Records what this worker has found in a step. A record that cannot be written ends recording, not the run.
    pub fn record<T: Serialize>(&self, step: Step, made: &T) {
        let Some(Recording { resume, records, stamp, is_first, .. }) = &self.recording else { return };
        if resume.gave_up.load(Ordering::Relaxed) {
            return;
        }
        let written = records.write(step.name, *stamp, |to| {
            let mut to = BufWriter::with_capacity(1 << 16, to);
            bincode::serialize_into(&mut to, made)
                .map_err(|cause| Error::storage("records", cause))
                .and_then(|()| std::io::Write::flush(&mut to).map_err(|cause| Error::storage("records", cause)))
        });
        match written {
            Ok(()) if *is_first => resume.steps().recorded.push(step.name),
            Ok(()) => {}
            Err(_) => resume.gave_up.store(true, Ordering::Relaxed),
        }
    }
}

fn random() -> Result<u64> {
    let id = webtwin_storage::output::random_id()?;
    Ok(xxhash_rust::xxh3::xxh3_64(id.as_bytes()))
}

impl Seen<'_> {
    /// Digest of this worker's share; the sum over all workers does not depend on who has what.
    ///
    /// # Errors
    /// Those of the disk that texts' fingerprints may be on.
    ///
    /// # Cost
    /// One pass over texts' fingerprints and links, some gigabytes a second.
    fn digest(&self) -> Result<u64> {
        let &Seen { crawl, shelf, links, earlier } = self;
        let mut sum = 0u64;
        let mut add = |parts: &[&[u8]]| {
            let mut hash = Xxh3::new();
            parts.iter().for_each(|part| hash.update(part));
            sum = sum.wrapping_add(hash.digest());
        };
        crawl.pages.each(|row| {
            let simhash = row.simhash().map_or([0, 0], |simhash| [1, simhash]);
            let Numbers { doc_id, fetch_time, body, body_bytes, text_bytes, chunks, exact, page, .. } = row.numbers();
            let numbers = [
                [u64::from(page.0), doc_id, fetch_time as u64, body, body_bytes],
                [text_bytes, u64::from(chunks), exact, simhash[0], simhash[1]],
            ];
            // Texts end with a byte that is in none of them.
            let texts = [row.url(), row.title(), row.mime()].map(|text| [text.as_bytes(), &[0xff]]);
            let projected = row.rest().projected;
            add(&[bytemuck::cast_slice(&numbers), &texts.concat().concat(), bytemuck::cast_slice(&projected)]);
        })?;
        let mut fprints = shelf.fprints.reader();
        for (slot, page) in shelf.kept() {
            add(&[&page.0.to_le_bytes(), bytemuck::cast_slice(fprints.get(slot)?)]);
        }
        add(&[earlier.unwrap_or_default().as_bytes()]);
        let of_links = |(src, dst): (Page, Page)| splitmix64(u64::from(src.0) << 32 | u64::from(dst.0));
        for block in links.blocks() {
            sum = block?.into_iter().map(of_links).fold(sum, u64::wrapping_add);
        }
        Ok(sum)
    }
}
