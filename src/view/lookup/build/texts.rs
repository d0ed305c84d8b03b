//! Full-text index of the texts, and the pages of each text.
//!
//! Pages with equal text and title share one text: it is read from the input once, and matches for
//! all of them or for none.

use std::io::Read;

use super::Making;
use super::staged::StagedIndex;
use crate::lookup::rows::{IndexedCollectionRow, IndexedPageRow, NONE};
use crate::lookup::search::{FILES, PAGES, STARTS};
use crate::search::rollup::PageOfText;
use crate::search::write::TextWriter;
use webtwin_base::error::{Error, Result};
use webtwin_base::leftovers::Temporary;
use webtwin_job::Job;
use webtwin_results::pages::PageTable;
use webtwin_storage::output::random_id;

/// Writes the texts and their pages. Returns the number of texts.
pub(super) fn write(
    making: &Making<'_>,
    job: &Job,
    rows: &[IndexedPageRow],
    collections: &[IndexedCollectionRow],
    index_files: &mut StagedIndex,
) -> Result<u64> {
    let pages = PageTable::from_run(&making.run)?;
    let (exact, titles) = (pages.0.u64("exact")?, pages.0.text("title")?);
    let mut order: Vec<u32> = (0..rows.len() as u32).collect();
    // A page without text shares its entry with no other page.
    let key = |row: u32| {
        let position = row as usize;
        (exact[position], &titles[position], if exact[position] == 0 { row } else { 0 })
    };
    order.sort_unstable_by_key(|&row| (key(row), row));
    let mut sharing: Vec<&[u32]> = order.chunk_by(|&x, &y| key(x) == key(y)).collect();
    sharing.sort_unstable_by_key(|of_text| of_text[0]);

    // tantivy writes to a local folder. Its files are then copied into sealed columns.
    let temporary = Temporary::at(making.settings.spill.join(format!("webtwin-texts-{}", random_id()?)));
    std::fs::create_dir_all(temporary.path())
        .map_err(|cause| Error::storage(temporary.path().display().to_string(), cause))?;
    let mut writer = TextWriter::new(temporary.path())?;
    let groups = Groups::new(rows, collections)?;
    let (mut starts, mut column) = (index_files.column::<u64>(STARTS)?, index_files.column::<PageOfText>(PAGES)?);
    let first_rows: Vec<usize> = sharing.iter().map(|of_text| of_text[0] as usize).collect();
    pages.read(&first_rows, &job.input, &mut |row, _, text| {
        writer.add(&titles[row], text)?;
        starts.push(column.rows())?;
        let group = sharing.binary_search_by_key(&(row as u32), |of_text| of_text[0]);
        let group = group.map_err(|_| Error::Invariant("a page was read that was not requested".into()))?;
        sharing[group].iter().try_for_each(|&page| column.push(groups.page(page)))
    })?;
    starts.push(column.rows())?;
    index_files.add(STARTS, starts)?;
    index_files.add(PAGES, column)?;
    let texts = writer.texts();
    for file in writer.finish()? {
        let failed = |cause| Error::storage(file.path.display().to_string(), cause);
        let mut reader = std::fs::File::open(&file.path).map_err(failed)?;
        let name = format!("{FILES}{}", file.name);
        let mut column = index_files.column::<u8>(&name)?;
        let mut scratch = vec![0; 1 << 18];
        loop {
            match reader.read(&mut scratch).map_err(failed)? {
                0 => break,
                length => column.extend(&scratch[..length])?,
            }
        }
        index_files.add(&name, column)?;
    }
    Ok(texts)
}

/// Result group of pages in search: their similar cluster, else their trivial cluster, else the
/// page alone.
struct Groups<'r> {
    rows: &'r [IndexedPageRow],
    collections: &'r [IndexedCollectionRow],
    /// First collection of the similar cluster, by collection.
    first: Vec<u32>,
    clusters: u32,
}

impl Groups<'_> {
    fn new<'r>(rows: &'r [IndexedPageRow], collections: &'r [IndexedCollectionRow]) -> Result<Groups<'r>> {
        let clusters =
            rows.iter().map(|row| row.cluster).filter(|&cluster| cluster != NONE).max().map_or(0, |last| last + 1);
        let capacity = rows.len() as u64 + collections.len() as u64 + u64::from(clusters);
        if capacity >= u64::from(NONE) {
            return Err(Error::TooManyRows {
                what: "pages and sets".into(),
                found: capacity,
                allowed: u64::from(NONE) - 1,
            });
        }
        let mut first: Vec<u32> = Vec::with_capacity(collections.len());
        for (number, row) in collections.iter().enumerate() {
            match number.checked_sub(1) {
                Some(last) if collections[last].similar_cluster == row.similar_cluster => first.push(first[last]),
                _ => first.push(number as u32),
            }
        }
        Ok(Groups { rows, collections, first, clusters })
    }

    /// Returns the row of a page for search.
    fn page(&self, page: u32) -> PageOfText {
        let row = &self.rows[page as usize];
        let (group, is_kept) = match (row.collection, row.cluster) {
            (NONE, NONE) => (self.first.len() as u32 + self.clusters + page, true),
            (NONE, cluster) => (self.first.len() as u32 + cluster, !row.is_skipped()),
            (collection, _) => (self.first[collection as usize], self.collections[collection as usize].keep == 1),
        };
        PageOfText { page, group, collection: row.collection, origin: row.origin, keep: u32::from(is_kept) }
    }
}
