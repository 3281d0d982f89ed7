//! Forks servers: a fork begins with the state of another server, and shares what neither has changed since.

use std::sync::{Arc, OnceLock, RwLock};

use tokio::sync::watch;

use super::{Inner, Server};
use crate::admission::POLICIES;
use crate::flowcontrol::answers::Answers;
use crate::flowcontrol::turns::Turns;
use crate::flowcontrol::watchers::Watchers;
use crate::metrics::Metrics;

impl Server {
    /// Creates an independent server with the state of this one: objects, their history and revisions, served kinds, roles
    /// and policies. It is in memory. A resource is copied only when one of the two servers changes it.
    ///
    /// Logs, metrics and readiness of parts of the process are not copied, and are to be set anew.
    ///
    /// ```
    /// use admit_apiserver::Server;
    /// use axum::body::Body;
    /// use http::Request;
    /// use tower::ServiceExt as _;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::builder().build().await?;
    /// let fork = server.fork().await;
    /// assert_eq!(fork.store().revision(), server.store().revision());
    ///
    /// let namespace = r#"{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}}"#;
    /// let create = Request::post("/api/v1/namespaces").header("content-type", "application/json");
    /// assert_eq!(fork.router().oneshot(create.body(Body::from(namespace))?).await?.status(), 201);
    /// let get = Request::get("/api/v1/namespaces/mine").body(Body::empty())?;
    /// assert_eq!(server.router().oneshot(get).await?.status(), 404);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn fork(&self) -> Self {
        let inner = &self.inner;
        let is_quiet = || inner.turns.under_way() == 0;
        let before = is_quiet().then(|| inner.registry.store.revision());
        let store = inner.registry.store.fork();
        let settled = |quiet: bool| quiet && before == Some(store.revision());
        let registry = inner.registry.fork(store.clone(), settled(is_quiet())).await;
        let quiet = settled(is_quiet() && inner.registry.store.revision() == store.revision());
        if !quiet {
            registry.serve_definitions();
            registry.admission.written(POLICIES);
            registry.authorization.forget();
            if let Err(refusal) = registry.open_allotments().await {
                tracing::warn!(%refusal, "addresses and ports of services are not taken over whole");
            }
        }
        Self {
            inner: Arc::new(Inner {
                openapi: inner.openapi.fork(),
                started: registry.clock.now(),
                registry,
                tokens: Arc::clone(&inner.tokens),
                issuer: Arc::clone(&inner.issuer),
                anonymous: inner.anonymous,
                ending: watch::Sender::new(false),
                connections: Arc::clone(&inner.connections),
                turns: Turns::default(),
                watchers: Watchers::default(),
                answers: Answers::default(),
                audit: None,
                parts: RwLock::default(),
                logs: OnceLock::new(),
                measures: Metrics::default(),
                others: OnceLock::new(),
            }),
        }
    }
}
