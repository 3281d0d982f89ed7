//! Lists the parameters of operations as kube-apiserver 1.36 publishes them: names, types and descriptions. The data is in
//! `parameters.json`; to update it to another version take them from a document that a server of that version
//! publishes.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Value, json};

use super::operations::{Action, Operation};
use crate::resources::Subresource;

#[derive(Debug, Deserialize)]
struct Parameter {
    name: String,
    #[serde(rename = "in")]
    place: String,
    #[serde(rename = "type")]
    kind: String,
    description: String,
}

/// Parameters by name. A name whose description differs by operation has several entries.
static PARAMETERS: LazyLock<HashMap<String, Parameter>> =
    LazyLock::new(|| serde_json::from_str(include_str!("parameters.json")).unwrap_or_default());

const LIST: [&str; 11] = [
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "shardSelector",
    "timeoutSeconds",
    "watch",
];
/// Parameters of a list that apply only to watches.
const WATCH: [&str; 2] = ["allowWatchBookmarks", "watch"];
const WRITE: [&str; 3] = ["dryRun", "fieldManager", "fieldValidation"];
const PATCH: [&str; 4] = ["dryRun", "fieldManager of a patch", "fieldValidation", "force"];
const DELETE: [&str; 5] = [
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
];

/// Parameters of a container's log.
const LOG: [&str; 9] = [
    "container",
    "follow",
    "insecureSkipTLSVerifyBackend",
    "limitBytes",
    "previous",
    "sinceSeconds",
    "stream",
    "tailLines",
    "timestamps",
];

/// Returns the query parameters of an operation, sorted by name. Custom kinds have one more on
/// `get`, and lack those of a deletion on `deletecollection`.
pub(super) fn of_operation(operation: &Operation<'_>) -> Vec<Value> {
    let builtin = operation.row.builtin;
    let names: Vec<&str> = match operation.action {
        Action::Get if operation.part == Subresource::Log.name() => LOG.to_vec(),
        Action::Get if builtin => Vec::new(),
        Action::Get => vec!["resourceVersion"],
        Action::DeleteCollection if builtin => {
            LIST.into_iter().filter(|name| !WATCH.contains(name)).chain(DELETE).collect()
        }
        Action::List | Action::DeleteCollection | Action::Watch | Action::WatchList => LIST.to_vec(),
        Action::Create | Action::Replace => WRITE.to_vec(),
        Action::Patch => PATCH.to_vec(),
        Action::Delete => DELETE.to_vec(),
        Action::Connect(_) => asked(operation.part),
    };
    sorted(names.into_iter().filter_map(published).collect())
}

/// Returns the parameters of a connect request.
fn asked(part: &str) -> Vec<&'static str> {
    let fields = Subresource::named(part).map_or(&[][..], Subresource::asked);
    // The path parameter has the same name.
    let name = |name: &'static str| if name == "path" { "path of a proxy" } else { name };
    fields.iter().map(|(field, _)| name(field)).collect()
}

/// Returns the parameters that all operations of a path share: those of the path, `pretty` if responses are objects,
/// and those that all operations have, which are removed from the operations.
pub(super) fn shared(of_path: &[Value], is_indented: bool, operations: &mut [Vec<Value>]) -> Vec<Value> {
    let common: Vec<Value> = match operations {
        [] => Vec::new(),
        [first, others @ ..] => {
            let everywhere = |parameter: &&Value| others.iter().all(|other| other.contains(parameter));
            first.iter().filter(everywhere).cloned().collect()
        }
    };
    for operation in operations {
        operation.retain(|parameter| !common.contains(parameter));
    }
    let pretty = if is_indented { published("pretty") } else { None };
    sorted(of_path.iter().cloned().chain(pretty).chain(common).collect())
}

/// Builds the path parameter for the object's name.
pub(super) fn name_of(kind: &str) -> Value {
    json!({"name": "name", "in": "path", "description": format!("name of the {kind}"), "required": true,
        "schema": {"type": "string", "uniqueItems": true}})
}

/// Builds the path parameter for the namespace.
pub(super) fn namespace() -> Option<Value> {
    published("namespace")
}

/// Builds the path parameter for the rest of a proxied path.
pub(super) fn onwards() -> Option<Value> {
    published("path onwards")
}

fn published(name: &str) -> Option<Value> {
    let parameter = PARAMETERS.get(name)?;
    let mut shown =
        json!({"name": parameter.name, "in": parameter.place, "description": parameter.description});
    if parameter.place == "path" {
        shown["required"] = true.into();
    }
    shown["schema"] = json!({"type": parameter.kind, "uniqueItems": true});
    Some(shown)
}

fn sorted(mut parameters: Vec<Value>) -> Vec<Value> {
    parameters.sort_by(|left, right| left["name"].as_str().cmp(&right["name"].as_str()));
    parameters
}
