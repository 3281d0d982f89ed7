//! Last stage: writes the status, updates metrics, publishes events, then cleans up. Only applied plans get here.

use kube::{Api, ResourceExt};
use tracing::debug;

use super::apply::{Applied, clean_up, suspend};
use super::crd::{MustGather, Phase};
use super::fetch::Fetched;
use super::plan::Plan;
use super::status;
use super::{Context, Error};
use crate::controllers::kit::clock::whole_seconds;
use crate::controllers::kit::controller::Next;
use crate::controllers::kit::status as written;

/// Writes the planned status with the resourceVersion that the plan is based on.
///
/// [`Error::Write`]; nothing is counted, reported or cleaned up then. [`Error::Api`] when something cannot be
/// cleaned up.
pub(super) async fn write(context: &Context, fetched: &Fetched, plan: Plan<Applied>) -> Result<Next, Error> {
    let Plan { status, notices, work: Applied { clean, suspend: suspends, created }, again } = plan;
    if created {
        context.counts.created();
    }
    if let Some(wanted) = status {
        let api = Api::namespaced(context.client.clone(), &fetched.object.namespace().unwrap_or_default());
        written::write(&api, &fetched.object, &wanted).await?;
        // Once per object: the status of an ended one is not written again.
        if wanted.status == Some(Phase::Failed) {
            context.counts.failed();
        }
    }
    for notice in notices {
        context.events.publish(&fetched.object, notice).await;
    }
    if clean {
        clean_up(context, &fetched.object).await?;
    }
    if suspends {
        suspend(context, &fetched.object).await?;
    }
    Ok(again.map_or(Next::Settled, Next::After))
}

/// Writes into the status that a request was rejected, once per rejection. If that write is rejected too, the event reports
/// it.
pub(super) async fn tell_refusal(context: &Context, object: &MustGather, refusal: &kube::Error) {
    let kube::Error::Api(answer) = refusal else { return };
    if object.metadata.deletion_timestamp.is_some() || object.has_ended() {
        return;
    }
    tell(context, object, &answer.message).await;
}

/// Writes into the status what blocks the object or its deletion.
pub(super) async fn tell(context: &Context, object: &MustGather, trouble: &str) {
    let now = whole_seconds(context.settings.clock.now());
    let Some(wanted) = status::refused(object, now, trouble) else { return };
    let api = Api::namespaced(context.client.clone(), &object.namespace().unwrap_or_default());
    if let Err(error) = written::write(&api, object, &wanted).await {
        debug!(object = object.name_any(), %error, "the status does not tell of it");
    }
}
