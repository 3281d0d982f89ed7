//! Rows of requests for custom resources, as a server answered them: creations, updates and status updates of objects
//! and of definitions are decided again from their bodies. What only a server can answer (patches, tables, conflicts,
//! other content types) is not asked.

use std::collections::HashMap;
use std::sync::Arc;

use admit_policy::crd::{CompiledCrd, CrdVersion, Scope, ValidateOptions};
use admit_policy::error::FieldError;
use admit_policy::path::Path;
use admit_policy::schema::metadata::{self, Malformed};
use admit_policy::{go_text, names};
use serde_json::{Map, Value};

use super::{Case, Kind};
use crate::corpus::{CorpusError, Folder};
use crate::report::{Aspect, Check};

pub(super) const KIND: Kind = Kind { recognises, cases };

const KEYS: &[&str] = &["id", "feature", "steps"];

fn recognises(folder: &Folder) -> bool {
    folder.has_row_with(KEYS)
}

fn cases(folder: &Folder) -> Result<Vec<Box<dyn Case>>, CorpusError> {
    let definitions: HashMap<&str, &Value> = folder
        .rows_with(&["crd", "manifest"])
        .filter_map(|row| Some((row.get("crd")?.as_str()?, row.get("manifest")?)))
        .collect();
    let case = |row: &Value| -> Box<dyn Case> {
        let definition = row.get("crd").and_then(Value::as_str).and_then(|key| definitions.get(key));
        Box::new(Sequence {
            id: row.get("id").and_then(Value::as_str).unwrap_or_default().to_owned(),
            definition: definition.map(|definition| (*definition).clone()),
            steps: row.get("steps").and_then(Value::as_array).cloned().unwrap_or_default(),
        })
    };
    Ok(folder.rows_with(KEYS).map(case).collect())
}

struct Sequence {
    id: String,
    definition: Option<Value>,
    steps: Vec<Value>,
}

impl Case for Sequence {
    fn id(&self) -> &str {
        &self.id
    }

    fn run(&self) -> Vec<Check> {
        let mut server = Server::default();
        if let Some(definition) = &self.definition {
            server.register(definition);
        }
        self.steps.iter().flat_map(|step| server.step(step)).collect()
    }
}

/// What the steps so far have stored; every recorded answer replaces our own, so that each step stands alone.
#[derive(Default)]
struct Server {
    definition: Option<Arc<CompiledCrd>>,
    objects: HashMap<String, Value>,
}

impl Server {
    fn register(&mut self, manifest: &Value) {
        self.definition = CompiledCrd::compile(manifest).ok().map(Arc::new);
    }

    fn step(&mut self, step: &Value) -> Vec<Check> {
        let op = step.get("op").and_then(Value::as_str).unwrap_or_default();
        let body = body(step);
        let checks = match (op, &body) {
            ("create" | "update" | "updateStatus", Some(body)) => self.object_step(op, step, body),
            ("createCRD" | "crdUpdate" | "updateCRD", Some(body)) => self.definition_step(op, step, body),
            _ => Vec::new(),
        };
        if let Some(object) = step.get("object").filter(|object| object.is_object()) {
            self.objects.insert(name_of(object), object.clone());
        }
        checks
    }

    fn definition_step(&mut self, op: &str, step: &Value, body: &Value) -> Vec<Check> {
        let Some(accepted) = verdict(step) else { return Vec::new() };
        if op != "createCRD" {
            if accepted {
                self.register(body);
            }
            return Vec::new();
        }
        let result = CompiledCrd::compile(body);
        let mut checks = vec![Check::new(Aspect::Verdict, accepted, result.is_ok())];
        checks.extend(causes(step, result.as_ref().err().map_or(&[], Vec::as_slice)));
        if let Ok(compiled) = result {
            self.definition = Some(Arc::new(compiled));
        }
        checks
    }

    fn object_step(&self, op: &str, step: &Value, body: &Value) -> Vec<Check> {
        let (Some(accepted), Some(definition)) = (verdict(step), &self.definition) else { return Vec::new() };
        let path = step.get("path").and_then(Value::as_str).unwrap_or_default();
        let version = path.split('/').nth(3).and_then(|version| definition.version(version));
        let Some(version) = version else { return Vec::new() };
        let old = (op != "create").then(|| self.objects.get(&name_of(body))).flatten();
        if op != "create" && old.is_none() {
            return Vec::new();
        }
        let request = Request { definition, version, old, status: op == "updateStatus" };
        let (mut object, errors) = request.decide(&request.addressed(body));
        let mut checks = vec![Check::new(Aspect::Verdict, accepted, errors.is_empty())];
        checks.extend(causes(step, &errors));
        let stored = definition.definition().versions.iter().any(|v| v.storage && v.name == version.name());
        if let Some(expected) = step.get("object").filter(|_| stored) {
            // The answer is read back from the store, which fills in defaults once more.
            version.default(&mut object);
            // As Go writes it: a whole float has no fraction.
            let text = |object: &Value| go_text::json(&without_metadata(object));
            checks.push(Check::new(Aspect::Text, text(expected), text(&object)));
        }
        checks
    }
}

struct Request<'a> {
    definition: &'a CompiledCrd,
    version: &'a CrdVersion,
    old: Option<&'a Value>,
    status: bool,
}

impl Request<'_> {
    /// The body with what the server makes of its metadata before it looks at anything: a generated name, and the
    /// namespace of the path.
    fn addressed(&self, body: &Value) -> Value {
        let mut body = body.clone();
        let cluster = self.definition.definition().scope == Scope::Cluster;
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
            if cluster {
                metadata.shift_remove("namespace");
            }
            let text = |key: &str| metadata.get(key).and_then(Value::as_str).unwrap_or_default();
            if text("name").is_empty() && !text("generateName").is_empty() {
                let name = format!("{}XXXXX", text("generateName"));
                metadata.insert("name".to_owned(), name.into());
            }
        }
        body
    }

    /// Reads the body as the server does and validates it.
    fn decide(&self, body: &Value) -> (Value, Vec<FieldError>) {
        let mut object = body.clone();
        self.version.default(&mut object);
        self.version.prune(&mut object);
        if let Err(error) = self.version.coerce_metadata(&mut object, Malformed::Drop) {
            return (object, vec![*error]);
        }
        let object = self.prepared(object);
        let mut errors = if self.old.is_none() { self.metadata_errors(&object) } else { Vec::new() };
        let options = ValidateOptions { status: self.status, earlier: &errors };
        let found = self.version.validate(&object, self.old, &options);
        errors.extend(found.errors);
        (object, errors)
    }

    /// With a status subresource, one request changes the status and another everything else.
    fn prepared(&self, mut object: Value) -> Value {
        let name = self.version.name();
        let split =
            self.definition.definition().version(name).is_some_and(|version| version.status_subresource);
        let status = |object: &Value| object.get("status").cloned();
        match self.old {
            Some(old) if self.status => {
                let mut kept = old.clone();
                set_status(&mut kept, status(&object));
                kept
            }
            Some(old) if split => {
                set_status(&mut object, status(old));
                object
            }
            None if split => {
                set_status(&mut object, None);
                object
            }
            _ => object,
        }
    }

    fn metadata_errors(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let empty = Map::new();
        let mut fields = object.get("metadata").and_then(Value::as_object).unwrap_or(&empty).clone();
        let path = Path::Root("metadata");
        let namespaced = self.definition.definition().scope == Scope::Namespaced;
        if namespaced {
            fields.entry("namespace").or_insert_with(|| "default".into());
        }
        let text = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default();
        for problem in names::subdomain_name(text("generateName"), true) {
            if !text("generateName").is_empty() {
                errors.push(FieldError::invalid("metadata.generateName", text("generateName"), problem));
            }
        }
        let name = text("name");
        if name.is_empty() {
            errors.push(FieldError::required("metadata.name", "name or generateName is required"));
        } else if !generated(&fields) || !names::subdomain_name(text("generateName"), true).is_empty() {
            let problems = names::subdomain_name(name, false);
            errors.extend(
                problems.into_iter().map(|problem| FieldError::invalid("metadata.name", name, problem)),
            );
        }
        metadata::validate_object_meta(&fields, namespaced, &path, &mut errors);
        errors
    }
}

/// Whether the name is one of ours, whose masked end is no valid one.
fn generated(fields: &Map<String, Value>) -> bool {
    let text = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default();
    text("name").strip_suffix("XXXXX").is_some_and(|start| !start.is_empty() && start == text("generateName"))
}

fn set_status(object: &mut Value, status: Option<Value>) {
    let Some(map) = object.as_object_mut() else { return };
    match status {
        Some(status) => {
            map.insert("status".to_owned(), status);
        }
        None => {
            map.shift_remove("status");
        }
    }
}

/// The body as JSON; none where the request's text is no plain JSON.
fn body(step: &Value) -> Option<Value> {
    if step.get("contentType").is_some() {
        return None;
    }
    match step.get("rawBody").and_then(Value::as_str) {
        Some(text) => serde_json::from_str(text).ok(),
        None => step.get("body").cloned(),
    }
}

/// Whether the request was accepted; none where it was refused for what is no matter of validation: query parameters,
/// what an update may do to metadata.
fn verdict(step: &Value) -> Option<bool> {
    let causes = step.pointer("/status/details/causes").and_then(Value::as_array);
    let fields = causes.into_iter().flatten().filter_map(|cause| cause.get("field")?.as_str());
    let is_update = step.get("op").and_then(Value::as_str).is_some_and(|op| op.starts_with("update"));
    for field in fields {
        if matches!(field, "fieldValidation" | "dryRun") || (is_update && field.starts_with("metadata.")) {
            return None;
        }
    }
    match step.get("outcome").and_then(Value::as_u64)? {
        200 | 201 => Some(true),
        422 => Some(false),
        _ => None,
    }
}

/// The causes of a refusal: their fields, then their whole texts, as sets.
pub(super) fn causes(step: &Value, errors: &[FieldError]) -> Vec<Check> {
    let Some(expected) = step.pointer("/status/details/causes").and_then(Value::as_array) else {
        return Vec::new();
    };
    let text =
        |cause: &Value, key: &str| cause.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let fields = sorted(expected.iter().map(|cause| text(cause, "field")));
    let lines = sorted(expected.iter().map(|cause| {
        format!("{} {}: {}", text(cause, "reason"), text(cause, "field"), text(cause, "message"))
    }));
    let ours = |line: &dyn Fn(&FieldError) -> String| sorted(errors.iter().map(line));
    vec![
        Check::new(Aspect::Path, fields, ours(&|error| error.field.clone())),
        Check::new(
            Aspect::Text,
            lines,
            ours(&|error| {
                let cause = error.cause();
                format!("{} {}: {}", cause.reason, cause.field, cause.message)
            }),
        ),
    ]
}

fn sorted(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut lines: Vec<_> = lines.collect();
    lines.sort();
    lines
}

fn name_of(object: &Value) -> String {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn without_metadata(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(map) = object.as_object_mut() {
        map.shift_remove("metadata");
    }
    object
}
