//! Writes counterexamples as a suite.

use std::path::Path;

use admit_analysis::prove::Verdict;
use serde_json::json;

use super::answer::Answer;
use crate::cli::process::{self, Fault};
use crate::cli::{render, whole};

/// Writes the requests that break claims, each with the decision of the last side.
pub(super) fn write(file: &Path, answers: &[Answer]) -> Result<(), Fault> {
    let mut cases = Vec::new();
    let mut documents: Vec<&str> = Vec::new();
    for answer in answers {
        let Verdict::Refuted(found) = &answer.verdict else { continue };
        let (Some(said), Some((document, _)), Some(name)) =
            (found.said.last(), answer.places.last(), answer.names.last())
        else {
            continue;
        };
        if !documents.contains(&document.as_str()) {
            documents.push(document);
        }
        let mut case = json!({
            "name": case_name(answer),
            "object": found.object,
            "expect": if said.denied { "deny" } else { "allow" },
        });
        if let Some(fields) = case.as_object_mut() {
            if let Some(old) = &found.old_object {
                fields.insert("oldObject".to_owned(), old.clone());
            }
            if !found.subresource.is_empty() {
                fields.insert("subresource".to_owned(), found.subresource.as_str().into());
            }
            if answer.is_policy {
                fields.insert("policies".to_owned(), json!([name]));
            }
        }
        cases.push(case);
    }
    if cases.is_empty() {
        process::warn("no request breaks a claim: no suite is written");
        return Ok(());
    }
    let documents: Vec<String> = documents.into_iter().map(absolute).collect();
    let suite = json!({"apiVersion": "admit/v1", "kind": "Suite", "documents": documents, "cases": cases});
    whole::write(file, &render::json(&suite))
}

fn case_name(answer: &Answer) -> String {
    match &answer.at {
        Some(at) => format!("{} {} {}", answer.claim, answer.kind, at.place),
        None => format!("{} {}", answer.claim, answer.names.join(" ")),
    }
}

/// Makes a path absolute, because suites resolve relative paths from their own folder.
fn absolute(path: &str) -> String {
    std::path::absolute(path).map_or_else(|_| path.to_owned(), |path| path.display().to_string())
}
