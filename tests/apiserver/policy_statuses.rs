//! The status of ValidatingAdmissionPolicies, as kube-controller-manager writes it.

use std::time::Duration;

use admit_apiserver::{FromFile, Server};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::harness::{get, merge, post};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Long enough for a busy machine; the tests end as soon as they may.
const PATIENCE: Duration = Duration::from_secs(20);

fn policy(name: &str, group: &str, resources: &[&str], validations: &Value) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": resources
            }]},
            "validations": validations,
        },
    })
}

/// A server that keeps house until the test ends.
async fn kept() -> Server {
    let server = Server::builder().build().await.unwrap();
    let housekeeper = server.clone();
    tokio::spawn(async move { housekeeper.housekeeping().await });
    server
}

/// The policy once its status is that of `generation`.
async fn observed(server: &Server, name: &str, generation: i64) -> Value {
    let path = format!("{POLICIES}/{name}");
    let waited = timeout(PATIENCE, async {
        loop {
            let policy = get(server, &path).await.body;
            if policy["status"]["observedGeneration"] == generation {
                return policy;
            }
            tokio::task::yield_now().await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("{name} has no status of generation {generation}"))
}

#[tokio::test]
async fn warnings_are_those_of_the_type_checker() {
    let server = kept().await;
    let validations = json!([
        {"expression": "object.spec.replicas > 0"},
        {
            "expression": "object.spec.replica <= 5",
            "messageExpression": "'has ' + object.spec.replicas",
        },
    ]);
    let policy = policy("p", "apps", &["statefulsets", "deployments", "*/scale"], &validations);
    assert_eq!(post(&server, POLICIES, &policy).await.status, 201);
    let policy = observed(&server, "p", 1).await;
    let warnings = policy["status"]["typeChecking"]["expressionWarnings"].as_array().unwrap();
    let fields: Vec<&Value> = warnings.iter().map(|warning| &warning["fieldRef"]).collect();
    assert_eq!(fields, ["spec.validations[1].expression", "spec.validations[1].messageExpression"]);
    let text = "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'replica'\n \
                | object.spec.replica <= 5\n | ...........^\n\n\
                apps/v1, Kind=StatefulSet: ERROR: <input>:1:12: undefined field 'replica'\n \
                | object.spec.replica <= 5\n | ...........^\n";
    assert_eq!(warnings[0]["warning"], text);

    // Who owns it, as of an apply by the controller.
    let managers = policy["metadata"]["managedFields"].as_array().unwrap();
    let manager = managers.iter().find(|entry| entry["subresource"] == "status").unwrap();
    assert_eq!(manager["manager"], "validatingadmissionpolicy-status");
    assert_eq!(manager["operation"], "Apply");
    let owned =
        json!({"f:status": {"f:observedGeneration": {}, "f:typeChecking": {"f:expressionWarnings": {}}}});
    assert_eq!(manager["fieldsV1"], owned);

    // Mended, it has nothing to warn of.
    let mended = json!({"spec": {"validations": [{"expression": "object.spec.replicas <= 5"}]}});
    assert_eq!(merge(&server, &format!("{POLICIES}/p"), &mended).await.status, 200);
    let policy = observed(&server, "p", 2).await;
    assert_eq!(policy["status"], json!({"observedGeneration": 2, "typeChecking": {}}));
}

#[tokio::test]
async fn custom_resources_are_checked_by_what_is_served_at_the_time() {
    let server = kept().await;
    let wrong = json!([{"expression": "object.spec.colour == 'red'"}]);
    let early = policy("early", "example.com", &["widgets"], &wrong);
    assert_eq!(post(&server, POLICIES, &early).await.status, 201);
    let empty = json!({"observedGeneration": 1, "typeChecking": {}});
    assert_eq!(observed(&server, "early", 1).await["status"], empty, "nothing is known of the kind");
    let definition = testing::definition(
        "widgets.example.com",
        "Widget",
        "Namespaced",
        &json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}),
    );
    assert_eq!(post(&server, DEFINITIONS, &definition).await.status, 201);
    let late = FromFile {
        file: "late.yaml".to_owned(),
        object: policy("late", "example.com", &["widgets"], &wrong),
    };
    server.show_from_files(vec![late.clone()]).await;
    let late_now = observed(&server, "late", 1).await;
    let warning = &late_now["status"]["typeChecking"]["expressionWarnings"][0]["warning"];
    let expected = "example.com/v1, Kind=Widget: ERROR: <input>:1:12: undefined field 'colour'\n";
    assert!(warning.as_str().unwrap().starts_with(expected), "{warning}");
    // Shown once more, it keeps its status.
    server.show_from_files(vec![late]).await;
    assert_eq!(get(&server, &format!("{POLICIES}/late")).await.body, late_now);
    assert_eq!(observed(&server, "early", 1).await["status"], empty, "as upstream, once for each generation");
}

/// Those that were stored while nobody kept their status.
#[tokio::test]
async fn what_is_there_already_is_looked_at() {
    let server = Server::builder().build().await.unwrap();
    let validations = json!([{"expression": "object.data.a == 'b'"}]);
    for name in ["a", "b", "c"] {
        let policy = policy(name, "", &["configmaps"], &validations);
        assert_eq!(post(&server, POLICIES, &policy).await.status, 201);
    }
    let housekeeper = server.clone();
    tokio::spawn(async move { housekeeper.housekeeping().await });
    for name in ["a", "b", "c"] {
        observed(&server, name, 1).await;
    }
}
