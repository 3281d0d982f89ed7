//! First stage: everything a plan looks at, read once. The only stage that reads the clock.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use super::crd::{DataGather, State};
use super::job::{self, JOB_NAME, JobView};
use super::progress::Activity;
use super::settings::RunnerKind;
use super::{Context, Error};
use crate::controllers::kit::key::Key;
use crate::controllers::kit::pods::{Hindrance, hindrance};

/// One DataGather and what surrounds it.
#[derive(Debug)]
pub struct Fetched {
    pub object: DataGather,
    pub activity: Activity,
    pub job: JobView,
    /// Whole seconds, as the API stores times.
    pub now: Timestamp,
}

/// # Errors
/// [`Error::Api`] when the Job cannot be read.
pub async fn fetch(context: &Context, object: &DataGather) -> Result<Fetched, Error> {
    let uid = object.uid().unwrap_or_default();
    let now = whole_seconds(context.settings().clock.now());
    let job = match &context.settings().runner {
        RunnerKind::InProcess => JobView::NotUsed,
        RunnerKind::Job(_) => {
            let jobs: Api<Job> = Api::namespaced(context.client.clone(), &context.settings().namespace);
            let job = jobs.get_opt(&object.name_any()).await?;
            let view = job::view(job.as_ref(), &uid);
            match job {
                Some(job) if view == JobView::Active && has_not_begun(object) => {
                    stuck(context, &job, now).await?
                }
                _ => view,
            }
        }
    };
    Ok(Fetched { activity: context.runs.activity(&Key::of(object)), object: object.clone(), job, now })
}

fn has_not_begun(object: &DataGather) -> bool {
    let state = object.status.as_ref().and_then(|status| status.data_gather_state);
    matches!(state, None | Some(State::Pending))
}

/// Whether the Job's Pod will start.
async fn stuck(context: &Context, job: &Job, now: Timestamp) -> Result<JobView, Error> {
    let pods: Api<Pod> = Api::namespaced(context.client.clone(), &context.settings().namespace);
    let of_job = ListParams::default().labels(&format!("{JOB_NAME}={}", job.name_any()));
    let pods = pods.list(&of_job).await?;
    let lasting = pods.items.iter().filter_map(hindrance).find(|hindrance| !hindrance.passes);
    let stuck = |hindrance: Hindrance| JobView::Stuck { why: hindrance.text(), age: job::age(job, now) };
    Ok(lasting.map_or(JobView::Active, stuck))
}

fn whole_seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}
