//! Resolves the Service that a webhook names to an address, from the stored Services and EndpointSlices.
//!
//! Cluster IPs are not forwarded here. A Service is therefore reached at one of its ready endpoints, which is how
//! kube-apiserver finds it with `--enable-aggregator-routing`; and one of type ExternalName at its name, as without
//! that option. Endpoints are what the store says: this server runs no pods, and creates no endpoints from selectors.
//! Connecting is left to the client.

use admit_apimachinery::go;
use admit_apimachinery::pointer::{items, text};
use admit_policy::webhook::Service;
use serde_json::Value;
use thiserror::Error;

use crate::object;
use crate::objects::Objects;
use crate::store::{Kept, Key, Stored};

/// By this label an EndpointSlice tells whose it is.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// What to connect to: a name or an IP address, and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) host: String,
    pub(super) port: u16,
}

/// Why there is nothing to connect to, in the words of kube-apiserver.
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

/// Where `wanted` is. Of several endpoints `draw`, any number, chooses one.
pub(super) fn locate(objects: &dyn Objects, wanted: &Service, draw: u64) -> Result<Place, Unresolved> {
    let Service { name, namespace, port, .. } = wanted;
    let Some(service) = stored(objects, namespace, name) else {
        return Err(Unresolved::Absent(name.clone()));
    };
    let spec = service.object.get("spec").unwrap_or(&Value::Null);
    let no_port = || Unresolved::NoPort { service: name.clone(), port: *port };
    match text(spec, "/type") {
        // The port is the webhook's: such a Service need not list any.
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

/// One of the endpoints: of those of the Service's first IP family, if there are any.
fn chosen(endpoints: &[Endpoint], family: Option<&str>, draw: u64) -> Option<Place> {
    let of_family = |endpoint: &&Endpoint| Some(endpoint.address_type.as_str()) == family;
    let first: Vec<&Endpoint> = endpoints.iter().filter(of_family).collect();
    let candidates = if first.is_empty() { endpoints.iter().collect() } else { first };
    let at = draw.checked_rem(u64::try_from(candidates.len()).ok()?)?;
    candidates.get(usize::try_from(at).ok()?).map(|endpoint| endpoint.place.clone())
}

/// The ready endpoints at the port of this name, which slices repeat from the Service: the number is that of the pods.
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

/// An endpoint that says nothing of its readiness is ready, and of its addresses only the first counts.
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
