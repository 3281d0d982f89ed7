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
    /// A watch of one object or of a list: by the paths that precede `watch=true`.
    Watch,
    WatchList,
    /// A proxied connection, by this method.
    Connect(&'static str),
}

/// The methods that a proxy forwards.
pub(super) const METHODS: [&str; 7] = ["delete", "get", "head", "options", "patch", "post", "put"];

/// The body of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    None,
    Object,
    Patch,
    DeleteOptions,
}

/// The body of a response.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// An object with the schema of this name.
    Object(String),
    Text,
}

impl Answer {
    fn schema(&self) -> Value {
        match self {
            Self::Object(schema) => reference(schema),
            Self::Text => json!({"type": "string"}),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Operation<'a> {
    pub(super) row: &'a ResourceInfo,
    pub(super) action: Action,
    /// The subresource of the path, such as `status`; empty for the object.
    pub(super) part: &'static str,
    /// Whether the path lists objects of all namespaces.
    pub(super) everywhere: bool,
    /// Whether the path continues after the subresource.
    pub(super) onwards: bool,
    /// Group, version and kind of request and response, in the form that clients look for.
    pub(super) about: Value,
    pub(super) answer: Answer,
    /// The name of the request body's schema.
    pub(super) sent: String,
}

/// What precedes the names of schemas that all groups share.
pub(super) const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
/// Media types of objects. Built-in kinds also have protobuf.
pub(super) const TEXT: [&str; 2] = ["application/json", "application/yaml"];
pub(super) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const STREAMS: [&str; 2] =
    ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];
const ANY: [&str; 1] = ["*/*"];

impl Operation<'_> {
    /// Renders the operation; `parameters` are those that the path does not declare.
    pub(super) fn render(&self, parameters: Vec<Value>) -> Value {
        let row = self.row;
        let mut operation = Map::new();
        operation.insert("tags".into(), json!([tag(&row.group, &row.version)]));
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
        operation.insert("x-kubernetes-group-version-kind".into(), self.about.clone());
        Value::Object(operation)
    }

    /// Returns the kind of body. Deleting a collection of custom objects is published without options.
    fn body(&self) -> Body {
        match self.action {
            Action::Get | Action::List | Action::Watch | Action::WatchList | Action::Connect(_) => Body::None,
            Action::Create | Action::Replace => Body::Object,
            Action::Patch => Body::Patch,
            Action::DeleteCollection if !self.row.builtin => Body::None,
            Action::Delete | Action::DeleteCollection => Body::DeleteOptions,
        }
    }

    fn description(&self) -> String {
        let kind = &self.row.kind;
        let part = self.part;
        let of = if part.is_empty() { String::new() } else { format!("{part} of ") };
        let is_watched = || self.row.verbs.iter().any(|verb| verb == "watch");
        match self.action {
            Action::Get => format!("read {of}the specified {kind}"),
            Action::List if self.row.builtin && is_watched() => {
                format!("list or watch objects of kind {kind}")
            }
            Action::List => format!("list objects of kind {kind}"),
            Action::Create => format!("create {of}{}{kind}", article(kind)),
            Action::Replace => format!("replace {of}the specified {kind}"),
            Action::Patch => format!("partially update {of}the specified {kind}"),
            Action::Delete => format!("delete {}{kind}", article(kind)),
            Action::DeleteCollection => format!("delete collection of {kind}"),
            Action::Watch => format!(
                "watch changes to an object of kind {kind}. deprecated: use the 'watch' parameter with a list operation \
                 instead, filtered to a single item with the 'fieldSelector' parameter."
            ),
            Action::WatchList => format!(
                "watch individual changes to a list of {kind}. deprecated: use the 'watch' parameter with a list \
                 operation instead."
            ),
            Action::Connect(method) => {
                format!("connect {} requests to {of}{kind}", method.to_ascii_uppercase())
            }
        }
    }

    /// Returns the `operationId`: `readCoreV1NamespacedPodStatus`, `deleteRbacAuthorizationV1CollectionClusterRole`.
    fn id(&self) -> String {
        let row = self.row;
        let verb = match self.action {
            Action::Get => "read",
            Action::List => "list",
            Action::Create => "create",
            Action::Replace => "replace",
            Action::Patch => "patch",
            Action::Delete | Action::DeleteCollection => "delete",
            Action::Watch | Action::WatchList => "watch",
            Action::Connect(_) => "connect",
        };
        let namespaced = row.scope == Scope::Namespaced;
        let before = match self.action {
            Action::DeleteCollection => "Collection".to_owned(),
            Action::Connect(method) => capital(method),
            _ => String::new(),
        };
        let [group, version, part] = [group(&row.group).as_str(), &row.version, self.part].map(capital);
        let scope = if namespaced && !self.everywhere { "Namespaced" } else { "" };
        let list = if self.action == Action::WatchList { "List" } else { "" };
        let all = if self.everywhere { "ForAllNamespaces" } else { "" };
        let path = if self.onwards { "WithPath" } else { "" };
        format!("{verb}{group}{version}{before}{scope}{}{part}{list}{all}{path}", row.kind)
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
            Action::Watch => "watch",
            Action::WatchList => "watchlist",
            Action::Connect(_) => "connect",
        }
    }

    fn request_content(&self) -> Option<Value> {
        let patch = format!("{META}.Patch");
        let options = format!("{META}.DeleteOptions");
        let types: &[&str] = if self.row.builtin { &ANY } else { &TEXT };
        match self.body() {
            Body::None => None,
            Body::Object => Some(content(types, &reference(&self.sent))),
            Body::DeleteOptions => Some(content(types, &reference(&options))),
            Body::Patch => {
                let mut types = vec![
                    "application/apply-patch+yaml",
                    "application/json-patch+json",
                    "application/merge-patch+json",
                ];
                if self.row.builtin {
                    types.push("application/strategic-merge-patch+json");
                }
                Some(content(&types, &reference(&patch)))
            }
        }
    }

    /// Returns the media types of the response.
    fn answered(&self) -> Vec<&'static str> {
        if matches!(self.action, Action::Connect(_)) {
            return ANY.to_vec();
        }
        let mut types = TEXT.to_vec();
        if self.row.builtin {
            types.push(PROTOBUF);
            if matches!(self.action, Action::List | Action::Watch | Action::WatchList) {
                types.extend(STREAMS);
            }
        }
        if matches!(self.answer, Answer::Text) {
            types.push("text/plain");
        }
        types.sort_unstable();
        types
    }

    fn responses(&self) -> Value {
        let answer = content(&self.answered(), &self.answer.schema());
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

/// Maps each media type to the same schema.
pub(super) fn content(types: &[&str], schema: &Value) -> Value {
    let media = json!({"schema": schema});
    types.iter().map(|kind| ((*kind).to_owned(), media.clone())).collect::<Map<_, _>>().into()
}

pub(super) fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

/// Formats group, version and kind for the extension that clients look for.
pub(super) fn gvk(group: &str, version: &str, kind: &str) -> Value {
    json!({"group": group, "kind": kind, "version": version})
}

/// Returns the article before a kind's name; plural names have none.
fn article(kind: &str) -> &'static str {
    match kind.chars().next() {
        _ if kind.ends_with('s') && !kind.ends_with("ss") => "",
        Some('A' | 'E' | 'I' | 'O' | 'U' | 'a' | 'e' | 'i' | 'o' | 'u') => "an ",
        _ => "a ",
    }
}

/// Returns the tag of operations: `core_v1`, `insightsOpenshiftIo_v1alpha1`.
pub(super) fn tag(group: &str, version: &str) -> String {
    format!("{}_{version}", self::group(group))
}

/// Formats the group as one word: `core`, `rbacAuthorization`, `insightsOpenshiftIo`.
pub(super) fn group(group: &str) -> String {
    let group = if group.is_empty() { "core" } else { group.trim_end_matches(".k8s.io") };
    let mut words = group.split(['.', '-']);
    let mut camel = words.next().unwrap_or_default().to_owned();
    camel.extend(words.map(capital));
    camel
}

pub(super) fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}
