//! Binds PersistentVolumeClaims: each gets its own volume, which is a folder on this machine.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher::Event;
use kube::{Api, Client, Resource as _, ResourceExt as _};
use serde_json::json;
use tokio::sync::watch;
use tracing::{info, warn};

use super::actors::Actors;
use super::events::{Events, Note};
use super::{Settings, node};
use crate::telemetry::with_causes;

/// The first and the longest wait after a failed request.
const RETRY: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(30));

struct Context {
    client: Client,
    settings: Arc<Settings>,
    events: Events,
}

/// All claims that are not bound yet.
pub(super) struct Claims {
    context: Arc<Context>,
    actors: Actors<String, ()>,
    /// Counts changes of claims, for Pods that wait for one.
    changed: watch::Sender<u64>,
}

impl Claims {
    pub(super) fn new(client: &Client, settings: Arc<Settings>) -> Self {
        let events = Events::new(client, "persistentvolume-controller");
        let context = Context { client: client.clone(), settings, events };
        Self { context: Arc::new(context), actors: Actors::new(), changed: watch::Sender::new(0) }
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub(super) fn take(&mut self, event: Event<PersistentVolumeClaim>) {
        match event {
            Event::Apply(claim) | Event::InitApply(claim) => self.seen(claim),
            Event::Delete(claim) => {
                let uid = claim.uid().unwrap_or_default();
                self.actors.forget(&uid);
                self.begin(format!("{uid} deleted"), Change::Gone, claim);
            }
            Event::Init | Event::InitDone => {}
        }
        self.changed.send_modify(|count| *count += 1);
    }

    fn seen(&mut self, claim: PersistentVolumeClaim) {
        let uid = claim.uid().unwrap_or_default();
        let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
        let waits = phase != Some("Bound") && claim.metadata.deletion_timestamp.is_none();
        if waits && self.actors.get(&uid).is_none() {
            self.begin(uid, Change::New, claim);
        }
    }

    fn begin(&mut self, key: String, change: Change, claim: PersistentVolumeClaim) {
        let context = Arc::clone(&self.context);
        self.actors.start(key, (), |gone| until_done(context, change, claim, gone));
    }

    pub(super) async fn ended(&mut self) {
        let key = self.actors.ended().await;
        self.actors.forget(&key);
    }

    pub(super) async fn stop(&mut self) {
        self.actors.abort().await;
    }
}

/// A change of a claim.
#[derive(Clone, Copy, Debug)]
enum Change {
    New,
    Gone,
}

/// Retries until the change is handled, or the claim is gone.
async fn until_done(
    context: Arc<Context>,
    change: Change,
    claim: PersistentVolumeClaim,
    mut gone: watch::Receiver<()>,
) {
    let mut wait = RETRY.0;
    loop {
        let done = match change {
            Change::New => context.bind(&claim).await,
            Change::Gone => context.release(&claim).await,
        };
        match done {
            Ok(()) => return,
            Err(kube::Error::Api(status)) if status.code == 404 => return,
            Err(error) => warn!(error = with_causes(&error), "a claim is tried again"),
        }
        tokio::select! {
            () = tokio::time::sleep(wait) => wait = (wait * 2).min(RETRY.1),
            changed = gone.changed() => if changed.is_err() { return },
        }
    }
}

impl Context {
    async fn bind(&self, claim: &PersistentVolumeClaim) -> Result<(), kube::Error> {
        let (namespace, name) = (claim.namespace().unwrap_or_default(), claim.name_any());
        let spec = claim.spec.clone().unwrap_or_default();
        let volume = format!("pvc-{}", claim.uid().unwrap_or_default());
        let about = claim.object_ref(&());
        let other = spec.volume_name.as_ref().is_some_and(|named| *named != volume);
        if other || spec.selector.is_some() || spec.volume_mode.as_deref() == Some("Block") {
            let why = "this machine makes volumes only for claims of a file system that name neither a volume nor a selector";
            self.events.tell(&about, Note::warning("ProvisioningFailed", why)).await;
            return Ok(());
        }
        let path = node::of_claim(&self.settings.folder, &namespace, &name);
        let capacity = spec.resources.and_then(|resources| resources.requests).unwrap_or_default();
        let object = json!({
            "metadata": {"name": volume, "annotations": {"pv.kubernetes.io/provisioned-by": "admit.dev/local"}},
            "spec": {
                "capacity": capacity, "accessModes": spec.access_modes, "volumeMode": "Filesystem",
                "storageClassName": spec.storage_class_name, "persistentVolumeReclaimPolicy": "Delete",
                "hostPath": {"path": path, "type": "DirectoryOrCreate"},
                "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": name,
                    "uid": claim.uid()},
            },
        });
        let volumes: Api<PersistentVolume> = Api::all(self.client.clone());
        let object = serde_json::from_value(object).map_err(kube::Error::SerdeError)?;
        match volumes.create(&PostParams::default(), &object).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(error),
            Ok(_) => {}
        }
        let params = PatchParams::default();
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), &namespace);
        let bound = json!({"metadata": {"uid": claim.uid(), "annotations": {
            "pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes",
        }}, "spec": {"volumeName": volume}});
        claims.patch(&name, &params, &Patch::Merge(bound)).await?;
        let phase = json!({"status": {"phase": "Bound"}});
        volumes.patch_status(&volume, &params, &Patch::Merge(&phase)).await?;
        let status =
            json!({"status": {"phase": "Bound", "accessModes": spec.access_modes, "capacity": capacity}});
        claims.patch_status(&name, &params, &Patch::Merge(status)).await?;
        let text = format!("Successfully provisioned volume {volume}");
        self.events.tell(&about, Note::normal("ProvisioningSucceeded", text)).await;
        Ok(())
    }

    /// Deletes the volume of a deleted claim, unless a Pod still uses it.
    async fn release(&self, claim: &PersistentVolumeClaim) -> Result<(), kube::Error> {
        let (namespace, name) = (claim.namespace().unwrap_or_default(), claim.name_any());
        let volumes: Api<PersistentVolume> = Api::all(self.client.clone());
        let volume = format!("pvc-{}", claim.uid().unwrap_or_default());
        match volumes.delete(&volume, &DeleteParams::default()).await {
            // It was not bound by this program.
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            Err(error) => return Err(error),
            Ok(_) => {}
        }
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &namespace);
        let used = pods.list(&ListParams::default()).await?.items.iter().any(|pod| uses(pod, &name));
        let path = node::of_claim(&self.settings.folder, &namespace, &name);
        if used {
            info!(path = %path.display(), "the volume of a deleted claim is left: a Pod works with it");
            return Ok(());
        }
        let removed = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(path)).await;
        match removed {
            Ok(Err(error)) if error.kind() != std::io::ErrorKind::NotFound => {
                warn!(claim = name, %error, "the volume of a claim is not removed");
            }
            _ => {}
        }
        Ok(())
    }
}

fn uses(pod: &Pod, claim: &str) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default();
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let mut claims = volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref());
    !["Succeeded", "Failed"].contains(&phase) && claims.any(|one| one.claim_name == claim)
}
