//! Runs rows of public suites for custom resources: builds the requests from the suites, and compares the answers.
//! The suites and the definitions are beside the rows.

use std::collections::HashMap;
use std::sync::Arc;

use admit_apimachinery::yaml;
use admit_policy::EvalOptions;
use admit_policy::crd::{CompiledCrd, Scope, Write, Written};
use serde_json::{Value, json};

use super::custom_resource::{causes, same_object, warnings};
use super::{Case, Kind};
use crate::corpus::{CorpusError, Folder};
use crate::report::{Aspect, Check};

pub(super) const KIND: Kind = Kind { recognises, cases };

const KEYS: &[&str] = &["suite", "kind", "index", "crds", "steps"];

fn recognises(folder: &Folder) -> bool {
    folder.has_row_with(KEYS)
}

fn cases(folder: &Folder) -> Result<Vec<Box<dyn Case>>, CorpusError> {
    let mut files = Files { folder, texts: HashMap::new(), definitions: HashMap::new() };
    let mut cases: Vec<Box<dyn Case>> = Vec::new();
    for row in folder.rows_with(KEYS) {
        let text = |key: &str| row.get(key).and_then(Value::as_str).unwrap_or_default();
        let (kind, index) = (text("kind"), row.get("index").and_then(Value::as_u64).unwrap_or_default());
        let suite = files.document(text("suite"))?;
        let case = suite.pointer(&format!("/tests/{kind}/{index}")).cloned().unwrap_or_default();
        for crd in row.get("crds").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            cases.push(Box::new(SuiteCase {
                id: format!("{}/{kind}/{index}/{crd}", text("suite")),
                definition: files.definition(crd, text("version"))?,
                case: case.clone(),
                steps: row.get("steps").and_then(Value::as_array).cloned().unwrap_or_default(),
            }));
        }
    }
    Ok(cases)
}

/// A compiled definition, or why there is none.
type Definition = Result<Arc<CompiledCrd>, String>;

/// The files that rows name, each read once.
struct Files<'f> {
    folder: &'f Folder,
    texts: HashMap<String, Value>,
    definitions: HashMap<(String, String), Definition>,
}

impl Files<'_> {
    fn document(&mut self, file: &str) -> Result<Value, CorpusError> {
        if let Some(known) = self.texts.get(file) {
            return Ok(known.clone());
        }
        let value = yaml(&self.folder.text(file)?).map_err(|problem| self.problem(file, problem))?;
        self.texts.insert(file.to_owned(), value.clone());
        Ok(value)
    }

    /// The definition with one version alone, served and stored.
    fn definition(&mut self, file: &str, version: &str) -> Result<Definition, CorpusError> {
        let key = (file.to_owned(), version.to_owned());
        if let Some(known) = self.definitions.get(&key) {
            return Ok(known.clone());
        }
        let mut manifest = self.document(file)?;
        if let Some(versions) = manifest.pointer_mut("/spec/versions").and_then(Value::as_array_mut) {
            versions.retain(|candidate| candidate.get("name").is_some_and(|name| name == version));
            for kept in versions {
                if let Some(kept) = kept.as_object_mut() {
                    kept.insert("served".to_owned(), true.into());
                    kept.insert("storage".to_owned(), true.into());
                }
            }
        }
        if let Some(definition) = manifest.as_object_mut() {
            definition.shift_remove("status");
        }
        let compiled = CompiledCrd::compile(&manifest)
            .map(Arc::new)
            .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
        self.definitions.insert(key, compiled.clone());
        Ok(compiled)
    }

    fn problem(&self, file: &str, problem: String) -> CorpusError {
        CorpusError::Content { path: self.folder.path.join(file), problem }
    }
}

fn yaml(text: &str) -> Result<Value, String> {
    let mut documents = yaml::parse(text).map_err(|error| error.to_string())?;
    if documents.is_empty() { Ok(Value::Null) } else { Ok(documents.swap_remove(0).value) }
}

struct SuiteCase {
    id: String,
    definition: Definition,
    case: Value,
    steps: Vec<Value>,
}

impl Case for SuiteCase {
    fn id(&self) -> &str {
        &self.id
    }

    fn run(&self) -> Vec<Check> {
        let definition = match &self.definition {
            Ok(definition) => definition,
            Err(problem) => {
                return vec![Check::new(Aspect::Verdict, "a definition that compiles", problem.as_str())];
            }
        };
        let mut stored: Option<Value> = None;
        let mut checks = Vec::new();
        for step in &self.steps {
            let name = step.get("step").and_then(Value::as_str).unwrap_or_default();
            checks.extend(self.step(definition, name, step, stored.as_ref()));
            if let Some(object) = step.get("object") {
                stored = Some(object.clone());
            }
        }
        checks
    }
}

impl SuiteCase {
    fn step(&self, definition: &CompiledCrd, name: &str, step: &Value, stored: Option<&Value>) -> Vec<Check> {
        // The first object is stored under the patched definition, which is not what is asked.
        if matches!(name, "create" | "createStatus") && self.case.get("initialCRDPatches").is_some() {
            return Vec::new();
        }
        let body = match name {
            "create" | "createStatus" => self.body(definition, "initial"),
            "touch" => stored.cloned().ok_or_else(|| "nothing stored".to_owned()),
            _ => self.body(definition, "updated"),
        };
        let body = match body {
            Ok(body) => body,
            Err(problem) => return vec![Check::new(Aspect::Verdict, "a body", problem)],
        };
        let Some(version) = definition.versions().first() else { return Vec::new() };
        let old = stored.filter(|_| name != "create").cloned().map(|mut old| {
            version.default(&mut old);
            version.prune(&mut old);
            old
        });
        let write = Write {
            crd: definition,
            version,
            old: old.as_ref(),
            status: name.ends_with("Status"),
            eval: EvalOptions::default(),
        };
        let Written { mut object, errors, warnings: told, interrupted: _ } = write.decide(&body);
        let accepted = step.get("outcome").and_then(Value::as_u64).is_some_and(|code| code < 300);
        let mut checks = vec![Check::new(Aspect::Verdict, accepted, errors.is_empty())];
        checks.extend(causes(step, &errors));
        checks.extend(warnings(step, &told));
        if let Some(expected) = step.get("object") {
            version.default(&mut object);
            checks.push(same_object(expected, &object));
        }
        checks
    }

    /// A body of the suite with the metadata that the run gave it.
    fn body(&self, definition: &CompiledCrd, key: &str) -> Result<Value, String> {
        let mut body = yaml(self.case.get(key).and_then(Value::as_str).unwrap_or_default())?;
        whole_floats(&mut body);
        let map = body.as_object_mut().ok_or("no object")?;
        let metadata = map.entry("metadata").or_insert_with(|| json!({}));
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("generateName".to_owned(), "test-".into());
            metadata.entry("name").or_insert_with(|| "test-00000".into());
            if definition.definition().scope == Scope::Namespaced {
                metadata.insert("namespace".to_owned(), "default".into());
            }
        }
        Ok(body)
    }
}

/// The client that made the requests sends whole floats as integers.
fn whole_floats(value: &mut Value) {
    match value {
        Value::Number(number) if number.as_i64().is_none() => {
            #[expect(clippy::cast_possible_truncation, reason = "only what is whole and small is replaced")]
            if let Some(whole) = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e15) {
                *value = Value::from(whole as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_floats),
        Value::Object(map) => map.values_mut().for_each(whole_floats),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
