//! Starts and forks test clusters, and resets them to their initial state.

use std::fmt;

use admit_apiserver::{AdmissionPlugins, Controllers, Identity, Refusal, Server};
use axum::Extension;
use kube::Client;
use tokio::sync::{Mutex, OnceCell};

use crate::port::{Port, PortError};
use crate::slot::Slot;

/// Says why a server in this process did not start.
#[derive(Debug, thiserror::Error)]
#[error("the API server does not start: {0}")]
pub struct StartError(#[from] Refusal);

/// An API server with its own objects, for as long as the value lives.
///
/// It runs on the runtime on which it was created.
pub struct TestCluster {
    slot: Slot,
    /// The state that [`Self::reset`] restores.
    began: Server,
    /// The template for forks of this revision.
    last: Mutex<Option<(u64, Server)>>,
    port: OnceCell<Port>,
}

/// Configures and starts a [`TestCluster`].
#[derive(Clone, Debug, Default)]
pub struct TestClusterBuilder {
    plugins: Option<AdmissionPlugins>,
    controllers: Controllers,
}

impl TestClusterBuilder {
    /// Sets the admission plugins that run. By default those of kube-apiserver without `ServiceAccount`, as test harnesses
    /// start it: a Pod needs no account.
    #[must_use]
    pub fn admission_plugins(mut self, plugins: AdmissionPlugins) -> Self {
        self.plugins = Some(plugins);
        self
    }

    /// Sets the controllers of kube-controller-manager that run. None by default, as beside a bare kube-apiserver.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use admit_testing::{Controllers, TestCluster};
    ///
    /// let some = Controllers::named(["namespace", "garbage-collector"]).unwrap();
    /// let cluster = TestCluster::builder().controllers(some).start().await.unwrap();
    /// # });
    /// ```
    #[must_use]
    pub fn controllers(mut self, controllers: Controllers) -> Self {
        self.controllers = controllers;
        self
    }

    /// Starts the server.
    ///
    /// # Errors
    /// If the machine has no random numbers.
    pub async fn start(self) -> Result<TestCluster, StartError> {
        let plugins = match self.plugins {
            Some(plugins) => plugins,
            // Cannot fail, as the name is known.
            None => AdmissionPlugins::new([""; 0], ["ServiceAccount"]).unwrap_or_default(),
        };
        let builder = Server::builder().admission_plugins(plugins).controllers(self.controllers);
        let server = builder.build().await?;
        Ok(TestCluster::from(server.fork().await, server))
    }
}

impl TestCluster {
    /// Starts a server with what every cluster has: namespaces, roles, the Service `kubernetes`.
    ///
    /// # Errors
    /// Those of [`TestClusterBuilder::start`].
    pub async fn start() -> Result<Self, StartError> {
        Self::builder().start().await
    }

    /// Returns a builder, for other settings than those of [`Self::start`].
    #[must_use]
    pub fn builder() -> TestClusterBuilder {
        TestClusterBuilder::default()
    }

    fn from(began: Server, server: Server) -> Self {
        Self { slot: Slot::new(server), began, last: Mutex::new(None), port: OnceCell::new() }
    }

    /// Returns a client of an administrator, in the namespace `default`. It stays valid after [`Self::reset`].
    #[must_use]
    pub fn client(&self) -> Client {
        self.client_as(Identity::admin())
    }

    /// Returns a client of a user, who may do what the stored roles allow.
    #[must_use]
    pub fn client_as(&self, user: Identity) -> Client {
        Client::new(self.slot.router().layer(Extension(user)), "default")
    }

    /// Creates an independent cluster with the state of this one, as soon as no write is in progress here.
    ///
    /// It takes less than a millisecond, whatever is in the cluster: objects, definitions, roles and policies are shared until
    /// one of the two changes the resource.
    pub async fn fork(&self) -> Self {
        let mut last = self.last.lock().await;
        let server = self.slot.server();
        let revision = server.store().revision();
        let began = match &*last {
            Some((of, began)) if *of == revision => began.clone(),
            _ => {
                let began = server.fork().await;
                *last = Some((began.store().revision(), began.clone()));
                began
            }
        };
        drop(last);
        let server = began.fork().await;
        Self::from(began, server)
    }

    /// Restores the state in which the cluster was started or forked. Clients and ports stay valid; watches and
    /// running requests end.
    pub async fn reset(&self) {
        let server = self.began.fork().await;
        *self.last.lock().await = None;
        self.slot.put(server);
    }

    /// Returns a kubeconfig of an administrator for other programs, such as kubectl. The first call opens a port on 127.0.0.1.
    ///
    /// # Errors
    /// If there is no free port, or no random numbers for certificates.
    pub async fn kubeconfig(&self) -> Result<String, PortError> {
        let port = self.port.get_or_try_init(|| Port::open(&self.slot)).await?;
        Ok(port.kubeconfig.clone())
    }
}

impl fmt::Debug for TestCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let revision = self.slot.server().store().revision();
        f.debug_struct("TestCluster").field("revision", &revision).finish_non_exhaustive()
    }
}
