//! What is to be done about a Job, from what was read of it and its Pods. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{Job, JobSpec, JobStatus, UncountedTerminatedPods};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::super::events::Note;
use super::conditions::{self, Ending};
use super::pacing;
use super::pods::Seen;

/// Pods that are made or taken away in one look.
const MAX_AT_ONCE: usize = 500;
/// Pods that wait to be counted at a time, so that the status stays small.
const MAX_UNCOUNTED: usize = 500;

/// What is to be done, in this order: Pods made and deleted, the status written, Pods let go, the status settled.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    /// The status, as if nothing had to be made or deleted.
    pub(super) status: JobStatus,
    pub(super) create: usize,
    /// Pods to delete, and whether they were ready.
    pub(super) delete: Vec<(String, bool)>,
    /// Pods whose finalizer may go once the status names them.
    pub(super) release: Vec<String>,
    pub(super) ending: Option<Ending>,
    pub(super) notes: Vec<Note>,
    /// When to look again, though nothing changes.
    pub(super) again: Option<Duration>,
}

/// How the Pods of a Job fare, with those that are not in its status yet.
struct Count<'a> {
    active: Vec<Seen<'a>>,
    ready: usize,
    terminating: usize,
    succeeded: usize,
    failed: usize,
}

impl<'a> Count<'a> {
    fn of(spec: &JobSpec, status: &JobStatus, pods: &'a [Pod]) -> Self {
        let uncounted = status.uncounted_terminated_pods.clone().unwrap_or_default();
        let (succeeded, failed) =
            (uncounted.succeeded.unwrap_or_default(), uncounted.failed.unwrap_or_default());
        let active: Vec<Seen<'_>> = pods.iter().map(Seen).filter(|pod| pod.is_active()).collect();
        let tracked = || pods.iter().map(Seen).filter(|pod| pod.is_tracked());
        let is_new = |pod: &Seen<'_>, among: &[String]| !among.iter().any(|uid| uid == pod.uid());
        let new_succeeded = tracked().filter(|pod| pod.succeeded() && is_new(pod, &succeeded)).count();
        let new_failed =
            tracked().filter(|pod| pod.failed(replaces_failed_alone(spec)) && is_new(pod, &failed)).count();
        Self {
            ready: active.iter().filter(|pod| pod.is_ready()).count(),
            terminating: pods.iter().filter(|pod| Seen(pod).is_terminating()).count(),
            succeeded: known(status.succeeded) + succeeded.len() + new_succeeded,
            failed: known(status.failed) + failed.len() + new_failed,
            active,
        }
    }
}

/// Plans for a Job that has not ended.
pub(super) fn plan(job: &Job, pods: &[Pod], now: Timestamp, first_backoff: Duration) -> Plan {
    let spec = job.spec.clone().unwrap_or_default();
    let mut status = job.status.clone().unwrap_or_default();
    status.uncounted_terminated_pods.get_or_insert_default();
    let count = Count::of(&spec, &status, pods);
    if status.start_time.is_none() && spec.suspend != Some(true) {
        status.start_time = Some(Time(now));
    }
    status.active = shown(count.active.len());
    status.ready = Some(number(count.ready));
    status.terminating = Some(number(count.terminating));
    let mut plan = Plan {
        status,
        create: 0,
        delete: Vec::new(),
        release: Vec::new(),
        ending: None,
        notes: Vec::new(),
        again: None,
    };
    let is_going = job.metadata.deletion_timestamp.is_some();
    plan.ending = Ending::decided(&plan.status).or_else(|| exceeded(&spec, &plan.status, &count, pods, now));
    if plan.ending.is_some() {
        plan.remove(&count.active);
    } else if !is_going {
        plan.manage(&spec, &count, pods, (now, first_backoff));
    }
    if let Some(ending) = &plan.ending {
        ending.announce(&mut plan.status, now);
    } else if let Some(left) = deadline(&spec, &plan.status, now) {
        plan.again = Some(plan.again.map_or(left, |again| again.min(left)));
    }
    plan.track(&spec, pods, is_going);
    plan
}

impl Plan {
    fn remove(&mut self, pods: &[Seen<'_>]) {
        let pods = pods.iter().take(MAX_AT_ONCE);
        self.delete = pods.map(|pod| (pod.name(), pod.is_ready())).collect();
    }

    /// Brings the number of Pods to what the Job asks for, and finds out whether it is complete.
    fn manage(&mut self, spec: &JobSpec, count: &Count<'_>, pods: &[Pod], pace: (Timestamp, Duration)) {
        let (now, first_backoff) = pace;
        let active = count.active.len();
        let suspended = spec.suspend == Some(true);
        let wanted = if suspended { 0 } else { wanted(spec, count) };
        let mut remaining = active;
        if active > wanted {
            // Those that have not begun go first.
            let mut order = count.active.clone();
            order.sort_by_key(|pod| {
                (pod.is_ready(), std::cmp::Reverse(pod.0.metadata.creation_timestamp.clone()))
            });
            self.remove(&order[..active - wanted]);
            remaining -= self.delete.len();
        } else {
            let waiting = if replaces_failed_alone(spec) { count.terminating } else { 0 };
            self.create = wanted.saturating_sub(waiting + active).min(MAX_AT_ONCE);
            let failed_alone = replaces_failed_alone(spec);
            if let Some(left) = pacing::remaining(pods, failed_alone, first_backoff, now)
                && self.create > 0
            {
                self.create = 0;
                self.again = Some(left);
            }
            remaining += self.create;
        }
        let reached = match spec.completions {
            None => count.succeeded > 0,
            Some(completions) => count.succeeded >= known(Some(completions)),
        };
        if reached && remaining == 0 && !(suspended && spec.completions.is_none()) {
            self.ending = Some(Ending::completed());
        } else {
            self.tell_suspension(suspended, now);
        }
    }

    fn tell_suspension(&mut self, suspended: bool, now: Timestamp) {
        let (reason, message) =
            if suspended { ("JobSuspended", "Job suspended") } else { ("JobResumed", "Job resumed") };
        if !conditions::set(&mut self.status, ("Suspended", suspended), reason, message, now) {
            return;
        }
        self.notes.push(Note::normal(if suspended { "Suspended" } else { "Resumed" }, message));
        if !suspended {
            self.status.start_time = Some(Time(now));
        }
    }

    /// Names the Pods that have ended in the status, so that their finalizers can go.
    fn track(&mut self, spec: &JobSpec, pods: &[Pod], is_going: bool) {
        let failed_alone = replaces_failed_alone(spec);
        let has_failed = self.ending.as_ref().is_some_and(|ending| !ending.succeeded);
        let uncounted = self.status.uncounted_terminated_pods.get_or_insert_default();
        let mut room = MAX_UNCOUNTED
            .saturating_sub(listed(uncounted.succeeded.as_ref()) + listed(uncounted.failed.as_ref()));
        for pod in pods.iter().map(Seen).filter(|pod| pod.is_tracked()) {
            let failed = pod.failed(failed_alone);
            if !(is_going || failed || pod.succeeded() || self.ending.is_some()) {
                continue;
            }
            let list = if pod.succeeded() {
                Some(&mut uncounted.succeeded)
            } else if failed || has_failed {
                Some(&mut uncounted.failed)
            } else {
                None
            };
            if let Some(list) = list {
                let list = list.get_or_insert_default();
                if !list.iter().any(|uid| uid == pod.uid()) {
                    if room == 0 {
                        continue;
                    }
                    room -= 1;
                    list.push(pod.uid().to_owned());
                }
            }
            self.release.push(pod.name());
        }
    }
}

/// The Pods that the status names and that have no finalizer any more, in numbers; `tracked` are the uids that have one.
pub(super) fn settle(status: &mut JobStatus, tracked: &BTreeSet<String>) {
    let Some(uncounted) = &mut status.uncounted_terminated_pods else { return };
    let UncountedTerminatedPods { succeeded, failed } = uncounted;
    for (list, number) in [(succeeded, &mut status.succeeded), (failed, &mut status.failed)] {
        let Some(uids) = list else { continue };
        let before = uids.len();
        uids.retain(|uid| tracked.contains(uid));
        *number = shown(known(*number) + before - uids.len());
        if uids.is_empty() {
            *list = None;
        }
    }
}

/// Whether every Pod has been counted and has gone, so that the last word can be said.
pub(super) fn is_settled(status: &JobStatus) -> bool {
    let uncounted = status.uncounted_terminated_pods.as_ref();
    let waiting = uncounted.map_or(0, |pods| listed(pods.succeeded.as_ref()) + listed(pods.failed.as_ref()));
    waiting == 0 && known(status.active) == 0 && known(status.terminating) == 0
}

/// How many Pods a Job wants to run now.
fn wanted(spec: &JobSpec, count: &Count<'_>) -> usize {
    let parallelism = known(Some(spec.parallelism.unwrap_or(1)));
    match spec.completions {
        Some(completions) => known(Some(completions)).saturating_sub(count.succeeded).min(parallelism),
        None if count.succeeded > 0 => count.active.len(),
        None => parallelism,
    }
}

fn exceeded(
    spec: &JobSpec,
    status: &JobStatus,
    count: &Count<'_>,
    pods: &[Pod],
    now: Timestamp,
) -> Option<Ending> {
    let limit = known(Some(spec.backoff_limit.unwrap_or(6)));
    let restarts = known(Some(pods.iter().map(|pod| Seen(pod).restarts()).sum()));
    let restarting =
        spec.template.spec.as_ref().and_then(|pod| pod.restart_policy.as_deref()) == Some("OnFailure");
    let restarted = restarting && restarts > 0 && restarts >= limit;
    if count.failed > limit || restarted {
        return Some(Ending::failed("BackoffLimitExceeded", "Job has reached the specified backoff limit"));
    }
    let late = deadline(spec, status, now)?.is_zero();
    late.then(|| Ending::failed("DeadlineExceeded", "Job was active longer than specified deadline"))
}

/// What is left until the Job's deadline; nothing of it when the deadline has passed.
fn deadline(spec: &JobSpec, status: &JobStatus, now: Timestamp) -> Option<Duration> {
    let seconds = spec.active_deadline_seconds.filter(|_| spec.suspend != Some(true))?;
    let until = status.start_time.as_ref()?.0.saturating_add(SignedDuration::from_secs(seconds)).ok()?;
    Some(Duration::try_from(until.duration_since(now)).unwrap_or_default())
}

pub(super) fn replaces_failed_alone(spec: &JobSpec) -> bool {
    spec.pod_replacement_policy.as_deref() == Some("Failed")
}

pub(super) fn known(number: Option<i32>) -> usize {
    usize::try_from(number.unwrap_or(0)).unwrap_or(0)
}

pub(super) fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// Nought is not shown.
pub(super) fn shown(count: usize) -> Option<i32> {
    (count > 0).then(|| number(count))
}

fn listed(uids: Option<&Vec<String>>) -> usize {
    uids.map_or(0, Vec::len)
}
