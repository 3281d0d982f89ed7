//! Second stage: decides the next step for one DataGather. Pure: no client, no clock, no waiting.
//!
//! ```text
//!  (none) ──► Pending ──► Running ──► Completed ──► (report)      Pending: the conditions exist, nothing has begun
//!     └──────────┴───────────┴──────► Failed                      Running: exactly one run was started for it
//! ```
//!
//! INVARIANT: a run is started only together with the write Pending → Running, and only if that write is accepted.
//! The state never goes back, so a DataGather is run at most once, whichever process restarts when. One that is
//! `Running` without a run was interrupted, and fails: running it again could make a second archive.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Resource, ResourceExt};

use super::crd::{DataGather, DataGatherStatus, DataPolicy, GathererState, State};
use super::fetch::Fetched;
use super::job::{self, JobView, MAX_NAME, PATIENCE};
use super::run_conditions::{ANALYSIS, PROCESSED, RECORDED, UPLOADED};
use super::run_state::{Activity, Progress};
use super::{periodic, run_conditions};
use crate::controllers::kit::conditions::{self, Statement, Truth};
use crate::controllers::kit::events::Notice;
use crate::gather::gatherer::Gatherer;
use crate::gather::select::{Choice, Selection, select};

/// The message for a DataGather whose volume this process cannot mount.
const NEEDS_A_JOB: &str =
    "spec.storage names a claim, whose volume only a Job can have: run the controllers with --runner job";

/// The settings that the plan depends on.
#[derive(Clone, Debug)]
pub struct Rules {
    pub table: &'static [Gatherer],
    /// The namespace of Jobs, if gatherings run in Jobs instead of this process.
    pub jobs: Option<String>,
    /// Whether to run periodic gatherings.
    pub periodic: bool,
    /// Whether to download the report of a completed run.
    pub reports: bool,
    /// Whether to obfuscate regardless of `dataPolicy`.
    pub always_obfuscate: bool,
}

/// The plan, at stage `W`: [`Prepared`] before it is applied, [`super::apply::Applied`] after.
#[derive(Debug)]
pub struct Plan<W> {
    /// The status to write; `None` if it is unchanged.
    pub status: Option<DataGatherStatus>,
    /// Events to record once the status is written.
    pub notices: Vec<Notice>,
    /// When to reconcile again without a change.
    pub again: Option<Duration>,
    pub work: W,
}

/// Work to prepare before the status is written. It starts only after that.
#[derive(Debug, PartialEq)]
pub enum Prepared {
    Nothing,
    Gather(GatherRequest),
    Report {
        request_id: String,
    },
    CreateJob,
    /// Delete the Job, whose Pod might start to gather later.
    EndJob,
    /// Forget the state of the run.
    Forget,
}

/// The gathering that a DataGather requests.
#[derive(Debug, PartialEq)]
pub struct GatherRequest {
    pub choices: Vec<Choice>,
    pub obfuscate: bool,
}

/// Decides the next step.
pub fn plan(fetched: &Fetched, rules: &Rules) -> Plan<Prepared> {
    let Fetched { object, activity, job, now: _ } = fetched;
    let left_alone = object.name_any().starts_with(periodic::PREFIX) && !rules.periodic;
    if left_alone || object.meta().deletion_timestamp.is_some() {
        return Plan::of(Prepared::Nothing);
    }
    let state = object.status.as_ref().and_then(|status| status.data_gather_state);
    match (state, activity) {
        (None, _) => accept(fetched, rules),
        (Some(State::Pending | State::Running), _) if let Some(namespace) = &rules.jobs => {
            follow_job(fetched, job, namespace)
        }
        (Some(State::Pending), Activity::Idle) => start(fetched, rules),
        // Prepared by an earlier reconciliation whose write is not visible yet.
        (Some(State::Pending), _) => Plan::of(Prepared::Nothing),
        (Some(State::Running), Activity::Gathering(progress)) => follow_run(fetched, progress),
        (Some(State::Running), Activity::Idle | Activity::Reporting(_)) => {
            fail(fetched, "the gathering was interrupted: the process that ran it is gone")
        }
        (Some(State::Running), Activity::Interrupted(progress)) => interrupted(fetched, progress),
        (Some(State::Completed), _) => analyse(fetched, rules),
        (Some(State::Failed), Activity::Idle) => Plan::of(Prepared::Nothing),
        (Some(State::Failed), _) => Plan::of(Prepared::Forget),
    }
}

impl Plan<Prepared> {
    fn of(work: Prepared) -> Self {
        Self { status: None, notices: Vec::new(), again: None, work }
    }

    fn write(status: DataGatherStatus) -> Self {
        Self { status: Some(status), notices: Vec::new(), again: None, work: Prepared::Nothing }
    }

    fn told(mut self, notice: Notice) -> Self {
        self.notices.push(notice);
        self
    }
}

/// Plans for a new object: Pending, or Failed if nothing can be run.
fn accept(fetched: &Fetched, rules: &Rules) -> Plan<Prepared> {
    let Fetched { object, now, .. } = fetched;
    let mut status = object.status.clone().unwrap_or_default();
    for (type_, reason, message) in [
        (UPLOADED, "NoUploadYet", "nothing has been uploaded yet"),
        (RECORDED, "NoDataGatheringYet", "nothing has been gathered yet"),
        (PROCESSED, "NothingToProcessYet", "nothing has been uploaded for processing yet"),
    ] {
        let statement = Statement::new(type_, Truth::Unknown, reason, message);
        conditions::set(&mut status.conditions, statement, object.meta().generation, *now);
    }
    let Selection { gatherers, empty_groups: _, unknown } = select(rules.table, &choices(object));
    if gatherers.is_empty() {
        return failed(fetched, status, "every gatherer is disabled");
    }
    let claims = object.spec.storage.as_ref().is_some_and(|storage| storage.persistent_volume.is_some());
    if claims && rules.jobs.is_none() {
        return failed(fetched, status, NEEDS_A_JOB);
    }
    status.data_gather_state = Some(State::Pending);
    let plan = Plan::write(status);
    match unknown.is_empty() {
        true => plan,
        false => plan.told(Notice {
            warning: true,
            reason: "UnknownGatherer",
            action: "SelectGatherers",
            note: format!("no gatherer is named {}", unknown.join(", ")),
        }),
    }
}

fn start(fetched: &Fetched, rules: &Rules) -> Plan<Prepared> {
    let Fetched { object, now, .. } = fetched;
    let mut status = object.status.clone().unwrap_or_default();
    status.data_gather_state = Some(State::Running);
    status.start_time.get_or_insert(Time(*now));
    let obfuscate = rules.always_obfuscate || object.spec.data_policy == DataPolicy::ObfuscateNetworking;
    let request = GatherRequest { choices: choices(object), obfuscate };
    let plan = Plan { work: Prepared::Gather(request), ..Plan::write(status) };
    plan.told(Notice {
        warning: false,
        reason: "DataGatherStarted",
        action: "Gather",
        note: "data gathering started".to_owned(),
    })
}

fn follow_run(fetched: &Fetched, progress: &Progress) -> Plan<Prepared> {
    let Fetched { object, now, .. } = fetched;
    let old = object.status.clone().unwrap_or_default();
    let status = run_conditions::of_progress(&old, progress, object.meta().generation, *now);
    let Some(ended) = progress.ended else {
        return if status == old { Plan::of(Prepared::Nothing) } else { Plan::write(status) };
    };
    if progress.failed() {
        return finished(status, State::Failed, ended).told(run_conditions::failure_notice(progress));
    }
    finished(status, State::Completed, ended).told(run_conditions::success_notice(progress))
}

/// Plans the end of an interrupted run. Its results are kept, such as an upload that the service has accepted.
fn interrupted(fetched: &Fetched, progress: &Progress) -> Plan<Prepared> {
    let Fetched { object, now, .. } = fetched;
    let old = object.status.clone().unwrap_or_default();
    let status = run_conditions::of_progress(&old, progress, object.meta().generation, *now);
    failed(fetched, status, "the gathering was interrupted: the process that ran it was stopped")
}

fn follow_job(fetched: &Fetched, job: &JobView, namespace: &str) -> Plan<Prepared> {
    let mut status = fetched.object.status.clone().unwrap_or_default();
    let reference = job::related(namespace, &fetched.object.name_any());
    let related = status.related_objects.contains(&reference);
    let pending = status.data_gather_state == Some(State::Pending);
    match job {
        JobView::Missing | JobView::NotUsed if fetched.object.name_any().len() > MAX_NAME => {
            fail(fetched, &format!("its name has more than the {MAX_NAME} characters that a Job's may have"))
        }
        JobView::Missing | JobView::NotUsed if pending && !related => {
            run_conditions::relate(&mut status, reference);
            Plan { work: Prepared::CreateJob, ..Plan::write(status) }
        }
        JobView::Missing | JobView::NotUsed => fail(fetched, &job::blamed("was deleted before it ended")),
        JobView::Foreign => fail(fetched, "a Job of this name exists and belongs to another object"),
        JobView::Failed(reason) => fail(fetched, &job::blamed(&format!("failed: {reason}"))),
        JobView::Succeeded => fail(fetched, &job::blamed("ended without a final state")),
        JobView::Stuck { why, age } if *age >= PATIENCE => {
            let why = job::blamed(&format!("has a Pod that does not start: {why}"));
            Plan { work: Prepared::EndJob, ..fail(fetched, &why) }
        }
        // Created by an earlier reconciliation whose status update was lost.
        JobView::Active | JobView::Stuck { .. } if !related => {
            run_conditions::relate(&mut status, reference);
            Plan::write(status)
        }
        JobView::Stuck { why: _, age } => {
            Plan { again: Some(PATIENCE.saturating_sub(*age)), ..Plan::of(Prepared::Nothing) }
        }
        JobView::Active => Plan::of(Prepared::Nothing),
    }
}

/// Plans the end of a DataGather for which no Job could be created.
pub(super) fn no_job(fetched: &Fetched, why: &str, of_upload: bool) -> Plan<Prepared> {
    let mut status = fetched.object.status.clone().unwrap_or_default();
    if of_upload {
        let generation = fetched.object.meta().generation;
        run_conditions::not_uploaded(&mut status, why, generation, fetched.now);
    }
    failed(fetched, status, why)
}

/// Plans the download of the report; conditions may still change after completion.
fn analyse(fetched: &Fetched, rules: &Rules) -> Plan<Prepared> {
    let Fetched { object, activity, now, .. } = fetched;
    let status = object.status.clone().unwrap_or_default();
    let processed = conditions::is(&status.conditions, PROCESSED, Truth::True);
    let open = rules.reports && processed && !conditions::has(&status.conditions, ANALYSIS);
    let wanted = status.insights_request_id.clone().filter(|_| open);
    match (wanted, activity) {
        (None, Activity::Idle) => Plan::of(Prepared::Nothing),
        (None, _) => Plan::of(Prepared::Forget),
        (Some(_), Activity::Reporting(None)) => Plan::of(Prepared::Nothing),
        (Some(request_id), Activity::Reporting(Some(report))) => Plan::write(run_conditions::of_report(
            status,
            report,
            &request_id,
            object.meta().generation,
            *now,
        )),
        (Some(request_id), Activity::Idle | Activity::Gathering(_) | Activity::Interrupted(_)) => {
            Plan::of(Prepared::Report { request_id })
        }
    }
}

fn fail(fetched: &Fetched, why: &str) -> Plan<Prepared> {
    failed(fetched, fetched.object.status.clone().unwrap_or_default(), why)
}

fn failed(fetched: &Fetched, mut status: DataGatherStatus, why: &str) -> Plan<Prepared> {
    run_conditions::blame(&mut status, why, fetched.object.meta().generation, fetched.now);
    finished(status, State::Failed, fetched.now).told(Notice {
        warning: true,
        reason: "DataGatherFailed",
        action: "Gather",
        note: why.to_owned(),
    })
}

fn finished(mut status: DataGatherStatus, state: State, at: Timestamp) -> Plan<Prepared> {
    status.data_gather_state = Some(state);
    // If the clock was set back during the run, it must not end before its start.
    let at = status.start_time.as_ref().map_or(at, |started| at.max(started.0));
    status.finish_time.get_or_insert(Time(at));
    Plan::write(status)
}

fn choices(object: &DataGather) -> Vec<Choice> {
    let entries = object.spec.gatherers_config.iter().chain(&object.spec.gatherers);
    let enabled = |state| match state {
        GathererState::Unset | GathererState::Enabled => true,
        GathererState::Disabled => false,
    };
    entries.map(|entry| Choice { name: entry.name.clone(), enabled: enabled(entry.state) }).collect()
}
