//! Look-ups in the groups of mirrors: the substitute of a URL, and whether two URLs are at one
//! place.

use super::{FolderGroups, Pair, SubstituteUrl, key};
use crate::advice::place::{aligned, ending, folders, place};
use crate::pages::LivePages;

impl FolderGroups {
    /// Returns the narrowest folder of a URL that is a mirror.
    pub(super) fn rule(&self, url: &str) -> Option<u32> {
        let mut numbers = folders(url).filter_map(|folder| self.numbers.get(folder).copied());
        numbers.rfind(|&number| self.folders[number as usize].group.is_some())
    }

    /// Returns the prefixes of two folders that have become mirrors and were not returned yet;
    /// `None` if there are none. The caller compares their earlier pages again.
    pub(crate) fn take_certain(&mut self) -> Option<[String; 2]> {
        let pair = self.certain.pop()?;
        Some(pair.map(|number| self.folders[number as usize].prefix.to_string()))
    }

    /// Returns the pages that were fetched from the place of a URL in folders that seem to be
    /// mirrors, each with `true` if the mirror is certain.
    pub(crate) fn counterparts(&self, pages: &LivePages, url: &str) -> Vec<(u32, bool)> {
        let mut counterparts = Vec::new();
        self.each_pair(url, |folder, prefix, pair| {
            if let Some(page) = pages.by_place(place(prefix, &url[folder.len()..])) {
                counterparts.push((page, pair.is_certain()));
            }
            None::<()>
        });
        counterparts.sort_unstable();
        counterparts.dedup_by_key(|found| found.0);
        counterparts
    }

    /// Returns true if two URLs are in folders that seem to be mirrors, but at different places.
    pub(crate) fn are_apart(&self, folder_a: &str, folder_b: &str) -> bool {
        // Pages with equal names may be at one place of a narrower folder.
        aligned(folder_a, folder_b).is_none()
            && self.each_pair(folder_a, |_, prefix, _| folder_b.starts_with(prefix).then_some(())).is_some()
    }

    /// Calls a function for each folder that seems to be a mirror of a folder of a URL, until the
    /// function returns a value.
    fn each_pair<T>(&self, url: &str, mut visit: impl FnMut(&str, &str, &Pair) -> Option<T>) -> Option<T> {
        folders(url).rev().find_map(|folder| {
            let number = *self.numbers.get(folder)?;
            self.folders[number as usize].counterparts.iter().find_map(|&counterpart| {
                let pair = &self.pairs[&key(number, counterpart)];
                pair.evidence.seems_right().then(|| visit(folder, &self.folders[counterpart as usize].prefix, pair))?
            })
        })
    }

    /// Returns the mirrored folder that a URL is in, and the folder that is kept in its place.
    pub(crate) fn folders(&self, url: &str) -> Option<(&str, &str)> {
        let number = self.rule(url)?;
        let group = &self.groups[self.folders[number as usize].group? as usize];
        Some((&self.folders[number as usize].prefix, &self.folders[group.kept_folder as usize].prefix))
    }

    /// Returns the substitute for a URL below a mirror; `None` if the URL itself should be fetched.
    pub(crate) fn instead(&self, pages: &LivePages, url: &str) -> Option<SubstituteUrl> {
        let number = self.rule(url)?;
        let folder = &self.folders[number as usize];
        let group = &self.groups[folder.group? as usize];
        let rest = &url[folder.prefix.len()..];
        let url_in = |member: u32| place(&self.folders[member as usize].prefix, rest);
        let members = group.members.iter().filter(|&&member| member != number);
        // A page of any member is a substitute: it need not be fetched again from the kept folder.
        if let Some(page) = members.clone().find_map(|&member| pages.by_place(url_in(member))) {
            return Some(SubstituteUrl::Fetched(page));
        }
        if group.kept_folder == number || self.missing.contains(&url_in(group.kept_folder)) {
            return None;
        }
        // The kept folder may use another file extension, such as `.htm` for `.html`.
        let url_ending = ending(url);
        let member_ending =
            folder.endings.iter().find(|(known, _)| &**known == url_ending).map_or(url_ending, |(_, other)| other);
        let query = url.find('?').unwrap_or(url.len());
        let (path, query) =
            (&url[folder.prefix.len()..query - url_ending.len().min(query - folder.prefix.len())], &url[query..]);
        let kept_folder = &self.folders[group.kept_folder as usize].prefix;
        Some(SubstituteUrl::Url([kept_folder, path, member_ending, query].concat()))
    }

    /// Records that a URL gave no page, if it is below a kept folder.
    pub(crate) fn note_missing(&mut self, url: &str) {
        let rule_number = self.rule(url).filter(|&number| {
            self.folders[number as usize].group.is_some_and(|group| self.groups[group as usize].kept_folder == number)
        });
        if let Some(number) = rule_number {
            let folder = &self.folders[number as usize].prefix;
            self.missing.insert(place(folder, &url[folder.len()..]));
        }
    }
}
