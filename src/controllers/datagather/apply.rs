//! Third stage: prepares the planned work. A gathering or download is registered but does not start, a Job is
//! created; what remains to be done after the status write is in [`Applied`].

use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use kube::api::PostParams;

use super::active_runs::Permit;
use super::fetch::Fetched;
use super::job_inputs::{self, Unready};
use super::plan::{self, Plan, Prepared};
use super::run_state::{Activity, Progress};
use super::settings::RunnerKind;
use super::{Context, Error, execute, job, stale_jobs};
use crate::controllers::kit::key::Key;

/// Work that is prepared.
#[derive(Debug)]
pub struct Applied {
    /// Releases the work; if it is dropped, the work never starts.
    pub permit: Option<Permit>,
}

/// # Errors
/// [`Error::Stopping`] when the process accepts no more work, [`Error::Api`] when a Job cannot be created.
pub async fn apply(
    context: &Context,
    fetched: &Fetched,
    plan: Plan<Prepared>,
) -> Result<Plan<Applied>, Error> {
    let Plan { status, notices, again, work } = plan;
    let key = Key::of(&fetched.object);
    let permit = match work {
        Prepared::Nothing => None,
        Prepared::Gather(request) => {
            let activity = Activity::Gathering(Progress::default());
            let (permit, slot) = context.runs.prepare(&key, activity);
            let run_context = context.run_context.clone();
            context
                .pool
                .submit(slot.run(move |sink| execute::gather(run_context, key.uid, request, sink)))?;
            Some(permit)
        }
        Prepared::Report { request_id } => {
            let (permit, slot) = context.runs.prepare(&key, Activity::Reporting(None));
            let run_context = context.run_context.clone();
            context.pool.submit(slot.run(move |sink| execute::report(run_context, request_id, sink)))?;
            Some(permit)
        }
        Prepared::CreateJob => {
            if let Err(refused) = create_job(context, fetched).await? {
                let Plan { status, notices, again, work: _ } = refused;
                return Ok(Plan { status, notices, again, work: Applied { permit: None } });
            }
            None
        }
        Prepared::EndJob => {
            let jobs: Api<Job> = Api::namespaced(context.client.clone(), &context.settings().namespace);
            if let Some(job) = jobs.get_opt(&key.name).await? {
                stale_jobs::delete(&jobs, &job).await;
            }
            None
        }
        Prepared::Forget => {
            context.runs.forget(&key);
            None
        }
    };
    Ok(Plan { status, notices, again, work: Applied { permit } })
}

/// Creates the Job. One that exists already is checked by the next reconciliation, which distinguishes foreign Jobs. The inner error
/// is the plan for a DataGather that can have no Job.
async fn create_job(context: &Context, fetched: &Fetched) -> Result<Result<(), Plan<Prepared>>, Error> {
    let RunnerKind::Job(settings) = &context.settings().runner else { return Ok(Ok(())) };
    let object = &fetched.object;
    let handed = match job_inputs::hand(context, object).await? {
        Ok(handed) => handed,
        Err(unready) => {
            let of_upload = matches!(unready, Unready::Token(_));
            return Ok(Err(plan::no_job(fetched, &unready.to_string(), of_upload)));
        }
    };
    let jobs: Api<Job> = Api::namespaced(context.client.clone(), &context.settings().namespace);
    match jobs.create(&PostParams::default(), &job::manifest(object, settings, &handed)?).await {
        Ok(_) => Ok(Ok(())),
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(Ok(())),
        Err(kube::Error::Api(status)) if status.code == 422 => {
            let why = format!("the Job is refused: {}", status.message);
            Ok(Err(plan::no_job(fetched, &why, false)))
        }
        Err(error) => Err(error.into()),
    }
}
