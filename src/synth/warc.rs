//! Synthetic crawls as WARC files.

use std::io::Write;
use std::ops::Range;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::Synth;
use super::random::{Stream, key};

impl Synth {
    /// Writes a range of pages as WARC 1.1: a `warcinfo` record, then a `response` record per page,
    /// each in a gzip member of its own.
    ///
    /// Ids and dates depend only on the crawl, and so do the bytes of the file.
    ///
    /// # Errors
    /// Returns any error of `writer`.
    ///
    /// # Panics
    /// Panics if the range exceeds [`Synth::len`].
    pub fn write_warc(&self, range: Range<u64>, writer: &mut dyn Write) -> std::io::Result<()> {
        let info = b"software: webtwin synth\r\nformat: WARC File Format 1.1\r\n";
        let head = "WARC-Type: warcinfo\r\nContent-Type: application/warc-fields\r\n";
        // A number that no page has, so that the record id is unique.
        self.record(writer, head, range.start ^ u64::MAX, 1_700_000_000, &[info])?;
        for (number, page) in range.clone().zip(self.pages(range)) {
            let http = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\r\n",
                page.html.len()
            );
            let head = format!(
                "WARC-Type: response\r\nWARC-Target-URI: {}\r\nContent-Type: application/http; msgtype=response\r\n",
                page.url
            );
            self.record(writer, &head, number, page.fetch_time, &[http.as_bytes(), &page.html])?;
        }
        Ok(())
    }

    fn record(
        &self,
        writer: &mut dyn Write,
        head: &str,
        number: u64,
        time: i64,
        block: &[&[u8]],
    ) -> std::io::Result<()> {
        let mut id = Stream::new(key(self.plan.seed, &[50, number]));
        let (high, low) = (id.draw(), id.draw());
        let length: usize = block.iter().map(|part| part.len()).sum();
        let mut member = GzEncoder::new(writer, Compression::default());
        // The id has the version bits of a version-4 UUID, although its digits come from a hash.
        write!(
            member,
            "WARC/1.1\r\n{head}WARC-Record-ID: <urn:uuid:{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}>\r\n\
             WARC-Date: {}\r\nContent-Length: {length}\r\n\r\n",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xfff,
            low >> 48 & 0x3fff | 0x8000,
            low & 0xffff_ffff_ffff,
            date(time),
        )?;
        for part in block {
            member.write_all(part)?;
        }
        member.write_all(b"\r\n\r\n")?;
        member.finish()?;
        Ok(())
    }
}

/// Formats a time (seconds since 1970, not negative) as `2023-11-14T22:13:20Z`.
pub(super) fn date(seconds: i64) -> String {
    let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let (mut day, second) = (seconds / 86_400, seconds % 86_400);
    let mut year = 1970;
    while day >= 365 + i64::from(leap(year)) {
        day -= 365 + i64::from(leap(year));
        year += 1;
    }
    let february = 28 + i64::from(leap(year));
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}T{:02}:{:02}:{:02}Z", day + 1, second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::bufread::GzDecoder;

    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_700_000_000, "2023-11-14T22:13:20Z"),
            (1_735_603_200, "2024-12-31T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(date(seconds), expected);
        }
    }

    fn members(mut file: &[u8]) -> Vec<String> {
        let mut members = Vec::new();
        while !file.is_empty() {
            let mut decoder = GzDecoder::new(file);
            let mut member = String::new();
            decoder.read_to_string(&mut member).unwrap();
            members.push(member);
            file = decoder.into_inner();
        }
        members
    }

    #[test]
    fn warc_file_has_one_member_per_record_and_correct_lengths() {
        let synth = Synth::parse("synth://?pages=120").unwrap();
        let mut file = Vec::new();
        synth.write_warc(0..synth.len(), &mut file).unwrap();
        let members = members(&file);
        assert_eq!(members.len(), 121);
        let mut ids = std::collections::HashSet::new();
        for (number, member) in members.iter().enumerate() {
            let (head, block) = member.split_once("\r\n\r\n").unwrap();
            let block = block.strip_suffix("\r\n\r\n").unwrap();
            let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
            assert!(head.starts_with("WARC/1.1\r\n"));
            assert_eq!(field("Content-Length:"), block.len().to_string());
            assert!(ids.insert(field("WARC-Record-ID:")));
            assert_eq!(field("WARC-Record-ID:").len(), "<urn:uuid:>".len() + 36);
            if number > 0 {
                let page = synth.page(number as u64 - 1);
                let (http, body) = block.split_once("\r\n\r\n").unwrap();
                assert_eq!((field("WARC-Target-URI:"), body.as_bytes()), (page.url.as_str(), page.html.as_slice()));
                assert!(http.ends_with(&format!("Content-Length: {}", body.len())));
            }
        }
    }

    #[test]
    fn ranges_concatenate_to_the_whole() {
        let synth = Synth::parse("synth://?pages=150&seed=4").unwrap();
        let (mut complete, mut parts) = (Vec::new(), Vec::new());
        synth.write_warc(0..150, &mut complete).unwrap();
        for range in [0..70, 70..150] {
            synth.write_warc(range, &mut parts).unwrap();
        }
        let pages =
            |file: &[u8]| members(file).into_iter().filter(|m| m.contains("\r\nWARC-Target-URI")).collect::<Vec<_>>();
        assert_eq!(pages(&complete), pages(&parts));
        assert_eq!(pages(&complete).len(), 150);
    }
}
