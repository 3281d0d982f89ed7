//! Creates a ClusterOperator. One that already exists counts as created.

use kube::Api;
use kube::api::PostParams;

use super::crd::ClusterOperator;
use super::payload::Wanted;
use super::plan::{self, FIELD_MANAGER};

/// Creates the object and returns it; None if it exists already.
///
/// # Errors
/// When the API server rejects it.
pub(super) async fn create(
    api: &Api<ClusterOperator>,
    wanted: &Wanted,
) -> Result<Option<ClusterOperator>, kube::Error> {
    let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    match api.create(&params, &plan::object(wanted)).await {
        Ok(created) => Ok(Some(created)),
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(None),
        Err(error) => Err(error),
    }
}
