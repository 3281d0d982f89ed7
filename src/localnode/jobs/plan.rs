//! Plans what to do about a Job, from its state and that of its Pods. No I/O.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{Job, JobSpec, JobStatus, UncountedTerminatedPods};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::super::events::Note;
use super::backoff;
use super::conditions::{self, Ending};
use super::counts::{known, listed, number, shown};
use super::indexed::Indexed;
use super::pods::{New, Seen};
use super::policies::{self, Verdict};

/// The most Pods that are created or deleted in one sync.
const MAX_AT_ONCE: usize = 500;
/// The most uncounted Pods in the status, to keep it small.
const MAX_UNCOUNTED: usize = 500;

/// What to do, in this order: create and delete Pods, write the status, remove finalizers, update the counts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    /// The new status, before creations and deletions.
    pub(super) status: JobStatus,
    pub(super) create: Vec<New>,
    pub(super) delete: Vec<Doomed>,
    /// Pods whose finalizer may be removed once the status lists them.
    pub(super) release: Vec<String>,
    pub(super) ending: Option<Ending>,
    pub(super) notes: Vec<Note>,
    /// When to sync again even if nothing changes.
    pub(super) again: Option<Duration>,
}

/// A Pod to delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Doomed {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) was_ready: bool,
    /// Whether it does not affect the Job's counts: nobody waits for its end, since the Job wants fewer Pods than it has.
    pub(super) is_untold: bool,
}

/// The states of a Job's Pods, including those that are not in its status yet.
struct Count<'a> {
    active: Vec<Seen<'a>>,
    ready: usize,
    terminating: usize,
    succeeded: usize,
    failed: usize,
    indexed: Option<Indexed<'a>>,
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
        let indexed = Indexed::of(spec, status, pods);
        let counts = |pod: &Seen<'_>| counts_as_failed(spec, indexed.as_ref(), *pod);
        let new_failed = tracked().filter(|pod| counts(pod) && is_new(pod, &failed)).count();
        Self {
            ready: active.iter().filter(|pod| pod.is_ready()).count(),
            terminating: pods.iter().filter(|pod| Seen(pod).is_terminating()).count(),
            succeeded: match &indexed {
                Some(indexed) => indexed.succeeded.total(),
                None => known(status.succeeded) + succeeded.len() + new_succeeded,
            },
            failed: known(status.failed) + failed.len() + new_failed,
            active,
            indexed,
        }
    }

    /// Writes the completed and failed indexes into the status.
    fn tell_indexes(&self, status: &mut JobStatus) {
        let Some(indexed) = &self.indexed else { return };
        status.succeeded = shown(indexed.succeeded.total());
        status.completed_indexes = Some(indexed.succeeded.to_string()).filter(|text| !text.is_empty());
        status.failed_indexes = indexed.failed.as_ref().map(ToString::to_string);
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
    count.tell_indexes(&mut status);
    let mut plan = Plan {
        status,
        create: Vec::new(),
        delete: Vec::new(),
        release: Vec::new(),
        ending: None,
        notes: Vec::new(),
        again: None,
    };
    let is_going = job.metadata.deletion_timestamp.is_some();
    plan.ending = Ending::decided(&plan.status).or_else(|| exceeded(&spec, &plan.status, &count, pods, now));
    if plan.ending.is_some() {
        plan.remove(&count.active, false);
    } else if !is_going {
        plan.manage(&spec, &count, pods, (now, first_backoff));
    }
    if let Some(ending) = &plan.ending {
        ending.announce(&mut plan.status, now);
    } else if let Some(left) = deadline(&spec, &plan.status, now) {
        plan.again = Some(plan.again.map_or(left, |again| again.min(left)));
    }
    plan.track(&spec, (pods, count.indexed.as_ref()), is_going);
    plan
}

impl Plan {
    fn remove(&mut self, pods: &[Seen<'_>], is_untold: bool) {
        let pods = pods.iter().take(MAX_AT_ONCE);
        let doomed = |pod: &Seen<'_>| Doomed {
            name: pod.name(),
            uid: pod.uid().to_owned(),
            was_ready: pod.is_ready(),
            is_untold,
        };
        self.delete = pods.map(doomed).collect();
    }

    /// Plans the Pods that the Job needs, and decides whether it is complete.
    fn manage(&mut self, spec: &JobSpec, count: &Count<'_>, pods: &[Pod], pace: (Timestamp, Duration)) {
        let active = count.active.len();
        let suspended = spec.suspend == Some(true);
        let wanted = if suspended { 0 } else { wanted(spec, count) };
        let surplus = surplus(count, active.saturating_sub(wanted));
        if surplus.is_empty() {
            let waiting = if policies::replaces_failed_alone(spec) { count.terminating } else { 0 };
            let missing = wanted.saturating_sub(waiting + active).min(MAX_AT_ONCE);
            if missing > 0 && !suspended {
                self.add(missing, spec, (count, pods), pace);
            }
        } else {
            self.remove(&surplus, true);
        }
        let remaining = active + self.create.len() - self.delete.len();
        let reached = match spec.completions {
            None => count.succeeded > 0,
            Some(completions) => count.succeeded >= known(Some(completions)),
        };
        if reached && remaining == 0 && !(suspended && spec.completions.is_none()) {
            self.ending = Some(Ending::completed());
        } else {
            self.tell_suspension(suspended, pace.0);
        }
    }

    /// Plans to create a number of Pods, unless a backoff is not over.
    fn add(
        &mut self,
        missing: usize,
        spec: &JobSpec,
        (count, pods): (&Count<'_>, &[Pod]),
        (now, first_backoff): (Timestamp, Duration),
    ) {
        if spec.backoff_limit_per_index.is_none() {
            self.again = backoff::remaining(pods, policies::replaces_failed_alone(spec), first_backoff, now);
            if self.again.is_some() {
                return;
            }
        }
        match &count.indexed {
            Some(indexed) => (self.create, self.again) = indexed.next(spec, missing, (now, first_backoff)),
            None => self.create = vec![New::default(); missing],
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

    /// Lists the ended Pods in the status, so that their finalizers can be removed.
    fn track(&mut self, spec: &JobSpec, (pods, indexed): (&[Pod], Option<&Indexed<'_>>), is_going: bool) {
        let failed_alone = policies::replaces_failed_alone(spec);
        let has_failed = self.ending.as_ref().is_some_and(|ending| !ending.succeeded);
        let uncounted = self.status.uncounted_terminated_pods.get_or_insert_default();
        let mut room = MAX_UNCOUNTED
            .saturating_sub(listed(uncounted.succeeded.as_ref()) + listed(uncounted.failed.as_ref()));
        for pod in pods.iter().map(Seen).filter(|pod| pod.is_tracked()) {
            let failed = pod.failed(failed_alone);
            let over = is_going || pod.succeeded() || self.ending.is_some();
            let held = indexed.is_some_and(|indexed| indexed.holds(pod));
            if !(over || failed && !held) {
                continue;
            }
            let list = if pod.succeeded() {
                // Indexes are counted by the index lists, so their Pods are not listed.
                indexed.is_none().then_some(&mut uncounted.succeeded)
            } else if failed || has_failed {
                counts(spec, indexed, pod).then_some(&mut uncounted.failed)
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

/// Moves listed Pods without a finalizer to the counts; `tracked` are the uids of Pods with one.
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

/// Whether every Pod has been counted and has terminated, so that the final condition can be set.
pub(super) fn is_settled(status: &JobStatus) -> bool {
    let uncounted = status.uncounted_terminated_pods.as_ref();
    let waiting = uncounted.map_or(0, |pods| listed(pods.succeeded.as_ref()) + listed(pods.failed.as_ref()));
    waiting == 0 && known(status.active) == 0 && known(status.terminating) == 0
}

/// Whether a Pod failed, and counts as failed.
fn counts_as_failed(spec: &JobSpec, indexed: Option<&Indexed<'_>>, pod: Seen<'_>) -> bool {
    pod.failed(policies::replaces_failed_alone(spec)) && counts(spec, indexed, pod)
}

/// Whether a Pod counts if it fails: its index is valid, and no policy ignores it.
fn counts(spec: &JobSpec, indexed: Option<&Indexed<'_>>, pod: Seen<'_>) -> bool {
    indexed.is_none_or(|indexed| indexed.knows(pod)) && policies::verdict(spec, pod.0) != Verdict::Ignore
}

/// Returns active Pods to delete, `least` of them at least: the least advanced ones first.
fn surplus<'a>(count: &Count<'a>, least: usize) -> Vec<Seen<'a>> {
    let mut surplus =
        count.indexed.as_ref().map(|indexed| indexed.surplus(&count.active)).unwrap_or_default();
    let mut left: Vec<Seen<'a>> = count.active.clone();
    left.retain(|pod| !surplus.iter().any(|other| other.uid() == pod.uid()));
    left.sort_by_key(Seen::progress);
    let more = least.saturating_sub(surplus.len());
    surplus.extend(left.into_iter().take(more));
    surplus
}

/// Returns how many Pods a Job should run now.
fn wanted(spec: &JobSpec, count: &Count<'_>) -> usize {
    let parallelism = known(Some(spec.parallelism.unwrap_or(1)));
    match spec.completions {
        Some(completions) => known(Some(completions)).saturating_sub(count.succeeded).min(parallelism),
        None if count.succeeded > 0 => count.active.len(),
        None => parallelism,
    }
}

/// Returns why the Job fails before it is complete; the first of several reasons.
fn exceeded(
    spec: &JobSpec,
    status: &JobStatus,
    count: &Count<'_>,
    pods: &[Pod],
    now: Timestamp,
) -> Option<Ending> {
    let of_policy = pods
        .iter()
        .filter(|pod| Seen(pod).failed(policies::replaces_failed_alone(spec)))
        .find_map(|pod| match policies::verdict(spec, pod) {
            Verdict::FailJob(why) => Some(Ending::failed("PodFailurePolicy", &why)),
            _ => None,
        });
    let limit = known(Some(spec.backoff_limit.unwrap_or(6)));
    let restarts = known(Some(pods.iter().map(|pod| Seen(pod).restarts()).sum()));
    let restarting =
        spec.template.spec.as_ref().and_then(|pod| pod.restart_policy.as_deref()) == Some("OnFailure");
    let restarted = restarting && restarts > 0 && restarts >= limit;
    let of_limit = || {
        let text = "Job has reached the specified backoff limit";
        (count.failed > limit || restarted).then(|| Ending::failed("BackoffLimitExceeded", text))
    };
    let of_deadline = || {
        let late = deadline(spec, status, now)?.is_zero();
        late.then(|| Ending::failed("DeadlineExceeded", "Job was active longer than specified deadline"))
    };
    let of_indexes = || {
        let (reason, text) = count.indexed.as_ref()?.failure(spec)?;
        Some(Ending::failed(reason, text))
    };
    let of_success = || {
        let indexed = count.indexed.as_ref()?;
        let text = policies::success(spec, &indexed.succeeded, indexed.completions)?;
        Some(Ending { succeeded: true, reason: "SuccessPolicy".to_owned(), message: text })
    };
    of_policy.or_else(of_limit).or_else(of_deadline).or_else(of_indexes).or_else(of_success)
}

/// Returns the remaining time until the Job's deadline; zero if it has passed.
fn deadline(spec: &JobSpec, status: &JobStatus, now: Timestamp) -> Option<Duration> {
    let seconds = spec.active_deadline_seconds.filter(|_| spec.suspend != Some(true))?;
    let until = status.start_time.as_ref()?.0.saturating_add(SignedDuration::from_secs(seconds)).ok()?;
    Some(Duration::try_from(until.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests;
