//! The hub: another API server, or another namespace of the same one, where the status of this cluster's add-on is shown.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt};
use tracing::info;

use super::crd::{NAME, ObservabilityAddon};
use crate::controllers::kit::conflict::on_conflict;
use crate::controllers::kit::retry::{Remedy, remedy};
use crate::outside;
use crate::telemetry::{Outside, Secrets, with_causes};

/// Bytes of a kubeconfig: one with all certificates in it has some ten thousand.
const MAX_KUBECONFIG: u64 = 1024 * 1024;

/// Where the hub is.
#[derive(Clone, Debug)]
pub struct HubSettings {
    /// The namespace there that belongs to this cluster.
    pub namespace: String,
    /// How it is reached; without one it is the server that the controllers work on.
    pub kubeconfig: Option<PathBuf>,
}

/// Why the status is not on the hub.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    #[error("cannot use the kubeconfig of the hub `{}`: {reason}; mend it, it is read again", path.display())]
    Kubeconfig { path: PathBuf, reason: Outside },
    #[error("cannot {verb} {namespace}/{NAME} on the hub: {}", with_causes(source))]
    Api {
        verb: &'static str,
        namespace: String,
        #[source]
        source: Box<kube::Error>,
    },
}

impl HubError {
    /// What is missing or refused for good waits for the next change, or for the next round; everything else passes.
    pub(super) fn remedy(&self) -> Remedy {
        let Self::Api { source, .. } = self else { return Remedy::Wait };
        match class(source) {
            Class::Final => Remedy::Change,
            Class::Passing | Class::Credentials => match remedy(source) {
                after @ Remedy::After(_) => after,
                _ => Remedy::Wait,
            },
        }
    }
}

/// What an error of the hub asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Class {
    /// Trying again may help.
    Passing,
    /// So may other credentials, or another address.
    Credentials,
    /// Only a change helps.
    Final,
}

fn class(error: &kube::Error) -> Class {
    let kube::Error::Api(status) = error else { return Class::Credentials };
    match status.code {
        401 | 403 => Class::Credentials,
        501 => Class::Final,
        409 | 429 | 500.. => Class::Passing,
        _ => Class::Final,
    }
}

/// The hub as it is reached now.
pub struct Hub {
    settings: HubSettings,
    own: Client,
    /// What the kubeconfig said, and the client that it made; none before the first use, and after the credentials were refused.
    reached: Mutex<Option<(Vec<u8>, Client)>>,
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// What came of showing a status.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shown {
    Written,
    Same,
}

impl Hub {
    pub fn new(settings: HubSettings, own: Client) -> Self {
        Self { settings, own, reached: Mutex::default() }
    }

    /// Brings the whole status of the hub's object to that of `spoke`.
    ///
    /// # Errors
    /// [`HubError`]. After a refusal of the credentials, and where there was no answer, the kubeconfig is read anew by the
    /// next attempt.
    pub async fn show(&self, spoke: &ObservabilityAddon) -> Result<Shown, HubError> {
        let api: Api<ObservabilityAddon> = Api::namespaced(self.client().await?, &self.settings.namespace);
        // Read inside of the loop: a conflict says that what was read is old.
        let shown = on_conflict(|| async {
            let mut there = api.get(NAME).await?;
            if there.status == spoke.status {
                return Ok(Shown::Same);
            }
            there.status.clone_from(&spoke.status);
            there.managed_fields_mut().clear();
            api.replace_status(NAME, &PostParams::default(), &there).await?;
            Ok(Shown::Written)
        });
        shown.await.map_err(|source| {
            if class(&source) == Class::Credentials {
                self.forget();
            }
            let namespace = self.settings.namespace.clone();
            HubError::Api { verb: "show the status of", namespace, source: Box::new(source) }
        })
    }

    fn forget(&self) {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// A client as the kubeconfig says now.
    async fn client(&self) -> Result<Client, HubError> {
        let Some(path) = &self.settings.kubeconfig else { return Ok(self.own.clone()) };
        let unusable = |reason: &str| HubError::Kubeconfig {
            path: path.clone(),
            // The first line: the rest quotes the file, secrets and all.
            reason: Outside::of(reason.lines().next().unwrap_or_default(), &Secrets::default()),
        };
        let text = read(path).await.map_err(|error| unusable(&error))?;
        if let Some((known, client)) = &*self.reached.lock().unwrap_or_else(PoisonError::into_inner)
            && *known == text
        {
            return Ok(client.clone());
        }
        let client = connect(path).await.map_err(|error| unusable(&error))?;
        info!(path = %path.display(), "using the kubeconfig of the hub");
        let reached = Some((text, client.clone()));
        *self.reached.lock().unwrap_or_else(PoisonError::into_inner) = reached;
        Ok(client)
    }
}

async fn read(path: &Path) -> Result<Vec<u8>, String> {
    let path = path.to_owned();
    let reading = outside::in_time(move || outside::bytes(&path, MAX_KUBECONFIG)).await;
    reading.flatten().map(|(text, _)| text).map_err(|error| error.to_string())
}

async fn connect(path: &Path) -> Result<Client, String> {
    let path = path.to_owned();
    // Files that it names are read relative to it.
    let kubeconfig = outside::in_time(move || Kubeconfig::read_from(path)).await;
    let kubeconfig = kubeconfig.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.map_err(|error| error.to_string())?).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn ob_05_errors_of_the_hub_by_class() {
        for (code, wanted) in [
            (409, Class::Passing),
            (429, Class::Passing),
            (500, Class::Passing),
            (503, Class::Passing),
            (501, Class::Final),
            (401, Class::Credentials),
            (403, Class::Credentials),
            (400, Class::Final),
            (404, Class::Final),
            (422, Class::Final),
        ] {
            let error = kube::Error::Api(Box::new(Status { code, ..Status::default() }));
            assert_eq!(class(&error), wanted, "{code}");
        }
    }
}
