//! First stage: reads everything that the plan depends on, once. The only stage that reads the clock.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::{Api, ResourceExt};

use super::crd::{DataGather, State};
use super::job::{self, JobView, PodSeen};
use super::run_state::Activity;
use super::settings::RunnerKind;
use super::{Context, Error};
use crate::controllers::kit::clock::whole_seconds;
use crate::controllers::kit::key::Key;
use crate::controllers::kit::pods::Hindrance;

/// One DataGather and the objects that its plan depends on.
#[derive(Debug)]
pub struct Fetched {
    pub object: DataGather,
    pub activity: Activity,
    pub job: JobView,
    /// The current time in whole seconds, as the API stores times.
    pub now: Timestamp,
}

/// # Errors
/// [`Error::Api`] when the Job cannot be read.
pub async fn fetch(context: &Context, object: &DataGather) -> Result<Fetched, Error> {
    let now = whole_seconds(context.settings().clock.now());
    let job = match &context.settings().runner {
        RunnerKind::InProcess => JobView::NotUsed,
        RunnerKind::Job(_) => of_job(context, object, now).await?,
    };
    Ok(Fetched { activity: context.runs.activity(&Key::of(object)), object: object.clone(), job, now })
}

/// Returns the state of the Job from the watch. If the watch has no Job of this object, or that of an earlier object with the name, the
/// server is queried. For an object that has ended, no Job is needed.
async fn of_job(context: &Context, object: &DataGather, now: Timestamp) -> Result<JobView, Error> {
    let (namespace, name) = (&context.settings().namespace, object.name_any());
    let uid = object.uid().unwrap_or_default();
    let known = context.known.jobs.get(namespace, &name);
    let job = match known.filter(|job| job::view(Some(job), &uid) != JobView::Foreign) {
        Some(job) => Some(job),
        None if object.has_ended() => None,
        None => {
            let jobs: Api<Job> = Api::namespaced(context.client.clone(), namespace);
            jobs.get_opt(&name).await?
        }
    };
    let view = job::view(job.as_ref(), &uid);
    Ok(match job {
        Some(job) if view == JobView::Active && has_not_begun(object) => stuck(context, &job, now),
        _ => view,
    })
}

fn has_not_begun(object: &DataGather) -> bool {
    let state = object.status.as_ref().and_then(|status| status.data_gather_state);
    matches!(state, None | Some(State::Pending))
}

/// Returns whether the Job's Pod cannot start, as far as its status says.
fn stuck(context: &Context, job: &Job, now: Timestamp) -> JobView {
    let name = job.name_any();
    let of_job = |pod: &PodSeen| pod.lasting.clone().filter(|_| pod.job == name);
    let lasting = context.known.pods.find(&context.settings().namespace, of_job);
    let stuck = |hindrance: Hindrance| JobView::Stuck { why: hindrance.text(), age: job::age(job, now) };
    lasting.map_or(JobView::Active, stuck)
}
