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
    pub(super) fn group(&mut self, folder_a: u32, folder_b: u32, counts: &FolderCounts) -> Vec<Advice> {
        let pair = &self.pairs[&key(folder_a, folder_b)];
        let (evidence, common_folder) = (pair.evidence, pair.common_folder.clone().unwrap_or_default());
        let widest = |number: u32| [&*self.folders[number as usize].prefix, &*common_folder].concat();
        let widest_pair = [widest(folder_a), widest(folder_b)].map(|prefix| self.number(&prefix));
        for [folder, target] in [[folder_a, widest_pair[0]], [folder_b, widest_pair[1]]] {
            if folder != target && self.folders[target as usize].endings.is_empty() {
                self.folders[target as usize].endings = self.folders[folder as usize].endings.clone();
            }
        }
        let groups = widest_pair.map(|number| self.folders[number as usize].group);
        if groups[0].is_some() && groups[0] == groups[1] {
            return Vec::new();
        }
        let number = self.groups.len() as u32;
        let mut group = Group::default();
        for (folder, group_number) in widest_pair.into_iter().zip(groups) {
            match group_number {
                Some(group_number) => group.members.append(&mut self.groups[group_number as usize].members),
                None => group.members.push(folder),
            }
        }
        // The folder that was kept before stays the kept one, unless it is inside another member or
        // the other group's kept folder has more pages.
        let prefix = |member: u32| &*self.folders[member as usize].prefix;
        let is_inside = |member: u32| {
            group.members.iter().any(|&other| other != member && prefix(member).starts_with(prefix(other)))
        };
        let was_kept = |member: u32| {
            self.folders[member as usize].group.is_some_and(|of| self.groups[of as usize].kept_folder == member)
        };
        let rank = |&member: &u32| {
            let page_count = counts.count(prefix(member)).pages;
            (!is_inside(member), was_kept(member), page_count, Reverse(prefix(member).len()), Reverse(member))
        };
        group.kept_folder = group.members.iter().copied().max_by_key(rank).expect("there are two");
        let mut advice = Vec::new();
        for &member in &group.members {
            let prefix = self.folders[member as usize].prefix.to_string();
            let kept_folder = self.folders[group.kept_folder as usize].prefix.to_string();
            let pages = counts.count(&prefix).pages;
            let folder = &mut self.folders[member as usize];
            folder.group = Some(number);
            if member != group.kept_folder && folder.advice.is_none() {
                folder.advice = Some((0, AdviceEvidence::default()));
                let rewrite_advice =
                    Advice::new(kind(&prefix, &kept_folder), AdvisedAction::Rewrite, &prefix, evidence);
                advice.push(Advice { of: Some(kept_folder), pages, ..rewrite_advice });
            }
        }
        // URLs of the kept folder may have been rewritten to a folder that is inside another one.
        // That advice is withdrawn.
        if let Some((previous_advice, _)) = self.folders[group.kept_folder as usize].advice.take() {
            advice.push(self.withdrawal(group.kept_folder, previous_advice, AdviceEvidence::default()));
        }
        self.certain.push(widest_pair);
        for &member in &widest_pair {
            self.folders[member as usize].grouped_by.push(key(folder_a, folder_b));
        }
        let (kept_member, members) = (group.kept_folder, group.members.clone());
        self.groups.push(group);
        // From now on, each member is compared with the kept folder.
        for member in members.into_iter().filter(|&member| member != kept_member) {
            self.propose_pair(member, kept_member);
        }
        advice
    }

    /// Counts a page as evidence for or against the advice for its folder. Withdraws the advice if
    /// it turns out to be wrong.
    pub(super) fn check(&mut self, folder_a: u32, folder_b: u32, is_match: bool) -> Option<Advice> {
        let number = [folder_a, folder_b].into_iter().find(|&number| {
            let group_number = self.folders[number as usize].group;
            self.folders[number as usize].advice.is_some()
                && group_number.is_some_and(|of| [folder_a, folder_b].contains(&self.groups[of as usize].kept_folder))
        })?;
        let (number_given, evidence) = self.folders[number as usize].advice.as_mut()?;
        evidence.add_recent(is_match);
        if !evidence.is_contrary() {
            return None;
        }
        let (number_given, evidence) = (*number_given, *evidence);
        self.leave(number);
        // The evidence for the pairs of this folder is reset, so that the mirror does not become
        // certain again by old matches.
        let folder = &self.folders[number as usize];
        let pairs: Vec<(u32, u32)> = folder
            .counterparts
            .iter()
            .map(|&other| key(number, other))
            .chain(folder.grouped_by.iter().copied())
            .collect();
        for pair in pairs {
            if let Some(pair) = self.pairs.get_mut(&pair) {
                *pair = Pair {
                    evidence: AdviceEvidence { n_matched: 0, n_differing: evidence.n_differing },
                    ..Pair::default()
                };
            }
        }
        Some(self.withdrawal(number, number_given, evidence))
    }

    /// Removes a folder from its group.
    fn leave(&mut self, number: u32) {
        let folder = &mut self.folders[number as usize];
        folder.advice = None;
        if let Some(group) = folder.group.take() {
            self.groups[group as usize].members.retain(|&member| member != number);
        }
    }

    fn withdrawal(&self, number: u32, number_given: u64, evidence: AdviceEvidence) -> Advice {
        let prefix = &self.folders[number as usize].prefix;
        let advice = Advice::new(CopyGroupKind::Mirror, AdvisedAction::Fetch, prefix, evidence);
        Advice { withdraws: Some(number_given), ..advice }
    }

    /// Stores the sequence number of advice for a folder.
    pub(crate) fn numbered(&mut self, advice: &Advice) {
        let folder = self.numbers.get(&*advice.prefix).map(|&number| &mut self.folders[number as usize]);
        if let (Some(Folder { advice: Some((number_given, _)), .. }), AdvisedAction::Rewrite) = (folder, advice.action)
        {
            *number_given = advice.sequence;
        }
    }
}

/// Returns the kind of a mirror: two names of one site are aliases, and all else are mirrors.
fn kind(prefix: &str, target: &str) -> CopyGroupKind {
    let is_site = |prefix: &str| folders(prefix).count() == 1;
    match is_site(prefix) && is_site(target) && domain_of(prefix) == domain_of(target) {
        true => CopyGroupKind::Alias,
        false => CopyGroupKind::Mirror,
    }
}
