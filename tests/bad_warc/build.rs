//! Builds WARC records, which are valid by default and invalid on request.

use std::io::Write;

use flate2::{
    Compression,
    write::{DeflateEncoder, GzEncoder, ZlibEncoder},
};

/// Returns the body of the page with this name, about 700 bytes.
pub(crate) fn page(name: &str) -> Vec<u8> {
    let seed: usize = name.bytes().map(usize::from).sum();
    let words: String = (0..100).map(|k| format!("word{} ", (seed * 7 + k * k) % 997)).collect();
    format!("<html><head><title>{name}</title></head><body>{words}<a href=\"/n\">n</a></body></html>").into_bytes()
}

/// Returns an HTTP response with `lines` (each ended by CRLF) after its status line.
pub(crate) fn http_with(status: &str, lines: &str, body: &[u8]) -> Vec<u8> {
    [format!("{status}\r\n{lines}\r\n").as_bytes(), body].concat()
}

/// Returns an HTML response; `lines` are additional header lines.
pub(crate) fn html(lines: &str, body: &[u8]) -> Vec<u8> {
    http_with("HTTP/1.1 200 OK", &format!("Content-Type: text/html; charset=utf-8\r\n{lines}"), body)
}

/// A WARC record, every part of which can be set.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub version: &'static str,
    pub kind: &'static str,
    pub uri: Option<String>,
    pub date: &'static str,
    pub media: &'static str,
    /// Content length as written; `None` writes the true length.
    pub length: Option<String>,
    /// Additional header lines, each ended by CRLF.
    pub lines: Vec<u8>,
    pub payload: Vec<u8>,
    pub trailer: Vec<u8>,
}

impl Record {
    /// Returns the valid record of the page with this name.
    pub(crate) fn of(name: &str) -> Record {
        Record::with(name, html("", &page(name)))
    }

    /// Returns a valid response record with `payload`.
    pub(crate) fn with(name: &str, payload: Vec<u8>) -> Record {
        Record {
            version: "WARC/1.0",
            kind: "response",
            uri: Some(format!("http://h.example/{name}")),
            date: "2026-01-01T00:00:00Z",
            media: "application/http; msgtype=response",
            length: None,
            lines: Vec::new(),
            payload,
            trailer: b"\r\n\r\n".to_vec(),
        }
    }

    pub(crate) fn length(mut self, length: impl ToString) -> Record {
        self.length = Some(length.to_string());
        self
    }

    pub(crate) fn lines(mut self, lines: impl AsRef<[u8]>) -> Record {
        self.lines = lines.as_ref().to_vec();
        self
    }

    pub(crate) fn date(mut self, date: &'static str) -> Record {
        self.date = date;
        self
    }

    pub(crate) fn kind(mut self, kind: &'static str, media: &'static str, payload: &[u8]) -> Record {
        (self.kind, self.media, self.payload) = (kind, media, payload.to_vec());
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut head =
            format!("{}\r\nWARC-Type: {}\r\nWARC-Date: {}\r\n", self.version, self.kind, self.date).into_bytes();
        if let Some(uri) = &self.uri {
            head.extend(format!("WARC-Target-URI: {uri}\r\n").into_bytes());
        }
        head.extend(&self.lines);
        head.extend(format!("Content-Type: {}\r\n", self.media).into_bytes());
        match self.length.as_deref() {
            Some("") => (),
            Some(length) => head.extend(format!("Content-Length: {length}\r\n").into_bytes()),
            None => head.extend(format!("Content-Length: {}\r\n", self.payload.len()).into_bytes()),
        }
        [&head, b"\r\n".as_slice(), &self.payload, &self.trailer].concat()
    }
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn gzip_stored(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(bytes, 3).unwrap()
}

/// Returns a brotli stream of one uncompressed meta-block (RFC 7932, section 9.2), of at most
/// 65,536 bytes.
pub(crate) fn brotli(bytes: &[u8]) -> Vec<u8> {
    // From the lowest bit: window of 16 bits (0), not last (0), length - 1 in four nibbles (00),
    // uncompressed (1).
    let head = ((bytes.len() as u32 - 1) << 4) | 1 << 20;
    [&head.to_le_bytes()[..3], bytes, &[3]].concat()
}

/// Returns a body in HTTP chunks of 100 bytes.
pub(crate) fn chunked(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for chunk in body.chunks(100) {
        bytes.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
        bytes.extend(chunk);
        bytes.extend(b"\r\n");
    }
    [bytes, b"0\r\n\r\n".to_vec()].concat()
}

/// Returns `bytes` with one byte changed.
pub(crate) fn flipped(mut bytes: Vec<u8>, at: usize) -> Vec<u8> {
    bytes[at] ^= 0x55;
    bytes
}
