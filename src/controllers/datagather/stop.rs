//! The end of a controller that is told to stop: gatherings that it ran are concluded, so that nobody waits for them until
//! the next process finds them. One that had ended gets its final status, any other fails as interrupted.
//!
//! They are not waited for: an upload may take hours. What cannot be written in time is left to the next process.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use kube::core::DeserializeGuard;
use kube::{Api, ResourceExt};
use tokio::time::timeout;
use tracing::warn;

use super::crd::DataGather;
use super::{Context, Error, reconcile};
use crate::controllers::kit::retry::Remedy;

/// For all writes together: well below what Kubernetes waits for a Pod to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// Concludes the gatherings of `context`. Nothing may run or reconcile any more.
pub(super) async fn conclude(context: &Arc<Context>) {
    let gatherings = context.runs.interrupt();
    let concluded = join_all(gatherings.iter().map(|(uid, name)| async move {
        if let Err(error) = conclude_one(context, uid, name).await {
            warn!(name, %error, "the interrupted gathering stays Running until the next start");
        }
    }));
    if timeout(PATIENCE, concluded).await.is_err() {
        warn!(
            "interrupted gatherings stay Running until the next start: the API server does not answer in time"
        );
    }
}

async fn conclude_one(context: &Arc<Context>, uid: &str, name: &str) -> Result<(), Error> {
    let api: Api<DeserializeGuard<DataGather>> = Api::all(context.client.clone());
    loop {
        let Some(object) = api.get_opt(name).await? else { return Ok(()) };
        if object.uid().as_deref() != Some(uid) {
            return Ok(());
        }
        match reconcile(Arc::new(object), Arc::clone(context)).await {
            Err(error) if error.remedy() == Remedy::Reread => {}
            concluded => return concluded.map(drop),
        }
    }
}
