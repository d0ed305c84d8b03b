//! `webtwin report RUN`: writes a report of a result.

use webtwin_base::console::{notify, print};
use webtwin_base::error::{Error, Result};
use webtwin_results::FinishedRun;
use webtwin_storage::location::Location;
use webtwin_view::report::{ReportOptions, has_pages, outline, outline_page, page, read};

const EXAMPLES: &str = "\
Examples:
  webtwin report out/                              # writes report.html, to view in a browser
  webtwin report out/ --output s3://bucket/report.html
  webtwin report out/ --json --output - | jq .overview.skip
  webtwin report june/ --against may-june/         # adds the changes from `webtwin diff may/ june/ --output may-june/`
  webtwin report may-june/                         # these changes only
  webtwin report clean/                            # records that `webtwin dedup` removed, and the largest clusters";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Folder of a run, a study, a Hamming batch, a comparison by `webtwin diff`, or a corpus by
    /// `webtwin dedup`
    run: String,
    /// File to write or replace: path or URL, or - for stdout [default: report.html or report.json
    /// in this folder]
    #[arg(long, value_name = "FILE")]
    output: Option<String>,
    /// Write the data of the report as JSON instead of HTML
    #[arg(long)]
    json: bool,
    /// Folder of a comparison of this run with an earlier one, by `webtwin diff`: shows what has
    /// changed
    #[arg(long, value_name = "DIFF")]
    against: Option<String>,
    /// Output of `webtwin-lab evaluate --json` for this run: path or URL
    #[arg(long, value_name = "FILE")]
    evaluation: Option<String>,
    /// Maximum number of pairs of pages, or of records of a corpus, to show next to each other;
    /// they are read again from the input of the run, if it still exists
    #[arg(long, value_name = "N", default_value_t = ReportOptions::default().pairs)]
    pairs: usize,
    /// Leave out times, memory, folders and build, which differ between runs of the same job
    #[arg(long)]
    no_run_facts: bool,
}

/// Returns the file that a report is written to.
///
/// # Errors
/// Returns [`Error::Usage`] for a folder.
fn file_of(output: &str, name: &str) -> Result<Location> {
    let file = Location::parse(output)?;
    match file.is_folder() || file.path().is_some_and(std::path::Path::is_dir) {
        false => Ok(file),
        true => Err(Error::Usage(format!(
            "--output {output}: is a folder, but a report is one file; name a file in it, such as {}/{name}",
            output.trim_end_matches('/')
        ))),
    }
}

pub(super) fn run(args: Args) -> Result<()> {
    let name = if args.json { "report.json" } else { "report.html" };
    let output = args.output.unwrap_or_else(|| name.into());
    let file = file_of(&output, name)?;
    let run = FinishedRun::open(&args.run)?;
    let machine = !args.no_run_facts;
    let text = if has_pages(&run) {
        let baseline = args.against.as_deref().map(FinishedRun::open).transpose()?;
        let evaluation = args.evaluation.map(|file| Ok::<_, Error>((file.clone(), contents(&file)?))).transpose()?;
        let report = read(&run, &ReportOptions { baseline, evaluation, pairs: args.pairs, machine })?;
        if args.json { json(&report) } else { page(&report) }
    } else if args.against.is_some() || args.evaluation.is_some() {
        let message = format!("{}: --against and --evaluation need a run with pages; leave them out", args.run);
        return Err(Error::Usage(message));
    } else {
        let outline = outline(&run, &ReportOptions { pairs: args.pairs, machine, ..ReportOptions::default() })?;
        if args.json { json(&outline) } else { outline_page(&outline) }
    };
    if output == "-" {
        return print(|out| out.write_all(text.as_bytes()));
    }
    file.put(text.as_bytes())?;
    notify(format_args!("report: {output}"));
    Ok(())
}

fn json(report: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(report).expect("a report is plain values") + "\n"
}

fn contents(file: &str) -> Result<String> {
    let bytes = Location::parse(file)?.get()?.ok_or_else(|| Error::input(file, "no such file"))?;
    String::from_utf8(bytes)
        .map_err(|_| Error::input(file, "the file is not UTF-8 text; give the output of `webtwin-lab evaluate --json`"))
}
