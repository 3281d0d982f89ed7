//! Holds the current server of a test cluster, which a reset replaces: all clients reach the current one.

use std::convert::Infallible;
use std::sync::{Arc, PoisonError, RwLock};

use admit_apiserver::Server;
use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use tokio::task::{JoinHandle, spawn};
use tower::ServiceExt as _;

#[derive(Clone, Debug)]
pub(crate) struct Slot(Arc<RwLock<Now>>);

#[derive(Debug)]
struct Now {
    server: Server,
    router: Router,
    /// The task that runs its controllers.
    keeping: JoinHandle<()>,
}

impl Now {
    /// Starts the controllers; must be called on a runtime.
    fn of(server: Server) -> Self {
        let keeper = server.clone();
        let keeping = spawn(async move { keeper.housekeeping().await });
        Self { router: server.router(), server, keeping }
    }
}

impl Drop for Now {
    fn drop(&mut self) {
        self.keeping.abort();
        self.server.end_watches();
    }
}

impl Slot {
    pub(crate) fn new(server: Server) -> Self {
        Self(Arc::new(RwLock::new(Now::of(server))))
    }

    pub(crate) fn server(&self) -> Server {
        self.0.read().unwrap_or_else(PoisonError::into_inner).server.clone()
    }

    /// Replaces the server; the watches of the previous one end.
    pub(crate) fn put(&self, server: Server) {
        let next = Now::of(server);
        let before = std::mem::replace(&mut *self.0.write().unwrap_or_else(PoisonError::into_inner), next);
        drop(before);
    }

    /// Returns a service that forwards to the current server.
    pub(crate) fn router(&self) -> Router {
        Router::new().fallback(answer).with_state(self.clone())
    }
}

async fn answer(State(slot): State<Slot>, request: Request) -> Result<Response, Infallible> {
    let router = slot.0.read().unwrap_or_else(PoisonError::into_inner).router.clone();
    router.oneshot(request).await
}
