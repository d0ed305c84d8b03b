//! A program: how it starts, and how what its command line says becomes an exit code.

use std::process::ExitCode;

use clap::{Args, Parser, ValueEnum};
use nix::sys::signal::{SigSet, Signal};

use webtwin_base::console::{ended, is_json, tell, tell_in_json, tell_object};
use webtwin_base::error;
use webtwin_base::{build_info, heap};
use webtwin_pages::helper;

use super::{print_text, signals};

/// The command line of a program.
pub trait Program: Parser {
    /// Arguments of every command.
    fn stderr(&self) -> &StderrArgs;

    /// Runs the command.
    ///
    /// # Errors
    /// Those of the command.
    fn run(self) -> error::Result<()>;
}

/// Arguments of every command of every program.
#[derive(Debug, Args)]
pub struct StderrArgs {
    /// Form of messages on stderr: lines of text, or one JSON object a line
    #[arg(long, value_enum, default_value = "text", global = true)]
    log: Log,
}

/// What stderr is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Log {
    /// Lines, and on a terminal one of progress
    Text,
    /// Objects: `level` and `message`; `stage` and counts of progress; `exit_code` of an error
    Json,
}

/// Defines `main` and the allocator of a program with this command line.
///
/// The macro reads the commit where it is expanded: only programs are compiled again when git's HEAD or index change.
#[macro_export]
macro_rules! program {
    ($line:ty) => {
        #[global_allocator]
        static HEAP: $crate::heap::Heap = $crate::heap::Heap;

        fn main() -> std::process::ExitCode {
            $crate::program::main::<$line>($crate::git_version!(
                args = ["--always", "--exclude=*", "--abbrev=12", "--dirty=-dirty"],
                fallback = "unknown commit"
            ))
        }
    };
}

/// Parses the process's arguments and runs the command; the exit code is the contract's.
///
/// `commit` is the commit that the program is built from, with `-dirty` after it if the tree held more.
pub fn main<P: Program>(commit: &str) -> ExitCode {
    // A file that grows beyond `ulimit -f` is then an error like others, and not the end of the process without a word.
    // All threads inherit it; if it cannot be set, the signal ends the process as before.
    let _ = SigSet::from(Signal::SIGXFSZ).thread_block();
    build_info::built_from(commit);
    let ended = match parse::<P>() {
        Ok(Parsed::Document(args)) => print_text::run(args),
        Ok(Parsed::Line(line)) => {
            if line.stderr().log == Log::Json {
                tell_in_json();
            }
            signals::listen();
            // Documents made for paper are read by this program in processes of their own.
            if let Ok(program) = std::env::current_exe() {
                helper::use_program(program);
            }
            heap::end_in_order().and_then(|()| line.run())
        }
        // Help and version, for stdout.
        Err(asked) if !asked.use_stderr() => ended(asked.print()),
        Err(wrong) => {
            if asks_for_json(std::env::args()) {
                tell_in_json();
                tell_failure(wrong.render().to_string().trim_start_matches("error: ").trim(), 2);
            } else {
                // Nobody to tell is no reason to fail in another way.
                let _ = wrong.print();
            }
            return ExitCode::from(2);
        }
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell_failure(&error.to_string(), error.exit_code());
            ExitCode::from(error.exit_code())
        }
    }
}

/// What a program is started for.
enum Parsed<P> {
    /// As the helper process of another one of it.
    Document(print_text::Args),
    Line(P),
}

/// Parses the process's arguments. The helper process is no command: people do not call it.
fn parse<P: Program>() -> Result<Parsed<P>, clap::Error> {
    let arguments = || std::env::args_os();
    if arguments().nth(1).is_some_and(|first| first == helper::COMMAND) {
        return print_text::Args::try_parse_from(arguments().skip(1)).map(Parsed::Document);
    }
    P::try_parse_from(arguments()).map(Parsed::Line)
}

/// Tells why the process ends.
fn tell_failure(message: &str, code: u8) {
    match is_json() {
        true => tell_object(serde_json::json!({ "level": "error", "message": message, "exit_code": code })),
        false => tell(format_args!("error: {message}")),
    }
}

/// Whether arguments that cannot be parsed ask for JSON all the same.
fn asks_for_json(arguments: impl Iterator<Item = String>) -> bool {
    let arguments: Vec<String> = arguments.collect();
    arguments.windows(2).any(|pair| pair == ["--log", "json"]) || arguments.iter().any(|one| one == "--log=json")
}
