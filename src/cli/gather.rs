//! `admit gather`: runs one gathering and exits, in the container of a gathering Job or by hand.

use std::path::PathBuf;

use clap::Args;
use tokio_util::sync::CancellationToken;

use super::Exit;
use super::client::client;
use super::datagather_flags::DataGatherArgs;
use super::process::{self, Fault, GRACE, Threads};
use super::value_parsers::name;
use crate::controllers::datagather;
use crate::gather::upload::Template;
use crate::telemetry::LogFormat;

/// Arguments of `admit gather`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  admit gather sample --archive-dir /tmp/archives")]
pub(super) struct GatherArgs {
    /// Name of the DataGather to run
    #[arg(value_name = "NAME", env = "DATAGATHER_NAME", value_parser = name)]
    name: String,

    /// Kubeconfig that selects the cluster and the user [default: KUBECONFIG, ~/.kube/config, or the Pod's service account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Format of log lines
    #[arg(long, value_enum, default_value_t)]
    log_format: LogFormat,

    #[command(flatten)]
    gathering: DataGatherArgs,

    /// Use the flags alone: do not read objects of the cluster that configure gatherings
    #[arg(long, hide = true)]
    configured: bool,

    /// URL to query the status of an upload at, with %s for the cluster and %s for the request
    #[arg(long, value_name = "URL", hide = true)]
    processing_status_url: Option<Template>,
}

impl GatherArgs {
    pub(super) fn run(self) -> Exit {
        process::run(Threads::Work, self.log_format, GRACE, |shutdown| self.gather(shutdown))
    }

    async fn gather(self, shutdown: CancellationToken) -> Result<(), Fault> {
        let client = client(self.kubeconfig).await?;
        let mut settings = self.gathering.settings("archives".as_ref());
        settings.follow_cluster = !self.configured;
        if let Some(upload) = &mut settings.upload {
            upload.status = self.processing_status_url;
        }
        datagather::run_one(client, settings, &self.name, shutdown).await.map_err(Fault::usage)
    }
}
