//! Answers subresources that are not stored: tokens of service accounts, bindings and evictions of pods, and what
//! only a pod's node can provide, its log and streams to its containers. This server has no nodes: logs come from
//! the program that runs pods beside it, and streams fail with the message of an API server that cannot find the node.

use std::net::IpAddr;

use admit_apimachinery::go;
use admit_apimachinery::pointer;
use axum::body::Body;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde_json::{Value, json};

use super::accept::Accepted;
use super::{Failure, Incoming, body, pod_log, presentation, respond};
use crate::call::{Call, Query, WriteOptions};
use crate::codec;
use crate::logs::{LogError, LogOptions};
use crate::object;
use crate::registry::belongs_to_path;
use crate::resources::{Asked as Holds, BINDING, EVICTION, Subresource, TOKEN_REQUEST};
use crate::server::Server;
use crate::status::Refusal;

/// Creates a Binding that is posted to its own resource: its name is that of the pod.
pub(super) async fn bind(
    server: &Server,
    call: &Call,
    incoming: Incoming,
    accepted: &Accepted,
) -> Result<Response, Failure> {
    let served = server.registry().served();
    let pods = served.table.find("", "v1", "pods").ok_or_else(Refusal::unknown_path)?;
    let about = call.about(pods, &call.namespace).on(Some(Subresource::Binding));
    let (body, options) = incoming.posted(&call.info, accepted).await?;
    let received = codec::receive(&call.info, None, &body)?;
    let mut binding = body::known(call, BINDING, &options, &body, received)?;
    belongs_to_path(call, &mut binding)?;
    // Here the pod is identified by name only.
    object::set_meta(&mut binding, "uid", None);
    let name = object::name(&binding).to_owned();
    let done = server.registry().bind((&about, call), &name, &binding, &options).await?;
    Ok(respond::document(201, &done, accepted))
}

/// An object that is posted to a subresource to have an action done, and its options.
struct Posted {
    object: Value,
    options: WriteOptions,
}

impl Posted {
    async fn read(
        call: &Call,
        kind: (&'static str, &'static str, &'static str),
        incoming: Incoming,
        accepted: &Accepted,
    ) -> Result<Self, Failure> {
        let (body, options) = incoming.posted(&call.info, accepted).await?;
        let received = codec::receive_kind(&call.info, kind, &body)?;
        let mut object = body::known(call, kind, &options, &body, received)?;
        belongs_to_path(call, &mut object)?;
        Ok(Self { object, options })
    }
}

pub(super) struct Asked<'a> {
    pub(super) server: &'a Server,
    pub(super) call: &'a Call,
    pub(super) name: &'a str,
    pub(super) query: &'a Query,
    /// The rest of the path after the subresource.
    pub(super) rest: Option<&'a str>,
}

impl Asked<'_> {
    pub(super) async fn answer(
        self,
        subresource: Subresource,
        incoming: Incoming,
        accepted: &Accepted,
    ) -> Result<Response, Failure> {
        match (subresource, &incoming.method) {
            (Subresource::Token, &Method::POST) => self.token(incoming, accepted).await,
            (Subresource::Log, &Method::GET) => {
                accepted.check()?;
                Ok(self.log()?)
            }
            (Subresource::Binding, &Method::POST) => {
                let Posted { object, options } = Posted::read(self.call, BINDING, incoming, accepted).await?;
                let done =
                    self.server.registry().bind((self.call, self.call), self.name, &object, &options).await?;
                Ok(respond::document(201, &done, accepted))
            }
            (Subresource::Eviction, &Method::POST) => {
                let Posted { object, options } =
                    Posted::read(self.call, EVICTION, incoming, accepted).await?;
                let done = self.server.registry().evict(self.call, self.name, object, &options).await?;
                Ok(respond::document(201, &done, accepted))
            }
            (Subresource::Proxy, _) => {
                self.admitted(subresource).await?;
                Err(self.proxy()?.into())
            }
            (
                Subresource::Exec | Subresource::Attach | Subresource::PortForward,
                &Method::GET | &Method::POST,
            ) => {
                self.admitted(subresource).await?;
                let upgrades = is_upgrade(&incoming.headers);
                Err(self.stream(subresource, upgrades)?.into())
            }
            _ => Err(Refusal::method_not_allowed().into()),
        }
    }

    async fn token(self, incoming: Incoming, accepted: &Accepted) -> Result<Response, Failure> {
        let Posted { object, options } = Posted::read(self.call, TOKEN_REQUEST, incoming, accepted).await?;
        let (registry, issuer) = (self.server.registry(), self.server.issuer());
        let request = registry.issue_token(self.call, self.name, object, &options, issuer).await?;
        Ok(presentation::shown_as(self.call, self.query, accepted, (201, &request))?)
    }

    /// Returns the refusal of a proxy request: nothing is forwarded to pods, services or nodes.
    fn proxy(&self) -> Result<Refusal, Refusal> {
        let (registry, info) = (self.server.registry(), &self.call.info);
        let Some(name) = proxied(self.name) else {
            let why = format!("invalid {} request {}", info.singular, go::quote(self.name));
            return Err(Refusal::bad_request(why));
        };
        let object = registry.get_builtin(self.call, name)?;
        if info.plural == "nodes" && pointer::items(&object, "/status/addresses").is_empty() {
            return Err(Refusal::unclassified("no preferred addresses found; known addresses: []"));
        }
        // As upstream, loopback addresses and missing ones are not allowed.
        let address = match info.plural.as_str() {
            "pods" => Some(pointer::text(&object, "/status/podIP")),
            "nodes" => Some(pointer::text(&object, "/status/addresses/0/address")),
            _ => None,
        };
        let is_near = |text: &str| text.parse::<IpAddr>().is_ok_and(|own| own.is_loopback());
        if address.is_some_and(|text| text.is_empty() || is_near(text)) {
            return Err(Refusal::bad_request("address not allowed"));
        }
        let served = registry.served();
        let endpoints = served.table.find("", "v1", "endpoints").filter(|_| address.is_none());
        if let Some(endpoints) = endpoints {
            let call = self.call.about(endpoints, &self.call.namespace);
            registry.get_builtin(&call, name).map_err(|_| Refusal::not_found(info, name))?;
        }
        Ok(Refusal::unavailable("this server cannot reach what is behind the object"))
    }

    fn log(&self) -> Result<Response, Refusal> {
        let options = pod_log::options(self.query, self.name, self.server.clock().now())?;
        let pod = self.server.registry().get_builtin(self.call, self.name)?;
        let container = self.container(&pod)?;
        let body = match self.server.pod_logs() {
            // A pod without a node has no log yet.
            _ if node_of(&pod).is_empty() => Body::empty(),
            Some(logs) => match logs.open(&pod, LogOptions { container, ..options }) {
                Ok(log) => Body::from_stream(log),
                Err(LogError::Refused(why)) => return Err(Refusal::bad_request(why)),
                Err(LogError::OtherNode) => return Err(self.unreachable(node_of(&pod))),
            },
            None => return Err(self.unreachable(node_of(&pod))),
        };
        let mut response = Response::new(body);
        if node_of(&pod).is_empty() {
            *response.status_mut() = StatusCode::NO_CONTENT;
            return Ok(response);
        }
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        Ok(response)
    }

    /// Runs admission for the stream, whose options come from the query.
    async fn admitted(&self, subresource: Subresource) -> Result<(), Refusal> {
        let Some((_, _, kind)) = subresource.own_kind(&self.call.info) else { return Ok(()) };
        let mut asked = json!({"kind": kind, "apiVersion": "v1"});
        if let Some(rest) = self.rest {
            asked["path"] = format!("/{rest}").into();
        }
        for (name, holds) in subresource.asked() {
            let value: Option<Value> = match holds {
                Holds::Flag => self.query.flag(name).filter(|is_set| *is_set).map(Value::from),
                Holds::Text => self.query.get(name).map(Value::from),
                Holds::Texts => Some(self.query.all(name)).filter(|all| !all.is_empty()).map(Value::from),
                Holds::Numbers => {
                    let all =
                        self.query.all(name).into_iter().map(number).collect::<Result<Vec<i32>, _>>()?;
                    Some(all).filter(|all| !all.is_empty()).map(Value::from)
                }
            };
            if let Some(value) = value {
                asked[*name] = value;
            }
        }
        self.server.registry().connect(self.call, self.name, &asked).await
    }

    /// Returns the refusal of a stream.
    fn stream(&self, subresource: Subresource, upgrades: bool) -> Result<Refusal, Refusal> {
        let pod = self.server.registry().get_builtin(self.call, self.name)?;
        if subresource != Subresource::PortForward {
            self.container(&pod)?;
        }
        Ok(match node_of(&pod) {
            "" => Refusal::bad_request(format!("pod {} does not have a host assigned", self.name)),
            node => match self.unreachable(node) {
                // A node that is found would need an upgraded connection, which this request is not.
                refusal if refusal.code() == 501 && !upgrades => {
                    Refusal::bad_request("Upgrade request required")
                }
                refusal => refusal,
            },
        })
    }

    fn unreachable(&self, node: &str) -> Refusal {
        let served = self.server.registry().served();
        let exists = served
            .table
            .find("", "v1", "nodes")
            .is_some_and(|info| self.server.registry().get_builtin(&self.call.about(info, ""), node).is_ok());
        if exists {
            return Refusal::not_implemented(format!(
                "this server cannot reach the kubelet of node {}",
                go::quote(node)
            ));
        }
        Refusal::not_found(&self.call.info, node)
    }

    /// Returns the requested container, which must exist, and must be named if the pod has several.
    fn container(&self, pod: &Value) -> Result<String, Refusal> {
        let names = |pointer: &str| -> Vec<String> {
            let containers = pointer::items(pod, pointer).iter();
            containers.filter_map(|container| container["name"].as_str()).map(str::to_owned).collect()
        };
        let own = names("/spec/containers");
        let all = [names("/spec/initContainers"), own.clone(), names("/spec/ephemeralContainers")].concat();
        let pod = object::name(pod);
        match self.query.text("container").as_str() {
            "" if own.len() == 1 => Ok(own.into_iter().next().unwrap_or_default()),
            "" => Err(Refusal::bad_request(format!(
                "a container name must be specified for pod {pod}, choose one of: [{}]",
                all.join(" ")
            ))),
            container if all.iter().any(|name| name == container) => Ok(container.to_owned()),
            container => {
                Err(Refusal::bad_request(format!("container {container} is not valid for pod {pod}")))
            }
        }
    }
}

/// Returns the name in `name`, `name:port` or `scheme:name:port`; None if the text has another form.
fn proxied(text: &str) -> Option<&str> {
    let parts: Vec<&str> = text.split(':').collect();
    let name = match parts.as_slice() {
        [name] | [name, _] | ["" | "http" | "https", name, _] => *name,
        _ => return None,
    };
    (!name.is_empty()).then_some(name)
}

fn node_of(pod: &Value) -> &str {
    pointer::text(pod, "/spec/nodeName")
}

fn is_upgrade(headers: &HeaderMap) -> bool {
    let mut texts = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    texts.any(|text| text.to_ascii_lowercase().contains("upgrade"))
}

/// Parses a port like Go's `ParseInt(text, 10, 32)`, with Go's error.
fn number(text: &str) -> Result<i32, Refusal> {
    text.parse().map_err(|_| {
        Refusal::bad_request(format!("strconv.ParseInt: parsing {}: invalid syntax", go::quote(text)))
    })
}
