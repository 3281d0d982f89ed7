//! Manifests of this repository, as somebody installs them.

use std::fs;

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use serde_json::Value;

use crate::repository::root;

/// The documents of a file.
pub(crate) fn documents(path: &str) -> Vec<Value> {
    parsed(&fs::read_to_string(root().join(path)).unwrap())
}

fn parsed(text: &str) -> Vec<Value> {
    text.split("\n---\n").map(|document| serde_saphyr::from_str(document).unwrap()).collect()
}

/// The rights of an installation with gathering Jobs.
pub(crate) fn rights_with_jobs() -> Vec<Value> {
    let base = crate::deploy::base(&["runner=job"]);
    parsed(&fs::read_to_string(base.path().join("deploy/rbac.yaml")).unwrap())
}

/// The policies of a system with their bindings and params.
pub(crate) fn policies(system: &str) -> Vec<Value> {
    let folder = format!("policies/{system}");
    let mut names: Vec<String> = fs::read_dir(root().join(&folder))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| {
            let is_manifest = name.ends_with(".yaml") && !name.ends_with(".suite.yaml");
            is_manifest && name != "kustomization.yaml"
        })
        .collect();
    names.sort();
    names.iter().flat_map(|name| documents(&format!("{folder}/{name}"))).collect()
}

/// Creates what `document` describes.
pub(crate) async fn create(client: &Client, document: &Value) {
    let object: DynamicObject = serde_json::from_value(document.clone()).unwrap();
    let kind = GroupVersionKind::try_from(object.types.as_ref().unwrap()).unwrap();
    let resource = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// Objects of a kind of the cluster.
pub(crate) fn api(client: &Client, version: &str, kind: &str) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &resource(version, kind))
}

/// Objects of a kind of a namespace.
pub(crate) fn api_in(client: &Client, version: &str, kind: &str, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &resource(version, kind))
}

fn resource(version: &str, kind: &str) -> ApiResource {
    let kind = GroupVersionKind::try_from(&kube::api::TypeMeta {
        api_version: version.to_owned(),
        kind: kind.to_owned(),
    });
    ApiResource::from_gvk(&kind.unwrap())
}
