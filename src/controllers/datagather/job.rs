//! Builds the Job of a gathering, and reads its ownership and progress. Pure.
//!
//! The Job has the name of the DataGather, which owns it. So a second one cannot be created, one whose status update was lost
//! is found again, and it is deleted with the DataGather.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobCondition};
use k8s_openapi::api::core::v1::Pod;
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use super::crd::{DataGather, RelatedObject};
use super::job_inputs::JobInputs;
use super::settings::JobSettings;
use crate::controllers::kit::pods::{Hindrance, hindrance};

/// The label of gathering Jobs and their Pods.
pub(super) const LABEL: &str = "insights-gathering";
/// The annotation of Pods with their OpenShift security context constraint; it has no effect on the Job.
const SCC: &str = "openshift.io/required-scc";
/// The label of Pods with the name of their Job.
pub(super) const JOB_NAME: &str = "batch.kubernetes.io/job-name";
/// The longest name of a Job, which is a label value of its Pods.
pub(super) const MAX_NAME: usize = 63;
/// How long a Pod may be stuck for a reason that is rarely temporary before its gathering fails.
pub const PATIENCE: Duration = Duration::from_secs(90);
/// The deadline of a Job in gathering intervals: if its Pod never started, its DataGather would be Pending for ever. Uploads
/// are retried for three and a half hours.
const INTERVALS: u32 = 4;

/// The beginning of messages about a DataGather whose Job failed.
const BLAMED: &str = "the Job ";

/// Creates a message about a DataGather whose Job failed.
pub(super) fn blamed(what: &str) -> String {
    format!("{BLAMED}{what}")
}

/// Whether a message has that form.
pub(super) fn is_blamed(message: &str) -> bool {
    message.contains(BLAMED)
}

/// The state of a DataGather's Job.
#[derive(Clone, Debug, PartialEq)]
pub enum JobView {
    /// Gatherings run in this process.
    NotUsed,
    Missing,
    /// There is a Job with the name that is not owned by the DataGather.
    Foreign,
    Active,
    /// Its Pod cannot start, for a reason that is rarely temporary; with the age of the Job.
    Stuck {
        why: String,
        age: Duration,
    },
    Succeeded,
    Failed(String),
}

/// The relevant state of a Pod.
#[derive(Clone, Debug)]
pub(super) struct PodSeen {
    pub(super) job: String,
    /// Why it cannot start, if the reason is rarely temporary.
    pub(super) lasting: Option<Hindrance>,
}

impl PodSeen {
    pub(super) fn of(pod: &Pod) -> Self {
        let job = pod.labels().get(JOB_NAME).cloned().unwrap_or_default();
        Self { job, lasting: hindrance(pod).filter(|hindrance| !hindrance.passes) }
    }
}

/// Returns the state of a Job for the DataGather `uid`.
pub fn view(job: Option<&Job>, uid: &str) -> JobView {
    let Some(job) = job else { return JobView::Missing };
    if !job.owner_references().iter().any(|owner| owner.uid == uid) {
        return JobView::Foreign;
    }
    if let Some(failed) = condition(job, "Failed") {
        let reason = failed.reason.as_deref().unwrap_or("no reason given");
        let message = failed.message.as_deref().unwrap_or_default();
        return JobView::Failed(format!("{reason} {message}").trim().to_owned());
    }
    match condition(job, "Complete") {
        Some(_) => JobView::Succeeded,
        None => JobView::Active,
    }
}

/// Whether the Job has ended.
pub(super) fn has_ended(job: &Job) -> bool {
    ["Complete", "Failed"].iter().any(|type_| condition(job, type_).is_some())
}

fn condition<'j>(job: &'j Job, type_: &str) -> Option<&'j JobCondition> {
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().find(|condition| condition.type_ == type_ && condition.status == "True")
}

/// Returns the age of the Job.
pub fn age(job: &Job, now: Timestamp) -> Duration {
    let made = job.metadata.creation_timestamp.as_ref().map_or(now, |made| made.0);
    Duration::try_from(now.duration_since(made)).unwrap_or_default()
}

pub fn related(namespace: &str, name: &str) -> RelatedObject {
    RelatedObject {
        group: "batch".to_owned(),
        resource: "jobs".to_owned(),
        name: name.to_owned(),
        namespace: Some(namespace.to_owned()),
    }
}

/// Builds the Job of `object`: one attempt, with an unprivileged container.
///
/// # Errors
/// Never in practice: the fields are those of a Job.
pub fn manifest(
    object: &DataGather,
    settings: &JobSettings,
    handed: &JobInputs,
) -> Result<Job, serde_json::Error> {
    let JobSettings { service_account, priority_class, .. } = settings;
    let archives = match place(object, settings).0 {
        Some(claim) => json!({"name": ARCHIVES, "persistentVolumeClaim": {"claimName": claim}}),
        None => json!({"name": ARCHIVES, "emptyDir": {}}),
    };
    let mut pod = json!({
        "restartPolicy": "Never",
        "serviceAccountName": service_account,
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container(object, settings, handed)],
        "volumes": handed.volumes(archives),
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
            "activeDeadlineSeconds": (handed.interval * INTERVALS).as_secs(),
            "template": {"metadata": {"labels": {LABEL: ""}, "annotations": {SCC: "restricted-v2"}}, "spec": pod},
        },
    }))
}

/// Returns the claim for the archive, if any, and the folder in the container: as the DataGather says, or else as in the
/// settings.
fn place<'a>(object: &'a DataGather, settings: &'a JobSettings) -> (Option<&'a str>, &'a str) {
    match &object.spec.storage {
        None => (settings.claim.as_deref(), &settings.archive_path),
        Some(storage) => match &storage.persistent_volume {
            Some(volume) => (Some(&volume.claim.name), volume.mount_path.as_deref().unwrap_or(MOUNT_PATH)),
            None => (None, &settings.archive_path),
        },
    }
}

fn container(object: &DataGather, settings: &JobSettings, handed: &JobInputs) -> Value {
    let JobSettings { image, args, environment, .. } = settings;
    let archive_path = place(object, settings).1;
    let own = ["gather", "--archive-dir", archive_path].map(str::to_owned);
    let args: Vec<_> = own.iter().chain(args).chain(&handed.args).collect();
    let mut env = vec![json!({"name": "DATAGATHER_NAME", "value": object.name_any()})];
    env.extend(environment.iter().map(|(name, value)| json!({"name": name, "value": value})));
    env.extend(handed.variables());
    json!({
        "name": "insights-gathering",
        "image": image,
        "args": args,
        "env": env,
        "resources": {"requests": {"cpu": "10m", "memory": "70Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": handed.mounts(json!({"name": ARCHIVES, "mountPath": archive_path})),
    })
}

const ARCHIVES: &str = "archives-path";
/// The default mount path of a claim's volume.
const MOUNT_PATH: &str = "/var/lib/insights-operator";
