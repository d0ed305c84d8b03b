//! The table `FPrint-DocID` of \[SGM98\], which a job may request.

use crate::parts::TablePart;
use crate::reading::captures::Crawl;
use crate::reading::worker_pages::WorkerPages;
use crate::shuffle::directory::TablePartitions;
use webtwin_base::error::Result;
use webtwin_base::ids::FPrint;
use webtwin_core::overlap::FPrintDocId;
use webtwin_engine::{Net, Owners};
use webtwin_storage::table::{Table, TableColumn};

/// Builds the `fprint_docid` table: a row for every distinct chunk of every page, ordered by
/// fingerprint, then page. Takes one exchange.
///
/// `bits` is the width of a fingerprint. Partitions are ranges of fingerprints.
pub fn fprint_docid(
    net: &mut Net<'_>,
    local_pages: &WorkerPages,
    crawl: &Crawl,
    partitions: TablePartitions,
    bits: u32,
) -> Result<Vec<TablePart>> {
    let leading = |fprint: FPrint| fprint << (64 - bits);
    let partition = |fprint: FPrint| partitions.partition(leading(fprint));
    let (mut slots, mut fprints) = (local_pages.kept(), local_pages.fprints.reader());
    let source = |send: &mut dyn FnMut(FPrintDocId)| {
        let Some((slot, page)) = slots.next() else { return Ok(false) };
        fprints.get(slot)?.iter().for_each(|&fprint| send(FPrintDocId::new(fprint, page)));
        Ok(true)
    };
    let to = |row: &FPrintDocId| partitions.owner(leading(row.fprint()));
    let mut rows = Vec::new();
    net.exchange_from("FPrint-DocID by range", source, to, |received| {
        rows.extend_from_slice(received);
        Ok(())
    })?;
    rows.sort_unstable_by_key(FPrintDocId::key);
    let runs = rows.chunk_by(|x, y| partition(x.fprint()) == partition(y.fprint()));
    let doc_ids = crawl.directory.doc_ids()?;
    let table = |rows: &[FPrintDocId]| {
        Table::new([
            ("fprint", TableColumn::Id(rows.iter().map(FPrintDocId::fprint).collect())),
            ("doc_id", TableColumn::Id(rows.iter().map(|row| doc_ids[row.doc]).collect())),
        ])
    };
    let part = |rows: &[FPrintDocId]| TablePart {
        name: "fprint_docid",
        partition: partition(rows[0].fprint()),
        rows: table(rows),
    };
    Ok(runs.map(part).collect())
}
