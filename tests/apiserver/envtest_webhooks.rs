//! Webhooks as test harnesses set them up: the `caBundle` is the serving certificate alone, whose authority nobody keeps, and
//! the path begins with two slashes.

use std::net::SocketAddr;
use std::sync::Arc;

use admit_apiserver::Server;
use axum::Router;
use axum::extract::Json;
use axum::routing::post as route_post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};

use crate::harness::post;
use crate::webhook::{CONFIGURATIONS, MAPS, configuration, map, serve_tls};

/// A certificate for this machine of an authority that is gone.
fn leaf(common_name: &str) -> (rcgen::Certificate, KeyPair) {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name.push(DnType::CommonName, "envtest-environment");
    let issuer = Issuer::new(authority, KeyPair::generate().unwrap());
    let mut params = CertificateParams::new(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, &issuer).unwrap(), key)
}

async fn review(Json(review): Json<Value>) -> Json<Value> {
    let response = json!({"uid": review["request"]["uid"], "allowed": false, "status": {"message": "asked"}});
    Json(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}))
}

async fn served(certificate: &rcgen::Certificate, key: &KeyPair) -> SocketAddr {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der())),
        )
        .unwrap();
    serve_tls(Router::new().route("/validate-v1-configmap", route_post(review)), config).await
}

async fn told(address: SocketAddr, bundle: &str) -> String {
    let server = Server::builder().build().await.unwrap();
    let url = format!("https://{address}//validate-v1-configmap");
    let client = json!({"url": url, "caBundle": STANDARD.encode(bundle)});
    assert_eq!(post(&server, CONFIGURATIONS, &configuration(&client, &json!({}))).await.status, 201);
    post(&server, MAPS, &map("one")).await.message().to_owned()
}

#[tokio::test]
async fn the_serving_certificate_alone_is_trusted_whoever_signed_it() {
    let (certificate, key) = leaf("localhost");
    let address = served(&certificate, &key).await;
    let asked = "admission webhook \"validate.hook.example\" denied the request: asked";
    assert_eq!(told(address, &certificate.pem()).await, asked);
    // Another certificate of an authority of the same name is none.
    let (other, _) = leaf("localhost");
    let refused = told(address, &other.pem()).await;
    assert!(
        refused.ends_with("tls: failed to verify certificate: x509: certificate signed by unknown authority"),
        "{refused}"
    );
    let path = format!("Post \"https://{address}/validate-v1-configmap?timeout=10s\"");
    assert!(refused.contains(&path), "{refused}");
}

/// As those of envtest are named: the authority and what it signs alike, where a verifier tries the signature.
#[tokio::test]
async fn a_certificate_that_names_itself_as_its_authority_is_trusted_too() {
    let (certificate, key) = leaf("envtest-environment");
    let address = served(&certificate, &key).await;
    let asked = "admission webhook \"validate.hook.example\" denied the request: asked";
    assert_eq!(told(address, &certificate.pem()).await, asked);
}
