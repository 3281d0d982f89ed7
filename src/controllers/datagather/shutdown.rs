//! Shuts the controller down: gatherings that it ran are concluded, so that nobody waits for them until the next
//! process finds them. One that had ended gets its final status, any other fails as interrupted.
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

/// For all writes together: well below what Kubernetes waits for a Pod to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// Concludes the gatherings of `context`. Nothing may run or reconcile any more.
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
