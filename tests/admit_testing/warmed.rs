//! A cluster with much in it.

use admit_testing::TestCluster;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::{Value, json};

pub(crate) const DEFINITIONS: usize = 50;
pub(crate) const OBJECTS: usize = 1_000;

/// With so many definitions, and so many objects: half of them ConfigMaps, and half custom ones if there are any.
pub(crate) async fn cluster(definitions: usize, objects: usize) -> TestCluster {
    let cluster = TestCluster::start().await.unwrap();
    let client = cluster.client();
    let kinds = ApiResource::from_gvk(&GroupVersionKind::gvk(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
    ));
    let all: Api<DynamicObject> = Api::all_with(client.clone(), &kinds);
    for number in 0..definitions {
        all.create(&PostParams::default(), &object(definition(number))).await.unwrap();
    }
    for number in 0..objects {
        let name = format!("object-{number}");
        if number % 2 == 0 || definitions == 0 {
            let text = "x".repeat(500);
            let map = json!({"metadata": {"name": name}, "data": {"text": text}});
            maps(&client)
                .create(&PostParams::default(), &serde_json::from_value(map).unwrap())
                .await
                .unwrap();
        } else {
            let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing0", "metadata": {"name": name},
                "spec": {"size": number}});
            things(&client).create(&PostParams::default(), &object(thing)).await.unwrap();
        }
    }
    cluster
}

pub(crate) fn maps(client: &Client) -> Api<ConfigMap> {
    Api::default_namespaced(client.clone())
}

pub(crate) fn things(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("example.com", "v1", "Thing0");
    Api::default_namespaced_with(client.clone(), &ApiResource::from_gvk_with_plural(&kind, "thing0s"))
}

pub(crate) fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).unwrap()
}

pub(crate) fn definition(number: usize) -> Value {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object",
        "properties": {"size": {"type": "integer"}, "names": {"type": "array", "maxItems": 10, "items": {"type": "string"}}},
        "x-kubernetes-validations": [{"rule": "self.size < 1000000", "message": "too large"}]}}});
    testing::definition(
        &format!("thing{number}s.example.com"),
        &format!("Thing{number}"),
        "Namespaced",
        &schema,
    )
}
