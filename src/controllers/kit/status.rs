//! Fenced status writes: a merge patch of the status subresource that carries the resourceVersion it was planned
//! from. Whoever planned from an older object loses with 409, so two writers never mix their steps.

use std::fmt::Debug;

use crate::telemetry::with_causes;
use kube::api::{Patch, PatchParams};
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

/// Why a status was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("{0} carries no resourceVersion to fence a write with")]
    Unfenced(String),
    #[error("cannot write the status of {name}: {}", with_causes(source))]
    Api {
        name: String,
        #[source]
        source: Box<kube::Error>,
    },
}

/// Writes `status` to `object` if nobody wrote the object since it was read. Returns the object as stored.
///
/// # Errors
/// [`WriteError::Api`] with code 409 when somebody did.
pub async fn write<K, S>(api: &Api<K>, object: &K, status: &S) -> Result<K, WriteError>
where
    K: Resource + Clone + DeserializeOwned + Debug,
    K::DynamicType: Default,
    S: Serialize + Sync,
{
    let name = object.name_any();
    let version = object.resource_version().ok_or_else(|| WriteError::Unfenced(name.clone()))?;
    let dynamic = K::DynamicType::default();
    let patch = json!({
        "apiVersion": K::api_version(&dynamic),
        "kind": K::kind(&dynamic),
        "metadata": {"resourceVersion": version},
        "status": status,
    });
    api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .map_err(|source| WriteError::Api { name, source: Box::new(source) })
}
