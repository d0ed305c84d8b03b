//! Explains why nothing is known of a URL, and what to do about it.

use serde::Serialize;

use super::index::Index;
use webtwin_base::error::Result;
use webtwin_base::ids::DocId;

/// Why a URL is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The run read a record of it and did not keep it as a page.
    Rejected,
    /// The run has other pages of its host.
    NotCrawled,
    /// The run has no page of its host.
    OutsideRun,
}

impl Reason {
    /// What the reason means and what to do, for people.
    pub fn advice(self) -> &'static str {
        match self {
            Reason::Rejected => {
                "The crawl has a record of this URL, but no page was made of it: see its reason. Nothing speaks against \
                 fetching it, unless the reason does."
            }
            Reason::NotCrawled => {
                "The crawl has pages of this host, but not this one. Fetch it; the index of the next run will have it. If the \
                 crawler obeyed an avoid list, make the index with --in-force."
            }
            Reason::OutsideRun => {
                "The crawl has no page of this host. Fetch it. If it should be known, check the spelling of the host and \
                 which run is served."
            }
        }
    }
}

/// Why a URL is unknown, in an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unknown {
    /// The reason.
    pub reason: Reason,
    /// Pages of the run on its host; absent for a doc id, which names no host.
    pub host_pages: Option<u32>,
    /// Why its record was not kept: a value of `rejected.reason`.
    pub rejected: Option<String>,
    /// What it means and what to do, in a sentence.
    pub advice: &'static str,
}

impl Unknown {
    /// Explains a doc id that is no page of the run, of a URL on `host`.
    ///
    /// # Errors
    /// [`webtwin_base::error::Error::Input`] when the index is damaged where this looks.
    pub fn of(index: &Index, id: DocId, host: Option<&str>) -> Result<Unknown> {
        let rejected = index.rejected(id)?.map(String::from);
        let host_pages = host.map(|host| index.pages_of_host(host)).transpose()?;
        let reason = match (&rejected, host_pages) {
            (Some(_), _) => Reason::Rejected,
            (None, Some(0)) => Reason::OutsideRun,
            (None, _) => Reason::NotCrawled,
        };
        Ok(Unknown { reason, host_pages, rejected, advice: reason.advice() })
    }
}
