//! The `admit` binary: arguments in, exit code out.

use std::process::ExitCode;

/// As in the image: musl's own allocator has one lock for all threads, and a review allocates on whichever thread it came to.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    admit::cli::run(std::env::args_os()).into()
}
