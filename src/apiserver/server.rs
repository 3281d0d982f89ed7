//! The server: a registry over a store, with all that requests share. How requests reach it is left to `http`.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use admit_serving::Places;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::admission::{Admission, AdmissionPlugins};
use crate::authentication::{Issuer, TokenKey};
use crate::call::{Call, WriteOptions};
use crate::clock::Clock;
use crate::conversion::Conversions;
use crate::emptied::Emptied;
use crate::flowcontrol::answers::Answers;
use crate::flowcontrol::turns::Turns;
use crate::flowcontrol::watchers::Watchers;
use crate::identity::Identity;
use crate::logs::PodLogs;
use crate::object;
use crate::openapi::OpenApi;
use crate::registry::{FromFile, Registry, ServiceNetwork};
use crate::status::Refusal;
use crate::store::Store;
use crate::warning::Warnings;

/// What tokens call this server when nobody says otherwise.
const ISSUER: &str = "https://kubernetes.default.svc";

/// Namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Connections at one time; for further ones the longest idle are closed. A client needs one or two, since many requests and
/// watches share one; and a process is commonly allowed 1,024 descriptors, of which stores and webhooks need some.
const MAX_CONNECTIONS: usize = 512;

/// Room for the connections of a server.
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
    tokens: HashMap<String, Identity>,
    issuer: Issuer,
    started: Timestamp,
    connections: Arc<Places>,
    /// Whose turn it is to change something, or to be told much.
    turns: Turns,
    watchers: Watchers,
    answers: Answers,
    /// Parts of the process that report their own readiness, by name.
    parts: RwLock<Vec<(String, bool)>>,
    logs: OnceLock<Arc<dyn PodLogs>>,
    metrics: OnceLock<Others>,
}

/// Configures and builds a server.
///
/// [`Server`] has an example.
#[derive(Debug, Default)]
pub struct ServerBuilder {
    store: Option<Store>,
    tokens: HashMap<String, Identity>,
    token_key: Option<TokenKey>,
    issuer: Option<String>,
    clock: Clock,
    plugins: AdmissionPlugins,
    root_ca: Option<String>,
    network: ServiceNetwork,
}

/// The identity and audiences of a bearer token.
#[derive(Clone, Debug)]
pub(crate) struct Authenticated {
    pub(crate) identity: Identity,
    pub(crate) audiences: Vec<String>,
}

impl ServerBuilder {
    /// Sets the store of objects; in memory by default.
    #[must_use]
    pub fn store(mut self, store: Store) -> Self {
        self.store = Some(store);
        self
    }

    /// Lets requests with this bearer token act as `identity`.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>, identity: Identity) -> Self {
        self.tokens.insert(token.into(), identity);
        self
    }

    /// The key that tokens of service accounts are signed with; one of this process' own by default, with which they end.
    #[must_use]
    pub fn token_key(mut self, key: TokenKey) -> Self {
        self.token_key = Some(key);
        self
    }

    /// The URL by which tokens name this server.
    #[must_use]
    pub fn issuer(mut self, url: impl Into<String>) -> Self {
        self.issuer = Some(url.into());
        self
    }

    /// Sets the server's clock; the machine's by default. Ages, times in objects and the lifetime of tokens follow
    /// it, the validity of certificates does not.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// The admission plugins that run; those that are on by default in kube-apiserver by default. Where `ServiceAccount` is
    /// one of them, each namespace has an account `default`, as the controllers of a cluster make it.
    #[must_use]
    pub fn admission_plugins(mut self, plugins: AdmissionPlugins) -> Self {
        self.plugins = plugins;
        self
    }

    /// The certificate of the authority by which pods know this server: what the ConfigMap `kube-root-ca.crt` of each
    /// namespace holds. Without one there are no such ConfigMaps.
    #[must_use]
    pub fn root_ca(mut self, pem: impl Into<String>) -> Self {
        self.root_ca = Some(pem.into());
        self
    }

    /// Where services have their addresses, and where pods reach the server. A state that was made with another range keeps
    /// that.
    #[must_use]
    pub fn service_network(mut self, network: ServiceNetwork) -> Self {
        self.network = network;
        self
    }

    /// Makes the server, and the namespaces and roles that every cluster has.
    ///
    /// # Errors
    /// When the store does not take them, or there are no random numbers for a key.
    pub async fn build(self) -> Result<Server, Refusal> {
        let store = self.store.unwrap_or_else(Store::in_memory);
        let admission = Admission::new(self.plugins);
        let registry = Registry::new(store, self.clock, admission, self.root_ca, self.network);
        registry.serve_definitions();
        let key = match self.token_key {
            Some(key) => key,
            None => TokenKey::generate().map_err(|error| Refusal::internal(error.to_string()))?,
        };
        let issuer = Issuer { key, name: self.issuer.unwrap_or_else(|| ISSUER.to_owned()) };
        let started = registry.clock.now();
        let inner = Inner {
            openapi: OpenApi::new(registry.clock.clone()),
            registry,
            tokens: self.tokens,
            issuer,
            started,
            connections: places(),
            turns: Turns::default(),
            watchers: Watchers::default(),
            answers: Answers::default(),
            parts: RwLock::default(),
            logs: OnceLock::new(),
            metrics: OnceLock::new(),
        };
        let server = Server { inner: Arc::new(inner) };
        server.create_namespaces().await?;
        server.inner.registry.create_accounts().await;
        server.inner.registry.open_allotments().await?;
        server.inner.registry.create_priority_classes().await?;
        server.inner.registry.create_default_roles().await?;
        server.inner.registry.settle_definitions().await;
        server.inner.registry.register_versions().await;
        // History begins here: nobody can have seen anything before.
        let store = &server.inner.registry.store;
        store.compact(store.revision());
        Ok(server)
    }
}

/// What others count.
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

    /// The garbage collector, the end of namespaces, and the status of policies and quotas: to be run beside the server for as long
    /// as it serves. Never returns.
    pub async fn housekeeping(&self) {
        let registry = &self.inner.registry;
        tokio::join!(registry.collect(), registry.keep_policy_statuses(), registry.keep_quotas());
    }

    /// Shows policies and bindings that somebody else decides by, in place of those of the last call, as read-only objects
    /// that are marked with their files. They change no decision of this server's, but for those of a pair of policy and
    /// binding of which a client made one.
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
        let _ = self.inner.metrics.set(Others(Box::new(text)));
    }

    pub(crate) fn pod_logs(&self) -> Option<&dyn PodLogs> {
        self.inner.logs.get().map(AsRef::as_ref)
    }

    /// Processes all stored objects once, as [`housekeeping`](Self::housekeeping) does whenever there is something to do.
    ///
    /// # Errors
    /// The first refusal that is not a race with somebody else.
    pub async fn sweep(&self) -> Result<(), Refusal> {
        self.inner.registry.sweep().await?;
        self.inner.registry.count_quotas().await;
        Ok(())
    }

    /// The store of objects, which writes past this server change without its knowledge.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.inner.registry.store
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.inner.registry
    }

    /// Room for connections.
    pub(crate) fn connections(&self) -> &Arc<Places> {
        &self.inner.connections
    }

    pub(crate) fn openapi(&self) -> &OpenApi {
        &self.inner.openapi
    }

    pub(crate) fn issuer(&self) -> &Issuer {
        &self.inner.issuer
    }

    /// Verifies `token`: one that the server was built with, or one that it issued for an account that still exists.
    pub(crate) fn authenticated(&self, token: &str) -> Option<Authenticated> {
        if let Some(identity) = self.inner.tokens.get(token) {
            let audiences = vec![self.inner.issuer.name.clone()];
            return Some(Authenticated { identity: identity.clone(), audiences });
        }
        let issued = self.inner.issuer.read(token, self.clock().now())?;
        let here = issued.audiences.contains(&self.inner.issuer.name);
        (here && self.inner.registry.bindings_hold(&issued))
            .then(|| Authenticated { identity: issued.identity(), audiences: issued.audiences })
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.inner.registry.clock
    }

    /// The readiness of parts of the process.
    pub(crate) fn parts(&self) -> Vec<(String, bool)> {
        self.inner.parts.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The scheduler of changes and long responses.
    pub(crate) fn turns(&self) -> &Turns {
        &self.inner.turns
    }

    pub(crate) fn answers(&self) -> &Answers {
        &self.inner.answers
    }

    pub(crate) fn watchers(&self) -> &Watchers {
        &self.inner.watchers
    }

    /// When the server was made.
    pub(crate) fn started(&self) -> Timestamp {
        self.inner.started
    }

    /// The `/metrics` document.
    pub(crate) fn metrics(&self) -> String {
        let (open, allowed) = (self.inner.connections.taken(), self.inner.connections.most());
        let changes = self.inner.turns.under_way();
        let (watches, unsent, ended) = self.inner.watchers.figures();
        let answers = self.inner.answers.held();
        let others = self.inner.metrics.get().map(|others| others.0()).unwrap_or_default();
        let converted = self.inner.registry.converted.text();
        format!(
            "# TYPE apiserver_connections_open gauge\napiserver_connections_open {open}\n\
             # TYPE apiserver_connections_allowed gauge\napiserver_connections_allowed {allowed}\n\
             # TYPE apiserver_changes_under_way gauge\napiserver_changes_under_way {changes}\n\
             # TYPE apiserver_watches_open gauge\napiserver_watches_open {watches}\n\
             # TYPE apiserver_watch_bytes_unsent gauge\napiserver_watch_bytes_unsent {unsent}\n\
             # TYPE apiserver_watches_too_slow_total counter\napiserver_watches_too_slow_total {ended}\n\
             # TYPE apiserver_answer_bytes_held gauge\napiserver_answer_bytes_held {answers}\n\
             # TYPE apiserver_storage_revision counter\napiserver_storage_revision {}\n\
             # TYPE apiserver_storage_list_evaluated_objects_total counter\n\
             apiserver_storage_list_evaluated_objects_total {}\n{converted}{others}",
            self.inner.registry.store.revision(),
            self.inner.registry.store.looked_at(),
        )
    }

    /// The `/version` document.
    pub(crate) fn version() -> Value {
        json!({
            "major": "1", "minor": "36", "emulationMajor": "1", "emulationMinor": "36",
            "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
            "gitVersion": "v1.36.2+admit", "gitCommit": "", "gitTreeState": "", "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": "", "compiler": "rustc",
            "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH)
        })
    }

    async fn create_namespaces(&self) -> Result<(), Refusal> {
        let registry = &self.inner.registry;
        let served = registry.served();
        let Some(info) = served.table.find("", "v1", "namespaces") else { return Ok(()) };
        let call = Call {
            info: Arc::clone(info),
            custom: None,
            namespace: String::new(),
            subresource: None,
            identity: Identity::admin(),
            warnings: Warnings::default(),
            emptied: Emptied::default(),
            conversions: Conversions::default(),
            clock: registry.clock.clone(),
            admitted: false,
        };
        let options = WriteOptions::own();
        for name in NAMESPACES {
            let mut namespace = json!({"apiVersion": "v1", "kind": "Namespace"});
            object::set_meta(&mut namespace, "name", Some(name.into()));
            match registry.create(&call, namespace, &options).await {
                Err(refusal) if refusal.reason() != "AlreadyExists" => return Err(refusal),
                _ => {}
            }
        }
        Ok(())
    }
}
