//! Creates objects in an API server, or replaces those that exist.

use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::Value;

/// Creates an `object` of the resource `plural`, or replaces the one of its name.
///
/// # Errors
/// When the server refuses it, or cannot be reached.
pub(super) async fn put(client: &Client, plural: &str, object: &Value) -> Result<(), kube::Error> {
    let object: DynamicObject = serde_json::from_value(object.clone()).map_err(kube::Error::SerdeError)?;
    let name = object.metadata.name.clone().unwrap_or_default();
    let types = object.types.clone().unwrap_or_default();
    let kind =
        GroupVersionKind::try_from(&types).unwrap_or_else(|_| GroupVersionKind::gvk("", "", &types.kind));
    let resource = ApiResource::from_gvk_with_plural(&kind, plural);
    let api: Api<DynamicObject> = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let params = PostParams { field_manager: Some("admit".to_owned()), ..PostParams::default() };
    match api.get_metadata_opt(&name).await? {
        None => api.create(&params, &object).await?,
        Some(live) => {
            let mut object = object;
            object.metadata.resource_version = live.metadata.resource_version;
            api.replace(&name, &params, &object).await?
        }
    };
    Ok(())
}
