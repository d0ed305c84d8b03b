//! The table of cases: name, file, expected outcome.

use super::build::*;

pub(super) struct Case {
    pub name: &'static str,
    pub bytes: Vec<u8>,
    pub expected: &'static str,
}

/// Returns every case. Numbers in names are ids of this project's list of bad inputs.
pub(super) fn all() -> Vec<Case> {
    [containers(), lengths(), heads(), kinds(), bodies(), encodings(), embedded()].into_iter().flatten().collect()
}

fn case(name: &'static str, bytes: Vec<u8>, expected: &'static str) -> Case {
    Case { name, bytes, expected }
}

fn sound(name: &str) -> Vec<u8> {
    Record::of(name).bytes()
}

/// Returns a case of three gzip members: a sound page, `bad`, and a sound page.
fn packed(name: &'static str, bad: &Record, expected: &'static str) -> Case {
    case(name, [gzip(&sound("a")), gzip(&bad.bytes()), gzip(&sound("z"))].concat(), expected)
}

/// Returns the case of [`packed`] without compression.
fn plain(name: &'static str, bad: &Record, expected: &'static str) -> Case {
    case(name, [sound("a"), bad.bytes(), sound("z")].concat(), expected)
}

fn containers() -> Vec<Case> {
    let names = ["a", "b", "c", "d", "e"];
    let pages: Vec<_> = names.iter().map(|name| sound(name)).collect();
    let members: Vec<_> = pages.iter().map(|page| gzip(page)).collect();
    let frames: Vec<_> = pages.iter().map(|page| zstd(page)).collect();
    let with = |i: usize, member: Vec<u8>| {
        let mut members = members.clone();
        members[i] = member;
        members.concat()
    };
    let mut bad_crc = members[2].clone();
    let crc = bad_crc.len() - 8;
    bad_crc[crc] ^= 1;
    let mut bad_size = members[2].clone();
    *bad_size.last_mut().unwrap() ^= 1;
    let cut = |bytes: Vec<u8>, by: usize| bytes[..bytes.len() - by].to_vec();
    let middle = |i: usize| members[i].len() / 2;
    let skippable = b"\x5e\x2a\x4d\x18\x05\0\0\0hello".to_vec();
    let dictionary = {
        let samples: Vec<_> = (0..200).map(|i| sound(&format!("sample{i}"))).collect();
        zstd::dict::from_samples(&samples, 4096)
    };
    let mut cases = vec![
        case("01 last member truncated", cut(members.concat(), 40), "a b c d !truncated"),
        case("01 truncated in its trailer", cut(members.concat(), 5), "a b c d !truncated"),
        case("01 truncated in its WARC head", [members[0].as_slice(), &members[1][..40]].concat(), "a !truncated"),
        case("01 truncated in its gzip head", [members[0].as_slice(), &members[1][..6]].concat(), "a !truncated"),
        case(
            "02 flipped byte in a member",
            with(2, flipped(members[2].clone(), middle(2))),
            "a b !bad_compression d e",
        ),
        case(
            "02 flipped byte in the deflate head",
            with(2, flipped(members[2].clone(), 10)),
            "a b !bad_compression d e",
        ),
        case("02 flipped magic byte", with(2, flipped(members[2].clone(), 1)), "a b !garbage d e"),
        case("03 bad checksum", with(2, bad_crc), "a b c(gzip_crc) d e"),
        case("03 bad length in the trailer", with(2, bad_size), "a b c(gzip_crc) d e"),
        case("03 trailer missing", with(2, cut(members[2].clone(), 8)), "a b c(bad_compression) d e"),
        case("03 half a trailer", with(2, cut(members[2].clone(), 4)), "a b c(gzip_crc) d e"),
        case("04 garbage between members", with(1, b"\0GARBAGE".repeat(50)), "a !garbage c d e"),
        case("04 a member of something else", with(1, gzip(b"something else")), "a !garbage c d e"),
        case("05 garbage at the end", [members.concat(), b"\xde\xad".repeat(64)].concat(), "a b c d e !garbage"),
        case("06 zeros at the end", [members.concat(), vec![0; 4096]].concat(), "a b c d e"),
        case("06 zeros at the end, plain", [pages.concat(), vec![0; 4096]].concat(), "a b c d e"),
        case("07 one stream round the whole file", gzip(&pages.concat()), "a b c d e"),
        case("07 one truncated stream", cut(gzip(&pages.concat()), 200), "a b c d !truncated"),
        case("07 one zstd frame round the whole file", zstd(&pages.concat()), "a b c d e"),
        case("08 plain", pages.concat(), "a b c d e"),
        case("09 members", members.concat(), "a b c d e"),
        case("09 frames", frames.concat(), "a b c d e"),
        case("11 empty file", vec![], ""),
        case("12 empty members", with(1, [gzip(b""), gzip(b"")].concat()), "a c d e"),
        case(
            "12 skippable frames",
            [frames[0].clone(), skippable.clone(), frames[1].clone(), skippable].concat(),
            "a b",
        ),
        case(
            "15 gzip bomb",
            [gzip(&sound("a")), gzip(&Record::with("bomb", html("", &vec![0; 20 << 20])).bytes()), gzip(&sound("z"))]
                .concat(),
            "a !record_too_large z",
        ),
        case(
            "15 zstd bomb",
            [zstd(&sound("a")), zstd(&Record::with("bomb", html("", &vec![0; 20 << 20])).bytes()), zstd(&sound("z"))]
                .concat(),
            "a !record_too_large z",
        ),
        case("a frame truncated", cut(frames.concat(), 40), "a b c d !truncated"),
        case(
            "a frame damaged",
            [frames[0].clone(), flipped(frames[1].clone(), 30), frames[2].clone()].concat(),
            "a !bad_compression c",
        ),
        case(
            "garbage between frames",
            [frames[0].clone(), b"GARBAGE".to_vec(), frames[2].clone()].concat(),
            "a !garbage c",
        ),
        case("a member with name, comment and extra field", with(1, gzip_with_everything(&pages[1])), "a b c d e"),
    ];
    if let Ok(dictionary) = dictionary {
        for (name, stored) in [("dictionary", dictionary.clone()), ("compressed dictionary", zstd(&dictionary))] {
            let head = [b"\x5d\x2a\x4d\x18".as_slice(), &(stored.len() as u32).to_le_bytes(), &stored].concat();
            let mut compressor = zstd::bulk::Compressor::with_dictionary(3, &dictionary).unwrap();
            let frames: Vec<_> = pages.iter().map(|page| compressor.compress(page).unwrap()).collect();
            cases.push(case(name, [head, frames.concat()].concat(), "a b c d e"));
        }
    }
    cases
}

fn gzip_with_everything(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let builder = flate2::GzBuilder::new().filename("a.warc").comment("a comment").extra(b"sl\x04\0abcd".to_vec());
    let mut encoder = builder.write(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn lengths() -> Vec<Case> {
    let bad = Record::of("bad");
    let true_length = bad.payload.len();
    let without_trailer = Record { trailer: vec![], ..bad.clone() };
    let newlines = Record { trailer: b"\r\n".repeat(40), ..bad.clone() };
    let cut_file = [sound("a"), sound("bad")].concat();
    vec![
        plain("20 length too small, plain", &bad.clone().length(100), "a bad(bad_content_length) z"),
        packed("21 length too small", &bad.clone().length(100), "a bad(bad_content_length) z"),
        plain("22 length too large, plain", &bad.clone().length(true_length + 500), "a bad(bad_content_length) z"),
        packed("23 length too large", &bad.clone().length(true_length + 5000), "a bad(bad_content_length) z"),
        case(
            "22 length too large in one stream",
            gzip(&[sound("a"), bad.clone().length(true_length + 500).bytes(), sound("z")].concat()),
            "a bad(bad_content_length) z",
        ),
        plain("24 length one too large, plain", &bad.clone().length(true_length + 1), "a bad~ z"),
        packed("24 length one too large", &bad.clone().length(true_length + 1), "a bad~ z"),
        plain("24 length one too small, plain", &bad.clone().length(true_length - 1), "a bad z"),
        packed("24 length one too small", &bad.clone().length(true_length - 1), "a bad z"),
        packed("25 negative length", &bad.clone().length(-1), "a !bad_content_length z"),
        plain("25 negative length, plain", &bad.clone().length(-1), "a !bad_content_length z"),
        packed("26 length of 23 digits", &bad.clone().length("99999999999999999999999"), "a !bad_content_length z"),
        packed("27 length 2^63 - 1", &bad.clone().length(i64::MAX), "a !bad_content_length z"),
        plain("27 length 2^63 - 1, plain", &bad.clone().length(i64::MAX), "a !bad_content_length z"),
        packed("28 no length", &bad.clone().length(""), "a !bad_content_length z"),
        plain("28 no length, plain", &bad.clone().length(""), "a !bad_content_length z"),
        packed("29 two lengths", &bad.clone().lines("Content-Length: 7\r\n"), "a !bad_content_length z"),
        packed("29 one length twice", &bad.clone().lines(format!("Content-Length: {true_length}\r\n")), "a bad z"),
        plain("40 no trailer, plain", &without_trailer, "a bad z"),
        packed("40 no trailer", &without_trailer, "a bad z"),
        plain("41 forty newlines, plain", &newlines, "a bad z"),
        packed("41 forty newlines", &newlines, "a bad z"),
        case("plain file cut in a body", cut_file[..cut_file.len() - 40].to_vec(), "a !truncated"),
        case("plain file cut in an HTTP head", cut_file[..cut_file.len() - true_length + 10].to_vec(), "a !truncated"),
        case("plain file cut in a WARC head", [sound("a"), sound("bad")[..60].to_vec()].concat(), "a !truncated"),
        case("garbage between plain records", [sound("a"), b"GARBAGE".repeat(50), sound("z")].concat(), "a !garbage z"),
    ]
}

fn heads() -> Vec<Case> {
    let bad = Record::of("bad");
    let bad_bytes = bad.bytes();
    let lf_only = Record::with(
        "bad",
        b"HTTP/1.1 200 OK\nContent-Type: text/html\n\n".iter().chain(&page("bad")).copied().collect(),
    );
    let unix = |record: &Record| String::from_utf8(record.bytes()).unwrap().replace("\r\n", "\n").into_bytes();
    let no_uri = Record { uri: None, ..bad.clone() };
    let brackets = Record { uri: Some("<http://h.example/bad".to_owned()), ..bad.clone() };
    let long = [b"X-Long: ".as_slice(), &vec![b'a'; 1 << 20], b"\r\n"].concat();
    vec![
        packed("30 version 9.9", &Record { version: "WARC/9.9", ..bad.clone() }, "a !bad_version z"),
        plain("30 version 9.9, plain", &Record { version: "WARC/9.9", ..bad.clone() }, "a !bad_version z"),
        packed("30 version 0.18", &Record { version: "WARC/0.18", ..bad.clone() }, "a bad z"),
        packed("30 version 1.1", &Record { version: "WARC/1.1", ..bad.clone() }, "a bad z"),
        case("31 line feeds only", [gzip(&sound("a")), gzip(&unix(&lf_only)), gzip(&sound("z"))].concat(), "a bad z"),
        case("31 line feeds only, plain", [sound("a"), unix(&lf_only), sound("z")].concat(), "a bad z"),
        packed("32 line without colon", &bad.clone().lines("this line has no colon\r\n"), "a bad(bad_header) z"),
        packed("33 header line of 1 MB", &bad.clone().lines(&long), "a !header_too_large z"),
        plain("33 header line of 1 MB, plain", &bad.clone().lines(&long), "a !header_too_large z"),
        packed("34 NUL in a header", &bad.clone().lines(b"X-\0: \0\r\n"), "a bad(bad_header) z"),
        packed("35 folded header", &bad.clone().lines("X-Fold: a\r\n  b\r\n"), "a bad z"),
        packed("36 Latin-1 header", &bad.clone().lines(b"X-L: caf\xe9\r\n"), "a bad z"),
        packed("37 no target URI", &no_uri, "a !no_target_uri z"),
        packed("37 target URI in brackets", &brackets, "a bad z"),
        packed("38 date yesterday", &bad.clone().date("yesterday"), "a bad(bad_date) z"),
        packed("38 date of fourteen digits", &bad.clone().date("20260101000000"), "a bad z"),
        packed("39 date 2099", &bad.clone().date("2099-01-01T00:00:00Z"), "a bad z"),
        case(
            "a head without end, plain",
            [sound("a"), bad_bytes[..150].to_vec(), sound("z")].concat(),
            "a !bad_header z",
        ),
        case(
            "a damaged version line, plain",
            [sound("a"), flipped(bad_bytes.clone(), 2), sound("z")].concat(),
            "a !garbage z",
        ),
        case(
            "a head alone in its member",
            [gzip(&sound("a")), gzip(&bad_bytes[..60]), gzip(&sound("z"))].concat(),
            "a !bad_header z",
        ),
        packed("51 one URL twice", &Record::of("a"), "a a z"),
    ]
}

fn kinds() -> Vec<Case> {
    let record_of = |kind, media, payload: &str| Record::of("bad").kind(kind, media, payload.as_bytes());
    let aside = |target: &str| Record { uri: Some(target.to_owned()), ..record_of("resource", "text/plain", "words") };
    let wet = page("bad");
    let wet = Record::of("bad").kind("conversion", "text/plain", &wet);
    let resource = Record::of("bad").kind("resource", "text/html", &page("bad"));
    vec![
        packed(
            "42 warcinfo",
            &record_of("warcinfo", "application/warc-fields", "software: x\r\n"),
            "a !not_a_page_record z",
        ),
        packed(
            "43 request",
            &record_of("request", "application/http; msgtype=request", "GET / HTTP/1.1\r\n\r\n"),
            "a !not_a_page_record z",
        ),
        packed(
            "44 metadata",
            &record_of("metadata", "application/warc-fields", "fetchTimeMs: 1\r\n"),
            "a !not_a_page_record z",
        ),
        packed(
            "45 revisit",
            &record_of("revisit", "application/http; msgtype=response", "HTTP/1.1 200 OK\r\n\r\n"),
            "a !revisit z",
        ),
        packed(
            "46 dns",
            &record_of("resource", "text/dns", "20260101000000\nh.example. 1 IN A 192.0.2.1\n"),
            "a !not_a_page_record z",
        ),
        packed(
            "46 dns response",
            &Record { uri: Some("dns:h.example".to_owned()), ..record_of("response", "text/dns", "x") },
            "a !not_a_page_record z",
        ),
        packed(
            "46 wget's manifest",
            &aside("<metadata://gnu.org/software/wget/warc/MANIFEST.txt>"),
            "a !not_a_page_record z",
        ),
        packed("46 Browsertrix's text", &aside("urn:text:http://h.example/a"), "a !not_a_page_record z"),
        packed(
            "46 Browsertrix's thumbnail, cut off",
            &aside("urn:thumbnail:http://h.example/a").length(9999),
            "a !not_a_page_record z",
        ),
        packed("46 ftp", &aside("ftp://h.example/a.txt"), "a !not_a_page_record z"),
        packed(
            "46 ftp response",
            &Record { uri: Some("ftp://h.example/a.txt".to_owned()), ..Record::of("bad") },
            "a !not_a_page_record z",
        ),
        packed(
            "46 a conversion of no page",
            &Record { kind: "conversion", ..aside("urn:text:http://h.example/a") },
            "a !not_a_page_record z",
        ),
        packed(
            "46 a revisit of no page",
            &Record { kind: "revisit", ..aside("urn:text:http://h.example/a") },
            "a !not_a_page_record z",
        ),
        packed(
            "47 continuation",
            &record_of("continuation", "application/octet-stream", "tail"),
            "a !not_a_page_record z",
        ),
        packed("48 unknown type", &record_of("future-type", "text/plain", "x"), "a !not_a_page_record z"),
        packed("48 no type", &record_of("", "text/plain", "x"), "a !bad_header z"),
        packed("49 WARC-Truncated", &Record::of("bad").lines("WARC-Truncated: length\r\n"), "a bad z"),
        packed(
            "50 wrong digest",
            &Record::of("bad").lines("WARC-Payload-Digest: sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\n"),
            "a bad(digest_mismatch) z",
        ),
        packed(
            "50 digest of an unknown algorithm",
            &Record::of("bad").lines("WARC-Block-Digest: xyz:11\r\n"),
            "a bad z",
        ),
        packed("47 first segment", &Record::of("bad").lines("WARC-Segment-Number: 1\r\n"), "a !segmented z"),
        packed("a conversion (WET)", &wet, "a bad z"),
        packed("a resource of HTML", &resource, "a bad z"),
        packed("a resource of an image", &record_of("resource", "image/png", "x"), "a !not_text z"),
        packed(
            "a large request",
            &Record::of("bad").kind("request", "application/http", &vec![b'x'; 17 << 20]),
            "a !not_a_page_record z",
        ),
        plain(
            "a large request, plain",
            &Record::of("bad").kind("request", "application/http", &vec![b'x'; 17 << 20]),
            "a !not_a_page_record z",
        ),
        plain("a large page, plain", &Record::with("bad", html("", &vec![b'x'; 17 << 20])), "a !record_too_large z"),
        packed("a large page", &Record::with("bad", html("", &page("x").repeat(25_000))), "a !record_too_large z"),
        case(
            "a large page in one stream",
            gzip(&[sound("a"), Record::with("bad", html("", &page("x").repeat(25_000))).bytes(), sound("z")].concat()),
            "a !record_too_large z",
        ),
    ]
}

fn bodies() -> Vec<Case> {
    let body = page("bad");
    let with = |payload: Vec<u8>| Record::with("bad", payload);
    let chunks = "Transfer-Encoding: chunked\r\n";
    let whole = chunked(&body);
    let padded = [&whole[..whole.len() - 5], b"00000000\r\n\r\n"].concat();
    let huge = [b"FFFFFFFFFFFFFFFF\r\n".as_slice(), &body].concat();
    let broken = [&whole[..3 + 1 + 100 + 2], b"<no size>\r\n", &whole[106..]].concat();
    let ok = "HTTP/1.1 200 OK";
    vec![
        packed("60 chunked", &with(html(chunks, &whole)), "a bad z"),
        packed("61 chunked named, body plain", &with(html(chunks, &body)), "a bad(encoding_lie) z"),
        packed("62 chunked truncated", &with(html(chunks, &whole[..whole.len() - 60])), "a bad~(truncated) z"),
        packed("62 chunk size damaged", &with(html(chunks, &broken)), "a bad~(bad_chunk) z"),
        packed("63 last chunk zero-padded", &with(html(chunks, &padded)), "a bad z"),
        packed("64 chunk size 2^64 - 1", &with(html(chunks, &huge)), "a !bad_chunk z"),
        packed("71 no status line", &with(body.clone()), "a !bad_http_status z"),
        packed(
            "72 status 404",
            &with(http_with("HTTP/1.1 404 Not Found", "Content-Type: text/html\r\n", &body)),
            "a !status_not_2xx z",
        ),
        packed(
            "72 status without text",
            &with(http_with("HTTP/1.1 200", "Content-Type: text/html\r\n", &body)),
            "a bad z",
        ),
        packed("72 HTTP/2", &with(http_with("HTTP/2 200", "content-type: text/html\r\n", &body)), "a bad z"),
        packed("73 HTTP length lie", &with(html("Content-Length: 999999\r\n", &body)), "a bad z"),
        packed(
            "74 header never ends",
            &with([ok, "\r\nContent-Type: text/html\r\n", &"X: y\r\n".repeat(5)].concat().into_bytes()),
            "a !http_header_unterminated z",
        ),
        packed(
            "74 HTTP head of 1 MB",
            &with(html(&format!("X: {}\r\n", "a".repeat(1 << 20)), &body)),
            "a !header_too_large z",
        ),
        packed(
            "75 PDF as HTML",
            &with(html("", &[b"%PDF-1.4\n".as_slice(), &[0, 255].repeat(2000)].concat())),
            "a !not_text z",
        ),
        packed("75 an image", &with(http_with(ok, "Content-Type: image/png\r\n", &body)), "a !not_text z"),
        packed("75 no type, HTML", &with(http_with(ok, "", &body)), "a bad z"),
        packed("75 no type, no HTML", &with(http_with(ok, "", b"plain")), "a !not_text z"),
        packed("83 NUL bytes", &with(html("", b"a\0b\0")), "a bad~ z"),
        packed("84 empty body", &with(html("", b"")), "a bad~ z"),
    ]
}

fn encodings() -> Vec<Case> {
    let body = page("bad");
    let coded =
        |encoding: &str, body: &[u8]| Record::with("bad", html(&format!("Content-Encoding: {encoding}\r\n"), body));
    let nine = (0..9).fold(body.clone(), |body, _| gzip(&body));
    let both = html("Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n", &chunked(&gzip(&body)));
    let shortened = |bytes: Vec<u8>| bytes[..bytes.len() * 3 / 4].to_vec();
    vec![
        packed("16 bomb as content encoding", &coded("gzip", &gzip(&vec![b'a'; 64 << 20])), "a !decoded_too_large z"),
        packed("65 gzip", &coded("gzip", &gzip(&body)), "a bad z"),
        packed("65 x-gzip", &coded("x-gzip", &gzip(&body)), "a bad z"),
        packed("65 gzip in chunks", &Record::with("bad", both), "a bad z"),
        packed("66 gzip named, body plain", &coded("gzip", &body), "a bad(encoding_lie) z"),
        packed("66 br named, body plain", &coded("br", &body), "a bad(encoding_lie) z"),
        packed("67 raw deflate", &coded("deflate", &deflate(&body)), "a bad z"),
        packed("68 zlib deflate", &coded("deflate", &zlib(&body)), "a bad z"),
        packed("69 unknown encoding, body plain", &coded("rot13", &body), "a bad(unknown_encoding) z"),
        packed("69 unknown encoding, body no text", &coded("exi", b"\x80\0\x01\x02"), "a !unknown_encoding z"),
        packed("69 no encoding", &coded("UTF-8", &body), "a bad(unknown_encoding) z"),
        packed("69 no encoding, and one", &coded("none, gzip;q=1.0", &gzip(&body)), "a bad(unknown_encoding) z"),
        packed("70 gzip nine times", &coded(&["gzip"; 9].join(", "), &nine), "a !too_many_encodings z"),
        packed("70 gzip thrice", &coded("gzip, gzip, gzip", &gzip(&gzip(&gzip(&body)))), "a bad z"),
        packed("100 br", &coded("br", &brotli(&body)), "a bad z"),
        packed("101 zstd", &coded("zstd", &zstd(&body)), "a bad z"),
        packed("102 br truncated", &coded("br", &shortened(brotli(&body))), "a bad~(bad_compression) z"),
        packed("102 gzip truncated", &coded("gzip", &shortened(gzip(&body))), "a bad~(truncated) z"),
    ]
}

/// Archives within records. No record of theirs may be reported, wherever a range starts.
fn embedded() -> Vec<Case> {
    let inner = [sound("x"), sound("y")].concat();
    let members = [gzip(&sound("x")), gzip(&sound("y"))].concat();
    let holding = |payload: &[u8]| Record::with("bad", html("", payload));
    let prefixed = |payload: &[u8]| holding(&[b"<pre>".as_slice(), payload].concat());
    vec![
        plain("a WARC in a plain record", &prefixed(&inner), "a bad~ z"),
        plain("half a WARC in a plain record", &prefixed(&inner[..inner.len() - 300]), "a bad~ z"),
        packed("a WARC in a member", &prefixed(&inner), "a bad~ z"),
        plain("members in a plain record", &prefixed(&members), "a bad~ z"),
        case(
            "members stored in a member",
            [gzip(&sound("a")), gzip_stored(&prefixed(&members).bytes()), gzip(&sound("z"))].concat(),
            "a bad~ z",
        ),
        case(
            "half a member stored in a member",
            [gzip(&sound("a")), gzip_stored(&prefixed(&members[..members.len() - 100]).bytes()), gzip(&sound("z"))]
                .concat(),
            "a bad~ z",
        ),
    ]
}
