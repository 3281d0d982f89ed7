//! Creates the Pods of a Job, and reads their owner and state.

use std::cmp::Reverse;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{
    Container, ContainerStatus, EnvVar, EnvVarSource, ObjectFieldSelector, Pod, PodSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource as _, ResourceExt as _};

/// Keeps a Pod until it has been counted.
pub(super) const FINALIZER: &str = "batch.kubernetes.io/job-tracking";
/// The account that admission sets in a Pod without one.
const ACCOUNT: &str = "default";

/// The label and annotation with the index of a Pod.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// The annotations with the number of earlier failures of the Pod's index.
const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
const IGNORED: &str = "batch.kubernetes.io/job-index-ignored-failure-count";
/// The environment variable with the index of the Pod.
const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";
/// The most bytes of `generateName` that the server keeps.
const MAX_GENERATED: usize = 58;

/// The failures of one index: those that count, and those that a policy ignores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Failures {
    pub(super) counted: usize,
    pub(super) ignored: usize,
}

impl Failures {
    pub(super) fn all(self) -> usize {
        self.counted.saturating_add(self.ignored)
    }
}

/// A Pod to create.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct New {
    pub(super) index: Option<usize>,
    /// Set if each index has its own failure limit.
    pub(super) failures: Option<Failures>,
}

/// Returns the owner of a Pod, if that is a Job.
pub(super) fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    let owners = meta.owner_references.iter().flatten();
    owners.into_iter().find(|owner| owner.controller == Some(true) && owner.kind == "Job")
}

/// Creates a Pod of a Job.
pub(super) fn make(job: &Job, new: New) -> Option<Pod> {
    let spec = job.spec.as_ref()?;
    let template = spec.template.metadata.clone().unwrap_or_default();
    let mut finalizers = template.finalizers.unwrap_or_default();
    if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
        finalizers.push(FINALIZER.to_owned());
    }
    let metadata = ObjectMeta {
        generate_name: Some(format!("{}-", job.name_any())),
        namespace: job.namespace(),
        labels: template.labels,
        annotations: template.annotations,
        finalizers: Some(finalizers),
        // The Job's foreground deletion waits for Pods with `blockOwnerDeletion`.
        owner_references: job
            .controller_owner_ref(&())
            .map(|owner| vec![OwnerReference { block_owner_deletion: Some(true), ..owner }]),
        ..ObjectMeta::default()
    };
    let mut pod = spec.template.spec.clone()?;
    pod.service_account_name.get_or_insert_with(|| ACCOUNT.to_owned());
    let mut pod = Pod { metadata, spec: Some(pod), status: None };
    new.name(&job.name_any(), &mut pod);
    Some(pod)
}

impl New {
    /// Sets name, index and failures of the Pod.
    fn name(self, job: &str, pod: &mut Pod) {
        let Some(index) = self.index else { return };
        let meta = &mut pod.metadata;
        meta.generate_name = Some(generated(job, index));
        meta.labels.get_or_insert_default().insert(INDEX.to_owned(), index.to_string());
        let annotations = meta.annotations.get_or_insert_default();
        annotations.insert(INDEX.to_owned(), index.to_string());
        if let Some(failures) = self.failures {
            annotations.insert(FAILURES.to_owned(), failures.counted.to_string());
            if failures.ignored > 0 {
                annotations.insert(IGNORED.to_owned(), failures.ignored.to_string());
            }
        }
        let Some(spec) = &mut pod.spec else { return };
        spec.hostname = Some(format!("{job}-{index}"));
        let PodSpec { init_containers, containers, .. } = spec;
        init_containers.iter_mut().flatten().chain(containers).for_each(tell_index);
    }
}

fn generated(job: &str, index: usize) -> String {
    let end = format!("-{index}-");
    let most = MAX_GENERATED.saturating_sub(end.len()).min(job.len());
    let begin =
        if job.len() + end.len() > MAX_GENERATED { &job[..job.floor_char_boundary(most)] } else { job };
    format!("{begin}{end}")
}

fn tell_index(container: &mut Container) {
    let env = container.env.get_or_insert_default();
    if env.iter().any(|variable| variable.name == INDEX_VARIABLE) {
        return;
    }
    let field =
        ObjectFieldSelector { field_path: format!("metadata.labels['{INDEX}']"), ..Default::default() };
    env.push(EnvVar {
        name: INDEX_VARIABLE.to_owned(),
        value_from: Some(EnvVarSource { field_ref: Some(field), ..Default::default() }),
        ..Default::default()
    });
}

/// A Pod from the point of view of its Job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a>(pub(super) &'a Pod);

impl<'a> Seen<'a> {
    pub(super) fn name(self) -> String {
        self.0.name_any()
    }

    pub(super) fn uid(self) -> &'a str {
        self.0.metadata.uid.as_deref().unwrap_or_default()
    }

    /// Returns its index, if it has one.
    pub(super) fn index(self) -> Option<usize> {
        self.annotation(INDEX)
    }

    /// Returns the number of earlier failures of its index.
    pub(super) fn failures(self) -> Failures {
        let known = |key| self.annotation(key).unwrap_or_default();
        Failures { counted: known(FAILURES), ignored: known(IGNORED) }
    }

    fn annotation(self, key: &str) -> Option<usize> {
        self.0.metadata.annotations.as_ref()?.get(key)?.parse().ok()
    }

    /// Orders Pods by their progress, the least first: of two equal ones the younger is deleted first.
    pub(super) fn progress(&self) -> (bool, bool, bool, Reverse<Option<Timestamp>>) {
        let bound = self.0.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
        let begun = self.0.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (bound, self.phase() == "Running", self.is_ready(), Reverse(begun))
    }

    /// Whether it has not been counted yet.
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

    /// Whether it failed; a Pod that is deleted before its end counts as failed, unless only failed Pods are replaced.
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

    /// Returns how often its containers were restarted, as long as it may restart them.
    pub(super) fn restarts(self) -> i32 {
        if !["Running", "Pending"].contains(&self.phase()) {
            return 0;
        }
        self.containers().map(|container| container.restart_count).sum()
    }

    /// Returns when its last container ended.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_with_an_index_knows_it() {
        let job: Job = serde_json::from_value(json!({"metadata": {"name": "j", "uid": "u"}, "spec": {"template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "one"}, {"name": "two", "env": [{"name": "JOB_COMPLETION_INDEX", "value": "own"}]}]},
        }}}))
        .unwrap();
        let failures = Failures { counted: 2, ignored: 1 };
        let pod = make(&job, New { index: Some(4), failures: Some(failures) }).unwrap();
        assert_eq!(pod.metadata.generate_name.as_deref(), Some("j-4-"));
        assert_eq!((pod.labels()[INDEX].as_str(), pod.labels()["a"].as_str()), ("4", "b"));
        assert_eq!((Seen(&pod).index(), Seen(&pod).failures()), (Some(4), failures));
        let spec = pod.spec.unwrap();
        assert_eq!(spec.hostname.as_deref(), Some("j-4"));
        let env = |at: usize| serde_json::to_value(&spec.containers[at].env).unwrap();
        let field = "metadata.labels['batch.kubernetes.io/job-completion-index']";
        assert_eq!(env(0)[0]["valueFrom"]["fieldRef"]["fieldPath"], field);
        assert_eq!(env(1), json!([{"name": "JOB_COMPLETION_INDEX", "value": "own"}]));
        let plain = make(&job, New::default()).unwrap();
        assert_eq!(
            (plain.metadata.generate_name.as_deref(), plain.spec.unwrap().hostname),
            (Some("j-"), None)
        );
    }

    #[test]
    fn long_names_leave_room_for_the_index_and_the_rest() {
        let long = "x".repeat(63);
        assert_eq!(generated(&long, 12).len(), MAX_GENERATED);
        assert!(generated(&long, 12).ends_with("x-12-"));
        assert_eq!(generated("short", 0), "short-0-");
    }
}
