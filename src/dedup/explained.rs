//! Explanation of two records of a result, from its tables and from the corpus that it was made of.

use super::again::{CorpusSource, RereadRecord};
use webtwin_base::error::{Error, Result};
use webtwin_core::explain::broken_lines::broken;
use webtwin_core::explain::diff::pieces;
use webtwin_core::explain::duplicates::{DuplicateMethod, Duplicates, RecordName, RecordSide, RemovedRow, conclude};
use webtwin_results::FinishedRun;
use webtwin_results::scan::scan;

/// Number of unchanged lines shown around a change.
const CONTEXT: usize = 2;

/// Two records, and their outcomes in the result.
#[derive(Debug)]
pub struct RecordPairQuery {
    sides: [RecordSide; 2],
    texts: [String; 2],
    /// Texts with long lines broken.
    lines: [String; 2],
    method: Option<DuplicateMethod>,
    /// Resemblance of the other record to the one that is kept in the place of each record.
    to_kept: [Option<f64>; 2],
}

impl RecordPairQuery {
    /// Reads the outcomes of two records, each named by its id or as `FILE:ROW`.
    ///
    /// # Errors
    /// Returns the errors of [`CorpusSource::from_run`] and [`CorpusSource::find`], and
    /// [`Error::Usage`] if both names refer to the same record.
    ///
    /// # Cost
    /// Two passes over the table `removed`, and the texts of up to four records. Finding the
    /// records costs as much as in [`CorpusSource::find`].
    pub fn read(run: &FinishedRun, names: [&str; 2]) -> Result<RecordPairQuery> {
        let source = CorpusSource::from_run(run)?;
        let records = source.find(names)?;
        if records[0].name == records[1].name {
            return Err(Error::Usage(format!("{} and {}: both name one record; name two records", names[0], names[1])));
        }
        let removed = removed(run, &records)?;
        let kept = [0, 1].map(|at| removed[at].as_ref().map_or(&records[at].name, |removed| &removed.kept));
        let method = source.settings.near.map(|near| DuplicateMethod {
            shingling: near.shingling,
            threshold: near.threshold,
            bands: near.bands,
        });
        let mut to_kept = [None, None];
        if let (Some(method), true) = (&method, kept[0] != kept[1]) {
            for (at, of_side) in to_kept.iter_mut().enumerate() {
                let Some(RemovedRow { kept, .. }) = &removed[at] else { continue };
                let texts = source.texts(&kept.file, &[kept.row])?;
                *of_side = Some(method.compare(&texts[&kept.row], &records[1 - at].text).resemblance);
            }
        }
        let clusters = clusters(run, kept)?;
        let [a, b] = records;
        let [of_a, of_b] = removed;
        let side = |record: &RereadRecord, removed, cluster| RecordSide {
            name: record.name.clone(),
            is_against: record.is_against,
            text_bytes: record.text.len() as u64,
            removed,
            cluster,
        };
        Ok(RecordPairQuery {
            sides: [side(&a, of_a, clusters[0]), side(&b, of_b, clusters[1])],
            lines: [broken(&a.text), broken(&b.text)],
            texts: [a.text, b.text],
            method,
            to_kept,
        })
    }

    /// Explains the two records.
    pub fn explain(&self) -> Duplicates<'_> {
        let [a, b] = &self.lines;
        let diff = pieces(a, b, CONTEXT);
        conclude(self.sides.clone(), [&self.texts[0], &self.texts[1]], self.method.as_ref(), self.to_kept, diff)
    }
}

/// Returns the rows of the table `removed` for two records.
fn removed(run: &FinishedRun, records: &[RereadRecord; 2]) -> Result<[Option<RemovedRow>; 2]> {
    let mut found = [None, None];
    let columns = ["file", "row", "kept_id", "kept_file", "kept_row", "why", "similarity"];
    scan(run, "removed", &columns, &mut |batch| {
        let (files, rows) = (batch.text("file")?, batch.u64("row")?);
        let (kept_ids, kept_files, kept_rows) =
            (batch.text("kept_id")?, batch.text("kept_file")?, batch.u64("kept_row")?);
        let (why, similarity) = (batch.text("why")?, batch.f64("similarity")?);
        for at in 0..rows.len() {
            for (found, record) in found.iter_mut().zip(records) {
                if record.name.row == rows[at] && record.name.file == files[at] {
                    let kept = RecordName { id: kept_ids[at].into(), file: kept_files[at].into(), row: kept_rows[at] };
                    *found = Some(RemovedRow { kept, why: why[at].into(), similarity: similarity[at] });
                }
            }
        }
        Ok(())
    })?;
    Ok(found)
}

/// Returns the numbers of records in the clusters of two kept records.
fn clusters(run: &FinishedRun, kept: [&RecordName; 2]) -> Result<[u64; 2]> {
    let mut sizes = [1, 1];
    scan(run, "removed", &["kept_file", "kept_row"], &mut |batch| {
        for (file, row) in batch.text("kept_file")?.iter().zip(batch.u64("kept_row")?) {
            for (size, kept) in sizes.iter_mut().zip(kept) {
                *size += u64::from(kept.row == *row && kept.file == *file);
            }
        }
        Ok(())
    })?;
    Ok(sizes)
}
