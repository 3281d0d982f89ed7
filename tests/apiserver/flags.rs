//! What flags of kube-apiserver say to a server: who decides, who is let in without credentials, which controllers run.

use std::time::Duration;

use admit_apiserver::{AuthorizationMode, Controllers, Identity, Server};
use axum::Extension;
use axum::body::Body;
use http::Request;
use serde_json::{Value, json};
use tokio::time::timeout;
use tower::ServiceExt as _;

use crate::harness::{Answer, answer, delete, get, post};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn asked(server: &Server, identity: Identity, path: &str) -> Answer {
    let request = Request::get(path).body(Body::empty()).unwrap();
    answer(server.router().layer(Extension(identity)).oneshot(request).await.unwrap()).await
}

#[tokio::test]
async fn everybody_may_do_everything_where_nobody_decides() {
    let open = Server::builder().authorization([AuthorizationMode::AlwaysAllow]).build().await.unwrap();
    assert_eq!(asked(&open, Identity::anonymous(), MAPS).await.status, 200);
    assert_eq!(asked(&open, Identity::new("joe", []), "/metrics").await.status, 200);
    for groups in [json!(["system:authenticated"]), json!(["crew"]), json!([])] {
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": "joe", "groups": groups, "resourceAttributes": {"verb": "delete", "resource": "nodes"}}});
        let told = post(&open, "/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).await.body;
        assert_eq!(told["status"], json!({"allowed": true}), "{groups}: without a reason");
    }
    let roles = get(&open, "/apis/rbac.authorization.k8s.io/v1/clusterroles").await.body;
    let names = roles["items"].as_array().unwrap().iter().map(|role| &role["metadata"]["name"]);
    assert!(names.clone().count() > 10 && names.clone().all(|name| name != "/"));
}

#[tokio::test]
async fn requests_without_credentials_are_refused_where_they_are_to_be() {
    let closed = Server::builder().anonymous(false).build().await.unwrap();
    let refused = asked(&closed, Identity::anonymous(), "/healthz").await;
    assert_eq!((refused.status, refused.message()), (401, "Unauthorized"));
    assert_eq!(asked(&closed, Identity::admin(), "/healthz").await.status, 200);
    let open = Server::builder().build().await.unwrap();
    assert_eq!(asked(&open, Identity::anonymous(), "/healthz").await.status, 200);
}

fn map(name: &str, owner: Option<&str>) -> Value {
    let owners =
        owner.map(|uid| json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": uid}]));
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": owners}})
}

#[tokio::test]
async fn a_bare_server_collects_nothing_and_ends_no_namespace() {
    let bare = Server::builder().controllers(Controllers::none()).build().await.unwrap();
    let keeping = bare.clone();
    tokio::spawn(async move { keeping.housekeeping().await });
    post(&bare, MAPS, &map("orphan", Some("11111111-2222-3333-4444-555555555555"))).await;
    post(
        &bare,
        "/api/v1/namespaces",
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}),
    )
    .await;
    assert_eq!(get(&bare, "/api/v1/namespaces/a/serviceaccounts/default").await.status, 404);
    assert_eq!(delete(&bare, "/api/v1/namespaces/a", None).await.status, 200);
    bare.sweep().await.unwrap();
    assert_eq!(get(&bare, &format!("{MAPS}/orphan")).await.status, 200);
    assert_eq!(get(&bare, "/api/v1/namespaces/a").await.body["status"]["phase"], "Terminating");
}

#[tokio::test]
async fn only_the_controllers_that_are_named_run() {
    let some = Controllers::named(["namespace", "serviceaccount"]).unwrap();
    let plugins = admit_apiserver::AdmissionPlugins::new([""; 0], ["ServiceAccount"]).unwrap();
    let server = Server::builder().controllers(some).admission_plugins(plugins).build().await.unwrap();
    assert_eq!(get(&server, "/api/v1/namespaces/default/serviceaccounts/default").await.status, 200);
    post(&server, MAPS, &map("orphan", Some("11111111-2222-3333-4444-555555555555"))).await;
    post(
        &server,
        "/api/v1/namespaces",
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}),
    )
    .await;
    delete(&server, "/api/v1/namespaces/a", None).await;
    server.sweep().await.unwrap();
    assert_eq!(get(&server, &format!("{MAPS}/orphan")).await.status, 200);
    assert_eq!(get(&server, "/api/v1/namespaces/a").await.status, 404);
}

#[tokio::test]
async fn watches_end_with_the_server() {
    let server = Server::builder().build().await.unwrap();
    let open = async |server: &Server| {
        let request = Request::get(format!("{MAPS}?watch=true")).body(Body::empty()).unwrap();
        server.router().oneshot(request).await.unwrap()
    };
    let before = open(&server).await;
    server.end_watches();
    for watch in [before, open(&server).await] {
        let ended = timeout(Duration::from_secs(20), answer(watch)).await;
        assert_eq!(ended.unwrap().status, 200);
    }
}
