//! Every built-in kind is stored, shown and removed by the rules of all; some have two shapes, or paths of their own.

use admit_apiserver::Server;
use admit_apiserver::internals::{ResourceInfo, Scope, Subresource, builtin_rows};
use axum::body::Body;
use http::Request;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::harness::{Answer, answer, delete, get, merge, post, send};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

pub(crate) async fn accepting(server: &Server, path: &str, accept: &str) -> Answer {
    let request = Request::get(path).header("accept", accept).body(Body::empty()).unwrap();
    answer(server.router().oneshot(request).await.unwrap()).await
}

fn collection(row: &ResourceInfo) -> String {
    let root = if row.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", row.group) };
    let namespace = if row.scope == Scope::Namespaced { "namespaces/default/" } else { "" };
    format!("{root}/{}/{namespace}{}", row.version, row.plural)
}

/// The least that kinds ask for beside a name.
fn least(row: &ResourceInfo) -> Value {
    let cases: Value = serde_json::from_str(include_str!("kinds.json")).unwrap();
    let mut object = cases[row.group_resource()].clone();
    if object.is_null() {
        object = json!({});
    }
    let name = object.pointer("/metadata/name").cloned().unwrap_or_else(|| json!("one"));
    object["metadata"]["name"] = name;
    object["kind"] = json!(row.kind);
    object["apiVersion"] = json!(row.api_version());
    object
}

fn object_uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap()
}

#[tokio::test]
async fn every_stored_kind_is_made_shown_and_removed() {
    let server = Server::builder().build().await.unwrap();
    let rows = builtin_rows();
    let stored = rows.iter().filter(|row| !row.storage_key.is_empty());
    for row in stored {
        let (path, object) = (collection(row), least(row));
        let made = post(&server, &format!("{path}?fieldValidation=Strict"), &object).await;
        assert_eq!(made.status, 201, "{path}: {made:?}");
        let one = format!("{path}/{}", object["metadata"]["name"].as_str().unwrap());
        let table = accepting(&server, &one, TABLE).await.body;
        let (columns, cells) = (&table["columnDefinitions"], &table["rows"][0]["cells"]);
        // Upstream prints an age of IPAddresses below no column, and so it was recorded.
        let untold = usize::from(row.kind == "IPAddress");
        assert_eq!(
            columns.as_array().unwrap().len() + untold,
            cells.as_array().unwrap().len(),
            "{one}: {cells}"
        );
        let again = get(&server, &one).await.body;
        assert_eq!(
            (object_uid(&again), &again["spec"]),
            (object_uid(&made.body), &made.body["spec"]),
            "{one}"
        );
        if row.serves(Subresource::Status) {
            assert_eq!(get(&server, &format!("{one}/status")).await.body, again, "{one}");
        }
        let labelled = merge(&server, &one, &json!({"metadata": {"labels": {"a": "b"}}})).await;
        assert_eq!(labelled.status, 200, "{one}: {labelled:?}");
        assert_eq!(delete(&server, &one, None).await.status, 200, "{one}");
    }
}

/// As kube-apiserver v1.36.2 warns: whatever comes of the request, if it reached a verb.
#[tokio::test]
async fn kinds_on_their_way_out_are_warned_of() {
    const ENDPOINTS: &str = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
    const STATUSES: &str = "v1 ComponentStatus is deprecated in v1.19+";
    const ALL: &str = "/api/v1/namespaces/default/endpoints";
    let server = Server::builder().build().await.unwrap();
    let (made, misnamed) = (json!({"metadata": {"name": "a"}}), json!({"metadata": {"name": "A_"}}));
    let one = format!("{ALL}/a");
    let cases = [
        ("GET", ALL, None, 200, ENDPOINTS),
        ("GET", "/api/v1/endpoints", None, 200, ENDPOINTS),
        ("POST", ALL, Some(&made), 201, ENDPOINTS),
        ("POST", ALL, Some(&misnamed), 422, ENDPOINTS),
        ("GET", &one, None, 200, ENDPOINTS),
        ("PUT", &one, Some(&made), 200, ENDPOINTS),
        ("DELETE", &one, None, 200, ENDPOINTS),
        ("DELETE", &one, None, 404, ENDPOINTS),
        ("DELETE", ALL, None, 200, ENDPOINTS),
        ("POST", &one, Some(&made), 405, ""),
        ("GET", "/api/v1/namespaces/default/endpoints/a/status", None, 404, ""),
        ("GET", "/api/v1/componentstatuses", None, 200, STATUSES),
        ("GET", "/api/v1/componentstatuses/none", None, 404, STATUSES),
        ("DELETE", "/api/v1/componentstatuses/none", None, 405, ""),
        ("GET", "/api/v1/services", None, 200, ""),
    ];
    for (method, path, body, status, warning) in cases {
        let answer = answer(send(&server, method, path, "application/json", body).await).await;
        let expected: Vec<String> = Some(warning)
            .filter(|text| !text.is_empty())
            .map(|text| format!("299 - \"{text}\""))
            .into_iter()
            .collect();
        assert_eq!((answer.status, answer.warnings), (status, expected), "{method} {path}");
    }
}

/// Names and priorities of kube-apiserver v1.36.2: of a group that all versions share, and of the version in it.
const API_SERVICES: &[(&str, i64, i64)] = &[
    ("v1.", 18000, 1),
    ("v1.admissionregistration.k8s.io", 16700, 15),
    ("v1.apiextensions.k8s.io", 16700, 15),
    ("v1.apps", 17800, 15),
    ("v1.authentication.k8s.io", 17700, 15),
    ("v1.authorization.k8s.io", 17600, 15),
    ("v1.autoscaling", 17500, 15),
    ("v1.batch", 17400, 15),
    ("v1.certificates.k8s.io", 17300, 15),
    ("v1.coordination.k8s.io", 16500, 15),
    ("v1.discovery.k8s.io", 16200, 15),
    ("v1.events.k8s.io", 17750, 15),
    ("v1.flowcontrol.apiserver.k8s.io", 16100, 21),
    ("v1.networking.k8s.io", 17200, 15),
    ("v1.node.k8s.io", 16300, 15),
    ("v1.policy", 17100, 15),
    ("v1.rbac.authorization.k8s.io", 17000, 15),
    ("v1.resource.k8s.io", 16200, 21),
    ("v1.scheduling.k8s.io", 16600, 15),
    ("v1.storage.k8s.io", 16800, 15),
    ("v2.autoscaling", 17500, 30),
];

#[tokio::test]
async fn every_version_that_is_served_has_an_api_service() {
    const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
    let server = Server::builder().build().await.unwrap();
    let list = get(&server, SERVICES).await.body;
    let row = |service: &Value| {
        let spec = &service["spec"];
        let number = |field: &str| spec[field].as_i64().unwrap();
        let name = service["metadata"]["name"].as_str().unwrap().to_owned();
        (name, number("groupPriorityMinimum"), number("versionPriority"))
    };
    let found: Vec<_> = list["items"].as_array().unwrap().iter().map(row).collect();
    let expected: Vec<_> =
        API_SERVICES.iter().map(|(name, group, version)| ((*name).to_owned(), *group, *version)).collect();
    assert_eq!(found, expected);
    let table = accepting(&server, SERVICES, TABLE).await.body;
    for row in table["rows"].as_array().unwrap() {
        let cells = &row["cells"];
        assert_eq!((&cells[1], &cells[2]), (&json!("Local"), &json!("True")), "{cells}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn definitions_that_come_and_go_together_leave_the_api_services_of_those_that_stay() {
    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
    let server = Server::builder().build().await.unwrap();
    let before = get(&server, SERVICES).await.body["items"].as_array().unwrap().len();
    let definition = |number: usize| {
        let group = format!("g{number}.example");
        json!({"metadata": {"name": format!("odds.{group}")}, "spec": {
            "group": group, "scope": "Cluster", "names": {"plural": "odds", "kind": "Odd"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]
        }})
    };
    let made = (0..12).map(|number| {
        let (server, definition) = (server.clone(), definition(number));
        tokio::spawn(async move { post(&server, DEFINITIONS, &definition).await.status })
    });
    for status in futures::future::join_all(made.collect::<Vec<_>>()).await {
        assert_eq!(status.unwrap(), 201);
    }
    for number in 0..12 {
        let path = format!("{SERVICES}/v1.g{number}.example");
        assert_eq!(get(&server, &path).await.status, 200, "{path}");
    }
    let gone = (0..11).map(|number| {
        let server = server.clone();
        let path = format!("{DEFINITIONS}/odds.g{number}.example");
        tokio::spawn(async move { delete(&server, &path, None).await.status })
    });
    for status in futures::future::join_all(gone.collect::<Vec<_>>()).await {
        assert_eq!(status.unwrap(), 200);
    }
    let left = get(&server, SERVICES).await.body["items"].as_array().unwrap().len();
    assert_eq!(left, before + 1);
}

#[tokio::test]
async fn an_autoscaler_has_two_shapes() {
    let server = Server::builder().build().await.unwrap();
    let path =
        |version: &str| format!("/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers");
    let sent = json!({
        "metadata": {"name": "a"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "metrics": [
            {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}},
            {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Mi"}}}
        ]}
    });
    let made = post(&server, &path("v2"), &sent).await;
    assert_eq!((made.status, &made.body["spec"]["metrics"]), (201, &sent["spec"]["metrics"]));
    let older = get(&server, &format!("{}/a", path("v1"))).await.body;
    assert_eq!(older["apiVersion"], "autoscaling/v1");
    assert_eq!(older["spec"]["targetCPUUtilizationPercentage"], 60);
    let change = json!({"spec": {"targetCPUUtilizationPercentage": 70}});
    assert_eq!(merge(&server, &format!("{}/a", path("v1")), &change).await.status, 200);
    let metrics = get(&server, &format!("{}/a", path("v2"))).await.body["spec"]["metrics"].clone();
    assert_eq!(metrics[1]["resource"]["target"]["averageUtilization"], 70);
    assert_eq!(metrics[0], sent["spec"]["metrics"][1], "what v1 has no field for is kept");
    let table = accepting(&server, &format!("{}/a", path("v2")), TABLE).await.body;
    assert_eq!(table["rows"][0]["cells"][1], "Deployment/d");
    assert_eq!(table["rows"][0]["cells"][2], "memory: <unknown>/1Mi, cpu: <unknown>/70%");
}

const PODS: &str = "/api/v1/namespaces/default/pods";

async fn running_pod(server: &Server, name: &str) {
    let pod = json!({
        "metadata": {"name": name, "labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}
    });
    assert_eq!(post(server, PODS, &pod).await.status, 201);
    let status = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    assert_eq!(merge(server, &format!("{PODS}/{name}/status"), &status).await.status, 200);
}

#[tokio::test]
async fn a_pod_is_bound_once() {
    let server = Server::builder().build().await.unwrap();
    running_pod(&server, "a").await;
    let binding = json!({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}});
    let bound = post(&server, &format!("{PODS}/a/binding"), &binding).await;
    assert_eq!((bound.status, &bound.body["status"]), (201, &json!("Success")));
    let pod = get(&server, &format!("{PODS}/a")).await.body;
    assert_eq!((&pod["spec"]["nodeName"], &pod["status"]["phase"]), (&json!("n"), &json!("Running")));
    let again = post(&server, "/api/v1/namespaces/default/bindings", &binding).await;
    assert_eq!(again.status, 409);
    assert!(again.message().ends_with("pod a is already assigned to node \"n\""), "{}", again.message());
    let other = post(&server, &format!("{PODS}/b/binding"), &binding).await;
    assert_eq!(other.message(), "name in URL does not match name in Binding object");
}

#[tokio::test]
async fn an_eviction_keeps_to_the_budget() {
    const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let server = Server::builder().build().await.unwrap();
    running_pod(&server, "a").await;
    let budget = json!({
        "metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    });
    assert_eq!(post(&server, BUDGETS, &budget).await.status, 201);
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}});
    let path = format!("{PODS}/a/eviction");
    for (status, cause) in [
        (json!({}), "The disruption budget b is still being processed by the server."),
        (
            json!({"observedGeneration": 1, "desiredHealthy": 1, "currentHealthy": 1}),
            "The disruption budget b needs 1 healthy pods and has 1 currently",
        ),
    ] {
        merge(&server, &format!("{BUDGETS}/b/status"), &json!({"status": status})).await;
        let refused = post(&server, &path, &eviction).await;
        assert_eq!((refused.status, &refused.body["details"]["causes"][0]["message"]), (429, &json!(cause)));
    }
    merge(&server, &format!("{BUDGETS}/b/status"), &json!({"status": {"disruptionsAllowed": 1}})).await;
    assert_eq!(post(&server, &format!("{path}?dryRun=All"), &eviction).await.status, 201);
    assert_eq!(get(&server, &format!("{PODS}/a")).await.status, 200, "only asked");
    assert_eq!(post(&server, &path, &eviction).await.status, 201);
    assert_eq!(get(&server, &format!("{PODS}/a")).await.status, 404);
    let status = get(&server, &format!("{BUDGETS}/b")).await.body["status"].clone();
    assert_eq!(status["disruptionsAllowed"], 0);
    assert!(status["disruptedPods"]["a"].is_string());
}

/// Policies about what is sent to subresources, each with something that it refuses.
fn policies_of_subresources() -> Vec<Value> {
    let policy = |name: &str, group: &str, resource: &str, operation: &str, expression: &str| {
        json!({
            "metadata": {"name": name},
            "spec": {
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": [group], "apiVersions": ["*"], "operations": [operation], "resources": [resource]
                }]},
                "validations": [{"expression": expression, "message": format!("{name} says no")}]
            }
        })
    };
    vec![
        policy(
            "scale",
            "apps",
            "deployments/scale",
            "UPDATE",
            "object.kind != 'Scale' || object.spec.replicas < 5",
        ),
        policy("status", "apps", "deployments", "CREATE", "has(object.status)"),
        policy("token", "", "serviceaccounts/token", "CREATE", "object.spec.expirationSeconds < 4000"),
        policy(
            "exec",
            "",
            "pods/exec",
            "CONNECT",
            "request.kind.kind == 'PodExecOptions' && object.command != ['rm']",
        ),
        policy("evict", "", "pods/eviction", "CREATE", "object.kind != 'Eviction'"),
        policy("bind", "", "bindings", "CREATE", "request.resource.resource != 'bindings'"),
        policy("proxy", "", "pods/proxy", "CONNECT", "object.path != '/a/b'"),
        policy("collection", "", "configmaps", "DELETE", "has(request.name)"),
    ]
}

#[tokio::test]
async fn policies_see_subresources_as_what_is_sent_to_them() {
    const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
    let server = Server::builder().build().await.unwrap();
    for policy in policies_of_subresources() {
        assert_eq!(
            post(&server, &format!("{ADMISSION}/validatingadmissionpolicies"), &policy).await.status,
            201
        );
        let name = &policy["metadata"]["name"];
        let binding =
            json!({"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}});
        let bindings = format!("{ADMISSION}/validatingadmissionpolicybindings");
        assert_eq!(post(&server, &bindings, &binding).await.status, 201);
    }
    let refused = |answer: &Answer, name: &str| {
        assert!(answer.message().ends_with(&format!("{name} says no")), "{name}: {answer:?}");
    };
    let deployment = json!({
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}
        }}
    });
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    assert_eq!(post(&server, deployments, &deployment).await.status, 201);
    let scale = format!("{deployments}/d/scale");
    assert_eq!(merge(&server, &scale, &json!({"spec": {"replicas": 4}})).await.status, 200);
    refused(&merge(&server, &scale, &json!({"spec": {"replicas": 5}})).await, "scale");

    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    assert_eq!(post(&server, accounts, &json!({"metadata": {"name": "s"}})).await.status, 201);
    let token = |seconds: i64| json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {"expirationSeconds": seconds}});
    assert_eq!(post(&server, &format!("{accounts}/s/token"), &token(3600)).await.status, 201);
    refused(&post(&server, &format!("{accounts}/s/token"), &token(7200)).await, "token");

    running_pod(&server, "p").await;
    refused(&get(&server, &format!("{PODS}/p/exec?command=rm&stdout=true")).await, "exec");
    let nowhere = get(&server, &format!("{PODS}/p/exec?command=ls&stdout=true")).await;
    assert_eq!(nowhere.message(), "pod p does not have a host assigned");
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    refused(&post(&server, &format!("{PODS}/p/eviction"), &eviction).await, "evict");
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    refused(&post(&server, "/api/v1/namespaces/default/bindings", &binding).await, "bind");
    refused(&get(&server, &format!("{PODS}/p/proxy/a/b")).await, "proxy");
    assert_eq!(get(&server, &format!("{PODS}/p/proxy/a")).await.status, 400);

    let maps = "/api/v1/namespaces/default/configmaps";
    for name in ["x", "y"] {
        assert_eq!(post(&server, maps, &json!({"metadata": {"name": name}})).await.status, 201);
    }
    assert_eq!(delete(&server, &format!("{maps}/x"), None).await.status, 200);
    refused(&delete(&server, maps, None).await, "collection");
}
