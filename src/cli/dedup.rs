//! `webtwin dedup`: removes duplicates from a corpus of texts.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use super::progress::Watcher;
use super::run::left;
use super::{quantity, signals};
use webtwin_base::console::notify;
use webtwin_base::error::{Error, Result};
use webtwin_core::minhash::bands::BandLayout;
use webtwin_core::minhash::shingles::Shingling;
use webtwin_dedup::settings::{DedupSettings, KeepRule, NearSettings, TEXT_FIELDS};
use webtwin_dedup::{Dedup, DedupSummary, MAX_COUNTED_FIELDS, STAGES, ValueCounts, checkpoint_folder};
use webtwin_job::RecordLimits;
use webtwin_storage::location::Location;
use webtwin_storage::manifest::CORPUS_NAME;
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
const MAX_PRINTED_VALUES: usize = 8;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// JSONL (plain, .gz, .zst, .xz, .bz2) or Parquet: files, folders, globs, @LISTs, store URLs,
    /// or the result of an earlier `webtwin dedup`
    #[arg(value_name = "IN", required = true)]
    inputs: Vec<String>,
    /// Folder for the result: path or URL
    #[arg(long, value_name = "URL")]
    output: String,
    /// Field with the text; a dot leads into an object. May be given again: the first field that a
    /// record has is used [default: text, then content]
    #[arg(long = "text-field", value_name = "NAME", help_heading = "Input")]
    text_fields: Vec<String>,
    /// Field with the id, a string or whole number [default: FILE:ROW is the id]
    #[arg(long, value_name = "NAME", help_heading = "Input")]
    id_field: Option<String>,
    /// Maximum fraction of damaged records in a file before the run fails
    #[arg(long, value_name = "SHARE", default_value_t = 0.01, help_heading = "Input")]
    max_bad: f64,
    /// Maximum size of a record
    #[arg(long, value_name = "BYTES", value_parser = quantity::quantity, default_value = "16MiB", help_heading = "Input")]
    max_record: u64,
    /// Maximum window of a zstd or xz file, in memory of each thread
    #[arg(long, value_name = "BYTES", value_parser = quantity::quantity, default_value = "256MiB", help_heading = "Input")]
    max_window: u64,
    /// Duplicates to remove: exact copies and near-duplicates, or exact copies only
    #[arg(long, value_enum, default_value = "minhash", help_heading = "Method")]
    by: By,
    /// Minimum resemblance of near-duplicates, 0 to 1: the fraction of their shingles that both
    /// texts have
    #[arg(long, value_name = "SHARE", default_value_t = 0.8, help_heading = "Method")]
    threshold: f64,
    /// Shingles by which texts are compared: words:N, tokens:N (separated by white space, not
    /// normalised) or chars:N
    #[arg(long, value_name = "UNIT:N", default_value = "words:5", help_heading = "Method")]
    shingle: Shingling,
    /// Number of minima in a signature
    #[arg(long, value_name = "N", default_value_t = 128, help_heading = "Method",
        value_parser = clap::value_parser!(u32).range(1..=4096))]
    permutations: u32,
    /// Number of bands of a signature [default: the smallest number that finds 99 of 100 pairs at
    /// the threshold]
    #[arg(long, value_name = "N", requires = "rows", help_heading = "Method",
        value_parser = clap::value_parser!(u32).range(1..=4096))]
    bands: Option<u32>,
    /// Number of rows of a band
    #[arg(long, value_name = "N", requires = "bands", help_heading = "Method",
        value_parser = clap::value_parser!(u32).range(1..=4096))]
    rows: Option<u32>,
    /// Record of a cluster that stays: first, longest, newest[:FIELD], smallest-id, max:FIELD or
    /// min:FIELD
    #[arg(long, value_name = "RULE", default_value = "first", help_heading = "Method")]
    keep: KeepRule,
    /// Globs for names of files whose records stay in preference to others, the most preferred
    /// first
    #[arg(long, value_name = "GLOB,...", value_delimiter = ',', help_heading = "Method")]
    prefer: Vec<String>,
    /// An existing corpus, such as an earlier result: duplicates of its records are removed from
    /// the inputs, and it is not written. May be given again
    #[arg(long, value_name = "OLD", help_heading = "Method")]
    against: Vec<String>,
    /// Field by whose values records are counted, such as meta.lang; a dot leads into an object.
    /// May be given again
    #[arg(long, value_name = "FIELD", help_heading = "Output")]
    count_by: Vec<String>,
    /// Keep all records, and add the fields duplicate_of, similarity and cluster to them
    #[arg(long, help_heading = "Output")]
    annotate: bool,
    /// Prefix of the names of these fields
    #[arg(long, value_name = "PREFIX", requires = "annotate", default_value = "", help_heading = "Output")]
    annotate_prefix: String,
    /// Save a checkpoint of each input file on a local disk, and skip the files that an interrupted
    /// run of the same command has saved; the result is the same. The checkpoints are removed once
    /// the result is committed
    #[arg(long, help_heading = "Effort")]
    resume: bool,
    /// Folder for these checkpoints [default: the folder of the result]
    #[arg(long, value_name = "DIR", requires = "resume", help_heading = "Effort")]
    records: Option<String>,
    /// Memory, by estimate; the excess is spilled to the folder of --spill
    #[arg(long, value_name = "BYTES", value_parser = quantity::quantity, default_value = "2GiB", help_heading = "Effort")]
    memory: u64,
    /// Folder on a local disk for spilled data [default: the system's temporary folder]
    #[arg(long, value_name = "DIR", help_heading = "Effort")]
    spill: Option<PathBuf>,
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", help_heading = "Effort", value_parser = clap::value_parser!(u16).range(1..))]
    workers: Option<u16>,
    /// Estimate memory and disk from the beginnings of some files, and stop
    #[arg(long, help_heading = "Effort")]
    plan: bool,
}

/// Method by which duplicates are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum By {
    /// Exact copies, and near-duplicates found by MinHash and verified
    Minhash,
    /// Exact copies only
    Exact,
}

impl Args {
    fn settings(self) -> Result<DedupSettings> {
        // Checked here, because clap has no ranges for floating point numbers.
        let share = |name: &str, share: f64, minimum: f64| match (minimum..=1.0).contains(&share) {
            true => Ok(share),
            false => Err(Error::Usage(format!("{name} is {share}, but must be a number from {minimum} to 1"))),
        };
        let threshold = share("--threshold", self.threshold, 0.01)?;
        let bands = match (self.bands, self.rows) {
            (Some(bands), Some(rows)) => BandLayout { bands, rows },
            _ => BandLayout::choose(self.permutations, threshold),
        };
        if bands.permutations() > 1 << 16 {
            let BandLayout { bands, rows } = bands;
            let max_product = 1 << 16;
            return Err(Error::Usage(format!(
                "--bands {bands} and --rows {rows}: their product must be at most {max_product}"
            )));
        }
        let near_settings = NearSettings { shingling: self.shingle, threshold, bands };
        if self.keep == KeepRule::SmallestId && self.id_field.is_none() {
            return Err(Error::Usage("--keep smallest-id needs the field of the ids; add --id-field FIELD".into()));
        }
        if self.count_by.len() > MAX_COUNTED_FIELDS {
            return Err(Error::Usage(format!("--count-by accepts at most {MAX_COUNTED_FIELDS} fields; give fewer")));
        }
        let text_fields = match self.text_fields.is_empty() {
            true => TEXT_FIELDS.map(String::from).into(),
            false => self.text_fields,
        };
        Ok(DedupSettings {
            inputs: self.inputs,
            against: self.against,
            output: self.output,
            text_fields,
            id_field: self.id_field,
            near: (self.by == By::Minhash).then_some(near_settings),
            keep: self.keep,
            prefer: self.prefer,
            count_by: self.count_by,
            annotate: self.annotate.then_some(self.annotate_prefix),
            max_bad: share("--max-bad", self.max_bad, 0.0)?,
            limits: RecordLimits {
                record_bytes: self.max_record,
                window_bytes: self.max_window,
                ..RecordLimits::default()
            },
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
        return Dedup::find(&settings, &|line| notify(line)).map(drop);
    }
    let folder = Location::parse(&settings.output)?;
    let checkpoints = settings.resume.then(|| checkpoint_folder(&settings, &folder)).transpose()?;
    let records = checkpoints.clone();
    let work = signals::StoppableWork::begin(move || left(&folder, CORPUS_NAME, true, records.as_deref()));
    let start = Instant::now();
    let run = || {
        let dedup = Dedup::find(&settings, &|line| notify(line))?;
        let dedup = match &checkpoints {
            Some(folder) => dedup.resume(folder)?,
            None => dedup,
        };
        let watcher = Watcher::start(Arc::clone(&dedup.progress), &STAGES);
        let summary = dedup.run();
        drop(watcher);
        dedup.resumed().into_iter().for_each(notify);
        summary
    };
    let summary = run().map_err(|error| work.explain(error))?;
    summary.surprises(&settings).into_iter().for_each(notify);
    report(&settings, &summary, start.elapsed().as_secs_f64());
    Ok(())
}

/// Reports the totals on stderr.
fn report(settings: &DedupSettings, summary: &DedupSummary, seconds: f64) {
    let (records, text) = (&summary.records, &summary.text_bytes);
    let removed_for = |why: &str| records.removed_by.get(why).copied().unwrap_or(0);
    let action = if settings.annotate.is_some() { "marked as duplicates" } else { "removed" };
    notify(format_args!(
        "{} records read: {} kept, {} {action} ({} exact copies, {} near-duplicates, {} in an older \
         corpus), {} rejected",
        records.read,
        records.kept,
        records.removed,
        removed_for("exact"),
        removed_for("near"),
        removed_for("against"),
        records.rejected
    ));
    let total = text.kept + text.removed;
    notify(format_args!(
        "{} of text: {} kept, {} {action}, in {seconds:.1} s ({}/s)",
        figures::bytes(total),
        figures::bytes(text.kept),
        figures::bytes(text.removed),
        figures::bytes((total as f64 / seconds) as u64)
    ));
    for (field, counts) in &summary.counts_by {
        let value_text = |counts: &ValueCounts| {
            let value = counts.value.as_deref().unwrap_or("none");
            format!("{value} {} of {}", counts.kept, counts.kept + counts.removed)
        };
        let values: Vec<String> = counts.iter().take(MAX_PRINTED_VALUES).map(value_text).collect();
        let suffix = if counts.len() > MAX_PRINTED_VALUES {
            format!(", {} more", counts.len() - MAX_PRINTED_VALUES)
        } else {
            String::new()
        };
        notify(format_args!("kept by {field}: {}{suffix}", values.join(", ")));
    }
    notify(format_args!("results: {}", settings.output));
}
