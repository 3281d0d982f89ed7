//! Runs samples against public policies, each group of cases with its own policy, binding and params.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;

use serde_json::Value;

use super::admission::Scenario;
use super::vap_matrix::Reviewed;
use super::{Cases, Kind};
use crate::corpus::{CorpusError, Folder};

const KEYS: &[&str] = &["policyFile", "admissionReview", "recorded", "actual"];

pub(crate) const KIND: Kind = Kind { recognises: |folder| folder.has_row_with(KEYS), cases };

fn cases(folder: &Folder) -> Result<Cases, CorpusError> {
    let crds = crds(folder)?;
    let mut scenarios: HashMap<String, Arc<Scenario>> = HashMap::new();
    let mut cases = Cases::new();
    for row in folder.rows_with(KEYS) {
        let text = |key: &str| row.get(key).and_then(Value::as_str).unwrap_or_default();
        let Some(review) = row.get("admissionReview").filter(|review| !review.is_null()) else { continue };
        if !matches!(text("actual"), "pass" | "fail" | "warn") {
            continue;
        }
        let file = text("policyFile").to_owned();
        let scenario = match scenarios.get(&file) {
            Some(scenario) => Arc::clone(scenario),
            None => {
                let mut documents = crds.clone();
                documents.extend(folder.manifests(&file)?);
                let scenario = Arc::new(Scenario::of(documents));
                scenarios.insert(file, Arc::clone(&scenario));
                scenario
            }
        };
        cases.push(Box::new(Reviewed {
            id: text("id").to_owned(),
            review: review.clone(),
            recorded: row.get("recorded").cloned().unwrap_or_default(),
            scenario,
        }));
    }
    Ok(cases)
}

/// The definitions of the param kinds, if there are any.
fn crds(folder: &Folder) -> Result<Vec<Value>, CorpusError> {
    let Ok(entries) = fs::read_dir(folder.path.join("crds")) else { return Ok(Vec::new()) };
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let mut documents = Vec::new();
    for name in names {
        documents.extend(folder.manifests(&format!("crds/{name}"))?);
    }
    Ok(documents)
}
