//! All sources of advice, which observe one page after another, and the sequence numbers of advice.

use super::Advice;
use super::mirrors::{FetchedPages, FolderGroups};
use super::place::{aligned, host, place};
use super::rules::DomainRules;
use super::traps::{FolderCounts, Traps};
use crate::log::Log;
use crate::near::{resemblance, sample_of};
use crate::pages::LivePages;
use crate::record::{LoggedPage, url_of};
use webtwin_base::error::Result;
use webtwin_core::url_rules::rows::RuleRow;
use webtwin_pages::public_suffix::domain_of;

/// Maximum number of pages of a host that are compared again when one of its folders becomes a
/// mirror.
const MAX_INSPECTED: usize = 1 << 10;

/// Minimum resemblance, boilerplate included, of copies at one place of mirrors, in units of
/// 1/10,000.
const MIN_RESEMBLANCE_IN_PLACE: u64 = 4_000;

/// Sources of advice, and all advice so far.
#[derive(Debug, Default)]
pub(crate) struct Advisor {
    pub folders: FolderCounts,
    pub mirrors: FolderGroups,
    pub traps: Traps,
    pub rules: DomainRules,
    pub published_advice: Vec<Advice>,
}

impl Advisor {
    /// Observes a page that was added.
    ///
    /// # Errors
    /// Returns any error of reading the log.
    pub(crate) fn observe(&mut self, log: &Log, pages: &mut LivePages, page: u32, record: &LoggedPage) -> Result<()> {
        let copy_of = match record.of {
            Some((copy_of, _)) => Some((copy_of, url_of(log, pages, copy_of)?)),
            None => None,
        };
        let is_placeholder = record.notice != 0;
        // Copies with the same name in another folder may be a mirror, so they are no evidence of a
        // trap.
        let repeats = |(copy_of, url): &(u32, String)| {
            pages.host_of(*copy_of) == pages.host_of(page) && aligned(&record.url, url).is_none()
        };
        let is_idle = is_placeholder || copy_of.as_ref().is_some_and(repeats);
        self.folders.add(&record.url, is_idle, is_placeholder);
        let domain = domain_of(&record.url);
        self.rules.observe(domain, page, copy_of.is_some_and(|(_, url)| domain_of(&url) == domain));
        let fetched_pages = FetchedPages { pages, log, folders: &self.folders };
        let advice = self.mirrors.observe(fetched_pages, page, &record.url)?;
        self.give(advice);
        while let Some(mirrors) = self.mirrors.take_certain() {
            read_again(log, pages, &mirrors)?;
        }
        // A folder that is in a known mirror is a copy of another folder, not a trap.
        if self.mirrors.folders(&record.url).is_none() {
            let advice = self.traps.observe(&self.folders, &record.url, is_idle);
            self.give(advice);
        }
        Ok(())
    }

    /// Replaces the rules of a domain.
    pub(crate) fn take_rules(&mut self, domain: &str, rules: Vec<RuleRow>) {
        let advice = self.rules.take(domain, rules);
        self.give(advice);
    }

    /// Appends advice with the next sequence numbers, and passes the numbers to the sources.
    fn give(&mut self, advice: impl IntoIterator<Item = Advice>) {
        for advice in advice {
            let advice = Advice { sequence: self.published_advice.len() as u64 + 1, ..advice };
            self.mirrors.numbered(&advice);
            self.traps.numbered(&advice);
            self.rules.numbered(&advice);
            self.published_advice.push(advice);
        }
    }
}

/// Merges clusters of pages that were added before their two folders became mirrors, if the pages
/// are at one place of both folders and resemble each other.
fn read_again(log: &Log, pages: &mut LivePages, [folder_a, folder_b]: &[String; 2]) -> Result<()> {
    let Some(host) = pages.known_host(host(folder_a)) else { return Ok(()) };
    for page in pages.on_host(host).take(MAX_INSPECTED).collect::<Vec<_>>() {
        let url = url_of(log, pages, page)?;
        let Some(rest) = url.strip_prefix(folder_a.as_str()) else { continue };
        let Some(counterpart) = pages.by_place(place(folder_b, rest)) else { continue };
        if pages.cluster(page) != pages.cluster(counterpart) {
            let samples = [sample_of(log, pages, page)?, sample_of(log, pages, counterpart)?];
            if resemblance(&samples[0], &samples[1]) >= MIN_RESEMBLANCE_IN_PLACE {
                pages.join(page, counterpart);
            }
        }
    }
    Ok(())
}
