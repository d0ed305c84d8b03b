//! `webtwin completions SHELL`: prints completions for a shell.

use clap::CommandFactory;

use webtwin_base::console::print;
use webtwin_base::error::Result;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Shell to complete in
    shell: clap_complete::Shell,
}

pub(super) fn run(args: Args) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::CommandLine::command(), "webtwin", &mut script);
    print(|out| out.write_all(&script))
}
