//! Last stage: writes the status, then releases the work and publishes what happened. Only applied plans get here.

use kube::Api;

use super::apply::Applied;
use super::fetch::Fetched;
use super::plan::Plan;
use super::{Context, Error};
use crate::controllers::kit::controller::Next;
use crate::controllers::kit::status;

/// Writes the planned status with the resourceVersion that the plan is based on.
///
/// # Errors
/// [`Error::Write`]; the prepared work then never starts.
pub async fn write(context: &Context, fetched: &Fetched, plan: Plan<Applied>) -> Result<Next, Error> {
    let Plan { status, notices, again, work: Applied { permit } } = plan;
    if let Some(wanted) = status {
        let api = Api::all(context.client.clone());
        status::write(&api, &fetched.object, &wanted).await?;
    }
    if let Some(permit) = permit {
        permit.release();
    }
    for notice in notices {
        context.events.publish(&fetched.object, notice).await;
    }
    Ok(again.map_or(Next::Settled, Next::After))
}
