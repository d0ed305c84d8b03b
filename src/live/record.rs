//! What the log has: a payload for each page, each record that is no page, each file that is followed, and rules that were learned.

use bincode::Options;
use serde::{Deserialize, Serialize};

use crate::digest::PageDigest;
use crate::log::Log;
use crate::pages::LivePages;
use webtwin_base::error::{Error, Result};
use webtwin_core::url_rules::rows::RuleRow;

/// A payload of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum LogPayload {
    /// A page.
    Page(LoggedPage),
    /// A URL that was fetched and gave no page.
    Missing(String),
    /// A file was read up to an offset.
    File(String, u64),
    /// The URL rules of a registered domain, as they were learned.
    Rules(String, Vec<RuleRow>),
}

/// A page, and what was decided when it came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LoggedPage {
    /// Canonical URL.
    pub url: String,
    /// As [`PageDigest::fetch_time`].
    pub fetch_time: i64,
    /// As [`PageDigest::exact`].
    pub exact: u64,
    /// As [`PageDigest::title`].
    pub title: u32,
    /// As [`PageDigest::notice`].
    pub notice: u64,
    /// The page that it is a copy of, with the resemblance in units of 1/10,000.
    pub of: Option<(u32, u16)>,
    /// Other pages whose clusters it joins with that one.
    pub joins: Vec<u32>,
    /// Chunks of the sample that are no site furniture.
    pub counting: u16,
    /// As [`PageDigest::sample`]; empty for a page with the text of another.
    pub sample: Vec<u64>,
    /// For each chunk of the sample, one bit: whether the page is found by it.
    pub posted: Vec<u8>,
}

impl LoggedPage {
    /// A page of which nothing is decided.
    pub(crate) fn undecided(page: &PageDigest) -> LoggedPage {
        LoggedPage {
            url: page.url.clone(),
            fetch_time: page.fetch_time,
            exact: page.exact,
            title: page.title,
            notice: page.notice,
            of: None,
            joins: Vec::new(),
            counting: 0,
            sample: Vec::new(),
            posted: Vec::new(),
        }
    }

    /// The chunks that the page is found by.
    pub(crate) fn postings(&self) -> impl Iterator<Item = u64> + '_ {
        let is_posted = |at: usize| self.posted[at / 8] & 1 << (at % 8) != 0;
        self.sample.iter().enumerate().filter(move |(at, _)| is_posted(*at)).map(|(_, &hash)| hash)
    }
}

/// First byte of every record: the kind of the frame, and the version of the format.
const RECORD: u8 = 1;

fn codec() -> impl Options {
    bincode::DefaultOptions::new().with_varint_encoding().reject_trailing_bytes()
}

impl LogPayload {
    /// Its payload.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut payload = vec![RECORD];
        codec().serialize_into(&mut payload, self).expect("a record is written to memory");
        payload
    }

    /// Returns the URL of a page from the first bytes of its payload; `None` if they do not have all of it.
    fn url(payload: &[u8]) -> Option<String> {
        // A record begins with the number of its variant, and a page with its URL.
        let head: std::result::Result<(u32, String), _> =
            bincode::DefaultOptions::new().with_varint_encoding().allow_trailing_bytes().deserialize(payload.get(1..)?);
        head.ok().map(|head| head.1)
    }

    /// The record of a payload.
    ///
    /// # Errors
    /// [`Error::Invariant`] when it has another form: a frame with a checksum that is right holds what this program wrote.
    pub(crate) fn decode(payload: &[u8]) -> Result<LogPayload> {
        let wrong =
            || Error::Invariant("a record of the log has another form; it was written by another version".into());
        let rest = payload.strip_prefix(&[RECORD]).ok_or_else(wrong)?;
        codec().deserialize(rest).map_err(|_| wrong())
    }
}

/// Reads the record of a page.
///
/// # Errors
/// Those of a log that cannot be read.
pub(crate) fn page_record(log: &Log, pages: &LivePages, page: u32) -> Result<LoggedPage> {
    match LogPayload::decode(&log.read(pages.record(page))?)? {
        LogPayload::Page(record) => Ok(record),
        _ => Err(Error::Invariant("a page has a record of another kind".into())),
    }
}

/// Reads the URL of a page.
///
/// # Errors
/// Those of a log that cannot be read.
pub(crate) fn url_of(log: &Log, pages: &LivePages, page: u32) -> Result<String> {
    match log.read_start(pages.record(page), LogPayload::url)? {
        Some(url) => Ok(url),
        None => page_record(log, pages, page).map(|record| record.url),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written() {
        let page = LoggedPage {
            url: "http://a.example/".into(),
            fetch_time: -1,
            exact: 2,
            title: 3,
            notice: 4,
            of: Some((6, 7)),
            joins: vec![1],
            counting: 8,
            sample: vec![9, 10, 11],
            posted: vec![0b101],
        };
        assert_eq!(page.postings().collect::<Vec<_>>(), [9, 11]);
        let payload = LogPayload::Page(page.clone()).encode();
        assert_eq!(LogPayload::decode(&payload).unwrap(), LogPayload::Page(page));
        assert_eq!(LogPayload::url(&payload).unwrap(), "http://a.example/");
        assert_eq!(LogPayload::url(&payload[..10]), None);
        assert!(LogPayload::decode(&payload[..payload.len() - 1]).is_err() && LogPayload::decode(b"").is_err());
    }
}
