//! Writes the first status of a ClusterOperator, once: if another client has written the object meanwhile, its
//! operator has reported, and it is left alone.

use jiff::Timestamp;
use kube::Api;

use super::crd::ClusterOperator;
use super::payload::Wanted;
use super::plan;
use crate::controllers::kit::status::{self, WriteError};

/// The object as primed; none where somebody else was first.
///
/// # Errors
/// When the API server refuses.
pub(super) async fn prime(
    api: &Api<ClusterOperator>,
    object: &ClusterOperator,
    wanted: &Wanted,
    now: Timestamp,
) -> Result<Option<ClusterOperator>, WriteError> {
    match status::write(api, object, &plan::status(wanted, now)).await {
        Ok(primed) => Ok(Some(primed)),
        // Reported, or gone: the next pass sees which.
        Err(WriteError::Api { source, .. }) if matches!(&*source, kube::Error::Api(answer) if matches!(answer.code, 404 | 409)) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
