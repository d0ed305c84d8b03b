//! `webtwin state`: shows, checks and prunes the state that scheduled jobs keep between runs.

use clap::{Args, Subcommand};

use webtwin_base::console::{print, tell};
use webtwin_base::error::{Error, Result};
use webtwin_storage::location::Location;
use webtwin_storage::state::State;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Lists the generations, and the live inputs of the newest
    Show(ShowArgs),
    /// Reads all records and compares checksums; exit code 8 when any is damaged
    Check(CheckArgs),
    /// Removes old generations, and the records that no other names once they are a day old
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
    /// First remove the generations of which nothing is whole: the next run goes on from the newest that is
    #[arg(long)]
    damaged: bool,
    /// Generations that stay, the newest
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
fn open(folder: &str) -> Result<State> {
    let state = State::at(Location::parse(folder)?.into_folder());
    match state.generations()?.is_empty() {
        true => Err(Error::input(folder, "no state: it has no generations")),
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
            Err(error @ Error::Input { .. }) => tell(format_args!("warning: {error}")),
            Err(error) => return Err(error),
        }
    }
    if args.json {
        let of = |generation: &webtwin_storage::state::Generation| {
            serde_json::json!({
                "number": generation.number, "result": generation.result, "records": generation.records(),
                "bytes": generation.bytes(), "files": generation.files.len(), "inputs": generation.inputs,
                "originals": generation.originals, "crawl_before": generation.crawl_before,
                "working_folder": generation.working_folder, "job": generation.job, "pages": generation.pages,
            })
        };
        let all: Vec<serde_json::Value> = generations.iter().map(of).collect();
        return print(|out| writeln!(out, "{}", serde_json::json!({ "state": args.state, "generations": all })));
    }
    print(|out| {
        writeln!(out, "{:>10} {:>10} {:>12} {:>6}  result", "generation", "records", "MB", "files")?;
        for generation in &generations {
            let megabytes = generation.bytes() as f64 / 1e6;
            let (number, records, files) = (generation.number, generation.records(), generation.files.len());
            writeln!(out, "{number:>10} {records:>10} {megabytes:>12.1} {files:>6}  {}", generation.result)?;
        }
        writeln!(out, "live inputs, from {}:", newest.working_folder)?;
        newest.inputs.iter().try_for_each(|input| writeln!(out, "  {input}"))?;
        if !newest.originals.is_empty() {
            writeln!(
                out,
                "files of earlier crawls that pages have their content from or were found by way of, which must stay:"
            )?;
        }
        newest.originals.iter().try_for_each(|original| writeln!(out, "  {original}"))?;
        if !newest.crawl_before.is_empty() {
            writeln!(out, "the crawl before, in which later parts of this one may have originals:")?;
        }
        newest.crawl_before.iter().try_for_each(|input| writeln!(out, "  {input}"))
    })
}

fn check(args: &CheckArgs) -> Result<()> {
    let checked = open(&args.state)?.check()?;
    for damaged in &checked.damaged {
        tell(format_args!("damaged or missing: {damaged}"));
    }
    tell(format_args!(
        "{} generations, {} records, {:.1} MB",
        checked.generations,
        checked.records,
        checked.bytes as f64 / 1e6
    ));
    match checked.damaged.len() {
        0 => Ok(()),
        files => {
            let what_follows = match checked.damaged_generations {
                0 => "the next run reads again what they held",
                _ => "the next run ends with 3 if the newest generation is one of those without a copy that is whole",
            };
            Err(Error::storage(&args.state, format!("{files} files are damaged or missing; {what_follows}")))
        }
    }
}

fn prune(args: &PruneArgs) -> Result<()> {
    let state = open(&args.state)?;
    if args.damaged {
        let dropped = state.drop_damaged()?;
        tell(format_args!("removed {dropped} generations of which nothing was whole"));
    }
    let pruned = state.prune(args.keep as usize)?;
    tell(format_args!(
        "removed {} generations and {} files of records, {:.1} MB",
        pruned.generations,
        pruned.files,
        pruned.bytes as f64 / 1e6
    ));
    Ok(())
}
