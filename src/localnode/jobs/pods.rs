//! The Pods of a Job: how they are made, whose they are, and how each one fares.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource as _, ResourceExt as _};

/// Keeps a Pod until it has been counted.
pub(super) const FINALIZER: &str = "batch.kubernetes.io/job-tracking";
/// What admission writes into a Pod that names no account.
const ACCOUNT: &str = "default";

/// The owner of a Pod, where that is a Job.
pub(super) fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    let owners = meta.owner_references.iter().flatten();
    owners.into_iter().find(|owner| owner.controller == Some(true) && owner.kind == "Job")
}

/// The next Pod of a Job.
pub(super) fn make(job: &Job) -> Option<Pod> {
    let spec = job.spec.as_ref()?;
    let template = spec.template.metadata.clone().unwrap_or_default();
    let mut finalizers = template.finalizers.unwrap_or_default();
    finalizers.push(FINALIZER.to_owned());
    let metadata = ObjectMeta {
        generate_name: Some(format!("{}-", job.name_any())),
        namespace: job.namespace(),
        labels: template.labels,
        annotations: template.annotations,
        finalizers: Some(finalizers),
        // A Job that is deleted in the foreground waits for those that say so.
        owner_references: job
            .controller_owner_ref(&())
            .map(|owner| vec![OwnerReference { block_owner_deletion: Some(true), ..owner }]),
        ..ObjectMeta::default()
    };
    let mut pod = spec.template.spec.clone()?;
    pod.service_account_name.get_or_insert_with(|| ACCOUNT.to_owned());
    Some(Pod { metadata, spec: Some(pod), status: None })
}

/// A Pod as a Job sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a>(pub(super) &'a Pod);

impl<'a> Seen<'a> {
    pub(super) fn name(self) -> String {
        self.0.name_any()
    }

    pub(super) fn uid(self) -> &'a str {
        self.0.metadata.uid.as_deref().unwrap_or_default()
    }

    /// Whether it has yet to be counted.
    pub(super) fn is_tracked(self) -> bool {
        self.0.finalizers().iter().any(|finalizer| finalizer == FINALIZER)
    }

    fn phase(self) -> &'a str {
        self.0.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
    }

    pub(super) fn succeeded(self) -> bool {
        self.phase() == "Succeeded"
    }

    fn is_going(self) -> bool {
        self.0.metadata.deletion_timestamp.is_some()
    }

    /// Whether it failed; one that is deleted before its end counts as failed, unless only failed ones are replaced.
    pub(super) fn failed(self, replaces_failed_alone: bool) -> bool {
        self.phase() == "Failed" || (!replaces_failed_alone && self.is_going() && !self.succeeded())
    }

    pub(super) fn is_active(self) -> bool {
        !self.is_going() && !["Succeeded", "Failed"].contains(&self.phase())
    }

    pub(super) fn is_terminating(self) -> bool {
        self.is_going() && !["Succeeded", "Failed"].contains(&self.phase())
    }

    pub(super) fn is_ready(self) -> bool {
        let conditions = self.0.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    }

    /// Starts of its containers after the first, while it may start them again.
    pub(super) fn restarts(self) -> i32 {
        if !["Running", "Pending"].contains(&self.phase()) {
            return 0;
        }
        self.containers().map(|container| container.restart_count).sum()
    }

    /// When its last container ended.
    pub(super) fn ended(self) -> Option<Timestamp> {
        let last = self.containers().filter_map(|container| {
            Some(container.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref()?.0)
        });
        let meta = &self.0.metadata;
        let else_ = meta.deletion_timestamp.as_ref().or(meta.creation_timestamp.as_ref()).map(|time| time.0);
        last.max().or(else_)
    }

    fn containers(self) -> impl Iterator<Item = &'a ContainerStatus> {
        let status = self.0.status.iter();
        status.flat_map(|status| {
            status.init_container_statuses.iter().flatten().chain(status.container_statuses.iter().flatten())
        })
    }
}
