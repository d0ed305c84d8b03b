//! `webtwin archive`: stores payloads of WARC files once. `webtwin restore`: restores the files.

use std::path::PathBuf;
use std::time::Instant;

use super::{quantity, signals};
use webtwin_archive::{Counts, Effort, Near, NearSummary, Settings, Summary};
use webtwin_base::console::{print, tell};
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
    /// Memory for keys of payloads, 40 bytes each; beyond it, --spill is used
    #[arg(long, value_name = "BYTES", value_parser = quantity::quantity, default_value = "1GiB")]
    memory: u64,
    /// Folder on a local disk for what does not fit in memory [default: the system's temporary folder]
    #[arg(long, value_name = "DIR")]
    spill: Option<PathBuf>,
    /// Threads; all cores when not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    workers: Option<u16>,
}

impl EffortArgs {
    fn resolve(self) -> Result<Effort> {
        Ok(Effort {
            workers: super::threads(self.workers),
            memory_bytes: self.memory,
            spill: super::spill(self.spill)?,
        })
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = ARCHIVE_EXAMPLES)]
pub(super) struct ArchiveArgs {
    /// WARC files (plain, .gz, .zst): paths, URLs, globs, folders, @LISTs
    #[arg(value_name = "IN", required = true)]
    inputs: Vec<String>,
    /// Folder for the archive: path or URL
    #[arg(long, value_name = "URL")]
    output: String,
    /// An older archive, or WARC files: payloads that it holds are not kept again. Give it once for each
    #[arg(long, value_name = "OLDER")]
    against: Vec<String>,
    /// A finished run of `webtwin run` on the same files: measures what near-copies, as differences to the page that it
    /// keeps, would save
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Write the near-copies as differences; only `webtwin restore` reads them
    #[arg(long, requires = "run")]
    near: bool,
    /// Level of zstd for differences, 1 to 19: at 3 they take a tenth of the time, and more bytes
    #[arg(long, value_name = "N", requires = "run", default_value_t = Near::LEVEL,
        value_parser = clap::value_parser!(i32).range(1..=i64::from(Near::LEVEL)))]
    level: i32,
    /// Write an index of its captures, index.cdxj, too, for tools that replay them; reads each file once more
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
    /// The older archive that it was made against, or the WARC files of that. Give it once for each
    #[arg(long, value_name = "OLDER")]
    against: Vec<String>,
    /// Folder for the files that it was made of: path or URL
    #[arg(long, value_name = "URL")]
    output: String,
    #[command(flatten)]
    effort: EffortArgs,
}

pub(super) fn archive(args: ArchiveArgs) -> Result<()> {
    let near = args.run.map(|run| Near { run, write: args.near, level: args.level });
    let settings = Settings {
        inputs: args.inputs,
        against: args.against,
        output: args.output,
        near,
        cdxj: args.cdxj,
        effort: args.effort.resolve()?,
    };
    let folder = Location::parse(&settings.output)?;
    let work = signals::StoppableWork::writing(folder);
    let began = Instant::now();
    let summary = webtwin_archive::archive(&settings, &|line| tell(line)).map_err(|error| work.explain(error))?;
    let Counts { read, copied, revisits, near } = summary.records;
    let differences = if near > 0 { format!(", {near} as differences") } else { String::new() };
    tell(format_args!("{read} records read: {copied} copied, {revisits} written as revisits{differences}"));
    let (others, bytes) = summary.files.iter().fold((0, 0), |(n, b), file| (n + file.others, b + file.other_bytes));
    if others > 0 {
        let bytes = figures::bytes(bytes);
        tell(format_args!("{bytes} in {others} stretches are no whole records: copied as they are"));
    }
    if !settings.against.is_empty() {
        tell(format_args!("{} of these refer to {}", summary.against, settings.against.join(", ")));
    }
    let share = 100.0 * summary.bytes_out as f64 / summary.bytes_in.max(1) as f64;
    tell(format_args!(
        "{} become {} ({share:.1} %) in {:.1} s",
        figures::bytes(summary.bytes_in),
        figures::bytes(summary.bytes_out),
        began.elapsed().as_secs_f64()
    ));
    tell(format_args!("archive: {}", settings.output));
    if settings.near.is_some_and(|near| !near.write) {
        print(|out| out.write_all(table(&summary).as_bytes()))
    } else {
        Ok(())
    }
}

/// Formats the savings by near-copies as a table.
fn table(summary: &Summary) -> String {
    let NearSummary { records, stored_bytes, zstd_bytes, near_bytes } = summary.near;
    let rest = summary.bytes_out - stored_bytes;
    let mut table = String::from("bytes\tshare\twhat\n");
    for (bytes, what) in [
        (summary.bytes_in, "input".to_string()),
        (summary.bytes_out, "with exact copies as revisits".into()),
        (rest + zstd_bytes.unwrap_or(0), format!("and {records} near-copies in zstd frames, each alone")),
        (rest + near_bytes, format!("and {records} near-copies as differences (--near)")),
        (stored_bytes, "these near-copies alone, as stored".into()),
        (zstd_bytes.unwrap_or(0), "in zstd frames, each alone".into()),
        (near_bytes, "as differences".into()),
    ] {
        let share = 100.0 * bytes as f64 / summary.bytes_in.max(1) as f64;
        table.push_str(&format!("{bytes}\t{share:.1} %\t{what}\n"));
    }
    table
}

pub(super) fn restore(args: RestoreArgs) -> Result<()> {
    let folder = Location::parse(&args.output)?;
    let work = signals::StoppableWork::writing(folder);
    let began = Instant::now();
    let effort = args.effort.resolve()?;
    let restored = webtwin_archive::restore(&args.archive, &args.against, &args.output, &effort, &|line| tell(line));
    let restored = restored.map_err(|error| work.explain(error))?;
    tell(format_args!(
        "{} records in {} files, {} of them restored, all as they were archived; {} files are the same to the byte",
        restored.records, restored.files, restored.restored, restored.same_files
    ));
    tell(format_args!("{} in {:.1} s: {}", figures::bytes(restored.bytes), began.elapsed().as_secs_f64(), args.output));
    Ok(())
}
