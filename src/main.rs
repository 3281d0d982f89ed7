//! The `admit` binary: arguments in, exit code out.

use std::process::ExitCode;

fn main() -> ExitCode {
    admit::cli::run(std::env::args_os()).into()
}
