//! `admit must-gather`: collects what a cluster serves into the layout of must-gather images, as the command of a Job
//! or by hand.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;

use crate::cli::Exit;
use crate::cli::client::client;
use crate::cli::process::{self, Fault, GRACE, Threads};
use crate::cli::value_parsers::{duration, folder, time};
use crate::gather::must_gather::collect::{CollectError, Teller, Wanted, collect};
use crate::gather::must_gather::wrapper::{LOG, LOGGED};
use crate::telemetry::LogFormat;

/// Arguments of `admit must-gather`.
#[derive(Debug, Args)]
#[command(after_help = "\
Secrets are collected without their data. Custom resources and ConfigMaps are collected whole.

Example:
  admit must-gather --output ./must-gather --since 2h")]
pub(in crate::cli) struct CollectArgs {
    /// Folder to write the collected data to
    #[arg(long, value_name = "DIR", default_value = "must-gather")]
    output: PathBuf,

    /// Name of the subfolder for the data, so that must-gathers of several images can share the output folder
    #[arg(long, value_name = "NAME", default_value = "admit", value_parser = folder)]
    name: String,

    /// Also collect the audit logs of the nodes that serve the API
    #[arg(long)]
    audit: bool,

    /// Collect only log lines newer than this duration, for example 2h or 30m
    #[arg(long, value_name = "DURATION", env = "MUST_GATHER_SINCE", value_parser = duration, hide_env_values = true)]
    since: Option<SignedDuration>,

    /// Collect only log lines newer than this time, for example 2026-01-02T03:04:05Z
    #[arg(
        long,
        value_name = "TIME",
        env = "MUST_GATHER_SINCE_TIME",
        value_parser = time,
        conflicts_with = "since",
        hide_env_values = true
    )]
    since_time: Option<Timestamp>,

    /// Kubeconfig that selects the cluster and the user [default: KUBECONFIG, ~/.kube/config, or the Pod's service account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Format of log lines
    #[arg(long, value_enum, default_value_t)]
    log_format: LogFormat,
}

impl CollectArgs {
    pub(in crate::cli) fn run(self) -> Exit {
        process::run(Threads::Work, self.log_format, GRACE, |shutdown| self.work(shutdown))
    }

    async fn work(self, shutdown: CancellationToken) -> Result<(), Fault> {
        let client = client(self.kubeconfig.clone()).await?;
        let since =
            self.since.map(|ago| Timestamp::now().saturating_sub(ago)).transpose().map_err(Fault::usage)?;
        let wanted = Wanted {
            folder: self.output.join(&self.name),
            audit: self.audit,
            since: since.or(self.since_time),
        };
        let teller = self.teller()?;
        tokio::select! {
            collected = collect(&client, &wanted, &teller) => collected.map(drop).map_err(|error| match error {
                CollectError::Discovery(_) => Fault::usage(error),
                CollectError::Disk { .. } => Fault::internal(error),
            }),
            () = shutdown.cancelled() => Err(Fault::internal("asked to stop before all was collected")),
        }
    }

    /// Returns the writer of log lines: standard output and the log file, unless the caller keeps the log file itself.
    fn teller(&self) -> Result<Teller, Fault> {
        if std::env::var_os(LOGGED).is_some() {
            return Ok(Teller::new(io::stdout()));
        }
        let path = self.output.join(LOG);
        let failed = |error| Fault::usage(format!("cannot write `{}`: {error}", path.display()));
        fs::create_dir_all(&self.output).map_err(failed)?;
        let file = fs::File::create(&path).map_err(failed)?;
        Ok(Teller::new(Both { file }))
    }
}

/// Writes to the log file and to standard output.
struct Both {
    file: fs::File,
}

impl Write for Both {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.file.write_all(line)?;
        io::stdout().write_all(line)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}
