//! Program `webtwin`: parses the command line, runs the command, and converts an error into an exit
//! code.

webtwin::cli::program!(webtwin::cli::CommandLine);
