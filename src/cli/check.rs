//! `webtwin check`: the effective job on stdout, as TOML.

use std::path::PathBuf;

use super::JobArgs;
use crate::engine::Cluster;
use crate::error::Result;
use crate::job::Digest;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    job: JobArgs,
    /// Cluster file to validate as well
    #[arg(long, value_name = "FILE")]
    cluster: Option<PathBuf>,
}

pub(super) fn run(args: Args) -> Result<()> {
    let job = args.job.resolve()?;
    println!("# digest {}", Digest::of(&job).hex());
    println!("# chunks {}", job.chunks.recipe());
    print!("{}", toml::to_string(&job).expect("a job is plain values"));
    if let Some(path) = args.cluster {
        let cluster = Cluster::load(&path)?;
        println!("\n# cluster: {} processes of {} workers", cluster.processes(), cluster.workers);
    }
    Ok(())
}
