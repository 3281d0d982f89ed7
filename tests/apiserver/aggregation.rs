//! APIServices of other servers: whether these are available, what discovery says of them, and requests that are passed on.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use admit_apiserver::{Identity, Server, ServerBuilder};
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Uri};
use axum::routing::any;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::RootCertStore;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use serde_json::{Value, json};
use tokio::time::timeout;
use tower::ServiceExt as _;

use crate::harness::{answer, delete, get, merge, post, send};
use crate::webhook::{serve_router, serve_tls};

const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const NAME: &str = "v1.metrics.example.com";
const ROOT: &str = "/apis/metrics.example.com/v1";
/// Long enough for a busy machine; the tests end as soon as they may.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server that serves things, and tells what it was asked.
fn things() -> Router {
    let resources = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "metrics.example.com/v1", "resources": [
        {"name": "things", "singularName": "thing", "namespaced": true, "kind": "Thing", "verbs": ["get", "list"], "shortNames": ["th"]},
        {"name": "things/scale", "singularName": "", "namespaced": true, "group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": ["get"]},
    ]});
    let list = move || async move { axum::Json(resources) };
    let told = async |method: Method, uri: Uri, headers: HeaderMap, body: String| {
        let header = |name: &str| {
            let values = headers.get_all(name).iter().map(|value| value.to_str().unwrap().to_owned());
            values.collect::<Vec<_>>()
        };
        let names = [
            "x-remote-user",
            "x-remote-group",
            "x-remote-extra-scope",
            "authorization",
            "x-forwarded-uri",
            "accept",
            "audit-id",
        ];
        let headers: Value = names.iter().map(|name| ((*name).to_owned(), json!(header(name)))).collect();
        let told =
            json!({"method": method.as_str(), "uri": uri.to_string(), "headers": headers, "body": body});
        (http::StatusCode::IM_A_TEAPOT, [("x-own", "kept")], axum::Json(told))
    };
    Router::new().route(ROOT, any(list)).fallback(told)
}

/// A server with the APIService of another, and the Service that this is reached by.
async fn aggregated(router: Router, spec: &Value) -> Server {
    let backend = serve_router(router, IsCa::NoCa).await;
    behind(Server::builder(), backend, spec).await
}

async fn behind(builder: ServerBuilder, (address, pem): (SocketAddr, String), spec: &Value) -> Server {
    let server = builder.build().await.unwrap();
    let housekeeper = server.clone();
    tokio::spawn(async move { housekeeper.housekeeping().await });
    post(&server, "/api/v1/namespaces", &json!({"metadata": {"name": "demo"}})).await;
    let service =
        json!({"metadata": {"name": "hook"}, "spec": {"type": "ExternalName", "externalName": "localhost"}});
    assert_eq!(post(&server, "/api/v1/namespaces/demo/services", &service).await.status, 201);
    let mut object = json!({"metadata": {"name": NAME}, "spec": {
        "group": "metrics.example.com", "version": "v1", "groupPriorityMinimum": 1500, "versionPriority": 10,
        "caBundle": STANDARD.encode(pem), "service": {"name": "hook", "namespace": "demo", "port": address.port()},
    }});
    for (field, value) in spec.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    let made = post(&server, SERVICES, &object).await;
    assert_eq!(made.status, 201, "{:?}", made.body);
    server
}

/// The condition of the APIService once it is this one.
async fn condition(server: &Server, name: &str, reason: &str) -> Value {
    let path = format!("{SERVICES}/{name}");
    let waited = timeout(PATIENCE, async {
        loop {
            let conditions = get(server, &path).await.body["status"]["conditions"].clone();
            if conditions[0]["reason"] == reason {
                return conditions[0].clone();
            }
            tokio::task::yield_now().await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("{name} is not said to be {reason}"))
}

#[tokio::test]
async fn requests_are_passed_on_in_the_name_of_their_users() {
    let server = aggregated(things(), &json!({})).await;
    let found = condition(&server, NAME, "Passed").await;
    assert_eq!((&found["status"], &found["message"]), (&json!("True"), &json!("all checks passed")));

    let mut user = Identity::new("ann", ["system:masters".to_owned()]);
    user.extra.insert("scope".to_owned(), vec!["a".to_owned(), "b".to_owned()]);
    let request = Request::post(format!("{ROOT}/namespaces/x/things?dryRun=All&a=b%20c"))
        .extension(user)
        .header("x-remote-user", "forged")
        .header("accept", "application/json")
        .header("audit-id", "mine");
    let request = request.body(Body::from("whatever it is")).unwrap();
    let response = server.router().oneshot(request).await.unwrap();
    let own = response.headers().get("x-own").cloned();
    let told = answer(response).await;
    assert_eq!((told.status, own), (418, Some("kept".parse().unwrap())), "{:?}", told.body);
    assert_eq!(
        told.body,
        json!({
            "method": "POST", "uri": format!("{ROOT}/namespaces/x/things?dryRun=All&a=b%20c"), "body": "whatever it is",
            "headers": {
                "x-remote-user": ["ann"], "x-remote-group": ["system:masters", "system:authenticated"],
                "x-remote-extra-scope": ["a", "b"], "authorization": [], "accept": ["application/json"],
                "x-forwarded-uri": [format!("{ROOT}/namespaces/x/things")],
                "audit-id": ["mine"],
            },
        })
    );
    // Who may not do it here is not passed on.
    let nobody = Request::get(format!("{ROOT}/things")).extension(Identity::new("nobody", []));
    let refused = server.router().oneshot(nobody.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(refused.status(), 403);
    let upgrade =
        Request::get(format!("{ROOT}/things")).header("upgrade", "SPDY/3.1").body(Body::empty()).unwrap();
    assert_eq!(server.router().oneshot(upgrade).await.unwrap().status(), 501);
}

#[tokio::test]
async fn who_redirects_is_no_backend() {
    let elsewhere = async || (http::StatusCode::FOUND, [("location", "/x")], "");
    let router = Router::new().route(ROOT, any(async || "{}")).fallback(elsewhere);
    let server = aggregated(router, &json!({})).await;
    condition(&server, NAME, "Passed").await;
    let refused = send(&server, "GET", &format!("{ROOT}/things"), "application/json", None).await;
    assert_eq!(refused.status(), 502);
}

#[tokio::test]
async fn discovery_tells_what_others_serve() {
    let server = aggregated(things(), &json!({})).await;
    condition(&server, NAME, "Passed").await;
    let groups = get(&server, "/apis").await.body["groups"].clone();
    let names: Vec<&str> =
        groups.as_array().unwrap().iter().filter_map(|group| group["name"].as_str()).collect();
    assert_eq!(names.last(), Some(&"metrics.example.com"), "{names:?}");
    let version = json!({"groupVersion": "metrics.example.com/v1", "version": "v1"});
    let group = get(&server, "/apis/metrics.example.com").await.body;
    assert_eq!((&group["kind"], &group["preferredVersion"]), (&json!("APIGroup"), &version));
    let listed = get(&server, ROOT).await.body;
    assert_eq!(listed["resources"][0]["name"], "things");

    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let request = Request::get("/apis").header("accept", accept).body(Body::empty()).unwrap();
    let document = answer(server.router().oneshot(request).await.unwrap()).await.body;
    let group = document["items"].as_array().unwrap().last().unwrap().clone();
    let thing = json!({
        "resource": "things", "responseKind": {"group": "", "version": "", "kind": "Thing"}, "scope": "Namespaced",
        "singularResource": "thing", "verbs": ["get", "list"], "shortNames": ["th"],
        "subresources": [{"subresource": "scale", "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"}, "verbs": ["get"]}],
    });
    assert_eq!(
        group,
        json!({"metadata": {"name": "metrics.example.com"}, "versions": [{"version": "v1", "resources": [thing], "freshness": "Current"}]})
    );
}

#[tokio::test]
async fn what_makes_an_api_service_unavailable_is_told() {
    let server = aggregated(things(), &json!({"caBundle": null})).await;
    let failed = condition(&server, NAME, "FailedDiscoveryCheck").await;
    let message = failed["message"].as_str().unwrap();
    assert!(message.starts_with("failing or missing response from https://localhost:"), "{message}");
    assert!(
        message.ends_with("tls: failed to verify certificate: x509: certificate signed by unknown authority"),
        "{message}"
    );
    let unavailable = send(&server, "GET", &format!("{ROOT}/things"), "application/json", None).await;
    assert_eq!(unavailable.status(), 503);
    let stale = get(&server, "/apis").await.body["groups"].as_array().unwrap().len();

    // Whoever asks for that is called without proof.
    let path = format!("{SERVICES}/{NAME}");
    assert_eq!(merge(&server, &path, &json!({"spec": {"insecureSkipTLSVerify": true}})).await.status, 200);
    condition(&server, NAME, "Passed").await;
    assert_eq!(get(&server, "/apis").await.body["groups"].as_array().unwrap().len(), stale);

    assert_eq!(delete(&server, "/api/v1/namespaces/demo/services/hook", None).await.status, 200);
    let gone = condition(&server, NAME, "ServiceNotFound").await;
    assert_eq!(gone["message"], "service/hook in \"demo\" is not present");
    let service = json!({"metadata": {"name": "hook"}, "spec": {"ports": [{"port": 1}]}});
    post(&server, "/api/v1/namespaces/demo/services", &service).await;
    condition(&server, NAME, "ServicePortError").await;
    let port = get(&server, &path).await.body["spec"]["service"]["port"].clone();
    let ports = json!({"spec": {"ports": [{"port": port, "name": "https"}]}});
    assert_eq!(merge(&server, "/api/v1/namespaces/demo/services/hook", &ports).await.status, 200);
    condition(&server, NAME, "EndpointsNotFound").await;
    let slice = json!({
        "metadata": {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}}, "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": false}}], "ports": [{"name": "https", "port": 443}],
    });
    assert_eq!(
        post(&server, "/apis/discovery.k8s.io/v1/namespaces/demo/endpointslices", &slice).await.status,
        201
    );
    let missing = condition(&server, NAME, "MissingEndpoints").await;
    assert_eq!(
        missing["message"],
        "endpointslices for service/hook in \"demo\" have no addresses with port name \"https\""
    );

    assert_eq!(delete(&server, &path, None).await.status, 200);
    let nobody = timeout(PATIENCE, async {
        while get(&server, &format!("{ROOT}/things")).await.status != 404 {
            tokio::task::yield_now().await;
        }
    });
    nobody.await.expect("nobody serves it any more");
}

#[tokio::test]
async fn those_of_this_server_are_always_available() {
    let server = aggregated(things(), &json!({})).await;
    let path = format!("{SERVICES}/v1.apps/status");
    let mut apps = get(&server, &path).await.body;
    apps["status"] = json!({});
    assert_eq!(send(&server, "PUT", &path, "application/json", Some(&apps)).await.status(), 200);
    let found = condition(&server, "v1.apps", "Local").await;
    assert_eq!(found["message"], "Local APIServices are always available");
}

/// A server that serves only whoever has a certificate of its authority; with that certificate and its key.
async fn asking_for_certificates() -> ((SocketAddr, String), (String, String)) {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let root = authority.self_signed(&key).unwrap();
    let issuer = Issuer::new(authority, key);
    let issued = |name: &str| {
        let key = KeyPair::generate().unwrap();
        (CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap(), key)
    };
    let mut roots = RootCertStore::empty();
    roots.add(root.der().clone()).unwrap();
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build().unwrap();
    let (certificate, key) = issued("hook.demo.svc");
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let (certificate, key) = issued("front-proxy-client");
    let address = serve_tls(things(), config).await;
    ((address, root.pem()), (certificate.pem(), key.serialize_pem()))
}

#[tokio::test]
async fn a_client_certificate_is_presented_to_other_servers() {
    let (backend, (certificate, key)) = asking_for_certificates().await;
    let anybody = behind(Server::builder(), backend.clone(), &json!({})).await;
    condition(&anybody, NAME, "FailedDiscoveryCheck").await;
    let builder = Server::builder().proxy_client(certificate, key).unwrap();
    let server = behind(builder, backend, &json!({})).await;
    condition(&server, NAME, "Passed").await;
    assert_eq!(get(&server, &format!("{ROOT}/things")).await.status, 418);
}
