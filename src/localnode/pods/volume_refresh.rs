//! Updates the volumes of a running Pod: Secrets, ConfigMaps and fields of the Pod when they change, and tokens before they expire.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;
use tracing::warn;

use super::super::events::Note;
use super::env::Kind;
use super::error::VolumeError;
use super::service_account;
use super::volumes;
use super::worker::Worker;

/// The most queued changes for a busy Pod; one that falls behind further checks all objects that it names.
const MAX_WAITING: usize = 256;

/// A Secret or ConfigMap that may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::localnode) enum Change {
    One {
        kind: Kind,
        namespace: String,
        name: String,
    },
    /// Any object: some changes were missed.
    Any,
}

impl Change {
    /// Creates the channel for changes.
    pub(super) fn channel() -> broadcast::Sender<Self> {
        broadcast::Sender::new(MAX_WAITING)
    }

    fn concerns(&self, pod: &Pod) -> bool {
        let named = named(pod);
        match self {
            Self::One { kind, namespace, name } => {
                pod.namespace().as_deref() == Some(namespace) && named.contains(&(*kind, name.as_str()))
            }
            Self::Any => !named.is_empty(),
        }
    }
}

/// Returns the Secrets and ConfigMaps that a Pod's volumes refer to.
fn named(pod: &Pod) -> BTreeSet<(Kind, &str)> {
    let mut named = BTreeSet::new();
    for volume in pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten()) {
        let secret = volume.secret.as_ref().and_then(|secret| secret.secret_name.as_deref());
        named.extend(secret.map(|name| (Kind::Secret, name)));
        named.extend(volume.config_map.as_ref().map(|map| (Kind::ConfigMap, map.name.as_str())));
        let sources = volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
        for source in sources {
            named.extend(source.secret.as_ref().map(|secret| (Kind::Secret, secret.name.as_str())));
            named.extend(source.config_map.as_ref().map(|map| (Kind::ConfigMap, map.name.as_str())));
        }
    }
    named
}

impl Worker<'_> {
    /// Receives the newest state of the Pod itself: its labels and annotations may be in its volumes.
    pub(super) fn relabel(&self, pod: &Arc<Pod>) {
        self.shown.send_if_modified(|shown| {
            let differs = shown.labels() != pod.labels() || shown.annotations() != pod.annotations();
            if differs {
                *shown = Arc::clone(pod);
            }
            differs
        });
    }

    /// Keeps the volumes and tokens up to date. Never returns.
    pub(super) async fn refreshed(&self, mut changes: broadcast::Receiver<Change>) {
        let mut shown = self.shown.subscribe();
        let mut told = None;
        let mut next = Instant::now() + self.renewal();
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(next) => {
                    if let Err(error) = self.renew().await {
                        let error = error.to_string();
                        warn!(pod = self.pod.name_any(), error, "the Pod's token was not renewed");
                    }
                    next = Instant::now() + self.renewal();
                }
                changed = shown.changed() => if changed.is_err() { return std::future::pending().await },
                change = changes.recv() => match change {
                    Ok(change) if !change.concerns(&self.pod) => continue,
                    Ok(_) | Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return std::future::pending().await,
                },
            }
            match self.refill().await {
                Ok(()) => told = None,
                // The old contents stay, and the containers continue with them.
                Err(error) => {
                    let why = error.to_string();
                    if told.as_ref() != Some(&why) {
                        self.tell(Note::warning("FailedMount", why.clone())).await;
                        told = Some(why);
                    }
                }
            }
        }
    }

    /// Creates or updates the volumes.
    pub(super) async fn refill(&self) -> Result<(), VolumeError> {
        let (client, settings) = (&self.context.client, &self.context.settings);
        let pod = Arc::clone(&self.shown.borrow());
        let filled = volumes::fill(client, settings, &pod, &self.folder.join("volumes")).await?;
        *self.volumes.lock().unwrap_or_else(PoisonError::into_inner) = filled;
        Ok(())
    }

    fn renewal(&self) -> std::time::Duration {
        service_account::renewed(self.mounted().tokens.into_iter().flatten().min())
    }

    async fn renew(&self) -> Result<(), VolumeError> {
        if self.account.folder.is_dir() {
            let token = service_account::token(&self.context.client, &self.pod, None, None).await;
            self.account.renew(&token.map_err(VolumeError::Server)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_concerns_the_pods_that_have_it_in_a_volume() {
        let pod: Pod = serde_json::from_value(json!({"metadata": {"namespace": "n"}, "spec": {"containers": [], "volumes": [
            {"name": "a", "secret": {"secretName": "s"}},
            {"name": "b", "projected": {"sources": [{"configMap": {"name": "m"}}, {"secret": {"name": "t"}}]}},
        ]}}))
        .unwrap();
        let of = |kind, namespace: &str, name: &str| {
            Change::One { kind, namespace: namespace.to_owned(), name: name.to_owned() }.concerns(&pod)
        };
        assert!(of(Kind::Secret, "n", "s") && of(Kind::Secret, "n", "t") && of(Kind::ConfigMap, "n", "m"));
        assert!(!of(Kind::ConfigMap, "n", "s") && !of(Kind::Secret, "o", "s") && !of(Kind::Secret, "n", "u"));
        assert!(Change::Any.concerns(&pod) && !Change::Any.concerns(&Pod::default()));
    }
}
