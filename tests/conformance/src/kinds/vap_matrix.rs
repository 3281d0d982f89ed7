//! Runs AdmissionReviews against scenarios of policies, one feature each; and creations of policies.

use std::collections::HashMap;
use std::sync::Arc;

use admit_policy::{Request, Review};
use serde_json::Value;

use super::admission::{Scenario, compare};
use super::policy_create::Creation;
use super::{Case, Cases, Kind};
use crate::corpus::{CorpusError, Folder};
use crate::report::{Aspect, Check};

const KEYS: &[&str] = &["scenarioFile", "http", "admissionReview", "recorded"];

pub(crate) const KIND: Kind = Kind { recognises: |folder| folder.has_row_with(KEYS), cases };

/// A recorded admission review, and the answer.
pub(crate) struct Reviewed {
    pub(crate) id: String,
    pub(crate) review: Value,
    pub(crate) recorded: Value,
    pub(crate) scenario: Arc<Scenario>,
}

impl Case for Reviewed {
    fn id(&self) -> &str {
        &self.id
    }

    fn run(&self) -> Vec<Check> {
        let request = match Request::from_review(Review::of(self.review.clone())) {
            Ok(request) => request,
            Err(error) => return vec![Check::new(Aspect::Verdict, "a request", error.to_string())],
        };
        compare(&request, &self.recorded, &self.scenario.decide(&request, &[]))
    }
}

fn cases(folder: &Folder) -> Result<Cases, CorpusError> {
    let mut scenarios: HashMap<String, Arc<Scenario>> = HashMap::new();
    let mut cases = Cases::new();
    for row in folder.rows_with(KEYS) {
        let text = |key: &str| row.get(key).and_then(Value::as_str).unwrap_or_default();
        let recorded = row.get("recorded").cloned().unwrap_or_default();
        let verdict = recorded.get("verdict").and_then(Value::as_str).unwrap_or_default();
        if matches!(verdict, "accepted" | "refused") {
            let body = row.pointer("/http/body").unwrap_or(&Value::Null);
            cases.push(Box::new(Creation::new(text("id"), body, &recorded)));
            continue;
        }
        // Requests that never came to admission, and those that the review alone does not decide.
        let Some(review) = row.get("admissionReview").filter(|review| !review.is_null()) else { continue };
        if verdict == "not-reached" || row.get("sentAs").is_some() {
            continue;
        }
        let file = text("scenarioFile").to_owned();
        let scenario = match scenarios.get(&file) {
            Some(scenario) => Arc::clone(scenario),
            None => {
                let scenario = Arc::new(Scenario::read(folder, &["crds.yaml", &file])?);
                scenarios.insert(file, Arc::clone(&scenario));
                scenario
            }
        };
        cases.push(Box::new(Reviewed {
            id: text("id").to_owned(),
            review: review.clone(),
            recorded,
            scenario,
        }));
    }
    Ok(cases)
}
