//! Deletes periodic gathering Jobs that a previous process left behind; the new process starts gatherings of its own.
//! Their DataGathers fail like those of any deleted Job. Jobs that a user asked for continue.

use k8s_openapi::api::batch::v1::Job;
use kube::api::{DeleteParams, ListParams, Preconditions};
use kube::{Api, ResourceExt};
use tracing::{info, warn};

use super::job::{self, LABEL};
use super::{Context, periodic};
use crate::telemetry::with_causes;

/// The page size for listing Jobs.
const PAGE: u32 = 100;

/// Deletes the Jobs. Errors are logged; such a Job ends at its deadline.
pub(super) async fn end(context: &Context) {
    let jobs: Api<Job> = Api::namespaced(context.client.clone(), &context.settings().namespace);
    let mut params = ListParams::default().labels(LABEL).limit(PAGE);
    loop {
        let page = match jobs.list(&params).await {
            Ok(page) => page,
            Err(error) => {
                return warn!(error = with_causes(&error), "periodic Jobs of an earlier process may go on");
            }
        };
        for job in page.items.iter().filter(|job| is_left(job)) {
            delete(&jobs, job).await;
        }
        params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            return;
        }
    }
}

fn is_left(job: &Job) -> bool {
    let ours = job.owner_references().iter().any(|owner| owner.kind == "DataGather");
    ours && job.name_any().starts_with(periodic::PREFIX)
        && job.metadata.deletion_timestamp.is_none()
        && !job::has_ended(job)
}

/// Deletes a Job with its Pod, but not another Job that has the name by now.
pub(super) async fn delete(jobs: &Api<Job>, job: &Job) {
    let name = job.name_any();
    let meant = Preconditions { uid: job.uid(), resource_version: None };
    match jobs.delete(&name, &DeleteParams::background().preconditions(meant)).await {
        Ok(_) => info!(name, "gathering Job ended"),
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
        Err(error) => warn!(name, error = with_causes(&error), "a gathering Job was not ended"),
    }
}
