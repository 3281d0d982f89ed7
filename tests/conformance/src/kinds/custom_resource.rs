//! Requests for custom resources as a server decides them before it stores anything, and how its recorded answers are
//! compared.

use admit_policy::crd::{CompiledCrd, CrdVersion, Scope, ValidateOptions};
use admit_policy::error::FieldError;
use admit_policy::path::Path;
use admit_policy::schema::metadata::{self, Malformed};
use admit_policy::{go_text, names};
use serde_json::{Map, Value};

use crate::report::{Aspect, Check};

/// A creation or update of a custom resource.
pub(super) struct Request<'a> {
    pub(super) definition: &'a CompiledCrd,
    pub(super) version: &'a CrdVersion,
    pub(super) old: Option<&'a Value>,
    pub(super) status: bool,
}

/// What a request leads to.
pub(super) struct Decision {
    pub(super) object: Value,
    pub(super) errors: Vec<FieldError>,
    /// Unknown fields, and failures that were let pass.
    pub(super) warnings: Vec<String>,
}

impl Request<'_> {
    /// The body with what the server makes of its metadata before it looks at anything: a generated name, and the
    /// namespace of the path.
    pub(super) fn addressed(&self, body: &Value) -> Value {
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
    pub(super) fn decide(&self, body: &Value) -> Decision {
        let mut object = body.clone();
        self.version.default(&mut object);
        let mut unknown = self.version.prune(&mut object);
        match self.version.coerce_metadata(&mut object, Malformed::Drop) {
            Ok(more) => unknown.extend(more),
            Err(error) => return Decision { object, errors: vec![*error], warnings: Vec::new() },
        }
        let object = self.prepared(object);
        let mut errors = if self.old.is_none() { self.metadata_errors(&object) } else { Vec::new() };
        let options = ValidateOptions { status: self.status, earlier: &errors };
        let found = self.version.validate(&object, self.old, &options);
        errors.extend(found.errors);
        let mut warnings: Vec<_> = unknown.iter().map(|field| format!("unknown field \"{field}\"")).collect();
        warnings.extend(found.warnings);
        Decision { object, errors, warnings }
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

/// The causes of a refusal: their fields, then their whole texts, as sets.
pub(super) fn causes(answer: &Value, errors: &[FieldError]) -> Vec<Check> {
    let Some(expected) = answer.pointer("/status/details/causes").and_then(Value::as_array) else {
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

/// The warnings of an accepted request: those about its fields, as a set.
pub(super) fn warnings(step: &Value, actual: &[String]) -> Option<Check> {
    // Other parameters change what is warned of, and a refusal warns of nothing that was let pass.
    if step.get("params").is_some()
        || step.get("outcome").and_then(Value::as_u64).is_none_or(|code| code >= 300)
    {
        return None;
    }
    let about_fields = |text: &&str| text.starts_with("unknown field ") || text.contains(": Invalid value: ");
    let recorded = step.get("warnings").and_then(Value::as_array);
    let expected = recorded.into_iter().flatten().filter_map(Value::as_str).filter(about_fields);
    let expected = sorted(expected.map(ToOwned::to_owned));
    Some(Check::new(Aspect::Text, expected, sorted(actual.iter().cloned())))
}

/// An accepted object beside the recorded one, without metadata, as Go writes it: a whole float has no fraction.
pub(super) fn same_object(expected: &Value, actual: &Value) -> Check {
    let text = |object: &Value| go_text::json(&without_metadata(object));
    Check::new(Aspect::Text, text(expected), text(actual))
}

fn without_metadata(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(map) = object.as_object_mut() {
        map.shift_remove("metadata");
    }
    object
}
