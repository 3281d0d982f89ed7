//! Third stage: carries out the work before the status update, and later that after it.
//!
//! Deletions are by uid: another object of the same name stays.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::crd::{MustGather, Phase};
use super::fetch::Fetched;
use super::job::{CONTROLLER, OWNER, copy_name, is_of, place};
use super::plan::{self, Created, Plan, Prepared};
use super::{Context, Error, FINALIZER};
use crate::controllers::kit::finalizer::Finalizer;

/// The work that remains after the status write.
#[derive(Debug, Default)]
pub struct Applied {
    pub clean: bool,
    pub suspend: bool,
    pub created: bool,
}

/// Removes the finalizer after this time, even if something cannot be removed.
const LEAVING: Finalizer = Finalizer { name: FINALIZER, patience: Some(Duration::from_hours(1)) };

/// # Errors
/// [`Error`] when something cannot be written.
pub async fn apply(
    context: &Context,
    fetched: &Fetched,
    plan: Plan<Prepared>,
) -> Result<Plan<Applied>, Error> {
    let Plan { status, notices, work, again } = plan;
    let mut applied = Applied::default();
    match work {
        Prepared::Nothing => {}
        Prepared::CleanUp => applied.clean = true,
        Prepared::Suspend => applied.suspend = true,
        Prepared::AddFinalizer => add_finalizer(context, &fetched.object).await?,
        Prepared::Release { clean } => {
            release(context, &fetched.object, clean).await?;
            remove_finalizer(context, &fetched.object).await?;
        }
        Prepared::Create(created) => {
            let Created { job, copy, preflight } = *created;
            if copy || preflight.is_some() {
                try_out(context, &job).await?;
            }
            if let Some(sftp) = preflight
                && let Err(error) = sftp.preflight().await
            {
                let reason = format!("SFTP validation failed: {error}");
                let ended = plan::ended((fetched, &context.settings), Phase::Failed, &reason);
                return Ok(Plan { status: ended.status, notices: ended.notices, work: applied, again: None });
            }
            if copy {
                copy_secret(context, &fetched.object).await?;
            }
            applied.created = create(context, &job).await?;
        }
    }
    Ok(Plan { status, notices, work: applied, again })
}

/// Removes the leftovers of the object, or not if they are retained; for an hour at most, because an object that is never deleted
/// blocks the deletion of its whole namespace.
async fn release(context: &Context, object: &MustGather, clean: bool) -> Result<(), Error> {
    let cleaning =
        async { if clean { clean_up(context, object).await } else { give_up(context, object).await } };
    let now = context.settings.clock.now();
    let released = LEAVING.attempt(object, cleaning, &context.events, now).await;
    released.map_err(|left| Error::Unclean(Box::new(left)))
}

fn must_gathers(context: &Context, object: &MustGather) -> Api<MustGather> {
    Api::namespaced(context.client.clone(), &object.namespace().unwrap_or_default())
}

async fn add_finalizer(context: &Context, object: &MustGather) -> Result<(), Error> {
    let mut finalizers = object.finalizers().to_vec();
    finalizers.push(FINALIZER.to_owned());
    write_finalizers(context, object, &finalizers).await
}

async fn remove_finalizer(context: &Context, object: &MustGather) -> Result<(), Error> {
    let left: Vec<_> =
        object.finalizers().iter().filter(|finalizer| *finalizer != FINALIZER).cloned().collect();
    write_finalizers(context, object, &left).await
}

/// Writes the finalizers with the resourceVersion that was read, so that finalizers of others are not lost.
async fn write_finalizers(
    context: &Context,
    object: &MustGather,
    finalizers: &[String],
) -> Result<(), Error> {
    let patch = json!({"metadata": {
        "resourceVersion": object.resource_version(),
        "uid": object.uid(),
        "finalizers": finalizers,
    }});
    let api = must_gathers(context, object);
    match api.patch_metadata(&object.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Creates the Job as a dry run, so that for a Job that would be rejected, no login is tried and no Secret is copied at each
/// retry.
async fn try_out(context: &Context, job: &Job) -> Result<(), Error> {
    let jobs: Api<Job> = Api::namespaced(context.client.clone(), &job.namespace().unwrap_or_default());
    let trial = PostParams { dry_run: true, ..PostParams::default() };
    match jobs.create(&trial, job).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Err(Error::Again),
        Err(error) => Err(error.into()),
    }
}

/// Creates the Job; returns false if it exists. An existing one is checked by the next reconciliation, which distinguishes
/// foreign Jobs.
async fn create(context: &Context, job: &Job) -> Result<bool, Error> {
    let jobs: Api<Job> = Api::namespaced(context.client.clone(), &job.namespace().unwrap_or_default());
    match jobs.create(&PostParams::default(), job).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Err(Error::Again),
        Err(error) => Err(error.into()),
    }
}

/// Copies the Secret to the Job's namespace, with a name that no other MustGather uses.
async fn copy_secret(context: &Context, object: &MustGather) -> Result<(), Error> {
    let (namespace, uid) =
        (place(object, context.settings.rules.job_namespace.as_deref()).0, object.uid().unwrap_or_default());
    let Some(sftp) = object.spec.sftp() else { return Ok(()) };
    let own: Api<Secret> = Api::namespaced(context.client.clone(), &object.namespace().unwrap_or_default());
    let secret = own.get(&sftp.case_management_account_secret_ref.name).await?;
    let copy = Secret {
        metadata: ObjectMeta {
            name: Some(copy_name(&uid)),
            labels: Some(BTreeMap::from([(OWNER.to_owned(), uid)])),
            ..ObjectMeta::default()
        },
        data: secret.data,
        ..Secret::default()
    };
    let copies: Api<Secret> = Api::namespaced(context.client.clone(), &namespace);
    match copies.create(&PostParams::default(), &copy).await {
        Ok(_) => Ok(()),
        // Left by a process that ended before the Job was created; the Secret may have changed since.
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {
            let patch = Patch::Merge(json!({"data": copy.data}));
            copies.patch(&copy.name_any(), &PatchParams::default(), &patch).await?;
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Deletes the copy of the Secret, the Pods of the Job and the Job, in this order: the credentials first, and a deleted Job
/// leaves no Pod behind. Only objects that belong to this MustGather are deleted.
///
/// # Errors
/// The first object that cannot be deleted; the rest is deleted the next time.
pub async fn clean_up(context: &Context, object: &MustGather) -> Result<(), Error> {
    let uid = object.uid().unwrap_or_default();
    let job_namespace = context.settings.rules.job_namespace.as_deref();
    let (namespace, name) = place(object, job_namespace);
    if job_namespace.is_some() {
        let copies: Api<Secret> = Api::namespaced(context.client.clone(), &namespace);
        if let Some(copy) = copies.get_metadata_opt(&copy_name(&uid)).await?
            && is_of(&copy.metadata, &uid)
        {
            delete(&copies, &copy.metadata).await?;
        }
    }
    let jobs: Api<Job> = Api::namespaced(context.client.clone(), &namespace);
    let Some(job) = jobs.get_metadata_opt(&name).await?.filter(|job| is_of(&job.metadata, &uid)) else {
        return Ok(());
    };
    let job_uid = job.metadata.uid.clone().unwrap_or_default();
    let pods: Api<Pod> = Api::namespaced(context.client.clone(), &namespace);
    let of_job = ListParams::default().labels(&format!("{CONTROLLER}={job_uid}"));
    for pod in pods.list_metadata(&of_job).await?.items {
        if pod.metadata.owner_references.iter().flatten().any(|owner| owner.uid == job_uid) {
            delete(&pods, &pod.metadata).await?;
        }
    }
    delete(&jobs, &job.metadata).await
}

/// Suspends the Job, so that it runs no Pods even if the cause of their waiting is removed.
///
/// # Errors
/// When the Job cannot be written.
pub async fn suspend(context: &Context, object: &MustGather) -> Result<(), Error> {
    let (namespace, name) = place(object, context.settings.rules.job_namespace.as_deref());
    let jobs: Api<Job> = Api::namespaced(context.client.clone(), &namespace);
    let uid = object.uid().unwrap_or_default();
    let Some(job) = jobs.get_metadata_opt(&name).await?.filter(|job| is_of(&job.metadata, &uid)) else {
        return Ok(());
    };
    let patch = json!({"metadata": {"uid": job.uid()}, "spec": {"suspend": true}});
    match jobs.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Removes the owner of the Job, which would otherwise be garbage-collected although it is retained.
async fn give_up(context: &Context, object: &MustGather) -> Result<(), Error> {
    let uid = object.uid().unwrap_or_default();
    let (namespace, name) = place(object, context.settings.rules.job_namespace.as_deref());
    let jobs: Api<Job> = Api::namespaced(context.client.clone(), &namespace);
    let Some(job) = jobs.get_metadata_opt(&name).await?.filter(|job| is_of(&job.metadata, &uid)) else {
        return Ok(());
    };
    let others: Vec<_> = job.owner_references().iter().filter(|owner| owner.uid != uid).collect();
    let patch = json!({"metadata": {"resourceVersion": job.resource_version(), "ownerReferences": others}});
    match jobs.patch_metadata(&name, &PatchParams::default(), &Patch::Merge(&patch)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Deletes exactly this object; if it is gone or replaced by another one, that is no error.
async fn delete<K>(api: &Api<K>, metadata: &ObjectMeta) -> Result<(), Error>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    let preconditions = Preconditions { uid: metadata.uid.clone(), resource_version: None };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
    match api.delete(metadata.name.as_deref().unwrap_or_default(), &params).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
