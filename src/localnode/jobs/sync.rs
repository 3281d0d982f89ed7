//! Syncs a Job: reads, plans, acts, writes.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{Job, JobSpec, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::Status;
use kube::{Api, Client, Resource as _, ResourceExt as _};
use serde_json::json;

use super::super::events::{Events, Note};
use super::counts;
use super::plan::{self, Doomed, Plan};
use super::pods::{self, FINALIZER, New, Seen};
use super::{Key, conditions};

/// The default of `managedBy`: this controller.
const CONTROLLER: &str = "kubernetes.io/job-controller";

pub(super) struct Context {
    pub(super) client: Client,
    pub(super) events: Events,
    /// The wait before the first failed Pod is replaced.
    pub(super) backoff: Duration,
}

/// What to wait for before the next sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Nothing,
    Change,
    After(Duration),
    /// Pods could not be created.
    Refused,
}

pub(super) async fn look(context: &Context, (namespace, name): &Key) -> Result<Next, kube::Error> {
    let jobs: Api<Job> = Api::namespaced(context.client.clone(), namespace);
    let all: Api<Pod> = Api::namespaced(context.client.clone(), namespace);
    let Some(job) = jobs.get_opt(name).await? else {
        release_left(&all, name, None).await?;
        return Ok(Next::Nothing);
    };
    let spec = job.spec.clone().unwrap_or_default();
    if spec.managed_by.as_deref().is_some_and(|manager| manager != CONTROLLER) {
        return Ok(Next::Nothing);
    }
    let status = job.status.clone().unwrap_or_default();
    if let Some(over) = conditions::last_word(&status) {
        release_left(&all, name, None).await?;
        let over = over.last_transition_time.as_ref().map(|time| time.0);
        return expire(&jobs, &job, &spec, over).await;
    }
    let pods: Vec<Pod> = all.list(&selected(&job, &spec)).await?.items;
    let uid = job.uid();
    let own: Vec<Pod> = pods
        .into_iter()
        .filter(|pod| pods::controller_of(&pod.metadata).map(|owner| &owner.uid) == uid.as_ref())
        .collect();
    release_left(&all, name, uid.as_deref()).await?;
    let plan = plan::plan(&job, &own, Timestamp::now(), context.backoff);
    act(context, &jobs, &all, (job, own), plan).await
}

/// Selects Pods by the labels that the server has set; their owner reference is checked later.
fn selected(job: &Job, spec: &JobSpec) -> ListParams {
    match &job.metadata.uid {
        Some(uid) if spec.manual_selector != Some(true) => {
            ListParams::default().labels(&format!("batch.kubernetes.io/controller-uid={uid}"))
        }
        _ => ListParams::default(),
    }
}

async fn act(
    context: &Context,
    jobs: &Api<Job>,
    all: &Api<Pod>,
    (mut job, own): (Job, Vec<Pod>),
    plan: Plan,
) -> Result<Next, kube::Error> {
    let Plan { mut status, create, delete, release, ending, notes, again } = plan;
    let about = job.object_ref(&());
    for Doomed { name, uid, was_ready, is_untold } in delete {
        if is_untold {
            let_go(all, &name, &uid).await?;
        }
        if remove(all, &name).await? {
            context
                .events
                .tell(&about, Note::normal("SuccessfulDelete", format!("Deleted pod: {name}")))
                .await;
        }
        status.active = counts::shown(counts::known(status.active).saturating_sub(1));
        status.ready = Some((status.ready.unwrap_or(0) - i32::from(was_ready)).max(0));
        status.terminating = Some(status.terminating.unwrap_or(0) + 1);
    }
    let (made, refused) = make(context, all, &job, &create).await?;
    status.active = counts::shown(counts::known(status.active) + made);
    job = write(jobs, job, &status).await?;
    for note in notes {
        context.events.tell(&about, note).await;
    }
    let mut tracked: BTreeSet<String> =
        own.iter().map(Seen).filter(|pod| pod.is_tracked()).map(|pod| pod.uid().to_owned()).collect();
    for pod in own.iter().map(Seen).filter(|pod| release.contains(&pod.name())) {
        let_go(all, &pod.name(), pod.uid()).await?;
        tracked.remove(pod.uid());
    }
    plan::settle(&mut status, &tracked);
    let completions = job.spec.as_ref().and_then(|spec| spec.completions);
    let too_many = completions.is_some_and(|completions| status.succeeded.unwrap_or(0) > completions);
    let over = ending.filter(|_| plan::is_settled(&status));
    if let Some(ending) = &over {
        ending.conclude(&mut status, Timestamp::now());
    }
    write(jobs, job, &status).await?;
    if let Some(ending) = &over {
        if ending.succeeded && too_many {
            let text = "Too many succeeded pods running after completion count reached";
            context.events.tell(&about, Note::warning("TooManySucceededPods", text)).await;
        }
        let note = match ending.succeeded {
            true => Note::normal("Completed", "Job completed"),
            false => Note::warning(&ending.reason, ending.message.clone()),
        };
        context.events.tell(&about, note).await;
    }
    Ok(match (over, refused, again) {
        // The next step after the end follows immediately.
        (Some(_), ..) => Next::After(Duration::ZERO),
        (None, true, _) => Next::Refused,
        (None, false, Some(again)) => Next::After(again),
        (None, false, None) => Next::Change,
    })
}

/// Creates Pods; returns how many, and whether one was rejected. The rest is not tried then.
async fn make(
    context: &Context,
    all: &Api<Pod>,
    job: &Job,
    new: &[New],
) -> Result<(usize, bool), kube::Error> {
    let about = job.object_ref(&());
    for (made, new) in new.iter().enumerate() {
        let Some(pod) = pods::make(job, *new) else { return Ok((made, false)) };
        match all.create(&PostParams::default(), &pod).await {
            Ok(pod) => {
                let text = format!("Created pod: {}", pod.name_any());
                context.events.tell(&about, Note::normal("SuccessfulCreate", text)).await;
            }
            // Nothing can be created in a terminating namespace, not even Events.
            Err(kube::Error::Api(status)) if is_of_ending_namespace(&status) => return Ok((made, false)),
            Err(kube::Error::Api(status)) => {
                let text = format!("Error creating: {}", status.message);
                context.events.tell(&about, Note::warning("FailedCreate", text)).await;
                return Ok((made, true));
            }
            Err(other) => return Err(other),
        }
    }
    Ok((new.len(), false))
}

fn is_of_ending_namespace(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}

/// Writes the status if it differs, and returns the updated Job.
async fn write(jobs: &Api<Job>, job: Job, status: &JobStatus) -> Result<Job, kube::Error> {
    if job.status.as_ref() == Some(status) {
        return Ok(job);
    }
    let next = Job { status: Some(status.clone()), ..job };
    jobs.replace_status(&next.name_any(), &PostParams::default(), &next).await
}

/// Deletes a Job with its Pods after its `ttlSecondsAfterFinished`.
async fn expire(
    jobs: &Api<Job>,
    job: &Job,
    spec: &JobSpec,
    over: Option<Timestamp>,
) -> Result<Next, kube::Error> {
    let (Some(seconds), Some(over), None) =
        (spec.ttl_seconds_after_finished, over, &job.metadata.deletion_timestamp)
    else {
        return Ok(Next::Nothing);
    };
    let until = over.saturating_add(SignedDuration::from_secs(i64::from(seconds))).unwrap_or(Timestamp::MAX);
    let left = Duration::try_from(until.duration_since(Timestamp::now())).unwrap_or_default();
    if !left.is_zero() {
        return Ok(Next::After(left));
    }
    let preconditions = Preconditions { uid: job.uid(), resource_version: None };
    let params = DeleteParams::foreground().preconditions(preconditions);
    found(jobs.delete(&job.name_any(), &params).await.map(drop))?;
    Ok(Next::Nothing)
}

/// Deletes a Pod; returns whether it existed.
async fn remove(pods: &Api<Pod>, name: &str) -> Result<bool, kube::Error> {
    found(pods.delete(name, &DeleteParams::default()).await.map(drop))
}

/// Removes the finalizer from the Pods of an earlier Job of this name, but not from those of the Job `living`.
async fn release_left(pods: &Api<Pod>, job: &str, living: Option<&str>) -> Result<(), kube::Error> {
    let label = ListParams::default().labels(&format!("batch.kubernetes.io/job-name={job}"));
    for pod in pods.list_metadata(&label).await?.items {
        let owner = pods::controller_of(&pod.metadata);
        let left = owner.is_none_or(|owner| owner.name == job && Some(owner.uid.as_str()) != living);
        if left && pod.finalizers().iter().any(|finalizer| finalizer == FINALIZER) {
            let_go(pods, &pod.name_any(), pod.metadata.uid.as_deref().unwrap_or_default()).await?;
        }
    }
    Ok(())
}

async fn let_go(pods: &Api<Pod>, name: &str, uid: &str) -> Result<(), kube::Error> {
    let patch = json!({"metadata": {"uid": uid, "$deleteFromPrimitiveList/finalizers": [FINALIZER]}});
    found(pods.patch(name, &PatchParams::default(), &Patch::Strategic(patch)).await.map(drop)).map(drop)
}

/// Whether the object existed.
fn found(done: Result<(), kube::Error>) -> Result<bool, kube::Error> {
    match done {
        Ok(()) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(other) => Err(other),
    }
}
