//! Repair of a PDF whose cross-reference table is missing or wrong, by a search for its objects.
//!
//! The objects that are found ([`super::objects`]) are written to another file with correct stream
//! lengths and a correct table, and that file is read normally. If several objects have the same
//! number, the last one in the file counts, as in a file that was updated by appending to it. An
//! object that such an update has deleted may therefore reappear.

use std::collections::BTreeMap;

use memchr::memmem;
use pdf_extract::{Document as Pdf, Object, ObjectId, ObjectStream, dictionary};

use super::objects::{PdfObject, find};

/// Maximum length of a trailer in bytes.
const TRAILER_BYTES: usize = 1 << 16;

/// Number of trailers that are inspected, from the last one backward.
const TRAILERS: usize = 64;

/// Offset in the file by object number. The offset of an object in an object stream is that of the
/// stream.
type Places = BTreeMap<u32, usize>;

/// Loads the document that consists of the objects in these bytes; returns `None` if there is none.
///
/// # Cost
/// Copies the file, and parses the copy.
pub(crate) fn document(bytes: &[u8]) -> Option<Pdf> {
    let found_objects = find(bytes);
    let objects: BTreeMap<u32, &PdfObject> = found_objects.iter().map(|object| (object.number, object)).collect();
    if objects.is_empty() {
        return None;
    }
    let with_trailer = trailer(bytes, &found_objects).and_then(|trailer| load(bytes, &objects, trailer));
    let mut pdf = with_trailer.or_else(|| load(bytes, &objects, b"<<>>"))?;
    let mut places = objects.into_iter().map(|(number, object)| (number, object.offset)).collect();
    unpack(&mut pdf, &mut places);
    lead_to_pages(&mut pdf, &places);
    Some(pdf)
}

/// Loads a file of these objects whose trailer begins like `trailer`.
fn load(bytes: &[u8], objects: &BTreeMap<u32, &PdfObject>, trailer: &[u8]) -> Option<Pdf> {
    let mut file = b"%PDF-1.7\n".to_vec();
    let mut table = "xref\n0 1\n0000000000 65535 f \n".to_owned();
    for (number, PdfObject { generation, body, data, .. }) in objects {
        table.push_str(&format!("{number} 1\n{:010} {generation:05} n \n", file.len()));
        file.extend_from_slice(format!("{number} {generation} obj\n").as_bytes());
        let body = &bytes[body.clone()];
        match (data, body.trim_ascii_end().strip_suffix(b">>")) {
            (Some(data), Some(dictionary)) => {
                // The correct length is appended, because the second of two equal keys counts.
                file.extend_from_slice(dictionary);
                file.extend_from_slice(format!(" /Length {}>>\nstream\n", data.len()).as_bytes());
                file.extend_from_slice(&bytes[data.clone()]);
                file.extend_from_slice(b"\nendstream");
            }
            _ => file.extend_from_slice(body),
        }
        file.extend_from_slice(b"\nendobj\n");
    }
    let length = file.len();
    let size = objects.last_key_value().map_or(0, |(number, _)| number + 1);
    let mut entries = trailer.strip_prefix(b"<<")?.to_vec();
    // Earlier tables are as wrong as that of this file, so the key `/Prev` is made invalid.
    let previous: Vec<usize> = memmem::find_iter(&entries, b"/Prev").collect();
    previous.into_iter().for_each(|at| entries[at + 1] = b'X');
    file.extend_from_slice(format!("{table}trailer\n<< /Size {size} ").as_bytes());
    file.extend_from_slice(&entries);
    file.extend_from_slice(format!("\nstartxref\n{length}\n%%EOF\n").as_bytes());
    Pdf::load_mem(&file).ok()
}

/// Returns the bytes that begin with the last trailer, or with the dictionary of the last
/// cross-reference stream.
fn trailer<'b>(bytes: &'b [u8], objects: &[PdfObject]) -> Option<&'b [u8]> {
    const WORD: &[u8] = b"trailer";
    let has_root = |bytes: &[u8]| memmem::find(bytes, b"/Root").is_some();
    let is_data = |position: usize| {
        let n_before = objects.partition_point(|object| object.offset <= position);
        n_before > 0 && objects[n_before - 1].data.as_ref().is_some_and(|data| data.contains(&position))
    };
    let trailer_by_word = memmem::rfind_iter(bytes, WORD).take(TRAILERS).find_map(|position| {
        let rest = bytes[position + WORD.len()..].trim_ascii_start();
        let rest = &rest[..rest.len().min(TRAILER_BYTES)];
        let rest = &rest[..memmem::find(rest, b"startxref").unwrap_or(rest.len())];
        (!is_data(position) && rest.starts_with(b"<<") && has_root(rest)).then_some((position, rest))
    });
    let streams = objects.iter().rev().filter(|object| object.data.is_some());
    let trailer_by_stream =
        streams.map(|object| (object.offset, bytes[object.body.clone()].trim_ascii_start())).find(|(_, dictionary)| {
            dictionary.starts_with(b"<<") && memmem::find(dictionary, b"/XRef").is_some() && has_root(dictionary)
        });
    trailer_by_word.into_iter().chain(trailer_by_stream).max_by_key(|(at, _)| *at).map(|(_, dictionary)| dictionary)
}

/// Adds the objects in object streams.
fn unpack(pdf: &mut Pdf, places: &mut Places) {
    let is_packed = |object: &Object| object.as_stream().is_ok_and(|stream| stream.dict.has_type(b"ObjStm"));
    let streams = pdf.objects.iter().filter(|(_, object)| is_packed(object)).map(|(&id, _)| id);
    let mut streams: Vec<(usize, ObjectId)> =
        streams.filter_map(|id| places.get(&id.0).map(|&place| (place, id))).collect();
    streams.sort_unstable();
    for (place, id) in streams {
        let Ok(mut stream) = pdf.get_object(id).and_then(Object::as_stream).cloned() else { continue };
        let Ok(unpacked) = ObjectStream::new(&mut stream) else { continue };
        for (id, object) in unpacked.objects {
            if places.get(&id.0).is_none_or(|&known| known <= place) {
                places.insert(id.0, place);
                pdf.objects.insert(id, object);
            }
        }
    }
    pdf.max_id = pdf.objects.keys().last().map_or(0, |id| id.0);
}

/// Sets the root of a document whose trailer does not lead to pages: to the last catalog, or
/// otherwise to a new one of all pages that exist.
fn lead_to_pages(pdf: &mut Pdf, places: &Places) {
    let has_type = |pdf: &Pdf, name: &[u8]| {
        let is_one = |object: &Object| object.as_dict().is_ok_and(|dictionary| dictionary.has_type(name));
        let ids = pdf.objects.iter().filter(|(_, object)| is_one(object)).map(|(&id, _)| id);
        let mut ids: Vec<ObjectId> = ids.collect();
        ids.sort_by_key(|id| (places.get(&id.0), *id));
        ids
    };
    if !pdf.get_pages().is_empty() {
        return;
    }
    if let Some(&catalog) = has_type(pdf, b"Catalog").last() {
        pdf.trailer.set("Root", catalog);
    }
    let pages = has_type(pdf, b"Page");
    if pdf.get_pages().is_empty() && !pages.is_empty() {
        let count = pages.len() as i64;
        let kids: Vec<Object> = pages.into_iter().map(Object::Reference).collect();
        let tree = pdf.add_object(dictionary! { "Type" => "Pages", "Kids" => kids, "Count" => count });
        let catalog = pdf.add_object(dictionary! { "Type" => "Catalog", "Pages" => tree });
        pdf.trailer.set("Root", catalog);
    }
}

#[cfg(test)]
mod tests {
    use pdf_extract::{EncryptionState, EncryptionVersion, Permissions, Stream};
    use proptest::prelude::*;

    use super::*;
    use crate::pdf::read;
    use webtwin_job::RecordLimits;
    use webtwin_pages::helper::{DocumentText, HelperAnswer};

    /// Makes a document with these lines on its pages.
    fn pdf_of(pages: &[Vec<String>]) -> Pdf {
        let mut pdf = Pdf::with_version("1.5");
        let tree = pdf.new_object_id();
        let font = dictionary! { "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Helvetica" };
        let font = pdf.add_object(font);
        let mut kids: Vec<Object> = Vec::new();
        for lines in pages {
            let lines: String = lines.iter().map(|line| format!("({line}) Tj\n0 -14 Td\n")).collect();
            let content = format!("BT\n/F1 12 Tf\n72 720 Td\n{lines}ET\n").into_bytes();
            let content = pdf.add_object(Stream::new(Default::default(), content));
            let fonts = dictionary! { "Font" => dictionary! { "F1" => font } };
            let page = dictionary! { "Type" => "Page", "Parent" => tree, "Contents" => content, "Resources" => fonts,
            "MediaBox" => vec![0.into(), 0.into(), 612.into(), 792.into()] };
            kids.push(pdf.add_object(page).into());
        }
        let count = kids.len() as i64;
        pdf.objects.insert(tree, dictionary! { "Type" => "Pages", "Kids" => kids, "Count" => count }.into());
        let catalog = pdf.add_object(dictionary! { "Type" => "Catalog", "Pages" => tree });
        let info = pdf.add_object(dictionary! { "Title" => Object::string_literal("A made document") });
        pdf.trailer.set("Root", catalog);
        pdf.trailer.set("Info", info);
        pdf
    }

    fn save(mut pdf: Pdf, is_modern: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        match is_modern {
            true => pdf.save_modern(&mut bytes).unwrap(),
            false => pdf.save_to(&mut bytes).unwrap(),
        }
        bytes
    }

    fn document_of(bytes: &[u8]) -> DocumentText {
        match read(bytes, &RecordLimits::default()) {
            HelperAnswer::Document(document) => document,
            HelperAnswer::Refused(reason, why) => panic!("{reason:?}: {why}"),
        }
    }

    fn last(bytes: &[u8], word: &str) -> usize {
        memmem::rfind(bytes, word.as_bytes()).unwrap()
    }

    /// Damage that leaves the objects intact.
    #[derive(Debug, Clone)]
    enum Damage {
        None,
        Start(u32),
        NoStart,
        NoTable,
        Before(Vec<u8>),
        Behind(usize, u8),
        Shift(usize),
        LineEnds,
        Lengths,
    }

    fn damage() -> impl Strategy<Value = Damage> {
        prop_oneof![
            Just(Damage::None),
            any::<u32>().prop_map(Damage::Start),
            Just(Damage::NoStart),
            Just(Damage::NoTable),
            prop::collection::vec(any::<u8>(), 0..3000).prop_map(Damage::Before),
            (0usize..5000, prop::sample::select(b"\0 %x\n".to_vec())).prop_map(|(n, byte)| Damage::Behind(n, byte)),
            (1usize..200).prop_map(Damage::Shift),
            Just(Damage::LineEnds),
            Just(Damage::Lengths),
        ]
    }

    /// True if the length at `position` leads to the end of a stream.
    fn leads_to_end(bytes: &[u8], position: usize) -> bool {
        let digits = bytes[position..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let length: usize = std::str::from_utf8(&bytes[position..position + digits]).unwrap().parse().unwrap();
        let keyword = position + memmem::find(&bytes[position..], b"stream").unwrap();
        let data = keyword + memmem::find(&bytes[keyword..], b"\n").unwrap() + 1;
        bytes.get(data + length..).is_some_and(|rest| rest.trim_ascii_start().starts_with(b"endstream"))
    }

    fn with_damage(bytes: &[u8], damage: &Damage) -> Vec<u8> {
        let start = last(bytes, "startxref");
        match damage {
            Damage::None => bytes.to_vec(),
            Damage::Start(start_offset) => {
                [&bytes[..start], format!("startxref\n{start_offset}\n%%EOF\n").as_bytes()].concat()
            }
            Damage::NoStart => bytes[..start].to_vec(),
            Damage::NoTable => bytes[..last(bytes, "endobj") + 6].to_vec(),
            Damage::Before(junk) => [&junk[..], bytes].concat(),
            Damage::Behind(count, byte) => [bytes, &vec![*byte; *count]].concat(),
            Damage::Shift(count) => {
                let line = bytes.iter().position(|&byte| byte == b'\n').unwrap() + 1;
                [&bytes[..line], b"%", &vec![b'x'; *count], b"\n", &bytes[line..]].concat()
            }
            Damage::LineEnds => {
                let mut with_returns = Vec::new();
                for &byte in bytes {
                    with_returns.extend_from_slice(if byte == b'\n' { b"\r\n" } else { std::slice::from_ref(&byte) });
                }
                with_returns
            }
            Damage::Lengths => {
                let mut corrupt = bytes.to_vec();
                for position in memmem::find_iter(bytes, b"/Length ").map(|at| at + b"/Length ".len()) {
                    let mut digits = b"987".iter().filter(|&&digit| digit != bytes[position]);
                    // A length that leads to the end of another stream cannot be distinguished from
                    // a correct one.
                    while {
                        corrupt[position] = *digits.next().unwrap();
                        leads_to_end(&corrupt, position)
                    } {}
                }
                corrupt
            }
        }
    }

    fn pages() -> impl Strategy<Value = Vec<Vec<String>>> {
        prop::collection::vec(prop::collection::vec("[a-z]{1,9} obj [a-z ]{0,20}end", 1..9), 1..6)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn damaged_file_yields_the_text_of_the_intact_one(
            pages in pages(), is_modern: bool, damages in prop::collection::vec(damage(), 1..3)
        ) {
            let whole = save(pdf_of(&pages), is_modern);
            // Compressed data are lost with their line ends.
            let damages = damages.iter().filter(|damage| !(is_modern && matches!(damage, Damage::LineEnds)));
            let bytes = damages.clone().fold(whole.clone(), |bytes, damage| {
                if memmem::find(&bytes, b"startxref").is_some() { with_damage(&bytes, damage) } else { bytes }
            });
            let (whole, other) = (document_of(&whole), document_of(&bytes));
            prop_assert!(whole.is_whole && pages.iter().flatten().all(|line| whole.text.contains(line.trim())));
            prop_assert_eq!(other.text, whole.text);
        }

        #[test]
        fn any_bytes_yield_a_result(
            pages in pages(), is_modern: bool, at in prop::collection::vec(any::<(usize, u8)>(), 1..40)
        ) {
            let mut bytes = save(pdf_of(&pages), is_modern);
            let count = bytes.len();
            at.into_iter().for_each(|(at, byte)| bytes[at % count] = byte);
            read(&bytes, &RecordLimits::default());
            read(&bytes[..count / 2], &RecordLimits::default());
        }
    }

    fn lines(words: &[&str]) -> Vec<Vec<String>> {
        words.iter().map(|word| vec![word.to_string()]).collect()
    }

    #[test]
    fn last_of_several_objects_applies_also_in_object_streams() {
        let (old, new) = (pdf_of(&lines(&["old one", "two"])), pdf_of(&lines(&["new one", "two"])));
        for (is_old_modern, is_new_modern) in [(false, false), (false, true), (true, false), (true, true)] {
            let (old, new) = (save(old.clone(), is_old_modern), save(new.clone(), is_new_modern));
            let both_objects = [&old[..last(&old, "startxref")], &new[..last(&new, "startxref")]].concat();
            let document = document_of(&both_objects);
            assert!(document.text.contains("new one") && !document.text.contains("old"), "{document:?}");
            assert_eq!((document.title.as_str(), document.is_whole), ("A made document", false));
        }
    }

    #[test]
    fn pages_are_found_without_a_catalog() {
        let bytes = save(pdf_of(&lines(&["first page", "second page"])), false);
        let catalog = last(&bytes, "/Catalog");
        let document = document_of(&bytes[..catalog]);
        assert!(document.text.find("first page") < document.text.find("second page") && !document.is_whole);
        // The list of pages is lost, too.
        let text = String::from_utf8_lossy(&bytes).replace("/Type/Pages", "/Type/Lost");
        let document = document_of(&text.as_bytes()[..last(text.as_bytes(), "/Catalog")]);
        assert!(document.text.find("first page") < document.text.find("second page"));
    }

    #[test]
    fn a_document_that_opens_without_a_password_is_decrypted_when_it_is_repaired() {
        let mut pdf = pdf_of(&lines(&["a secret"]));
        let id = Object::string_literal("0123456789abcdef");
        pdf.trailer.set("ID", vec![id.clone(), id]);
        let permissions = Permissions::all();
        let version = EncryptionVersion::V2 {
            document: &pdf,
            owner_password: "owner",
            user_password: "",
            key_length: 128,
            permissions,
        };
        let state = EncryptionState::try_from(version).unwrap();
        pdf.encrypt(&state).unwrap();
        let bytes = save(pdf, false);
        let document = document_of(&bytes);
        assert!(document.text.contains("a secret"), "{document:?}");
        assert_eq!(document_of(&with_damage(&bytes, &Damage::Start(7))).text, document.text);
        assert_eq!(document_of(&with_damage(&bytes, &Damage::Shift(9))).text, document.text);
    }
}
