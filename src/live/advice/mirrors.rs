//! Mirrors: folders that have the same pages in the same places.
//!
//! Two pages that are copies propose a pair of folders: those below which both have the same place. From then on each page that
//! comes below one of these folders is compared with the page in its place below the other, if that has been fetched. As soon as
//! [`LEAST_PAGES`] pages of as many clusters match, and the lower bound of the share that matches is [`LEAST_BOUND`], the folders
//! are mirrors: [`Mirrors::group`]. Pages that are missing below one of them say nothing, because a crawl comes to them in an order of
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

use std::collections::{HashMap, HashSet};

use super::place::{aligned, ending, folders, place};
use super::traps::FolderCounts;
use super::{Action, Advice, Evidence, Kind};
use crate::log::Log;
use crate::pages::Pages;
use webtwin_base::error::Result;
use webtwin_pages::public_suffix::domain_of;

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
pub(crate) struct Mirrors {
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
    advice: Option<(u64, Evidence)>,
    /// What the endings of its names are in the kept folder.
    endings: Vec<(Box<str>, Box<str>)>,
    /// The pairs that brought it into its group.
    grouped_by: Vec<(u32, u32)>,
}

/// Two folders that may be mirrors.
#[derive(Debug, Default)]
struct Pair {
    evidence: Evidence,
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

/// What a crawler should do with a URL below a mirror.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Instead {
    /// The page has been fetched from this place.
    Fetched(u32),
    /// This URL should be fetched.
    Url(String),
}

/// What has been fetched.
#[derive(Clone, Copy)]
pub(crate) struct Fetched<'i> {
    /// All pages.
    pub pages: &'i Pages,
    /// Their records.
    pub log: &'i Log,
    /// How many of them are below each folder.
    pub folders: &'i FolderCounts,
}

impl Fetched<'_> {
    fn url(&self, page: u32) -> Result<String> {
        crate::index::url_of(self.log, self.pages, page)
    }
}

impl Mirrors {
    /// Takes a page that has been fetched; returns the advice that follows.
    ///
    /// # Errors
    /// Those of records that cannot be read.
    ///
    /// # Cost
    /// A look-up for each folder that a folder of the page is compared with.
    pub(crate) fn observe(&mut self, fetched: Fetched<'_>, page: u32, url: &str) -> Result<Vec<Advice>> {
        let cluster = fetched.pages.cluster(page);
        // What is below a mirror already has been compared with others: those propose what is new.
        if self.rule(url).is_none() {
            // The first page of a cluster brings all mirrors together, the last ones those that are fetched side by side.
            let last = fetched.pages.copies(page).take(MOST_MEMBERS);
            for member in [cluster].into_iter().chain(last).filter(|&member| member != page) {
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

    /// Makes two folders mirrors of each other.
    fn group(&mut self, ours: u32, theirs: u32, counts: &FolderCounts) -> Vec<Advice> {
        let pair = &self.pairs[&key(ours, theirs)];
        let (evidence, common) = (pair.evidence, pair.common.clone().unwrap_or_default());
        let widest = |number: u32| [&*self.folders[number as usize].prefix, &*common].concat();
        let both = [widest(ours), widest(theirs)].map(|prefix| self.number(&prefix));
        for [from, to] in [[ours, both[0]], [theirs, both[1]]] {
            if from != to && self.folders[to as usize].endings.is_empty() {
                self.folders[to as usize].endings = self.folders[from as usize].endings.clone();
            }
        }
        let of = both.map(|number| self.folders[number as usize].group);
        if of[0].is_some() && of[0] == of[1] {
            return Vec::new();
        }
        let number = self.groups.len() as u32;
        let mut group = Group::default();
        for (folder, of) in both.into_iter().zip(of) {
            match of {
                Some(of) => group.members.append(&mut self.groups[of as usize].members),
                None => group.members.push(folder),
            }
        }
        // What was kept before stays, unless it is inside another member or its group was the smaller one.
        let prefix = |member: u32| &*self.folders[member as usize].prefix;
        let is_inside = |member: u32| {
            group.members.iter().any(|&other| other != member && prefix(member).starts_with(prefix(other)))
        };
        let was_kept =
            |member: u32| self.folders[member as usize].group.is_some_and(|of| self.groups[of as usize].kept == member);
        let rank = |&member: &u32| {
            let fetched = counts.of(prefix(member)).pages;
            (
                !is_inside(member),
                was_kept(member),
                fetched,
                std::cmp::Reverse(prefix(member).len()),
                std::cmp::Reverse(member),
            )
        };
        group.kept = group.members.iter().copied().max_by_key(rank).expect("there are two");
        let mut advice = Vec::new();
        for &member in &group.members {
            let prefix = self.folders[member as usize].prefix.to_string();
            let kept = self.folders[group.kept as usize].prefix.to_string();
            let pages = counts.of(&prefix).pages;
            let folder = &mut self.folders[member as usize];
            folder.group = Some(number);
            if member != group.kept && folder.advice.is_none() {
                folder.advice = Some((0, Evidence::default()));
                advice.push(Advice {
                    sequence: 0,
                    kind: kind(&prefix, &kept),
                    action: Action::Rewrite,
                    prefix,
                    of: Some(kept),
                    withdraws: None,
                    rule: None,
                    matched: evidence.matched,
                    differing: evidence.differing,
                    bound: f64::from(evidence.bound()) / 10_000.0,
                    pages,
                });
            }
        }
        // The kept folder may have been rewritten to one that is inside another.
        if let Some((given, _)) = self.folders[group.kept as usize].advice.take() {
            advice.push(self.withdrawal(group.kept, given, Evidence::default()));
        }
        self.certain.push(both);
        for &member in &both {
            self.folders[member as usize].grouped_by.push(key(ours, theirs));
        }
        let (kept, others) = (group.kept, group.members.clone());
        self.groups.push(group);
        // From now on each is held against the one that is kept.
        for member in others.into_iter().filter(|&member| member != kept) {
            self.propose_pair(member, kept);
        }
        advice
    }

    /// Holds a page against the advice for its folder.
    fn check(&mut self, ours: u32, theirs: u32, is_match: bool) -> Option<Advice> {
        let number = [ours, theirs].into_iter().find(|&number| {
            let of = self.folders[number as usize].group;
            self.folders[number as usize].advice.is_some()
                && of.is_some_and(|of| [ours, theirs].contains(&self.groups[of as usize].kept))
        })?;
        let (given, evidence) = self.folders[number as usize].advice.as_mut()?;
        evidence.add_recent(is_match);
        if !evidence.is_contrary() {
            return None;
        }
        let (given, evidence) = (*given, *evidence);
        self.leave(number);
        // What spoke for it speaks no longer.
        let folder = &self.folders[number as usize];
        let pairs: Vec<(u32, u32)> =
            folder.others.iter().map(|&other| key(number, other)).chain(folder.grouped_by.iter().copied()).collect();
        for pair in pairs {
            if let Some(pair) = self.pairs.get_mut(&pair) {
                *pair = Pair { evidence: Evidence { matched: 0, differing: evidence.differing }, ..Pair::default() };
            }
        }
        Some(self.withdrawal(number, given, evidence))
    }

    /// Takes a folder out of its group.
    fn leave(&mut self, number: u32) {
        let folder = &mut self.folders[number as usize];
        folder.advice = None;
        if let Some(group) = folder.group.take() {
            self.groups[group as usize].members.retain(|&member| member != number);
        }
    }

    fn withdrawal(&self, number: u32, given: u64, evidence: Evidence) -> Advice {
        let prefix = self.folders[number as usize].prefix.to_string();
        Advice {
            sequence: 0,
            kind: Kind::Mirror,
            action: Action::Fetch,
            prefix,
            of: None,
            withdraws: Some(given),
            rule: None,
            matched: evidence.matched,
            differing: evidence.differing,
            bound: 0.0,
            pages: 0,
        }
    }

    /// Tells the folder of advice its number.
    pub(crate) fn numbered(&mut self, advice: &Advice) {
        let folder = self.numbers.get(&*advice.prefix).map(|&number| &mut self.folders[number as usize]);
        if let (Some(Folder { advice: Some((given, _)), .. }), Action::Rewrite) = (folder, advice.action) {
            *given = advice.sequence;
        }
    }

    /// The narrowest mirror that a URL is below.
    fn rule(&self, url: &str) -> Option<u32> {
        let mut numbers = folders(url).filter_map(|folder| self.numbers.get(folder).copied());
        numbers.rfind(|&number| self.folders[number as usize].group.is_some())
    }

    /// Takes the prefixes of two folders that have just been found to be mirrors: what came before deserves a second look.
    pub(crate) fn take_certain(&mut self) -> Option<[String; 2]> {
        let both = self.certain.pop()?;
        Some(both.map(|number| self.folders[number as usize].prefix.to_string()))
    }

    /// Pages that were fetched from the place of a URL in folders that seem to be mirrors, each with whether that is certain.
    pub(crate) fn counterparts(&self, pages: &Pages, url: &str) -> Vec<(u32, bool)> {
        let mut found = Vec::new();
        self.each_pair(url, |folder, prefix, pair| {
            if let Some(page) = pages.by_place(place(prefix, &url[folder.len()..])) {
                found.push((page, pair.is_certain()));
            }
            None::<()>
        });
        found.sort_unstable();
        found.dedup_by_key(|found| found.0);
        found
    }

    /// Returns whether two URLs are in folders that seem to be mirrors, at different places.
    pub(crate) fn are_apart(&self, ours: &str, theirs: &str) -> bool {
        // Pages with one name may be at one place of a narrower folder.
        aligned(ours, theirs).is_none()
            && self.each_pair(ours, |_, prefix, _| theirs.starts_with(prefix).then_some(())).is_some()
    }

    /// Calls a function for each folder that seems to be a mirror of one that a URL is below, until it returns something.
    fn each_pair<T>(&self, url: &str, mut each: impl FnMut(&str, &str, &Pair) -> Option<T>) -> Option<T> {
        folders(url).rev().find_map(|folder| {
            let number = *self.numbers.get(folder)?;
            self.folders[number as usize].others.iter().find_map(|&other| {
                let pair = &self.pairs[&key(number, other)];
                pair.evidence.seems_right().then(|| each(folder, &self.folders[other as usize].prefix, pair))?
            })
        })
    }

    /// The mirrored folder that a URL is below, with the folder that is kept.
    pub(crate) fn of(&self, url: &str) -> Option<(&str, &str)> {
        let number = self.rule(url)?;
        let group = &self.groups[self.folders[number as usize].group? as usize];
        Some((&self.folders[number as usize].prefix, &self.folders[group.kept as usize].prefix))
    }

    /// Where the page of a URL is, or is to be fetched, instead; `None` if it should be fetched from where it is.
    pub(crate) fn instead(&self, pages: &Pages, url: &str) -> Option<Instead> {
        let number = self.rule(url)?;
        let folder = &self.folders[number as usize];
        let group = &self.groups[folder.group? as usize];
        let rest = &url[folder.prefix.len()..];
        let at = |member: u32| place(&self.folders[member as usize].prefix, rest);
        let others = group.members.iter().filter(|&&member| member != number);
        if let Some(page) = others.clone().find_map(|&member| pages.by_place(at(member))) {
            return Some(Instead::Fetched(page));
        }
        if group.kept == number || self.missing.contains(&at(group.kept)) {
            return None;
        }
        let own = ending(url);
        let other = folder.endings.iter().find(|(known, _)| &**known == own).map_or(own, |(_, other)| other);
        let query = url.find('?').unwrap_or(url.len());
        let (path, query) =
            (&url[folder.prefix.len()..query - own.len().min(query - folder.prefix.len())], &url[query..]);
        let kept = &self.folders[group.kept as usize].prefix;
        Some(Instead::Url([kept, path, other, query].concat()))
    }

    /// Notes that a URL gave no page.
    pub(crate) fn note_missing(&mut self, url: &str) {
        let kept = self.rule(url).filter(|&number| {
            self.folders[number as usize].group.is_some_and(|group| self.groups[group as usize].kept == number)
        });
        if let Some(number) = kept {
            let folder = &self.folders[number as usize].prefix;
            self.missing.insert(place(folder, &url[folder.len()..]));
        }
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

/// Two names of one site are aliases; everything else is a mirror.
fn kind(prefix: &str, of: &str) -> Kind {
    let is_site = |prefix: &str| folders(prefix).count() == 1;
    match is_site(prefix) && is_site(of) && domain_of(prefix) == domain_of(of) {
        true => Kind::Alias,
        false => Kind::Mirror,
    }
}
