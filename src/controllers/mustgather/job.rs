//! Builds the Job of a MustGather, and reads its ownership and progress. Pure.
//!
//! ```text
//!  init: program ── copies this binary ──► volume run ──► gather: run-gather -- COMMAND ──► volume must-gather-output
//!                                             └── mark ──► upload: admit upload ──► SFTP server
//! ```
//!
//! If the collection is on a volume already, there is only a container `upload`. If nothing is uploaded
//! but something is obfuscated, a container `obfuscate` replaces it.
//!
//! The uploading container gets no token of the Pod's account, and the gathering one none of the upload's
//! credentials. When an upload finally fails, the Job fails, and nothing is gathered a second time.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;

use super::crd::MustGather;

mod manifest;

pub use manifest::{Creation, Obfuscation, manifest};

/// The label of a Job, its Pods and its copied Secret with the uid of the MustGather, since owners must be in the same namespace.
pub const OWNER: &str = "mustgathers.operator.openshift.io/owner-uid";
/// The label of Pods with the uid of their Job, set by the Job controller.
pub(super) const CONTROLLER: &str = "batch.kubernetes.io/controller-uid";
/// The number of retries of gathering.
pub const BACKOFF_LIMIT: i32 = 3;
/// The longest name of a Job, which is a label value of its Pods.
pub const MAX_NAME: usize = 63;

/// Why a Job cannot be created.
pub(super) enum NoJob {
    /// A permanent reason.
    Final(String),
    /// A temporary reason, such as a missing object.
    Passing(String),
}

/// The state of a MustGather's Job.
#[derive(Clone, Debug, PartialEq)]
pub enum JobView {
    Missing,
    /// There is a Job with the name that does not belong to this MustGather.
    Foreign,
    Active,
    /// Active, and suspended.
    Suspended,
    Succeeded,
    Failed(String),
}

/// Whether an object belongs to the MustGather `uid`: by its owner, or by its label in another namespace.
pub fn is_of(metadata: &ObjectMeta, uid: &str) -> bool {
    let owned = metadata.owner_references.iter().flatten().any(|owner| owner.uid == uid);
    let labelled = metadata.labels.iter().flatten().any(|(key, value)| key == OWNER && value == uid);
    !uid.is_empty() && (owned || labelled)
}

/// Returns the state of a Job for the MustGather `uid`.
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

/// Returns the namespace and the name of the Job: those of the MustGather, or in a common namespace a unique name.
pub fn place(object: &MustGather, job_namespace: Option<&str>) -> (String, String) {
    match job_namespace {
        None => (object.namespace().unwrap_or_default(), object.name_any()),
        Some(namespace) => {
            (namespace.to_owned(), format!("must-gather-{}", object.uid().unwrap_or_default()))
        }
    }
}

/// Returns the name of the copied Secret.
pub fn copy_name(uid: &str) -> String {
    format!("{uid}-creds")
}
