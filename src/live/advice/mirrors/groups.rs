//! Groups of mirrors: merging of groups, choice of the kept folder, and removal of a folder from
//! its group.

use std::cmp::Reverse;

use super::{Folder, FolderGroups, Group, Pair, key};
use crate::advice::place::folders;
use crate::advice::traps::FolderCounts;
use crate::advice::{Advice, AdviceEvidence, AdvisedAction, CopyGroupKind};
use webtwin_pages::public_suffix::domain_of;

impl FolderGroups {
    /// Puts two folders into one group of mirrors; returns the advice that follows.
    pub(super) fn group(&mut self, ours: u32, theirs: u32, counts: &FolderCounts) -> Vec<Advice> {
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
        // The folder that was kept before stays the kept one, unless it is inside another member or
        // the other group's kept folder has more pages.
        let prefix = |member: u32| &*self.folders[member as usize].prefix;
        let is_inside = |member: u32| {
            group.members.iter().any(|&other| other != member && prefix(member).starts_with(prefix(other)))
        };
        let was_kept =
            |member: u32| self.folders[member as usize].group.is_some_and(|of| self.groups[of as usize].kept == member);
        let rank = |&member: &u32| {
            let fetched = counts.count(prefix(member)).pages;
            (!is_inside(member), was_kept(member), fetched, Reverse(prefix(member).len()), Reverse(member))
        };
        group.kept = group.members.iter().copied().max_by_key(rank).expect("there are two");
        let mut advice = Vec::new();
        for &member in &group.members {
            let prefix = self.folders[member as usize].prefix.to_string();
            let kept = self.folders[group.kept as usize].prefix.to_string();
            let pages = counts.count(&prefix).pages;
            let folder = &mut self.folders[member as usize];
            folder.group = Some(number);
            if member != group.kept && folder.advice.is_none() {
                folder.advice = Some((0, AdviceEvidence::default()));
                let given = Advice::new(kind(&prefix, &kept), AdvisedAction::Rewrite, &prefix, evidence);
                advice.push(Advice { of: Some(kept), pages, ..given });
            }
        }
        // URLs of the kept folder may have been rewritten to a folder that is inside another one.
        // That advice is withdrawn.
        if let Some((given, _)) = self.folders[group.kept as usize].advice.take() {
            advice.push(self.withdrawal(group.kept, given, AdviceEvidence::default()));
        }
        self.certain.push(both);
        for &member in &both {
            self.folders[member as usize].grouped_by.push(key(ours, theirs));
        }
        let (kept, others) = (group.kept, group.members.clone());
        self.groups.push(group);
        // From now on, each member is compared with the kept folder.
        for member in others.into_iter().filter(|&member| member != kept) {
            self.propose_pair(member, kept);
        }
        advice
    }

    /// Counts a page as evidence for or against the advice for its folder. Withdraws the advice if
    /// it turns out to be wrong.
    pub(super) fn check(&mut self, ours: u32, theirs: u32, is_match: bool) -> Option<Advice> {
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
        // The evidence for the pairs of this folder is reset, so that the mirror does not become
        // certain again by old matches.
        let folder = &self.folders[number as usize];
        let pairs: Vec<(u32, u32)> =
            folder.others.iter().map(|&other| key(number, other)).chain(folder.grouped_by.iter().copied()).collect();
        for pair in pairs {
            if let Some(pair) = self.pairs.get_mut(&pair) {
                *pair =
                    Pair { evidence: AdviceEvidence { matched: 0, differing: evidence.differing }, ..Pair::default() };
            }
        }
        Some(self.withdrawal(number, given, evidence))
    }

    /// Removes a folder from its group.
    fn leave(&mut self, number: u32) {
        let folder = &mut self.folders[number as usize];
        folder.advice = None;
        if let Some(group) = folder.group.take() {
            self.groups[group as usize].members.retain(|&member| member != number);
        }
    }

    fn withdrawal(&self, number: u32, given: u64, evidence: AdviceEvidence) -> Advice {
        let prefix = &self.folders[number as usize].prefix;
        let advice = Advice::new(CopyGroupKind::Mirror, AdvisedAction::Fetch, prefix, evidence);
        Advice { withdraws: Some(given), ..advice }
    }

    /// Stores the sequence number of advice for a folder.
    pub(crate) fn numbered(&mut self, advice: &Advice) {
        let folder = self.numbers.get(&*advice.prefix).map(|&number| &mut self.folders[number as usize]);
        if let (Some(Folder { advice: Some((given, _)), .. }), AdvisedAction::Rewrite) = (folder, advice.action) {
            *given = advice.sequence;
        }
    }
}

/// Returns the kind of a mirror: two names of one site are aliases, and all else are mirrors.
fn kind(prefix: &str, of: &str) -> CopyGroupKind {
    let is_site = |prefix: &str| folders(prefix).count() == 1;
    match is_site(prefix) && is_site(of) && domain_of(prefix) == domain_of(of) {
        true => CopyGroupKind::Alias,
        false => CopyGroupKind::Mirror,
    }
}
