//! Copies the newest completed gathering to the InsightsOperator `cluster` of operator.openshift.io/v1, where other
//! tools look for the last gathering: when it ended, how long it took, the result of each gatherer, and the report
//! once there is one.
//!
//! The copy identifies its gathering, so that neither a restart nor a late report of an older one replaces a newer
//! copy.

use jiff::Timestamp;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tracing::warn;

use super::crd::{DataGather, DataGatherStatus, State};
use super::run_conditions::ANALYSIS;
use super::run_conditions::{self, go_duration};
use super::{Context, Error};
use crate::controllers::kit::conditions::{self, Truth};
use crate::telemetry::with_causes;

const NAME: &str = "cluster";

/// The end time of the newest gathering that was copied. Locked while a copy is made, so that there is one at a time.
#[derive(Debug, Default)]
pub struct Copied(Mutex<Option<Timestamp>>);

/// Copies the results of `object`, unless a newer gathering was copied. Without the kind or the object, nothing is
/// copied.
///
/// # Errors
/// [`Error::Api`] when the object cannot be read or written.
pub(super) async fn keep(context: &Context, object: &DataGather) -> Result<(), Error> {
    let Some((at, status)) = object.status.as_ref().and_then(copy) else { return Ok(()) };
    let mut copied = context.copied.0.lock().await;
    if copied.is_some_and(|copied| copied >= at) {
        return Ok(());
    }
    let kind = GroupVersionKind::gvk("operator.openshift.io", "v1", "InsightsOperator");
    let resource = ApiResource::from_gvk_with_plural(&kind, "insightsoperators");
    let operators: Api<DynamicObject> = Api::all_with(context.client.clone(), &resource);
    let operator = match operators.get(NAME).await {
        Ok(operator) => operator,
        Err(kube::Error::Api(answer)) if answer.code == 404 => {
            *copied = Some(at);
            return Ok(());
        }
        Err(error @ kube::Error::Api(_)) if is_forbidden(&error) => {
            warn!(error = with_causes(&error), "the newest gathering is not copied");
            *copied = Some(at);
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let before = operator.data.pointer("/status/gatherStatus/lastGatherTime").and_then(Value::as_str);
    let before = before.and_then(|time| time.parse::<Timestamp>().ok());
    if before.is_none_or(|before| before <= at) {
        let version = &operator.metadata.resource_version;
        let patch = json!({"metadata": {"resourceVersion": version}, "status": status});
        operators.patch_status(NAME, &PatchParams::default(), &Patch::Merge(patch)).await?;
    }
    *copied = Some(at);
    Ok(())
}

fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(answer) if answer.code == 403)
}

/// Returns when the gathering ended, and the copy. None unless it is completed and no report is awaited: it was
/// downloaded, or no upload is configured.
fn copy(status: &DataGatherStatus) -> Option<(Timestamp, Value)> {
    let (started, ended) = (status.start_time.as_ref()?.0, status.finish_time.as_ref()?.0);
    if status.data_gather_state != Some(State::Completed) {
        return None;
    }
    let report =
        status.insights_report.as_ref().filter(|_| conditions::is(&status.conditions, ANALYSIS, Truth::True));
    if report.is_none() && !run_conditions::stays_here(status) {
        return None;
    }
    let took = std::time::Duration::try_from(ended.duration_since(started)).unwrap_or_default();
    let mut copy = json!({"gatherStatus": {
        "lastGatherTime": status.finish_time,
        "lastGatherDuration": go_duration(took),
        "gatherers": status.gatherers,
    }});
    if let Some(report) = report {
        copy["insightsReport"] =
            json!({"downloadedAt": report.downloaded_at, "healthChecks": report.health_checks});
    }
    Some((ended, copy))
}
