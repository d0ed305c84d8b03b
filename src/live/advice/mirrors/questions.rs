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
        let both = self.certain.pop()?;
        Some(both.map(|number| self.folders[number as usize].prefix.to_string()))
    }

    /// Returns the pages that were fetched from the place of a URL in folders that seem to be
    /// mirrors, each with `true` if the mirror is certain.
    pub(crate) fn counterparts(&self, pages: &LivePages, url: &str) -> Vec<(u32, bool)> {
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

    /// Returns true if two URLs are in folders that seem to be mirrors, but at different places.
    pub(crate) fn are_apart(&self, ours: &str, theirs: &str) -> bool {
        // Pages with equal names may be at one place of a narrower folder.
        aligned(ours, theirs).is_none()
            && self.each_pair(ours, |_, prefix, _| theirs.starts_with(prefix).then_some(())).is_some()
    }

    /// Calls a function for each folder that seems to be a mirror of a folder of a URL, until the
    /// function returns a value.
    fn each_pair<T>(&self, url: &str, mut each: impl FnMut(&str, &str, &Pair) -> Option<T>) -> Option<T> {
        folders(url).rev().find_map(|folder| {
            let number = *self.numbers.get(folder)?;
            self.folders[number as usize].others.iter().find_map(|&other| {
                let pair = &self.pairs[&key(number, other)];
                pair.evidence.seems_right().then(|| each(folder, &self.folders[other as usize].prefix, pair))?
            })
        })
    }

    /// Returns the mirrored folder that a URL is in, and the folder that is kept in its place.
    pub(crate) fn folders(&self, url: &str) -> Option<(&str, &str)> {
        let number = self.rule(url)?;
        let group = &self.groups[self.folders[number as usize].group? as usize];
        Some((&self.folders[number as usize].prefix, &self.folders[group.kept as usize].prefix))
    }

    /// Returns the substitute for a URL below a mirror; `None` if the URL itself should be fetched.
    pub(crate) fn instead(&self, pages: &LivePages, url: &str) -> Option<SubstituteUrl> {
        let number = self.rule(url)?;
        let folder = &self.folders[number as usize];
        let group = &self.groups[folder.group? as usize];
        let rest = &url[folder.prefix.len()..];
        let at = |member: u32| place(&self.folders[member as usize].prefix, rest);
        let others = group.members.iter().filter(|&&member| member != number);
        // A page of any member is a substitute: it need not be fetched again from the kept folder.
        if let Some(page) = others.clone().find_map(|&member| pages.by_place(at(member))) {
            return Some(SubstituteUrl::Fetched(page));
        }
        if group.kept == number || self.missing.contains(&at(group.kept)) {
            return None;
        }
        // The kept folder may use another file extension, such as `.htm` for `.html`.
        let own = ending(url);
        let other = folder.endings.iter().find(|(known, _)| &**known == own).map_or(own, |(_, other)| other);
        let query = url.find('?').unwrap_or(url.len());
        let (path, query) =
            (&url[folder.prefix.len()..query - own.len().min(query - folder.prefix.len())], &url[query..]);
        let kept = &self.folders[group.kept as usize].prefix;
        Some(SubstituteUrl::Url([kept, path, other, query].concat()))
    }

    /// Records that a URL gave no page, if it is below a kept folder.
    pub(crate) fn note_missing(&mut self, url: &str) {
        let kept = self.rule(url).filter(|&number| {
            self.folders[number as usize].group.is_some_and(|group| self.groups[group as usize].kept == number)
        });
        if let Some(number) = kept {
            let folder = &self.folders[number as usize].prefix;
            self.missing.insert(place(folder, &url[folder.len()..]));
        }
    }
}
