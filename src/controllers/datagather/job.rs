//! The Job of a gathering: its manifest, its ownership, and its progress. Pure.
//!
//! The Job has the name of the DataGather, which owns it, so that a second one cannot be created, one whose status
//! write was lost is found again, and it is deleted with the DataGather.

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

/// Label of gathering Jobs and their Pods.
pub(super) const LABEL: &str = "insights-gathering";
/// Which security constraint of OpenShift the Pods ask for: there it counts, not at the Job.
const SCC: &str = "openshift.io/required-scc";
/// Label of Pods that names their Job.
pub(super) const JOB_NAME: &str = "batch.kubernetes.io/job-name";
/// Longest name of a Job: its Pods carry it as a label.
pub(super) const MAX_NAME: usize = 63;
/// How long a Pod may be stuck in what seldom mends itself before its gathering is given up.
pub const PATIENCE: Duration = Duration::from_secs(90);
/// Longest life of a Job in intervals of gathering: one whose Pod never starts would leave its DataGather Pending for ever. Uploads
/// are tried for three and a half hours.
const INTERVALS: u32 = 4;

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
    /// Its Pod has not begun to gather, because of what seldom mends itself; how old the Job is.
    Stuck {
        why: String,
        age: Duration,
    },
    Succeeded,
    Failed(String),
}

/// What counts of a Pod.
#[derive(Clone, Debug)]
pub(super) struct PodSeen {
    pub(super) job: String,
    /// What keeps it from starting and seldom mends itself.
    pub(super) lasting: Option<Hindrance>,
}

impl PodSeen {
    pub(super) fn of(pod: &Pod) -> Self {
        let job = pod.labels().get(JOB_NAME).cloned().unwrap_or_default();
        Self { job, lasting: hindrance(pod).filter(|hindrance| !hindrance.passes) }
    }
}

/// Reads a Job for the DataGather `uid`.
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

/// Whether nothing of the Job runs any more.
pub(super) fn has_ended(job: &Job) -> bool {
    ["Complete", "Failed"].iter().any(|type_| condition(job, type_).is_some())
}

fn condition<'j>(job: &'j Job, type_: &str) -> Option<&'j JobCondition> {
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().find(|condition| condition.type_ == type_ && condition.status == "True")
}

/// How long ago the Job was made.
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

/// The Job of `object`: one attempt, a container without rights of its own.
///
/// # Errors
/// None in practice: the fields are those of a Job.
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

/// The claim whose volume the archive goes to, if it is one, and the folder in the container: as the DataGather says, or else the
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
/// Where the volume of a claim is, of which a DataGather says no more.
const MOUNT_PATH: &str = "/var/lib/insights-operator";
