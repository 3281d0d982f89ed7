//! `admit controllers`: the controllers against a cluster, one replica at a time under a Lease.

use std::path::PathBuf;

use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio_util::sync::CancellationToken;

use super::Exit;
use super::gathering::GatheringArgs;
use super::process::{self, Fault};
use crate::controllers::datagather;
use crate::controllers::kit::lease::Election;
use crate::telemetry::LogFormat;

/// The Lease that the replicas contend for.
const LEASE: &str = "admit-controllers";

/// Arguments of `admit controllers`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  admit controllers --kubeconfig ~/.kube/config --archive-dir /tmp/archives"
)]
pub(super) struct ControllersArgs {
    /// Which cluster, and as whom [default: KUBECONFIG, ~/.kube/config, or the Pod's service account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Namespace of the Lease
    #[arg(long, value_name = "NAMESPACE", default_value = "default")]
    lease_namespace: String,

    /// How log lines are written
    #[arg(long, value_enum, default_value_t)]
    log_format: LogFormat,

    #[command(flatten)]
    gathering: GatheringArgs,
}

impl ControllersArgs {
    pub(super) fn run(self) -> Exit {
        process::run(self.log_format, |shutdown| self.work(shutdown))
    }

    async fn work(self, shutdown: CancellationToken) -> Result<(), Fault> {
        let client = client(self.kubeconfig).await?;
        let mut settings = self.gathering.settings("archives".as_ref());
        settings.lease = Some(Election::new(&self.lease_namespace, LEASE, &identity()));
        datagather::run(client, settings, shutdown).await.map_err(Fault::usage)
    }
}

/// A name that no other replica has: the Pod's where there is one.
fn identity() -> String {
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "admit".to_owned());
    format!("{host}_{}", uuid::Uuid::new_v4())
}

async fn client(kubeconfig: Option<PathBuf>) -> Result<Client, Fault> {
    let config = match kubeconfig {
        None => Config::infer().await.map_err(|error| {
            Fault::usage(format!("no cluster is configured: {error}; name a kubeconfig with --kubeconfig"))
        })?,
        Some(path) => {
            let unusable = |error: &dyn std::fmt::Display| {
                Fault::usage(format!("cannot use the kubeconfig `{}`: {error}", path.display()))
            };
            let file = Kubeconfig::read_from(&path).map_err(|error| unusable(&error))?;
            let options = KubeConfigOptions::default();
            Config::from_custom_kubeconfig(file, &options).await.map_err(|error| unusable(&error))?
        }
    };
    Client::try_from(config).map_err(|error| Fault::usage(format!("cannot make a client: {error}")))
}
