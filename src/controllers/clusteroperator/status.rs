//! Writes the first status of a ClusterOperator, once: if another client has written the object meanwhile, its
//! operator has reported, and it is left alone.

use jiff::Timestamp;
use kube::Api;

use super::crd::ClusterOperator;
use super::payload::Wanted;
use super::plan;
use crate::controllers::kit::status::{self, WriteError};

/// Writes the first status and returns the object; None if another client has written it first.
///
/// # Errors
/// When the API server rejects it.
pub(super) async fn prime(
    api: &Api<ClusterOperator>,
    object: &ClusterOperator,
    wanted: &Wanted,
    now: Timestamp,
) -> Result<Option<ClusterOperator>, WriteError> {
    match status::write(api, object, &plan::status(wanted, now)).await {
        Ok(primed) => Ok(Some(primed)),
        // Its operator has reported, or it was deleted: the next pass finds out.
        Err(WriteError::Api { source, .. }) if matches!(&*source, kube::Error::Api(answer) if matches!(answer.code, 404 | 409)) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
