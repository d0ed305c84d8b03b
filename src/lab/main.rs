//! The laboratory: parses the command line, runs it, turns an error into an exit code.

webtwin_cli::program!(webtwin_lab::CommandLine);
