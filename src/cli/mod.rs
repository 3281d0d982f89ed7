//! The command line: one file a command, each an arguments struct and a function that returns an exit code.
