//! Clusters: started, forked from one another, and put back to where they began.

use std::fmt;

use admit_apiserver::{AdmissionPlugins, Controllers, Identity, Refusal, Server};
use axum::Extension;
use kube::Client;
use tokio::sync::{Mutex, OnceCell};

use crate::port::{Port, PortError};
use crate::slot::Slot;

/// A server in this process does not start.
#[derive(Debug, thiserror::Error)]
#[error("the API server does not start: {0}")]
pub struct StartError(#[from] Refusal);

/// An API server with its own objects, for as long as the value lives.
///
/// It is the work of the runtime on which it was made.
pub struct TestCluster {
    slot: Slot,
    /// What [`Self::reset`] brings back.
    began: Server,
    /// What the forks of this revision begin with.
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
    /// The admission plugins that run. By default those that kube-apiserver has on, without `ServiceAccount`, as test harnesses
    /// start it: a Pod needs no account.
    #[must_use]
    pub fn admission_plugins(mut self, plugins: AdmissionPlugins) -> Self {
        self.plugins = Some(plugins);
        self
    }

    /// The controllers of kube-controller-manager that run. None by default, as beside a bare kube-apiserver.
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
    /// When the machine has no random numbers.
    pub async fn start(self) -> Result<TestCluster, StartError> {
        let plugins = match self.plugins {
            Some(plugins) => plugins,
            // Its name is known.
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
    /// As [`TestClusterBuilder::start`].
    pub async fn start() -> Result<Self, StartError> {
        Self::builder().start().await
    }

    /// Says otherwise than [`Self::start`] has it.
    #[must_use]
    pub fn builder() -> TestClusterBuilder {
        TestClusterBuilder::default()
    }

    fn from(began: Server, server: Server) -> Self {
        Self { slot: Slot::new(server), began, last: Mutex::new(None), port: OnceCell::new() }
    }

    /// A client of an administrator, in the namespace `default`. It goes on after [`Self::reset`].
    #[must_use]
    pub fn client(&self) -> Client {
        self.client_as(Identity::admin())
    }

    /// A client of a user, who may do what the stored roles say.
    #[must_use]
    pub fn client_as(&self, user: Identity) -> Client {
        Client::new(self.slot.router().layer(Extension(user)), "default")
    }

    /// A cluster of its own that begins with all that is in this one, as soon as nothing is being written here.
    ///
    /// It costs less than a millisecond, whatever is in the cluster: objects, definitions, roles and policies are shared until
    /// one of the two changes something of the resource.
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

    /// Brings back what was in the cluster when it was started or forked. Clients and ports stay good; watches end, and so does
    /// what was under way.
    pub async fn reset(&self) {
        let server = self.began.fork().await;
        *self.last.lock().await = None;
        self.slot.put(server);
    }

    /// A kubeconfig of an administrator for other programs, kubectl for one. The first call opens a port on 127.0.0.1.
    ///
    /// # Errors
    /// When there is no port, or no random numbers for certificates.
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
