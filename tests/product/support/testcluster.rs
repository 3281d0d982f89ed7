//! The embedded API server as admit is installed on it: the shipped definitions, policies and roles, and each controller under its
//! own account. Between a controller and the server stands a wire, on which everything goes wrong that a test asks for: requests
//! that overtake one another, watches that are cut, history that is compacted, and the death of the process at any of its writes.
//!
//! A crash point is a write of the process, by number and name, just before the server has it or just after, when nobody hears the
//! answer any more. Nothing of the product knows of them: none can be forgotten, and releases have none.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex};

use admit_apiserver::{Identity, PodLogs, Server};
use axum::body::Body;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::Method;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::runtime::conditions::is_crd_established;
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::cluster::PATIENCE;
use super::shipped::{create, documents, policies, rights_with_jobs};
use crate::soak::Random;

/// Where the manifests put everything that has a namespace.
pub(crate) const NAMESPACE: &str = "admit-system";
const DEFINITIONS: [&str; 5] =
    ["clusteroperators", "cyndipipelines", "datagathers", "mustgathers", "observabilityaddons"];
const SYSTEMS: [&str; 5] = ["clusteroperator", "cyndi", "datagather", "mustgather", "observability"];

pub(crate) struct TestCluster {
    /// Empties namespaces and takes along what is owned; ended with the value.
    _housekeeping: AbortOnDrop,
    server: Server,
    /// Of an administrator, with no wire in between.
    pub(crate) admin: Client,
}

struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl TestCluster {
    pub(crate) async fn new() -> Self {
        Self::with(documents("deploy/rbac.yaml")).await
    }

    /// As one installs it whose gatherings run as Jobs.
    pub(crate) async fn with_jobs() -> Self {
        Self::with(rights_with_jobs()).await
    }

    async fn with(rights: Vec<Value>) -> Self {
        let server = Server::builder().build().await.unwrap();
        let admin = Client::new(server.router(), "default");
        for name in [NAMESPACE, "openshift-config", "openshift-insights"] {
            create(&admin, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
                .await;
        }
        for plural in DEFINITIONS {
            define(&admin, &documents(&format!("deploy/crds/{plural}.yaml"))[0]).await;
        }
        for document in rights {
            create(&admin, &document).await;
        }
        for document in SYSTEMS.iter().flat_map(|system| policies(system)) {
            create(&admin, &document).await;
        }
        let keeping = server.clone();
        let keeping = tokio::spawn(async move { keeping.housekeeping().await });
        Self { _housekeeping: AbortOnDrop(keeping), server, admin }
    }

    /// Has the server serve a kind that is not shipped.
    pub(crate) async fn define(&self, definition: &Value) {
        define(&self.admin, definition).await;
    }

    /// Who has the logs of pods.
    pub(crate) fn set_pod_logs(&self, logs: Arc<dyn PodLogs>) {
        self.server.set_pod_logs(logs);
    }

    /// The server for an administrator, to be served on a port.
    pub(crate) fn router(&self) -> axum::Router {
        self.server.router()
    }

    /// A process that may do everything, on a wire of its own.
    pub(crate) fn process_of_admin(&self) -> Process {
        self.process_as(Identity::admin())
    }

    /// A process that acts as the service account, on a wire of its own.
    pub(crate) fn process(&self, account: &str) -> Process {
        self.process_in(NAMESPACE, account, |router| router)
    }

    /// As [`Self::process`] with an account of another namespace, and with `before` in front of the server.
    pub(crate) fn process_in(
        &self,
        namespace: &str,
        account: &str,
        before: impl FnOnce(axum::Router) -> axum::Router,
    ) -> Process {
        let user = format!("system:serviceaccount:{namespace}:{account}");
        let groups = ["system:serviceaccounts", "system:authenticated"].map(ToOwned::to_owned);
        self.process_behind(Identity::new(user, groups), before)
    }

    fn process_as(&self, identity: Identity) -> Process {
        self.process_behind(identity, |router| router)
    }

    fn process_behind(
        &self,
        identity: Identity,
        before: impl FnOnce(axum::Router) -> axum::Router,
    ) -> Process {
        let wire = Arc::new(Wire::default());
        let on = Arc::clone(&wire);
        let carry = from_fn(move |request: Request, next: Next| {
            let wire = Arc::clone(&on);
            async move { wire.carry(request, next).await }
        });
        let router = before(self.server.router()).layer(axum::Extension(identity)).layer(carry);
        Process { client: Client::new(router, "default"), wire }
    }

    /// The server to whoever comes as `identity`, for a listener of the test's own.
    pub(crate) fn router_as(&self, identity: Identity) -> axum::Router {
        self.server.router().layer(axum::Extension(identity))
    }

    /// Forgets what was before: watches that are behind have to begin with a list.
    pub(crate) fn compact(&self) {
        let store = self.server.store();
        store.compact(store.revision());
    }

    /// Objects of a kind whose definition is shipped or built in.
    pub(crate) fn objects(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::all_with(self.admin.clone(), &resource)
    }

    pub(crate) async fn create(&self, object: &Value) {
        create(&self.admin, object).await;
    }

    /// Waits until the object is gone.
    pub(crate) async fn gone(&self, objects: &Api<DynamicObject>, name: &str) {
        let gone = |object: Option<&DynamicObject>| object.is_none();
        match tokio::time::timeout(PATIENCE, await_condition(objects.clone(), name, gone)).await {
            Ok(gone) => drop(gone.unwrap()),
            Err(_) => panic!("it stays: {:#?}", objects.get(name).await),
        }
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

async fn define(admin: &Client, definition: &Value) {
    create(admin, definition).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(admin.clone());
    let name = definition["metadata"]["name"].as_str().unwrap();
    let established = await_condition(definitions, name, is_crd_established());
    tokio::time::timeout(PATIENCE, established).await.unwrap().unwrap();
}

/// A process of a controller, as far as the server sees it.
pub(crate) struct Process {
    pub(crate) client: Client,
    pub(crate) wire: Arc<Wire>,
}

impl Process {
    /// Does `work` until the process dies or `over` has come, and kills it then: nothing of it goes on. What `over` brought, if it did.
    pub(crate) async fn until_death<T>(
        &self,
        work: impl Future<Output = ()> + Send + 'static,
        over: impl Future<Output = T>,
    ) -> Option<T> {
        let task = tokio::spawn(work);
        let brought = tokio::select! {
            () = self.wire.died() => None,
            brought = over => Some(brought),
        };
        self.wire.kill();
        task.abort();
        // It was aborted, or has ended by itself.
        drop(task.await);
        brought
    }
}

/// When a process dies at a write.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Moment {
    /// The server never hears of it.
    Before,
    /// It is done, and the answer is lost.
    After,
}

#[derive(Default)]
pub(crate) struct Wire {
    state: Mutex<State>,
    dead: watch::Sender<bool>,
    cuts: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    /// The writes so far, by name.
    writes: Vec<String>,
    crash: Option<(usize, Moment)>,
    /// Puts requests in another order, the same in every run.
    order: Option<Random>,
    /// What the server itself refused by right, by rule or by policy.
    denied: Vec<String>,
    asked: BTreeSet<Asked>,
    /// What was asked for so far, but for watches.
    requests: Vec<String>,
}

/// What a role would have to allow.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Asked {
    pub(crate) verb: &'static str,
    pub(crate) group: String,
    /// With its subresource.
    pub(crate) resource: String,
    pub(crate) namespace: Option<String>,
    /// Also where a list or a watch selects one name.
    pub(crate) name: Option<String>,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").finish_non_exhaustive()
    }
}

impl Wire {
    /// Lets the process die at its write `number`, counted from 0.
    pub(crate) fn crash_at(&self, number: usize, moment: Moment) {
        self.state.lock().unwrap().crash = Some((number, moment));
    }

    /// Lets requests overtake one another as `seed` has it.
    pub(crate) fn shuffle(&self, seed: u64) {
        self.state.lock().unwrap().order = Some(Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1));
    }

    /// Returns when the process is dead.
    pub(crate) async fn died(&self) {
        self.dead.subscribe().wait_for(|dead| *dead).await.unwrap();
    }

    pub(crate) fn is_dead(&self) -> bool {
        *self.dead.borrow()
    }

    /// Nothing of the process reaches the server from now on, and no answer the process.
    pub(crate) fn kill(&self) {
        self.dead.send_replace(true);
    }

    /// Ends all watches, as a proxy or a restarting server would.
    pub(crate) fn cut_watches(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// The writes so far: what may be a crash point of the next process that does the same.
    pub(crate) fn writes(&self) -> Vec<String> {
        self.state.lock().unwrap().writes.clone()
    }

    /// What the process has asked for so far.
    pub(crate) fn asked(&self) -> BTreeSet<Asked> {
        self.state.lock().unwrap().asked.clone()
    }

    /// All requests so far, but for watches.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.state.lock().unwrap().requests.clone()
    }

    /// What the server refused by right, by rule or by policy.
    pub(crate) fn denied(&self) -> Vec<String> {
        self.state.lock().unwrap().denied.clone()
    }

    async fn carry(&self, request: Request, next: Next) -> Response {
        if self.is_dead() {
            return std::future::pending().await;
        }
        let turns = self.state.lock().unwrap().order.as_mut().map_or(0, |order| order.below(40));
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
        let name = format!("{} {}", request.method(), request.uri().path());
        let watching = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        {
            let mut state = self.state.lock().unwrap();
            state.asked.extend(asked(&request, watching));
            state.requests.extend((!watching).then(|| name.clone()));
        }
        let now = self.note(&name, &request);
        if now == Some(Moment::Before) {
            self.kill();
            return std::future::pending().await;
        }
        let response = next.run(request).await;
        if now == Some(Moment::After) {
            self.kill();
        }
        if self.is_dead() {
            return std::future::pending().await;
        }
        if matches!(response.status().as_u16(), 401 | 403 | 422) {
            self.state.lock().unwrap().denied.push(format!("{name}: {}", response.status()));
        }
        if watching { self.cut(response) } else { response }
    }

    /// Whether the process dies at this request.
    fn note(&self, name: &str, request: &Request) -> Option<Moment> {
        let mut state = self.state.lock().unwrap();
        if *request.method() == Method::GET {
            return None;
        }
        let number = state.writes.len();
        state.writes.push(name.to_owned());
        state.crash.filter(|(at, _)| *at == number).map(|(_, moment)| moment)
    }

    /// The answer to a watch, which ends with the next cut, and never tells anything to the dead.
    fn cut(&self, response: Response) -> Response {
        let (head, body) = response.into_parts();
        let (mut cuts, mut dead) = (self.cuts.subscribe(), self.dead.subscribe());
        let over = async move {
            let killed = async { drop(dead.wait_for(|dead| *dead).await) };
            tokio::select! {
                _ = cuts.changed() => return,
                () = killed => {}
            }
            std::future::pending::<()>().await;
        };
        let lines = body.into_data_stream().map(|part| Ok::<Bytes, Infallible>(part.unwrap_or_default()));
        Response::from_parts(head, Body::from_stream(stream::StreamExt::take_until(lines, Box::pin(over))))
    }
}

/// None where no role decides, as on discovery.
fn asked(request: &Request, watching: bool) -> Option<Asked> {
    let parts: Vec<&str> = request.uri().path().split('/').skip(1).collect();
    let (group, rest) = match parts.as_slice() {
        ["api", _version, rest @ ..] => ("", rest),
        ["apis", group, _version, rest @ ..] => (*group, rest),
        _ => return None,
    };
    let (namespace, rest) = match rest {
        ["namespaces", namespace, below @ ..] if !below.is_empty() => (Some((*namespace).to_owned()), below),
        rest => (None, rest),
    };
    let (resource, name) = match rest {
        [] => return None,
        [plural] => ((*plural).to_owned(), None),
        [plural, name] => ((*plural).to_owned(), Some((*name).to_owned())),
        [plural, name, subresource, ..] => (format!("{plural}/{subresource}"), Some((*name).to_owned())),
    };
    let verb = match *request.method() {
        Method::GET if watching => "watch",
        Method::GET if name.is_some() => "get",
        Method::GET => "list",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        _ => "delete",
    };
    Some(Asked {
        verb,
        group: group.to_owned(),
        resource,
        namespace,
        name: name.or_else(|| selected(request)),
    })
}

/// The one name that a list or a watch selects by field.
fn selected(request: &Request) -> Option<String> {
    let parameters = request.uri().query()?.split('&');
    let mut names = parameters.filter_map(|it| it.strip_prefix("fieldSelector=metadata.name%3D"));
    names.next().map(ToOwned::to_owned)
}
