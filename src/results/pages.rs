//! Pages of a run, read again from its input.
//!
//! A run keeps nothing of a page but its row in the table `pages`. So reading a text needs the input as it was, and
//! each page that is read again is checked against its row: length, length of the text, fingerprint of the text.

use std::collections::{HashMap, HashSet};

use super::Run;
use crate::chunks::{bytes, instead_of_text, whole};
use crate::error::{Error, Result};
use crate::ids::{DocId, FPrint};
use crate::job::Input;
use crate::pages::again::Again;
use crate::pages::html::Extractor;
use crate::pages::record::{Form, Found, RawPage};
use crate::pages::url::CanonicalUrl;
use crate::storage::table::Table;

/// The table `pages` of a run, in memory.
#[derive(Debug)]
pub struct Pages(pub Table);

/// Receives a page: index of its row, the page as fetched, its visible text.
pub type Take<'t> = dyn FnMut(usize, &RawPage, &str) -> Result<()> + 't;

/// The columns that say where pages are in the input.
struct Places<'p> {
    urls: &'p [String],
    sources: &'p [String],
    offsets: &'p [u64],
    body_bytes: &'p [u64],
    text_bytes: &'p [u64],
    exact: &'p [FPrint],
}

impl Pages {
    /// Reads the table of a run.
    ///
    /// # Errors
    /// As [`Run::table`].
    pub fn of(run: &Run) -> Result<Pages> {
        run.table("pages").map(Pages)
    }

    /// Doc ids, one per row, ascending.
    ///
    /// # Errors
    /// [`Error::Input`] if the table has no such column.
    pub fn doc_ids(&self) -> Result<&[DocId]> {
        self.0.u64("doc_id")
    }

    /// Canonical URLs, one per row.
    ///
    /// # Errors
    /// [`Error::Input`] if the table has no such column.
    pub fn urls(&self) -> Result<&[String]> {
        self.0.text("url")
    }

    /// Index of the row of a page, if it is in the table.
    ///
    /// # Errors
    /// As [`Pages::doc_ids`].
    pub fn row(&self, page: DocId) -> Result<Option<usize>> {
        Ok(self.doc_ids()?.binary_search(&page).ok())
    }

    /// Reads the pages of some rows, each once, and passes them to `take` in the order in which they are in the input.
    ///
    /// # Errors
    /// [`Error::Input`] if an input has gone, or has something else in the place of a page; those of `take`.
    ///
    /// # Cost
    /// One page in memory; see [`Again::read`] for what else is read.
    pub fn read(&self, rows: &[usize], input: &Input, take: &mut Take<'_>) -> Result<()> {
        let places = Places {
            urls: self.urls()?,
            sources: self.0.text("source")?,
            offsets: self.0.u64("offset")?,
            body_bytes: self.0.u64("body_bytes")?,
            text_bytes: self.0.u64("text_bytes")?,
            exact: self.0.u64("exact")?,
        };
        let mut rows = rows.to_vec();
        rows.sort_unstable_by_key(|&row| (&places.sources[row], places.offsets[row], row));
        rows.dedup();
        let mut extractor = Extractor::new(&input.limits);
        for of_input in rows.chunk_by(|&x, &y| places.sources[x] == places.sources[y]) {
            places.read_input(of_input, input, &mut extractor, take)?;
        }
        Ok(())
    }
}

impl Places<'_> {
    /// Reads pages of one input, ascending by offset.
    fn read_input(&self, rows: &[usize], input: &Input, extractor: &mut Extractor, take: &mut Take<'_>) -> Result<()> {
        let name = &self.sources[rows[0]];
        let moved = |cause: Error| Error::input(name, format!("the run's input cannot be read again: {cause}"));
        let again = Again::open(name, input).map_err(moved)?;
        let mut offsets: Vec<u64> = rows.iter().map(|&row| self.offsets[row]).collect();
        offsets.dedup();
        let mut left: HashMap<&str, usize> = rows.iter().map(|&row| (self.urls[row].as_str(), row)).collect();
        let wanted: HashSet<&str> = left.keys().copied().collect();
        let is_wanted = |url: &str| CanonicalUrl::parse(url).is_ok_and(|url| wanted.contains(url.as_str()));
        again.read(&offsets, is_wanted, input, &mut |found| {
            let Found::Page(page) = found else { return Ok(()) };
            let Ok(url) = CanonicalUrl::parse(&page.url) else { return Ok(()) };
            let Some(&row) = left.get(url.as_str()) else { return Ok(()) };
            if page.offset != self.offsets[row] || page.body.len() as u64 != self.body_bytes[row] {
                return Ok(());
            }
            let charset = page.charset.as_deref();
            let text = match page.form {
                Form::Html => extractor.html(&page.body, charset, &url).text,
                Form::Text => extractor.text(&page.body, charset).text,
            };
            let same = [0, whole(text), instead_of_text(bytes(&page.body))].contains(&self.exact[row]);
            if text.len() as u64 != self.text_bytes[row] || !same {
                return Ok(());
            }
            left.remove(url.as_str());
            take(row, &page, text)
        })?;
        match left.values().min() {
            None => Ok(()),
            Some(&row) => Err(Error::input(
                name,
                format!(
                    "at offset {} is not {} as the run read it; the input has changed since, so run again",
                    self.offsets[row], self.urls[row]
                ),
            )),
        }
    }
}
