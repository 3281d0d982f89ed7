//! Explains from a Pod's status why it does not start. Pure.
//!
//! A Job whose Pod does not start stays active for ever: no limit of a Job counts Pods that never started.

use k8s_openapi::api::core::v1::{ContainerStateWaiting, ContainerStatus, Pod, PodCondition};

/// The reasons of kubelets for a container whose image cannot be pulled.
const IMAGE: [&str; 7] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "RegistryUnavailable",
    "SignatureValidationFailed",
];
/// The reasons for a container that cannot be created, for example because of a missing Secret or key.
const CONTAINER: [&str; 2] = ["CreateContainerConfigError", "CreateContainerError"];

/// Why a Pod does not start.
#[derive(Clone, Debug, PartialEq)]
pub struct Hindrance {
    /// The reason in PascalCase, for machines.
    pub reason: &'static str,
    /// The problem, in words that do not change while it lasts.
    pub what: String,
    /// The message of the kubelet or the scheduler, which changes from attempt to attempt.
    pub detail: String,
    /// Whether the problem is usually temporary: missing room on a node is, a missing image is not.
    pub passes: bool,
}

impl Hindrance {
    /// Returns the problem with its message.
    pub fn text(&self) -> String {
        if self.detail.is_empty() { self.what.clone() } else { format!("{}: {}", self.what, self.detail) }
    }
}

/// Returns why `pod` does not start; None if it runs, has ended or is being deleted.
pub fn hindrance(pod: &Pod) -> Option<Hindrance> {
    let status = pod.status.as_ref()?;
    let over = matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"));
    if over || pod.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let inits = status.init_container_statuses.iter().flatten();
    let containers = inits.chain(status.container_statuses.iter().flatten());
    let unscheduled = || status.conditions.iter().flatten().find_map(unscheduled);
    containers.into_iter().find_map(waiting).or_else(unscheduled)
}

fn waiting(container: &ContainerStatus) -> Option<Hindrance> {
    let ContainerStateWaiting { reason, message } = container.state.as_ref()?.waiting.as_ref()?;
    let (reason, detail) = (reason.as_deref()?, message.clone().unwrap_or_default());
    let ContainerStatus { name, image, .. } = container;
    let (reason, what) = if IMAGE.contains(&reason) {
        ("ImageNotPulled", format!("the image {image} of container {name} cannot be pulled"))
    } else if CONTAINER.contains(&reason) {
        ("ContainerNotCreated", format!("container {name} cannot be created"))
    } else {
        return None;
    };
    Some(Hindrance { reason, what, detail, passes: false })
}

fn unscheduled(condition: &PodCondition) -> Option<Hindrance> {
    let why = condition.reason.as_deref();
    if condition.type_ != "PodScheduled" || condition.status != "False" || why != Some("Unschedulable") {
        return None;
    }
    let detail = condition.message.clone().unwrap_or_default();
    // The wording of schedulers; their other reasons are temporary, such as missing nodes or unbound volumes.
    let claim = detail.contains("persistentvolumeclaim") && detail.contains("not found");
    let (reason, what) = match claim {
        true => ("ClaimMissing", "a volume claim of the Pod does not exist"),
        false => ("Unschedulable", "no node takes the Pod"),
    };
    Some(Hindrance { reason, what: what.to_owned(), detail, passes: !claim })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(status: &Value) -> Option<Hindrance> {
        hindrance(&serde_json::from_value(json!({"metadata": {"name": "p"}, "status": status})).unwrap())
    }

    fn waits(reason: &str) -> Value {
        let state = json!({"waiting": {"reason": reason, "message": "said so"}});
        let one = json!({"name": "c", "image": "i:1", "imageID": "", "ready": false, "restartCount": 0, "state": state});
        json!({"phase": "Pending", "containerStatuses": [one]})
    }

    #[test]
    fn what_lasts_is_told_from_what_passes() {
        for (reason, expected) in [
            ("ImagePullBackOff", Some("the image i:1 of container c cannot be pulled: said so")),
            ("InvalidImageName", Some("the image i:1 of container c cannot be pulled: said so")),
            ("CreateContainerConfigError", Some("container c cannot be created: said so")),
            ("ContainerCreating", None),
            ("PodInitializing", None),
            ("CrashLoopBackOff", None),
        ] {
            let found = of(&waits(reason));
            assert_eq!(found.as_ref().map(Hindrance::text).as_deref(), expected, "{reason}");
            assert!(found.is_none_or(|found| !found.passes));
        }
        let mut over = waits("ImagePullBackOff");
        over["phase"] = json!("Failed");
        assert_eq!(of(&over), None);
    }

    #[test]
    fn a_claim_that_is_missing_is_told_from_a_cluster_without_room() {
        for (message, reason, passes) in [
            ("0/1 nodes are available: persistentvolumeclaim \"d\" not found.", "ClaimMissing", false),
            ("0/3 nodes are available: 3 Insufficient memory.", "Unschedulable", true),
            (
                "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
                "Unschedulable",
                true,
            ),
        ] {
            let scheduled = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message});
            let found = of(&json!({"phase": "Pending", "conditions": [scheduled]})).unwrap();
            assert_eq!((found.reason, found.passes, found.detail.as_str()), (reason, passes, message));
        }
        let gated = json!({"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"});
        assert_eq!(of(&json!({"phase": "Pending", "conditions": [gated]})), None);
    }
}
