//! Describes one operation of a path: parameters, body, responses, and the extensions that clients look for.
//!
//! Clients probe for the `fieldValidation` parameter on PATCH before they leave the validation of fields to the
//! server.

use serde_json::{Map, Value, json};

use crate::resources::ResourceInfo;

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
pub(super) enum Body {
    None,
    Object,
    Patch,
    DeleteOptions,
}

impl Body {
    pub(super) fn of(action: Action) -> Self {
        match action {
            Action::Get | Action::List => Self::None,
            Action::Create | Action::Replace => Self::Object,
            Action::Patch => Self::Patch,
            Action::Delete | Action::DeleteCollection => Self::DeleteOptions,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Operation<'a> {
    pub(super) row: &'a ResourceInfo,
    pub(super) action: Action,
    /// The schema's name of what is answered.
    pub(super) answer: String,
    /// The schema's name of what is sent.
    pub(super) sent: String,
}

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

const DRY_RUN: (&str, &str, &str) =
    ("dryRun", "string", "`All` runs every stage of the request and stores nothing");
const FIELD_MANAGER: (&str, &str, &str) = (
    "fieldManager",
    "string",
    "the name under which the changed fields are owned, at most 128 printable characters",
);
const FIELD_VALIDATION: (&str, &str, &str) = (
    "fieldValidation",
    "string",
    "what becomes of unknown and duplicate fields: `Ignore` drops them, `Warn` also warns, `Strict` refuses the request",
);
const FORCE: (&str, &str, &str) = (
    "force",
    "boolean",
    "whether an apply request takes over fields that others own; unset for other patches",
);
const RESOURCE_VERSION: (&str, &str, &str) =
    ("resourceVersion", "string", "which versions of the resource the answer may be taken from");
const LIST: [(&str, &str, &str); 8] = [
    ("allowWatchBookmarks", "boolean", "whether a watch may send events of type BOOKMARK"),
    ("continue", "string", "the token of the previous page"),
    ("fieldSelector", "string", "restricts the answer to objects whose fields match"),
    ("labelSelector", "string", "restricts the answer to objects whose labels match"),
    ("limit", "integer", "the largest number of objects in one answer"),
    ("resourceVersionMatch", "string", "how resourceVersion is compared: `Exact` or `NotOlderThan`"),
    ("timeoutSeconds", "integer", "how long a list or watch may take"),
    ("watch", "boolean", "whether to stream changes instead of answering once"),
];
const DELETE: [(&str, &str, &str); 3] = [
    ("gracePeriodSeconds", "integer", "how long the object may take to end; 0 means at once"),
    ("orphanDependents", "boolean", "superseded by propagationPolicy"),
    ("propagationPolicy", "string", "what becomes of dependents: `Orphan`, `Background` or `Foreground`"),
];

impl Operation<'_> {
    pub(super) fn render(&self, body: Body) -> Value {
        let row = self.row;
        let mut operation = Map::new();
        operation.insert("tags".into(), json!([tag(row)]));
        operation.insert("description".into(), self.description().into());
        operation.insert("parameters".into(), self.parameters().into());
        if let Some(content) = self.request_content(body) {
            let required = body != Body::DeleteOptions;
            let mut request = Map::new();
            request.insert("content".into(), content);
            if required {
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

    fn description(&self) -> String {
        let kind = &self.row.kind;
        match self.action {
            Action::Get => format!("read the specified {kind}"),
            Action::List => format!("list objects of kind {kind}"),
            Action::Create => format!("create a {kind}"),
            Action::Replace => format!("replace the specified {kind}"),
            Action::Patch => format!("partially update the specified {kind}"),
            Action::Delete => format!("delete a {kind}"),
            Action::DeleteCollection => format!("delete collection of {kind}"),
        }
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

    fn parameters(&self) -> Vec<Value> {
        let mut parameters: Vec<(&str, &str, &str)> = match self.action {
            Action::Get => vec![RESOURCE_VERSION],
            Action::List => LIST.iter().copied().chain([RESOURCE_VERSION]).collect(),
            Action::Create | Action::Replace => vec![DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION],
            Action::Patch => vec![DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION, FORCE],
            Action::Delete => DELETE.iter().copied().chain([DRY_RUN]).collect(),
            Action::DeleteCollection => {
                DELETE.iter().chain(&LIST).copied().chain([DRY_RUN, RESOURCE_VERSION]).collect()
            }
        };
        parameters.sort_unstable();
        parameters
            .into_iter()
            .map(|(name, kind, description)| {
                json!({"name": name, "in": "query", "description": description,
                    "schema": {"type": kind, "uniqueItems": true}})
            })
            .collect()
    }

    fn request_content(&self, body: Body) -> Option<Value> {
        let patch = format!("{META}.Patch");
        let options = format!("{META}.DeleteOptions");
        match body {
            Body::None => None,
            Body::Object => Some(content(&["application/json", "application/yaml"], &self.sent)),
            Body::DeleteOptions => Some(content(&["application/json", "application/yaml"], &options)),
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
        let answer = content(&["application/json", "application/yaml"], &self.answer);
        let mut responses = Map::new();
        responses.insert("200".into(), json!({"description": "OK", "content": answer}));
        if matches!(self.action, Action::Create | Action::Replace) {
            responses.insert("201".into(), json!({"description": "Created", "content": answer}));
        }
        if self.action == Action::Create {
            responses.insert("202".into(), json!({"description": "Accepted", "content": answer}));
        }
        responses.insert("401".into(), json!({"description": "Unauthorized"}));
        Value::Object(responses)
    }
}

/// A parameter that stands in the path itself.
pub(super) fn path_parameter(name: &str, description: &str) -> Value {
    json!({"name": name, "in": "path", "description": description, "required": true,
        "schema": {"type": "string", "uniqueItems": true}})
}

pub(super) fn pretty() -> Value {
    json!({"name": "pretty", "in": "query", "description": "`true` asks for indented output",
        "schema": {"type": "string", "uniqueItems": true}})
}

fn content(types: &[&str], schema: &str) -> Value {
    let reference = json!({"schema": {"$ref": format!("#/components/schemas/{schema}")}});
    types.iter().map(|kind| ((*kind).to_owned(), reference.clone())).collect::<Map<_, _>>().into()
}

/// `core_v1`, `insightsOpenshiftIo_v1alpha1`.
fn tag(row: &ResourceInfo) -> String {
    let group = if row.group.is_empty() { "core" } else { row.group.trim_end_matches(".k8s.io") };
    let mut words = group.split(['.', '-']);
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    format!("{camel}_{}", row.version)
}
