//! Runs a single gathering, as the container of a gathering Job does, or a user by hand.

use std::sync::atomic::{AtomicBool, Ordering};

use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use tokio_util::sync::CancellationToken;

use super::{RunError, Scope, uploads, work};
use crate::controllers::datagather::crd::DataGather;
use crate::controllers::datagather::run_context::RunContext;
use crate::controllers::datagather::{Counts, Settings};
use crate::controllers::kit::manager::Term;

/// Runs only the gathering of the DataGather `name`, and returns when it has ended. Its report is downloaded by the controller
/// that created the Job.
///
/// # Errors
/// As [`run`](super::run); [`RunError::Watch`] when the DataGather cannot be watched, [`RunError::Missing`] when there is
/// none, and [`RunError::Deleted`] when it was deleted.
pub async fn run_one(
    client: Client,
    settings: Settings,
    name: &str,
    shutdown: CancellationToken,
) -> Result<(), RunError> {
    let store = settings.archives()?;
    let uploads = uploads(&client, &settings)?;
    let run_context = RunContext::new(client.clone(), settings, store, uploads, Counts::default());
    let stop = shutdown.child_token();
    let ended = async {
        let ended = end_of(client, name).await;
        stop.cancel();
        ended
    };
    let (worked, ended) =
        tokio::join!(work(run_context, Scope::One(name.to_owned()), Term::alone(stop.clone())), async {
            tokio::select! {
                ended = ended => ended,
                () = stop.cancelled() => Ok(()),
            }
        });
    worked.and(ended)
}

/// Waits until the DataGather has ended, or is deleted.
async fn end_of(client: Client, name: &str) -> Result<(), RunError> {
    let seen = AtomicBool::new(false);
    let is_over = |object: Option<&DataGather>| {
        seen.fetch_or(object.is_some(), Ordering::Relaxed);
        object.is_none_or(DataGather::has_ended)
    };
    let last = await_condition(Api::<DataGather>::all(client), name, is_over).await;
    match last.map_err(|error| RunError::Watch(Box::new(error)))? {
        Some(_) => Ok(()),
        None if seen.load(Ordering::Relaxed) => Err(RunError::Deleted(name.to_owned())),
        None => Err(RunError::Missing(name.to_owned())),
    }
}
