//! `admit up` in a folder that is not the repository.

use std::fs;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, PostParams};
use kube::{Api, ResourceExt as _};

use crate::running::Workplace;
use crate::support::cluster::PATIENCE;

/// A folder in which there is neither what the repository has nor anything else.
fn empty() -> Workplace {
    let place = Workplace::new();
    for shipped in ["policies", "deploy"] {
        fs::remove_file(place.path().join(shipped)).unwrap();
    }
    place
}

#[tokio::test(flavor = "multi_thread")]
async fn without_files_it_serves_its_own_definitions_and_says_how_to_load_policies() {
    let place = empty();
    let _running = place.start();
    let log = place.log();
    assert!(log.contains("no policies are loaded") && log.contains("--policies"), "{log}");
    let definitions: Api<CustomResourceDefinition> = Api::all(place.client().await);
    let found = definitions.list(&ListParams::default()).await.unwrap();
    let found: Vec<String> = found.iter().map(|one| one.name_any()).collect();
    for name in ["datagathers.insights.openshift.io", "mustgathers.operator.openshift.io"] {
        assert!(found.iter().any(|one| one == name), "{found:?}");
    }
}

/// A kind of its own, and the policy that guards it, in one folder; and a second folder with another policy.
#[tokio::test(flavor = "multi_thread")]
async fn folders_may_hold_both_and_be_several() {
    let place = empty();
    for (folder, file, text) in [
        ("mine", "widgets.yaml", WIDGETS),
        ("mine", "no-a.yaml", &policy("no-a", "a")),
        ("theirs", "no-b.yaml", &policy("no-b", "b")),
    ] {
        fs::create_dir_all(place.path().join(folder)).unwrap();
        fs::write(place.path().join(folder).join(file), text).unwrap();
    }
    let _running = place.start_with(&["--policies", "mine", "--policies", "theirs", "--crds", "mine"]);
    let log = place.log();
    assert!(log.contains("in force") && log.contains("definitions=1") && log.contains("policies=2"), "{log}");
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
    let widgets: Api<DynamicObject> = Api::default_namespaced_with(place.client().await, &resource);
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let create = async |name: &str| widgets.create(&dry_run, &DynamicObject::new(name, &resource)).await;
    for (name, allowed) in [("a", false), ("b", false), ("c", true)] {
        let created = create(name).await;
        assert_eq!(created.is_ok(), allowed, "{name}: {created:?}");
    }

    // A file that comes counts, and one that is wrong does not.
    let until = async |name: &str, allowed: bool| {
        let waiting = async {
            while create(name).await.is_ok() != allowed {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{name}: {}", place.log()));
    };
    fs::write(place.path().join("theirs/no-c.yaml"), policy("no-c", "c")).unwrap();
    until("c", false).await;
    fs::write(place.path().join("theirs/no-d.yaml"), policy("no-d", "d").replace("!=", "=!=")).unwrap();
    let told = async {
        while !place.log().contains("policies do not load") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, told).await.unwrap();
    assert!(create("c").await.is_err() && create("d").await.is_ok());
    fs::remove_file(place.path().join("theirs/no-d.yaml")).unwrap();
    fs::remove_file(place.path().join("theirs/no-b.yaml")).unwrap();
    until("b", true).await;
    assert!(create("a").await.is_err() && create("c").await.is_err());
}

const WIDGETS: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
";

/// Refuses widgets of that name.
fn policy(name: &str, refused: &str) -> String {
    format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {{name: {name}}}\n\
         spec:\n  matchConstraints:\n    resourceRules:\n    - {{apiGroups: [example.com], apiVersions: [v1], \
         operations: [CREATE], resources: [widgets]}}\n  validations:\n  - expression: object.metadata.name != '{refused}'\n\
         ---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\n\
         metadata: {{name: {name}}}\nspec: {{policyName: {name}, validationActions: [Deny]}}\n"
    )
}
