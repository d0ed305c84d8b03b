//! Digests in the notation of WARC files: `algorithm:value`, with the value in base32, hexadecimal
//! or base64.

use std::borrow::Cow;

use data_encoding::{BASE32_NOPAD, BASE64_NOPAD, Encoding, HEXLOWER_PERMISSIVE};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha512};
use xxhash_rust::xxh3::xxh3_64;

/// A digest with a known algorithm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WarcDigest {
    /// Algorithm of the digest.
    pub algorithm: Algorithm,
    /// Value of the digest.
    pub bytes: Vec<u8>,
}

/// Algorithm that some crawler uses for digests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Md5,
    Sha1,
    Sha256,
    Sha512,
}

impl Algorithm {
    /// Names as written, with the length of the digest in bytes.
    const NAMES: [(&str, Algorithm, usize); 6] = [
        ("md5", Algorithm::Md5, 16),
        ("sha1", Algorithm::Sha1, 20),
        ("sha-1", Algorithm::Sha1, 20),
        ("sha256", Algorithm::Sha256, 32),
        ("sha-256", Algorithm::Sha256, 32),
        ("sha512", Algorithm::Sha512, 64),
    ];
}

impl WarcDigest {
    fn is_of(&self, bytes: &[u8]) -> bool {
        match self.algorithm {
            Algorithm::Md5 => Md5::digest(bytes)[..] == self.bytes[..],
            Algorithm::Sha1 => Sha1::digest(bytes)[..] == self.bytes[..],
            Algorithm::Sha256 => Sha256::digest(bytes)[..] == self.bytes[..],
            Algorithm::Sha512 => Sha512::digest(bytes)[..] == self.bytes[..],
        }
    }
}

/// True if a record has digests, and none of them matches its content.
///
/// One match is enough. A crawler that edits HTTP heads breaks the digest of the block, although
/// the page is intact. Crawlers compute the digest of the payload over the body as received,
/// without its chunk framing, or decoded. These are therefore compared in turn until one matches:
/// first `block`, then `forms` in their order. Digests with unknown algorithms are ignored.
pub(super) fn mismatch<'b>(
    (block_digest, block): (&str, &[u8]),
    payload_digest: &str,
    forms: impl IntoIterator<Item = Cow<'b, [u8]>>,
) -> bool {
    let (block_value, payload) = (parse(block_digest), parse(payload_digest));
    if block_value.as_ref().is_some_and(|digest| digest.is_of(block)) {
        return false;
    }
    match payload {
        Some(digest) => !forms.into_iter().any(|form| digest.is_of(&form)),
        None => block_value.is_some(),
    }
}

/// Parses a digest. Returns `None` for an unknown algorithm, or a length that the algorithm does
/// not have.
pub(super) fn parse(text: &str) -> Option<WarcDigest> {
    let (name, value) = text.split_once(':')?;
    let is_named = |(known, ..): &&(&str, Algorithm, usize)| name.trim().eq_ignore_ascii_case(known);
    let &(_, algorithm, length) = Algorithm::NAMES.iter().find(is_named)?;
    let value = value.trim().trim_end_matches('=');
    let upper = value.to_ascii_uppercase();
    // The length of the value determines the encoding: for each of these algorithms, the encodings
    // have different lengths.
    let encodings: [(&Encoding, &str); 3] =
        [(&HEXLOWER_PERMISSIVE, value), (&BASE32_NOPAD, &upper), (&BASE64_NOPAD, value)];
    let candidates = encodings.iter().filter(|(encoding, _)| encoding.encode_len(length) == value.len());
    let bytes = candidates.filter_map(|(encoding, value)| encoding.decode(value.as_bytes()).ok()).next()?;
    Some(WarcDigest { algorithm, bytes })
}

/// Returns the hash of the SHA-1 digest of a payload, in the form of [`name`].
pub(super) fn name_of(payload: &[u8]) -> u64 {
    hash(&WarcDigest { algorithm: Algorithm::Sha1, bytes: Sha1::digest(payload).to_vec() })
}

fn hash(digest: &WarcDigest) -> u64 {
    xxh3_64(&[&[digest.algorithm as u8], &digest.bytes[..]].concat())
}

/// Returns the hash of a digest, which is the same for every encoding of its value; 0 for an empty
/// text.
pub(super) fn name(text: &str) -> u64 {
    match parse(text) {
        Some(digest) => hash(&digest),
        None if text.trim().is_empty() => 0,
        None => xxh3_64(text.trim().as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_the_same_in_every_encoding() {
        let hexadecimal = "sha1:da39a3ee5e6b4b0d3255bfef95601890afd80709";
        for digest in [
            "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
            "sha1:3i42h3s6nnfq2msvx7xzkyayscx5qbyj",
            "SHA-1:DA39A3EE5E6B4B0D3255BFEF95601890AFD80709",
            "sha1:2jmj7l5rSw0yVb/vlWAYkK/YBwk=",
        ] {
            assert_eq!(parse(digest), parse(hexadecimal), "{digest}");
            assert_eq!(name(digest), name(hexadecimal), "{digest}");
        }
        assert_eq!(parse(hexadecimal).unwrap().bytes[..2], [0xda, 0x39]);
        assert_eq!(parse("md5:2QOYZWMPACZAJ2MABGMOZ6CCPY======"), parse("md5:d41d8cd98f00b204e9800998ecf8427e"));
        let sha256 = "sha-256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(parse(sha256).unwrap().bytes.len(), 32);
    }

    #[test]
    fn unknown_digest_has_a_name_but_no_value() {
        for odd in ["blake3:00ff", "sha1:00ff", "sha1:!!42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", "da39a3ee"] {
            assert_eq!(parse(odd), None, "{odd}");
            assert_ne!(name(odd), 0, "{odd}");
        }
        assert_eq!(name(" "), 0);
        assert_eq!(name("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"), name_of(b""));
        assert_ne!(name("blake3:00ff"), name("blake3:00fe"));
    }
}
