//! Resolves the Service that a webhook names to an address, from the stored Services and EndpointSlices.
//!
//! Cluster IPs are not forwarded here. A Service is therefore called at one of its ready endpoints, as kube-apiserver
//! does with `--enable-aggregator-routing`; and one of type ExternalName at its name, as without
//! that option. Endpoints are read from the store: this server runs no pods, and creates no endpoints from selectors.
//! The client makes the connection.

use admit_apimachinery::go;
use admit_apimachinery::pointer::{items, text};
use admit_policy::webhook::Service;
use serde_json::Value;
use thiserror::Error;

use crate::object;
use crate::objects::Objects;
use crate::store::{Kept, Key, Stored};

/// The label by which an EndpointSlice names its Service.
pub(crate) const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// The target of a connection: a name or an IP address, and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) host: String,
    pub(super) port: u16,
}

/// Says why a Service cannot be resolved, in the words of kube-apiserver.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum Unresolved {
    #[error("service {} not found", go::quote(.0))]
    Absent(String),
    #[error("no service port {port} found for service {}", go::quote(.service))]
    NoPort { service: String, port: i64 },
    #[error("unsupported service type {}", go::quote(.0))]
    Type(String),
    #[error("no endpoints available for service {}", go::quote(.0))]
    NoEndpoints(String),
}

/// Returns the address of the Service `wanted`. Of several endpoints the number `draw` selects one.
pub(super) fn locate(objects: &dyn Objects, wanted: &Service, draw: u64) -> Result<Place, Unresolved> {
    let Service { name, namespace, port, .. } = wanted;
    let Some(service) = stored(objects, namespace, name) else {
        return Err(Unresolved::Absent(name.clone()));
    };
    let spec = service.object.get("spec").unwrap_or(&Value::Null);
    let no_port = || Unresolved::NoPort { service: name.clone(), port: *port };
    match text(spec, "/type") {
        // The port is that of the webhook: such a Service need not list ports.
        "ExternalName" => {
            let port = u16::try_from(*port).map_err(|_| no_port())?;
            Ok(Place { host: text(spec, "/externalName").to_owned(), port })
        }
        "ClusterIP" | "NodePort" | "LoadBalancer" => {
            let is_wanted = |listed: &&Value| listed.get("port").and_then(Value::as_i64) == Some(*port);
            let listed = items(spec, "/ports").iter().find(is_wanted).ok_or_else(no_port)?;
            let family = items(spec, "/ipFamilies").first().and_then(Value::as_str);
            let endpoints = endpoints(objects, (namespace, name), text(listed, "/name"));
            chosen(&endpoints, family, draw).ok_or_else(|| Unresolved::NoEndpoints(name.clone()))
        }
        other => Err(Unresolved::Type(other.to_owned())),
    }
}

/// A ready endpoint of a Service.
struct Endpoint {
    address_type: String,
    place: Place,
}

/// Selects one of the endpoints, preferably of the Service's first IP family.
fn chosen(endpoints: &[Endpoint], family: Option<&str>, draw: u64) -> Option<Place> {
    let of_family = |endpoint: &&Endpoint| Some(endpoint.address_type.as_str()) == family;
    let first: Vec<&Endpoint> = endpoints.iter().filter(of_family).collect();
    let candidates = if first.is_empty() { endpoints.iter().collect() } else { first };
    let at = draw.checked_rem(u64::try_from(candidates.len()).ok()?)?;
    candidates.get(usize::try_from(at).ok()?).map(|endpoint| endpoint.place.clone())
}

/// Returns the ready endpoints at the port of this name; EndpointSlices hold the port number of the pods.
fn endpoints(objects: &dyn Objects, (namespace, service): (&str, &str), port: &str) -> Vec<Endpoint> {
    let mut endpoints = Vec::new();
    let mut collect = |kept: &Kept| {
        if object::label(&kept.object.head(), SERVICE_NAME) == Some(service) {
            endpoints.extend(ready(&kept.object.pinned(), port));
        }
    };
    let resources = objects.resources();
    if let Some(info) = resources.find("discovery.k8s.io", "v1", "endpointslices")
        && let Err(error) = objects.each_object(&info.storage_key, Some(namespace), &mut collect)
    {
        tracing::error!(%error, "endpoint slices cannot be listed");
    }
    endpoints
}

/// Returns the ready endpoints of a slice: missing readiness means ready, and only the first address counts.
fn ready<'s>(slice: &'s Value, port: &str) -> impl Iterator<Item = Endpoint> + 's {
    let number =
        |listed: &Value| listed.get("port").and_then(Value::as_u64).and_then(|port| port.try_into().ok());
    let listed = items(slice, "/ports").iter().filter(|listed| text(listed, "/name") == port);
    let ports: Vec<u16> = listed.filter_map(number).collect();
    let address_type = text(slice, "/addressType");
    let is_ready = |endpoint: &&Value| endpoint.pointer("/conditions/ready") != Some(&Value::Bool(false));
    items(slice, "/endpoints").iter().filter(is_ready).filter_map(move |endpoint| {
        let host = items(endpoint, "/addresses").first()?.as_str()?.to_owned();
        let place = Place { host, port: *ports.first()? };
        Some(Endpoint { address_type: address_type.to_owned(), place })
    })
}

fn stored(objects: &dyn Objects, namespace: &str, name: &str) -> Option<Stored> {
    let resources = objects.resources();
    let info = resources.find("", "v1", "services")?;
    let resource = info.storage_key.as_str().into();
    let key = Key { resource, namespace: namespace.to_owned(), name: name.to_owned() };
    objects.object(&key).map(|kept| kept.stored())
}
