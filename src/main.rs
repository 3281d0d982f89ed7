//! Runs the `admit` binary: passes the arguments to `cli` and returns the exit code.

use std::process::ExitCode;

/// Replaces musl's allocator, as in the image: it has one lock for all threads, and reviews allocate on every thread.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    admit::cli::run(std::env::args_os()).into()
}
