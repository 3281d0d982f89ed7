//! A server of its own for each scenario: TLS on a free loopback port, client certificates required, state in memory.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use admit_apiserver::{Server, serve_router};
use axum::Router;
use axum::body::Body;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, SanType,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tower::ServiceExt as _;

pub(crate) struct TestServer {
    kubeconfig: PathBuf,
    watches: Arc<AtomicUsize>,
    _runtime: tokio::runtime::Runtime,
}

impl TestServer {
    /// Serves the fixtures' definitions and the namespaces `demo` and `other`, and writes a kubeconfig with namespace
    /// `demo` into `folder`.
    pub(crate) fn start(folder: &Path, fixtures: &[Value]) -> Self {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let keys = Keys::new();
        let watches = Arc::new(AtomicUsize::new(0));
        let address = runtime.block_on(async {
            let server = Server::builder().build().await.expect("a server");
            create(server.router(), fixtures).await;
            let router = count_watches(server.router(), Arc::clone(&watches));
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
            let address = listener.local_addr().expect("an address");
            tokio::spawn(serve_router(router, listener, keys.server_config(), std::future::pending()));
            address
        });
        let kubeconfig = keys.write_kubeconfig(folder, address);
        Self { kubeconfig, watches, _runtime: runtime }
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// How many watches have been asked for so far.
    pub(crate) fn watches(&self) -> usize {
        self.watches.load(Ordering::SeqCst)
    }
}

/// Creates the definitions and namespaces that every scenario starts from. No collector runs, as at the recording.
async fn create(router: Router, fixtures: &[Value]) {
    let definitions = fixtures
        .iter()
        .map(|fixture| ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", fixture.clone()));
    let namespaces = ["demo", "other"].map(|name| {
        ("/api/v1/namespaces", json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    });
    for (path, object) in definitions.chain(namespaces) {
        let request = http::Request::post(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(Body::from(object.to_string()))
            .expect("a request");
        let response = router.clone().oneshot(request).await.expect("an answer");
        let status = response.status();
        let answer = axum::body::to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        assert_eq!(status, http::StatusCode::CREATED, "{}", String::from_utf8_lossy(&answer));
    }
}

fn count_watches(router: Router, watches: Arc<AtomicUsize>) -> Router {
    router.layer(axum::middleware::map_request(move |request: http::Request<Body>| {
        let query = request.uri().query().unwrap_or_default();
        if query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1" | "watch")) {
            watches.fetch_add(1, Ordering::SeqCst);
        }
        std::future::ready(request)
    }))
}

struct Keys {
    ca: String,
    ca_der: CertificateDer<'static>,
    server: (CertificateDer<'static>, KeyPair),
    client: (String, String),
}

impl Keys {
    fn new() -> Self {
        let ca_key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "test-ca");
        let ca = params.self_signed(&ca_key).expect("a certificate");
        let issuer = Issuer::new(params, ca_key);

        let server_key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.subject_alt_names.push(SanType::IpAddress(Ipv4Addr::LOCALHOST.into()));
        params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        let server = params.signed_by(&server_key, &issuer).expect("a certificate");

        let client_key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "admin");
        params.distinguished_name.push(DnType::OrganizationName, "system:masters");
        params.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
        let client = params.signed_by(&client_key, &issuer).expect("a certificate");
        Self {
            ca: ca.pem(),
            ca_der: ca.der().clone(),
            server: (server.der().clone(), server_key),
            client: (client.pem(), client_key.serialize_pem()),
        }
    }

    fn server_config(&self) -> ServerConfig {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(self.ca_der.clone()).expect("a root");
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .expect("a verifier");
        let (certificate, key) = &self.server;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("protocol versions")
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![certificate.clone()], key)
            .expect("a server certificate")
    }

    fn write_kubeconfig(&self, folder: &Path, address: SocketAddr) -> PathBuf {
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).expect("a file");
            path.display().to_string()
        };
        let ca = write("ca.crt", &self.ca);
        let (certificate, key) = (write("client.crt", &self.client.0), write("client.key", &self.client.1));
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
             clusters:\n- name: test\n  cluster: {{server: 'https://{address}', certificate-authority: '{ca}'}}\n\
             users:\n- name: test\n  user: {{client-certificate: '{certificate}', client-key: '{key}'}}\n\
             contexts:\n- name: test\n  context: {{cluster: test, user: test, namespace: demo}}\n"
        );
        PathBuf::from(write("kubeconfig", &text))
    }
}
