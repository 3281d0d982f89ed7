//! Webhooks: a real TLS server answers AdmissionReviews.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use admit_apiserver::Server;
use axum::Router;
use axum::body::Body;
use axum::extract::{Json, State};
use axum::http::Response;
use axum::routing::post as route_post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::harness::{delete, get, merge, post};

/// What the webhook is to answer, and what it was asked.
#[derive(Clone, Default)]
pub(crate) struct Script {
    asked: Arc<Mutex<Vec<Value>>>,
    response: Arc<Mutex<Value>>,
}

impl Script {
    pub(crate) fn answers(&self, response: Value) {
        *self.response.lock().unwrap() = response;
    }

    pub(crate) fn asked(&self) -> Vec<Value> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

async fn review(State(script): State<Script>, Json(review): Json<Value>) -> Json<Value> {
    let (uid, version) = (review["request"]["uid"].clone(), review["apiVersion"].clone());
    script.asked.lock().unwrap().push(review);
    let mut response = script.response.lock().unwrap().clone();
    if response.get("uid").is_none() {
        response["uid"] = uid;
    }
    Json(json!({"apiVersion": version, "kind": "AdmissionReview", "response": response}))
}

/// Answers as the script says: `code`, `type` and `body`.
async fn raw(State(script): State<Script>) -> Response<Body> {
    let response = script.response.lock().unwrap().clone();
    let code = u16::try_from(response["code"].as_u64().unwrap()).unwrap();
    let mut raw = Response::builder().status(code);
    if let Some(kind) = response["type"].as_str() {
        raw = raw.header("content-type", kind);
    }
    raw.body(Body::from(response["body"].as_str().unwrap().to_owned())).unwrap()
}

/// Serves `script` over TLS; answers the address and the PEM of its certificate.
pub(crate) async fn serve(script: Script) -> (SocketAddr, String) {
    serve_router(routes(script), IsCa::NoCa).await
}

fn routes(script: Script) -> Router {
    Router::new().route("/validate", route_post(review)).route("/raw", route_post(raw)).with_state(script)
}

/// The same of any routes, with a certificate that is that of an authority, or not.
pub(crate) async fn serve_router(router: Router, is_ca: IsCa) -> (SocketAddr, String) {
    let names = ["127.0.0.1".to_owned(), "hook.demo.svc".to_owned()];
    let mut params = CertificateParams::new(names).unwrap();
    params.is_ca = is_ca;
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let pem = certificate.pem();
    let certificate = CertificateDer::from(certificate.der().to_vec());
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    (serve_tls(router, config).await, pem)
}

/// Serves any routes over TLS until the test ends.
pub(crate) async fn serve_tls(router: Router, config: rustls::ServerConfig) -> SocketAddr {
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (acceptor, router) = (acceptor.clone(), router.clone());
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service = TowerToHyperService::new(router);
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    address
}

/// The kind of configuration that a test stores.
fn mutating(client: &Value, more: &Value) -> Value {
    let mut configuration = configuration(client, more);
    configuration["kind"] = "MutatingWebhookConfiguration".into();
    configuration
}

pub(crate) fn configuration(client: &Value, more: &Value) -> Value {
    let mut hook = json!({
        "name": "validate.hook.example", "clientConfig": client, "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}]
    });
    for (key, value) in more.as_object().unwrap() {
        hook[key] = value.clone();
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "hook"}, "webhooks": [hook]
    })
}

/// A server, and the `clientConfig` of a webhook that answers there as `script` says, under `/validate` or `/raw`.
pub(crate) async fn hooked(script: &Script, path: &str) -> (Server, Value) {
    let (address, pem) = serve(script.clone()).await;
    let client = json!({"url": format!("https://{address}{path}"), "caBundle": STANDARD.encode(pem)});
    (Server::builder().build().await.unwrap(), client)
}

/// The same where the webhook is already asked, with `more` in its configuration.
pub(crate) async fn asking(script: &Script, path: &str, more: &Value) -> Server {
    let (server, client) = hooked(script, path).await;
    let made = post(&server, CONFIGURATIONS, &configuration(&client, more)).await;
    assert_eq!((made.status, made.warnings), (201, Vec::new()), "{:?}", made.body);
    server
}

pub(crate) const CONFIGURATIONS: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";

pub(crate) fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}})
}

#[tokio::test]
async fn a_configuration_is_refused_until_it_is_right() {
    let server = Server::builder().build().await.unwrap();
    let bad = configuration(&json!({"url": "http://hook.example"}), &json!({"sideEffects": "Some"}));
    let refused = post(&server, CONFIGURATIONS, &bad).await;
    assert_eq!(refused.status, 422, "{refused:?}");
    let causes = refused.body["details"]["causes"].as_array().unwrap();
    let fields: Vec<_> = causes.iter().map(|cause| cause["field"].as_str().unwrap()).collect();
    assert_eq!(fields, ["webhooks[0].sideEffects", "webhooks[0].clientConfig.url"]);
    let good = configuration(&json!({"url": "https://hook.example"}), &json!({}));
    assert_eq!(post(&server, CONFIGURATIONS, &good).await.status, 201);
    let mut misnamed = good.clone();
    misnamed["metadata"] = json!({"name": "Hook", "labels": {"a b": ""}});
    let refused = post(&server, CONFIGURATIONS, &misnamed).await;
    let causes = refused.body["details"]["causes"].as_array().unwrap();
    let fields: Vec<_> = causes.iter().map(|cause| cause["field"].as_str().unwrap()).collect();
    assert_eq!(fields, ["metadata.name", "metadata.labels"], "each is told once");
    let hook = format!("{CONFIGURATIONS}/hook");
    let changed = merge(&server, &hook, &json!({"webhooks": [{"name": "a.b"}]})).await;
    assert_eq!(changed.status, 422, "{changed:?}");
}

#[tokio::test]
async fn a_webhook_admits_refuses_and_warns() {
    let script = Script::default();
    let server = asking(&script, "/validate", &json!({})).await;

    script.answers(json!({"allowed": true, "warnings": ["mind the gap"]}));
    let made = post(&server, &format!("{MAPS}?fieldManager=tester"), &map("one")).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(made.warnings, ["299 - \"mind the gap\""]);
    let asked = script.asked();
    let request = &asked[0]["request"];
    assert_eq!(asked[0]["kind"], "AdmissionReview");
    assert_eq!(request["operation"], "CREATE");
    assert_eq!(request["name"], "one");
    assert_eq!(request["namespace"], "default");
    assert_eq!(request["kind"], json!({"group": "", "version": "v1", "kind": "ConfigMap"}));
    assert_eq!(request["resource"], json!({"group": "", "version": "v1", "resource": "configmaps"}));
    assert_eq!(request["requestKind"], request["kind"]);
    assert_eq!(request["object"]["data"], json!({"a": "1"}));
    assert_eq!(request["oldObject"], Value::Null);
    assert_eq!(request["dryRun"], false);
    assert_eq!(request["options"]["kind"], "CreateOptions");
    assert_eq!(request["options"]["fieldManager"], "tester");
    assert_eq!(request["userInfo"]["username"], "admin");

    script.answers(json!({"allowed": false, "status": {"code": 403, "message": "not like that"}}));
    let refused = merge(&server, &format!("{MAPS}/one"), &json!({"data": {"a": "2"}})).await;
    assert_eq!(refused.status, 403);
    assert_eq!(
        refused.message(),
        "admission webhook \"validate.hook.example\" denied the request: not like that"
    );
    let asked = script.asked();
    assert_eq!(asked[0]["request"]["operation"], "UPDATE");
    assert_eq!(asked[0]["request"]["oldObject"]["data"]["a"], "1");
    assert_eq!(get(&server, &format!("{MAPS}/one")).await.body["data"]["a"], "1");

    script.answers(json!({"allowed": false}));
    let refused = delete(&server, &format!("{MAPS}/one"), None).await;
    assert_eq!(refused.status, 400);
    assert_eq!(
        refused.message(),
        "admission webhook \"validate.hook.example\" denied the request without explanation"
    );
    let asked = script.asked();
    assert_eq!(asked[0]["request"]["object"], Value::Null);
    assert_eq!(asked[0]["request"]["oldObject"]["metadata"]["name"], "one");
    assert_eq!(asked[0]["request"]["options"]["kind"], "DeleteOptions");
}

#[tokio::test]
async fn an_answer_to_another_question_is_no_answer() {
    let script = Script::default();
    let server = asking(&script, "/validate", &json!({})).await;
    script.answers(json!({"allowed": true, "uid": "another"}));
    let refused = post(&server, MAPS, &map("one")).await;
    assert_eq!(refused.status, 500);
    let begins = "Internal error occurred: failed calling webhook \"validate.hook.example\": received invalid webhook \
                  response: expected response.uid=";
    assert!(refused.message().starts_with(begins), "{}", refused.message());
}

#[tokio::test]
async fn a_webhook_that_cannot_be_reached_follows_its_failure_policy() {
    let server = Server::builder().build().await.unwrap();
    let port = testing::free_port().unwrap();
    let client = json!({"url": format!("https://127.0.0.1:{port}/validate")});
    post(&server, CONFIGURATIONS, &configuration(&client, &json!({"timeoutSeconds": 2}))).await;
    let refused = post(&server, MAPS, &map("one")).await;
    assert_eq!(
        refused.message(),
        format!(
            "Internal error occurred: failed calling webhook \"validate.hook.example\": failed to call webhook: Post \
             \"https://127.0.0.1:{port}/validate?timeout=2s\": dial tcp 127.0.0.1:{port}: connect: connection refused"
        )
    );
    let ignore =
        json!({"webhooks": [configuration(&client, &json!({"failurePolicy": "Ignore"}))["webhooks"][0]]});
    assert_eq!(merge(&server, &format!("{CONFIGURATIONS}/hook"), &ignore).await.status, 200);
    assert_eq!(post(&server, MAPS, &map("one")).await.status, 201);
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_refused() {
    let script = Script::default();
    let (address, _) = serve(script.clone()).await;
    let stranger = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap().cert.pem();
    let server = Server::builder().build().await.unwrap();
    let client = json!({"url": format!("https://{address}/validate"), "caBundle": STANDARD.encode(stranger)});
    post(&server, CONFIGURATIONS, &configuration(&client, &json!({}))).await;
    let refused = post(&server, MAPS, &map("one")).await;
    assert_eq!(refused.status, 500);
    assert!(refused.message().contains("tls: "), "{}", refused.message());
    assert!(script.asked().is_empty());
}

/// As `openssl req -x509` makes them.
#[tokio::test]
async fn a_certificate_in_the_bundle_may_be_that_of_an_authority() {
    let script = Script::default();
    script.answers(json!({"allowed": false, "status": {"message": "reached"}}));
    let authority = IsCa::Ca(BasicConstraints::Unconstrained);
    let (address, pem) = serve_router(routes(script.clone()), authority).await;
    let (_, another) = serve_router(routes(script), authority).await;
    let server = Server::builder().build().await.unwrap();
    let port = address.port();
    let cases = [
        ("127.0.0.1", &pem, "denied the request: reached"),
        (
            "localhost",
            &pem,
            "tls: failed to verify certificate: x509: certificate is valid for hook.demo.svc, not localhost",
        ),
        (
            "127.0.0.1",
            &another,
            "tls: failed to verify certificate: x509: certificate signed by unknown authority",
        ),
    ];
    for (host, bundle, told) in cases {
        let url = format!("https://{host}:{port}/validate");
        let client = json!({"url": url, "caBundle": STANDARD.encode(bundle)});
        post(&server, CONFIGURATIONS, &configuration(&client, &json!({}))).await;
        let refused = post(&server, MAPS, &map("one")).await;
        assert!(refused.message().contains(told), "{host}: {}", refused.message());
        delete(&server, &format!("{CONFIGURATIONS}/hook"), None).await;
    }
}

#[tokio::test]
async fn selectors_choose() {
    let script = Script::default();
    let choice = json!({"objectSelector": {"matchLabels": {"guarded": "yes"}}});
    let server = asking(&script, "/validate", &choice).await;
    script.answers(json!({"allowed": false, "status": {"message": "guarded"}}));
    assert_eq!(post(&server, MAPS, &map("free")).await.status, 201);
    let mut guarded = map("guarded");
    guarded["metadata"]["labels"] = json!({"guarded": "yes"});
    let refused = post(&server, MAPS, &guarded).await;
    assert_eq!(refused.message(), "admission webhook \"validate.hook.example\" denied the request: guarded");
    assert_eq!(script.asked().len(), 1);
}

#[tokio::test]
async fn a_mutating_webhook_changes_what_is_written() {
    let script = Script::default();
    let (server, client) = hooked(&script, "/validate").await;
    let made = post(&server, MUTATING, &mutating(&client, &json!({}))).await;
    assert_eq!((made.status, made.warnings), (201, Vec::new()));

    let patch = json!([{"op": "add", "path": "/data/b", "value": "2"}]);
    let patched =
        json!({"allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(patch.to_string())});
    script.answers(patched.clone());
    let made = post(&server, MAPS, &map("one")).await;
    assert_eq!((made.status, &made.body["data"]), (201, &json!({"a": "1", "b": "2"})));
    let request = &script.asked()[0]["request"];
    assert_eq!(request["object"]["data"], json!({"a": "1"}));
    assert_eq!(request["object"]["metadata"].get("uid"), None, "the server's own fields come later");

    let changed = merge(&server, &format!("{MAPS}/one"), &json!({"data": {"a": "3", "b": null}})).await;
    assert_eq!(changed.body["data"], json!({"a": "3", "b": "2"}));
    assert_eq!(script.asked()[0]["request"]["options"]["kind"], "UpdateOptions");

    let refused = delete(&server, &format!("{MAPS}/one"), None).await;
    assert_eq!(refused.status, 500);
    assert!(refused.message().ends_with("not supported for this operation"), "{}", refused.message());
    script.answers(json!({"allowed": true, "patch": patched["patch"]}));
    let refused = post(&server, MAPS, &map("two")).await;
    assert!(
        refused.message().ends_with("webhook returned response.patch but not response.patchType"),
        "{}",
        refused.message()
    );
}

#[tokio::test]
async fn match_conditions_choose_before_the_webhook_is_asked() {
    let script = Script::default();
    let (server, client) = hooked(&script, "/validate").await;
    let condition = |text: &str| json!({"matchConditions": [{"name": "guarded", "expression": text}]});

    let wrong = post(&server, CONFIGURATIONS, &configuration(&client, &condition("object.data +"))).await;
    assert_eq!(wrong.status, 422, "{wrong:?}");
    let cause = &wrong.body["details"]["causes"][0];
    assert_eq!(cause["field"], "webhooks[0].matchConditions[0].expression");

    let guarded = condition("has(object.data.guarded) && request.userInfo.username == 'admin'");
    assert_eq!(post(&server, CONFIGURATIONS, &configuration(&client, &guarded)).await.status, 201);
    script.answers(json!({"allowed": false, "status": {"message": "guarded"}}));
    assert_eq!(post(&server, MAPS, &map("free")).await.status, 201);
    let mut object = map("guarded");
    object["data"]["guarded"] = "yes".into();
    let refused = post(&server, MAPS, &object).await;
    assert_eq!(refused.message(), "admission webhook \"validate.hook.example\" denied the request: guarded");
    assert_eq!(script.asked().len(), 1);

    let failing =
        json!({"webhooks": [configuration(&client, &condition("object.data.absent == 'x'"))["webhooks"][0]]});
    assert_eq!(merge(&server, &format!("{CONFIGURATIONS}/hook"), &failing).await.status, 200);
    let refused = post(&server, MAPS, &map("another")).await;
    assert_eq!(
        (refused.status, refused.message()),
        (
            403,
            "configmaps \"another\" is forbidden: expression 'object.data.absent == 'x'' resulted in error: no such key: \
             absent"
        )
    );
    assert!(script.asked().is_empty());
}
