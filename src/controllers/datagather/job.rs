//! A gathering as a Job: its manifest, whose it is, and how it fares. Pure.
//!
//! The Job has the DataGather's name and is owned by it, so that a second one cannot be made, one made before a lost
//! status write is found again, and deletion of the DataGather takes it along.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use super::crd::{DataGather, RelatedObject};
use super::settings::JobSettings;

/// Label of gathering Jobs and their Pods.
pub(super) const LABEL: &str = "insights-gathering";

/// Begins what is said of a DataGather whose Job came to nothing.
const BLAMED: &str = "the Job ";

/// What is said of a DataGather whose Job came to nothing.
pub(super) fn blamed(what: &str) -> String {
    format!("{BLAMED}{what}")
}

/// Whether a message says so.
pub(super) fn is_blamed(message: &str) -> bool {
    message.contains(BLAMED)
}

/// How the Job of a DataGather fares.
#[derive(Clone, Debug, PartialEq)]
pub enum JobView {
    /// Gathering runs in this process.
    NotUsed,
    Missing,
    /// A Job of the name exists and is not owned by the DataGather.
    Foreign,
    Active,
    Succeeded,
    Failed(String),
}

/// Reads a Job for the DataGather `uid`.
pub fn view(job: Option<&Job>, uid: &str) -> JobView {
    let Some(job) = job else { return JobView::Missing };
    if !job.owner_references().iter().any(|owner| owner.uid == uid) {
        return JobView::Foreign;
    }
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_ref());
    let holds = |type_: &str| {
        conditions
            .into_iter()
            .flatten()
            .find(|condition| condition.type_ == type_ && condition.status == "True")
    };
    if let Some(failed) = holds("Failed") {
        let reason = failed.reason.as_deref().unwrap_or("no reason given");
        let message = failed.message.as_deref().unwrap_or_default();
        return JobView::Failed(format!("{reason} {message}").trim().to_owned());
    }
    match holds("Complete") {
        Some(_) => JobView::Succeeded,
        None => JobView::Active,
    }
}

pub fn related(namespace: &str, name: &str) -> RelatedObject {
    RelatedObject {
        group: "batch".to_owned(),
        resource: "jobs".to_owned(),
        name: name.to_owned(),
        namespace: Some(namespace.to_owned()),
    }
}

/// The Job of `object`: one attempt, a container without rights of its own.
///
/// # Errors
/// None in practice: the fields are those of a Job.
pub fn manifest(object: &DataGather, settings: &JobSettings) -> Result<Job, serde_json::Error> {
    let JobSettings { image, service_account, claim, args, priority_class } = settings;
    let archives = match claim {
        Some(claim) => json!({"name": ARCHIVES, "persistentVolumeClaim": {"claimName": claim}}),
        None => json!({"name": ARCHIVES, "emptyDir": {}}),
    };
    let mut pod = json!({
        "restartPolicy": "Never",
        "serviceAccountName": service_account,
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container(object, image, args)],
        "volumes": [archives],
    });
    if let (Some(class), Some(pod)) = (priority_class, pod.as_object_mut()) {
        pod.insert("priorityClassName".to_owned(), Value::String(class.clone()));
    }
    serde_json::from_value(json!({
        "metadata": {
            "name": object.name_any(),
            "labels": {LABEL: ""},
            "ownerReferences": [object.controller_owner_ref(&())],
        },
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": DEADLINE.as_secs(),
            "template": {"metadata": {"labels": {LABEL: ""}}, "spec": pod},
        },
    }))
}

fn container(object: &DataGather, image: &str, args: &[String]) -> Value {
    let own = ["gather", "--archive-dir", ARCHIVE_PATH].map(str::to_owned);
    let args: Vec<_> = own.iter().chain(args).collect();
    json!({
        "name": "insights-gathering",
        "image": image,
        "args": args,
        "env": [{"name": "DATAGATHER_NAME", "value": object.name_any()}],
        "resources": {"requests": {"cpu": "10m", "memory": "70Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": ARCHIVES, "mountPath": ARCHIVE_PATH}],
    })
}

/// By then a Job has ended: one whose Pod never starts would leave its DataGather Pending for ever. Uploads are tried for
/// three and a half hours.
const DEADLINE: Duration = Duration::from_hours(8);
const ARCHIVES: &str = "archives-path";
const ARCHIVE_PATH: &str = "/var/lib/insights-operator";
