//! Jobs whose Pods have an index each: which indexes have succeeded, which have failed for good, and which Pods come next. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{JobSpec, JobStatus};
use k8s_openapi::api::core::v1::Pod;

use super::indexes::Indexes;
use super::pods::{Failures, New, Seen};
use super::policies::{self, Verdict};
use super::{backoff, counts};

/// How the indexes of a Job fare.
pub(super) struct Indexed<'a> {
    pub(super) completions: usize,
    /// Those that the status names, and those of Pods that are not counted yet.
    pub(super) succeeded: Indexes,
    /// Those that no Pod follows any more; none where failures are counted for the Job as a whole.
    pub(super) failed: Option<Indexes>,
    /// Of each index that waits for another Pod the last one that failed. It tells how often its index has failed, and so it
    /// stays until there is another that tells it.
    held: BTreeMap<usize, Seen<'a>>,
    active: BTreeSet<usize>,
    terminating: BTreeSet<usize>,
}

impl<'a> Indexed<'a> {
    /// Nothing for a Job whose Pods have no index.
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

    /// Whether the Pod's finalizer has to wait for the Pod that follows it.
    pub(super) fn holds(&self, pod: Seen<'_>) -> bool {
        self.held.values().any(|held| held.uid() == pod.uid())
    }

    /// Whether a Pod has an index that its Job asks for.
    pub(super) fn knows(&self, pod: Seen<'_>) -> bool {
        pod.index().is_some_and(|index| index < self.completions)
    }

    /// Why the Job has failed by its indexes, as reason and message.
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

    /// Active Pods that must go, whatever their number: those without an index that is asked for, and of those that share
    /// one all but the farthest.
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

    /// The next Pods, `count` at the most; and where all of them have to wait after failures of their index, for how long.
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

/// Whether no Pod of its index follows one that failed.
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

/// How often an index has failed when another Pod follows `before`.
fn following(spec: &JobSpec, before: Option<&Seen<'_>>) -> Failures {
    let Some(before) = before else { return Failures::default() };
    let Failures { counted, ignored } = before.failures();
    match policies::verdict(spec, before.0) {
        Verdict::Ignore => Failures { counted, ignored: ignored + 1 },
        _ => Failures { counted: counted + 1, ignored },
    }
}
