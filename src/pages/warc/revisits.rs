//! Information about pages in records that are not pages: revisits refer to other records,
//! redirects lead to other URLs.
//!
//! Both profiles of WARC 1.0 and 1.1 are supported. `identical-payload-digest` means that the
//! server sent the same payload as before, `server-not-modified` that it reported no change (304).

use xxhash_rust::xxh3::xxh3_64;

use super::{digests, form, http, page, record_head::RecordHead};
use crate::fetch_time;
use crate::record::{NonPage, Reason, RecordIds, Redirect, Refusal, Revisit};
use webtwin_job::{InputSettings, RecordLimits};

/// Returns the refusal of a revisit, or of a response in segments, whose stored part of the
/// response already excludes a page, regardless of the records that it refers to or continues in.
pub(super) fn refusal(head: &RecordHead, payload: &[u8], input: &InputSettings) -> Option<Refusal> {
    let is_segment = head.segment == Some(1) && page::is_http(head);
    if !is_segment && (head.kind != "revisit" || head.media != "application/http") {
        return None;
    }
    let response = http::parse(payload, &input.limits).ok()?;
    match response.status {
        304 => None,
        200..300 => form::no_text(&response.media, input),
        other => Some((Reason::StatusNot2xx, other.to_string())),
    }
}

/// Returns the information about pages in a refused record. `length` is that of the record in its
/// file, and `repair_reason` is the damage found in it so far.
pub(super) fn means(
    head: &RecordHead,
    payload: &[u8],
    reason: Reason,
    length: u64,
    repair_reason: Option<Reason>,
    limits: &RecordLimits,
) -> Option<NonPage> {
    match reason {
        Reason::Revisit => Some(NonPage::Revisit(revisit(head, length, repair_reason))),
        Reason::StatusNot2xx => redirect(head, payload, limits).map(NonPage::Redirect),
        _ => None,
    }
}

fn seconds(date: &str) -> i64 {
    fetch_time::parse(date).unwrap_or(0)
}

fn revisit(head: &RecordHead, length: u64, repair_reason: Option<Reason>) -> Revisit {
    // If the server sent no payload, a digest can only be that of an empty one.
    let not_modified = head.profile.to_ascii_lowercase().contains("not-modified");
    let payload = if not_modified { 0 } else { digests::name(&head.payload_digest) };
    Revisit {
        url: head.uri.clone(),
        fetch_time: seconds(&head.date),
        length,
        repaired: repair_reason.or_else(|| page::damage_of_head(head)),
        address: head.address,
        names: RecordIds { id: name(&head.id), payload },
        refers_to: name(&head.refers_to),
        refers_to_url: head.refers_to_uri.clone(),
        refers_to_time: seconds(&head.refers_to_date),
    }
}

fn redirect(head: &RecordHead, payload: &[u8], limits: &RecordLimits) -> Option<Redirect> {
    let response = http::parse(payload, limits).ok()?;
    let leads_on = matches!(response.status, 301 | 302 | 303 | 307 | 308) && !response.location.is_empty();
    let (url, fetch_time) = (head.uri.clone(), seconds(&head.date));
    let is_permanent = matches!(response.status, 301 | 308);
    leads_on.then_some(Redirect { url, fetch_time, location: response.location, is_permanent })
}

/// Returns the hash of a record id; 0 for an empty one.
pub(super) fn name(id: &str) -> u64 {
    if id.is_empty() { 0 } else { xxh3_64(id.as_bytes()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::warc::record_head::parse;

    #[test]
    fn damage_of_a_revisit_is_reported_like_that_of_a_page() {
        let repaired = |fields: &str, repair_reason: Option<Reason>| {
            let head = "WARC/1.0\r\nWARC-Type: revisit\r\nWARC-Target-URI: http://a/\r\nContent-Length: 0\r\n";
            let head = parse(format!("{head}{fields}\r\n").as_bytes());
            match means(&head, b"", Reason::Revisit, 9, repair_reason, &RecordLimits::default()) {
                Some(NonPage::Revisit(revisit)) => revisit.repaired,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(repaired("WARC-Date: 2026-01-01T00:00:00Z\r\n", None), None);
        assert_eq!(repaired("", None), None);
        assert_eq!(repaired("WARC-Date: yesterday\r\n", None), Some(Reason::BadDate));
        assert_eq!(repaired("odd\r\n", None), Some(Reason::BadHeader));
        assert_eq!(repaired("WARC-Date: yesterday\r\n", Some(Reason::GzipCrc)), Some(Reason::GzipCrc));
    }
}
