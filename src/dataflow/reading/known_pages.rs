//! Pages that were read before in files of other names: of an earlier crawl, or of segments dealt out anew.
//!
//! What a page says depends on its URL and on the bytes, form and charset with which it came, and on nothing else of its record or
//! file. So a page whose record has these in common with one that the state holds is neither parsed, nor cut, nor hashed
//! again. Its record is decoded and its digests are checked as ever: what is wrong with it is seen.
//!
//! # Memory
//! 32 bytes a page of these records, in each process, and the records themselves where they do not lie on a local disk,
//! which are mapped. All of it goes when reading ends.

use xxhash_rust::xxh3::Xxh3;

use crate::reading::item_record::{PageRecord, pages_of};
use webtwin_pages::record::RawPage;
use webtwin_pages::url::CanonicalUrl;
use webtwin_storage::mapped::FileBytes;
use webtwin_storage::records::LeftOver;

/// Pages in records, by what they were read from.
#[derive(Debug)]
pub struct KnownPages {
    files: Vec<FileBytes>,
    /// Ascending by content.
    places: Vec<Place>,
}

/// Where the part of a page is.
#[derive(Debug, Clone, Copy)]
struct Place {
    content: u128,
    offset: u64,
    bytes: u32,
    file: u32,
}

impl KnownPages {
    /// The pages of these records.
    ///
    /// # Cost
    /// The heads of the records are read, and the pages sorted.
    pub fn of(records: Vec<LeftOver>) -> KnownPages {
        let mut places = Vec::new();
        for (number, LeftOver { file, records }) in records.iter().enumerate() {
            for record in records {
                let pages = pages_of(&file.as_ref()[record.clone()]).into_iter();
                places.extend(pages.map(|(content, part)| Place {
                    content,
                    offset: (record.start + part.start) as u64,
                    bytes: part.len() as u32,
                    file: number as u32,
                }));
            }
        }
        // Of pages with the same content any will do: they say the same.
        places.sort_unstable_by_key(|place| place.content);
        places.dedup_by_key(|place| place.content);
        KnownPages { files: records.into_iter().map(|records| records.file).collect(), places }
    }

    /// The page of this URL that was read from this content, if there is one.
    pub fn find(&self, content: u128, url: &str) -> Option<PageRecord> {
        let place = self.places[self.places.binary_search_by_key(&content, |place| place.content).ok()?];
        let part = self.part(&place);
        // The URL is part of the content; this is against a collision.
        PageRecord::decode(part).filter(|page| page.capture.url == url)
    }

    /// The parts of all pages, one of each content.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.places.iter().map(|place| self.part(place))
    }

    fn part(&self, place: &Place) -> &[u8] {
        let start = place.offset as usize;
        &self.files[place.file as usize].as_ref()[start..start + place.bytes as usize]
    }
}

/// Hash of all that what a page says depends on.
pub fn content(page: &RawPage, url: &CanonicalUrl) -> u128 {
    let mut hash = Xxh3::new();
    let mut part = |bytes: &[u8]| {
        hash.update(&(bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    part(url.as_str().as_bytes());
    part(page.form.name().as_bytes());
    match &page.charset {
        Some(charset) => part(charset.as_bytes()),
        None => part(b"\0"),
    }
    part(&page.body);
    if let Some(canonical) = &page.canonical {
        part(canonical.as_bytes());
    }
    for (language, url) in &page.editions {
        part(language.as_bytes());
        part(url.as_bytes());
    }
    hash.digest128()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use webtwin_pages::record::Form;

    #[test]
    fn whatever_a_page_depends_on_is_part_of_its_content_and_nothing_else() {
        let page = RawPage {
            fetch_time: 1,
            mime: "text/html".into(),
            offset: 3,
            length: 4,
            ..RawPage::new("as written", b"<p>page".to_vec(), Form::Html)
        };
        let (a, b) =
            (CanonicalUrl::parse("http://a.example/").unwrap(), CanonicalUrl::parse("http://b.example/").unwrap());
        let of = |page: &RawPage| content(page, &a);
        let elsewhere =
            RawPage { fetch_time: 2, status: 203, offset: 0, length: 9, mime: String::new(), ..page.clone() };
        assert_eq!(of(&elsewhere), of(&page));
        let charset = |charset: &str| RawPage { charset: Some(charset.into()), ..page.clone() };
        let others = [
            page.clone(),
            charset(""),
            charset("utf-8"),
            RawPage { form: Form::Text, ..page.clone() },
            RawPage { form: Form::Pdf, ..page.clone() },
            RawPage { form: Form::PostScript, ..page.clone() },
            RawPage { body: b"<p>Page".to_vec(), ..page.clone() },
            // What moves from one part to the next.
            RawPage { body: [b"utf-8", &page.body[..]].concat(), ..charset("") },
        ];
        let contents: BTreeSet<u128> = others.iter().map(of).chain([content(&page, &b)]).collect();
        assert_eq!(contents.len(), others.len() + 1);
    }
}
