//! Configures and builds a server, and creates what every cluster has.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, RwLock};

use serde_json::json;
use tokio::sync::watch;

use super::{Inner, Server, places};
use crate::admission::{Admission, AdmissionPlugins};
use crate::audit::AuditLog;
use crate::authentication::{Issuer, TokenKey, TokenPublicKey};
use crate::authorization::{Authorization, AuthorizationMode};
use crate::call::{Call, WriteOptions};
use crate::callout::{self, Credentials};
use crate::clock::Clock;
use crate::conversion::Conversions;
use crate::emptied::Emptied;
use crate::flowcontrol::answers::Answers;
use crate::flowcontrol::turns::Turns;
use crate::flowcontrol::watchers::Watchers;
use crate::housekeeping::Controllers;
use crate::identity::Identity;
use crate::metrics::Metrics;
use crate::object;
use crate::openapi::OpenApi;
use crate::registry::{Parts, Registry, ServiceNetwork};
use crate::status::Refusal;
use crate::store::Store;
use crate::warning::Warnings;

/// The default issuer of tokens.
const ISSUER: &str = "https://kubernetes.default.svc";

/// The namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Configures and builds a server.
///
/// ```
/// use admit_apiserver::{AuthorizationMode, Controllers, Identity, Server, TokenKey};
/// use axum::body::Body;
/// use http::Request;
/// use tower::ServiceExt as _;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // A bare kube-apiserver, where everybody who has a token may do everything.
/// let old_key = TokenKey::generate()?;
/// let server = Server::builder()
///     .token("secret", Identity::new("ann", []))
///     .anonymous(false)
///     .authorization([AuthorizationMode::AlwaysAllow])
///     .audiences(["https://api.example.com".to_owned()])
///     .trusted_token_keys([old_key.public()])
///     .controllers(Controllers::none())
///     .allow_privileged(false)
///     .build()
///     .await?;
///
/// let request = |method: &str| {
///     let request = Request::builder().method(method).uri("/api/v1/namespaces/kube-node-lease");
///     request.header("authorization", "Bearer secret").body(Body::empty())
/// };
/// assert_eq!(server.router().oneshot(request("DELETE")?).await?.status(), 200, "without any role");
/// server.sweep().await?;
/// assert_eq!(server.router().oneshot(request("GET")?).await?.status(), 200, "no controller ends it");
/// # Ok(())
/// # }
/// ```
///
/// [`Server`] has another example.
#[derive(Debug, Default)]
pub struct ServerBuilder {
    store: Option<Store>,
    tokens: HashMap<String, Identity>,
    token_key: Option<TokenKey>,
    trusted_token_keys: Vec<TokenPublicKey>,
    issuers: Vec<String>,
    audiences: Vec<String>,
    refuses_anonymous: bool,
    authorization: Vec<AuthorizationMode>,
    clock: Clock,
    plugins: AdmissionPlugins,
    controllers: Option<Controllers>,
    root_ca: Option<String>,
    client_authorities: Option<String>,
    proxy_client: Credentials,
    network: ServiceNetwork,
    refuses_privileged: bool,
    audit: Option<AuditLog>,
}

/// Says why the client certificate for the servers of APIServices cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ProxyClientError(String);

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

    /// Sets the key that signs service account tokens; by default a new one, whose tokens end with the process.
    #[must_use]
    pub fn token_key(mut self, key: TokenKey) -> Self {
        self.token_key = Some(key);
        self
    }

    /// Sets further keys whose tokens are accepted.
    #[must_use]
    pub fn trusted_token_keys(mut self, keys: impl IntoIterator<Item = TokenPublicKey>) -> Self {
        self.trusted_token_keys.extend(keys);
        self
    }

    /// Adds an issuer URL of tokens. New tokens are issued under the first; those of all
    /// are accepted.
    #[must_use]
    pub fn issuer(mut self, url: impl Into<String>) -> Self {
        self.issuers.push(url.into());
        self
    }

    /// Sets the audiences that this server accepts in tokens; its issuers by default.
    #[must_use]
    pub fn audiences(mut self, audiences: impl IntoIterator<Item = String>) -> Self {
        self.audiences.extend(audiences);
        self
    }

    /// Sets whether requests over a port without credentials are answered, as those of `system:anonymous` (the default), or
    /// refused with 401.
    #[must_use]
    pub fn anonymous(mut self, answered: bool) -> Self {
        self.refuses_anonymous = !answered;
        self
    }

    /// Sets the authorization modes in their order: the first that allows a request decides. RBAC alone by default.
    #[must_use]
    pub fn authorization(mut self, modes: impl IntoIterator<Item = AuthorizationMode>) -> Self {
        self.authorization = modes.into_iter().collect();
        self
    }

    /// Sets the controllers of kube-controller-manager that [`Server::housekeeping`] runs; by default all that this server has,
    /// where accounts depend on the plugin `ServiceAccount`.
    #[must_use]
    pub fn controllers(mut self, controllers: Controllers) -> Self {
        self.controllers = Some(controllers);
        self
    }

    /// Sets the server's clock; the machine's by default. Ages, times in objects and the lifetime of tokens follow
    /// it, the validity of certificates does not.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the admission plugins that run; by default those of kube-apiserver. With `ServiceAccount`
    /// each namespace has an account `default`, as a cluster's controllers create it.
    #[must_use]
    pub fn admission_plugins(mut self, plugins: AdmissionPlugins) -> Self {
        self.plugins = plugins;
        self
    }

    /// Sets the CA certificate by which pods verify this server: the content of the ConfigMap `kube-root-ca.crt` of each
    /// namespace. Without one there are no such ConfigMaps.
    #[must_use]
    pub fn root_ca(mut self, pem: impl Into<String>) -> Self {
        self.root_ca = Some(pem.into());
        self
    }

    /// Sets the published client CAs, PEM: extension API servers read them in the ConfigMap
    /// `extension-apiserver-authentication` of `kube-system`. Which clients this server accepts is decided by its TLS.
    #[must_use]
    pub fn client_authorities(mut self, pem: impl Into<String>) -> Self {
        self.client_authorities = Some(pem.into());
        self
    }

    /// Sets the client certificate with its key, PEM, by which the servers of APIServices know that this server tells them who the user is.
    ///
    /// # Errors
    /// If the pair is invalid.
    ///
    /// ```
    /// use admit_apiserver::Server;
    ///
    /// let refused = Server::builder().proxy_client("no certificate", "no key").unwrap_err();
    /// assert!(refused.to_string().starts_with("client key: "), "{refused}");
    /// ```
    pub fn proxy_client(
        mut self,
        certificate: impl Into<String>,
        key: impl Into<String>,
    ) -> Result<Self, ProxyClientError> {
        let credentials =
            Credentials { certificate: certificate.into(), key: key.into(), ..Credentials::default() };
        callout::check(&credentials).map_err(|error| ProxyClientError(error.to_string()))?;
        self.proxy_client = credentials;
        Ok(self)
    }

    /// Sets the address range of services, and the address at which pods reach the server. A stored state keeps the range
    /// that it was created with.
    #[must_use]
    pub fn service_network(mut self, network: ServiceNetwork) -> Self {
        self.network = network;
        self
    }

    /// Allows privileged containers or, if `allowed` is false, refuses them in pods and pod templates, as
    /// kube-apiserver does by default. Allowed by default, as in clusters that kubeadm creates.
    ///
    /// [`ServerBuilder`] has an example.
    #[must_use]
    pub const fn allow_privileged(mut self, allowed: bool) -> Self {
        self.refuses_privileged = !allowed;
        self
    }

    /// Writes audit events of requests to `log`, as [`AuditLog`] shows; forks of the server write none.
    #[must_use]
    pub fn audit_log(mut self, log: AuditLog) -> Self {
        self.audit = Some(log);
        self
    }

    /// Builds the server, and creates the namespaces and roles that every cluster has.
    ///
    /// # Errors
    /// If the store refuses an object, or there are no random numbers for a key.
    pub async fn build(self) -> Result<Server, Refusal> {
        let store = self.store.unwrap_or_else(Store::in_memory);
        let registry = Registry::new(Parts {
            store,
            clock: self.clock,
            admission: Admission::new(self.plugins),
            authorization: Authorization::new(self.authorization),
            controllers: self.controllers,
            root_ca: self.root_ca,
            network: self.network,
            proxy_client: self.proxy_client,
            refuses_privileged: self.refuses_privileged,
        });
        registry.serve_definitions();
        let key = match self.token_key {
            Some(key) => key,
            None => TokenKey::generate().map_err(|error| Refusal::internal(error.to_string()))?,
        };
        let names = if self.issuers.is_empty() { vec![ISSUER.to_owned()] } else { self.issuers };
        let audiences = if self.audiences.is_empty() { names.clone() } else { self.audiences };
        let issuer = Issuer { key, trusted: self.trusted_token_keys, names, audiences };
        let started = registry.clock.now();
        let inner = Inner {
            openapi: OpenApi::new(registry.clock.clone()),
            registry,
            tokens: Arc::new(self.tokens),
            issuer: Arc::new(issuer),
            anonymous: !self.refuses_anonymous,
            started,
            ending: watch::Sender::new(false),
            connections: places(),
            turns: Turns::default(),
            watchers: Watchers::default(),
            answers: Answers::default(),
            audit: self.audit,
            parts: RwLock::default(),
            logs: OnceLock::new(),
            measures: Metrics::default(),
            others: OnceLock::new(),
        };
        let server = Server { inner: Arc::new(inner) };
        server.create_namespaces().await?;
        server.inner.registry.create_accounts().await;
        server.inner.registry.open_allotments().await?;
        server.inner.registry.create_priority_classes().await?;
        server.inner.registry.create_default_roles().await?;
        server.inner.registry.create_flows().await?;
        server.inner.registry.create_own_maps(self.client_authorities.as_deref()).await?;
        server.inner.registry.settle_definitions().await;
        server.inner.registry.register_versions().await;
        // History begins here: no client can have seen an earlier state.
        let store = &server.inner.registry.store;
        store.compact(store.revision());
        Ok(server)
    }
}

impl Server {
    /// Creates the namespaces that every cluster has.
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
