//! The exit codes of the program: one list for manual pages, documentation and `--retries`.

/// Exit code of the program and its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitCode {
    /// The code that the shell receives.
    pub code: u8,
    /// Meaning in plain text: one sentence, or several.
    pub meaning: &'static str,
    /// Link to the documentation in Markdown, relative to `docs/`; empty for none.
    pub see: &'static str,
    /// True if the same command may succeed when it is started again.
    pub is_retryable: bool,
}

const fn ends(code: u8, meaning: &'static str, link: &'static str) -> ExitCode {
    ExitCode { code, meaning, see: link, is_retryable: false }
}

const fn passes(code: u8, meaning: &'static str) -> ExitCode {
    ExitCode { code, meaning, see: "", is_retryable: true }
}

/// Every exit code, ascending.
pub const EXIT_CODES: [ExitCode; 14] = [
    ends(0, "Success.", ""),
    ends(2, "The command line, job file or cluster file is wrong, or processes do not belong together.", ""),
    ends(
        3,
        "An input is missing, has an unknown format, or changed while it was read; a folder is not a result, or names \
         files outside of it; or a state is damaged.",
        "",
    ),
    ends(
        4,
        "Another run has already committed to this output, or has added the next generation to the state before. \
         The result of the other run is kept.",
        "",
    ),
    ends(
        5,
        "An input has more damaged records than input.max_bad allows, or a scheduled crawl has too few pages.",
        "[damage](input.md#damage), [failed crawls](recrawl.md#a-crawl-in-which-most-of-the-web-failed)",
    ),
    passes(
        6,
        "The store did not confirm whether the result was committed. The next run completes the commit and ends \
         with exit code 4, or computes the result again.",
    ),
    passes(7, "A process was lost, or did not join in time."),
    passes(8, "Reading from or writing to a store failed."),
    ends(
        9,
        "Memory, disk space, threads or page numbers are insufficient. The message gives the remedy, with the setting \
         and the value if there is one.",
        "",
    ),
    ends(
        10,
        "Nothing to do: no input of a scheduled job has changed, or its result is at the output already.",
        "[runs with a state](recrawl.md#live-inputs)",
    ),
    ends(70, "The program has a defect.", ""),
    ends(130, "Stopped by Ctrl-C (SIGINT).", ""),
    passes(
        137,
        "Killed by the system (SIGKILL), for example because memory is short. The program never returns this code.",
    ),
    ends(143, "Stopped by SIGTERM.", ""),
];

/// Returns the table of exit codes as Markdown.
pub fn exit_code_table() -> String {
    let row = |exit: &ExitCode| {
        let retry_text = if exit.is_retryable { "yes" } else { "no" };
        let see_text = if exit.see.is_empty() { String::new() } else { format!(" See {}.", exit.see) };
        format!("| {} | {}{see_text} | {retry_text} |\n", exit.code, exit.meaning)
    };
    let head = "| code | meaning | start again |\n|---|---|---|\n";
    head.to_string() + &EXIT_CODES.iter().map(row).collect::<String>()
}
