//! Removal of content encodings, within the limits.

use std::{
    borrow::Cow,
    io::{ErrorKind, Read},
};

use flate2::bufread::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use crate::decoded::RATIO;
use crate::record::{Reason, Refusal};
use crate::sniff;
use webtwin_job::RecordLimits;

/// Binary logarithm of the largest window of a zstd body: the limit of RFC 9659.
const ZSTD_WINDOW_LOG: u32 = 23;

/// Maximum number of content encodings of a page. Servers apply one, and proxies may add another.
const ENCODINGS: u32 = 3;

/// Number of decoded bytes from which on the ratio is checked.
const RATIO_FROM: u64 = 1 << 20;

/// A content encoding that can be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl Coding {
    fn named(word: &str) -> Option<Coding> {
        match word.strip_prefix("x-").unwrap_or(word) {
            "gzip" | "gz" => Some(Coding::Gzip),
            "deflate" | "zlib" => Some(Coding::Deflate),
            "br" | "brotli" => Some(Coding::Brotli),
            "zstd" | "zst" => Some(Coding::Zstd),
            _ => None,
        }
    }

    /// Detects the encoding from the first bytes of a body.
    fn marked(body: &[u8]) -> Option<Coding> {
        match body {
            [0x1f, 0x8b, 8, ..] => Some(Coding::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Coding::Zstd),
            _ => None,
        }
    }

    /// Decodes a body. Returns no bytes if the body is not in this encoding.
    fn remove(self, body: &[u8], limits: &RecordLimits) -> Result<Decoded, Refusal> {
        match self {
            Coding::Gzip if !body.starts_with(&[0x1f, 0x8b]) => Ok(LIE),
            Coding::Gzip => drain(MultiGzDecoder::new(body), body, limits),
            Coding::Zstd if Coding::marked(body) != Some(Coding::Zstd) => Ok(LIE),
            Coding::Zstd => drain(zstd_reader(body)?, body, limits),
            Coding::Deflate => deflate(body, limits),
            Coding::Brotli => {
                Ok(unmarked(drain(brotli_decompressor::Decompressor::new(body, 4096), body, limits)?, body))
            }
        }
    }
}

/// Returns the words of a `Content-Encoding` or `Transfer-Encoding`, in lower case and without
/// parameters (`gzip;q=1.0`). `identity` and empty words are omitted.
pub(super) fn words(value: &str) -> impl Iterator<Item = String> {
    let base_word = |word: &str| {
        word.split(';').next().unwrap_or_default().trim_matches(['"', '\'', ' ', '\t']).to_ascii_lowercase()
    };
    value.split(',').map(base_word).filter(|word| !word.is_empty() && word != "identity")
}

/// Removes the encodings in `words`, beginning with the one that was applied last.
///
/// A body that is not in a declared encoding is used unchanged, with [`Reason::EncodingLie`]. If
/// decoding fails in the middle, the part that decodes is returned. Only the first damage is
/// reported.
///
/// A word that is not the name of an encoding (`none`, `utf-8`) leaves the body unchanged, with
/// [`Reason::UnknownEncoding`], as in browsers. There are two exceptions: a body that begins with
/// the magic number of an encoding is decoded, and a body that is not text is refused.
///
/// # Errors
/// Returns a refusal if the body exceeds the limits, or is in an unknown encoding.
pub(super) fn decode<'m>(
    words: &[String],
    body: Cow<'m, [u8]>,
    limits: &RecordLimits,
) -> Result<(Cow<'m, [u8]>, Option<Reason>), Refusal> {
    let (mut body, mut repair_reason) = (body, None);
    let mut removed_count = 0;
    // Encodings that the current body is not in. They are remembered because a head may repeat an
    // encoding thousands of times.
    let mut refuted: Vec<Coding> = Vec::new();
    for word in words.iter().rev() {
        if body.is_empty() {
            break;
        }
        let named_coding = Coding::named(word);
        if named_coding.is_none() {
            repair_reason = repair_reason.or(Some(Reason::UnknownEncoding));
        }
        let Some(coding) = named_coding.or_else(|| Coding::marked(&body)) else {
            if !names_no_encoding(word) && sniff::binary(&body).is_none() && sniff::has_control_bytes(&body) {
                return Err((Reason::UnknownEncoding, word.chars().take(40).collect()));
            }
            continue;
        };
        if refuted.contains(&coding) {
            continue;
        }
        let (result, damage) = coding.remove(&body, limits)?;
        repair_reason = repair_reason.or(damage);
        match result {
            Some(decoded_body) => {
                removed_count += 1;
                if removed_count > ENCODINGS {
                    let detail = format!("more than the {ENCODINGS} content encodings that are allowed");
                    return Err((Reason::TooManyEncodings, detail));
                }
                (body, refuted) = (Cow::Owned(decoded_body), Vec::new());
            }
            None => refuted.push(coding),
        }
    }
    Ok((body, repair_reason))
}

/// True if a word cannot be the name of an encoding: it is a charset, a media type, or a word for
/// "none".
fn names_no_encoding(word: &str) -> bool {
    const NONE: [&str; 8] = ["none", "null", "no", "plain", "text", "binary", "7bit", "8bit"];
    NONE.contains(&word) || word.contains(['/', '*']) || encoding_rs::Encoding::for_label(word.as_bytes()).is_some()
}

/// Returns the first decoded bytes of a gzip body, or fewer if it is damaged.
pub(super) fn gunzipped_head(body: &[u8]) -> Vec<u8> {
    let mut head = Vec::new();
    // Damage is reported when the whole body is decoded.
    _ = MultiGzDecoder::new(body).take(64).read_to_end(&mut head);
    head
}

/// Decoded bytes, if any, and the damage found.
type Decoded = (Option<Vec<u8>>, Option<Reason>);

/// Result for a body that is not in the encoding.
const LIE: Decoded = (None, Some(Reason::EncodingLie));

/// Decodes `deflate`. RFC 9110 defines it as zlib, but many servers send raw deflate data.
fn deflate(body: &[u8], limits: &RecordLimits) -> Result<Decoded, Refusal> {
    let zlib = body.len() > 2 && body[0] & 0x0f == 8 && u16::from_be_bytes([body[0], body[1]]).is_multiple_of(31);
    if zlib {
        let decoded_body = drain(ZlibDecoder::new(body), body, limits)?;
        if decoded_body.1 != Some(Reason::BadCompression)
            || decoded_body.0.as_ref().is_some_and(|bytes| !bytes.is_empty())
        {
            return Ok(decoded_body);
        }
    }
    Ok(unmarked(drain(DeflateDecoder::new(body), body, limits)?, body))
}

/// Reinterprets a failure of a format without a magic number. A body that reads like text, or that
/// begins with the magic number of another format, was never in this encoding.
fn unmarked(decoded_body: Decoded, body: &[u8]) -> Decoded {
    let start = &body[..body.len().min(512)];
    let like_text = start.iter().all(|&byte| byte >= b' ' || matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c));
    let nothing = decoded_body.0.as_ref().is_none_or(Vec::is_empty);
    let is_other = Coding::marked(body).is_some();
    if decoded_body.1.is_some() && (like_text || nothing || is_other) { LIE } else { decoded_body }
}

fn zstd_reader(body: &[u8]) -> Result<impl Read + '_, Refusal> {
    let broken_zstd = |error: std::io::Error| (Reason::BadCompression, format!("zstd: {error}"));
    let mut reader = zstd::stream::read::Decoder::with_buffer(body).map_err(broken_zstd)?;
    reader.window_log_max(ZSTD_WINDOW_LOG).map_err(broken_zstd)?;
    Ok(reader)
}

fn drain(reader: impl Read, encoded_body: &[u8], limits: &RecordLimits) -> Result<Decoded, Refusal> {
    let mut bytes = Vec::new();
    let mut reader = reader;
    loop {
        let read = reader.by_ref().take(RATIO_FROM).read_to_end(&mut bytes);
        let length = bytes.len() as u64;
        let swollen = length > RATIO_FROM && length / encoded_body.len().max(1) as u64 > RATIO;
        if length > limits.record_bytes || swollen {
            return Err((
                Reason::DecodedTooLarge,
                format!("more than {length} bytes decoded from {}", encoded_body.len()),
            ));
        }
        match read {
            Ok(0) => return Ok((Some(bytes), None)),
            Ok(_) => (),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                return Ok((Some(bytes), Some(Reason::Truncated)));
            }
            Err(_) => return Ok((Some(bytes), Some(Reason::BadCompression))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{
        Compression,
        write::{DeflateEncoder, GzEncoder, ZlibEncoder},
    };

    use super::*;

    const PAGE: &[u8] = b"<html><p>to be decoded, to be decoded, to be decoded</p></html>";
    /// Returns `brotli -q 5` of [`PAGE`], written by hand as one uncompressed meta-block: a window
    /// of 16 bits, then length - 1 in 16 bits, the bytes, and an empty last meta-block.
    fn brotli_stored(page: &[u8]) -> Vec<u8> {
        // Bits, low first: 0 (WBITS = 16), 0 (ISLAST), 00 (4 nibbles), 16 bits of length - 1, 1
        // (ISUNCOMPRESSED).
        let head = ((page.len() as u32 - 1) << 4) | 1 << 20;
        let mut bytes = head.to_le_bytes()[..3].to_vec();
        bytes.extend_from_slice(page);
        bytes.push(3); // ISLAST, ISLASTEMPTY
        bytes
    }

    fn gzip(page: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(page).unwrap();
        encoder.finish().unwrap()
    }

    fn decode_body(encodings: &[&str], body: &[u8]) -> Result<(Vec<u8>, Option<Reason>), Reason> {
        let encodings: Vec<String> = encodings.iter().map(|&word| word.to_owned()).collect();
        let decoded_body = decode(&encodings, Cow::Borrowed(body), &RecordLimits::default());
        decoded_body.map(|(body, repaired)| (body.into_owned(), repaired)).map_err(|refusal| refusal.0)
    }

    #[test]
    fn every_encoding_is_removed() {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
        zlib.write_all(PAGE).unwrap();
        let mut raw_deflate = DeflateEncoder::new(Vec::new(), Compression::best());
        raw_deflate.write_all(PAGE).unwrap();
        for (encoding, body) in [
            ("gzip", gzip(PAGE)),
            ("x-gzip", gzip(PAGE)),
            ("deflate", zlib.finish().unwrap()),
            ("deflate", raw_deflate.finish().unwrap()),
            ("br", brotli_stored(PAGE)),
            ("zstd", zstd::bulk::compress(PAGE, 3).unwrap()),
        ] {
            assert_eq!(decode_body(&[encoding], &body), Ok((PAGE.to_vec(), None)), "{encoding}");
        }
        assert_eq!(
            decode_body(&["zstd", "gzip"], &gzip(&zstd::bulk::compress(PAGE, 3).unwrap())),
            Ok((PAGE.to_vec(), None))
        );
        assert_eq!(decode_body(&["gzip"], b""), Ok((Vec::new(), None)));
    }

    #[test]
    fn unencoded_body_is_used_unchanged() {
        for encoding in ["gzip", "deflate", "br", "zstd"] {
            assert_eq!(decode_body(&[encoding], PAGE), Ok((PAGE.to_vec(), Some(Reason::EncodingLie))), "{encoding}");
        }
        assert_eq!(decode_body(&["gzip", "gzip"], &gzip(PAGE)), Ok((PAGE.to_vec(), Some(Reason::EncodingLie))));
        assert_eq!(decode_body(&["gzip"; 4], PAGE), Ok((PAGE.to_vec(), Some(Reason::EncodingLie))));
        // Some servers echo the `Accept-Encoding` of the client.
        let names = ["gzip", "deflate", "br", "zstd"];
        assert_eq!(decode_body(&names, &gzip(PAGE)), Ok((PAGE.to_vec(), Some(Reason::EncodingLie))));
        assert_eq!(decode_body(&["br"; 20_000], PAGE), Ok((PAGE.to_vec(), Some(Reason::EncodingLie))));
    }

    #[test]
    fn unknown_encodings_leave_the_body_unchanged() {
        let latin = "caf\u{e9}".chars().map(|letter| letter as u8).collect::<Vec<u8>>();
        for word in ["none", "utf-8", "binary", "text/html", "*", "iso-8859-1", "x-none", "rot13"] {
            for body in [PAGE, &latin] {
                assert_eq!(decode_body(&[word], body), Ok((body.to_vec(), Some(Reason::UnknownEncoding))), "{word}");
            }
            let two_words = ["none, gzip", "gzip, none", "none"].map(|words| words.replace("none", word));
            for words in &two_words {
                let words: Vec<&str> = words.split(", ").collect();
                assert_eq!(
                    decode_body(&words, &gzip(PAGE)),
                    Ok((PAGE.to_vec(), Some(Reason::UnknownEncoding))),
                    "{words:?}"
                );
            }
        }
        let utf16: Vec<u8> = "<p>x".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(decode_body(&["utf-16le"], &utf16), Ok((utf16.clone(), Some(Reason::UnknownEncoding))));
        assert_eq!(decode_body(&["exi"], b"\x80\x02\x00\x01"), Err(Reason::UnknownEncoding));
        // The media type decides about a picture, for any name of its encoding.
        assert_eq!(decode_body(&["exi"], b"GIF89a\0").map(|decoded| decoded.1), Ok(Some(Reason::UnknownEncoding)));
    }

    #[test]
    fn words_have_no_parameters_quotes_or_capitals() {
        let words_of = |value| words(value).collect::<Vec<String>>();
        assert_eq!(words_of("GZip;q=1.0, \"br\",, Identity,chunked "), ["gzip", "br", "chunked"]);
        assert_eq!(words_of(""), [""; 0]);
    }

    #[test]
    fn truncated_body_retains_its_beginning() {
        let text: Vec<u8> =
            (0..40_000u32).flat_map(|i| (i.wrapping_mul(2_654_435_761) >> 7).to_string().into_bytes()).collect();
        let stored: Vec<u8> = brotli_stored(&text[..60_000]);
        // The brotli decoder does not distinguish an early end from other damage.
        for (encoding, body, damage) in [
            ("gzip", gzip(&text), Reason::Truncated),
            ("zstd", zstd::bulk::compress(&text, 3).unwrap(), Reason::Truncated),
            ("br", stored, Reason::BadCompression),
        ] {
            let (bytes, repair_reason) = decode_body(&[encoding], &body[..body.len() * 3 / 4]).unwrap();
            assert!(bytes.len() > 1000 && text.starts_with(&bytes), "{encoding}: {} bytes", bytes.len());
            assert_eq!(repair_reason, Some(damage), "{encoding}");
        }
    }

    #[test]
    fn rejects_bombs_and_too_many_encodings() {
        let zeros = vec![0; 17 << 20];
        assert_eq!(decode_body(&["gzip"], &gzip(&zeros)), Err(Reason::DecodedTooLarge));
        assert_eq!(
            decode_body(&["zstd"], &zstd::bulk::compress(&zeros[..2 << 20], 3).unwrap()),
            Err(Reason::DecodedTooLarge)
        );
        let four = (0..4).fold(PAGE.to_vec(), |body, _| gzip(&body));
        assert_eq!(decode_body(&["gzip"; 4], &four), Err(Reason::TooManyEncodings));
    }
}
