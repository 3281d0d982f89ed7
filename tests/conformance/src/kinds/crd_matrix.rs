//! Runs rows of requests for custom resources that a server answered: creations, updates and status updates of objects
//! and of definitions are decided again from their bodies. What only a server can answer (patches, tables, conflicts,
//! other content types) is not run.

use std::collections::HashMap;
use std::sync::Arc;

use admit_policy::EvalOptions;
use admit_policy::crd::{CompiledCrd, Write, Written};
use admit_policy::json;
use serde_json::{Map, Value, json};

use super::custom_resource::{causes, same_object, warnings};
use super::{Case, Kind, ratcheting};
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
    let mut cases: Vec<_> = folder.rows_with(KEYS).map(case).collect();
    cases.extend(ratcheting::cases(folder)?);
    Ok(cases)
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
    /// As it was sent, with the status that the server gave it.
    manifest: Option<Value>,
    definition: Option<Arc<CompiledCrd>>,
    objects: HashMap<String, Value>,
}

impl Server {
    fn register(&mut self, manifest: &Value) {
        self.definition = CompiledCrd::compile(manifest).ok().map(Arc::new);
        let mut manifest = manifest.clone();
        if let Some(fields) = manifest.as_object_mut() {
            let established = json!([{"type": "Established", "status": "True"}]);
            fields.insert("status".to_owned(), json!({"conditions": established}));
        }
        self.manifest = Some(manifest);
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
        let result = match self.manifest.as_ref().filter(|_| op != "createCRD") {
            Some(stored) => CompiledCrd::compile_update(body, stored),
            None => CompiledCrd::compile(body),
        };
        let mut checks = vec![Check::new(Aspect::Verdict, accepted, result.is_ok())];
        checks.extend(causes(step, result.as_ref().err().map_or(&[], Vec::as_slice)));
        if accepted {
            self.stored(step, body);
        }
        checks
    }

    /// A definition keeps the versions that it was ever stored in.
    fn stored(&mut self, step: &Value, body: &Value) {
        let before = self.manifest.take();
        let known = before.as_ref().and_then(|stored| stored.pointer("/status/storedVersions")).cloned();
        self.register(body);
        let status = self.manifest.as_mut().and_then(|manifest| manifest.get_mut("status"));
        let Some(status) = status.and_then(Value::as_object_mut) else { return };
        if let Some(conditions) = step.get("conditions") {
            status.insert("conditions".to_owned(), conditions.clone());
        }
        let versions = body.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
        let storage = versions.filter(|version| version.get("storage") == Some(&true.into()));
        let mut names = known.and_then(|known| known.as_array().cloned()).unwrap_or_default();
        for name in storage.filter_map(|version| version.get("name")) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        status.insert("storedVersions".to_owned(), names.into());
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
        // What the store has is read with today's schema.
        let old = old.cloned().map(|mut old| {
            version.default(&mut old);
            version.prune(&mut old);
            old
        });
        let write = Write {
            crd: definition,
            version,
            old: old.as_ref(),
            status: op == "updateStatus",
            eval: EvalOptions::default(),
        };
        let Written { mut object, errors, warnings: told, interrupted: _ } = write.decide(body);
        let mut checks = vec![Check::new(Aspect::Verdict, accepted, errors.is_empty())];
        checks.extend(causes(step, &errors));
        checks.extend(warnings(step, &told));
        let stored = definition.definition().versions.iter().any(|v| v.storage && v.name == version.name());
        if let Some(expected) = step.get("object").filter(|_| stored) {
            // The answer is read back from the store, which fills in defaults once more.
            version.default(&mut object);
            checks.push(same_object(expected, &object));
        }
        checks
    }
}

/// The body as JSON; none where the request's text is no plain JSON.
fn body(step: &Value) -> Option<Value> {
    if step.get("contentType").is_some() {
        return None;
    }
    match step.get("rawBody").and_then(Value::as_str) {
        Some(text) => json::parse(text.as_bytes()).ok().map(|document| document.value),
        None => step.get("body").cloned().map(with_times),
    }
}

/// Times that a client sent are masked as well; any of them will do.
fn with_times(body: Value) -> Value {
    match body {
        Value::String(text) if text == "<time>" => "2020-02-02T02:02:02Z".into(),
        Value::Array(items) => items.into_iter().map(with_times).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, with_times(value))).collect::<Map<_, _>>().into()
        }
        other => other,
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

fn name_of(object: &Value) -> String {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned()
}
