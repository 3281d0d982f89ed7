//! `ImagePolicyWebhook`: a real TLS server answers ImageReviews, and a kubeconfig says where it is.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use admit_apiserver::{AdmissionConfiguration, AdmissionPlugins, PluginError, Server};
use axum::Router;
use axum::extract::{Json, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post as route_post;
use rcgen::IsCa;
use serde_json::{Value, json};

use crate::harness::{Answer, merge, post};
use crate::webhook::serve_router;

/// What the backend was asked, with the header by which it was.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<(Value, String)>>>);

impl Asked {
    fn take(&self) -> Vec<(Value, String)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Images say what is answered: `bad` is denied, `why` with a reason, `gone` is a fault that stays and `soon` one that passes.
async fn review(
    State(asked): State<Asked>,
    headers: HeaderMap,
    Json(review): Json<Value>,
) -> (StatusCode, Json<Value>) {
    let header = headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
    let image = review["spec"]["containers"][0]["image"].as_str().unwrap().to_owned();
    let mut known = asked.0.lock().unwrap();
    known.push((review, header.unwrap_or_default()));
    let code = match image.as_str() {
        "gone" => StatusCode::NOT_FOUND,
        "soon" if known.len() < 3 => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::OK,
    };
    let reason = if image == "why" { "no such image is known" } else { "" };
    let status = json!({"allowed": !["bad", "why"].contains(&image.as_str()), "reason": reason});
    (
        code,
        Json(json!({"apiVersion": "imagepolicy.k8s.io/v1alpha1", "kind": "ImageReview", "status": status})),
    )
}

fn kubeconfig(server: &str, cluster: &Value, user: &Value) -> String {
    let mut cluster = cluster.clone();
    cluster["server"] = server.into();
    json!({"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": cluster}], "users": [{"name": "u", "user": user}]})
    .to_string()
}

/// The plugin with these settings, and files.
fn plugins(settings: &Value, files: BTreeMap<&str, String>) -> Result<AdmissionPlugins, PluginError> {
    let files: BTreeMap<String, String> =
        files.into_iter().map(|(path, text)| (path.to_owned(), text)).collect();
    let read =
        move |path: &Path| files.get(path.to_str().unwrap()).cloned().ok_or(io::ErrorKind::NotFound.into());
    let configuration = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
        "plugins": [{"name": "ImagePolicyWebhook", "path": "images.yaml"}]});
    let mut with = json!({"kubeConfigFile": "/k/config"});
    with.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    let mut section = BTreeMap::new();
    section.insert("/etc/images.yaml".to_owned(), json!({"imagePolicy": with}).to_string());
    let read = move |path: &Path| match section.get(path.to_str().unwrap()) {
        Some(text) => Ok(text.clone()),
        None => read(path),
    };
    let configuration =
        AdmissionConfiguration::read(&configuration.to_string(), Path::new("/etc"), read).unwrap();
    AdmissionPlugins::configured(["ImagePolicyWebhook"], [""; 0], &configuration)
}

async fn server(plugins: AdmissionPlugins) -> Server {
    Server::builder().admission_plugins(plugins).build().await.unwrap()
}

const PODS: &str = "/api/v1/namespaces/default/pods";

async fn pod(server: &Server, name: &str, image: &str) -> Answer {
    let annotations = json!({"x.image-policy.k8s.io/ticket": "1", "other": "2"});
    let pod = json!({"metadata": {"name": name, "annotations": annotations}, "spec": {
        "initContainers": [{"name": "i", "image": "init"}], "containers": [{"name": "c", "image": image}]}});
    post(server, PODS, &pod).await
}

#[tokio::test]
async fn a_backend_decides_about_images() {
    let asked = Asked::default();
    let router = Router::new().route("/policy", route_post(review)).with_state(asked.clone());
    let (address, pem) = serve_router(router, IsCa::NoCa).await;
    let config = kubeconfig(
        &format!("https://{address}/policy"),
        &json!({"certificate-authority": "ca.pem"}),
        &json!({"token": "secret"}),
    );
    let files = BTreeMap::from([("/k/config", config), ("/k/ca.pem", pem)]);
    let server = server(plugins(&json!({"retryBackoff": 1}), files).unwrap()).await;
    assert_eq!(pod(&server, "a", "good").await.status, 201);
    let (review, header) = asked.take().pop().unwrap();
    assert_eq!(header, "Bearer secret");
    assert_eq!(review["apiVersion"], "imagepolicy.k8s.io/v1alpha1");
    let spec = json!({"containers": [{"image": "good"}, {"image": "init"}], "namespace": "default",
        "annotations": {"x.image-policy.k8s.io/ticket": "1"}});
    assert_eq!(review["spec"], spec);

    assert_eq!(pod(&server, "b", "good").await.status, 201);
    assert_eq!(asked.take().len(), 0, "the answer holds");
    let labelled = merge(&server, &format!("{PODS}/b"), &json!({"metadata": {"labels": {"a": "b"}}})).await;
    assert_eq!((labelled.status, asked.take().len()), (200, 0));
    let patch = json!({"spec": {"ephemeralContainers": [{"name": "e", "image": "bad"}]}});
    let debugged = merge(&server, &format!("{PODS}/b/ephemeralcontainers"), &patch).await;
    assert_eq!(debugged.message(), "pods \"b\" is forbidden: one or more images rejected by webhook backend");
    asked.take();

    let refused = pod(&server, "c", "why").await;
    let why = "pods \"c\" is forbidden: image policy webhook backend denied one or more images: no such image is known";
    assert_eq!((refused.status, refused.message()), (403, why));
    asked.take();
    let refused = pod(&server, "c", "gone").await;
    let why = "pods \"c\" is forbidden: the server could not find the requested resource";
    assert_eq!((refused.message(), asked.take().len()), (why, 1));
    assert_eq!(pod(&server, "c", "soon").await.status, 201);
    assert_eq!(asked.take().len(), 3, "a fault that passes is asked about again");
}

#[tokio::test]
async fn who_cannot_be_asked_lets_in_what_settings_let_in() {
    let ca = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap().cert.pem();
    let files = || {
        let config =
            kubeconfig("https://127.0.0.1:1/policy", &json!({"certificate-authority": "/ca"}), &json!({}));
        BTreeMap::from([("/k/config", config), ("/ca", ca.clone())])
    };
    let closed = server(plugins(&json!({}), files()).unwrap()).await;
    let refused = pod(&closed, "a", "good").await;
    let why = "pods \"a\" is forbidden: Post \"https://127.0.0.1:1/policy?timeout=30s\": dial tcp 127.0.0.1:1: connect: \
               connection refused";
    assert_eq!((refused.status, refused.message()), (403, why));
    let open = server(plugins(&json!({"defaultAllow": true}), files()).unwrap()).await;
    assert_eq!(pod(&open, "a", "good").await.status, 201);
}

#[test]
fn settings_that_cannot_be_are_told() {
    let ca = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap().cert.pem();
    let told = |settings: Value, server: &str, cluster: Value, user: Value| {
        let files = BTreeMap::from([("/k/config", kubeconfig(server, &cluster, &user)), ("/ca", ca.clone())]);
        plugins(&settings, files).unwrap_err().to_string()
    };
    let (https, trust, none) = ("https://a", json!({"certificate-authority": "/ca"}), json!({}));
    for (error, end) in [
        (
            told(json!({"allowTTL": 1801}), https, trust.clone(), none.clone()),
            "between 1s and 30m0s, got 30m1s",
        ),
        (
            told(json!({"kubeConfigFile": "/no"}), https, trust.clone(), none.clone()),
            "`/no`: entity not found",
        ),
        (
            told(none.clone(), "http://a", trust.clone(), none.clone()),
            "the server of its cluster has to begin with https://",
        ),
        (
            told(none.clone(), https, none.clone(), none.clone()),
            "the machine's own authorities are not trusted here",
        ),
        (
            told(none.clone(), https, trust, json!({"exec": {}})),
            "exec in `/k/config` is not built; leave it out",
        ),
        (
            told(none.clone(), https, json!({"insecure-skip-tls-verify": true}), none),
            "insecure-skip-tls-verify in `/k/config` is not built; leave it out",
        ),
    ] {
        assert!(
            error.starts_with(
                "admission-control-config-file: plugin \"ImagePolicyWebhook\" cannot be set up: "
            )
        );
        assert!(error.ends_with(end), "{error}");
    }
    let unset = AdmissionPlugins::new(["ImagePolicyWebhook"], [""; 0]).unwrap_err();
    assert!(unset.to_string().ends_with("cannot be set up: no config specified"), "{unset}");
}
