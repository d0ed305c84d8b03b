//! Pages that were read before in files with other names: of an earlier crawl, or after segments
//! were regrouped.
//!
//! The text and links of a page depend on its URL and on the bytes, form and charset with which it
//! arrived, and on nothing else of its record or file. So if the state has a page with the same
//! values, the new page is not parsed, chunked and hashed again. Its record is still decoded and
//! its digests are checked, so a damaged record is noticed.
//!
//! # Memory
//! Takes 32 bytes in each process for each page of these checkpoints. Checkpoints on a local disk
//! are memory-mapped; others are held in memory. Everything is released when reading ends.

use xxhash_rust::xxh3::Xxh3;

use crate::reading::item_record::{SavedPage, pages_of};
use webtwin_pages::record::RawPage;
use webtwin_pages::url::CanonicalUrl;
use webtwin_storage::mapped::FileBytes;
use webtwin_storage::records::UnusedRecords;

/// Pages in checkpoints, indexed by a hash of what they were read from.
#[derive(Debug)]
pub struct KnownPages {
    files: Vec<FileBytes>,
    /// Ascending by content.
    places: Vec<Place>,
}

/// Place of the part of a page.
#[derive(Debug, Clone, Copy)]
struct Place {
    content: u128,
    offset: u64,
    bytes: u32,
    file: u32,
}

impl KnownPages {
    /// Indexes the pages of the given checkpoints.
    ///
    /// # Cost
    /// Reads the heads of the checkpoints, and sorts the pages.
    pub fn from_checkpoints(records: Vec<UnusedRecords>) -> KnownPages {
        let mut places = Vec::new();
        for (number, UnusedRecords { file, records }) in records.iter().enumerate() {
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
        // Pages with the same content have equal parts, so any of them can be kept.
        places.sort_unstable_by_key(|place| place.content);
        places.dedup_by_key(|place| place.content);
        KnownPages { files: records.into_iter().map(|records| records.file).collect(), places }
    }

    /// Returns the page that was read from the given content and has the given URL, if there is
    /// one.
    pub fn find(&self, content: u128, url: &str) -> Option<SavedPage> {
        let place = self.places[self.places.binary_search_by_key(&content, |place| place.content).ok()?];
        let part = self.part(&place);
        // The URL is part of the content; this check guards against a collision of hashes.
        SavedPage::decode(part).filter(|page| page.capture.url == url)
    }

    /// Returns the parts of all pages, one for each content.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.places.iter().map(|place| self.part(place))
    }

    fn part(&self, place: &Place) -> &[u8] {
        let start = place.offset as usize;
        &self.files[place.file as usize].as_ref()[start..start + place.bytes as usize]
    }
}

/// Returns the hash of everything on which the text and links of a page depend.
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
    use webtwin_pages::record::PageForm;

    #[test]
    fn content_key_covers_exactly_what_a_page_depends_on() {
        let page = RawPage {
            fetch_time: 1,
            mime: "text/html".into(),
            offset: 3,
            length: 4,
            ..RawPage::new("as written", b"<p>page".to_vec(), PageForm::Html)
        };
        let (a, b) =
            (CanonicalUrl::parse("http://a.example/").unwrap(), CanonicalUrl::parse("http://b.example/").unwrap());
        let content_of = |page: &RawPage| content(page, &a);
        let elsewhere =
            RawPage { fetch_time: 2, status: 203, offset: 0, length: 9, mime: String::new(), ..page.clone() };
        assert_eq!(content_of(&elsewhere), content_of(&page));
        let charset = |charset: &str| RawPage { charset: Some(charset.into()), ..page.clone() };
        let variants = [
            page.clone(),
            charset(""),
            charset("utf-8"),
            RawPage { form: PageForm::Text, ..page.clone() },
            RawPage { form: PageForm::Pdf, ..page.clone() },
            RawPage { form: PageForm::PostScript, ..page.clone() },
            RawPage { body: b"<p>Page".to_vec(), ..page.clone() },
            // Bytes that move from one field to the next.
            RawPage { body: [b"utf-8", &page.body[..]].concat(), ..charset("") },
        ];
        let contents: BTreeSet<u128> = variants.iter().map(content_of).chain([content(&page, &b)]).collect();
        assert_eq!(contents.len(), variants.len() + 1);
    }
}
