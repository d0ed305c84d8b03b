//! Mirrors: folders that have the same pages in the same places.
//!
//! Two pages that are copies propose a pair of folders: those below which both have the same place. From then on each page that
//! comes below one of these folders is compared with the page in its place below the other, if that has been fetched. As soon as
//! [`LEAST_PAGES`] pages of as many clusters match, and the lower bound of the share that matches is [`LEAST_BOUND`], the folders
//! are mirrors: [`FolderGroups::group`]. Pages that are missing below one of them say nothing, because a crawl comes to them in an order of
//! its own.
//!
//! A mirror is no wider than what has been seen of it: the common folder of the pages that matched, so `/doc/` with the manual
//! `api/` is a mirror at `/doc/api/`.
//!
//! Of mirrors one is kept: one that is not inside another, with the most pages. The others are rewritten to it. A URL of which the kept
//! one has no page is fetched all the same, once it was tried there, so no page is lost that only one mirror has.
//! Pages that come later, as probes or because they were on their way, go on being compared. If most differ, the mirror is
//! taken out of its group again.
//!
//! # Source
//! \[CSG00\] Definition 5 asks for the same links between copies; here it is the same place below a folder, which can be asked of a
//! URL before it is fetched. Bharat, Broder, *Mirror, mirror on the web* (1999) compare the paths of hosts.

mod groups;
mod questions;

use std::collections::{HashMap, HashSet};

use super::place::{aligned, ending, folders, place};
use super::traps::FolderCounts;
use super::{Advice, AdviceEvidence};
use crate::log::Log;
use crate::pages::LivePages;
use webtwin_base::error::Result;

/// Pages that must match, of as many clusters.
pub(crate) const LEAST_PAGES: u64 = 12;

/// Least lower bound of the share of pages that match, in units of 1/10,000.
pub(crate) const LEAST_BOUND: u32 = 7_000;

/// Folders that a folder is compared with, at most: a page that everybody has proposes no more.
const MOST_OTHERS: usize = 64;

/// Members of a cluster that a page proposes folders with.
const MOST_MEMBERS: usize = 8;

/// Pairs of folders, at most. Beyond that those go that have matched once.
const MOST_PAIRS: usize = 1 << 20;

/// Bytes of a folder, with its prefix and the folders that it is compared with.
const A_FOLDER: usize = 400;

/// Bytes of a pair.
const A_PAIR: usize = 160;

/// Bytes of a place where there is nothing.
const A_MISSING: usize = 20;

/// Groups of folders with the same pages.
#[derive(Debug, Default)]
pub(crate) struct FolderGroups {
    folders: Vec<Folder>,
    numbers: HashMap<Box<str>, u32>,
    pairs: HashMap<(u32, u32), Pair>,
    groups: Vec<Group>,
    /// Places that were fetched below kept folders and gave no page.
    missing: HashSet<u64>,
    /// Pairs that have become certain since they were taken.
    certain: Vec<[u32; 2]>,
}

/// A folder of a pair or group.
#[derive(Debug)]
struct Folder {
    prefix: Box<str>,
    /// The folders that it is compared with.
    others: Vec<u32>,
    group: Option<u32>,
    /// The advice by which its URLs are rewritten, and the evidence since.
    advice: Option<(u64, AdviceEvidence)>,
    /// Endings of its names, each with the one that the kept folder has instead.
    endings: Vec<(Box<str>, Box<str>)>,
    /// The pairs that brought it into its group.
    grouped_by: Vec<(u32, u32)>,
}

/// Two folders that may be mirrors.
#[derive(Debug, Default)]
struct Pair {
    evidence: AdviceEvidence,
    /// The first clusters that matched, each once.
    clusters: Vec<u32>,
    /// Common folder of the places that matched.
    common: Option<Box<str>>,
}

impl Pair {
    fn is_certain(&self) -> bool {
        self.evidence.matched >= LEAST_PAGES && self.evidence.bound() >= LEAST_BOUND
    }
}

/// Folders that are mirrors of each other.
#[derive(Debug, Default)]
struct Group {
    members: Vec<u32>,
    kept: u32,
}

/// Where the page of a URL below a mirror is instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SubstituteUrl {
    /// The page has been fetched from this place.
    Fetched(u32),
    /// This URL should be fetched.
    Url(String),
}

/// The pages that have been fetched.
#[derive(Clone, Copy)]
pub(crate) struct FetchedPages<'i> {
    /// All pages.
    pub pages: &'i LivePages,
    /// Their records.
    pub log: &'i Log,
    /// Counts of them by folder.
    pub folders: &'i FolderCounts,
}

impl FetchedPages<'_> {
    fn url(&self, page: u32) -> Result<String> {
        crate::record::url_of(self.log, self.pages, page)
    }
}

impl FolderGroups {
    /// Takes a page that has been fetched; returns the advice that follows.
    ///
    /// # Errors
    /// Those of records that cannot be read.
    ///
    /// # Cost
    /// A look-up for each folder that a folder of the page is compared with.
    pub(crate) fn observe(&mut self, fetched: FetchedPages<'_>, page: u32, url: &str) -> Result<Vec<Advice>> {
        let cluster = fetched.pages.cluster(page);
        // What is below a mirror already has been compared with others: those propose what is new.
        if self.rule(url).is_none() {
            // The first page of a cluster brings all mirrors together, the last ones those that are fetched side by side.
            let last = fetched.pages.copies(page).take(MOST_MEMBERS).filter(|&member| member != cluster);
            for member in [cluster].into_iter().filter(|&first| first != page).chain(last) {
                if let Some((ours, theirs)) = aligned(url, &fetched.url(member)?) {
                    self.propose(ours, theirs);
                }
            }
        }
        let mut advice = Vec::new();
        for folder in folders(url) {
            let Some(&ours) = self.numbers.get(folder) else { continue };
            let rest = &url[folder.len()..];
            for at in 0..self.folders[ours as usize].others.len() {
                let theirs = self.folders[ours as usize].others[at];
                let there = place(&self.folders[theirs as usize].prefix, rest);
                let Some(other) = fetched.pages.by_place(there).filter(|&other| other != page) else { continue };
                let is_match = fetched.pages.cluster(other) == cluster;
                self.count([ours, theirs], is_match, cluster, rest);
                if is_match && self.pairs[&key(ours, theirs)].evidence.matched <= LEAST_PAGES {
                    self.learn_endings([ours, theirs], url, &fetched.url(other)?);
                }
                advice.extend(self.check(ours, theirs, is_match));
                if !self.are_grouped(ours, theirs, rest) && self.pairs[&key(ours, theirs)].is_certain() {
                    advice.extend(self.group(ours, theirs, fetched.folders));
                }
            }
        }
        Ok(advice)
    }

    fn number(&mut self, prefix: &str) -> u32 {
        if let Some(&number) = self.numbers.get(prefix) {
            return number;
        }
        let number = self.folders.len() as u32;
        self.numbers.insert(prefix.into(), number);
        let (others, endings, grouped_by) = Default::default();
        self.folders.push(Folder { prefix: prefix.into(), others, group: None, advice: None, endings, grouped_by });
        number
    }

    fn propose(&mut self, ours: &str, theirs: &str) {
        let (ours, theirs) = (self.number(ours), self.number(theirs));
        self.propose_pair(ours, theirs);
    }

    fn propose_pair(&mut self, ours: u32, theirs: u32) {
        let is_full = |number: u32| self.folders[number as usize].others.len() >= MOST_OTHERS;
        if self.pairs.contains_key(&key(ours, theirs)) || is_full(ours) || is_full(theirs) {
            return;
        }
        if self.pairs.len() >= MOST_PAIRS {
            self.forget();
        }
        self.pairs.insert(key(ours, theirs), Pair::default());
        self.folders[ours as usize].others.push(theirs);
        self.folders[theirs as usize].others.push(ours);
    }

    /// Forgets pairs of folders that have matched once.
    fn forget(&mut self) {
        self.pairs.retain(|_, pair| pair.evidence.matched > 1);
        for number in 0..self.folders.len() as u32 {
            let mut others = std::mem::take(&mut self.folders[number as usize].others);
            others.retain(|&other| self.pairs.contains_key(&key(number, other)));
            self.folders[number as usize].others = others;
        }
    }

    fn count(&mut self, [ours, theirs]: [u32; 2], is_match: bool, cluster: u32, rest: &str) {
        let pair = self.pairs.get_mut(&key(ours, theirs)).expect("others are pairs");
        if is_match && (pair.clusters.len() as u64) < LEAST_PAGES {
            // Pages that all say the same are no mirror, wherever they are.
            if pair.clusters.contains(&cluster) {
                return;
            }
            pair.clusters.push(cluster);
        }
        pair.evidence.add(is_match);
        if is_match {
            let folder = rest.split('?').next().and_then(|path| path.rfind('/')).map_or("", |at| &rest[..=at]);
            let mut common = pair.common.as_deref().unwrap_or(folder);
            while !folder.starts_with(common) {
                let above = common[..common.len() - 1].rfind('/').map_or(0, |at| at + 1);
                common = &common[..above];
            }
            if pair.common.as_deref() != Some(common) {
                pair.common = Some(common.into());
            }
        }
    }

    /// Learns how the names of a folder end in the other one.
    fn learn_endings(&mut self, [ours, theirs]: [u32; 2], url: &str, other: &str) {
        let (own, others) = (ending(url), ending(other));
        if own == others {
            return;
        }
        for (folder, from, to) in [(ours, own, others), (theirs, others, own)] {
            let endings = &mut self.folders[folder as usize].endings;
            if endings.len() < 16 && !endings.iter().any(|(known, _)| &**known == from) {
                endings.push((from.into(), to.into()));
            }
        }
    }

    /// Returns whether what is at a place of both folders is known to be one page.
    fn are_grouped(&self, ours: u32, theirs: u32, rest: &str) -> bool {
        let group = |folder: u32| {
            let prefix = [&*self.folders[folder as usize].prefix, rest].concat();
            self.rule(&prefix).and_then(|number| self.folders[number as usize].group)
        };
        let ours = group(ours);
        ours.is_some() && ours == group(theirs)
    }

    /// Bytes of memory, about.
    pub(crate) fn bytes(&self) -> u64 {
        (A_FOLDER * self.folders.len() + A_PAIR * self.pairs.len() + A_MISSING * self.missing.len()) as u64
    }

    /// Number of mirrors that are rewritten.
    pub(crate) fn count_given(&self) -> usize {
        self.folders.iter().filter(|folder| folder.advice.is_some()).count()
    }
}

fn key(x: u32, y: u32) -> (u32, u32) {
    (x.min(y), x.max(y))
}
