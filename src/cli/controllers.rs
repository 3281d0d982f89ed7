//! `admit controllers`: runs the controllers against a cluster, one replica at a time under a Lease, each with its
//! own service account.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::Exit;
use super::client::{client_with, config, no_client};
use super::controller_selection::{self, ControllerArgs, Told};
use super::cyndi::CyndiArgs;
use super::datagather_flags::{DataGatherArgs, RoundArgs};
use super::gather_job_flags::JobArgs;
use super::must_gather::args::MustGatherArgs;
use super::observability_flags::ObservabilityArgs;
use super::process::{self, Fault, GRACE, Threads};
use super::value_parsers::{address, label};
use crate::admission::{self, Port, Shutdown};
use crate::controllers::kit::lease::Election;
use crate::controllers::kit::manager::Manager;
use crate::controllers::kit::observe::Observed;
use crate::telemetry::LogFormat;

/// The Lease for leader election between replicas.
const LEASE: &str = "admit-controllers";

/// Arguments of `admit controllers`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  admit controllers --kubeconfig ~/.kube/config --archive-dir /tmp/archives"
)]
pub(super) struct ControllersArgs {
    /// Kubeconfig that selects the cluster and the user [default: KUBECONFIG, ~/.kube/config, or the Pod's service account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Namespace of the Lease for leader election
    #[arg(long, value_name = "NAMESPACE", default_value = "default", value_parser = label)]
    lease_namespace: String,

    /// Impersonate the service accounts `admit-CONTROLLER` of this namespace, one for each controller [default: the controllers
    /// act as this process]
    #[arg(long, value_name = "NAMESPACE", value_parser = label)]
    impersonate: Option<String>,

    /// Address to serve /metrics, /healthz, /readyz and /readyz/CONTROLLER on, over plain HTTP; port 0 picks a free one [default:
    /// not served]
    ///
    /// Only operators should be able to reach it.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    metrics_listen: Option<SocketAddr>,

    /// Format of log lines
    #[arg(long, value_enum, default_value_t)]
    log_format: LogFormat,

    #[command(flatten)]
    controlling: ControllerArgs,

    #[command(flatten)]
    gathering: DataGatherArgs,

    #[command(flatten)]
    must_gathers: MustGatherArgs,

    #[command(flatten)]
    add_ons: ObservabilityArgs,

    #[command(flatten)]
    pipelines: CyndiArgs,

    #[command(flatten)]
    jobs: JobArgs,

    #[command(flatten)]
    rounds: RoundArgs,
}

impl ControllersArgs {
    pub(super) fn run(self) -> Exit {
        process::run(Threads::Work, self.log_format, GRACE, |shutdown| self.work(shutdown))
    }

    async fn work(self, shutdown: CancellationToken) -> Result<(), Fault> {
        let observe = self.metrics_listen.map(|address| process::listen(address, "--metrics-listen"));
        let observe = observe.transpose()?;
        let config = config(self.kubeconfig).await?;
        let mut settings = self.gathering.settings("archives".as_ref());
        settings.runner = self.jobs.runner(&self.gathering, self.must_gathers.image());
        self.rounds.apply(&mut settings);
        let election = Election::new(&self.lease_namespace, LEASE, &identity());
        let fence = election.fence.clone();
        let acting = |account: &str| {
            let mut config = config.clone();
            config.auth_info.impersonate =
                self.impersonate.as_ref().map(|namespace| controller_selection::user(namespace, account));
            fence.client(config).map_err(|error| no_client(&error))
        };
        let must_gathers = self.must_gathers.settings(self.gathering.proxy_ca.as_deref())?;
        let (add_ons, mut pipelines) = (self.add_ons.settings()?, self.pipelines.settings()?);
        pipelines.fence = Some(election.fence.clone());
        let told = Told { gathering: settings, must_gathers, add_ons, pipelines };
        let process = client_with(config.clone())?;
        let manager = self.controlling.manager(process, Some(election), &told, acting)?;
        run(manager, observe, shutdown).await
    }
}

/// Runs the controllers until `shutdown`, and serves their metrics and health checks until they have ended.
async fn run(
    manager: Manager,
    observe: Option<TcpListener>,
    shutdown: CancellationToken,
) -> Result<(), Fault> {
    let (observed, ended) = (Observed::of(&manager), CancellationToken::new());
    let stop = shutdown.child_token();
    let watched = async {
        let Some(listener) = observe else { return Ok(()) };
        let address = listener.local_addr().map_err(Fault::internal)?;
        tracing::info!(metrics = %address, "operators may look");
        let port = Port { listener, tls: None, router: observed.router(), metrics: Arc::default() };
        let served = admission::serve(port, Shutdown { asked: ended.clone(), linger: Duration::ZERO }).await;
        // Controllers do not continue when their metrics cannot be served any more.
        stop.cancel();
        served.map_err(Fault::internal)
    };
    let worked = async {
        let worked = manager.run(stop.clone()).await;
        ended.cancel();
        worked.map_err(Fault::usage)
    };
    let (worked, watched) = tokio::join!(worked, watched);
    worked.and(watched)
}

/// Returns a name that is unique among replicas: that of the Pod, if there is one.
fn identity() -> String {
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "admit".to_owned());
    format!("{host}_{}", uuid::Uuid::new_v4())
}
