//! temp
#[derive(Debug, clap::Args)]
pub(super) struct Args {}
pub(super) fn run(_a: Args) -> crate::error::Result<()> {
    Ok(())
}
