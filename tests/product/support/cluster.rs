//! An API server that breaks on request. It stores, lists, watches and fences by resourceVersion like the real one,
//! knows no schema, and can cut watches, refuse a write or hold a read: faults that a healthy server cannot be asked
//! for. What needs schema, admission or tables is tested against the embedded server instead.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use admit::controllers::kit::clock::Clock;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::watch;

pub(crate) const DATAGATHERS: &str = "/apis/insights.openshift.io/v1alpha1/datagathers";
/// No wait of a test lasts longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

#[derive(Clone)]
pub(crate) struct FakeCluster {
    state: Arc<Mutex<State>>,
    /// Revision of the newest write; waiting tests and watches follow it.
    revision: Arc<watch::Sender<u64>>,
    /// Counts cuts; a watch ends when it changes.
    cuts: Arc<watch::Sender<u64>>,
    /// Counts requests.
    asked: Arc<watch::Sender<u64>>,
    /// When objects are created.
    clock: Clock,
    held: Arc<watch::Sender<BTreeSet<String>>>,
}

#[derive(Default)]
struct State {
    collections: BTreeSet<String>,
    objects: BTreeMap<String, Value>,
    log: Vec<(u64, String, &'static str, Value)>,
    refusals: Vec<(Method, String, u16)>,
    requests: Vec<(Method, String)>,
    uids: u64,
}

impl FakeCluster {
    /// A cluster that serves `collections` besides what data gathering always needs.
    pub(crate) fn new(collections: &[&str]) -> Self {
        let always =
            [DATAGATHERS, EVENTS, NAMESPACES, "/api/v1/pods", "/api/v1/namespaces/kube-system/configmaps"];
        let served = always.iter().chain(collections).map(|path| (*path).to_owned()).collect();
        let cluster = Self {
            state: Arc::new(Mutex::new(State { collections: served, ..State::default() })),
            revision: Arc::new(watch::Sender::new(1)),
            cuts: Arc::default(),
            asked: Arc::default(),
            clock: Clock::new(|| CREATED.parse().unwrap()),
            held: Arc::default(),
        };
        cluster.put(NAMESPACES, json!({"metadata": {"name": "kube-system"}}));
        cluster
    }

    /// The same cluster, by another clock than one that stands still.
    pub(crate) fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// The same cluster before the definition behind `collection` has come.
    pub(crate) fn without(self, collection: &str) -> Self {
        self.lock().collections.remove(collection);
        self
    }

    /// Serves `collection` from now on.
    pub(crate) fn define(&self, collection: &str) {
        self.lock().collections.insert(collection.to_owned());
    }

    pub(crate) fn client(&self) -> Client {
        let cluster = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let cluster = cluster.clone();
            async move { Ok::<_, Infallible>(cluster.answer(request).await) }
        });
        Client::new(service, "default")
    }

    /// Serves it over plain HTTP, for processes of their own, as long as the test's runtime lives; a kubeconfig for it.
    pub(crate) async fn serve(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let cluster = self.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let cluster = cluster.clone();
                let service = hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
                    let cluster = cluster.clone();
                    async move {
                        let (head, body) = request.into_parts();
                        let body = body.collect().await.unwrap().to_bytes().to_vec();
                        Ok::<_, Infallible>(cluster.answer(Request::from_parts(head, Body::from(body))).await)
                    }
                });
                let stream = hyper_util::rt::TokioIo::new(stream);
                tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(stream, service));
            }
        });
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": server}}], "users": [{"name": "u", "user": {}}],
        })
        .to_string()
    }

    /// Stores an object as a client's create would, but keeps a time of creation.
    pub(crate) fn put(&self, collection: &str, mut object: Value) -> Value {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let mut state = self.lock();
        state.uids += 1;
        object["metadata"]["uid"] = json!(format!("uid-{}", state.uids));
        if object["metadata"]["creationTimestamp"].is_null() {
            object["metadata"]["creationTimestamp"] = json!(self.clock.now().strftime("%FT%TZ").to_string());
        }
        self.store(&mut state, collection, &name, "ADDED", object)
    }

    /// Changes an object as another client's update would.
    pub(crate) fn change(&self, collection: &str, name: &str, edit: impl FnOnce(&mut Value)) {
        let mut state = self.lock();
        let mut object = state.objects.get(&format!("{collection}/{name}")).unwrap().clone();
        edit(&mut object);
        self.store(&mut state, collection, name, "MODIFIED", object);
    }

    pub(crate) fn delete(&self, collection: &str, name: &str) {
        let mut state = self.lock();
        let object = state.objects.get(&format!("{collection}/{name}")).unwrap().clone();
        self.store(&mut state, collection, name, "DELETED", object);
    }

    pub(crate) fn get(&self, collection: &str, name: &str) -> Value {
        self.lock().objects.get(&format!("{collection}/{name}")).cloned().unwrap_or_default()
    }

    pub(crate) fn all(&self, collection: &str) -> Vec<Value> {
        let prefix = format!("{collection}/");
        let state = self.lock();
        state.objects.iter().filter(|(path, _)| path.starts_with(&prefix)).map(|(_, o)| o.clone()).collect()
    }

    /// Waits until the object satisfies `wanted`.
    pub(crate) async fn until(&self, collection: &str, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let found = self.until_found(|| Some(self.get(collection, name)).filter(&wanted)).await;
        found.unwrap_or_else(|| panic!("gave up waiting: {:#}", self.get(collection, name)))
    }

    /// Waits until `look` finds something in what is stored; none if it never does.
    pub(crate) async fn until_found<T>(&self, look: impl Fn() -> Option<T>) -> Option<T> {
        until_some(self.revision.subscribe(), look).await
    }

    /// Waits until so many such requests were seen.
    pub(crate) async fn until_asked(&self, method: &Method, path: &str, count: usize) {
        let enough = || (self.count(method, path) >= count).then_some(());
        let seen = until_some(self.asked.subscribe(), enough).await;
        seen.unwrap_or_else(|| panic!("{method} {path}: {} of {count}", self.count(method, path)));
    }

    /// Ends all watches, as a proxy or a restarting server would.
    pub(crate) fn cut_watches(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Answers the next `method` on `path` with `code`.
    pub(crate) fn refuse_once(&self, method: Method, path: &str, code: u16) {
        self.lock().refusals.push((method, path.to_owned(), code));
    }

    /// Lets requests for `path` wait until [`Self::release`].
    pub(crate) fn hold(&self, path: &str) {
        self.held.send_modify(|held| {
            held.insert(path.to_owned());
        });
    }

    pub(crate) fn release(&self, path: &str) {
        self.held.send_modify(|held| {
            held.remove(path);
        });
    }

    /// Requests seen so far.
    pub(crate) fn count(&self, method: &Method, path: &str) -> usize {
        self.lock().requests.iter().filter(|(m, p)| m == method && p == path).count()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn store(
        &self,
        state: &mut State,
        collection: &str,
        name: &str,
        kind: &'static str,
        mut object: Value,
    ) -> Value {
        let revision = *self.revision.borrow() + 1;
        object["metadata"]["resourceVersion"] = json!(revision.to_string());
        let path = format!("{collection}/{name}");
        if kind == "DELETED" {
            state.objects.remove(&path);
        } else {
            state.objects.insert(path, object.clone());
        }
        state.log.push((revision, collection.to_owned(), kind, object.clone()));
        self.revision.send_replace(revision);
        object
    }

    async fn answer(&self, request: Request<Body>) -> Answer {
        let (head, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let path = head.uri.path().trim_end_matches('/').to_owned();
        let query = head.uri.query().unwrap_or_default().to_owned();
        self.lock().requests.push((head.method.clone(), path.clone()));
        self.asked.send_modify(|asked| *asked += 1);
        let mut held = self.held.subscribe();
        held.wait_for(|held| !held.contains(&path)).await.unwrap();
        let refusal = {
            let mut state = self.lock();
            let at = state
                .refusals
                .iter()
                .position(|(method, refused, _)| *method == head.method && *refused == path);
            at.map(|at| state.refusals.remove(at).2)
        };
        if let Some(code) = refusal {
            return failure(code, "Injected");
        }
        if path == "/version" {
            return ok(
                &json!({"major": "1", "minor": "36", "gitVersion": "v1.36.2", "gitCommit": "", "gitTreeState": "",
                "buildDate": "", "goVersion": "", "compiler": "", "platform": ""}),
            );
        }
        if let Some(resources) = self.discovered(&path) {
            return ok(
                &json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "", "resources": resources}),
            );
        }
        let served = self.lock().collections.contains(&path);
        match (head.method, served) {
            (Method::GET, true) if query.contains("watch=true") => self.watch(&path, &query),
            (Method::GET, true) => self.list(&path, &query),
            (Method::POST, true) => self.create(&path, serde_json::from_slice(&body).unwrap()),
            (method, _) => self.one(&method, &path, &body),
        }
    }

    /// What is served of an API group, where `path` is that of one.
    fn discovered(&self, path: &str) -> Option<Vec<Value>> {
        let inside = format!("{path}/");
        let collections = self.lock().collections.clone();
        // `/api/v1/namespaces` looks like a group, and has collections below it.
        if collections.contains(path) {
            return None;
        }
        let below =
            collections.iter().filter(|own| path.matches('/').count() == 3 && own.starts_with(&inside));
        let plurals = below.filter_map(|own| own.rsplit('/').next());
        let resource = |plural: &str| json!({"name": plural, "singularName": "", "namespaced": false, "kind": "", "verbs": []});
        let served: Vec<_> = plurals.map(resource).collect();
        Some(served).filter(|served| !served.is_empty())
    }

    /// A selector may name one label, with any value or with one.
    fn list(&self, collection: &str, query: &str) -> Answer {
        let selector = query.split('&').find_map(|pair| pair.strip_prefix("labelSelector="));
        let selector = selector.map(|text| text.replace("%2F", "/").replace("%3D", "="));
        let label =
            selector.as_deref().map(|text| text.split_once('=').map_or((text, None), |(k, v)| (k, Some(v))));
        let selected = |object: &Value| {
            label.is_none_or(|(label, wanted)| {
                let value = object["metadata"]["labels"][label].as_str();
                value.is_some_and(|value| wanted.is_none_or(|wanted| wanted == value))
            })
        };
        let items: Vec<_> = self.all(collection).into_iter().filter(selected).collect();
        let revision = self.revision.borrow().to_string();
        ok(
            &json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": revision}, "items": items}),
        )
    }

    fn create(&self, collection: &str, mut object: Value) -> Answer {
        if let Some(prefix) = object["metadata"]["generateName"].as_str() {
            object["metadata"]["name"] = json!(format!("{prefix}{}", self.lock().uids));
        }
        let name = object["metadata"]["name"].as_str().unwrap();
        if self.get(collection, name) != Value::Null {
            return failure(409, "AlreadyExists");
        }
        created(&self.put(collection, object))
    }

    fn one(&self, method: &Method, path: &str, body: &[u8]) -> Answer {
        let path = path.strip_suffix("/status").unwrap_or(path);
        let (collection, name) = path.rsplit_once('/').unwrap();
        let mut state = self.lock();
        if !state.collections.contains(collection) {
            let page = Full::from("404 page not found\n").boxed_unsync();
            return respond(StatusCode::NOT_FOUND, page);
        }
        let Some(old) = state.objects.get(path).cloned() else { return failure(404, "NotFound") };
        let wanted = match *method {
            Method::GET => return ok(&old),
            Method::DELETE => {
                return ok(&self.store(&mut state, collection, name, "DELETED", old));
            }
            Method::PUT => serde_json::from_slice(body).unwrap(),
            Method::PATCH => {
                let mut merged = old.clone();
                json_patch::merge(&mut merged, &serde_json::from_slice(body).unwrap());
                merged
            }
            _ => return failure(405, "MethodNotAllowed"),
        };
        if wanted["metadata"]["resourceVersion"] != old["metadata"]["resourceVersion"] {
            return failure(409, "Conflict");
        }
        ok(&self.store(&mut state, collection, name, "MODIFIED", wanted))
    }

    fn watch(&self, collection: &str, query: &str) -> Answer {
        let from = query.split('&').find_map(|pair| pair.strip_prefix("resourceVersion=")).unwrap();
        let (cluster, collection) = (self.clone(), collection.to_owned());
        let (revision, cuts) = (self.revision.subscribe(), self.cuts.subscribe());
        let events = stream::unfold(from.parse::<u64>().unwrap(), move |seen| {
            let (cluster, collection) = (cluster.clone(), collection.clone());
            let (mut revision, mut cuts) = (revision.clone(), cuts.clone());
            let next: BoxFuture<'static, _> = Box::pin(async move {
                loop {
                    revision.borrow_and_update();
                    let next = cluster
                        .lock()
                        .log
                        .iter()
                        .find(|(at, of, ..)| *at > seen && *of == collection)
                        .cloned();
                    if let Some((at, _, kind, object)) = next {
                        let line = format!("{}\n", json!({"type": kind, "object": object}));
                        return Some((Ok(Frame::data(Bytes::from(line))), at));
                    }
                    tokio::select! {
                        changed = revision.changed() => changed.unwrap(),
                        _ = cuts.changed() => return None,
                    }
                }
            });
            next
        });
        respond(StatusCode::OK, StreamBody::new(events).boxed_unsync())
    }
}

/// Looks whenever `changes` tells of one; none when patience ends.
async fn until_some<T>(mut changes: watch::Receiver<u64>, look: impl Fn() -> Option<T>) -> Option<T> {
    let found = tokio::time::timeout(PATIENCE, async {
        loop {
            changes.borrow_and_update();
            if let Some(found) = look() {
                return found;
            }
            changes.changed().await.unwrap();
        }
    });
    found.await.ok()
}

const CREATED: &str = "2026-11-21T10:00:00Z";
pub(crate) const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
const NAMESPACES: &str = "/api/v1/namespaces";

fn ok(value: &Value) -> Answer {
    respond(StatusCode::OK, Full::from(value.to_string()).boxed_unsync())
}

fn created(value: &Value) -> Answer {
    respond(StatusCode::CREATED, Full::from(value.to_string()).boxed_unsync())
}

fn failure(code: u16, reason: &str) -> Answer {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": reason, "reason": reason, "code": code});
    respond(StatusCode::from_u16(code).unwrap(), Full::from(status.to_string()).boxed_unsync())
}

fn respond(status: StatusCode, body: UnsyncBoxBody<Bytes, Infallible>) -> Answer {
    Response::builder().status(status).body(body).unwrap()
}
