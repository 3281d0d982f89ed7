//! Shuts the controller down: writes the final status of its gatherings, so that nobody waits for them until the next
//! process finds them. Completed ones get their results, all others fail as interrupted.
//!
//! It does not wait for them: an upload may take hours. What cannot be written in time is left to the next process.

use std::time::Duration;

use futures::future::join_all;
use kube::Api;
use kube::core::DeserializeGuard;
use tokio::time::timeout;
use tracing::warn;

use super::crd::DataGather;
use super::{Context, Error};
use crate::controllers::kit::controller::{Failure as _, Reconcile as _};
use crate::controllers::kit::key::Key;
use crate::controllers::kit::retry::Remedy;

/// The time limit for all writes: well below the termination grace period of a Pod.
const PATIENCE: Duration = Duration::from_secs(5);

/// Writes the final statuses of the gatherings of `context`. No run and no reconciliation may be active.
pub(super) async fn conclude(context: &Context) {
    let gatherings = context.runs.interrupt();
    let concluded = join_all(gatherings.iter().map(|key| async move {
        if let Err(error) = conclude_one(context, key).await {
            warn!(name = key.name, %error, "the interrupted gathering stays Running until the next start");
        }
    }));
    if timeout(PATIENCE, concluded).await.is_err() {
        warn!(
            "interrupted gatherings stay Running until the next start: the API server does not answer in time"
        );
    }
}

async fn conclude_one(context: &Context, key: &Key) -> Result<(), Error> {
    let api: Api<DeserializeGuard<DataGather>> = Api::all(context.client.clone());
    loop {
        let Some(object) = api.get_opt(&key.name).await? else { return Ok(()) };
        let Ok(object) = object.0 else { return Ok(()) };
        if Key::of(&object) != *key {
            return Ok(());
        }
        match context.reconcile(&object).await {
            Err(error) if error.remedy() == Remedy::Reread => {}
            concluded => return concluded.map(drop),
        }
    }
}
