//! Explanation of an unknown URL, with advice.

use serde::Serialize;

use super::index::LookupIndex;
use webtwin_base::error::Result;
use webtwin_base::ids::DocId;

/// Reason why a URL is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownReason {
    /// The run read a record of it and did not keep it as a page.
    Rejected,
    /// The run has other pages of its host.
    NotCrawled,
    /// The run has no page of its host.
    OutsideRun,
}

impl UnknownReason {
    /// Returns the meaning of the reason and advice for users.
    pub fn advice(self) -> &'static str {
        match self {
            UnknownReason::Rejected => {
                "The crawl has a record of this URL, but did not keep it as a page. Fetch it, unless the reason of the \
                 rejection shows that it has no page."
            }
            UnknownReason::NotCrawled => {
                "The crawl has pages of this host, but not this one. Fetch it; the index of the next run will have it. If the \
                 crawler obeyed an avoid list, build the index with --in-force."
            }
            UnknownReason::OutsideRun => {
                "The crawl has no page of this host. Fetch it. If you expect it to be known, check the spelling of \
                 the host and the run that is served."
            }
        }
    }
}

/// Explanation of an unknown URL in an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnknownUrl {
    /// Reason.
    pub reason: UnknownReason,
    /// Number of pages of the run on its host; absent for a doc id, which has no host.
    pub host_pages: Option<u32>,
    /// Reason why its record was not kept: a value of `rejected.reason`.
    pub rejected: Option<String>,
    /// Meaning of the reason and advice.
    pub advice: &'static str,
}

impl UnknownUrl {
    /// Explains a doc id that is not a page of the run. `host` is the host of its URL, if known.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Input`] if a damaged part of the index is read.
    pub fn explain(index: &LookupIndex, id: DocId, host: Option<&str>) -> Result<UnknownUrl> {
        let rejection = index.rejected(id)?.map(String::from);
        // The count of the host's pages distinguishes a gap in the crawl from a host that the run
        // never visited.
        let host_pages = host.map(|host| index.pages_of_host(host)).transpose()?;
        let reason = match (&rejection, host_pages) {
            (Some(_), _) => UnknownReason::Rejected,
            (None, Some(0)) => UnknownReason::OutsideRun,
            (None, _) => UnknownReason::NotCrawled,
        };
        Ok(UnknownUrl { reason, host_pages, rejected: rejection, advice: reason.advice() })
    }
}
