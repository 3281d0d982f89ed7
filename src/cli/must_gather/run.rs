//! `admit run-gather`: runs a gathering command of any image with a time limit, keeps its output and marks its end.
//! An init container copies this program into a volume of the image's container.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tokio_util::sync::CancellationToken;

use crate::cli::Exit;
use crate::cli::process::{self, Fault, GRACE, Threads};
use crate::gather::must_gather::wrapper::{self, Wanted};
use crate::telemetry::LogFormat;

/// Arguments of `admit run-gather`.
#[derive(Debug, Args)]
pub(in crate::cli) struct RunArgs {
    /// Copy this program to FILE and do nothing else
    #[arg(long, value_name = "FILE", conflicts_with_all = ["output", "state", "timeout", "command"])]
    copy_to: Option<PathBuf>,

    /// Folder that the command fills; its output goes to must-gather.log there
    #[arg(long, value_name = "DIR", default_value = "/must-gather")]
    output: PathBuf,

    /// Folder in which the end of the command is marked
    #[arg(long, value_name = "DIR", default_value = "/run/must-gather")]
    state: PathBuf,

    /// Time limit for the command in seconds; 0 for none
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    timeout: u64,

    /// Format of log lines
    #[arg(long, value_enum, default_value_t)]
    log_format: LogFormat,

    /// Command to run, and its arguments
    #[arg(value_name = "COMMAND", last = true, required_unless_present = "copy_to")]
    command: Vec<String>,
}

impl RunArgs {
    pub(in crate::cli) fn run(self) -> Exit {
        process::run(Threads::Carry, self.log_format, GRACE, |shutdown| self.work(shutdown))
    }

    async fn work(self, shutdown: CancellationToken) -> Result<(), Fault> {
        let Self { copy_to, output, state, timeout, log_format: _, command } = self;
        if let Some(to) = copy_to {
            let copied = std::env::current_exe().and_then(|program| fs::copy(program, &to));
            let failed =
                |error| Fault::internal(format!("cannot copy this program to `{}`: {error}", to.display()));
            return copied.map(drop).map_err(failed);
        }
        let limit = (timeout > 0).then(|| Duration::from_secs(timeout));
        let (folder, marks) = (output.display().to_string(), state.display().to_string());
        let wanted = Wanted { command, output, state, limit };
        let ended = wrapper::run(wanted, shutdown, io::stdout())
            .await
            .map_err(|error| Fault::internal(format!("cannot write to `{folder}` or `{marks}`: {error}")))?;
        if ended.is_kept() {
            if ended.is_out_of_time() {
                process::remark("Gather timed out.\n");
            }
            return Ok(());
        }
        let message = format!("the command ended with exit status {}", ended.code);
        Err(Fault { exit: Exit::Differs, ..Fault::usage(message) })
    }
}
