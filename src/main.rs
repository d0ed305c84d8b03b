//! Parses the command line, runs it, turns an error into an exit code.

webtwin::cli::program!(webtwin::cli::CommandLine);
