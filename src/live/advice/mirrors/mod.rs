//! Mirrors: folders that have equal pages at equal places.
//!
//! Two pages that are copies propose a pair of folders: the widest ones below which both pages have
//! the same place. From then on, each page that is added below one of the two folders is compared
//! with the page at its place below the other one, if that page has been fetched. As soon as
//! [`MIN_PAGES`] pages of as many clusters match, and the lower bound of the fraction of matching
//! pages is [`MIN_BOUND`], the folders are mirrors: [`FolderGroups::group`]. A page that is
//! missing below one of the folders is no evidence, because a crawl fetches pages in an order of
//! its own.
//!
//! A mirror is no wider than the evidence for it: it is the common folder of the pages that
//! matched. So `/doc/` with matches in the manual `api/` only is a mirror at `/doc/api/`.
//!
//! One of the mirrors is kept: one that is not inside another member, with the most pages. The URLs
//! of the others are rewritten to it. If a fetch from the kept mirror gave no page, the original
//! URL is fetched after all, so a page that only one mirror has is not lost. Pages that are added
//! later, as probes or because they were in flight, are compared as well. If most of them differ,
//! the mirror is removed from its group.
//!
//! # Source
//! \[CSG00\] Definition 5 requires equal links between copies. Here the condition is an equal place
//! below a folder, which is known for a URL before it is fetched. Bharat, Broder, *Mirror, mirror
//! on the web* (1999) compare the paths of hosts.

mod groups;
mod questions;

use std::collections::{HashMap, HashSet};

use super::place::{aligned, ending, folders, place};
use super::traps::FolderCounts;
use super::{Advice, AdviceEvidence};
use crate::log::Log;
use crate::pages::LivePages;
use webtwin_base::error::Result;

/// Minimum number of matching pages of two mirrors, each of another cluster.
pub(crate) const MIN_PAGES: u64 = 12;

/// Minimum lower bound of the fraction of pages that match, in units of 1/10,000.
pub(crate) const MIN_BOUND: u32 = 7_000;

/// Maximum number of folders that a folder is compared with. This bounds the pairs of pages that
/// very many sites have.
const MAX_COUNTERPARTS: usize = 64;

/// Maximum number of members of a cluster with which a page proposes folders, in addition to the
/// first one.
const MAX_MEMBERS: usize = 8;

/// Maximum number of pairs of folders. If it is reached, pairs with at most one match are dropped.
const MAX_PAIRS: usize = 1 << 20;

/// Bytes of a folder, with its prefix and the folders that it is compared with.
const FOLDER_BYTES: usize = 400;

/// Bytes of a pair.
const PAIR_BYTES: usize = 160;

/// Bytes of a place that has no page.
const MISSING_BYTES: usize = 20;

/// Candidate pairs of folders, and groups of folders that are mirrors of each other.
#[derive(Debug, Default)]
pub(crate) struct FolderGroups {
    folders: Vec<Folder>,
    numbers: HashMap<Box<str>, u32>,
    pairs: HashMap<(u32, u32), Pair>,
    groups: Vec<Group>,
    /// Places below kept folders that were fetched and gave no page.
    missing: HashSet<u64>,
    /// Pairs of folders that have become mirrors and that [`FolderGroups::take_certain`] has not
    /// returned yet.
    certain: Vec<[u32; 2]>,
}

/// Folder of a pair or a group.
#[derive(Debug)]
struct Folder {
    prefix: Box<str>,
    /// Folders that this folder is compared with.
    counterparts: Vec<u32>,
    group: Option<u32>,
    /// Sequence number of the advice that rewrites URLs of this folder, and the evidence since
    /// then.
    advice: Option<(u64, AdviceEvidence)>,
    /// File extensions of this folder, each with the extension that another mirror has instead.
    endings: Vec<(Box<str>, Box<str>)>,
    /// Pairs that brought this folder into its group.
    grouped_by: Vec<(u32, u32)>,
}

/// Two folders that may be mirrors.
#[derive(Debug, Default)]
struct Pair {
    evidence: AdviceEvidence,
    /// Clusters of the first matching pages, each cluster once.
    clusters: Vec<u32>,
    /// Common folder of the places that matched.
    common_folder: Option<Box<str>>,
}

impl Pair {
    fn is_certain(&self) -> bool {
        self.evidence.n_matched >= MIN_PAGES && self.evidence.bound() >= MIN_BOUND
    }
}

/// Folders that are mirrors of each other.
#[derive(Debug, Default)]
struct Group {
    members: Vec<u32>,
    kept_folder: u32,
}

/// Substitute for a URL below a mirror.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SubstituteUrl {
    /// This page has been fetched from another mirror.
    Fetched(u32),
    /// This URL of the kept mirror should be fetched.
    Url(String),
}

/// Pages that have been fetched.
#[derive(Clone, Copy)]
pub(crate) struct FetchedPages<'i> {
    /// Table of the pages.
    pub pages: &'i LivePages,
    /// Log with the records of the pages.
    pub log: &'i Log,
    /// Counts of the pages by folder.
    pub folders: &'i FolderCounts,
}

impl FetchedPages<'_> {
    fn url(&self, page: u32) -> Result<String> {
        crate::record::url_of(self.log, self.pages, page)
    }
}

impl FolderGroups {
    /// Observes a page that has been fetched; returns the advice that follows.
    ///
    /// # Errors
    /// Returns any error of reading records.
    ///
    /// # Cost
    /// One look-up for each folder that a folder of the page is compared with.
    pub(crate) fn observe(&mut self, pages: FetchedPages<'_>, page: u32, url: &str) -> Result<Vec<Advice>> {
        let cluster = pages.pages.cluster(page);
        // The folders of a page below a known mirror have been compared already, so only other
        // pages propose new pairs.
        if self.rule(url).is_none() {
            // The first page of a cluster brings all mirrors of it together. The newest pages find
            // mirrors that are being crawled at the same time.
            let last = pages.pages.copies(page).take(MAX_MEMBERS).filter(|&member| member != cluster);
            for member in [cluster].into_iter().filter(|&first| first != page).chain(last) {
                if let Some((folder_a, folder_b)) = aligned(url, &pages.url(member)?) {
                    self.propose(folder_a, folder_b);
                }
            }
        }
        let mut advice = Vec::new();
        for folder in folders(url) {
            let Some(&folder_a) = self.numbers.get(folder) else { continue };
            let rest = &url[folder.len()..];
            for position in 0..self.folders[folder_a as usize].counterparts.len() {
                let folder_b = self.folders[folder_a as usize].counterparts[position];
                let counterpart_url = place(&self.folders[folder_b as usize].prefix, rest);
                let Some(counterpart) = pages.pages.by_place(counterpart_url).filter(|&other| other != page) else {
                    continue;
                };
                let is_match = pages.pages.cluster(counterpart) == cluster;
                self.count([folder_a, folder_b], is_match, cluster, rest);
                if is_match && self.pairs[&key(folder_a, folder_b)].evidence.n_matched <= MIN_PAGES {
                    self.learn_endings([folder_a, folder_b], url, &pages.url(counterpart)?);
                }
                advice.extend(self.check(folder_a, folder_b, is_match));
                if !self.are_grouped(folder_a, folder_b, rest) && self.pairs[&key(folder_a, folder_b)].is_certain() {
                    advice.extend(self.group(folder_a, folder_b, pages.folders));
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
        let (counterparts, endings, grouped_by) = Default::default();
        self.folders.push(Folder {
            prefix: prefix.into(),
            counterparts,
            group: None,
            advice: None,
            endings,
            grouped_by,
        });
        number
    }

    fn propose(&mut self, folder_a: &str, folder_b: &str) {
        let (folder_a, folder_b) = (self.number(folder_a), self.number(folder_b));
        self.propose_pair(folder_a, folder_b);
    }

    fn propose_pair(&mut self, folder_a: u32, folder_b: u32) {
        let is_full = |number: u32| self.folders[number as usize].counterparts.len() >= MAX_COUNTERPARTS;
        if self.pairs.contains_key(&key(folder_a, folder_b)) || is_full(folder_a) || is_full(folder_b) {
            return;
        }
        if self.pairs.len() >= MAX_PAIRS {
            self.forget();
        }
        self.pairs.insert(key(folder_a, folder_b), Pair::default());
        self.folders[folder_a as usize].counterparts.push(folder_b);
        self.folders[folder_b as usize].counterparts.push(folder_a);
    }

    /// Drops pairs of folders that have matched at most once.
    fn forget(&mut self) {
        self.pairs.retain(|_, pair| pair.evidence.n_matched > 1);
        for number in 0..self.folders.len() as u32 {
            let mut counterparts = std::mem::take(&mut self.folders[number as usize].counterparts);
            counterparts.retain(|&other| self.pairs.contains_key(&key(number, other)));
            self.folders[number as usize].counterparts = counterparts;
        }
    }

    fn count(&mut self, [folder_a, folder_b]: [u32; 2], is_match: bool, cluster: u32, rest: &str) {
        let pair = self.pairs.get_mut(&key(folder_a, folder_b)).expect("others are pairs");
        if is_match && (pair.clusters.len() as u64) < MIN_PAGES {
            // Many pages of one cluster are equal everywhere, such as error pages. They count once.
            if pair.clusters.contains(&cluster) {
                return;
            }
            pair.clusters.push(cluster);
        }
        pair.evidence.add(is_match);
        if is_match {
            let folder = rest.split('?').next().and_then(|path| path.rfind('/')).map_or("", |at| &rest[..=at]);
            let mut common_folder = pair.common_folder.as_deref().unwrap_or(folder);
            while !folder.starts_with(common_folder) {
                let above = common_folder[..common_folder.len() - 1].rfind('/').map_or(0, |at| at + 1);
                common_folder = &common_folder[..above];
            }
            if pair.common_folder.as_deref() != Some(common_folder) {
                pair.common_folder = Some(common_folder.into());
            }
        }
    }

    /// Records the file extensions by which the names of two folders differ.
    fn learn_endings(&mut self, [folder_a, folder_b]: [u32; 2], url: &str, other_url: &str) {
        let (ending_a, ending_b) = (ending(url), ending(other_url));
        if ending_a == ending_b {
            return;
        }
        for (folder, source, target) in [(folder_a, ending_a, ending_b), (folder_b, ending_b, ending_a)] {
            let endings = &mut self.folders[folder as usize].endings;
            if endings.len() < 16 && !endings.iter().any(|(known, _)| &**known == source) {
                endings.push((source.into(), target.into()));
            }
        }
    }

    /// Returns true if the two folders are already in one group at the place `rest`.
    fn are_grouped(&self, folder_a: u32, folder_b: u32, rest: &str) -> bool {
        let group = |folder: u32| {
            let prefix = [&*self.folders[folder as usize].prefix, rest].concat();
            self.rule(&prefix).and_then(|number| self.folders[number as usize].group)
        };
        let folder_a = group(folder_a);
        folder_a.is_some() && folder_a == group(folder_b)
    }

    /// Returns the memory that the groups take, in bytes; an estimate.
    pub(crate) fn bytes(&self) -> u64 {
        (FOLDER_BYTES * self.folders.len() + PAIR_BYTES * self.pairs.len() + MISSING_BYTES * self.missing.len()) as u64
    }

    /// Returns the number of mirrors whose URLs are rewritten.
    pub(crate) fn count_given(&self) -> usize {
        self.folders.iter().filter(|folder| folder.advice.is_some()).count()
    }
}

fn key(x: u32, y: u32) -> (u32, u32) {
    (x.min(y), x.max(y))
}
