//! Runs policies of one file each on the AdmissionReview request of a recorded write, with their own bindings, and with
//! a denying binding if they only warn; and policies that must be refused, with the recorded Status.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;

use admit_policy::Request;
use serde_json::{Value, json};

use super::admission::{Scenario, compare};
use super::policy_create::Creation;
use super::{Case, Cases, Kind};
use crate::corpus::{CorpusError, Folder};
use crate::report::{Aspect, Check};

const KEYS: &[&str] = &["policyFile", "case", "request", "recorded"];
const REFUSED_KEYS: &[&str] = &["policy", "body", "recorded"];

pub(crate) const KIND: Kind = Kind { recognises: |folder| folder.has_row_with(KEYS), cases };

struct Write {
    id: String,
    request: Value,
    /// Objects that exist beside the params of the corpus.
    beside: Vec<Value>,
    recorded: Value,
    scenario: Arc<Scenario>,
}

impl Case for Write {
    fn id(&self) -> &str {
        &self.id
    }

    fn run(&self) -> Vec<Check> {
        match Request::from_value(&self.request) {
            Ok(request) => compare(&request, &self.recorded, &self.scenario.decide(&request, &self.beside)),
            Err(error) => vec![Check::new(Aspect::Verdict, "a request", error.to_string())],
        }
    }
}

fn cases(folder: &Folder) -> Result<Cases, CorpusError> {
    let mut scenarios: HashMap<(String, bool), Arc<Scenario>> = HashMap::new();
    let shared = shared_documents(folder)?;
    let mut cases = Cases::new();
    for row in folder.rows_with(KEYS) {
        let text = |key: &str| row.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let Some(request) = row.get("request").filter(|request| !request.is_null()) else { continue };
        for (key, deny) in [("recorded", false), ("recordedWithDeny", true)] {
            let Some(recorded) = row.get(key).filter(|recorded| !recorded.is_null()) else { continue };
            let file = text("policyFile");
            let scenario = match scenarios.get(&(file.clone(), deny)) {
                Some(scenario) => Arc::clone(scenario),
                None => {
                    let mut documents = shared.clone();
                    documents.extend(folder.manifests(&file)?);
                    if deny {
                        documents.iter_mut().for_each(bind_with_deny);
                    }
                    let scenario = Arc::new(Scenario::of(documents));
                    scenarios.insert((file, deny), Arc::clone(&scenario));
                    scenario
                }
            };
            cases.push(Box::new(Write {
                id: if deny { format!("{} with Deny", text("case")) } else { text("case") },
                request: request.clone(),
                beside: param_objects(row, &scenario),
                recorded: recorded.clone(),
                scenario,
            }));
        }
    }
    for row in folder.rows_with(REFUSED_KEYS) {
        cases.extend(Creation::of_refused(row).map(|case| Box::new(case) as Box<dyn Case>));
    }
    Ok(cases)
}

/// CRDs and params, in force in every case.
fn shared_documents(folder: &Folder) -> Result<Vec<Value>, CorpusError> {
    let mut documents = Vec::new();
    for part in ["crds", "params"] {
        let Ok(entries) = fs::read_dir(folder.path.join(part)) else { continue };
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        for name in names {
            documents.extend(folder.manifests(&format!("{part}/{name}"))?);
        }
    }
    Ok(documents)
}

/// A param object of a case that is no ConfigMap was created beside the object, as one of the policy's param kind.
fn param_objects(row: &Value, scenario: &Scenario) -> Vec<Value> {
    let Some(param) = row.get("params").filter(|param| param.get("metadata").is_some()) else {
        return Vec::new();
    };
    let kind = scenario.documents().iter().find_map(|document| document.pointer("/spec/paramKind"));
    let mut param = param.clone();
    if let (Value::Object(fields), Some(kind)) = (&mut param, kind) {
        for key in ["apiVersion", "kind"] {
            fields.insert(key.to_owned(), kind.get(key).cloned().unwrap_or_default());
        }
    }
    vec![param]
}

fn bind_with_deny(document: &mut Value) {
    if let Some(actions) = document.pointer_mut("/spec/validationActions") {
        *actions = json!(["Deny"]);
    }
}
