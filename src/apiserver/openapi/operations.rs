//! Describes one operation of a path: body, responses, its own parameters, and the extensions that clients look for.
//!
//! Clients probe for the `fieldValidation` parameter on PATCH before they leave the validation of fields to the
//! server, and generators of clients name their functions by `operationId`.

use serde_json::{Map, Value, json};

use crate::resources::{ResourceInfo, Scope};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Get,
    List,
    Create,
    Replace,
    Patch,
    Delete,
    DeleteCollection,
}

/// What an operation takes as its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    None,
    Object,
    Patch,
    DeleteOptions,
}

#[derive(Clone, Debug)]
pub(super) struct Operation<'a> {
    pub(super) row: &'a ResourceInfo,
    pub(super) action: Action,
    /// The part of the object that the path leads to, such as `status`; empty for all of it.
    pub(super) part: &'a str,
    /// Whether the path leads to objects of all namespaces.
    pub(super) everywhere: bool,
    /// The schema's name of what is answered.
    pub(super) answer: String,
    /// The schema's name of what is sent.
    pub(super) sent: String,
}

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const TEXT: [&str; 2] = ["application/json", "application/yaml"];
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const STREAMS: [&str; 2] =
    ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];

impl Operation<'_> {
    /// The operation with those of its parameters that the path does not show.
    pub(super) fn render(&self, parameters: Vec<Value>) -> Value {
        let row = self.row;
        let mut operation = Map::new();
        operation.insert("tags".into(), json!([tag(row)]));
        operation.insert("description".into(), self.description().into());
        operation.insert("operationId".into(), self.id().into());
        if !parameters.is_empty() {
            operation.insert("parameters".into(), parameters.into());
        }
        if let Some(content) = self.request_content() {
            let mut request = Map::new();
            request.insert("content".into(), content);
            if self.body() != Body::DeleteOptions {
                request.insert("required".into(), true.into());
            }
            operation.insert("requestBody".into(), Value::Object(request));
        }
        operation.insert("responses".into(), self.responses());
        operation.insert("x-kubernetes-action".into(), self.kubernetes_action().into());
        operation.insert(
            "x-kubernetes-group-version-kind".into(),
            json!({"group": row.group, "version": row.version, "kind": row.kind}),
        );
        Value::Object(operation)
    }

    /// Deleting a collection of custom objects is published without its options.
    fn body(&self) -> Body {
        match self.action {
            Action::Get | Action::List => Body::None,
            Action::Create | Action::Replace => Body::Object,
            Action::Patch => Body::Patch,
            Action::DeleteCollection if !self.row.builtin => Body::None,
            Action::Delete | Action::DeleteCollection => Body::DeleteOptions,
        }
    }

    fn description(&self) -> String {
        let kind = &self.row.kind;
        let of = if self.part.is_empty() { String::new() } else { format!("{} of ", self.part) };
        match self.action {
            Action::Get => format!("read {of}the specified {kind}"),
            Action::List if self.row.builtin => format!("list or watch objects of kind {kind}"),
            Action::List => format!("list objects of kind {kind}"),
            Action::Create => format!("create {} {kind}", article(kind)),
            Action::Replace => format!("replace {of}the specified {kind}"),
            Action::Patch => format!("partially update {of}the specified {kind}"),
            Action::Delete => format!("delete {} {kind}", article(kind)),
            Action::DeleteCollection => format!("delete collection of {kind}"),
        }
    }

    /// `readCoreV1NamespacedPodStatus`, `deleteRbacAuthorizationV1CollectionClusterRole`.
    fn id(&self) -> String {
        let row = self.row;
        let verb = match self.action {
            Action::Get => "read",
            Action::List => "list",
            Action::Create => "create",
            Action::Replace => "replace",
            Action::Patch => "patch",
            Action::Delete | Action::DeleteCollection => "delete",
        };
        let namespaced = row.scope == Scope::Namespaced;
        let [group, version, part] = [group(row).as_str(), &row.version, self.part].map(capital);
        let collection = if self.action == Action::DeleteCollection { "Collection" } else { "" };
        let scope = if namespaced && !self.everywhere { "Namespaced" } else { "" };
        let all = if self.everywhere { "ForAllNamespaces" } else { "" };
        format!("{verb}{group}{version}{collection}{scope}{}{part}{all}", row.kind)
    }

    fn kubernetes_action(&self) -> &'static str {
        match self.action {
            Action::Get => "get",
            Action::List => "list",
            Action::Create => "post",
            Action::Replace => "put",
            Action::Patch => "patch",
            Action::Delete => "delete",
            Action::DeleteCollection => "deletecollection",
        }
    }

    fn request_content(&self) -> Option<Value> {
        let patch = format!("{META}.Patch");
        let options = format!("{META}.DeleteOptions");
        let types: &[&str] = if self.row.builtin { &["*/*"] } else { &TEXT };
        match self.body() {
            Body::None => None,
            Body::Object => Some(content(types, &self.sent)),
            Body::DeleteOptions => Some(content(types, &options)),
            Body::Patch => {
                let mut types = vec![
                    "application/apply-patch+yaml",
                    "application/json-patch+json",
                    "application/merge-patch+json",
                ];
                if self.row.builtin {
                    types.push("application/strategic-merge-patch+json");
                }
                Some(content(&types, &patch))
            }
        }
    }

    fn responses(&self) -> Value {
        let mut types = TEXT.to_vec();
        if self.row.builtin {
            types.push(PROTOBUF);
            types.extend(STREAMS.iter().filter(|_| self.action == Action::List));
        }
        types.sort_unstable();
        let answer = content(&types, &self.answer);
        let mut responses = Map::new();
        let further: &[(&str, &str)] = match self.action {
            Action::Create => &[("201", "Created"), ("202", "Accepted")],
            Action::Replace => &[("201", "Created")],
            Action::Patch if self.row.builtin => &[("201", "Created")],
            Action::Delete => &[("202", "Accepted")],
            _ => &[],
        };
        for (code, text) in [("200", "OK")].iter().chain(further) {
            responses.insert((*code).to_owned(), json!({"description": text, "content": answer}));
        }
        responses.insert("401".into(), json!({"description": "Unauthorized"}));
        Value::Object(responses)
    }
}

fn content(types: &[&str], schema: &str) -> Value {
    let reference = json!({"schema": {"$ref": format!("#/components/schemas/{schema}")}});
    types.iter().map(|kind| ((*kind).to_owned(), reference.clone())).collect::<Map<_, _>>().into()
}

fn article(kind: &str) -> &'static str {
    if kind.starts_with(['A', 'E', 'I', 'O', 'U', 'a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

/// `core_v1`, `insightsOpenshiftIo_v1alpha1`.
fn tag(row: &ResourceInfo) -> String {
    format!("{}_{}", group(row), row.version)
}

/// The group as one word: `core`, `rbacAuthorization`, `insightsOpenshiftIo`.
fn group(row: &ResourceInfo) -> String {
    let group = if row.group.is_empty() { "core" } else { row.group.trim_end_matches(".k8s.io") };
    let mut words = group.split(['.', '-']);
    let mut camel = words.next().unwrap_or_default().to_owned();
    camel.extend(words.map(capital));
    camel
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}
