//! `webtwin hamming plan`: table designs for a number of documents, and their costs.

use super::super::quantity::{digits, nanoseconds, quantity};
use webtwin_base::console::print;
use webtwin_base::error::{Error, Result};
use webtwin_core::hamming::design::batch::{BatchCost, bits_on_disk, bytes_on_disk};
use webtwin_core::hamming::design::choose::{PricedDesign, candidates, choose, indexes};
use webtwin_core::hamming::design::k_below;
use webtwin_core::hamming::design::machine::ProbeCosts;
use webtwin_core::hamming::online::{Builder, document_bytes};
use webtwin_core::hamming::query_tables::MAX_QUERIES;
use webtwin_job::Job;
use webtwin_view::report::figures::bytes;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of documents, with one fingerprint each: 1000000, 1e9 or 8G
    #[arg(long, value_name = "N", value_parser = quantity)]
    documents: u64,
    /// Number of bits in which fingerprints may differ (k) [default: the setting hamming.k]
    #[arg(long, value_name = "BITS")]
    k: Option<u32>,
    /// Width of a fingerprint in bits (f) [default: the setting simhash.bits]
    #[arg(long, value_name = "BITS", value_parser = clap::value_parser!(u32).range(1..=64))]
    f: Option<u32>,
    /// Memory for the tables of online queries: 8G, 512MB or bytes [default: unlimited]
    #[arg(long, value_name = "BYTES", value_parser = quantity)]
    memory: Option<u64>,
    /// Number of queries of a batch
    #[arg(long, value_name = "N", value_parser = quantity, default_value = "1e6")]
    queries: u64,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: Args) -> Result<()> {
    for (quantity, value, maximum) in
        [("documents", args.documents, 1 << 50), ("queries", args.queries, u32::MAX.into())]
    {
        if value > maximum {
            return Err(Error::Usage(format!("{value} {quantity}, but at most {maximum} can be planned for")));
        }
    }
    let job = Job::default();
    let f = args.f.unwrap_or(job.simhash.bits);
    let k = k_below(f, args.k.unwrap_or(job.hamming.k))?;
    let n = args.documents;
    // Measured on this machine, because its random reads determine the best design.
    let costs = ProbeCosts::measure();
    let priced = candidates(n, f, k, &costs);
    let pick = choose(&priced, args.memory)?;
    // One index is built at a time, so the largest one determines the memory.
    let making = Builder::bytes(n.div_ceil(indexes(n)), true, priced[pick].largest_table);
    // The minimum applies if no two documents share a fingerprint, because then no offsets are
    // stored; the maximum if almost none do.
    let doc_id_bytes = [document_bytes(n, n), document_bytes(n.saturating_sub(1), n)];
    let batch = BatchCost::predict(args.queries as usize, k);
    if args.json {
        let design = |(number, design_row): (usize, &PricedDesign)| {
            // Designs that do not fit are listed too, so that users see what more memory would
            // bring.
            let is_within = args.memory.is_none_or(|memory| design_row.table_bytes <= memory);
            serde_json::json!({
                "from": design_row.source, "tables": design_row.tables(), "least_top_bits": design_row.top_bits().0,
                "most_top_bits": design_row.top_bits().1, "matches_a_probe": design_row.matches, "table_bytes": design_row.table_bytes,
                "query_ns": design_row.query_ns, "fits": is_within, "picked": number == pick,
            })
        };
        let designs: Vec<_> = priced.iter().enumerate().map(design).collect();
        let scan_seconds = batch.map(|batch| batch.seconds(n));
        let object = serde_json::json!({
            "documents": n, "f": f, "k": k, "memory_bytes": args.memory, "measured": costs,
            "online": {
                "designs": designs, "indexes": indexes(n), "doc_id_bytes": doc_id_bytes[0],
                "most_doc_id_bytes": doc_id_bytes[1], "making_bytes": making,
            },
            "batch": { "queries": args.queries, "tables": batch, "scan_seconds": scan_seconds },
            "disk": { "bits_a_fingerprint": bits_on_disk(n, f), "bytes_with_doc_ids": bytes_on_disk(n, f) },
        });
        return print(|out| writeln!(out, "{object}"));
    }
    let ProbeCosts { read_ns, check_ns } = costs;
    print(|writer| {
        writeln!(writer, "{n} documents, f = {f} bits, k = {k}")?;
        writeln!(writer)?;
        writeln!(
            writer,
            "Online queries, by design (here a random read takes {read_ns:.0} ns and a comparison {check_ns:.2} ns):"
        )?;
        writeln!(
            writer,
            "  {:>6}  {:>8}  {:>15}  {:>8}  {:>10}  {:>8}  from",
            "tables", "top bits", "matches a probe", "tables'", "bytes", "a query"
        )?;
        writeln!(writer, "  {:>6}  {:>8}  {:>15}  {:>8}  {:>10}  {:>8}", "", "", "", "memory", "a document", "")?;
        for (number, design_row) in priced.iter().enumerate() {
            let (min_bits, max_bits) = design_row.top_bits();
            writeln!(
                writer,
                "{} {:>6}  {:>8}  {:>15}  {:>8}  {:>10.1}  {:>8}  {}{}",
                if number == pick { '*' } else { ' ' },
                design_row.tables(),
                if min_bits == max_bits { format!("{min_bits}") } else { format!("{min_bits}-{max_bits}") },
                digits(design_row.matches),
                bytes(design_row.table_bytes),
                design_row.table_bytes as f64 / n.max(1) as f64,
                nanoseconds(design_row.query_ns),
                design_row.source,
                if args.memory.is_none_or(|memory| design_row.table_bytes <= memory) { "" } else { " (does not fit)" },
            )?;
        }
        writeln!(writer, "* the smallest design that fits and takes at most a fifth longer than the fastest")?;
        if indexes(n) > 1 {
            writeln!(writer, "  in {} indexes, because one holds at most 4294967295 fingerprints", indexes(n))?;
        }
        writeln!(
            writer,
            "  doc ids, read only for answers: {} in addition, up to {} if documents share \
             fingerprints; making an index: {} of memory",
            bytes(doc_id_bytes[0]),
            bytes(doc_id_bytes[1]),
            bytes(making)
        )?;
        writeln!(writer)?;
        match batch {
            Some(batch) => {
                writeln!(writer, "A batch of {} queries (predicted, one core, even fingerprints):", args.queries)?;
                writeln!(
                    writer,
                    "  {} tables ({} for each set of up to {MAX_QUERIES} queries): {}",
                    batch.conditions * batch.sets,
                    batch.conditions,
                    bytes(batch.table_bytes)
                )?;
                let scan = nanoseconds(1e9 * batch.seconds(n));
                writeln!(
                    writer,
                    "  {:.1} ns a fingerprint, and {scan} to scan F; reported pairs take additional time",
                    batch.ns_a_fingerprint
                )?;
            }
            None => writeln!(
                writer,
                "A batch: no tables exist for k = {k}; queries are partitioned with each chunk of \
                 F, whose time is not predicted"
            )?,
        }
        writeln!(writer)?;
        writeln!(
            writer,
            "F on disk: {:.1} bits a fingerprint and 8 bytes a doc id: {}",
            bits_on_disk(n, f),
            bytes(bytes_on_disk(n, f))
        )
    })
}
