//! `webtwin check`: the effective job on stdout, as TOML.

use std::path::PathBuf;

use super::{JobArgs, launcher};
use webtwin_base::console::print;
use webtwin_base::error::Result;
use webtwin_engine::Cluster;
use webtwin_job::Digest;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    job: JobArgs,
    /// Cluster file to validate as well; or `slurm`, `kubernetes`: what the environment says
    #[arg(long, value_name = "FILE")]
    cluster: Option<PathBuf>,
}

pub(super) fn run(args: Args) -> Result<()> {
    let job = args.job.resolve()?;
    let cluster = match args.cluster.as_ref().map(|path| (path, launcher(path))) {
        Some((_, Some(launcher))) => Some(launcher.cluster(|name| std::env::var(name).ok())?.0),
        Some((path, None)) => Some(Cluster::load(path)?),
        None => None,
    };
    print(|out| {
        writeln!(out, "# digest {}", Digest::of(&job).hex())?;
        writeln!(out, "# chunks {}", job.chunks.recipe())?;
        write!(out, "{}", toml::to_string(&job).expect("a job is plain values"))?;
        match cluster {
            Some(cluster) => {
                writeln!(out, "\n# cluster: {} processes of {} workers", cluster.processes(), cluster.workers)?;
                cluster.addresses.iter().zip(0..).try_for_each(|(address, n)| writeln!(out, "# process {n}: {address}"))
            }
            None => Ok(()),
        }
    })
}
