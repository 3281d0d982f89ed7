//! By what webhooks know the server: users of a kubeconfig that the sections of both plugins name.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use admit_apiserver::{AdmissionConfiguration, AdmissionPlugins, Server};
use axum::Router;
use axum::extract::{Json, State};
use axum::http::HeaderMap;
use axum::routing::post as route_post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::IsCa;
use serde_json::{Value, json};

use crate::harness::post;
use crate::webhook::serve_router;

/// The headers by which it was asked, of which each names the webhook by its path.
type Asked = Arc<Mutex<Vec<String>>>;

async fn review(State(asked): State<Asked>, headers: HeaderMap, Json(review): Json<Value>) -> Json<Value> {
    let header = headers.get("authorization").map_or("nobody", |header| header.to_str().unwrap());
    asked.lock().unwrap().push(header.to_owned());
    let response = json!({"uid": review["request"]["uid"], "allowed": true});
    Json(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}))
}

fn configured(section: &Value, kubeconfig: &Value) -> Result<AdmissionPlugins, String> {
    let plugin = |name: &str| json!({"name": name, "configuration": section});
    let configuration = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
        "plugins": [plugin("MutatingAdmissionWebhook"), plugin("ValidatingAdmissionWebhook")]});
    let kubeconfig = kubeconfig.to_string();
    let read = move |path: &Path| match path.to_str() {
        Some("/k/config") => Ok(kubeconfig.clone()),
        _ => Err(io::ErrorKind::NotFound.into()),
    };
    let configuration =
        AdmissionConfiguration::read(&configuration.to_string(), Path::new("/"), read).unwrap();
    AdmissionPlugins::configured([""; 0], [""; 0], &configuration).map_err(|error| error.to_string())
}

fn section(kubeconfig: &str) -> Value {
    json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration",
        "kubeConfigFile": kubeconfig})
}

fn hook(kind: &str, url: &str, pem: &str) -> Value {
    let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]);
    json!({"metadata": {"name": "h"}, "kind": kind, "apiVersion": "admissionregistration.k8s.io/v1", "webhooks": [{
        "name": "h.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "rules": rules,
        "clientConfig": {"url": url, "caBundle": STANDARD.encode(pem)}}]})
}

#[tokio::test]
async fn webhooks_are_shown_the_user_that_is_for_them() {
    const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
    let asked = Asked::default();
    let router = Router::new().route("/hook", route_post(review)).with_state(Arc::clone(&asked));
    let (address, pem) = serve_router(router, IsCa::NoCa).await;
    let basic = format!("Basic {}", STANDARD.encode("ann:secret"));
    let own = address.to_string();
    for (users, expected) in [
        (
            json!([{"name": own, "user": {"token": "t"}}, {"name": "*", "user": {"token": "other"}}]),
            "Bearer t",
        ),
        (json!([{"name": "*", "user": {"username": "ann", "password": "secret"}}]), basic.as_str()),
        (json!([{"name": "hook.example.com", "user": {"token": "other"}}]), "nobody"),
    ] {
        let plugins = configured(&section("/k/config"), &json!({"users": users})).unwrap();
        let server = Server::builder().admission_plugins(plugins).build().await.unwrap();
        for (kind, plural) in [
            ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
            ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
        ] {
            let hook = hook(kind, &format!("https://{own}/hook"), &pem);
            assert_eq!(post(&server, &format!("{GROUP}/{plural}"), &hook).await.status, 201);
        }
        let made =
            post(&server, "/api/v1/namespaces/default/configmaps", &json!({"metadata": {"name": "m"}})).await;
        assert_eq!(made.status, 201, "{made:?}");
        assert_eq!(std::mem::take(&mut *asked.lock().unwrap()), [expected, expected]);
    }
}

#[test]
fn what_a_section_of_webhooks_cannot_say_is_told_by_its_name() {
    let none = json!({});
    let user = |user: Value| json!({"users": [{"name": "*", "user": user}]});
    let mut manifests = section("/k/config");
    manifests["staticManifestsDir"] = "/manifests".into();
    let mut unknown = section("/k/config");
    unknown["kubeconfigFile"] = "/k/config".into();
    for (section, kubeconfig, why) in [
        (
            section("config"),
            &none,
            "kubeConfigFile: Invalid value: \"config\": must be an absolute file path",
        ),
        (section("/k/other"), &none, "`/k/other`: "),
        (manifests, &none, "staticManifestsDir is not built; leave it out"),
        (unknown, &none, "strict decoding error: unknown field \"kubeconfigFile\""),
        (json!({"kind": "Config"}), &none, "no kind \"Config\" is registered for version \"\""),
        (section("/k/config"), &user(json!({"exec": {"command": "a"}})), "exec in `/k/config` is not built"),
        (section("/k/config"), &user(json!({"tokenFile": "/t"})), "tokenFile in `/k/config` is not built"),
        (section("/k/config"), &user(json!({"client-certificate-data": "eA=="})), "user *: client key: "),
        (
            section("/k/config"),
            &json!({"users": [{"name": "a", "user": {}}, {"name": "a", "user": {}}]}),
            "duplicate name \"a\" in list of users",
        ),
    ] {
        let told = configured(&section, kubeconfig).unwrap_err();
        assert!(
            told.contains("\"MutatingAdmissionWebhook\" cannot be set up: ") && told.contains(why),
            "{told}"
        );
    }
    assert_eq!(configured(&section(""), &none).err(), None, "webhooks are called without a user");
}
