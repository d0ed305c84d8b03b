//! `webtwin-lab reproduce NAME`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use webtwin_base::console::print;
use webtwin_base::error::{Error, Result};
use webtwin_base::leftovers::Temporary;
use webtwin_cli::WorkerArgs;
use webtwin_evaluate::table;

use super::{ExperimentRun, LabProcess, Options, entries, find};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Name of a published table or figure, or of a figure of our own
    #[arg(required_unless_present = "list")]
    name: Option<String>,
    /// List all names, with descriptions
    #[arg(long)]
    list: bool,
    /// Main size, or `full` for the published one [default: a size that ends within a minute]
    #[arg(long, value_name = "N")]
    scale: Option<String>,
    /// Folder of a run, for reproductions on real data
    #[arg(long, value_name = "URL")]
    input: Option<String>,
    /// Truth about the crawl, for reproductions that need one: a TSV as for `webtwin-lab evaluate`
    #[arg(long, value_name = "FILE", requires = "input")]
    truth: Option<PathBuf>,
    /// Folder for figures (SVG) and their data (TSV)
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Folder for temporary files, removed at the end; with --cluster, all processes must reach it
    /// by this name [default: the system's temporary folder]
    #[arg(long, value_name = "DIR", help_heading = "Effort")]
    work: Option<PathBuf>,
    #[command(flatten)]
    workers: WorkerArgs,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: Args) -> Result<()> {
    if args.list {
        let experiments = entries();
        let width = experiments.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
        return print(|writer| {
            experiments.iter().try_for_each(|entry| {
                let cluster =
                    if matches!(entry.run, ExperimentRun::OnCluster(_)) { "; also runs with --cluster" } else { "" };
                writeln!(
                    writer,
                    "{:<width$}  {}; scale {}, full {} ({}){cluster}",
                    entry.name, entry.about, entry.scale, entry.full, entry.unit
                )
            })
        });
    }
    let entry = find(args.name.as_deref().unwrap_or_default())?;
    let scale = match args.scale.as_deref() {
        None => entry.scale,
        Some("full") => entry.full,
        Some(scale) => scale.replace('_', "").parse().ok().filter(|scale| *scale > 0).ok_or_else(|| {
            Error::Usage(format!("--scale {scale}: not a positive number; give a number of {}, or full", entry.unit))
        })?,
    };
    let is_cluster = args.workers.cluster.is_some();
    if is_cluster && matches!(entry.run, ExperimentRun::Alone(_)) {
        return Err(runs_alone(entry.name));
    }
    let (cluster, process) = args.workers.resolve()?;
    // In a cluster all processes must compute the same folder, because the place of inputs is part
    // of the digest of a job.
    let name = if is_cluster { format!("{}-{scale}", entry.name) } else { std::process::id().to_string() };
    let work = args.work.unwrap_or_else(std::env::temp_dir).join(format!("webtwin-reproduce-{name}"));
    // The other processes wait for process 0 before they access the folder.
    let _temporary = if process == 0 { Some(make_folder(&work)?) } else { None };
    let options =
        Options { scale, input: args.input, truth: args.truth, work, output: args.output, workers: cluster.workers };
    let rows = match entry.run {
        ExperimentRun::Alone(run) => run(&options)?,
        ExperimentRun::OnCluster(run) => run(&options, &LabProcess { cluster, process })?,
    };
    if process > 0 {
        Ok(())
    } else if args.json {
        let object = serde_json::json!({
            "name": entry.name, "scale": scale, "machine": webtwin_base::build_info::machine(),
            "build": webtwin_base::build_info::version(), "rows": rows,
        });
        print(|out| writeln!(out, "{object}"))
    } else {
        let machine = webtwin_base::build_info::machine();
        print(|writer| {
            writeln!(writer, "{}: {}\nscale {scale} ({}), {machine}", entry.name, entry.about, entry.unit)?;
            write!(writer, "{}", table(&rows))
        })
    }
}

/// Creates the folder for temporary files. Fails if it exists, because another run may use it.
fn make_folder(work: &Path) -> Result<Temporary> {
    let folder = work.display().to_string();
    let result = work.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::create_dir(work));
    match result {
        Err(cause) if cause.kind() == ErrorKind::AlreadyExists => {
            Err(Error::Usage(format!("{folder} exists already; remove it unless another run uses it")))
        }
        result => result.map(|()| Temporary::at(work.to_path_buf())).map_err(|cause| Error::storage(folder, cause)),
    }
}

/// Makes the error for an entry that does not run on a cluster, with the entries that do.
fn runs_alone(name: &str) -> Error {
    let entries = entries();
    let on_cluster =
        entries.iter().filter(|entry| matches!(entry.run, ExperimentRun::OnCluster(_))).map(|entry| entry.name);
    Error::Usage(format!(
        "--cluster: {name} runs in one process; leave out --cluster, or reproduce one of {}",
        on_cluster.collect::<Vec<_>>().join(", ")
    ))
}
