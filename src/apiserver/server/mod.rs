//! Implements the server: a registry over a store, with the state that all requests share. `http` serves requests to it.

mod builder;
mod exposed;
mod fork;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use admit_serving::Places;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;

pub use self::builder::{ProxyClientError, ServerBuilder};
use crate::audit::AuditLog;
use crate::authentication::Issuer;
use crate::clock::Clock;
use crate::flowcontrol::answers::Answers;
use crate::flowcontrol::turns::Turns;
use crate::flowcontrol::watchers::Watchers;
use crate::identity::Identity;
use crate::logs::PodLogs;
use crate::metrics::Metrics;
use crate::openapi::OpenApi;
use crate::registry::{FromFile, Registry};
use crate::status::Refusal;
use crate::store::Store;

/// The number of open connections; beyond it the longest idle are closed. A client needs one or two, which many requests and
/// watches share; and a process is commonly allowed 1,024 descriptors, of which stores and webhooks need some.
const MAX_CONNECTIONS: usize = 512;

/// Creates the limit for the connections of a server.
pub(crate) fn places() -> Arc<Places> {
    Arc::new(Places::within_descriptors(MAX_CONNECTIONS))
}

/// An API server. Clones share everything.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use admit_apiserver::store::Store;
/// use admit_apiserver::{
///     AdmissionPlugins, Clock, FromFile, Identity, LogError, LogOptions, LogStream, PodLogs, Server, ServiceNetwork,
///     TokenKey,
/// };
/// use axum::body::Body;
/// use futures::StreamExt as _;
/// use http::Request;
/// use serde_json::{Value, json};
/// use tower::ServiceExt as _;
///
/// /// Every container has said hello.
/// #[derive(Debug)]
/// struct Hello;
///
/// impl PodLogs for Hello {
///     fn open(&self, _: &Value, _: LogOptions) -> Result<LogStream, LogError> {
///         Ok(futures::stream::iter([Ok("hello\n".into())]).boxed())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::builder()
///     .store(Store::in_memory())
///     .token("secret", Identity::new("ann", ["system:masters".to_owned()]))
///     .token_key(TokenKey::generate()?)
///     .issuer("https://127.0.0.1:6443")
///     .clock(Clock::starting_at("2026-11-21T12:00:00Z".parse()?))
///     .admission_plugins(AdmissionPlugins::default())
///     .root_ca("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n")
///     .client_authorities("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n")
///     .service_network(ServiceNetwork::default())
///     .build()
///     .await?;
/// server.set_pod_logs(Arc::new(Hello));
/// server.set_metrics(|| "mine 1\n".to_owned());
/// server.set_ready("mine", false);
///
/// let get = |path: &str| Request::get(path).header("authorization", "Bearer secret").body(Body::empty());
/// assert_eq!(server.router().oneshot(get("/api/v1/namespaces/default")?).await?.status(), 200);
/// assert_eq!(server.router().oneshot(get("/readyz")?).await?.status(), 500, "one part is not ready");
///
/// // What runs beside it: for as long as it serves, or once.
/// let housekeeping = tokio::time::timeout(Duration::from_millis(10), server.housekeeping());
/// assert!(housekeeping.await.is_err(), "it never returns");
/// server.sweep().await?;
/// let binding = json!({
///     "apiVersion": "admissionregistration.k8s.io/v1",
///     "kind": "ValidatingAdmissionPolicyBinding",
///     "metadata": {"name": "a"},
///     "spec": {"policyName": "a", "validationActions": ["Deny"]},
/// });
/// server.show_from_files(vec![FromFile { file: "a.yaml".to_owned(), object: binding }]).await;
/// assert!(server.store().revision() > 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Server {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    registry: Registry,
    openapi: OpenApi,
    tokens: Arc<HashMap<String, Identity>>,
    issuer: Arc<Issuer>,
    /// Whether requests without credentials are answered, as anonymous ones.
    anonymous: bool,
    started: Timestamp,
    /// Signals that watches are to end.
    ending: watch::Sender<bool>,
    connections: Arc<Places>,
    /// The scheduler of changes and long responses.
    turns: Turns,
    watchers: Watchers,
    answers: Answers,
    audit: Option<AuditLog>,
    /// Parts of the process that report their own readiness, by name.
    parts: RwLock<Vec<(String, bool)>>,
    logs: OnceLock<Arc<dyn PodLogs>>,
    measures: Metrics,
    others: OnceLock<Others>,
}

/// The identity and audiences of a bearer token.
#[derive(Clone, Debug)]
pub(crate) struct Authenticated {
    pub(crate) identity: Identity,
    pub(crate) audiences: Vec<String>,
    /// Whether it is a signed token with audiences of its own; otherwise it is meant for this server.
    pub(crate) is_signed: bool,
}

/// The metrics of other parts of the process.
struct Others(Box<dyn Fn() -> String + Send + Sync>);

impl fmt::Debug for Others {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Others")
    }
}

impl Server {
    #[must_use]
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// Runs the controllers that the server was built with, and what kube-apiserver does by itself (it looks after APIServices and lets
    /// old states expire); for as long as the server serves: it never returns.
    pub async fn housekeeping(&self) {
        let registry = &self.inner.registry;
        tokio::join!(
            registry.collect(),
            registry.keep_policy_statuses(),
            registry.keep_quotas(),
            registry.keep_availability(),
            registry.expire_states()
        );
    }

    /// Ends all watches, also later ones, when the server stops.
    ///
    /// ```
    /// use admit_apiserver::Server;
    /// use axum::body::{Body, to_bytes};
    /// use http::Request;
    /// use tower::ServiceExt as _;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::builder().build().await?;
    /// let watch = Request::get("/api/v1/namespaces?watch=true").body(Body::empty())?;
    /// let response = server.router().oneshot(watch).await?;
    /// server.end_watches();
    /// // The body is whole now, which otherwise goes on for as long as the client likes.
    /// to_bytes(response.into_body(), usize::MAX).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn end_watches(&self) {
        self.inner.ending.send_replace(true);
    }

    /// Returns a receiver that becomes true when watches are to end.
    pub(crate) fn ending(&self) -> watch::Receiver<bool> {
        self.inner.ending.subscribe()
    }

    /// Returns whether requests without credentials are answered, as anonymous ones.
    pub(crate) fn answers_anonymous(&self) -> bool {
        self.inner.anonymous
    }

    /// Shows policies and bindings that another program enforces, in place of those of the last call, as read-only objects
    /// that are marked with their files. This server enforces none of them, except for pairs of a policy and a
    /// binding of which one is a client's.
    pub async fn show_from_files(&self, policies: Vec<FromFile>) {
        self.inner.registry.show_from_files(policies).await;
    }

    /// Sets the readiness of a part of the process, which `/readyz` shows under its name.
    pub fn set_ready(&self, part: &str, ready: bool) {
        let mut parts = self.inner.parts.write().unwrap_or_else(PoisonError::into_inner);
        match parts.iter_mut().find(|(name, _)| name == part) {
            Some((_, state)) => *state = ready,
            None => parts.push((part.to_owned(), ready)),
        }
    }

    /// Sets the source of pod logs; only the first call has an effect.
    pub fn set_pod_logs(&self, logs: Arc<dyn PodLogs>) {
        let _ = self.inner.logs.set(logs);
    }

    /// Sets the source of further metrics, appended to `/metrics`; only the first call has an effect.
    pub fn set_metrics(&self, text: impl Fn() -> String + Send + Sync + 'static) {
        let _ = self.inner.others.set(Others(Box::new(text)));
    }

    pub(crate) fn pod_logs(&self) -> Option<&dyn PodLogs> {
        self.inner.logs.get().map(AsRef::as_ref)
    }

    /// Processes all stored objects once, as [`housekeeping`](Self::housekeeping) does whenever there is something to do.
    ///
    /// # Errors
    /// The first refusal that is not caused by a concurrent change.
    pub async fn sweep(&self) -> Result<(), Refusal> {
        self.inner.registry.sweep().await?;
        self.inner.registry.count_quotas().await;
        Ok(())
    }

    /// Returns the store of objects. The server does not notice writes that bypass it.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.inner.registry.store
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.inner.registry
    }

    /// Returns the limit for connections.
    pub(crate) fn connections(&self) -> &Arc<Places> {
        &self.inner.connections
    }

    pub(crate) fn openapi(&self) -> &OpenApi {
        &self.inner.openapi
    }

    pub(crate) fn issuer(&self) -> &Issuer {
        &self.inner.issuer
    }

    /// Verifies `token`, which must be meant for this server.
    pub(crate) fn authenticated(&self, token: &str) -> Option<Authenticated> {
        self.recognised(token).filter(|known| self.inner.issuer.is_meant(&known.audiences))
    }

    /// Verifies `token` for any audience: one that the server was built with, or one that it issued for an account that
    /// still exists.
    pub(crate) fn recognised(&self, token: &str) -> Option<Authenticated> {
        if let Some(identity) = self.inner.tokens.get(token) {
            let audiences = self.inner.issuer.audiences.clone();
            return Some(Authenticated { identity: identity.clone(), audiences, is_signed: false });
        }
        let issued = self.inner.issuer.read(token, self.clock().now())?;
        let holds = self.inner.registry.bindings_hold(&issued);
        holds.then(|| Authenticated {
            identity: issued.identity(),
            audiences: issued.audiences,
            is_signed: true,
        })
    }

    /// Returns the audiences of this server.
    pub(crate) fn audiences(&self) -> &[String] {
        &self.inner.issuer.audiences
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.inner.registry.clock
    }

    /// Returns the readiness of parts of the process.
    pub(crate) fn parts(&self) -> Vec<(String, bool)> {
        self.inner.parts.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the scheduler of changes and long responses.
    pub(crate) fn turns(&self) -> &Turns {
        &self.inner.turns
    }

    pub(crate) fn audit_log(&self) -> Option<&AuditLog> {
        self.inner.audit.as_ref()
    }

    pub(crate) fn answers(&self) -> &Answers {
        &self.inner.answers
    }

    pub(crate) fn watchers(&self) -> &Watchers {
        &self.inner.watchers
    }

    /// Returns when the server was built.
    pub(crate) fn started(&self) -> Timestamp {
        self.inner.started
    }

    /// Returns the metrics of requests.
    pub(crate) fn measures(&self) -> &Metrics {
        &self.inner.measures
    }

    /// Returns the `/version` document.
    pub(crate) fn version() -> Value {
        json!({
            "major": "1", "minor": "36", "emulationMajor": "1", "emulationMinor": "36",
            "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
            "gitVersion": "v1.36.2+admit", "gitCommit": "", "gitTreeState": "", "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": "", "compiler": "rustc",
            "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH)
        })
    }
}
