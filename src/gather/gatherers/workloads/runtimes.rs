//! Gathers what runs in containers: the operating systems of their images, language runtimes and servers with their versions. Only an
//! agent on the node can look into a container: such agents are queried if they run; otherwise their absence is reported.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, StreamExt as _};
use http::{HeaderValue, Method, Request, header};
use http_body_util::{BodyExt, Limited};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;
use kube::config::AuthInfo;
use kube::{Api, Client, Config};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::super::super::failure::Failure;
use super::super::super::gatherer::{Agents, Context};
use super::super::super::lister::{self, Resource};
use super::super::hashed;
use super::super::pods::items;
use crate::outside::{self, MAX_PEM, Unreadable};
use crate::telemetry::with_causes;

const PODS: Resource = Resource { group: "", version: "v1", kind: "Pod", plural: "pods" };
const AGENTS: &str = "app.kubernetes.io/name=insights-runtime-extractor";
/// The ConfigMap with the authority that signs the certificates of Services, and its key.
const AUTHORITY: (&str, &str) = ("service-ca-bundle", "service-ca.crt");
/// The Service in the agents' namespace whose certificate they present.
const SERVICE: &str = "exporter";
/// Agents that are queried at a time.
const AT_ONCE: usize = 8;
/// The time limit for one agent, which inspects some hundred containers.
const PATIENCE: Duration = Duration::from_mins(2);
/// The largest response: some hundred bytes for each of the 500 containers of a large node, and room.
const MAX_ANSWER: usize = 2 * 1024 * 1024;
/// The most software components of one container that are recorded.
const MAX_PARTS: usize = 32;

/// Why the agent of a node has no result.
#[derive(Debug, thiserror::Error)]
enum AgentError {
    #[error("no answer within {} s", PATIENCE.as_secs())]
    TimedOut,
    #[error("its Pod has no address")]
    MissingAddress,
    #[error("`{0}` is no URL")]
    InvalidUrl(String),
    #[error("{}", with_causes(.0))]
    Request(kube::Error),
    #[error(transparent)]
    InvalidRequest(http::Error),
    #[error("its insights-runtime-extractor answered {0}")]
    StatusCode(u16),
    #[error(transparent)]
    Body(Box<dyn std::error::Error + Send + Sync>),
    #[error("its answer cannot be read: {0}")]
    Malformed(serde_json::Error),
}

/// Why it is unknown what runs in containers.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unknown {
    #[error(
        "what runs in containers is not told: no insights-runtime-extractor runs in namespace {0}, and nobody but an agent \
         on each node can look into them"
    )]
    NoAgents(String),
    #[error("what runs in containers is not told: nobody can be asked without the token `{path}`: {why}")]
    NoToken { path: String, why: String },
    #[error(
        "what runs in containers is not told: ConfigMap {namespace}/{} has no certificate in {} by which agents could be known",
        AUTHORITY.0,
        AUTHORITY.1
    )]
    NoAuthority { namespace: String },
    #[error("what runs in the containers of node {node} is not told: {why}")]
    Agent { node: String, why: String },
}

/// What runs in a container, as hashes.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Runtime {
    #[serde(skip_serializing_if = "String::is_empty")]
    os: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    os_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    kind_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    kind_implementer: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    runtimes: Vec<Part>,
}

#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(default)]
struct Part {
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    version: String,
}

/// What runs in the containers of a cluster, by container id.
pub(super) type Runtimes = HashMap<String, Runtime>;

/// A response: namespaces, their Pods, and the ids of their containers.
type Answer = BTreeMap<String, BTreeMap<String, BTreeMap<String, Runtime>>>;

/// Queries the agents of a cluster, if there are any. Missing results are reported.
///
/// # Errors
/// When Pods cannot be listed.
pub(super) async fn read(context: &Context) -> Result<Runtimes, Failure> {
    let Some(agents) = &context.agents else { return Ok(Runtimes::new()) };
    let addresses = running(context, agents).await?;
    if addresses.is_empty() {
        context.recorder.warn(Unknown::NoAgents(agents.namespace.clone()).to_string());
        return Ok(Runtimes::new());
    }
    let asking = match Asking::new(context, agents).await {
        Ok(asking) => asking,
        Err(unknown) => {
            context.recorder.fail(unknown.to_string());
            return Ok(Runtimes::new());
        }
    };
    let mut containers = containers(context).await?;
    let asked = addresses.into_iter().filter_map(|(node, address)| {
        let ids = containers.remove(&node)?;
        Some(asking.one(node, address, ids))
    });
    let mut answers = stream::iter(asked.collect::<Vec<_>>()).buffer_unordered(AT_ONCE);
    let mut runtimes = Runtimes::new();
    while let Some(answer) = answers.next().await {
        match answer {
            Ok(answer) => runtimes.extend(answer),
            Err(unknown) => context.recorder.fail(unknown.to_string()),
        }
    }
    for (node, _) in containers {
        let why = "no insights-runtime-extractor runs on it".to_owned();
        context.recorder.warn(Unknown::Agent { node, why }.to_string());
    }
    Ok(runtimes)
}

/// Returns the addresses of agents by node.
async fn running(context: &Context, agents: &Agents) -> Result<BTreeMap<String, String>, Failure> {
    let mut listing = lister::list_in(context, &agents.namespace, PODS).labelled(AGENTS);
    let mut addresses = BTreeMap::new();
    while let Some(pod) = listing.next().await? {
        let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        if text("/status/phase").as_deref() == Some("Running") {
            addresses.extend(text("/spec/nodeName").zip(text("/status/podIP")));
        }
    }
    Ok(addresses)
}

/// Returns the ids of running containers by node.
async fn containers(context: &Context) -> Result<BTreeMap<String, BTreeSet<String>>, Failure> {
    let mut listing = lister::list(context, PODS);
    let mut nodes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    while let Some(pod) = listing.next().await? {
        let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str);
        let (Some("Running"), Some(node)) = (text("/status/phase"), text("/spec/nodeName")) else { continue };
        let statuses = items(&pod, "/status/containerStatuses");
        let ids = statuses.filter(|status| status.pointer("/state/terminated").is_none());
        let ids = ids.filter_map(|status| status.get("containerID").and_then(Value::as_str));
        let ids: Vec<_> = ids.filter(|id| !id.is_empty()).map(str::to_owned).collect();
        if !ids.is_empty() {
            nodes.entry(node.to_owned()).or_default().extend(ids);
        }
    }
    Ok(nodes)
}

/// The client for agents.
struct Asking {
    agents: Agents,
    token: String,
    authority: Vec<Vec<u8>>,
}

impl Asking {
    async fn new(context: &Context, agents: &Agents) -> Result<Self, Unknown> {
        let path = agents.token.clone();
        let read = outside::in_time(move || outside::text(&path, MAX_PEM)).await.and_then(|text| text);
        let none = |why| Unknown::NoToken { path: agents.token.display().to_string(), why };
        let token = read.map_err(|error| none(Unreadable::into_io(error).to_string()))?;
        let token = token.trim().to_owned();
        // The client would panic on an invalid header value.
        HeaderValue::from_str(&token).map_err(|_| none("it holds what no header may".to_owned()))?;
        let maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), &agents.namespace);
        let map = maps.get_opt(AUTHORITY.0).await.ok().flatten();
        let text = map.and_then(|map| map.data?.remove(AUTHORITY.1)).unwrap_or_default();
        let authority = CertificateDer::pem_slice_iter(text.as_bytes()).filter_map(Result::ok);
        let authority: Vec<_> = authority.map(|certificate| certificate.to_vec()).collect();
        if authority.is_empty() {
            return Err(Unknown::NoAuthority { namespace: agents.namespace.clone() });
        }
        Ok(Self { agents: agents.clone(), token, authority })
    }

    async fn one(&self, node: String, address: String, ids: BTreeSet<String>) -> Result<Runtimes, Unknown> {
        let asked = timeout(PATIENCE, self.ask(&address, &ids)).await;
        let asked = asked.unwrap_or(Err(AgentError::TimedOut));
        let answer = asked.map_err(|error| Unknown::Agent { node, why: error.to_string() })?;
        let containers = answer.into_values().flat_map(BTreeMap::into_values).flatten();
        let told = containers.filter(|(id, runtime)| ids.contains(id) && *runtime != Runtime::default());
        Ok(told.map(|(id, runtime)| (id, runtime.hashed())).collect())
    }

    async fn ask(&self, address: &str, ids: &BTreeSet<String>) -> Result<Answer, AgentError> {
        let address: IpAddr = address.parse().map_err(|_| AgentError::MissingAddress)?;
        let url = format!("https://{}", SocketAddr::new(address, self.agents.port));
        let url = url.parse().map_err(|_| AgentError::InvalidUrl(url))?;
        // The token is only sent to a server that presents the Service's certificate.
        let mut config = Config::new(url);
        config.root_cert = Some(self.authority.clone());
        config.tls_server_name = Some(format!("{SERVICE}.{}.svc.cluster.local", self.agents.namespace));
        config.auth_info = AuthInfo { token: Some(self.token.clone().into()), ..AuthInfo::default() };
        config.default_retry = false;
        let client = Client::try_from(config).map_err(AgentError::Request)?;
        let body = json!({"containerIds": ids}).to_string();
        let request = Request::builder()
            .method(Method::POST)
            .uri("/gather_runtime_info")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body.into_bytes()))
            .map_err(AgentError::InvalidRequest)?;
        let answer = client.send(request).await.map_err(AgentError::Request)?;
        let code = answer.status().as_u16();
        if code != 200 {
            return Err(AgentError::StatusCode(code));
        }
        let body: Bytes = match Limited::new(answer.into_body(), MAX_ANSWER).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => return Err(AgentError::Body(error)),
        };
        serde_json::from_slice(&body).map_err(AgentError::Malformed)
    }
}

impl Runtime {
    /// Hashes all values that are not hashes already, as those of agents should be.
    fn hashed(self) -> Self {
        let Self { os, os_version, kind, kind_version, kind_implementer, mut runtimes } = self;
        runtimes.truncate(MAX_PARTS);
        let part = |Part { name, version }| Part { name: as_hash(name), version: as_hash(version) };
        Self {
            os: as_hash(os),
            os_version: as_hash(os_version),
            kind: as_hash(kind),
            kind_version: as_hash(kind_version),
            kind_implementer: as_hash(kind_implementer),
            runtimes: runtimes.into_iter().map(part).collect(),
        }
    }
}

fn as_hash(text: String) -> String {
    if text.is_empty() || hashed::is_short(&text) {
        return text;
    }
    hashed::short(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_tells_plainly_is_hashed() {
        let os = hashed::short("rhel");
        let told: Runtime = serde_json::from_value(
            json!({"os": os, "kind": "Java", "runtimes": [{"name": "Quarkus"}], "x": 1}),
        )
        .unwrap();
        let expected = json!({"os": os, "kind": hashed::short("Java"), "runtimes": [{"name": hashed::short("Quarkus")}]});
        assert_eq!(serde_json::to_value(told.hashed()).unwrap(), expected);
        assert_eq!(serde_json::to_value(Runtime::default().hashed()).unwrap(), json!({}));
    }
}
