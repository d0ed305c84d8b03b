//! `webtwin archive`: stores payloads of WARC files once. `webtwin restore`: restores the files.

use std::path::PathBuf;
use std::time::Instant;

use super::{quantity, signals};
use webtwin_archive::{ArchiveCounts, ArchiveEffort, ArchiveSettings, ArchiveSummary, NearCopySource, NearSummary};
use webtwin_base::console::{notify, print};
use webtwin_base::error::Result;
use webtwin_storage::location::Location;
use webtwin_view::report::figures;

const ARCHIVE_EXAMPLES: &str = "\
Examples:
  webtwin archive 'crawl/*.warc.gz' --output small/
  webtwin archive s3://bucket/2025/ s3://bucket/2026/ --output s3://bucket/archive
  webtwin run --input 'crawl/*.warc.gz' --output run/ && webtwin archive 'crawl/*.warc.gz' --run run/ --output small/
  webtwin archive 'crawl/*.warc.gz' --run run/ --near --output smaller/
  webtwin archive 'june/*.warc.gz' --against may-archive/ --output june-archive/
  webtwin restore small/ --output back/";

/// Arguments for both.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Effort")]
struct EffortArgs {
    /// Memory for keys of payloads, 48 bytes each; the excess is spilled to the folder of --spill
    #[arg(long, value_name = "BYTES", value_parser = quantity::quantity, default_value = "1GiB")]
    memory: u64,
    /// Folder on a local disk for spilled data [default: the system's temporary folder]
    #[arg(long, value_name = "DIR")]
    spill: Option<PathBuf>,
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    workers: Option<u16>,
}

impl EffortArgs {
    fn resolve(self) -> Result<ArchiveEffort> {
        Ok(ArchiveEffort {
            workers: super::threads(self.workers),
            memory_bytes: self.memory,
            spill: super::spill(self.spill)?,
        })
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = ARCHIVE_EXAMPLES)]
pub(super) struct ArchiveArgs {
    /// WARC files (plain, .gz, .zst): paths, URLs, globs, folders or @LISTs
    #[arg(value_name = "IN", required = true)]
    inputs: Vec<String>,
    /// Folder for the archive: path or URL
    #[arg(long, value_name = "URL")]
    output: String,
    /// An older archive, or WARC files, whose payloads the new archive refers to instead of storing
    /// them again; may be given again
    #[arg(long, value_name = "OLDER")]
    against: Vec<String>,
    /// Result of `webtwin run` on the same files: measures how many bytes near-copies would take as
    /// differences to the pages that stay
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Store near-copies as differences; only `webtwin restore` can read them
    #[arg(long, requires = "run")]
    near: bool,
    /// Compression level of zstd for differences, 1 to 19: level 3 takes a tenth of the time and
    /// more bytes
    #[arg(long, value_name = "N", requires = "run", default_value_t = NearCopySource::LEVEL,
        value_parser = clap::value_parser!(i32).range(1..=i64::from(NearCopySource::LEVEL)))]
    level: i32,
    /// Also write index.cdxj, an index of the archive's captures for replay tools; reads each file
    /// once more
    #[arg(long)]
    cdxj: bool,
    #[command(flatten)]
    effort: EffortArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct RestoreArgs {
    /// Folder of an archive: path or URL
    #[arg(value_name = "ARCHIVE")]
    archive: String,
    /// The older archive, or its WARC files, that the archive was made against; may be given again
    #[arg(long, value_name = "OLDER")]
    against: Vec<String>,
    /// Folder for the restored files: path or URL
    #[arg(long, value_name = "URL")]
    output: String,
    #[command(flatten)]
    effort: EffortArgs,
}

pub(super) fn archive(args: ArchiveArgs) -> Result<()> {
    let near_copies = args.run.map(|run| NearCopySource { run, write: args.near, level: args.level });
    let settings = ArchiveSettings {
        inputs: args.inputs,
        against: args.against,
        output: args.output,
        near: near_copies,
        cdxj: args.cdxj,
        effort: args.effort.resolve()?,
    };
    let folder = Location::parse(&settings.output)?;
    let work = signals::StoppableWork::writing(folder);
    let start = Instant::now();
    let summary = webtwin_archive::archive(&settings, &|line| notify(line)).map_err(|error| work.explain(error))?;
    let ArchiveCounts { read, copied: n_copied, revisits, near: n_near } = summary.records;
    let differences = if n_near > 0 { format!(", {n_near} as differences") } else { String::new() };
    notify(format_args!("{read} records read: {n_copied} copied, {revisits} written as revisits{differences}"));
    let (other_records, bytes) =
        summary.files.iter().fold((0, 0), |(n, b), file| (n + file.others, b + file.other_bytes));
    if other_records > 0 {
        let bytes = figures::bytes(bytes);
        notify(format_args!("{bytes} in {other_records} ranges are not whole records and were copied unchanged"));
    }
    if !settings.against.is_empty() {
        notify(format_args!("{} of these refer to {}", summary.against, settings.against.join(", ")));
    }
    let share = 100.0 * summary.bytes_out as f64 / summary.bytes_in.max(1) as f64;
    notify(format_args!(
        "{} become {} ({share:.1} %) in {:.1} s",
        figures::bytes(summary.bytes_in),
        figures::bytes(summary.bytes_out),
        start.elapsed().as_secs_f64()
    ));
    notify(format_args!("archive: {}", settings.output));
    if settings.near.is_some_and(|near| !near.write) {
        print(|out| out.write_all(table(&summary).as_bytes()))
    } else {
        Ok(())
    }
}

/// Formats the savings by near-copies as a table.
fn table(summary: &ArchiveSummary) -> String {
    let NearSummary { records, stored_bytes, zstd_bytes, near_bytes } = summary.near;
    let rest = summary.bytes_out - stored_bytes;
    let mut table = String::from("bytes\tshare\twhat\n");
    for (bytes, label) in [
        (summary.bytes_in, "input".to_string()),
        (summary.bytes_out, "with exact copies as revisits".into()),
        (rest + zstd_bytes.unwrap_or(0), format!("and {records} near-copies as separate zstd frames")),
        (rest + near_bytes, format!("and {records} near-copies as differences (--near)")),
        (stored_bytes, "these near-copies alone, as stored".into()),
        (zstd_bytes.unwrap_or(0), "as separate zstd frames".into()),
        (near_bytes, "as differences".into()),
    ] {
        let share = 100.0 * bytes as f64 / summary.bytes_in.max(1) as f64;
        table.push_str(&format!("{bytes}\t{share:.1} %\t{label}\n"));
    }
    table
}

pub(super) fn restore(args: RestoreArgs) -> Result<()> {
    let folder = Location::parse(&args.output)?;
    let work = signals::StoppableWork::writing(folder);
    let start = Instant::now();
    let effort = args.effort.resolve()?;
    let result = webtwin_archive::restore(&args.archive, &args.against, &args.output, &effort, &|line| notify(line));
    let result = result.map_err(|error| work.explain(error))?;
    notify(format_args!(
        "{} records in {} files, {} of them restored, all equal to the archived ones; {} files are \
         byte for byte those of the input",
        result.records, result.files, result.restored, result.same_files
    ));
    notify(format_args!("{} in {:.1} s: {}", figures::bytes(result.bytes), start.elapsed().as_secs_f64(), args.output));
    Ok(())
}
