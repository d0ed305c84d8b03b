use crate::bad_warc::build::{page, zlib};
use crate::support::printed::{response, run, text};
use crate::support::program::{assert_same_on_any_workers, rows, succeed};

/// Returns a PDF with objects numbered from 1 on. Each object is the text between `obj` and
/// `endobj`; the first one is the catalog.
fn pdf(objects: &[Vec<u8>], trailer: &str) -> Vec<u8> {
    let mut bytes = b"%PDF-1.4\n".to_vec();
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (object, number) in objects.iter().zip(1..) {
        table.push_str(&format!("{:010} 00000 n \n", bytes.len()));
        bytes.extend([format!("{number} 0 obj\n").as_bytes(), object, b"\nendobj\n"].concat());
    }
    let start = bytes.len();
    let size = objects.len() + 1;
    bytes.extend(
        format!("{table}trailer\n<< /Size {size} /Root 1 0 R {trailer} >>\nstartxref\n{start}\n%%EOF\n").as_bytes(),
    );
    bytes
}

fn stream(dictionary: &str, content: &[u8]) -> Vec<u8> {
    let head = format!("<< {dictionary} /Length {} >>\nstream\n", content.len());
    [head.as_bytes(), content, b"\nendstream"].concat()
}

/// Returns a document whose pages have the given contents, each with its filter. The objects `more`
/// are numbered from 5 on.
fn document(pages: &[(&str, Vec<u8>)], resources: &str, page: &str, more: &[Vec<u8>], trailer: &str) -> Vec<u8> {
    let first = 5 + more.len();
    let kids: String = (0..pages.len()).map(|number| format!("{} 0 R ", first + 2 * number)).collect();
    let mut objects: Vec<Vec<u8>> = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{kids}] /Count {} >>", pages.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
        "<< /Title (A made document) >>".to_owned(),
    ]
    .map(String::into_bytes)
    .to_vec();
    objects.extend_from_slice(more);
    for (filter, content) in pages {
        let number = objects.len() + 1;
        objects.push(
            format!(
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {} 0 R {page} \
                 /Resources << /Font << /F1 3 0 R >> {resources} >> >>",
                number + 1
            )
            .into_bytes(),
        );
        objects.push(stream(filter, content));
    }
    pdf(&objects, trailer)
}

/// Returns the content stream that draws the lines.
fn lines(lines: &[String]) -> Vec<u8> {
    let drawn: String = lines.iter().map(|line| format!("({line}) Tj\n0 -14 Td\n")).collect();
    format!("BT\n/F1 12 Tf\n72 720 Td\n{drawn}ET\n").into_bytes()
}

fn plain(seed: usize, other: &[usize]) -> Vec<u8> {
    document(&[("", lines(&text(seed, 40, other)))], "", "", &[], "/Info 4 0 R")
}

#[test]
fn a_pdf_is_a_page_with_text_title_and_links() {
    let folder = tempfile::tempdir().unwrap();
    let pages = [("", lines(&text(1, 20, &[]))), ("/Filter /FlateDecode", zlib(&lines(&text(2, 20, &[]))))];
    let link = b"<< /Type /Annot /Subtype /Link /Rect [0 0 9 9] /A << /S /URI /URI (../linked#top) >> >>".to_vec();
    let linked = document(&pages, "", "/Annots [5 0 R]", &[link], "/Info 4 0 R");
    let html = page("linked");
    let (output, reasons, message) = run(
        folder.path(),
        &[
            ("d/a.pdf", "application/pdf", linked.clone()),
            ("linked", "text/html", html),
            ("no-type", "application/octet-stream", plain(5, &[])),
        ],
        &[],
    );
    assert!(reasons.is_empty(), "{message}");
    let pages = rows(&output, "pages");
    let row_of = |name: &str| pages.iter().find(|row| row["url"] == format!("http://h.example/{name}")).unwrap();
    let full_text = format!("A made document\n\n{}\n\n{}", text(1, 20, &[]).join("\n"), text(2, 20, &[]).join("\n"));
    let full_text = full_text.replace(" \n", "\n").trim_end().to_owned();
    assert_eq!(row_of("d/a.pdf")["text_bytes"], full_text.len(), "{}", row_of("d/a.pdf"));
    assert_eq!(row_of("d/a.pdf")["body_bytes"], linked.len());
    assert_eq!(row_of("d/a.pdf")["mime"], "application/pdf");
    let links = rows(&output, "links");
    assert!(
        links.iter().any(|row| row["src"] == row_of("d/a.pdf")["doc_id"] && row["dst"] == row_of("linked")["doc_id"])
    );
    assert!(row_of("no-type")["text_bytes"].as_u64() > Some(1000));
}

#[test]
fn copies_and_versions_of_a_pdf_are_found_and_the_bytes_are_the_same_on_any_workers() {
    let folder = tempfile::tempdir().unwrap();
    let mut records = Vec::new();
    for number in 0..30 {
        let name = format!("{number}.pdf");
        records.push(response("a", &name, "application/pdf", &plain(number, &[])));
        records.push(response("b", &name, "application/pdf", &plain(number, &[])));
        records.push(response("c", &name, "application/pdf", &plain(number, &[3, 17])));
        records.push(response("d", &format!("{number}.html"), "text/html", &page(&name)));
        records.push(response("d", &name, "application/pdf", b"%PDF-1.4 and no more"));
    }
    let input = folder.path().join("in.warc.gz");
    std::fs::write(&input, records.concat()).unwrap();
    let run = ["run", "--input", input.to_str().unwrap(), "--set", "effort.shard_bytes=65536"];
    let (output, message) = assert_same_on_any_workers(folder.path(), "out", &run);
    assert_eq!(rows(&output, "pages").len(), 120, "{message}");
    assert_eq!(rows(&output, "rejected").len(), 30, "{message}");
    let pairs = rows(&output, "pairs");
    let pdfs = |row: &&serde_json::Value| row["measure"] == "exact" || row["value"].as_u64() > Some(30);
    let count_by = |measure: &str| pairs.iter().filter(pdfs).filter(|row| row["measure"] == measure).count();
    assert_eq!((count_by("exact"), count_by("overlap")), (30, 30));
    // `explain` reads the texts from the documents again.
    let message = succeed(&["explain", &output, "http://a.example/7.pdf", "http://c.example/7.pdf"]);
    assert!(message.contains("word"), "{message}");
}

#[test]
fn unreadable_documents_are_rejected_with_the_reason_and_do_not_affect_others() {
    let folder = tempfile::tempdir().unwrap();
    let whole = plain(9, &[]);
    let lock = "<< /Filter /Standard /V 1 /R 2 /P -4 /O (01234567890123456789012345678901) \
                /U (01234567890123456789012345678901) >>";
    let locked = |by: &str| {
        let trailer = format!("/Encrypt {by} /ID [(0123456789012345) (0123456789012345)]");
        document(&[("", lines(&text(3, 9, &[])))], "", "", &[lock.as_bytes().to_vec()], &trailer)
    };
    // One form draws itself, and a series of forms each draw the next one ten times.
    let form = |draws: &str| {
        let resources = "/Resources << /XObject << /X 5 0 R /Y0 6 0 R /Y1 7 0 R /Y2 8 0 R /Y3 9 0 R /Y4 10 0 R /Y5 11 0 R \
                         /Y6 12 0 R /Y7 13 0 R /Y8 14 0 R /Y9 15 0 R >> >>";
        stream(&format!("/Type /XObject /Subtype /Form /BBox [0 0 9 9] {resources}"), draws.as_bytes())
    };
    let mut forms = vec![form("/X Do")];
    forms.extend((1..10).map(|next| form(&format!("/Y{next} Do\n").repeat(10))));
    forms.push(form("q Q"));
    let drawing =
        |draws: &str| document(&[("", draws.into())], "/XObject << /X 5 0 R /Y0 6 0 R >>", "", &forms, "/Info 4 0 R");
    let bomb = zlib(&vec![b' '; 320 << 20]);
    let kids = ["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2 >>"];
    let circle = pdf(&kids.map(|object| object.as_bytes().to_vec()), "");
    let documents = [
        ("0.pdf", "application/pdf", plain(1, &[])),
        ("1.pdf", "application/pdf", b"<html>no such page</html>".to_vec()),
        ("2.pdf", "application/pdf", whole[..200].to_vec()),
        ("3.pdf", "application/pdf", circle),
        ("4.pdf", "application/pdf", locked(lock)),
        ("5.pdf", "application/pdf", locked("5 0 R")),
        ("6.pdf", "application/pdf", document(&[("", b"0 0 m 9 9 l S".to_vec())], "", "", &[], "")),
        ("7.pdf", "application/pdf", drawing("/Y0 Do")),
        ("8.pdf", "application/pdf", document(&[("/Filter /FlateDecode", bomb)], "", "", &[], "")),
        ("9.pdf", "application/pdf", drawing("/X Do")),
        ("10.pdf", "application/pdf", plain(2, &[])),
    ];
    // On an idle machine some of these documents exceed the byte limit in less than a second.
    let bounds = ["input.limits.printed_seconds=4", "input.limits.printed_bytes=300000000"];
    let (output, reasons, message) = run(folder.path(), &documents, &bounds);
    let expected =
        ["damaged", "damaged", "damaged", "encrypted", "encrypted", "no_text", "too_long", "too_large", "too_large"];
    assert_eq!(reasons, expected.map(|reason| format!("pdf_{reason}")), "{message}");
    assert_eq!(rows(&output, "pages").len(), 2);

    // No reader process is started for documents that the job excludes.
    let folder = tempfile::tempdir().unwrap();
    let (output, reasons, _) = run(folder.path(), &documents, &["input.printed=skip"]);
    assert_eq!((reasons.as_slice(), rows(&output, "pages").len()), (&["not_text"; 11].map(String::from)[..], 0));
}

#[test]
fn pdf_with_an_unreadable_page_is_kept_with_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let page = |seed| lines(&text(seed, 20, &[]));
    // The page refers to a font that does not exist.
    let broken = String::from_utf8(page(2)).unwrap().replace("/F1", "/F9").into_bytes();
    let bytes = document(&[("", page(1)), ("", broken), ("", page(3))], "", "", &[], "/Info 4 0 R");
    let (output, reasons, message) = run(folder.path(), &[("a.pdf", "application/pdf", bytes)], &[]);
    assert!(reasons.is_empty() && message.contains("kept, but repaired: 1 pdf_damaged"), "{message}");
    let bytes = rows(&output, "pages")[0]["text_bytes"].as_u64().unwrap() as usize;
    let page = |seed| text(seed, 20, &[]).join("\n").len();
    assert!((page(1) + page(3) - 40..page(1) + page(3) + 40).contains(&bytes), "{bytes}");
}

#[test]
fn pdf_with_a_wrong_or_missing_table_is_repaired_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let whole = plain(6, &[]);
    let start = whole.windows(7).rposition(|seven| seven == b"xref\n0 ").unwrap();
    let shifted = [b"%PDF-1.4\n% longer by this line\n", &whole[b"%PDF-1.4\n".len()..]].concat();
    let documents = [
        ("0.pdf", "application/pdf", [b"junk\r\n".repeat(400), whole.clone()].concat()),
        ("1.pdf", "application/pdf", whole[..start].to_vec()),
        ("2.pdf", "application/pdf", [whole.clone(), vec![0; 4000]].concat()),
        ("3.pdf", "application/pdf", shifted),
    ];
    let (output, reasons, message) = run(folder.path(), &documents, &[]);
    assert!(reasons.is_empty() && message.contains("kept, but repaired: 3 pdf_damaged"), "{message}");
    let pages = rows(&output, "pages");
    assert!(pages.iter().all(|page| page["text_bytes"].as_u64() >= Some(1500)), "{pages:?}");
    // The title is in the information dictionary, which only the trailer refers to.
    assert_eq!(pages.iter().filter(|page| page["title"] == "A made document").count(), 3);
}
