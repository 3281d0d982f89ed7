//! Writes statuses with a fence: a merge patch of the status subresource with the resourceVersion that the plan is
//! based on. A plan based on an older object fails with 409, so two writers never mix their steps.

use std::fmt::Debug;

use super::retry::{Remedy, remedy};
use crate::telemetry::with_causes;
use kube::api::{Patch, PatchParams};
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Why a status was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("{0} carries no resourceVersion to fence a write with")]
    Unfenced(String),
    #[error("the status of {name} cannot be written as JSON: {source}")]
    Unreadable {
        name: String,
        #[source]
        source: serde_json::Error,
    },
    #[error("cannot write the status of {name}: {}", with_causes(source))]
    Api {
        name: String,
        #[source]
        source: Box<kube::Error>,
    },
}

impl WriteError {
    #[must_use]
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Unfenced(_) | Self::Unreadable { .. } => Remedy::Change,
            Self::Api { source, .. } => remedy(source),
        }
    }
}

/// Writes `status` to `object` if the object has not changed since it was read. Returns the object as stored. Fields in the status of
/// `object` that `status` does not have are removed; fields that its type does not have stay.
///
/// # Errors
/// [`WriteError::Api`] with code 409 when it has changed.
pub async fn write<K, S>(api: &Api<K>, object: &K, status: &S) -> Result<K, WriteError>
where
    K: Resource + Clone + DeserializeOwned + Debug + Serialize,
    K::DynamicType: Default,
    S: Serialize + Sync,
{
    let name = object.name_any();
    let version = object.resource_version().ok_or_else(|| WriteError::Unfenced(name.clone()))?;
    let dynamic = K::DynamicType::default();
    let unreadable = |source| WriteError::Unreadable { name: name.clone(), source };
    let mut wanted = serde_json::to_value(status).map_err(unreadable)?;
    let stored = serde_json::to_value(object).map_err(unreadable)?;
    remove_missing(stored.get("status").unwrap_or(&Value::Null), &mut wanted);
    let patch = json!({
        "apiVersion": K::api_version(&dynamic),
        "kind": K::kind(&dynamic),
        "metadata": {"resourceVersion": version},
        "status": wanted,
    });
    api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .map_err(|source| WriteError::Api { name, source: Box::new(source) })
}

/// Sets `null` in `wanted` for fields that only `stored` has, since a merge patch keeps what it does not mention. Lists are
/// replaced as a whole.
fn remove_missing(stored: &Value, wanted: &mut Value) {
    let (Value::Object(stored), Value::Object(wanted)) = (stored, wanted) else { return };
    for (name, old) in stored {
        match wanted.get_mut(name) {
            Some(new) => remove_missing(old, new),
            None => drop(wanted.insert(name.clone(), Value::Null)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_away_is_removed_and_nothing_else() {
        let stored = json!({"a": 1, "gone": 2, "inner": {"b": 1, "gone": {"c": 3}}, "list": [{"x": 1, "y": 2}], "was": {"d": 1}});
        let mut wanted = json!({"a": 5, "inner": {"b": 1}, "list": [{"x": 1}], "was": 7, "new": {"e": 1}});
        remove_missing(&stored, &mut wanted);
        let expected = json!({
            "a": 5, "gone": null, "inner": {"b": 1, "gone": null}, "list": [{"x": 1}], "was": 7, "new": {"e": 1},
        });
        assert_eq!(wanted, expected);
        let mut merged = stored;
        json_patch::merge(&mut merged, &wanted);
        assert_eq!(merged, json!({"a": 5, "inner": {"b": 1}, "list": [{"x": 1}], "was": 7, "new": {"e": 1}}));
    }
}
