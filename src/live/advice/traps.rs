//! Traps: folders whose pages repeat other pages of their host, and folders of placeholders.
//!
//! A calendar has a page for every future month, a shop has a page for every order of a list, and
//! some servers send a page for every possible URL. For each folder, pages are counted, and among
//! them the idle ones: copies of a page of the same host, and pages that state that there is
//! nothing. A folder with [`MIN_IDLE`] idle pages and few others is a trap. Pages of a trap that
//! are still fetched are counted as evidence.

use std::collections::{HashMap, HashSet};

use xxhash_rust::xxh3::xxh3_64;

use super::place::folders;
use super::{Advice, AdviceEvidence, AdvisedAction, CopyGroupKind};

/// Minimum number of idle pages of a trap.
const MIN_IDLE: u64 = 50;

/// Minimum lower bound of the fraction of idle pages of a trap, in units of 1/10,000.
const MIN_BOUND: u32 = 9_000;

/// Counts of the pages of a folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FolderCount {
    /// Number of all pages.
    pub pages: u64,
    /// Number of idle pages: copies of other pages of their host, and placeholders.
    pub n_idle: u64,
    /// Number of placeholders: pages that state that there is nothing at their URLs.
    pub placeholders: u64,
}

impl FolderCount {
    /// Returns the evidence that the folder is a trap.
    fn evidence(&self) -> AdviceEvidence {
        AdviceEvidence { n_matched: self.n_idle, n_differing: self.pages - self.n_idle }
    }
}

/// Counts of the pages of all folders; about 40 bytes for each folder.
#[derive(Debug, Default)]
pub(crate) struct FolderCounts {
    counts: HashMap<u64, [u32; 3]>,
}

impl FolderCounts {
    /// Returns the counts of a folder.
    pub(crate) fn count(&self, folder: &str) -> FolderCount {
        let [pages, idle_pages, placeholders] =
            self.counts.get(&xxh3_64(folder.as_bytes())).copied().unwrap_or_default();
        FolderCount { pages: pages.into(), n_idle: idle_pages.into(), placeholders: placeholders.into() }
    }

    /// Returns the memory that the counts take, in bytes; an estimate.
    pub(crate) fn bytes(&self) -> u64 {
        // An entry has 20 bytes, and half of the slots are free after the table has grown.
        40 * self.counts.len() as u64
    }

    /// Counts a page in all of its folders.
    pub(crate) fn add(&mut self, url: &str, is_idle: bool, is_placeholder: bool) {
        for folder in folders(url) {
            let count = self.counts.entry(xxh3_64(folder.as_bytes())).or_default();
            count[0] += 1;
            count[1] += u32::from(is_idle);
            count[2] += u32::from(is_placeholder);
        }
    }
}

/// Folders that are traps.
#[derive(Debug, Default)]
pub(crate) struct Traps {
    /// Sequence number of the advice, and the evidence since then, for each trap by its prefix.
    trap_advice: HashMap<Box<str>, (u64, AdviceEvidence)>,
    /// Folders for which advice was withdrawn. They never become traps again.
    withdrawn: HashSet<Box<str>>,
}

impl Traps {
    /// Observes a page that has been counted; returns the advice that follows.
    pub(crate) fn observe(&mut self, counts: &FolderCounts, url: &str, is_idle: bool) -> Option<Advice> {
        if let Some(folder) = self.find(url).map(str::to_string) {
            let (number, evidence) = self.trap_advice.get_mut(&*folder)?;
            evidence.add_recent(is_idle);
            if !evidence.is_contrary() {
                return None;
            }
            let (number, evidence) = (*number, *evidence);
            self.trap_advice.remove(&*folder);
            self.withdrawn.insert(folder.as_str().into());
            let advice = Advice::new(CopyGroupKind::Trap, AdvisedAction::Fetch, &folder, evidence);
            return Some(Advice { withdraws: Some(number), ..advice });
        }
        // The widest folder that is a trap is chosen, so that one piece of advice covers all
        // folders below it.
        let is_trap = |folder: &&str| {
            let count = counts.count(folder);
            count.n_idle >= MIN_IDLE && count.evidence().bound() >= MIN_BOUND && !self.withdrawn.contains(*folder)
        };
        let folder = if is_idle { folders(url).find(is_trap)? } else { return None };
        let count = counts.count(folder);
        let kind = if 2 * count.placeholders > count.n_idle { CopyGroupKind::Placeholder } else { CopyGroupKind::Trap };
        self.trap_advice.insert(folder.into(), (0, AdviceEvidence::default()));
        let advice = Advice::new(kind, AdvisedAction::Skip, folder, count.evidence());
        Some(Advice { pages: count.pages, ..advice })
    }

    /// Stores the sequence number of advice for a trap.
    pub(crate) fn numbered(&mut self, advice: &Advice) {
        if let (AdvisedAction::Skip, Some((number, _))) = (advice.action, self.trap_advice.get_mut(&*advice.prefix)) {
            *number = advice.sequence;
        }
    }

    /// Returns the widest trap that a URL is in.
    pub(crate) fn find<'u>(&self, url: &'u str) -> Option<&'u str> {
        folders(url).find(|folder| self.trap_advice.contains_key(*folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calendar_is_a_trap_until_its_pages_have_content() {
        let (mut counts, mut traps) = (FolderCounts::default(), Traps::default());
        let mut observe_page = |url: String, is_idle: bool| {
            counts.add(&url, is_idle, false);
            traps.observe(&counts, &url, is_idle)
        };
        for page in 0..200 {
            assert_eq!(observe_page(format!("http://a.example/text/{page}"), false), None);
        }
        let traps: Vec<Advice> =
            (0..60).filter_map(|day| observe_page(format!("http://a.example/days/{day}"), true)).collect();
        assert_eq!(traps.len(), 1);
        assert_eq!(
            (traps[0].prefix.as_str(), traps[0].pages, traps[0].kind),
            ("http://a.example/days/", 50, CopyGroupKind::Trap)
        );
        let withdrawn: Vec<Advice> =
            (0..50).filter_map(|day| observe_page(format!("http://a.example/days/x{day}"), false)).collect();
        assert_eq!((withdrawn.len(), withdrawn[0].action), (1, AdvisedAction::Fetch));
    }
}
