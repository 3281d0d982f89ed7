//! Writes the cases that detect surviving mutations as a suite for `admit test`.

use std::path::Path;

use serde_json::{Value, json};

use super::report::Report;
use crate::cli::process::{self, Fault};
use crate::cli::{render, whole};

/// Writes one suite for each set of files that cases need.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn suite(file: &Path, report: &Report) -> Result<(), Fault> {
    let mut suites: Vec<(&[String], Vec<&Value>)> = Vec::new();
    for document in &report.documents {
        for survivor in &document.survivors {
            let case = &survivor.killing.case;
            match suites.iter_mut().find(|(loaded, _)| *loaded == document.loaded.as_slice()) {
                // One request may detect several mutations.
                Some((_, cases)) if cases.iter().any(|known| same_request(known, case)) => {}
                Some((_, cases)) => cases.push(case),
                None => suites.push((&document.loaded, vec![case])),
            }
        }
    }
    let written: Vec<String> = suites
        .into_iter()
        .map(|(loaded, cases)| {
            let documents: Vec<String> = loaded.iter().map(|path| absolute(path)).collect();
            render::json(
                &json!({"apiVersion": "admit/v1", "kind": "Suite", "documents": documents, "cases": cases}),
            )
        })
        .collect();
    if written.is_empty() {
        process::warn("no change is left that a case would see: no suite is written");
        return Ok(());
    }
    whole::write(file, &written.join("---\n"))
}

fn same_request(a: &Value, b: &Value) -> bool {
    let request = |case: &Value| {
        let mut map = case.as_object().cloned().unwrap_or_default();
        map.shift_remove("name");
        map
    };
    request(a) == request(b)
}

/// Makes a path absolute, because suites resolve relative paths from their own folder.
fn absolute(path: &str) -> String {
    std::path::absolute(path).map_or_else(|_| path.to_owned(), |path| path.display().to_string())
}
