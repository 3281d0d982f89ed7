//! The serving certificate and the client authority from files, taken anew when the files change. A pair that does not
//! fit together, such as one of which half has been written, changes nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use time::OffsetDateTime;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::super::process::Fault;
use super::changes::Changes;
use crate::admission::tls::{Clients, Identity, TlsConfigError, WebhookTls};
use crate::telemetry::Metrics;

/// Where certificates are, and what goes with them.
#[derive(Clone, Debug)]
pub(super) struct Files {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    pub(super) callers: Callers,
}

/// Who may call, and how.
#[derive(Clone, Debug, Default)]
pub(super) struct Callers {
    pub(super) authority: Option<PathBuf>,
    pub(super) subjects: Vec<String>,
    pub(super) tls12: bool,
}

impl Callers {
    /// The settings of a port that shows `identity`.
    ///
    /// # Errors
    /// When the file of the client authority cannot be read.
    pub(super) fn tls(&self, identity: Identity) -> Result<WebhookTls, Fault> {
        let clients = match &self.authority {
            None => None,
            Some(path) => {
                Some(Clients { ca_pem: read("--client-ca", path)?, subjects: self.subjects.clone() })
            }
        };
        Ok(WebhookTls { identity, clients, tls12: self.tls12 })
    }

    /// What is to be mended about the client authority, if that is what `error` is about.
    pub(super) fn unusable(&self, error: &TlsConfigError) -> Option<Fault> {
        match (error, &self.authority) {
            (TlsConfigError::Clients(_), Some(path)) => {
                Some(Fault::usage(format!("--client-ca: `{}` {error}", path.display())))
            }
            _ => None,
        }
    }
}

impl Files {
    /// # Errors
    /// What cannot be read, or does not fit together.
    pub(super) fn load(&self) -> Result<(WebhookTls, ServerConfig), Fault> {
        let identity = Identity {
            certificate_pem: read("--tls-cert", &self.certificate)?,
            key_pem: read("--tls-key", &self.key)?,
        };
        let tls = self.callers.tls(identity)?;
        let config = tls.config_at(OffsetDateTime::now_utc()).map_err(|error| self.unusable(&error))?;
        Ok((tls, config))
    }

    /// Names the file that is to be mended.
    fn unusable(&self, error: &TlsConfigError) -> Fault {
        if let Some(fault) = self.callers.unusable(error) {
            return fault;
        }
        let (certificate, key) = (self.certificate.display(), self.key.display());
        Fault::usage(match error {
            TlsConfigError::NoKey => format!("--tls-key: `{key}` {error}"),
            TlsConfigError::NoCertificate | TlsConfigError::Expired(_) => {
                format!("--tls-cert: `{certificate}` {error}")
            }
            _ => format!("--tls-cert and --tls-key: `{certificate}` and `{key}` {error}"),
        })
    }

    fn paths(&self) -> impl Iterator<Item = &Path> {
        [&self.certificate, &self.key].into_iter().chain(&self.callers.authority).map(PathBuf::as_path)
    }
}

/// Loads again whenever something changed, until `shutdown`. `current` is what `sender` was made with.
pub(super) async fn keep(
    files: Files,
    mut current: WebhookTls,
    sender: watch::Sender<Arc<ServerConfig>>,
    metrics: Arc<Metrics>,
    shutdown: CancellationToken,
) -> Result<(), Fault> {
    let mut complaint = String::new();
    let mut changes = Changes::of(files.paths());
    loop {
        tell_age(&current, &metrics);
        if shutdown.run_until_cancelled(changes.next()).await.is_none() {
            return Ok(());
        }
        match files.load() {
            Ok((tls, _)) if same(&tls, &current) => complaint.clear(),
            Ok((tls, config)) => {
                complaint.clear();
                sender.send_replace(Arc::new(config));
                metrics.reload("certificate", true);
                tracing::info!("the serving certificate or the client authority was replaced");
                current = tls;
            }
            Err(fault) if fault.message == complaint => {}
            Err(fault) => {
                metrics.reload("certificate", false);
                tracing::error!(error = %fault, "certificates do not load; those in use stay");
                complaint = fault.message;
            }
        }
    }
}

/// Days left as a metric.
pub(super) fn tell_age(tls: &WebhookTls, metrics: &Metrics) {
    if let Ok(days) = tls.days_left(OffsetDateTime::now_utc()) {
        metrics.certificate_days_left(days);
    }
}

/// Whether a port shows and asks the same with both.
pub(super) fn same(one: &WebhookTls, other: &WebhookTls) -> bool {
    one.identity.certificate_pem == other.identity.certificate_pem
        && one.identity.key_pem == other.identity.key_pem
        && one.clients == other.clients
}

/// The text of the file that `flag` names.
fn read(flag: &str, path: &Path) -> Result<String, Fault> {
    fs::read_to_string(path)
        .map_err(|error| Fault::usage(format!("{flag}: cannot read `{}`: {error}", path.display())))
}
