//! `admit up --audit-log`, and `admit replay` of what it writes: the same verdicts, one for one.

use std::fs;
use std::path::Path;
use std::process::Command;

use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Error};
use serde_json::{Value, json};

use crate::output_schemas::schema;
use crate::running::Workplace;
use crate::support::json_schema::complaints;

const POLICIES: &str = include_str!("../analysis/data/replay/policies.yaml");
const DEFINITION: &str = include_str!("../analysis/data/replay/definition.yaml");
const DEPLOYMENTS: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: few-replicas}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}
  validations:
  - expression: object.spec.replicas <= 5 && object.spec.template.spec.restartPolicy == 'Always'
    message: too many
  - expression: oldObject == null || object.spec.replicas >= oldObject.spec.replicas
    message: fewer than before
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: few-replicas}
spec: {policyName: few-replicas, validationActions: [Deny]}
";

fn deployment(name: &str, replicas: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "registry.example/web:1"}]},
            },
        },
    })
}

fn widget(name: &str, size: i64) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": size}})
}

/// Whether a request was admitted; the only refusals are those of policies and definitions.
fn is_admitted<T>(answer: Result<T, Error>) -> bool {
    match answer {
        Ok(_) => true,
        Err(Error::Api(status)) => {
            let said = &status.message;
            assert!(said.contains("ValidatingAdmissionPolicy '") || said.contains("is invalid"), "{said}");
            false
        }
        Err(other) => panic!("{other}"),
    }
}

/// Makes requests, and returns whether each was admitted.
async fn traffic(deployments: &Api<DynamicObject>, widgets: &Api<DynamicObject>) -> Vec<bool> {
    let object = |value: Value| serde_json::from_value::<DynamicObject>(value).unwrap();
    let (post, patch, delete) = (PostParams::default(), PatchParams::default(), DeleteParams::default());
    let mut verdicts = Vec::new();
    for number in 0..8 {
        let name = format!("web-{number}");
        let created = deployments.create(&post, &object(deployment(&name, number))).await;
        verdicts.push(is_admitted(created));
        for replicas in [number + 1, (number - 1).max(0), 9] {
            // There are those that were admitted.
            if number > 5 {
                continue;
            }
            let change = Patch::Merge(json!({"spec": {"replicas": replicas}}));
            verdicts.push(is_admitted(deployments.patch(&name, &patch, &change).await));
            let mut whole = deployments.get(&name).await.unwrap();
            whole.data["spec"]["replicas"] = json!(replicas);
            verdicts.push(is_admitted(deployments.replace(&name, &post, &whole).await));
        }
        let name = format!("widget-{number}");
        // Too large for a policy, or too small for the definition.
        let size = number * 2 - 2;
        let created = is_admitted(widgets.create(&post, &object(widget(&name, size))).await);
        verdicts.push(created);
        if created {
            let change = Patch::Merge(json!({"spec": {"size": size + number % 2}}));
            verdicts.push(is_admitted(widgets.patch(&name, &patch, &change).await));
            verdicts.push(is_admitted(widgets.delete(&name, &delete).await));
        }
    }
    verdicts
}

fn replayed(place: &Path, arguments: &[&str]) -> (Option<i32>, Value) {
    let output = Command::new(env!("CARGO_BIN_EXE_admit"))
        .args(["replay", "-o", "json"])
        .args(arguments)
        .current_dir(place)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let document = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert_eq!(complaints(&schema("replay"), &document), Vec::<String>::new());
    (output.status.code(), document)
}

#[tokio::test]
async fn a_log_replays_to_the_verdicts_that_were_given() {
    let workplace = Workplace::new();
    let place = workplace.path();
    for (folder, file, text) in [
        ("mine", "widgets.yaml", POLICIES),
        ("mine", "deployments.yaml", DEPLOYMENTS),
        ("crds", "widget.yaml", DEFINITION),
    ] {
        fs::create_dir_all(place.join(folder)).unwrap();
        fs::write(place.join(folder).join(file), text).unwrap();
    }
    let flags = ["--policies", "mine", "--crds", "crds", "--audit-log", "audit.log"];
    let running = workplace.start_with(&flags);
    let client = workplace.client().await;
    let api = |group: &str, kind: &str| {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        Api::<DynamicObject>::namespaced_with(client.clone(), "default", &resource)
    };
    let secrets = api("", "Secret");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"word": "hunter2"}});
    let secret = serde_json::from_value::<DynamicObject>(secret).unwrap();
    let mut verdicts = traffic(&api("apps", "Deployment"), &api("example.com", "Widget")).await;
    verdicts.push(is_admitted(secrets.create(&PostParams::default(), &secret).await));
    assert!(running.terminate().success(), "{}", workplace.log());

    let log = fs::read_to_string(place.join("audit.log")).unwrap();
    assert!(
        !log.contains("hunter2") && !log.contains("aHVudGVyMg"),
        "Secrets are logged without what is in them"
    );
    let (code, report) = replayed(place, &["audit.log", "--policies", "mine", "--policies", "crds"]);
    let count = |field: &str| report["summary"][field].as_u64().unwrap();
    let given = |admitted: bool| verdicts.iter().filter(|verdict| **verdict == admitted).count() as u64;
    assert_eq!((count("denied"), count("admitted")), (given(false), given(true)), "{report:#}");
    assert_eq!((count("newlyDenied"), count("newlyAdmitted")), (0, 0), "{report:#}");
    assert_eq!(count("undecided"), 0, "{report:#}");
    assert_eq!((code, report["unread"].as_array().unwrap().len()), (Some(1), 0));
    assert!(given(false) > 20 && given(true) > 10, "{verdicts:?}");
}
