//! Runs on the hub: copies the status of the clusters' add-ons to their ManagedClusterAddOns, if these exist, and
//! releases deleted add-ons whose cluster is gone.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tracing::warn;

use super::replicate::let_go;
use crate::controllers::kit::clock::Clock;
use crate::controllers::kit::conflict::on_conflict;
use crate::controllers::kit::controller::{Failure, Next, Reconcile};
use crate::controllers::kit::events::{Events, Notice};
use crate::controllers::kit::retry::{Remedy, remedy};
use crate::controllers::observability::crd::{FINALIZER, ObservabilityAddon};
use crate::telemetry::with_causes;

/// The name in metrics and logs.
pub(in crate::controllers::observability) const HUB: &str = "observability-hub";
/// The name of the add-on's ManagedClusterAddOn.
const DISPLAYED: &str = "observability-controller";
/// The conditions that are copied for any add-on.
const SHOWN: [&str; 3] = ["Available", "Progressing", "Degraded"];
/// How long a cluster has to clean up.
const PATIENCE: Duration = Duration::from_mins(1);

pub(in crate::controllers::observability) struct Mirror {
    pub(in crate::controllers::observability) client: Client,
    /// The namespace of this cluster's own add-on, which is not a copy.
    pub(in crate::controllers::observability) namespace: String,
    pub(in crate::controllers::observability) clock: Clock,
    pub(in crate::controllers::observability) events: Events,
}

/// Why an add-on could not be copied or released.
#[derive(Debug, thiserror::Error)]
#[error("cannot {verb}: {}", with_causes(source))]
pub(in crate::controllers::observability) struct Error {
    verb: &'static str,
    #[source]
    source: Box<kube::Error>,
}

impl Failure for Error {
    fn remedy(&self) -> Remedy {
        remedy(&self.source)
    }
}

impl Reconcile for Mirror {
    type Object = ObservabilityAddon;
    type Error = Error;

    async fn reconcile(&self, object: &ObservabilityAddon) -> Result<Next, Error> {
        let namespace = object.namespace().unwrap_or_default();
        if namespace == self.namespace {
            return Ok(Next::Settled);
        }
        if object.metadata.deletion_timestamp.is_some() {
            return self.release(object, &namespace).await;
        }
        let shown = on_conflict(|| self.show(object.conditions(), &namespace)).await;
        let failed = |source| Error { verb: "show the add-on in its ManagedClusterAddOn", source };
        shown.map_err(|error| failed(Box::new(error)))?;
        Ok(Next::Settled)
    }
}

/// Returns a number that changes with the copied conditions, and with the deletion.
pub(in crate::controllers::observability) fn displayed(object: &ObservabilityAddon) -> Option<u64> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    let shown = object.conditions().iter().filter(|condition| SHOWN.contains(&condition.type_.as_str()));
    shown.for_each(|condition| (&condition.type_, &condition.status).hash(&mut hasher));
    (object.metadata.deletion_timestamp.is_some(), object.finalizers()).hash(&mut hasher);
    Some(hasher.finish())
}

impl Mirror {
    async fn show(&self, said: &[Condition], namespace: &str) -> Result<(), kube::Error> {
        let kind =
            GroupVersionKind::gvk("addon.open-cluster-management.io", "v1alpha1", "ManagedClusterAddOn");
        let resource = ApiResource::from_gvk_with_plural(&kind, "managedclusteraddons");
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &resource);
        let there = match api.get(DISPLAYED).await {
            Ok(there) => there,
            // Without the object or the kind (whose 404 is plain text), there is nothing to update.
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            Err(error) => return Err(error),
        };
        let shown = there.data.pointer("/status/conditions").and_then(Value::as_array);
        let Some(conditions) = brought(shown.map_or(&[], Vec::as_slice), said) else { return Ok(()) };
        let version = there.resource_version();
        let patch = json!({"metadata": {"resourceVersion": version}, "status": {"conditions": conditions}});
        match api.patch_status(DISPLAYED, &PatchParams::default(), &Patch::Merge(patch)).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            patched => patched.map(drop),
        }
    }

    async fn release(&self, object: &ObservabilityAddon, namespace: &str) -> Result<Next, Error> {
        let deleted = object.metadata.deletion_timestamp.as_ref();
        let now = self.clock.now();
        let waited = deleted.map_or(Duration::ZERO, |at| now.duration_since(at.0).unsigned_abs());
        if !object.finalizers().iter().any(|finalizer| finalizer == FINALIZER) {
            return Ok(Next::Settled);
        }
        if let Some(left) = PATIENCE.checked_sub(waited).filter(|left| !left.is_zero()) {
            return Ok(Next::After(left));
        }
        warn!(namespace, "an add-on is let go whose cluster has not cleaned up");
        let note = format!("let go after {} s: the cluster has not cleaned up", waited.as_secs());
        let notice = Notice { warning: true, reason: "CleanupAbandoned", action: "Cleanup", note };
        self.events.publish(object, notice).await;
        let api = Api::namespaced(self.client.clone(), namespace);
        let let_go = on_conflict(|| let_go(&api)).await;
        let_go.map_err(|source| Error { verb: "let the add-on go", source: Box::new(source) })?;
        Ok(Next::Settled)
    }
}

/// Returns `shown` with the three conditions of `said`; None if each has its status already. A different message alone is not copied,
/// since the hub's own agents write their own.
fn brought(shown: &[Value], said: &[Condition]) -> Option<Vec<Value>> {
    let mut conditions = shown.to_vec();
    let mut changed = false;
    for condition in said.iter().filter(|condition| SHOWN.contains(&condition.type_.as_str())) {
        let there = conditions.iter_mut().find(|there| there["type"] == condition.type_.as_str());
        if there.as_ref().is_some_and(|there| there["status"] == condition.status.as_str()) {
            continue;
        }
        changed = true;
        match there {
            Some(there) => *there = json!(condition),
            None => conditions.push(json!(condition)),
        }
    }
    changed.then_some(conditions)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(type_: &str, status: &str, message: &str) -> Condition {
        serde_json::from_value(json!({"type": type_, "status": status, "reason": "R", "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z"}))
        .unwrap()
    }

    #[test]
    fn ob_05_of_the_three_conditions_those_are_shown_whose_status_differs() {
        let components = [said("MetricsCollectorStatus", "True", ""), said("Disabled", "True", "")];
        assert_eq!(brought(&[], &components), None);
        let first = brought(&[], &[said("Available", "True", "a"), said("Degraded", "False", "b")]).unwrap();
        assert_eq!(first.len(), 2);
        let another_message = [said("Available", "True", "in other words")];
        assert_eq!(brought(&first, &another_message), None);
        let foreign = json!({"type": "ManifestApplied", "status": "True", "extra": 1});
        let shown = [foreign.clone(), first[0].clone()];
        let turned = brought(&shown, &[said("Available", "False", "c")]).unwrap();
        assert_eq!((&turned[0], turned[1]["status"].as_str(), turned.len()), (&foreign, Some("False"), 2));
    }
}
