//! `admit up` in a folder that is not the repository.

use std::fs;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};

use crate::running::Workplace;

/// A folder in which there is neither what the repository has nor anything else.
fn empty() -> Workplace {
    let place = Workplace::new();
    for shipped in ["policies", "deploy"] {
        fs::remove_file(place.path().join(shipped)).unwrap();
    }
    place
}

#[test]
fn without_policies_it_says_how_to_name_them() {
    let place = empty();
    let output = place.command().output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("there is no folder `policies` here: name yours with --policies"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_definitions_it_serves_its_own() {
    let place = empty();
    fs::create_dir(place.path().join("mine")).unwrap();
    let _running = place.start_with(&["--policies", "mine"]);
    let definitions: Api<CustomResourceDefinition> = Api::all(place.client().await);
    let found = definitions.list(&ListParams::default()).await.unwrap();
    let found: Vec<String> = found.iter().map(|one| one.name_any()).collect();
    for name in ["datagathers.insights.openshift.io", "mustgathers.operator.openshift.io"] {
        assert!(found.iter().any(|one| one == name), "{found:?}");
    }
}
