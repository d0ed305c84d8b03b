//! `webtwin check`: prints the effective job as TOML, or the graph of its dataflow.

use std::path::PathBuf;

use super::{JobArgs, launcher};
use webtwin_base::console::print;
use webtwin_base::error::Result;
use webtwin_dataflow::graph::OperatorGraph;
use webtwin_engine::ClusterLayout;
use webtwin_job::JobDigest;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    job: JobArgs,
    /// Cluster file to validate as well; `slurm` or `kubernetes` reads the cluster from the
    /// environment
    #[arg(long, value_name = "FILE")]
    cluster: Option<PathBuf>,
    /// Print the graph of the job's dataflow instead of the job, with its operators and the keys by
    /// which rows are exchanged: as `text`, or as `dot` for Graphviz
    #[arg(long, value_name = "FORM", num_args = 0..=1, default_missing_value = "text")]
    dataflow: Option<Form>,
}

/// Form in which a graph is printed.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Form {
    Text,
    Dot,
}

pub(super) fn run(args: Args) -> Result<()> {
    let job = args.job.resolve()?;
    let cluster = match args.cluster.as_ref().map(|path| (path, launcher(path))) {
        Some((_, Some(launcher))) => Some(launcher.cluster(|name| std::env::var(name).ok())?.0),
        Some((path, None)) => Some(ClusterLayout::load(path)?),
        None => None,
    };
    if let Some(form) = args.dataflow {
        let graph = OperatorGraph::from_job(&job);
        let text = match form {
            Form::Text => graph.text(),
            Form::Dot => graph.dot(),
        };
        return print(|out| out.write_all(text.as_bytes()));
    }
    print(|writer| {
        writeln!(writer, "# digest {}", JobDigest::from_job(&job).hex())?;
        writeln!(writer, "# chunks {}", job.chunks.recipe())?;
        write!(writer, "{}", toml::to_string(&job).expect("a job is plain values"))?;
        match cluster {
            Some(cluster) => {
                writeln!(writer, "\n# cluster: {} processes of {} workers", cluster.processes(), cluster.workers)?;
                cluster
                    .addresses
                    .iter()
                    .zip(0..)
                    .try_for_each(|(address, n)| writeln!(writer, "# process {n}: {address}"))
            }
            None => Ok(()),
        }
    })
}
