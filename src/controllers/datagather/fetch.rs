//! First stage: everything a plan looks at, read once. The only stage that reads the clock.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::{Api, ResourceExt};

use super::crd::DataGather;
use super::job::{self, JobView};
use super::progress::Activity;
use super::settings::RunnerKind;
use super::{Context, Error};
use crate::controllers::kit::key::Key;

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
    let job = match &context.settings().runner {
        RunnerKind::InProcess => JobView::NotUsed,
        RunnerKind::Job(_) => {
            let jobs: Api<Job> = Api::namespaced(context.client.clone(), &context.settings().namespace);
            job::view(jobs.get_opt(&object.name_any()).await?.as_ref(), &uid)
        }
    };
    Ok(Fetched {
        activity: context.runs.activity(&Key::of(object)),
        object: object.clone(),
        job,
        now: whole_seconds(context.settings().clock.now()),
    })
}

fn whole_seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}
