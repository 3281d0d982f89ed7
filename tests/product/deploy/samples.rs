//! The samples: one object at least of each system, that definitions and policies let in; and the one that they refuse.

use std::collections::BTreeSet;
use std::fs;

use admit::controllers::clusteroperator::payload::{Inclusion, Source};
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use serde_json::Value;

use crate::repository::root;
use crate::support::shipped::documents;
use crate::support::testcluster::TestCluster;

const FOLDER: &str = "deploy/samples";
/// Refused on purpose.
const INVALID: &str = "datagather-invalid.yaml";
const SYSTEMS: [&str; 5] =
    ["ClusterOperator", "CyndiPipeline", "DataGather", "MustGather", "ObservabilityAddon"];

async fn create(cluster: &TestCluster, document: &Value) -> Result<DynamicObject, kube::Error> {
    let object: DynamicObject = serde_json::from_value(document.clone()).unwrap();
    let kind = GroupVersionKind::try_from(object.types.as_ref().unwrap()).unwrap();
    let resource = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(cluster.admin.clone(), namespace, &resource),
        None => Api::all_with(cluster.admin.clone(), &resource),
    };
    // Fields that no schema knows would be dropped in silence.
    let request = http::Request::post(format!("{}?fieldValidation=Strict", api.resource_url()))
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(document.to_string().into_bytes());
    cluster.admin.request(request.unwrap()).await
}

#[tokio::test]
async fn there_is_a_sample_of_each_system_that_definitions_and_policies_let_in() {
    let cluster = TestCluster::new().await;
    let names = fs::read_dir(root().join(FOLDER)).unwrap();
    let names: BTreeSet<String> =
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let mut kinds = BTreeSet::new();
    for name in names {
        for document in documents(&format!("{FOLDER}/{name}")) {
            let created = create(&cluster, &document).await;
            assert_eq!(created.is_err(), name == INVALID, "{name}: {created:?}");
            kinds.insert(document["kind"].as_str().unwrap().to_owned());
        }
    }
    let missing: Vec<_> = SYSTEMS.iter().filter(|system| !kinds.contains(**system)).collect();
    assert_eq!(missing, Vec::<&&str>::new());
}

/// The sample of a ClusterOperator is what a payload holds: its report is an operator's to make, and what it relates to is told before.
#[test]
fn the_sample_of_a_cluster_operator_is_a_manifest_of_a_payload() {
    let sample = &documents(&format!("{FOLDER}/clusteroperator.yaml"))[0];
    let folder = tempfile::tempdir().unwrap();
    fs::copy(root().join(FOLDER).join("clusteroperator.yaml"), folder.path().join("sample.yaml")).unwrap();
    let payload = Source::new(Some(folder.path()), Inclusion::default()).read().unwrap();
    assert_eq!(payload.mistakes, Vec::<String>::new());
    let names: Vec<&str> = payload.operators.iter().map(|operator| operator.name.as_str()).collect();
    assert_eq!(names, [sample["metadata"]["name"].as_str().unwrap()]);
    assert_eq!(payload.operators[0].related.len(), 1);
}
