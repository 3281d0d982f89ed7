//! `admit serve`: the webhook alone, as a cluster runs it: stateless, policies and certificate from files.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Exit;
use super::load;
use super::process::{self, Fault};
use crate::admission::tls::{Identity, server_config};
use crate::admission::{self, Admission, InForce, NoCluster, Port, Shutdown, Workers};
use crate::telemetry::{LogFormat, Metrics, Readiness};

/// Arguments of `admit serve`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  admit serve --policies policies --tls-cert tls.crt --tls-key tls.key --listen 127.0.0.1:8443"
)]
pub(super) struct ServeArgs {
    /// Folder or file with policies, bindings and params
    #[arg(long, value_name = "PATH", default_value = "policies")]
    policies: PathBuf,

    /// PEM file with the serving certificate and its chain
    #[arg(long, value_name = "FILE")]
    tls_cert: PathBuf,

    /// PEM file with the certificate's key
    #[arg(long, value_name = "FILE")]
    tls_key: PathBuf,

    /// Address of the webhook
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8443")]
    listen: SocketAddr,

    /// How log lines are written
    #[arg(long, value_enum, default_value_t)]
    log_format: LogFormat,
}

impl ServeArgs {
    pub(super) fn run(self) -> Exit {
        process::run(self.log_format, |shutdown| self.serve(shutdown))
    }

    async fn serve(self, shutdown: CancellationToken) -> Result<(), Fault> {
        let policies = load::policies(&[&self.policies])?;
        let identity = Identity { certificate_pem: read(&self.tls_cert)?, key_pem: read(&self.tls_key)? };
        let tls = server_config(&identity, None).map_err(|error| {
            let (certificate, key) = (self.tls_cert.display(), self.tls_key.display());
            Fault::usage(format!("`{certificate}` and `{key}`: {error}"))
        })?;
        let listener = process::listen(self.listen, "--listen").await?;
        tracing::info!(address = %self.listen, policies = policies.policies().count(), "serving");
        let metrics = Arc::new(Metrics::default());
        let readiness = Readiness::default();
        readiness.set("policies", true);
        let admission = Admission {
            policies: watch::channel(Arc::new(InForce::new(Arc::new(policies), String::new()))).1,
            cluster: Arc::new(NoCluster),
            workers: Workers::start().map_err(Fault::internal)?,
            metrics: metrics.clone(),
            readiness,
        };
        let port = Port {
            listener,
            tls: Some(watch::channel(Arc::new(tls)).1),
            router: admission.router(),
            metrics,
        };
        let shutdown = Shutdown { asked: shutdown, linger: Duration::ZERO };
        admission::serve(port, shutdown).await.map_err(Fault::internal)
    }
}

fn read(path: &Path) -> Result<String, Fault> {
    fs::read_to_string(path)
        .map_err(|error| Fault::usage(format!("cannot read `{}`: {error}", path.display())))
}
