//! Answers lookups of policies: from watched collections, and authorizer checks from the cluster itself.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use admit_policy::{
    Access, AccessAttributes, Exceptions, GroupVersionKind, GroupVersionResource, Host, HostError, Scope,
    UserInfo,
};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::admissionregistration::v1beta1;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ApiResource;
use kube::{Api, Client, Resource};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::access;
use super::collection::Collection;
use super::definitions;
use super::exceptions::{ExceptionCounts, Stored};
use super::follow::Followed;
use super::params::Params;
use crate::controllers::kit::tasks::{Driver, pool};

/// The time limit of an authorizer check.
const ACCESS_TIMEOUT: Duration = Duration::from_secs(2);

/// Which optional kinds are watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    pub policies: bool,
    pub exceptions: bool,
}

/// The state of the cluster that decisions need.
pub struct ClusterCache {
    client: Client,
    runtime: Handle,
    namespaces: Arc<Collection>,
    definitions: Arc<Collection>,
    policies: Arc<Collection>,
    bindings: Arc<Collection>,
    mutating_policies: Arc<Collection>,
    mutating_bindings: Arc<Collection>,
    exceptions: Stored,
    params: Params,
    /// Notified when CRDs change, for all who check whether a kind is served.
    defined: watch::Sender<()>,
    /// Notified when policies, bindings or CRDs change, which may be those of params.
    changed: Arc<Notify>,
}

impl fmt::Debug for ClusterCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterCache").finish_non_exhaustive()
    }
}

impl ClusterCache {
    /// Creates an empty cache, and the driver that watches params for it. Must be called on the runtime that sends authorizer
    /// checks.
    #[must_use]
    pub fn new(client: Client) -> (Arc<Self>, Driver) {
        let (pool, driver) = pool();
        let collection = |name| Arc::new(Collection::new(name));
        let cache = Self {
            params: Params::new(client.clone(), pool),
            exceptions: Stored::new(),
            defined: watch::Sender::new(()),
            client,
            runtime: Handle::current(),
            namespaces: collection("namespaces"),
            definitions: collection("customresourcedefinitions"),
            policies: collection("validatingadmissionpolicies"),
            bindings: collection("validatingadmissionpolicybindings"),
            mutating_policies: collection("mutatingadmissionpolicies"),
            mutating_bindings: collection("mutatingadmissionpolicybindings"),
            changed: Arc::new(Notify::new()),
        };
        (Arc::new(cache), driver)
    }

    /// Watches the Namespaces until `shutdown`.
    pub async fn follow_namespaces(self: Arc<Self>, shutdown: CancellationToken) {
        self.followed::<Namespace>(&self.namespaces, &Arc::default()).run(shutdown).await;
    }

    /// Watches the CRDs, for the versions of custom resources, until `shutdown`.
    pub async fn follow_definitions(self: Arc<Self>, shutdown: CancellationToken) {
        let told = Arc::new(Notify::new());
        let telling = async {
            loop {
                told.notified().await;
                self.changed.notify_one();
                self.defined.send_replace(());
            }
        };
        let following = self.followed::<CustomResourceDefinition>(&self.definitions, &told);
        tokio::select! {
            () = following.run(shutdown) => {}
            () = telling => {}
        }
    }

    /// Watches policies and bindings until `shutdown`. Mutating policies are watched in the version that the cluster
    /// serves, if any: v1 exists since Kubernetes 1.36.
    pub async fn follow_policies(self: Arc<Self>, shutdown: CancellationToken) {
        let policies = self.followed::<ValidatingAdmissionPolicy>(&self.policies, &self.changed);
        let bindings = self.followed::<ValidatingAdmissionPolicyBinding>(&self.bindings, &self.changed);
        let mutating = vec![
            self.followed::<MutatingAdmissionPolicy>(&self.mutating_policies, &self.changed),
            self.followed::<v1beta1::MutatingAdmissionPolicy>(&self.mutating_policies, &self.changed),
        ];
        let mutating_bindings = vec![
            self.followed::<MutatingAdmissionPolicyBinding>(&self.mutating_bindings, &self.changed),
            self.followed::<v1beta1::MutatingAdmissionPolicyBinding>(&self.mutating_bindings, &self.changed),
        ];
        tokio::join!(
            policies.run(shutdown.clone()),
            bindings.run(shutdown.clone()),
            Followed::run_if_served(mutating, self.defined.subscribe(), shutdown.clone()),
            Followed::run_if_served(mutating_bindings, self.defined.subscribe(), shutdown),
        );
    }

    /// Watches exceptions until `shutdown`, as soon as the cluster serves them; before this call there are none.
    pub async fn follow_exceptions(self: Arc<Self>, shutdown: CancellationToken) {
        self.exceptions.follow(&self.client, &self.defined, shutdown).await;
    }

    /// Returns how many exceptions there are at `now`.
    #[must_use]
    pub fn exception_counts(&self, now: SystemTime) -> ExceptionCounts {
        self.exceptions.counts(now)
    }

    /// Returns when policies or bindings may have changed, or new param kinds may be served.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Returns the stored policies and bindings.
    ///
    /// # Errors
    /// When they were not listed yet, or their watch has been broken for too long.
    pub fn policy_documents(&self) -> Result<Vec<Arc<Value>>, HostError> {
        let mut documents = Vec::new();
        for collection in self.of_policies() {
            documents.extend(collection.all()?);
        }
        Ok(documents)
    }

    /// Watches the params of `kinds`, and no others any more; returns when they are listed, or after a time limit.
    pub async fn want_params(&self, kinds: impl IntoIterator<Item = GroupVersionKind>) {
        self.params.want(kinds).await;
    }

    /// Returns why the watched data are not reliable, if so. Policies and exceptions count only if they are `wanted`.
    #[must_use]
    pub fn trouble(&self, wanted: Wanted) -> Option<HostError> {
        let always = [&self.namespaces, &self.definitions];
        let of_policies = self.of_policies().into_iter().filter(|_| wanted.policies);
        let trouble = always.into_iter().chain(of_policies).find_map(|collection| collection.trouble());
        trouble.or_else(|| self.exceptions.trouble().filter(|_| wanted.exceptions))
    }

    fn of_policies(&self) -> [&Arc<Collection>; 4] {
        [&self.policies, &self.bindings, &self.mutating_policies, &self.mutating_bindings]
    }

    fn followed<K>(&self, into: &Arc<Collection>, changed: &Arc<Notify>) -> Followed
    where
        K: Resource<DynamicType = ()>,
    {
        let resource = ApiResource::erase::<K>(&());
        Followed {
            api: Api::all_with(self.client.clone(), &resource),
            resource,
            into: Arc::clone(into),
            changed: Arc::clone(changed),
        }
    }
}

impl Host for ClusterCache {
    fn namespace(&self, name: &str) -> Result<Option<Arc<Value>>, HostError> {
        self.namespaces.get("", name)
    }

    fn param_scope(&self, kind: &GroupVersionKind) -> Option<Scope> {
        self.params.scope(kind)
    }

    fn params(&self, kind: &GroupVersionKind, namespace: &str) -> Result<Vec<Arc<Value>>, HostError> {
        self.params.of(kind, namespace)
    }

    fn exceptions(&self) -> Result<Option<Arc<Exceptions>>, HostError> {
        self.exceptions.known()
    }

    fn equivalents(
        &self,
        resource: &GroupVersionResource,
        subresource: &str,
    ) -> Vec<(GroupVersionResource, GroupVersionKind)> {
        // Without CRDs there are no equivalents; readiness reports that they are missing.
        let definitions = self.definitions.all().unwrap_or_default();
        definitions::equivalents(&definitions, resource, subresource)
    }

    fn convert(&self, object: &Value, kind: &GroupVersionKind) -> Result<Value, HostError> {
        definitions::convert(&self.definitions.all()?, object, kind)
    }

    /// Sends an authorizer check. Blocks, as threads that decide may.
    fn authorize(&self, user: &UserInfo, attributes: &AccessAttributes) -> Result<Access, HostError> {
        let asking = access::review(self.client.clone(), user, attributes);
        // The timeout must be created in the runtime: on a thread outside of it, as deciding threads are, it would panic.
        let asked = self.runtime.block_on(async { timeout(ACCESS_TIMEOUT, asking).await });
        let late = || HostError("the cluster did not answer a question about access in time".to_owned());
        asked.unwrap_or_else(|_| Err(late()))
    }
}
