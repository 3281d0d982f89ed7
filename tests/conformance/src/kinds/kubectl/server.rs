//! Starts a server for each scenario: TLS on a free loopback port, client certificates required, state in memory; and the
//! scenario's webhook, if it had one, on another port.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use admit_apiserver::{AdmissionPlugins, serve_router};
use axum::Router;
use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::ServerConfig;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

use super::hook::Answers;
use super::keys::Keys;

pub(super) struct Server {
    kubeconfig: PathBuf,
    watches: Arc<AtomicUsize>,
    /// What placeholders of a scenario's input stand for from the beginning.
    placeholders: Vec<(&'static str, String)>,
    _runtime: Runtime,
}

impl Server {
    /// Serves the fixtures' definitions and the namespaces `demo` and `other`, and writes a kubeconfig with namespace
    /// `demo` into `folder`.
    pub(super) fn start(folder: &Path, fixtures: &[Value], scenario: &Value) -> Result<Self, String> {
        Self::started(folder, fixtures, scenario).map_err(|error| error.to_string())
    }

    fn started(folder: &Path, fixtures: &[Value], scenario: &Value) -> Result<Self, Box<dyn Error>> {
        let runtime = Runtime::new()?;
        let keys = Keys::new()?;
        let watches = Arc::new(AtomicUsize::new(0));
        let (address, webhook) = runtime.block_on(async {
            // By the machine's clock, as kubectl, which counts ages from it; no age is recorded.
            // Recorded beside a server without accounts.
            let plugins = AdmissionPlugins::new([""; 0], ["ServiceAccount"])?;
            let server = admit_apiserver::Server::builder().admission_plugins(plugins).build().await?;
            create(server.router(), fixtures).await?;
            let router = count_watches(server.router(), Arc::clone(&watches));
            let address = listen(router, keys.server_config(true)?).await?;
            let webhook = listen(Answers::new(scenario).router(), keys.server_config(false)?).await?;
            Ok::<_, Box<dyn Error>>((address, webhook))
        })?;
        let placeholders = vec![
            ("<webhook>", webhook.to_string()),
            ("<ca-bundle>", STANDARD.encode(keys.authority())),
            ("<ip>", Ipv4Addr::LOCALHOST.to_string()),
        ];
        let kubeconfig = keys.write_kubeconfig(folder, address)?;
        Ok(Self { kubeconfig, watches, placeholders, _runtime: runtime })
    }

    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// How many watches have been asked for so far.
    pub(super) fn watches(&self) -> usize {
        self.watches.load(Ordering::SeqCst)
    }

    /// The text with the placeholders put in that stand for parts of this server.
    pub(super) fn fill(&self, text: &str) -> String {
        self.placeholders.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }
}

async fn listen(router: Router, config: ServerConfig) -> Result<SocketAddr, Box<dyn Error>> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(serve_router(router, listener, config, std::future::pending()));
    Ok(address)
}

/// Creates the definitions and namespaces that every scenario starts from. No collector runs, as at the recording.
async fn create(router: Router, fixtures: &[Value]) -> Result<(), Box<dyn Error>> {
    let definitions = fixtures
        .iter()
        .map(|fixture| ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", fixture.clone()));
    let namespaces = ["demo", "other"].map(|name| {
        ("/api/v1/namespaces", json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    });
    for (path, object) in definitions.chain(namespaces) {
        let request = http::Request::post(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(Body::from(object.to_string()))?;
        let response = router.clone().oneshot(request).await?;
        let status = response.status();
        let answer = axum::body::to_bytes(response.into_body(), usize::MAX).await?;
        if status != http::StatusCode::CREATED {
            return Err(format!("{path}: status {status}: {}", String::from_utf8_lossy(&answer)).into());
        }
    }
    Ok(())
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
