use std::io::Write;

use proptest::prelude::*;

use super::*;
use webtwin_base::error::Error;
use webtwin_base::read_at::Bytes;

fn ranges(bytes: &[u8], cuts: &[u64], limits: &RecordLimits) -> Vec<ReadResult> {
    let file = Bytes(bytes.to_vec());
    let mut results = Vec::new();
    for bounds in cuts.windows(2) {
        read_range(&file, bounds[0]..bounds[1], limits, &FieldNames::default(), &mut |result| {
            results.push(result);
            Ok(())
        })
        .unwrap();
    }
    results
}

fn read_all_lines(bytes: &[u8]) -> Vec<ReadResult> {
    ranges(bytes, &[0, bytes.len() as u64], &RecordLimits::default())
}

fn read_compressed(bytes: &[u8], compression: Compression) -> Vec<ReadResult> {
    let mut results = Vec::new();
    read_whole(&Bytes(bytes.to_vec()), compression, &RecordLimits::default(), &FieldNames::default(), &mut |result| {
        results.push(result);
        Ok(())
    })
    .unwrap();
    results
}

fn read_one_line(line: &str) -> ReadResult {
    let mut results = read_all_lines(line.as_bytes());
    assert_eq!(results.len(), 1, "{line}");
    results.pop().unwrap()
}

fn pages(results: &[ReadResult]) -> usize {
    results.iter().filter(|one| matches!(one, ReadResult::Page(_))).count()
}

fn reasons(results: &[ReadResult]) -> Vec<(u64, Reason)> {
    results
        .iter()
        .filter_map(|result| match result {
            ReadResult::Refused(refused) => Some((refused.offset, refused.reason)),
            ReadResult::Page(_) => None,
        })
        .collect()
}

fn good_line(number: usize) -> String {
    format!("{{\"url\":\"http://h.example/{number}\",\"text\":\"page {number}\"}}")
}

/// Bad-input ids 120-129: one bad line between good ones loses at most itself.
#[test]
fn invalid_line_loses_at_most_itself() {
    let deep = format!("{{\"url\":\"http://x/\",\"text\":\"t\",\"z\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let cases: [(&str, &[u8], Option<Reason>); 19] = [
        ("120 bad UTF-8", b"{\"url\":\"http://x/\",\"text\":\"\xff\xfe\"}", Some(Reason::NotUtf8)),
        ("121 half a line", b"{\"url\":\"http://h.example/5\",\"text", Some(Reason::BadJson)),
        ("122 blank", b"", None),
        ("122 blanks", b" \t\r", None),
        ("123 array", b"[1,2]", Some(Reason::BadJson)),
        ("123 string", b"\"secret\"", Some(Reason::BadJson)),
        ("124 no text", b"{\"url\":\"http://x/\"}", Some(Reason::BadField)),
        ("124 null text", b"{\"url\":\"http://x/\",\"text\":null}", Some(Reason::BadField)),
        ("124 no url", b"{\"text\":\"t\"}", Some(Reason::BadField)),
        ("125 text is a number", b"{\"url\":\"http://x/\",\"text\":7}", Some(Reason::BadField)),
        ("125 url is a list", b"{\"url\":[\"http://x/\"],\"text\":\"t\"}", Some(Reason::BadField)),
        ("127 a hundred thousand deep", deep.as_bytes(), Some(Reason::BadJson)),
        ("128 lone surrogate", b"{\"url\":\"http://x/\",\"text\":\"\\ud800\"}", Some(Reason::BadJson)),
        ("two objects", b"{\"url\":\"http://x/\",\"text\":\"t\"}{}", Some(Reason::BadJson)),
        ("a bare word", b"NaN", Some(Reason::BadJson)),
        ("a raw control character", b"{\"url\":\"http://x/\",\"text\":\"\x01\"}", Some(Reason::BadJson)),
        ("a NUL", b"\0", Some(Reason::BadJson)),
        ("a number out of range", b"{\"url\":\"http://x/\",\"text\":\"t\",\"n\":1e999}", Some(Reason::BadJson)),
        ("a bare mark", b"\xef\xbb\xbf", None),
    ];
    for (case, odd, reason) in cases {
        let leading_lines = format!("{}\n{}\n", good_line(0), good_line(1));
        let file =
            [leading_lines.as_bytes(), odd, b"\n", good_line(2).as_bytes(), b"\n", good_line(3).as_bytes(), b"\n"]
                .concat();
        let results = read_all_lines(&file);
        assert_eq!(pages(&results), 4, "{case}");
        let expected: Vec<_> = reason.map(|reason| (leading_lines.len() as u64, reason)).into_iter().collect();
        assert_eq!(reasons(&results), expected, "{case}");
        for result in &results {
            if let ReadResult::Refused(refused) = result {
                assert!(!refused.detail.contains("secret"), "{case}: {}", refused.detail);
            }
        }
    }
}

/// Bad-input ids 126, 129-131: unusual, but legal.
#[test]
fn unusual_valid_files_yield_all_their_pages() {
    let ReadResult::Page(page) = read_one_line("{\"url\":\"a\",\"url\":\"http://h.example/x\",\"text\":\"t\"}") else {
        panic!()
    };
    assert_eq!(page.url, "http://h.example/x");
    let three: Vec<String> = (0..3).map(good_line).collect();
    assert_eq!(pages(&read_all_lines(format!("\u{feff}{}", three.join("\n")).as_bytes())), 3, "129, 131");
    assert_eq!(pages(&read_all_lines(format!("{}\r\n", three.join("\r\n")).as_bytes())), 3, "130");
    assert_eq!(pages(&read_all_lines(three.join("\n\n\n").as_bytes())), 3);
    assert_eq!(read_all_lines(b""), []);
}

/// Bad-input id 132. The caller decides about a file in which all lines are bad.
#[test]
fn every_bad_line_is_counted() {
    assert_eq!(reasons(&read_all_lines(&b"no json here\n".repeat(50))).len(), 50);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Bad-input id 134.
#[test]
fn truncated_file_yields_the_lines_before_the_cut() {
    let text: String = (0..2000).map(|i| good_line(i) + "\n").collect();
    for (compressed, compression) in
        [(gzip(text.as_bytes()), Compression::Gzip), (zstd::encode_all(text.as_bytes(), 3).unwrap(), Compression::Zstd)]
    {
        assert_eq!(read_compressed(&compressed, compression), read_all_lines(text.as_bytes()));
        let results = read_compressed(&compressed[..compressed.len() - 20], compression);
        assert_eq!(reasons(&results).iter().map(|one| one.1).collect::<Vec<_>>(), [Reason::Truncated]);
        assert!(compression == Compression::Zstd || pages(&results) > 1900, "{}", pages(&results));
        assert!(read_all_lines(text.as_bytes()).starts_with(&results[..results.len() - 1]));
    }
    let members = [gzip(text.as_bytes()), gzip(text.as_bytes())].concat();
    assert_eq!(pages(&read_compressed(&members, Compression::Gzip)), 4000);
    let mut corrupt = gzip(text.as_bytes());
    let middle = corrupt.len() / 2;
    corrupt[middle] ^= 0x10;
    let results = read_compressed(&corrupt, Compression::Gzip);
    assert!(matches!(reasons(&results).last(), Some((_, Reason::BadCompression | Reason::BadJson))));
}

#[test]
fn decompression_bomb_is_rejected_in_bounded_memory() {
    let zeros = vec![b' '; 64 << 20];
    let bomb = zstd::encode_all(&zeros[..], 19).unwrap();
    assert_eq!(reasons(&read_compressed(&bomb, Compression::Zstd)), [(0, Reason::DecodedTooLarge)]);
}

#[test]
fn line_over_the_limit_is_rejected_and_the_next_one_read() {
    let limits = RecordLimits { record_bytes: 100, ..RecordLimits::default() };
    let long = format!("{{\"url\":\"http://x/\",\"text\":\"{}\"}}", "x".repeat(3 << 20));
    let file = format!("{}\n{long}\n{}", good_line(0), good_line(1));
    let expected = [(good_line(0).len() as u64 + 1, Reason::RecordTooLarge)];
    for cuts in
        [vec![0, file.len() as u64], (0..=file.len() as u64).step_by(1 << 19).chain([file.len() as u64]).collect()]
    {
        let results = ranges(file.as_bytes(), &cuts, &limits);
        assert_eq!((pages(&results), reasons(&results)), (2, expected.to_vec()));
    }
}

#[test]
fn fields_are_taken_in_the_order_of_their_names() {
    for (line, url, form, body, time, reason) in [
        (r#"{"uri":"b","url":"a","text":"t","html":"<p>"}"#, "a", PageForm::Html, "<p>", 0, None),
        (r#"{"url":"a","uri":"b","html":null,"content":"c"}"#, "a", PageForm::Text, "c", 0, None),
        (r#"{"url":null,"uri":"b","text":"t\n\"ü\""}"#, "b", PageForm::Text, "t\n\"ü\"", 0, None),
        (r#"{"url":"a","text":"","timestamp":"2019-04-20T10:00:00Z"}"#, "a", PageForm::Text, "", 1_555_754_400, None),
        (r#"{"url":"a","text":"t","date":1555754400000}"#, "a", PageForm::Text, "t", 1_555_754_400, None),
        (r#"{"url":"a","text":"t","date":1555754400.5}"#, "a", PageForm::Text, "t", 1_555_754_400, None),
        (r#"{"url":"a","text":"t","date":"soon"}"#, "a", PageForm::Text, "t", 0, Some(Reason::BadDate)),
        (r#"{"url":"a","text":"t","date":[]}"#, "a", PageForm::Text, "t", 0, Some(Reason::BadDate)),
    ] {
        let ReadResult::Page(page) = read_one_line(line) else { panic!("{line}") };
        let actual =
            (page.url.as_str(), page.form, std::str::from_utf8(&page.body).unwrap(), page.fetch_time, page.repaired);
        assert_eq!(actual, (url, form, body, time, reason), "{line}");
    }
}

#[test]
fn non_finite_numbers_are_null_and_text_retains_their_names() {
    for (line, text) in [
        (r#"{"url":"a","score":NaN,"text":"NaN"}"#, "NaN"),
        (r#"{"a":[Infinity,-Infinity, NaN ],"url":"a","text":"-Infinity \" NaN"}"#, r#"-Infinity " NaN"#),
        (r#"{"url":"a","text":"\\","b":{"c":NaN}}"#, r"\"),
        (r#"{"url":"a","date":NaN,"text":"t"}"#, "t"),
    ] {
        let ReadResult::Page(page) = read_one_line(line) else { panic!("{line}") };
        assert_eq!((std::str::from_utf8(&page.body).unwrap(), page.repaired), (text, Some(Reason::BadJson)), "{line}");
    }
    for line in [r#"{"url":"a","text":NaNs}"#, r#"{"url":"a","text":"t" NaN}"#, r#"{"url":"a","text":"NaN}"#, "NaN"] {
        assert_eq!(reasons(&read_all_lines(line.as_bytes())), [(0, Reason::BadJson)], "{line}");
    }
    // The value of a text field is replaced by null, so the field is missing.
    assert_eq!(reasons(&read_all_lines(br#"{"url":NaN,"text":"t"}"#)), [(0, Reason::BadField)]);
}

#[test]
fn a_name_with_a_dot_leads_into_an_object() {
    let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    let fields = FieldNames {
        url: names(&["url", "meta.url"]),
        text: names(&["doc.body.text"]),
        time: names(&["meta.at"]),
        ..FieldNames::default()
    };
    let page = |line: &str| {
        let file = Bytes(line.as_bytes().to_vec());
        let mut page_read = None;
        read_range(&file, 0..line.len() as u64, &RecordLimits::default(), &fields, &mut |result| {
            page_read = Some(result);
            Ok(())
        })
        .unwrap();
        page_read.unwrap()
    };
    let nested_line = r#"{"meta":{"url":"http://a/","at":1555754400},"doc":{"title":"no","body":{"text":"words"}}}"#;
    let ReadResult::Page(page_read) = page(nested_line) else { panic!() };
    assert_eq!(
        (page_read.url.as_str(), &page_read.body[..], page_read.fetch_time),
        ("http://a/", &b"words"[..], 1_555_754_400)
    );
    let ReadResult::Page(page_read) = page(r#"{"url":"http://b/","meta":{"url":"no"},"doc.body.text":"flat"}"#) else {
        panic!()
    };
    assert_eq!((page_read.url.as_str(), &page_read.body[..]), ("http://b/", &b"flat"[..]));
    for line in [r#"{"url":"http://c/","doc":{"body":["words"]}}"#, r#"{"url":"http://c/","doc":{"body":{"text":7}}}"#]
    {
        assert!(matches!(page(line), ReadResult::Refused(RefusedRecord { reason: Reason::BadField, .. })), "{line}");
    }
}

#[test]
fn storage_error_ends_the_run_and_is_not_a_bad_line() {
    struct Broken;
    impl RandomAccess for Broken {
        fn len(&self) -> u64 {
            100
        }
        fn read_at(&self, _: u64, _: usize) -> Result<Vec<u8>> {
            Err(Error::storage("s3://b/x", "503"))
        }
    }
    let mut fail = |one| panic!("{one:?}");
    let (limits, fields) = (RecordLimits::default(), FieldNames::default());
    assert_eq!(read_range(&Broken, 0..100, &limits, &fields, &mut fail).unwrap_err().exit_code(), 8);
    for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
        assert_eq!(read_whole(&Broken, compression, &limits, &fields, &mut fail).unwrap_err().exit_code(), 8);
    }
}

proptest! {
    #[test]
    fn ranges_cut_anywhere_equal_the_whole(
        lines in proptest::collection::vec((0usize..200, 0u8..6), 0..30),
        cuts in proptest::collection::vec(0u64..6000, 0..8),
        last_newline: bool,
    ) {
        let lines: Vec<String> = lines
            .into_iter()
            .map(|(length, odd)| match odd {
                0 => String::new(),
                1 => "x".repeat(length),
                2 => good_line(length) + "\r",
                _ => format!("{{\"url\":\"http://h/{length}\",\"text\":\"{}\"}}", "w ".repeat(length)),
            })
            .collect();
        let mut file = lines.join("\n");
        if last_newline {
            file.push('\n');
        }
        let length = file.len() as u64;
        let mut cuts: Vec<u64> = cuts.into_iter().map(|cut| cut.min(length)).chain([0, length]).collect();
        cuts.sort_unstable();
        let expected = lines.iter().filter(|line| !line.trim().is_empty()).count();
        let found = read_all_lines(file.as_bytes());
        prop_assert_eq!(found.len(), expected);
        prop_assert_eq!(ranges(file.as_bytes(), &cuts, &RecordLimits::default()), found);
    }
}
