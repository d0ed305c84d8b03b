//! Opening of an index: its files are opened and checked against each other.

use bytemuck::Pod;

use super::super::about::IndexSubject;
use super::super::column::IndexColumn;
#[cfg(feature = "search")]
use super::super::search::{self, WordIndex};
use super::super::strings::{FILES, Strings};
use super::{IndexChunks, LookupIndex, NAMES, RULES, SIZE_LISTS, STANDING_COLUMN, broken_index};
#[cfg(feature = "search")]
use crate::search::texts::{TextIndex, TextIndexFile};
use webtwin_base::error::Result;
use webtwin_core::hamming::online::{self, OnlineIndex};
use webtwin_core::url_rules::rows::RuleRow;
use webtwin_core::url_rules::rules::{Rule, Rules};
use webtwin_results::online_index::open_index;
use webtwin_storage::location::Location;
use webtwin_storage::manifest::Manifest;
use webtwin_storage::mapped::{FileBytes, Residence, file_bytes};

impl LookupIndex {
    /// Opens the index in a folder. Files on a local disk are memory-mapped and must not change
    /// meanwhile.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Input`] if the folder is not an index, has another
    /// format, or has a file of another index; and any error of the store.
    ///
    /// # Cost
    /// Reads a thousandth of the files. Mapped data is checked block by block on first access.
    pub fn open(url: &str) -> Result<LookupIndex> {
        let folder = Location::parse(url)?.into_folder();
        let (manifest, subject) = IndexSubject::read(&folder)?;
        let files = Files { folder: &folder, about: &subject };
        // Some columns are optional; the options of the build determine them.
        let standing_rows = files.has_column(STANDING_COLUMN).then(|| files.column(STANDING_COLUMN)).transpose()?;
        let chunks = files.has_column("chunks").then(|| -> Result<IndexChunks> {
            Ok(IndexChunks {
                postings: files.column("chunks")?,
                lists: files.column("chunks.pages")?,
                counts: files.column("chunks.counts")?,
            })
        });
        let index = LookupIndex {
            standing_rows,
            chunks: chunks.transpose()?,
            rules: files.rules()?,
            near_tables: subject.simhash_k.map(|_| open_near(&folder, &manifest)).transpose()?,
            #[cfg(feature = "search")]
            words: subject.texts.map(|count| files.words(count)).transpose()?,
            titles: files.strings("titles")?,
            clusters_by_size: files.column(SIZE_LISTS[0])?,
            cluster_names: files.column(NAMES[0])?,
            mirrors_by_size: files.column(SIZE_LISTS[1])?,
            mirror_names: files.column(NAMES[1])?,
            hosts: files.column("hosts")?,
            rejected_rows: files.column("rejected")?,
            pages: files.column("pages")?,
            contents: files.column("contents")?,
            texts: files.column("texts")?,
            urls: files.strings("urls")?,
            origin_strings: files.strings("origins")?,
            prefixes: files.strings("prefixes")?,
            cluster_starts: files.column("clusters")?,
            cluster_members: files.column("clusters.pages")?,
            collections: files.column("collections")?,
            collection_members: files.column("collections.pages")?,
            bytes: manifest.files.iter().map(|file| file.bytes).sum(),
            folder: folder.clone(),
            about: subject,
        };
        // Columns by rank must have a row for each page.
        let pages = index.pages.rows();
        let counts = index.chunks.as_ref().map_or(pages, |chunks| chunks.counts.rows());
        let row_counts =
            [index.contents.rows(), index.urls.count(), index.titles.count(), counts, index.about.pages as usize];
        match row_counts.iter().all(|rows| *rows == pages) && index.clusters_by_size.rows() == index.clusters() {
            true => Ok(index),
            false => Err(broken_index(&folder, "its files are from different indexes")),
        }
    }
}

/// Files in the folder of an index.
struct Files<'f> {
    folder: &'f Location,
    about: &'f IndexSubject,
}

impl Files<'_> {
    fn has_column(&self, column: &str) -> bool {
        self.about.columns.contains_key(column)
    }

    fn column<R: Pod>(&self, name: &str) -> Result<IndexColumn<R>> {
        let seal = self.about.columns.get(name).ok_or_else(|| self.missing_error(name))?;
        let file = self.folder.join(name)?;
        IndexColumn::open(file.name(), file_bytes(&file, Residence::Mapped)?, seal)
    }

    fn strings(&self, name: &str) -> Result<Strings> {
        let [starts, bytes] = FILES.map(|ending| format!("{name}{ending}"));
        let count = self.about.strings.get(name).ok_or_else(|| self.missing_error(name))?;
        Strings::new(self.column(&starts)?, self.column(&bytes)?, *count)
    }

    fn missing_error(&self, name: &str) -> webtwin_base::error::Error {
        broken_index(self.folder, &format!("the manifest lacks {name}"))
    }

    /// Reads the URL rules, which are stored as JSON.
    fn rules(&self) -> Result<Rules> {
        let texts = self.strings(RULES)?;
        let rule = |number: usize| -> Result<Rule> {
            let row: Option<RuleRow> = serde_json::from_str(&texts.get(number)?).ok();
            row.and_then(|row| row.rule()).ok_or_else(|| broken_index(self.folder, "a URL rule cannot be parsed"))
        };
        Ok(Rules::new((0..texts.count()).map(rule).collect::<Result<_>>()?))
    }

    /// Opens the full-text index, which must have `count` texts.
    #[cfg(feature = "search")]
    fn words(&self, count: u64) -> Result<WordIndex> {
        let text_files = self.about.columns.keys().filter_map(|name| Some((name, name.strip_prefix(search::FILES)?)));
        let file = |(name, folder_name): (&String, &str)| -> Result<(String, Box<dyn TextIndexFile>)> {
            Ok((folder_name.into(), Box::new(self.column::<u8>(name)?)))
        };
        let words = WordIndex {
            texts: TextIndex::open(self.folder.name(), text_files.map(file).collect::<Result<_>>()?)?,
            starts: self.column(search::STARTS)?,
            pages: self.column(search::PAGES)?,
        };
        match words.texts.len() == count && words.starts.rows() as u64 == count + 1 {
            true => Ok(words),
            false => Err(broken_index(self.folder, "the files of its texts are from different indexes")),
        }
    }
}

/// Opens the tables of simhashes, which must be those that the manifest names.
fn open_near(folder: &Location, manifest: &Manifest) -> Result<OnlineIndex<FileBytes>> {
    let list = manifest.files.iter().find(|file| file.path == online::NAME);
    let list = list.ok_or_else(|| broken_index(folder, "the manifest lacks the list of tables"))?;
    // The list has the checksums of the tables' headers, and these have the checksums of the other
    // parts.
    manifest.read_file(folder, list)?;
    open_index(folder, Residence::Mapped)
}
