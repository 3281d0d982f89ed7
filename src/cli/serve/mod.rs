//! `admit serve`: the webhook, for a cluster whose API server calls it.
//!
//! ```text
//! policies (folder) ──changes──► InForce ─┐
//! certificates (files) ─changes─► TLS ────┼──► webhook port     observe port: /metrics /livez /readyz /policies
//! ```

mod certificates;
mod changes;
mod policies;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::certificates::{Callers, Files};
use self::policies::Sources;
use super::Exit;
use super::process::{self, Fault};
use crate::admission::{self, Admission, Observed, Port, Shutdown, Workers};
use crate::controllers::kit::tasks::Supervisor;
use crate::telemetry::{LogFormat, Metrics, Readiness};

/// Arguments of `admit serve`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  admit serve --policies policies --tls-cert tls.crt --tls-key tls.key --listen 127.0.0.1:8443"
)]
pub(super) struct ServeArgs {
    /// Folder or file with policies, bindings, params and CustomResourceDefinitions; loaded again when it changes
    #[arg(long, value_name = "PATH", default_value = "policies")]
    policies: PathBuf,

    /// Address of the webhook; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8443")]
    listen: SocketAddr,

    /// Address of /metrics, /livez, /readyz and /policies, over plain HTTP; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8081")]
    observe_listen: SocketAddr,

    /// Seconds that a request may take at most; less where the API server waits less
    #[arg(long, value_name = "SECONDS", default_value_t = 8)]
    timeout: u64,

    /// Seconds to go on serving after SIGTERM, not ready any more, until callers have learnt of it
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    shutdown_delay: u64,

    /// How log lines are written
    #[arg(long, value_enum, default_value_t)]
    log_format: LogFormat,

    #[command(flatten)]
    tls: TlsArgs,
}

/// What was typed about certificates.
#[derive(Debug, Args)]
#[command(next_help_heading = "TLS")]
struct TlsArgs {
    /// PEM file with the serving certificate and its chain; read again when it changes
    #[arg(long, value_name = "FILE")]
    tls_cert: PathBuf,

    /// PEM file with the certificate's key
    #[arg(long, value_name = "FILE")]
    tls_key: PathBuf,

    /// Oldest version of TLS that is spoken
    #[arg(long, value_enum, default_value_t)]
    tls_min_version: TlsVersion,

    /// PEM file with the authority of clients: nobody else may call [default: everyone may]
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,

    /// Common name of a client that may call; may be repeated [default: all of the authority]
    #[arg(long, value_name = "NAME", requires = "client_ca")]
    client_subject: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum TlsVersion {
    /// TLS 1.2 with authenticated encryption, and 1.3
    #[value(name = "1.2")]
    Tls12,
    /// TLS 1.3 alone
    #[default]
    #[value(name = "1.3")]
    Tls13,
}

impl ServeArgs {
    pub(super) fn run(self) -> Exit {
        process::run(self.log_format, |shutdown| self.serve(shutdown))
    }

    async fn serve(self, shutdown: CancellationToken) -> Result<(), Fault> {
        // Everything that can be wrong with files is found before anything listens.
        let sources = Sources { folder: self.policies.clone() };
        let set = sources.load()?;
        let files = self.tls.files();
        let (tls, config) = files.load()?;
        let listener = process::listen(self.listen, "--listen").await?;
        let observe = process::listen(self.observe_listen, "--observe-listen").await?;
        let (address, observed) = (local(&listener)?, local(&observe)?);

        let (metrics, readiness) = (Arc::new(Metrics::default()), Readiness::default());
        policies::announce(&set, &metrics);
        let (in_force, policies) = watch::channel(Arc::new(set));
        let (configs, config) = watch::channel(Arc::new(config));
        let admission = Admission {
            policies: policies.clone(),
            cluster: None,
            workers: Workers::start().map_err(Fault::internal)?,
            metrics: metrics.clone(),
            readiness: readiness.clone(),
            timeout: Duration::from_secs(self.timeout),
        };
        let router = admission.router();
        let webhook = Port { listener, tls: Some(config), router, metrics: metrics.clone() };
        let observed_router =
            Observed { policies, metrics: metrics.clone(), readiness: readiness.clone() }.router();
        let observe =
            Port { listener: observe, tls: None, router: observed_router, metrics: metrics.clone() };

        let linger = Duration::from_secs(self.shutdown_delay);
        let mut parts = Supervisor::new(shutdown.clone());
        let stop = Shutdown { asked: shutdown.clone(), linger };
        let serving = admission::serve(webhook, stop.clone());
        parts.part("webhook", async { serving.await.map_err(Fault::internal) });
        let serving = admission::serve(observe, stop);
        parts.part("observe", async { serving.await.map_err(Fault::internal) });
        parts.part("policies", policies::keep(sources, in_force, metrics.clone(), shutdown.clone()));
        parts
            .part("certificates", certificates::keep(files, tls, configs, metrics.clone(), shutdown.clone()));
        parts.part("readiness", tell_readiness(readiness, metrics, shutdown));
        tracing::info!(%address, observe = %observed, "serving");
        parts.join().await.map_err(Fault::internal)
    }
}

impl TlsArgs {
    fn files(&self) -> Files {
        let callers = Callers {
            authority: self.client_ca.clone(),
            subjects: self.client_subject.clone(),
            tls12: self.tls_min_version == TlsVersion::Tls12,
        };
        Files { certificate: self.tls_cert.clone(), key: self.tls_key.clone(), callers }
    }
}

/// Ready from the start, which comes after everything was loaded, until the process is asked to stop: callers are to
/// go elsewhere before the port closes.
async fn tell_readiness(
    readiness: Readiness,
    metrics: Arc<Metrics>,
    shutdown: CancellationToken,
) -> Result<(), Fault> {
    for part in ["policies", "certificate"] {
        readiness.set(part, true);
        metrics.ready(part, true);
    }
    readiness.set("shutdown", true);
    shutdown.cancelled().await;
    readiness.set("shutdown", false);
    metrics.ready("shutdown", false);
    Ok(())
}

fn local(listener: &tokio::net::TcpListener) -> Result<SocketAddr, Fault> {
    listener.local_addr().map_err(Fault::internal)
}
