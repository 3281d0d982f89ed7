//! Loads the serving certificate and the client authority from files, and reloads them when the files change. A
//! certificate that does not match its key, such as one of a half-written pair, changes nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use time::OffsetDateTime;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::super::process::Fault;
use crate::admission::tls::{Clients, Identity, TlsConfigError, WebhookTls};
use crate::cli::sources::changes::Changes;
use crate::outside;
use crate::telemetry::{Metrics, Readiness};

/// The name of the certificate in `/readyz`.
const PART: &str = "certificate";

/// The paths of the certificate, key and client authority.
#[derive(Clone, Debug)]
pub(super) struct Files {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    pub(super) callers: Callers,
}

/// Which clients may connect, and with which TLS versions.
#[derive(Clone, Debug, Default)]
pub(super) struct Callers {
    pub(super) authority: Option<PathBuf>,
    pub(super) subjects: Vec<String>,
    pub(super) tls12: bool,
}

impl Callers {
    /// Creates the TLS settings of a listener that presents `identity`.
    ///
    /// # Errors
    /// When the file of the client authority cannot be read.
    pub(super) async fn tls(&self, identity: Identity) -> Result<WebhookTls, Fault> {
        let clients = match &self.authority {
            None => None,
            Some(path) => {
                let ca_pem = read("--client-ca", path).await?;
                Some(Clients { ca_pem, subjects: self.subjects.clone() })
            }
        };
        Ok(WebhookTls { identity, clients, tls12: self.tls12 })
    }

    /// Returns a fault that names the file of the client authority, if `error` is about that.
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
    /// When a file cannot be read, or certificate and key do not match.
    pub(super) async fn load(&self) -> Result<(WebhookTls, ServerConfig), Fault> {
        let identity = Identity {
            certificate_pem: read("--tls-cert", &self.certificate).await?,
            key_pem: read("--tls-key", &self.key).await?,
        };
        let tls = self.callers.tls(identity).await?;
        let config = tls.config_at(OffsetDateTime::now_utc()).map_err(|error| self.unusable(&error))?;
        Ok((tls, config))
    }

    /// Returns a fault that names the file to be corrected.
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

    /// Returns why `new` should not replace `current` yet: the certificate that clients accept is used.
    fn too_early(&self, new: &WebhookTls, current: &WebhookTls) -> Option<Fault> {
        let now = OffsetDateTime::now_utc();
        let of = |tls: &WebhookTls| tls.trouble_at(now).ok().flatten();
        let (trouble, None) = (of(new)?, of(current)) else { return None };
        let path = self.certificate.display();
        Some(Fault::usage(format!("--tls-cert: `{path}` is {trouble}; set the clock right, or wait")))
    }

    fn paths(&self) -> impl Iterator<Item = &Path> {
        [&self.certificate, &self.key].into_iter().chain(&self.callers.authority).map(PathBuf::as_path)
    }
}

/// Reloads after each change, until `shutdown`. `current` is the initial value of `sender`.
pub(super) async fn keep(
    files: Files,
    mut current: WebhookTls,
    sender: watch::Sender<Arc<ServerConfig>>,
    told: Told,
    shutdown: CancellationToken,
) -> Result<(), Fault> {
    let Told { metrics, .. } = &told;
    let mut complaint = String::new();
    let mut changes = Changes::of(files.paths()).await;
    loop {
        told.tell(&current);
        let loading = async {
            changes.next().await;
            files.load().await
        };
        let Some(loaded) = shutdown.run_until_cancelled(loading).await else { return Ok(()) };
        let in_time = loaded.and_then(|(tls, config)| match files.too_early(&tls, &current) {
            Some(fault) if !same(&tls, &current) => Err(fault),
            _ => Ok((tls, config)),
        });
        match in_time {
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

/// Reports the state of the certificate in use: in metrics and readiness.
#[derive(Clone)]
pub(super) struct Told {
    pub(super) metrics: Arc<Metrics>,
    pub(super) readiness: Readiness,
}

impl Told {
    /// Updates the metric of days left and the readiness, which fails while clients would not accept the certificate,
    /// so that a Service sends requests to other replicas.
    pub(super) fn tell(&self, tls: &WebhookTls) {
        self.tell_at(tls, OffsetDateTime::now_utc());
    }

    fn tell_at(&self, tls: &WebhookTls, now: OffsetDateTime) {
        if let Ok(days) = tls.days_left(now) {
            self.metrics.certificate_days_left(days);
        }
        let trouble = tls.trouble_at(now).unwrap_or_else(|error| Some(error.to_string()));
        self.metrics.ready(PART, trouble.is_none());
        self.readiness.set_trouble(PART, trouble);
    }
}

/// Whether both have the same TLS configuration.
pub(super) fn same(one: &WebhookTls, other: &WebhookTls) -> bool {
    one.identity.certificate_pem == other.identity.certificate_pem
        && one.identity.key_pem == other.identity.key_pem
        && one.clients == other.clients
}

/// Reads the file that `flag` names as text.
async fn read(flag: &str, path: &Path) -> Result<String, Fault> {
    let owned = path.to_owned();
    let read = outside::in_time(move || outside::text(&owned, outside::MAX_PEM)).await;
    read.and_then(|text| text)
        .map_err(|error| Fault::usage(format!("{flag}: cannot read `{}`: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use time::Duration;

    use super::*;
    use crate::admission::tls::Authority;

    #[test]
    fn what_nobody_accepts_is_not_ready_by_name() {
        let (folder, made) =
            (tempfile::tempdir().unwrap(), OffsetDateTime::from_unix_timestamp(1_790_000_000));
        let (made, told) = (made.unwrap(), Told { metrics: Arc::default(), readiness: Readiness::default() });
        let authority = Authority::open(folder.path(), made).unwrap();
        let identity = authority.issue_server(&["localhost".to_owned()], made).unwrap();
        let tls = WebhookTls { identity, clients: None, tls12: false };
        for (now, expected) in [
            (made, "[+]certificate ok"),
            (made + Duration::days(366), "[-]certificate failed: expired since 2027-09-21T14:13:20Z"),
            (made - Duration::days(1), "[-]certificate failed: not valid before 2026-09-21T13:13:20Z"),
            (made + Duration::days(1), "[+]certificate ok"),
        ] {
            told.tell_at(&tls, now);
            assert_eq!(told.readiness.text().lines().next(), Some(expected));
        }
    }
}
