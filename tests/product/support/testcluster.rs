//! The embedded API server as admit is installed on it: the shipped definitions, policies and roles, and each controller under its
//! own account, on a wire that notes what it is refused.

use std::sync::{Arc, Mutex};

use admit_apiserver::{Identity, Server};
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::runtime::conditions::is_crd_established;
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};

use super::cluster::PATIENCE;
use super::shipped::{create, documents, policies};

/// Where the manifests put everything that has a namespace.
pub(crate) const NAMESPACE: &str = "admit-system";
const DEFINITIONS: [&str; 4] = ["clusteroperators", "datagathers", "mustgathers", "observabilityaddons"];
const SYSTEMS: [&str; 4] = ["clusteroperator", "datagather", "mustgather", "observability"];

pub(crate) struct TestCluster {
    server: Server,
    /// Of an administrator, with no wire in between.
    pub(crate) admin: Client,
}

impl TestCluster {
    pub(crate) async fn new() -> Self {
        let server = Server::builder().build().await.unwrap();
        let admin = Client::new(server.router(), "default");
        for name in [NAMESPACE, "openshift-config", "openshift-insights"] {
            create(&admin, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
                .await;
        }
        for plural in DEFINITIONS {
            let definition = &documents(&format!("deploy/crds/{plural}.yaml"))[0];
            create(&admin, definition).await;
            let definitions: Api<CustomResourceDefinition> = Api::all(admin.clone());
            let name = definition["metadata"]["name"].as_str().unwrap();
            let established = await_condition(definitions, name, is_crd_established());
            tokio::time::timeout(PATIENCE, established).await.unwrap().unwrap();
        }
        for document in documents("deploy/rbac.yaml") {
            create(&admin, &document).await;
        }
        for document in SYSTEMS.iter().flat_map(|system| policies(system)) {
            create(&admin, &document).await;
        }
        Self { server, admin }
    }

    /// A process that acts as the service account, on a wire of its own.
    pub(crate) fn process(&self, account: &str) -> Process {
        let user = format!("system:serviceaccount:{NAMESPACE}:{account}");
        let groups = ["system:serviceaccounts", "system:authenticated"].map(ToOwned::to_owned);
        let wire = Arc::new(Wire::default());
        let on = Arc::clone(&wire);
        let carry = from_fn(move |request: Request, next: Next| {
            let wire = Arc::clone(&on);
            async move { wire.carry(request, next).await }
        });
        let router = self.server.router().layer(axum::Extension(Identity::new(user, groups))).layer(carry);
        Process { client: Client::new(router, "default"), wire }
    }

    /// Objects of a kind whose definition is shipped or built in.
    pub(crate) fn objects(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::all_with(self.admin.clone(), &resource)
    }

    pub(crate) async fn create(&self, object: &Value) {
        create(&self.admin, object).await;
    }

    /// Waits until the object is as wanted.
    pub(crate) async fn until(
        &self,
        objects: &Api<DynamicObject>,
        name: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        let so = |object: Option<&DynamicObject>| object.is_some_and(|object| wanted(&object.data));
        match tokio::time::timeout(PATIENCE, await_condition(objects.clone(), name, so)).await {
            Ok(found) => found.unwrap().unwrap().data,
            Err(_) => panic!("gave up waiting: {:#?}", objects.get(name).await),
        }
    }
}

/// A process of a controller, as far as the server sees it.
pub(crate) struct Process {
    pub(crate) client: Client,
    pub(crate) wire: Arc<Wire>,
}

#[derive(Debug, Default)]
pub(crate) struct Wire {
    denied: Mutex<Vec<String>>,
}

impl Wire {
    /// What the server refused by right, by rule or by policy.
    pub(crate) fn denied(&self) -> Vec<String> {
        self.denied.lock().unwrap().clone()
    }

    async fn carry(&self, request: Request, next: Next) -> Response {
        let name = format!("{} {}", request.method(), request.uri().path());
        let response = next.run(request).await;
        if matches!(response.status().as_u16(), 401 | 403 | 422) {
            self.denied.lock().unwrap().push(format!("{name}: {}", response.status()));
        }
        response
    }
}
