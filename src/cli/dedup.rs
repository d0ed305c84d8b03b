//! `webtwin dedup`: removes duplicates from a corpus of texts.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use super::progress::Watcher;
use super::run::left;
use super::{quantity, signals};
use webtwin_base::console::tell;
use webtwin_base::error::{Error, Result};
use webtwin_core::minhash::bands::Bands;
use webtwin_core::minhash::shingles::Shingling;
use webtwin_dedup::settings::{Keep, Near, Settings, TEXT_FIELDS};
use webtwin_dedup::{Dedup, MOST_COUNTED, STAGES, Summary, ValueCounts, checkpoint_folder};
use webtwin_job::Limits;
use webtwin_storage::location::Location;
use webtwin_storage::manifest::OF_CORPUS;
use webtwin_view::report::figures;

const EXAMPLES: &str = "\
Examples:
  webtwin dedup 'corpus/*.jsonl.zst' --output clean/
  webtwin dedup corpus/ --output clean/ --text-field doc.body --id-field doc.id --threshold 0.7
  webtwin dedup corpus/ --output clean/ --keep max:quality --prefer '*wiki*'
  webtwin dedup new.parquet --against clean/ --output clean-new/
  webtwin dedup corpus/ --output noted/ --annotate
  webtwin dedup corpus/ --output clean/ --count-by meta.lang --count-by source
  webtwin show clean/removed --limit 20";

/// Maximum number of values of a `--count-by` field that are printed.
const SHOWN_VALUES: usize = 8;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// JSONL (plain, .gz, .zst, .xz, .bz2) or Parquet: files, folders, globs, @LISTs, store URLs, or a folder that dedup wrote
    #[arg(value_name = "IN", required = true)]
    inputs: Vec<String>,
    /// Folder for the result: path or URL
    #[arg(long, value_name = "URL")]
    output: String,
    /// Field with the text; a dot leads into an object. May be given again: the first that a record has counts
    /// [default: text, then content]
    #[arg(long = "text-field", value_name = "NAME", help_heading = "Input")]
    text_fields: Vec<String>,
    /// Field with the id, a string or whole number [default: FILE:ROW stands for an id]
    #[arg(long, value_name = "NAME", help_heading = "Input")]
    id_field: Option<String>,
    /// Largest share of damaged records in a file before the run fails
    #[arg(long, value_name = "SHARE", default_value_t = 0.01, help_heading = "Input")]
    max_bad: f64,
    /// Largest record
    #[arg(long, value_name = "BYTES", value_parser = quantity::quantity, default_value = "16MiB", help_heading = "Input")]
    max_record: u64,
    /// Largest window of a zstd or xz file, in memory of each thread
    #[arg(long, value_name = "BYTES", value_parser = quantity::quantity, default_value = "256MiB", help_heading = "Input")]
    max_window: u64,
    /// What is removed: exact copies and near-duplicates, or exact copies only
    #[arg(long, value_enum, default_value = "minhash", help_heading = "Method")]
    by: By,
    /// Least resemblance of near-duplicates, 0 to 1: the share of their shingles that both have
    #[arg(long, value_name = "SHARE", default_value_t = 0.8, help_heading = "Method")]
    threshold: f64,
    /// What texts are compared by: words:N, tokens:N (between white space, as they are) or chars:N
    #[arg(long, value_name = "UNIT:N", default_value = "words:5", help_heading = "Method")]
    shingle: Shingling,
    /// Minima in a signature
    #[arg(long, value_name = "N", default_value_t = 128, help_heading = "Method",
        value_parser = clap::value_parser!(u32).range(1..=4096))]
    permutations: u32,
    /// Bands of a signature [default: the most rows with which a pair at the threshold is found 99 times of 100]
    #[arg(long, value_name = "N", requires = "rows", help_heading = "Method",
        value_parser = clap::value_parser!(u32).range(1..=4096))]
    bands: Option<u32>,
    /// Rows of a band
    #[arg(long, value_name = "N", requires = "bands", help_heading = "Method",
        value_parser = clap::value_parser!(u32).range(1..=4096))]
    rows: Option<u32>,
    /// Which record stays: first, longest, newest[:FIELD], smallest-id, max:FIELD or min:FIELD
    #[arg(long, value_name = "RULE", default_value = "first", help_heading = "Method")]
    keep: Keep,
    /// Files whose records stay before others, as globs for their names, the most preferred first
    #[arg(long, value_name = "GLOB,...", value_delimiter = ',', help_heading = "Method")]
    prefer: Vec<String>,
    /// A corpus that is there already, such as an earlier result: duplicates of its records are removed; it is not
    /// written. May be given again
    #[arg(long, value_name = "OLD", help_heading = "Method")]
    against: Vec<String>,
    /// Count records by the values of a field, such as meta.lang; a dot leads into an object. May be given again
    #[arg(long, value_name = "FIELD", help_heading = "Output")]
    count_by: Vec<String>,
    /// Keep all records, and add duplicate_of, similarity and cluster to them
    #[arg(long, help_heading = "Output")]
    annotate: bool,
    /// What the names of these fields begin with
    #[arg(long, value_name = "PREFIX", requires = "annotate", default_value = "", help_heading = "Output")]
    annotate_prefix: String,
    /// Record what is read of each file on a local disk, and do not read again the files that an interrupted run of the same
    /// command has recorded; the result is the same. The records are removed once it is committed
    #[arg(long, help_heading = "Effort")]
    resume: bool,
    /// Folder for these records [default: that of the result]
    #[arg(long, value_name = "DIR", requires = "resume", help_heading = "Effort")]
    records: Option<String>,
    /// Memory, by estimate; beyond it, --spill is used
    #[arg(long, value_name = "BYTES", value_parser = quantity::quantity, default_value = "2GiB", help_heading = "Effort")]
    memory: u64,
    /// Folder on a local disk for what does not fit in memory [default: the system's temporary folder]
    #[arg(long, value_name = "DIR", help_heading = "Effort")]
    spill: Option<PathBuf>,
    /// Threads; all cores when not given
    #[arg(long, value_name = "N", help_heading = "Effort", value_parser = clap::value_parser!(u16).range(1..))]
    workers: Option<u16>,
    /// Tell what memory and disk it will take, by the beginnings of some files, and stop
    #[arg(long, help_heading = "Effort")]
    plan: bool,
}

/// Method by which duplicates are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum By {
    /// Exact copies, and near-duplicates by MinHash, verified
    Minhash,
    /// Exact copies only
    Exact,
}

impl Args {
    fn settings(self) -> Result<Settings> {
        // Checked here, because clap has no ranges for floating point numbers.
        let share = |name: &str, share: f64, from: f64| match (from..=1.0).contains(&share) {
            true => Ok(share),
            false => Err(Error::Usage(format!("{name} is {share}, but must be {from} to 1"))),
        };
        let threshold = share("--threshold", self.threshold, 0.01)?;
        let bands = match (self.bands, self.rows) {
            (Some(bands), Some(rows)) => Bands { bands, rows },
            _ => Bands::choose(self.permutations, threshold),
        };
        if bands.permutations() > 1 << 16 {
            return Err(Error::Usage(format!("--bands {} of --rows {} are too many", bands.bands, bands.rows)));
        }
        let near = Near { shingling: self.shingle, threshold, bands };
        if self.keep == Keep::SmallestId && self.id_field.is_none() {
            return Err(Error::Usage("--keep smallest-id: give --id-field, too".into()));
        }
        if self.count_by.len() > MOST_COUNTED {
            return Err(Error::Usage(format!("--count-by: at most {MOST_COUNTED} fields")));
        }
        let text_fields = match self.text_fields.is_empty() {
            true => TEXT_FIELDS.map(String::from).into(),
            false => self.text_fields,
        };
        Ok(Settings {
            inputs: self.inputs,
            against: self.against,
            output: self.output,
            text_fields,
            id_field: self.id_field,
            near: (self.by == By::Minhash).then_some(near),
            keep: self.keep,
            prefer: self.prefer,
            count_by: self.count_by,
            annotate: self.annotate.then_some(self.annotate_prefix),
            max_bad: share("--max-bad", self.max_bad, 0.0)?,
            limits: Limits { record_bytes: self.max_record, window_bytes: self.max_window, ..Limits::default() },
            resume: self.resume,
            records: self.records,
            workers: super::threads(self.workers),
            memory_bytes: self.memory,
            spill: super::spill(self.spill)?,
        })
    }
}

pub(super) fn run(args: Args) -> Result<()> {
    let only_plan = args.plan;
    let settings = args.settings()?;
    if only_plan {
        return Dedup::find(&settings, &|line| tell(line)).map(drop);
    }
    let folder = Location::parse(&settings.output)?;
    let checkpoints = settings.resume.then(|| checkpoint_folder(&settings, &folder)).transpose()?;
    let records = checkpoints.clone();
    let work = signals::StoppableWork::begin(move || left(&folder, OF_CORPUS, true, records.as_deref()));
    let began = Instant::now();
    let run = || {
        let found = Dedup::find(&settings, &|line| tell(line))?;
        let found = match &checkpoints {
            Some(folder) => found.resume(folder)?,
            None => found,
        };
        let watcher = Watcher::start(Arc::clone(&found.progress), &STAGES);
        let summary = found.run();
        drop(watcher);
        found.resumed().into_iter().for_each(tell);
        summary
    };
    let summary = run().map_err(|error| work.explain(error))?;
    summary.surprises(&settings).into_iter().for_each(tell);
    report(&settings, &summary, began.elapsed().as_secs_f64());
    Ok(())
}

/// Reports the totals on stderr.
fn report(settings: &Settings, summary: &Summary, seconds: f64) {
    let (records, text) = (&summary.records, &summary.text_bytes);
    let by = |why: &str| records.removed_by.get(why).copied().unwrap_or(0);
    let removed = if settings.annotate.is_some() { "marked as duplicates" } else { "removed" };
    tell(format_args!(
        "{} records read: {} kept, {} {removed} ({} exact, {} near, {} against), {} rejected",
        records.read,
        records.kept,
        records.removed,
        by("exact"),
        by("near"),
        by("against"),
        records.rejected
    ));
    let all = text.kept + text.removed;
    tell(format_args!(
        "{} of text: {} kept, {} {removed}, in {seconds:.1} s ({}/s)",
        figures::bytes(all),
        figures::bytes(text.kept),
        figures::bytes(text.removed),
        figures::bytes((all as f64 / seconds) as u64)
    ));
    for (field, counts) in &summary.counts_by {
        let of_value = |counts: &ValueCounts| {
            let value = counts.value.as_deref().unwrap_or("none");
            format!("{value} {} of {}", counts.kept, counts.kept + counts.removed)
        };
        let shown: Vec<String> = counts.iter().take(SHOWN_VALUES).map(of_value).collect();
        let more =
            if counts.len() > SHOWN_VALUES { format!(", {} more", counts.len() - SHOWN_VALUES) } else { String::new() };
        tell(format_args!("kept by {field}: {}{more}", shown.join(", ")));
    }
    tell(format_args!("results: {}", settings.output));
}
