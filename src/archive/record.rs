//! Records that may become references or be referred to, and the keys of their payloads.

use sha2::{Digest as _, Sha256};
use xxhash_rust::xxh3::xxh3_64;

use super::head::RewritableHead;
use webtwin_pages::fetch_time;
use webtwin_pages::warc::stored::values;

/// Fields that occur exactly once in a record that may become a reference or be referred to.
const REQUIRED_FIELDS: [&str; 5] = ["WARC-Type", "WARC-Target-URI", "WARC-Date", "WARC-Record-ID", "Content-Length"];

/// Fields that occur at most once in such a record.
const OPTIONAL_FIELDS: [&str; 3] = ["WARC-Payload-Digest", "WARC-Block-Digest", "Content-Type"];

/// Fields that do not occur in such a record, because its payload would be a part of another one or
/// the record already a reference.
const FORBIDDEN_FIELDS: [&str; 8] = [
    "WARC-Truncated",
    "WARC-Segment-Number",
    "WARC-Segment-Origin-ID",
    "WARC-Profile",
    "WARC-Refers-To",
    "WARC-Refers-To-Target-URI",
    "WARC-Refers-To-Date",
    "WARC-Refers-To-Filename",
];

/// Hash of a payload and of its interpretation, 160 bits.
pub(super) type PayloadKey = [u32; 5];

/// Record with a payload that may be replaced by a reference, or that a reference may point to.
pub(super) struct PayloadRecord<'h> {
    pub head: RewritableHead<'h>,
    pub uri: String,
    /// Time of capture, in seconds since 1970.
    pub seconds: i64,
    /// Record id as written, with its angle brackets.
    pub id: String,
    pub payload_digest: Option<String>,
    meaning: Vec<u8>,
}

impl<'h> PayloadRecord<'h> {
    /// Parses the heads of a record. Returns `None` if the record must stay unchanged.
    pub(crate) fn parse(head: &'h [u8], http: &[u8]) -> Option<PayloadRecord<'h>> {
        let bytes = head;
        let head = RewritableHead::parse(bytes)?;
        let has_once = REQUIRED_FIELDS.iter().all(|name| head.only(name).is_some());
        let at_most_once = OPTIONAL_FIELDS.iter().all(|name| head.values(name).count() < 2);
        let has_none = FORBIDDEN_FIELDS.iter().all(|name| head.values(name).next().is_none());
        if !(has_once && at_most_once && has_none) || head.has_ours() {
            return None;
        }
        let text = |name: &str| Some(std::str::from_utf8(head.only(name)?).ok()?.to_string());
        let kind = text("WARC-Type")?.to_ascii_lowercase();
        // Equal bytes are interchangeable only if encodings or media type give them the same
        // meaning.
        let meaning = match (kind.as_str(), http) {
            ("response", [_, ..]) => {
                [values(http, "Transfer-Encoding").join(","), values(http, "Content-Encoding").join(",")].join("\n")
            }
            ("resource", []) => text("Content-Type").unwrap_or_default(),
            _ => return None,
        };
        let date = text("WARC-Date")?;
        let uri = text("WARC-Target-URI")?;
        let candidate = PayloadRecord {
            uri: without_brackets(&uri).to_string(),
            seconds: fetch_time::parse(&date)?,
            id: text("WARC-Record-ID")?,
            payload_digest: text("WARC-Payload-Digest"),
            meaning: format!("{kind}\n{}\n", meaning.to_ascii_lowercase()).into_bytes(),
            head,
        };
        (!candidate.uri.is_empty()).then_some(candidate)
    }

    /// Returns the key of this record for the given SHA-256 of its payload.
    pub(crate) fn key(&self, payload: &[u8; 32]) -> PayloadKey {
        key(&Sha256::new().chain_update(&self.meaning).chain_update(payload).finalize().into())
    }

    /// Returns the hash of the target and date, equal to that of [`place_name`].
    pub(crate) fn place_name(&self) -> u64 {
        self.names()[1]
    }

    /// Returns the hashes of the names by which a revisit may refer to this record.
    pub(crate) fn names(&self) -> [u64; 3] {
        names(&self.id, (&self.uri, self.seconds), (&self.uri, self.payload_digest.as_deref().unwrap_or_default()))
    }
}

/// Returns the first 160 bits of a SHA-256.
pub(super) fn key(digest: &[u8; 32]) -> PayloadKey {
    std::array::from_fn(|i| {
        u32::from_be_bytes([digest[4 * i], digest[4 * i + 1], digest[4 * i + 2], digest[4 * i + 3]])
    })
}

/// Returns the hashes of the names that a revisit of the input refers to, or `None` if the record
/// is not a revisit.
///
/// A revisit need not name the record that it refers to. Then it refers to one with the same target
/// and digest.
pub(super) fn referred(head: &[u8]) -> Option<[u64; 3]> {
    let first = |name: &str| values(head, name).into_iter().next().unwrap_or_default();
    if !first("WARC-Type").eq_ignore_ascii_case("revisit") {
        return None;
    }
    let target = first("WARC-Target-URI");
    let uri = match first("WARC-Refers-To-Target-URI") {
        uri if uri.is_empty() => target.clone(),
        uri => uri,
    };
    let seconds = fetch_time::parse(&first("WARC-Refers-To-Date")).unwrap_or(i64::MIN);
    let digest_key = (without_brackets(&target), &first("WARC-Payload-Digest")[..]);
    Some(names(&first("WARC-Refers-To"), (without_brackets(&uri), seconds), digest_key))
}

/// Returns the hash of a record's id, or `None` if it has none.
pub(super) fn id_name(head: &[u8]) -> Option<u64> {
    let id = values(head, "WARC-Record-ID").into_iter().next()?;
    (!without_brackets(&id).is_empty()).then(|| names(&id, ("", 0), ("", ""))[0])
}

/// Returns the hash of the target and date of a record, if it is of a type that tools look up by
/// these.
pub(super) fn place_name(head: &[u8]) -> Option<u64> {
    let first = |name: &str| values(head, name).into_iter().next().unwrap_or_default();
    let kind = first("WARC-Type").to_ascii_lowercase();
    let is_looked_for = ["response", "resource", "revisit"].contains(&kind.as_str());
    let seconds = fetch_time::parse(&first("WARC-Date")).filter(|_| is_looked_for)?;
    Some(names("", (without_brackets(&first("WARC-Target-URI")), seconds), ("", ""))[1])
}

fn names(id: &str, (uri, seconds): (&str, i64), (target, digest): (&str, &str)) -> [u64; 3] {
    let texts = [
        format!("id\n{}", without_brackets(id)),
        format!("at\n{uri}\n{seconds}"),
        format!("digest\n{target}\n{}", digest.to_ascii_lowercase()),
    ];
    texts.map(|text| xxh3_64(text.as_bytes()))
}

/// Returns a URI as in WARC 1.1, without the angle brackets of WARC 1.0.
pub(super) fn without_brackets(uri: &str) -> &str {
    uri.strip_prefix('<').and_then(|uri| uri.strip_suffix('>')).unwrap_or(uri)
}
