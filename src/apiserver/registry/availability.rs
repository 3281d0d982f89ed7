//! Writes whether the servers of APIServices are available, as the aggregator of kube-apiserver does: those of this server always are;
//! others if their Service exists and has endpoints, and a server there says what it serves.
//!
//! An APIService is looked at when it changes; one whose version is delegated also when Services or EndpointSlices change, and from
//! time to time. Read from kube-aggregator's controllers/status of 1.36.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use admit_apimachinery::go;
use admit_apimachinery::pointer::{items, text};
use admit_policy::webhook::{Client, Service};
use axum::body::Body;
use futures::{StreamExt as _, stream};
use http::Request;
use http_body_util::{BodyExt as _, Limited};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::Registry;
use super::api_services::MANAGED;
use crate::aggregation::Delegated;
use crate::call::{Call, WriteOptions};
use crate::callout::{self, Backend, NotSent};
use crate::identity::{Identity, MASTERS};
use crate::object;
use crate::objects::Objects as _;
use crate::resources::Subresource;
use crate::store::{Key, Subscription};

const AVAILABLE: &str = "Available";
/// As whom servers are asked what they serve.
const USER: &str = "system:kube-aggregator";
/// How often delegated versions are looked at without a change.
const RESYNC: Duration = Duration::from_secs(30);
/// How soon after a failure.
const SOON: Duration = Duration::from_secs(2);
/// How many are looked at at a time.
const AT_ONCE: usize = 16;
/// The largest list of resources that is read.
const MOST: usize = 4 << 20;
/// The kinds whose changes matter.
const WATCHED: [(&str, &str); 3] =
    [("apiregistration.k8s.io", "apiservices"), ("", "services"), ("discovery.k8s.io", "endpointslices")];

/// Why a server does not say what it serves, in the words of the aggregator.
#[derive(Debug, thiserror::Error)]
enum Unanswered {
    #[error("{0}")]
    Unresolved(#[from] NotSent),
    #[error("failing or missing response from {url}: Get {}: {why}", go::quote(.url))]
    NotSent { url: String, why: NotSent },
    #[error("failing or missing response from {url}: bad status from {url}: {code}")]
    Status { url: String, code: u16 },
    #[error("timed out waiting for {url}")]
    Late { url: String },
}

/// What was found of an APIService.
struct Found {
    status: &'static str,
    reason: &'static str,
    message: String,
}

impl Found {
    fn available(reason: &'static str, message: &str) -> Self {
        Self { status: "True", reason, message: message.to_owned() }
    }

    fn unavailable(reason: &'static str, message: String) -> Self {
        Self { status: "False", reason, message }
    }
}

impl Registry {
    /// Writes conditions until the future is dropped.
    pub(crate) async fn keep_availability(&self) {
        loop {
            let Some([mut services, mut others @ ..]) = self.watched() else {
                sleep(SOON).await;
                continue;
            };
            let mut names: BTreeSet<String> = self.api_service_names();
            loop {
                let left = self.look_at(names).await;
                let delegated = self.aggregation.names();
                let pause = match (left.is_empty(), delegated.is_empty()) {
                    (false, _) => Some(SOON),
                    (true, false) => Some(RESYNC),
                    (true, true) => None,
                };
                let rest = async {
                    match pause {
                        Some(pause) => sleep(pause).await,
                        None => std::future::pending().await,
                    }
                };
                let [endpoints, backends] = &mut others;
                let elsewhere = async {
                    if delegated.is_empty() {
                        std::future::pending::<()>().await;
                    }
                    tokio::select! {
                        () = endpoints.changed() => {}
                        () = backends.changed() => {}
                    }
                };
                tokio::select! {
                    () = services.changed() => names = left,
                    () = elsewhere => names = left.into_iter().chain(delegated).collect(),
                    () = rest => names = left.into_iter().chain(delegated).collect(),
                }
                // A watch has lost changes: it begins anew.
                let Ok(events) = services.drain() else { break };
                names.extend(events.iter().map(|event| object::name(&event.object.head()).to_owned()));
                if others.iter_mut().any(|other| other.drain().is_err()) {
                    break;
                }
            }
        }
    }

    fn watched(&self) -> Option<[Subscription; 3]> {
        let served = self.served();
        let watch = |(group, resource)| {
            let info = served.table.find(group, "v1", resource)?;
            self.store.watch(&info.storage_key, self.store.revision()).ok()
        };
        let [one, two, three] = WATCHED.map(watch);
        Some([one?, two?, three?])
    }

    /// Returns the names of the APIServices that are looked at first. Those that this server maintains have their condition from their
    /// creation, and are looked at when they change.
    fn api_service_names(&self) -> BTreeSet<String> {
        let served = self.served();
        let info = served.table.find(WATCHED[0].0, "v1", WATCHED[0].1);
        let kept = info.map(|info| self.stored_objects(&info.storage_key, None)).unwrap_or_default();
        let heads = kept.iter().map(|kept| kept.object.head());
        let of_others = heads.filter(|head| object::label(head, MANAGED).is_none());
        of_others.map(|head| object::name(&head).to_owned()).collect()
    }

    /// Looks at APIServices; returns the names of those that are to be looked at again soon.
    async fn look_at(&self, names: BTreeSet<String>) -> BTreeSet<String> {
        let look = async |name: String| {
            let settled = self.look_at_one(&name).await;
            (!settled).then_some(name)
        };
        let looks = stream::iter(names).map(look).buffer_unordered(AT_ONCE);
        looks.filter_map(std::future::ready).collect().await
    }

    /// Whether the APIService is available, or gone, and its condition is written.
    async fn look_at_one(&self, name: &str) -> bool {
        let served = self.served();
        let Some(info) = served.table.find(WATCHED[0].0, "v1", WATCHED[0].1) else { return true };
        let identity = Identity::new("system:apiserver", [MASTERS.to_owned()]);
        let call = Call { identity, ..self.own_call(info, "") }.admitted();
        let Some(stored) = self.store.latest(&call.key(name)) else {
            self.aggregation.set(name, None);
            return true;
        };
        let found = match self.aggregation.delegated(&stored.object) {
            None => {
                self.aggregation.set(name, None);
                Found::available("Local", "Local APIServices are always available")
            }
            Some(delegated) => self.ask(name, delegated).await,
        };
        let is_up = found.status == "True";
        self.tell(&call.on(Some(Subresource::Status)), &stored.object, &found).await && is_up
    }

    /// Asks the server of a delegated version what it serves, and notes the answer.
    async fn ask(&self, name: &str, mut delegated: Delegated) -> Found {
        let Client::Service(service) = delegated.callee.client.clone() else {
            return Found::unavailable("ServiceNotFound", String::new());
        };
        let found = match self.unready(&service) {
            Some(found) => found,
            None => match self.resources_of(&delegated).await {
                Ok(resources) => {
                    (delegated.is_available, delegated.resources) = (true, resources);
                    Found::available("Passed", "all checks passed")
                }
                Err(why) => Found::unavailable("FailedDiscoveryCheck", why.to_string()),
            },
        };
        self.aggregation.set(name, Some(delegated));
        found
    }

    /// Says why the Service cannot be called, if it cannot.
    fn unready(&self, Service { namespace, name, port, .. }: &Service) -> Option<Found> {
        let served = self.served();
        let info = served.table.find("", "v1", "services")?;
        let key = Key {
            resource: info.storage_key.as_str().into(),
            namespace: namespace.clone(),
            name: name.clone(),
        };
        let shown = format!("service/{name} in {}", go::quote(namespace));
        let Some(service) = self.store.latest(&key) else {
            return Some(Found::unavailable("ServiceNotFound", format!("{shown} is not present")));
        };
        if text(&service.object, "/spec/type") != "ClusterIP" {
            return None;
        }
        let listed = items(&service.object, "/spec/ports");
        let listed = listed.iter().find(|listed| listed.get("port").and_then(Value::as_i64) == Some(*port));
        let Some(listed) = listed else {
            let message = format!("{shown} is not listening on port {port}");
            return Some(Found::unavailable("ServicePortError", message));
        };
        let port_name = text(listed, "/name");
        let slices = self.slices_of(namespace, name);
        if slices.is_empty() {
            let message = format!("cannot find endpointslices for {shown}");
            return Some(Found::unavailable("EndpointsNotFound", message));
        }
        let is_ready = |slice: &Value| {
            let ready = |endpoint: &Value| endpoint.pointer("/conditions/ready") != Some(&Value::Bool(false));
            let has_port = |port: &Value| {
                text(port, "/name") == port_name && port.get("port").is_some_and(Value::is_number)
            };
            items(slice, "/endpoints").iter().any(ready) && items(slice, "/ports").iter().any(has_port)
        };
        (!slices.iter().any(|slice| is_ready(slice))).then(|| {
            let port_name = go::quote(port_name);
            let message = format!("endpointslices for {shown} have no addresses with port name {port_name}");
            Found::unavailable("MissingEndpoints", message)
        })
    }

    fn slices_of(&self, namespace: &str, service: &str) -> Vec<Arc<Value>> {
        let served = self.served();
        let mut slices = Vec::new();
        if let Some(info) = served.table.find("discovery.k8s.io", "v1", "endpointslices") {
            let listed = self.each_object(&info.storage_key, Some(namespace), &mut |kept| {
                if object::label(&kept.object.head(), callout::SERVICE_NAME) == Some(service) {
                    slices.push(kept.object.values());
                }
            });
            if let Err(error) = listed {
                tracing::error!(%error, "endpoint slices cannot be listed");
            }
        }
        slices
    }

    /// Returns the resources that a server says it serves.
    ///
    /// # Errors
    /// If it does not say so.
    async fn resources_of(&self, delegated: &Delegated) -> Result<Vec<Value>, Unanswered> {
        let backend = Backend::of(self, &delegated.callee)?;
        let (authority, path) = (backend.authority(), delegated.path());
        let url = format!("https://{authority}{path}");
        let mut request = Request::get(&path).header(http::header::HOST, &authority);
        if let Some(headers) = request.headers_mut() {
            let mut user = Identity::new(USER, [MASTERS.to_owned()]);
            user.groups.truncate(1);
            callout::introduce(&user, headers)?;
        }
        let not_sent = |why| Unanswered::NotSent { url: url.clone(), why };
        let request = request.body(Body::empty()).map_err(|error| not_sent(error.into()))?;
        let exchange = async {
            let (head, body) = backend.send(request).await.map_err(not_sent)?.into_parts();
            if !head.status.is_success() {
                return Err(Unanswered::Status { url: url.clone(), code: head.status.as_u16() });
            }
            let body = Limited::new(body, MOST).collect().await;
            Ok(body.map_err(|error| not_sent(NotSent::Answer(error)))?.to_bytes())
        };
        let body = timeout(delegated.callee.timeout, exchange).await;
        let body = body.unwrap_or_else(|_| Err(Unanswered::Late { url: url.clone() }))?;
        // A server that answers with something else is available all the same.
        let list: Value = serde_json::from_slice(&body).unwrap_or_default();
        Ok(items(&list, "/resources").to_vec())
    }

    /// Writes the condition unless it stands there; whether it does now.
    async fn tell(&self, call: &Call, api_service: &Value, found: &Found) -> bool {
        let Found { status, reason, message } = found;
        let conditions = items(api_service, "/status/conditions");
        let known = conditions.iter().find(|condition| text(condition, "/type") == AVAILABLE);
        let says = |field: &str, value: &str| known.is_some_and(|known| text(known, field) == value);
        if says("/status", status) && says("/reason", reason) && says("/message", message) {
            return true;
        }
        let since = match known {
            Some(known) if says("/status", status) => text(known, "/lastTransitionTime").to_owned(),
            _ => self.clock.stamp(),
        };
        let condition = json!({
            "type": AVAILABLE, "status": status, "lastTransitionTime": since, "reason": reason, "message": message
        });
        let others = conditions.iter().filter(|condition| text(condition, "/type") != AVAILABLE).cloned();
        let mut changed = api_service.clone();
        changed["status"]["conditions"] = others.chain([condition]).collect();
        let name = object::name(api_service).to_owned();
        let options = WriteOptions { kind: "UpdateOptions", ..WriteOptions::own() };
        match self.update(call, &name, changed, &options).await {
            Ok(_) => true,
            Err(error) => {
                tracing::debug!(%error, name, "the condition of an APIService is not written");
                // One that is gone, or was changed, is looked at again for that.
                ["NotFound", "Conflict"].contains(&error.reason())
            }
        }
    }
}
