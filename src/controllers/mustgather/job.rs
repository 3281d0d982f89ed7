//! The Job of a MustGather: its manifest, its ownership, and its progress. Pure.
//!
//! ```text
//!  init: program ── copies this binary ──► volume run ──► gather: run-gather -- COMMAND ──► volume must-gather-output
//!                                             └── mark ──► upload: admit upload ──► SFTP server
//! ```
//!
//! What is already on a volume is not gathered again: then there is a container `upload` only. If nothing is uploaded
//! but something is obfuscated, a container `obfuscate` takes its place.
//!
//! The container that uploads gets no token of the Pod's account, and the one that gathers none of the upload's
//! credentials. When an upload finally fails, the Job fails, and nothing is gathered a second time.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;

use super::crd::MustGather;

mod manifest;

pub use manifest::{Creation, Obfuscation, manifest};

/// Label of a Job, its Pods and its copied Secret: the uid of the MustGather. What lies in another namespace cannot be owned.
pub const OWNER: &str = "mustgathers.operator.openshift.io/owner-uid";
/// Label of Pods: the uid of their Job, as the Job controller writes it.
pub(super) const CONTROLLER: &str = "batch.kubernetes.io/controller-uid";
/// Attempts at gathering after the first.
pub const BACKOFF_LIMIT: i32 = 3;
/// Longest name of a Job: its Pods carry it as a label.
pub const MAX_NAME: usize = 63;

/// What keeps a Job from being made.
pub(super) enum NoJob {
    /// For good.
    Final(String),
    /// Until somebody makes it.
    Passing(String),
}

/// How the Job of a MustGather fares.
#[derive(Clone, Debug, PartialEq)]
pub enum JobView {
    Missing,
    /// A Job of the name exists and is not of this MustGather.
    Foreign,
    Active,
    /// Active, and told to run no Pods.
    Suspended,
    Succeeded,
    Failed(String),
}

/// Whether something is of the MustGather `uid`: owned by it, or labelled where that cannot be.
pub fn is_of(metadata: &ObjectMeta, uid: &str) -> bool {
    let owned = metadata.owner_references.iter().flatten().any(|owner| owner.uid == uid);
    let labelled = metadata.labels.iter().flatten().any(|(key, value)| key == OWNER && value == uid);
    !uid.is_empty() && (owned || labelled)
}

/// Reads a Job for the MustGather `uid`.
pub fn view(job: Option<&Job>, uid: &str) -> JobView {
    let Some(job) = job else { return JobView::Missing };
    if !is_of(&job.metadata, uid) {
        return JobView::Foreign;
    }
    let suspended = job.spec.as_ref().and_then(|spec| spec.suspend) == Some(true);
    let active = if suspended { JobView::Suspended } else { JobView::Active };
    let Some(status) = &job.status else { return active };
    let condition = |type_: &str| {
        let conditions = status.conditions.iter().flatten();
        conditions.clone().find(|condition| condition.type_ == type_ && condition.status == "True")
    };
    if let Some(failed) = condition("Failed") {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let told = format!("{}: {}", text(&failed.reason), text(&failed.message));
        return JobView::Failed(told.trim_matches([':', ' ']).to_owned());
    }
    if condition("Complete").is_some() {
        return JobView::Succeeded;
    }
    let failed = status.failed.unwrap_or(0);
    match status.active.unwrap_or(0) {
        0 if status.succeeded.unwrap_or(0) > 0 => JobView::Succeeded,
        0 if failed > BACKOFF_LIMIT => JobView::Failed(format!("{failed} pods failed")),
        _ => active,
    }
}

/// The name and the namespace of the Job: those of the MustGather; in a namespace for all, a name that no two have.
pub fn place(object: &MustGather, job_namespace: Option<&str>) -> (String, String) {
    match job_namespace {
        None => (object.namespace().unwrap_or_default(), object.name_any()),
        Some(namespace) => {
            (namespace.to_owned(), format!("must-gather-{}", object.uid().unwrap_or_default()))
        }
    }
}

/// The name of the copied Secret.
pub fn copy_name(uid: &str) -> String {
    format!("{uid}-creds")
}
