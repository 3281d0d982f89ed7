//! Last stage: writes the status, counts and tells what happened, then cleans up. Only what was applied gets here.

use kube::{Api, ResourceExt};

use super::apply::{Applied, clean_up};
use super::crd::Phase;
use super::fetch::Fetched;
use super::plan::Plan;
use super::{Context, Error};
use crate::controllers::kit::controller::Next;
use crate::controllers::kit::status;

/// Writes the planned status, fenced by the version that the plan was made from.
///
/// # Errors
/// [`Error::Write`]; nothing is counted, told or cleaned up then. [`Error::Api`] when something cannot be cleaned up.
pub async fn write(context: &Context, fetched: &Fetched, plan: Plan<Applied>) -> Result<Next, Error> {
    let Plan { status, notices, work: Applied { clean, created } } = plan;
    if created {
        context.counts.created();
    }
    if let Some(wanted) = status {
        let api = Api::namespaced(context.client.clone(), &fetched.object.namespace().unwrap_or_default());
        status::write(&api, &fetched.object, &wanted).await?;
        // Once for each object: what has ended is not written again.
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
    Ok(Next::Settled)
}
