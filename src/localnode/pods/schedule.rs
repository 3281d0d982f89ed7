//! Schedules Pods: decides which Pods the node accepts, and when.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Binding, ObjectReference, PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Resource as _, ResourceExt as _};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::warn;

use super::super::events::Note;
use super::super::{NODE, node};
use super::{Context, News};
use crate::telemetry::with_causes;

/// How soon a waiting Pod is checked again without another reason.
const AGAIN: Duration = Duration::from_secs(5);

/// A Pod that is bound to the node, with its permit to run.
pub(super) struct Taken {
    pub(super) pod: Pod,
    pub(super) place: Option<OwnedSemaphorePermit>,
}

/// Waits until the Pod can run, and binds it. None if it was deleted, or bound by somebody else.
pub(super) async fn schedule(context: &Context, news: &mut News) -> Option<Taken> {
    let mut told = None;
    let mut claims = context.claims.clone();
    loop {
        claims.borrow_and_update();
        let pod = Arc::clone(news.borrow_and_update().as_ref()?);
        if pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()).is_some() {
            return None;
        }
        let fits = match claims_are_bound(context, &pod).await {
            Ok(()) => place(context, &pod),
            Err(why) => Err(why),
        };
        match fits {
            Ok(place) => match bind(context, &pod).await {
                Ok(pod) => return Some(Taken { pod, place }),
                Err(error) if is_settled(&error) => return None,
                Err(error) => warn!(pod = pod.name_any(), error = with_causes(&error), "a Pod was not bound"),
            },
            Err(error) if told.as_ref().is_some_and(|told| *told == error.to_string()) => {}
            Err(unschedulable) => {
                let why = unschedulable.to_string();
                if let Err(error) = refuse(context, &pod, &why).await {
                    warn!(
                        pod = pod.name_any(),
                        error = with_causes(&error),
                        "a Pod's status was not written"
                    );
                }
                told = Some(why);
            }
        }
        tokio::select! {
            changed = news.changed() => changed.ok()?,
            () = context.shutdown.cancelled() => return None,
            _ = claims.changed() => {}
            () = tokio::time::sleep(AGAIN) => {}
            () = free(&context.room), if told.is_some() => {}
        }
    }
}

/// Waits until a permit is free, without taking it.
async fn free(room: &Semaphore) {
    drop(room.acquire().await);
}

/// Checks that the claims of the Pod are bound.
async fn claims_are_bound(context: &Context, pod: &Pod) -> Result<(), Unschedulable> {
    let api: Api<PersistentVolumeClaim> =
        Api::namespaced(context.client.clone(), &pod.namespace().unwrap_or_default());
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    for claim in volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref()) {
        let name = &claim.claim_name;
        let found = api.get_opt(name).await.map_err(Unschedulable::Server)?;
        let Some(found) = found else {
            return Err(Unschedulable::MissingClaim(name.clone()));
        };
        if found.metadata.deletion_timestamp.is_some() {
            return Err(Unschedulable::ClaimIsDeleted(name.clone()));
        }
        if found.status.and_then(|status| status.phase).as_deref() != Some("Bound") {
            return Err(Unschedulable::UnboundClaims);
        }
    }
    Ok(())
}

/// Why the node does not accept a Pod, with the messages of a scheduler.
#[derive(Debug, thiserror::Error)]
enum Unschedulable {
    #[error("Scheduling is blocked due to non-empty scheduling gates")]
    Gated,
    #[error("0/1 nodes are available: persistentvolumeclaim {0:?} not found. {PREEMPTION}")]
    MissingClaim(String),
    #[error("0/1 nodes are available: persistentvolumeclaim {0:?} is being deleted. {PREEMPTION}")]
    ClaimIsDeleted(String),
    #[error("0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. {PREEMPTION}")]
    UnboundClaims,
    #[error("0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. {PREEMPTION}")]
    OtherNode,
    #[error("0/1 nodes are available: 1 Too many pods.")]
    TooManyPods,
    #[error("{}", with_causes(.0))]
    Server(kube::Error),
}

const PREEMPTION: &str = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";

/// Takes a permit for the Pod. A Pod that will not run, because its image has no replacement, needs none.
fn place(context: &Context, pod: &Pod) -> Result<Option<OwnedSemaphorePermit>, Unschedulable> {
    let spec = pod.spec.as_ref();
    if spec.is_some_and(|spec| spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty())) {
        return Err(Unschedulable::Gated);
    }
    let selector = spec.and_then(|spec| spec.node_selector.clone()).unwrap_or_default();
    let labels = node::labels();
    if selector.iter().any(|(key, value)| labels.get(key.as_str()) != Some(&value.as_str())) {
        return Err(Unschedulable::OtherNode);
    }
    let containers =
        spec.iter().flat_map(|spec| spec.init_containers.iter().flatten().chain(&spec.containers));
    let mut images = containers.map(|container| container.image.as_deref().unwrap_or_default());
    if images.any(|image| context.settings.images.find(image).is_none()) {
        return Ok(None);
    }
    match Arc::clone(&context.room).try_acquire_owned() {
        Ok(place) => Ok(Some(place)),
        Err(_) => Err(Unschedulable::TooManyPods),
    }
}

async fn bind(context: &Context, pod: &Pod) -> Result<Pod, kube::Error> {
    let namespace = pod.namespace().unwrap_or_default();
    let pods: Api<Pod> = Api::namespaced(context.client.clone(), &namespace);
    let name = pod.name_any();
    let binding = Binding {
        metadata: ObjectMeta { name: Some(name.clone()), uid: pod.uid(), ..ObjectMeta::default() },
        target: ObjectReference {
            kind: Some("Node".to_owned()),
            name: Some(NODE.to_owned()),
            ..ObjectReference::default()
        },
    };
    let _: serde_json::Value =
        pods.create_subresource("binding", &name, &PostParams::default(), &binding).await?;
    let text = format!("Successfully assigned {namespace}/{name} to {NODE}");
    context.scheduler.tell(&pod.object_ref(&()), Note::normal("Scheduled", text)).await;
    pods.get(&name).await
}

/// Reports why the Pod has to wait.
async fn refuse(context: &Context, pod: &Pod, why: &str) -> Result<(), kube::Error> {
    let pods: Api<Pod> = Api::namespaced(context.client.clone(), &pod.namespace().unwrap_or_default());
    let gated = why.starts_with("Scheduling is blocked");
    let reason = if gated { "SchedulingGated" } else { "Unschedulable" };
    let now = jiff::Timestamp::now().strftime("%FT%TZ").to_string();
    let status = json!({"status": {"conditions": [{
        "type": "PodScheduled", "status": "False", "reason": reason, "message": why,
        "lastProbeTime": null, "lastTransitionTime": now,
    }]}});
    pods.patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Strategic(status)).await?;
    if !gated {
        context.scheduler.tell(&pod.object_ref(&()), Note::warning("FailedScheduling", why)).await;
    }
    Ok(())
}

/// Whether the Pod was deleted, or is bound already.
fn is_settled(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404 || status.code == 409)
}
