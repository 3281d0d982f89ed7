//! Lists the objects of a live cluster that policies match, page by page. It only reads.
//!
//! ```text
//! policies ──which resources──► discovery ──► lists, page by page ──► objects to decide about
//!                                                                 └─► Namespaces, params, definitions beside them
//! ```

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use admit_policy::manifest::Document;
use admit_policy::{GroupVersionKind, Policy, PolicyException, PolicySet, matching};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIResource, APIResourceList};
use kube::Client;
use kube::api::{GetParams, ListParams, Request};
use serde_json::Value;
use tokio::time::timeout;

use super::held::Store;
use crate::cli::client;
use crate::cli::process::Fault;
use crate::cli::progress::Progress;

/// The number of objects of one page, as kubectl requests them.
const PAGE: u32 = 500;
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// The timeout for one response: enough for a page of large objects over a slow line.
const PATIENCE: Duration = Duration::from_secs(60);

/// What was read from a cluster.
#[derive(Debug)]
pub(in crate::cli) struct Live {
    /// The objects to decide about.
    pub(super) objects: Store,
    /// Namespaces and params that are only looked up.
    pub(super) beside: Store,
    /// The CRDs of the kinds of these objects.
    pub(super) definitions: Vec<Document>,
    /// The exceptions that are stored in the cluster, if they were requested.
    pub(super) exceptions: Vec<PolicyException>,
    /// What could not be read.
    pub(super) unread: Vec<String>,
}

/// A resource to list.
#[derive(Debug)]
struct Resource {
    kind: GroupVersionKind,
    plural: String,
    /// Whether its objects are decided; otherwise they are only looked up.
    decided: bool,
}

/// Reads the objects that the policies of `set` match from the cluster that `kubeconfig` names.
///
/// # Errors
/// When there is no such cluster, it does not answer at all, or its objects exceed the memory budget.
pub(super) fn read(
    kubeconfig: &Path,
    context: Option<&str>,
    set: &PolicySet,
    exceptions: bool,
) -> Result<Live, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Fault::internal(format!("cannot start the runtime: {error}")))?;
    runtime.block_on(async {
        let client = client::client_of_context(kubeconfig.to_owned(), context.map(ToOwned::to_owned)).await?;
        read_from(&client, set, exceptions).await
    })
}

/// Does the same with `client`, and also reads the `exceptions` that are stored in the cluster if they are requested.
///
/// # Errors
/// As [`read`].
pub(in crate::cli) async fn read_from(
    client: &Client,
    set: &PolicySet,
    exceptions: bool,
) -> Result<Live, Fault> {
    let mut live = Live {
        objects: Store::new(),
        beside: Store::new(),
        definitions: Vec::new(),
        exceptions: Vec::new(),
        unread: Vec::new(),
    };
    if exceptions {
        for kind in ["PolicyException", "ClusterPolicyException"] {
            live.except(client, kind).await?;
        }
    }
    let resources = live.resources(client, set).await?;
    let progress = Progress::of(None, "objects read:");
    for resource in &resources {
        if let Err(error) = live.list(client, resource, &progress).await? {
            live.unread.push(format!("cannot list {}: {error}", resource.path()));
        }
        live.define(client, set, resource).await;
    }
    Ok(live)
}

impl Live {
    /// Returns the resources to list, in a version that policies name, so that nothing is converted, or that the server prefers.
    async fn resources(&mut self, client: &Client, set: &PolicySet) -> Result<Vec<Resource>, Fault> {
        let silent = |error: NoAnswer| Fault::usage(format!("the cluster does not answer: {error}"));
        let mut found: Vec<Resource> = Vec::new();
        let core = within(client.list_core_api_resources("v1")).await.map_err(silent)?;
        take(&mut found, set, core);
        for group in within(client.list_api_groups()).await.map_err(silent)?.groups {
            let preferred = group.preferred_version.iter().map(|version| &version.group_version);
            let others = group.versions.iter().map(|version| &version.group_version);
            let mut versions: Vec<&String> = Vec::new();
            for version in preferred.chain(others) {
                if !versions.contains(&version) {
                    versions.push(version);
                }
            }
            if !speaks_of_group(set, &group.name) {
                continue;
            }
            let is_named = |version: &&String| {
                let version = version.rsplit_once('/').map_or(version.as_str(), |(_, version)| version);
                policies(set).any(|policy| policy.constraints.name_version(&group.name, version))
            };
            versions.sort_by_key(|version| !is_named(version));
            for version in versions {
                match within(client.list_api_group_resources(version)).await {
                    Ok(resources) => take(&mut found, set, resources),
                    Err(error) => self.unread.push(format!("cannot discover {version}: {error}")),
                }
            }
        }
        Ok(found)
    }

    /// Lists all objects of a resource; the inner error is the server's refusal.
    async fn list(
        &mut self,
        client: &Client,
        resource: &Resource,
        progress: &Progress,
    ) -> Result<Result<(), NoAnswer>, Fault> {
        let file: Arc<str> = resource.path().into();
        let store = if resource.decided { &mut self.objects } else { &mut self.beside };
        each(client, resource, &mut |item| {
            progress.step();
            store.add(Document::unwritten(Arc::clone(&file), item))
        })
        .await
    }

    /// Adds the exceptions of a kind, if the cluster serves it.
    async fn except(&mut self, client: &Client, kind: &str) -> Result<(), Fault> {
        let resource = Resource {
            kind: GroupVersionKind::new("policies.admit.dev", "v1", kind),
            plural: format!("{}s", kind.to_lowercase()),
            decided: false,
        };
        let path = resource.path();
        let Self { exceptions, unread, .. } = self;
        let mut take = |item: Value| {
            match PolicyException::compile(&item) {
                Ok(exception) => exceptions.push(exception),
                Err(errors) => {
                    let name = item.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
                    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
                    unread.push(format!("cannot read {path} {name}: {}", errors.join("; ")));
                }
            }
            Ok(())
        };
        match each(client, &resource, &mut take).await? {
            Ok(()) | Err(NoAnswer::NotFound(_)) => {}
            Err(error) => self.unread.push(format!("cannot list {path}: {error}")),
        }
        Ok(())
    }

    /// Adds the CRD of a resource that has one, unless the files contain it. Without permission to read it, the objects are taken
    /// as they are, and that is reported.
    async fn define(&mut self, client: &Client, set: &PolicySet, resource: &Resource) {
        let group = &resource.kind.group;
        let is_known = set.documents().crd_of(&resource.kind).is_some();
        if is_known || !group.contains('.') || group.ends_with(".k8s.io") {
            return;
        }
        let name = format!("{}.{group}", resource.plural);
        let of_definitions = Request::new(DEFINITIONS);
        let asked = of_definitions.get(&name, &GetParams::default());
        let answer = match asked {
            Ok(request) => within_or_none(client.request::<Value>(request)).await,
            Err(error) => Err(error.into()),
        };
        match answer {
            Ok(Some(definition)) => {
                self.definitions
                    .push(Document::unwritten(format!("{DEFINITIONS}/{name}").into(), definition));
            }
            // Served by an aggregated API server.
            Ok(None) => {}
            Err(error) => self.unread.push(format!("cannot read the definition {name}: {error}")),
        }
    }
}

impl Resource {
    fn path(&self) -> String {
        let GroupVersionKind { group, version, .. } = &self.kind;
        let root = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
        format!("{root}/{version}/{}", self.plural)
    }
}

/// Passes each object of a resource on, page by page; the inner error is the server's refusal.
async fn each(
    client: &Client,
    resource: &Resource,
    take: &mut (dyn FnMut(Value) -> Result<(), Fault> + Send),
) -> Result<Result<(), NoAnswer>, Fault> {
    let path = resource.path();
    let asked = Request::new(&*path);
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = match asked.list(&params) {
            Ok(request) => within(client.request::<Value>(request)).await,
            Err(error) => Err(error.into()),
        };
        let mut page = match page {
            Ok(page) => page,
            Err(error) => return Ok(Err(error)),
        };
        let items = page.get_mut("items").and_then(Value::as_array_mut).map(std::mem::take);
        let items = items.unwrap_or_default();
        let is_empty = items.is_empty();
        for mut item in items {
            // The items of a list omit apiVersion and kind.
            if let Value::Object(fields) = &mut item {
                fields.insert("apiVersion".to_owned(), resource.kind.api_version().into());
                fields.insert("kind".to_owned(), resource.kind.kind.as_str().into());
            }
            take(item)?;
        }
        match page.pointer("/metadata/continue").and_then(Value::as_str) {
            None | Some("") => return Ok(Ok(())),
            Some(_) if is_empty => {
                return Ok(Err(NoAnswer::EmptyPage));
            }
            Some(token) => params = params.continue_token(token),
        }
    }
}

/// Adds the resources of one group and version that are to be listed, and were not found in an earlier version.
fn take(found: &mut Vec<Resource>, set: &PolicySet, resources: APIResourceList) {
    let (group, version) = resources.group_version.split_once('/').unwrap_or(("", &resources.group_version));
    for APIResource { name, kind, verbs, .. } in resources.resources {
        let listed = |resource: &Resource| resource.kind.group == group && resource.plural == name;
        if name.contains('/') || !verbs.iter().any(|verb| verb == "list") || found.iter().any(listed) {
            continue;
        }
        let kind = GroupVersionKind::new(group, version, kind);
        let decided = !matching::is_exempt(&kind) && speaks_of(set, group, &name);
        if decided || is_looked_up(set, &kind) {
            found.push(Resource { kind, plural: name, decided });
        }
    }
}

/// Returns the validating and the mutating policies.
fn policies(set: &PolicySet) -> impl Iterator<Item = &Policy> {
    let mutating = set.mutating_policies().map(|(policy, _)| policy.common());
    set.policies().map(|(policy, _)| policy).chain(mutating)
}

/// Whether a policy or a definition among the files is about the resource.
fn speaks_of(set: &PolicySet, group: &str, resource: &str) -> bool {
    let defines = set.documents().crds().iter().map(|crd| crd.definition());
    policies(set).any(|policy| policy.constraints.speak_of(group, resource))
        || defines.into_iter().any(|of| of.group == group && of.names.plural == resource)
}

/// Whether resources of the group may have to be listed, before its discovery document is read.
fn speaks_of_group(set: &PolicySet, group: &str) -> bool {
    let of_group = |policy: &Policy| {
        let is_param = policy.param_kind.as_ref().is_some_and(|kind| kind.group == group);
        is_param || policy.constraints.speak_of_group(group)
    };
    policies(set).any(of_group) || set.documents().crds().iter().any(|crd| crd.definition().group == group)
}

/// Whether objects of the kind are looked up: Namespaces for selectors, and params. Roles are read from files (`--authorizer`).
fn is_looked_up(set: &PolicySet, kind: &GroupVersionKind) -> bool {
    set.looks_up(kind) && kind.group != "rbac.authorization.k8s.io"
}

/// Why there is no response of the API server.
#[derive(Debug, thiserror::Error)]
enum NoAnswer {
    #[error("the list changed more than the server remembers while it was read; run this again")]
    Gone,
    /// The server refused, with its message.
    #[error("{0}")]
    Refused(String),
    /// The server answered 404, with its message.
    #[error("{0}")]
    NotFound(String),
    #[error("{0}")]
    Client(#[source] Box<kube::Error>),
    #[error("{0}")]
    Request(#[from] kube::core::request::Error),
    #[error("no answer within {} seconds", PATIENCE.as_secs())]
    Timeout,
    /// Such a server would be queried for ever.
    #[error("a page without objects says that more follow")]
    EmptyPage,
}

/// Waits for a response, with a timeout, and shortens errors.
async fn within<T>(asked: impl Future<Output = Result<T, kube::Error>>) -> Result<T, NoAnswer> {
    match timeout(PATIENCE, asked).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(kube::Error::Api(status))) if status.code == 410 => Err(NoAnswer::Gone),
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => {
            Err(NoAnswer::NotFound(status.message.clone()))
        }
        Ok(Err(kube::Error::Api(status))) => Err(NoAnswer::Refused(status.message.clone())),
        Ok(Err(error)) => Err(NoAnswer::Client(Box::new(error))),
        Err(_) => Err(NoAnswer::Timeout),
    }
}

/// Does the same, with `None` if the object does not exist.
async fn within_or_none<T>(
    asked: impl Future<Output = Result<T, kube::Error>>,
) -> Result<Option<T>, NoAnswer> {
    let asked = async {
        match asked.await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            answer => answer.map(Some),
        }
    };
    within(asked).await
}
