//! Payloads of the log: one for each page, for each fetch without a page, for each offset of a
//! followed file, and for learned URL rules.

use bincode::Options;
use serde::{Deserialize, Serialize};

use crate::digest::PageDigest;
use crate::log::Log;
use crate::pages::LivePages;
use webtwin_base::error::{Error, Result};
use webtwin_core::url_rules::rows::RuleRow;

/// Payload of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum LogPayload {
    /// A page that was added.
    Page(LoggedPage),
    /// A URL that was fetched and gave no page.
    Missing(String),
    /// A file, and the offset up to which it was read.
    File(String, u64),
    /// A registered domain, and the URL rules that were learned for it.
    Rules(String, Vec<RuleRow>),
}

/// A page, and the decisions that were made when it was added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LoggedPage {
    /// Canonical URL of the page.
    pub url: String,
    /// Time of the fetch ([`PageDigest::fetch_time`]).
    pub fetch_time: i64,
    /// Fingerprint of the text ([`PageDigest::exact`]).
    pub exact: u64,
    /// Hash of the title ([`PageDigest::title`]).
    pub title: u32,
    /// Hash of the notice ([`PageDigest::notice`]).
    pub notice: u64,
    /// The page that this page is a copy of, and their resemblance in units of 1/10,000.
    pub of: Option<(u32, u16)>,
    /// Other pages whose clusters this page merges with the cluster of `of`.
    pub joins: Vec<u32>,
    /// Number of chunks of the sample that are not boilerplate.
    pub counting: u16,
    /// Sample of the page ([`PageDigest::sample`]); empty for a page with the text of an earlier
    /// page.
    pub sample: Vec<u64>,
    /// Bit set with one bit for each chunk of the sample: 1 if look-ups of the chunk find the page.
    pub posted: Vec<u8>,
}

impl LoggedPage {
    /// Creates the record of a page before any decision is made.
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

    /// Returns the hashes of the chunks by which look-ups find the page.
    pub(crate) fn postings(&self) -> impl Iterator<Item = u64> + '_ {
        let is_posted = |at: usize| self.posted[at / 8] & 1 << (at % 8) != 0;
        self.sample.iter().enumerate().filter(move |(at, _)| is_posted(*at)).map(|(_, &hash)| hash)
    }
}

/// First byte of every payload: the kind of the frame, and the version of the format.
const RECORD: u8 = 1;

fn codec() -> impl Options {
    bincode::DefaultOptions::new().with_varint_encoding().reject_trailing_bytes()
}

impl LogPayload {
    /// Encodes the payload.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut payload = vec![RECORD];
        codec().serialize_into(&mut payload, self).expect("a record is written to memory");
        payload
    }

    /// Returns the URL of a page from the first bytes of its payload; `None` if the URL does not
    /// end within them.
    fn url(payload: &[u8]) -> Option<String> {
        // A payload begins with the number of its variant, and the record of a page with its URL.
        let head: std::result::Result<(u32, String), _> =
            bincode::DefaultOptions::new().with_varint_encoding().allow_trailing_bytes().deserialize(payload.get(1..)?);
        head.ok().map(|head| head.1)
    }

    /// Decodes a payload.
    ///
    /// # Errors
    /// Returns [`Error::Invariant`] if the payload has another format. Its checksum was right, so
    /// another version of this program wrote it.
    pub(crate) fn decode(payload: &[u8]) -> Result<LogPayload> {
        let invalid =
            || Error::Invariant("a record of the log has another format; it was written by another version".into());
        let rest = payload.strip_prefix(&[RECORD]).ok_or_else(invalid)?;
        codec().deserialize(rest).map_err(|_| invalid())
    }
}

/// Reads the record of a page.
///
/// # Errors
/// Returns any error of reading the log.
pub(crate) fn page_record(log: &Log, pages: &LivePages, page: u32) -> Result<LoggedPage> {
    match LogPayload::decode(&log.read(pages.record(page))?)? {
        LogPayload::Page(record) => Ok(record),
        _ => Err(Error::Invariant("a page has a record of another kind".into())),
    }
}

/// Reads the URL of a page.
///
/// # Errors
/// Returns any error of reading the log.
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
    fn records_are_read_as_written() {
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
