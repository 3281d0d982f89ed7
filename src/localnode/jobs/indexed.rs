//! Tracks the indexes of Indexed Jobs: which have succeeded, which have failed, and which Pods come next. No I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{JobSpec, JobStatus};
use k8s_openapi::api::core::v1::Pod;

use super::indexes::Indexes;
use super::pods::{Failures, New, Seen};
use super::policies::{self, Verdict};
use super::{backoff, counts};

/// The state of the indexes of a Job.
pub(super) struct Indexed<'a> {
    pub(super) completions: usize,
    /// Succeeded indexes: those in the status, and those of Pods that are not counted yet.
    pub(super) succeeded: Indexes,
    /// Failed indexes, which get no further Pod; None if failures are counted for the Job as a whole.
    pub(super) failed: Option<Indexes>,
    /// For each index that waits for another Pod, the last Pod that failed. It has the number of failures of its index, so it
    /// must stay until the next Pod has that number.
    held: BTreeMap<usize, Seen<'a>>,
    active: BTreeSet<usize>,
    terminating: BTreeSet<usize>,
}

impl<'a> Indexed<'a> {
    /// Returns None for a Job whose Pods have no index.
    pub(super) fn of(spec: &JobSpec, status: &JobStatus, pods: &'a [Pod]) -> Option<Self> {
        if spec.completion_mode.as_deref() != Some("Indexed") {
            return None;
        }
        let completions = counts::known(spec.completions);
        let known =
            |text: Option<&String>| Indexes::parse(text.map(String::as_str).unwrap_or_default(), completions);
        let valid = || {
            let indexed = pods.iter().map(Seen).filter_map(|pod| Some((pod.index()?, pod)));
            indexed.filter(move |(index, _)| *index < completions)
        };
        let tracked = || valid().filter(|(_, pod)| pod.is_tracked());
        let new = tracked().filter(|(_, pod)| pod.succeeded()).map(|(index, _)| index);
        let mut this = Self {
            completions,
            succeeded: known(status.completed_indexes.as_ref()).with(new),
            failed: None,
            held: BTreeMap::new(),
            active: valid().filter(|(_, pod)| pod.is_active()).map(|(index, _)| index).collect(),
            terminating: valid().filter(|(_, pod)| pod.is_terminating()).map(|(index, _)| index).collect(),
        };
        if let Some(limit) = spec.backoff_limit_per_index {
            let new = tracked().filter(|(_, pod)| is_last(spec, *pod, counts::known(Some(limit))));
            this.failed = Some(known(status.failed_indexes.as_ref()).with(new.map(|(index, _)| index)));
            tracked().for_each(|(index, pod)| this.hold(spec, index, pod));
        }
        Some(this)
    }

    fn hold(&mut self, spec: &JobSpec, index: usize, pod: Seen<'a>) {
        let given_up = self.failed.as_ref().is_some_and(|failed| failed.has(index));
        let settled = self.succeeded.has(index) || given_up || self.active.contains(&index);
        if settled || !pod.failed(policies::replaces_failed_alone(spec)) {
            return;
        }
        let held = self.held.entry(index).or_insert(pod);
        if held.failures().all() <= pod.failures().all() && held.ended() <= pod.ended() {
            *held = pod;
        }
    }

    /// Whether the finalizer of the Pod must stay until the next Pod of its index exists.
    pub(super) fn holds(&self, pod: Seen<'_>) -> bool {
        self.held.values().any(|held| held.uid() == pod.uid())
    }

    /// Whether the Pod's index is within the Job's completions.
    pub(super) fn knows(&self, pod: Seen<'_>) -> bool {
        pod.index().is_some_and(|index| index < self.completions)
    }

    /// Returns why the Job has failed because of its indexes, as reason and message.
    pub(super) fn failure(&self, spec: &JobSpec) -> Option<(&'static str, &'static str)> {
        let failed = self.failed.as_ref()?.total();
        let most = spec.max_failed_indexes.map(|most| counts::known(Some(most)));
        if most.is_some_and(|most| failed > most) {
            let text = "Job has exceeded the specified maximal number of failed indexes";
            return Some(("MaxFailedIndexesExceeded", text));
        }
        let over = failed > 0 && failed + self.succeeded.total() >= self.completions;
        over.then_some(("FailedIndexes", "Job has failed indexes"))
    }

    /// Returns active Pods that must be deleted whatever their number: those with an invalid index, and of Pods with the same
    /// index all but the most advanced one.
    pub(super) fn surplus(&self, active: &[Seen<'a>]) -> Vec<Seen<'a>> {
        let (known, mut surplus): (Vec<Seen<'a>>, Vec<Seen<'a>>) =
            active.iter().partition(|pod| self.knows(**pod));
        let mut of_index: BTreeMap<usize, Vec<Seen<'a>>> = BTreeMap::new();
        known.into_iter().filter_map(|pod| Some((pod.index()?, pod))).for_each(|(index, pod)| {
            of_index.entry(index).or_default().push(pod);
        });
        for mut same in of_index.into_values() {
            same.sort_by_key(Seen::progress);
            same.pop();
            surplus.append(&mut same);
        }
        surplus
    }

    /// Returns the next Pods, `count` at most; or if all of them must wait after failures of their index, for how long.
    pub(super) fn next(
        &self,
        spec: &JobSpec,
        count: usize,
        (now, first_backoff): (Timestamp, Duration),
    ) -> (Vec<New>, Option<Duration>) {
        let mut taken = self.succeeded.with(self.active.iter().copied());
        if let Some(failed) = &self.failed {
            taken = taken.and(failed);
        }
        if policies::replaces_failed_alone(spec) {
            taken = taken.with(self.terminating.iter().copied());
        }
        let pending = taken.first_missing(count, self.completions);
        if self.failed.is_none() {
            return (
                pending.into_iter().map(|index| New { index: Some(index), failures: None }).collect(),
                None,
            );
        }
        let (mut next, mut wait) = (Vec::new(), None::<Duration>);
        for index in pending {
            let before = self.held.get(&index);
            let left = before
                .and_then(|pod| backoff::left(pod.failures().all() + 1, pod.ended()?, first_backoff, now));
            match left {
                Some(left) => wait = Some(wait.map_or(left, |wait| wait.min(left))),
                None => next.push(New { index: Some(index), failures: Some(following(spec, before)) }),
            }
        }
        let wait = wait.filter(|_| next.is_empty());
        (next, wait)
    }
}

/// Whether no further Pod of its index follows a failed one.
fn is_last(spec: &JobSpec, pod: Seen<'_>, limit: usize) -> bool {
    if !pod.failed(policies::replaces_failed_alone(spec)) {
        return false;
    }
    match policies::verdict(spec, pod.0) {
        Verdict::FailIndex => true,
        Verdict::Ignore => false,
        Verdict::Count | Verdict::FailJob(_) => pod.failures().counted >= limit,
    }
}

/// Returns the number of failures of an index for the Pod that follows `before`.
fn following(spec: &JobSpec, before: Option<&Seen<'_>>) -> Failures {
    let Some(before) = before else { return Failures::default() };
    let Failures { counted, ignored } = before.failures();
    match policies::verdict(spec, before.0) {
        Verdict::Ignore => Failures { counted, ignored: ignored + 1 },
        _ => Failures { counted: counted + 1, ignored },
    }
}
