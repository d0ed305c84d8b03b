//! Records that refer to other records for their content: revisits, and the records that replace
//! near-copies.

use std::ops::Range;

use data_encoding::{BASE32, HEXLOWER};
use sha1::{Digest as _, Sha1};

use super::head::RewritableHead;
use super::record::{PayloadRecord, id_name, without_brackets};
use webtwin_pages::warc::stored::values;

/// Added field with the digest of the removed payload.
const PAYLOAD: &str = "Webtwin-Payload";

/// Prefix of its value, which the digest in hexadecimal follows.
const SHA256: &str = "sha256:";

/// Fields of a record that are not valid for its revisit.
const INVALID_FIELDS: [&str; 4] = ["WARC-Type", "Content-Length", "WARC-Payload-Digest", "WARC-Block-Digest"];

/// Added field with the digest of the payload that is the base of a difference.
const BASE: &str = "Webtwin-Base";

/// Added field with the position of a difference in the file of differences: offset and length.
const NEAR_FIELD: &str = "Webtwin-Near";

/// Fields of a record that are not valid for the record that replaces a near-copy.
const INVALID_FIELDS_NEAR: [&str; 5] =
    ["WARC-Type", "Content-Type", "Content-Length", "WARC-Payload-Digest", "WARC-Block-Digest"];

/// Returns the digest of the payload that a rewritten record refers to, or `None` if the record is
/// not rewritten.
pub(super) fn payload_wanted(head: &RewritableHead) -> Option<[u8; 32]> {
    let value = std::str::from_utf8(head.only(PAYLOAD).or_else(|| head.only(BASE))?).ok()?;
    HEXLOWER.decode(value.strip_prefix(SHA256)?.as_bytes()).ok()?.try_into().ok()
}

/// Returns the range in the file of differences, if the record replaces a near-copy.
pub(super) fn difference(head: &RewritableHead) -> Option<Range<u64>> {
    let (offset, length) = std::str::from_utf8(head.only(NEAR_FIELD)?).ok()?.split_once(' ')?;
    let offset: u64 = offset.parse().ok()?;
    Some(offset..offset.checked_add(length.parse().ok()?)?)
}

/// Returns the path of the file of differences of a WARC file.
pub(super) fn differences_path(path: &str) -> String {
    format!("_near/{path}.near")
}

/// Returns a digest in the format of WARC files.
fn sha1(digest: &[u8]) -> String {
    format!("sha1:{}", BASE32.encode(digest))
}

/// Fields of a revisit that describe the record with its payload.
#[derive(Clone)]
pub(super) struct Original {
    /// Record id; `None` if other records have the same id.
    id: Option<String>,
    uri: String,
    date: String,
    payload_digest: Option<String>,
}

impl Original {
    /// Reads the description from the head of a record. Returns `None` if a field is missing.
    pub(crate) fn parse(head: &[u8], is_ambiguous: impl Fn(u64) -> bool) -> Option<Original> {
        let field = |name: &str| String::from_utf8(RewritableHead::parse(head)?.only(name)?.to_vec()).ok();
        let has_own_id = id_name(head).is_some_and(|name| !is_ambiguous(name));
        Some(Original {
            id: field("WARC-Record-ID").filter(|_| has_own_id),
            uri: without_brackets(&field("WARC-Target-URI")?).to_string(),
            date: field("WARC-Date")?,
            payload_digest: field("WARC-Payload-Digest"),
        })
    }
}

/// Returns the head of the revisit of a record. The block of the revisit is only the HTTP head.
///
/// Tools look up the original record by its target, date and payload digest. So the digest is the
/// one in the original record. If that has none, it is the digest that the tools compute, which is
/// that of the stored payload.
pub(super) fn revisit(
    payload: &PayloadRecord,
    http: &[u8],
    original: &Original,
    digests: ([u8; 32], [u8; 20]),
) -> Vec<u8> {
    let version = if payload.head.is_1_0() { "1.0" } else { "1.1" };
    let payload_digest = original.payload_digest.clone().unwrap_or_else(|| sha1(&digests.1));
    let mut lines = vec![
        ("WARC-Type", "revisit".into()),
        ("WARC-Profile", format!("http://netpreserve.org/warc/{version}/revisit/identical-payload-digest")),
    ];
    lines.extend(original.id.clone().map(|id| ("WARC-Refers-To", id)));
    lines.extend([
        ("WARC-Refers-To-Target-URI", original.uri.clone()),
        ("WARC-Refers-To-Date", original.date.clone()),
        ("WARC-Payload-Digest", payload_digest),
        ("WARC-Block-Digest", sha1(&Sha1::digest(http))),
        ("WARC-Truncated", "length".into()),
        ("Content-Length", http.len().to_string()),
        (PAYLOAD, format!("{SHA256}{}", HEXLOWER.encode(&digests.0))),
    ]);
    payload.head.rewritten(&INVALID_FIELDS, &lines)
}

/// Returns the head and block of the record that replaces a near-copy: a `metadata` record with the
/// position of the difference. Tools for web archives do not treat such a record as content.
pub(super) fn note(
    of: &PayloadRecord,
    base: &[u8],
    payload: &[u8; 32],
    (offset, length): (u64, usize),
) -> (Vec<u8>, Vec<u8>) {
    let first = |name: &str| values(base, name).into_iter().next().unwrap_or_default();
    let (uri, date) = (first("WARC-Target-URI"), first("WARC-Date"));
    let block = format!("near-copy-of: {}\r\nnear-copy-of-date: {date}\r\n", without_brackets(&uri)).into_bytes();
    let head = of.head.rewritten(
        &INVALID_FIELDS_NEAR,
        &[
            ("WARC-Type", "metadata".into()),
            ("Content-Type", "application/warc-fields".into()),
            ("Content-Length", block.len().to_string()),
            (BASE, format!("{SHA256}{}", HEXLOWER.encode(payload))),
            (NEAR_FIELD, format!("{offset} {length}")),
        ],
    );
    (head, block)
}
