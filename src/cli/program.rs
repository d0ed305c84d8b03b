//! Entry point of a program: start-up, and the conversion of the command's result into an exit
//! code.

use std::process::ExitCode;

use clap::{Args, Parser, ValueEnum};
use nix::sys::signal::{SigSet, Signal};

use webtwin_base::console::{ended, is_json, notify, notify_object, use_json};
use webtwin_base::error;
use webtwin_base::{build_info, heap};
use webtwin_pages::helper;

use super::{print_text, signals};

/// Command line of a program.
pub trait Program: Parser {
    /// Returns the arguments that every command has.
    fn stderr(&self) -> &StderrArgs;

    /// Runs the command.
    ///
    /// # Errors
    /// Returns any error of the command.
    fn run(self) -> error::Result<()>;
}

/// Arguments of every command of every program.
#[derive(Debug, Args)]
pub struct StderrArgs {
    /// Format of messages on stderr
    #[arg(long, value_enum, default_value = "text", global = true)]
    log: Log,
}

/// Format of the lines on stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Log {
    /// Lines of text, and a progress line on a terminal
    Text,
    /// One JSON object a line, with `level` and `message`, counts of a `stage`, or an `exit_code`
    Json,
}

/// Defines `main` and the allocator of a program with this command line.
///
/// The macro reads the commit where it is expanded. So only programs are compiled again when git's
/// HEAD or index changes.
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

/// Parses the arguments of the process and runs the command. Returns the exit code of the result.
///
/// `commit` is the commit from which the program is built, followed by `-dirty` if the working tree
/// differs.
pub fn main<P: Program>(commit: &str) -> ExitCode {
    // A file that grows beyond `ulimit -f` then causes an error like others, instead of a silent
    // end of the process. All threads inherit the mask. If it cannot be set, the signal ends the
    // process as before.
    let _ = SigSet::from(Signal::SIGXFSZ).thread_block();
    build_info::built_from(commit);
    let outcome = match parse::<P>() {
        Ok(Parsed::Document(args)) => print_text::run(args),
        Ok(Parsed::Line(line)) => {
            if line.stderr().log == Log::Json {
                use_json();
            }
            signals::listen();
            // The program reads printed documents, such as PDF, in helper processes of its own
            // executable.
            if let Ok(program) = std::env::current_exe() {
                helper::use_program(program);
            }
            heap::end_in_order().and_then(|()| line.run())
        }
        // Help and version, for stdout.
        Err(help) if !help.use_stderr() => ended(help.print()),
        Err(usage_error) => {
            let text = usage_error.render().to_string();
            let rewritten_text = in_words_of_users(&text);
            if asks_for_json(std::env::args()) {
                use_json();
                report_failure(rewritten_text.trim_start_matches("error: ").trim(), 2);
            } else if rewritten_text != text {
                notify(format_args!("{}", rewritten_text.trim_end()));
            } else {
                // If stderr is closed, the exit code remains the same.
                let _ = usage_error.print();
            }
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report_failure(&error.to_string(), error.exit_code());
            ExitCode::from(error.exit_code())
        }
    }
}

/// Returns a message about the command line, with words of users for those of the standard library
/// about numbers.
fn in_words_of_users(message: &str) -> String {
    const WORDS: [(&str, &str); 6] = [
        (": invalid digit found in string\n", ": must be a whole number\n"),
        (": cannot parse integer from empty string\n", ": must be a whole number\n"),
        (": number too large to fit in target type\n", ": must be a smaller number\n"),
        (": number too small to fit in target type\n", ": must be a larger number\n"),
        (": invalid float literal\n", ": must be a number\n"),
        (": cannot parse float from empty string\n", ": must be a number\n"),
    ];
    let message = WORDS.iter().fold(message.to_string(), |text, (from, to)| text.replacen(from, to, 1));
    // "'0' for '--workers <N>': 0 is not in 1..=65535"
    let (line, rest) = message.split_once('\n').unwrap_or((&message, ""));
    let Some((option, Some((_, range)))) =
        line.rsplit_once(": ").map(|(option, cause)| (option, cause.split_once(" is not in ")))
    else {
        return message;
    };
    let Some((first, last)) = range.split_once("..=") else { return message };
    format!("{option}: must be a whole number from {first} to {last}\n{rest}")
}

/// Purpose for which a program was started.
enum Parsed<P> {
    /// Helper process of another instance.
    Document(print_text::Args),
    Line(P),
}

/// Parses the arguments of the process. The helper process is not a command, because users do not
/// call it.
fn parse<P: Program>() -> Result<Parsed<P>, clap::Error> {
    let arguments = || std::env::args_os();
    if arguments().nth(1).is_some_and(|first| first == helper::COMMAND) {
        return print_text::Args::try_parse_from(arguments().skip(1)).map(Parsed::Document);
    }
    P::try_parse_from(arguments()).map(Parsed::Line)
}

/// Reports why the process ends.
fn report_failure(message: &str, code: u8) {
    match is_json() {
        true => notify_object(serde_json::json!({ "level": "error", "message": message, "exit_code": code })),
        false => notify(format_args!("error: {message}")),
    }
}

/// True if arguments that cannot be parsed request JSON output.
fn asks_for_json(arguments: impl Iterator<Item = String>) -> bool {
    let arguments: Vec<String> = arguments.collect();
    arguments.windows(2).any(|pair| pair == ["--log", "json"]) || arguments.iter().any(|one| one == "--log=json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_options_are_in_words_of_users() {
        #[derive(Debug, clap::Parser)]
        #[command(no_binary_name = true)]
        struct Options {
            #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
            workers: Option<u16>,
            #[arg(long, value_name = "N")]
            limit: Option<usize>,
            #[arg(long, value_name = "SHARE")]
            max_bad: Option<f64>,
        }
        let message = |option: &str| {
            let text = Options::try_parse_from([option]).unwrap_err().render().to_string();
            in_words_of_users(&text).lines().next().unwrap().to_string()
        };
        for (option, cause) in [
            ("--workers=0", "'0' for '--workers <N>': must be a whole number from 1 to 4096"),
            ("--workers=x", "'x' for '--workers <N>': must be a whole number"),
            ("--limit=99999999999999999999999", "for '--limit <N>': must be a smaller number"),
            ("--limit=1e9", "'1e9' for '--limit <N>': must be a whole number"),
            ("--max-bad=x", "'x' for '--max-bad <SHARE>': must be a number"),
        ] {
            assert!(message(option).ends_with(cause), "{option}: {}", message(option));
        }
        let unknown = Options::try_parse_from(["--other"]).unwrap_err().render().to_string();
        assert_eq!(in_words_of_users(&unknown), unknown);
    }
}
