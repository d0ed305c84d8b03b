//! The program `webtwin-lab`: parses the command line, runs the command, and turns an error into an
//! exit code.

webtwin_cli::program!(webtwin_lab::CommandLine);
