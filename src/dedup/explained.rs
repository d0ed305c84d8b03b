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
    similarity_to_kept: [Option<f64>; 2],
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
        let removed_rows = removed_rows(run, &records)?;
        let kept_names = [0, 1].map(|at| removed_rows[at].as_ref().map_or(&records[at].name, |removed| &removed.kept));
        let method = source.settings.near.map(|near_settings| DuplicateMethod {
            shingling: near_settings.shingling,
            threshold: near_settings.threshold,
            bands: near_settings.bands,
        });
        let mut similarities = [None, None];
        if let (Some(method), true) = (&method, kept_names[0] != kept_names[1]) {
            for (side, similarity) in similarities.iter_mut().enumerate() {
                let Some(RemovedRow { kept: kept_name, .. }) = &removed_rows[side] else { continue };
                let texts = source.texts(&kept_name.file, &[kept_name.row])?;
                *similarity = Some(method.compare(&texts[&kept_name.row], &records[1 - side].text).resemblance);
            }
        }
        let clusters = clusters(run, kept_names)?;
        let [a, b] = records;
        let [removed_a, removed_b] = removed_rows;
        let side = |record: &RereadRecord, removal, cluster| RecordSide {
            name: record.name.clone(),
            is_against: record.is_from_against,
            text_bytes: record.text.len() as u64,
            removed: removal,
            cluster,
        };
        Ok(RecordPairQuery {
            sides: [side(&a, removed_a, clusters[0]), side(&b, removed_b, clusters[1])],
            lines: [broken(&a.text), broken(&b.text)],
            texts: [a.text, b.text],
            method,
            similarity_to_kept: similarities,
        })
    }

    /// Explains the two records.
    pub fn explain(&self) -> Duplicates<'_> {
        let [a, b] = &self.lines;
        let diff = pieces(a, b, CONTEXT);
        conclude(
            self.sides.clone(),
            [&self.texts[0], &self.texts[1]],
            self.method.as_ref(),
            self.similarity_to_kept,
            diff,
        )
    }
}

/// Returns the rows of the table `removed` for two records.
fn removed_rows(run: &FinishedRun, records: &[RereadRecord; 2]) -> Result<[Option<RemovedRow>; 2]> {
    let mut rows_found = [None, None];
    let columns = ["file", "row", "kept_id", "kept_file", "kept_row", "why", "similarity"];
    scan(run, "removed", &columns, &mut |batch| {
        let (files, rows) = (batch.text("file")?, batch.u64("row")?);
        let (kept_ids, kept_file_column, kept_row_column) =
            (batch.text("kept_id")?, batch.text("kept_file")?, batch.u64("kept_row")?);
        let (why, similarity) = (batch.text("why")?, batch.f64("similarity")?);
        for row in 0..rows.len() {
            for (slot, record) in rows_found.iter_mut().zip(records) {
                if record.name.row == rows[row] && record.name.file == files[row] {
                    let kept_name = RecordName {
                        id: kept_ids[row].into(),
                        file: kept_file_column[row].into(),
                        row: kept_row_column[row],
                    };
                    *slot = Some(RemovedRow { kept: kept_name, why: why[row].into(), similarity: similarity[row] });
                }
            }
        }
        Ok(())
    })?;
    Ok(rows_found)
}

/// Returns the numbers of records in the clusters of two kept records.
fn clusters(run: &FinishedRun, kept_names: [&RecordName; 2]) -> Result<[u64; 2]> {
    let mut sizes = [1, 1];
    scan(run, "removed", &["kept_file", "kept_row"], &mut |batch| {
        for (file, row) in batch.text("kept_file")?.iter().zip(batch.u64("kept_row")?) {
            for (size, kept_name) in sizes.iter_mut().zip(kept_names) {
                *size += u64::from(kept_name.row == *row && kept_name.file == *file);
            }
        }
        Ok(())
    })?;
    Ok(sizes)
}
