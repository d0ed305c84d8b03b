//! `webtwin state`: shows, checks and prunes the state that scheduled jobs keep between runs.

use clap::{Args, Subcommand};

use webtwin_base::console::{notify, print};
use webtwin_base::error::{Error, Result};
use webtwin_storage::location::Location;
use webtwin_storage::state::JobState;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Lists the generations of a state, and the live inputs of the newest
    Show(ShowArgs),
    /// Reads all checkpoints of a state and verifies their checksums; exit code 8 if any is damaged
    Check(CheckArgs),
    /// Removes old generations of a state, and checkpoints older than a day that no generation
    /// refers to
    Prune(PruneArgs),
}

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// Folder of the state: path or URL
    state: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Folder of the state: path or URL
    state: String,
}

#[derive(Debug, Args)]
pub(super) struct PruneArgs {
    /// Folder of the state: path or URL
    state: String,
    /// Also remove the generations without an intact copy, so that the next run continues from the
    /// newest intact one
    #[arg(long)]
    damaged: bool,
    /// Number of newest generations to keep
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    keep: u32,
}

pub(super) fn run(command: Command) -> Result<()> {
    match command {
        Command::Show(args) => show(&args),
        Command::Check(args) => check(&args),
        Command::Prune(args) => prune(&args),
    }
}

/// Opens the state in a folder, which must have a generation.
fn open(folder: &str) -> Result<JobState> {
    let state = JobState::at(Location::parse(folder)?.into_folder());
    match state.generations()?.is_empty() {
        true => Err(Error::input(
            folder,
            "the folder has no generations, so it is not a state; name the folder given to `webtwin \
             run --state`",
        )),
        false => Ok(state),
    }
}

fn show(args: &ShowArgs) -> Result<()> {
    let state = open(&args.state)?;
    // The live inputs are those of the newest generation.
    let newest = state.newest()?.expect("a state has generations");
    let mut generations = Vec::new();
    // A damaged generation must not hide the others.
    for number in state.generations()? {
        match state.generation(number) {
            Ok(generation) => generations.push(generation),
            Err(error @ Error::Input { .. }) => notify(format_args!("warning: {error}")),
            Err(error) => return Err(error),
        }
    }
    let read_ahead: usize = state.ahead()?.iter().flat_map(|list| &list.files).map(|file| file.records.len()).sum();
    if args.json {
        let to_json = |generation: &webtwin_storage::state::Generation| {
            serde_json::json!({
                "number": generation.number, "result": generation.result, "records": generation.records(),
                "bytes": generation.bytes(), "files": generation.files.len(), "inputs": generation.inputs,
                "originals": generation.originals, "crawl_before": generation.crawl_before,
                "working_folder": generation.working_folder, "job": generation.job, "pages": generation.pages,
            })
        };
        let rows: Vec<serde_json::Value> = generations.iter().map(to_json).collect();
        let state = serde_json::json!({ "state": args.state, "generations": rows, "read_ahead": read_ahead });
        return print(|out| writeln!(out, "{state}"));
    }
    print(|writer| {
        writeln!(writer, "{:>10} {:>10} {:>12} {:>6}  result", "generation", "records", "MB", "files")?;
        for generation in &generations {
            let megabytes = generation.bytes() as f64 / 1e6;
            let (number, records, files) = (generation.number, generation.records(), generation.files.len());
            writeln!(writer, "{number:>10} {records:>10} {megabytes:>12.1} {files:>6}  {}", generation.result)?;
        }
        if read_ahead > 0 {
            writeln!(writer, "read ahead by webtwin live, for the next run: {read_ahead} records")?;
        }
        writeln!(writer, "live inputs, from {}:", newest.working_folder)?;
        newest.inputs.iter().try_for_each(|input| writeln!(writer, "  {input}"))?;
        if !newest.originals.is_empty() {
            writeln!(writer, "files of earlier crawls that live pages refer to, and that must not be removed:")?;
        }
        newest.originals.iter().try_for_each(|original| writeln!(writer, "  {original}"))?;
        if !newest.crawl_before.is_empty() {
            writeln!(
                writer,
                "the previous crawl, in which revisit records of later inputs may find their \
                 originals:"
            )?;
        }
        newest.crawl_before.iter().try_for_each(|input| writeln!(writer, "  {input}"))
    })
}

fn check(args: &CheckArgs) -> Result<()> {
    let check_result = open(&args.state)?.check()?;
    for file in &check_result.damaged {
        notify(format_args!("warning: {file} is damaged or missing"));
    }
    notify(format_args!(
        "generations: {}, checkpoints: {}, size: {:.1} MB",
        check_result.generations,
        check_result.records,
        check_result.bytes as f64 / 1e6
    ));
    match check_result.damaged.len() {
        0 => Ok(()),
        files => {
            let what_follows = match check_result.damaged_generations {
                0 => "the next run reads their inputs again",
                _ => {
                    "the next run ends with exit code 3 if the newest generation has no intact \
                     copy; remove it with `webtwin state prune --damaged`"
                }
            };
            Err(Error::storage(&args.state, format!("{files} files are damaged or missing; {what_follows}")))
        }
    }
}

fn prune(args: &PruneArgs) -> Result<()> {
    let state = open(&args.state)?;
    if args.damaged {
        let dropped_files = state.drop_damaged()?;
        notify(format_args!("removed {dropped_files} generations without an intact copy"));
    }
    let pruned_files = state.prune(args.keep as usize)?;
    notify(format_args!(
        "removed generations: {}, checkpoint files: {}, size: {:.1} MB",
        pruned_files.generations,
        pruned_files.files,
        pruned_files.bytes as f64 / 1e6
    ));
    Ok(())
}
