//! Finds policies, and definitions with rules, that no case reached, for `--require-tests`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use admit_apimachinery::pointer;
use admit_policy::manifest::{self, Document, LoadError};

use super::coverage::Ledger;
use crate::cli::load;
use crate::cli::process::Fault;

/// Returns untested documents among the manifests at `paths`, each as a mistake with its position.
///
/// # Errors
/// When a path cannot be read.
pub(super) fn untested(paths: &[PathBuf], ledger: &Ledger) -> Result<Vec<LoadError>, Fault> {
    let reached = ledger.reached();
    let mut untested = Vec::new();
    for path in paths.iter().filter(|path| path.as_os_str() != "-") {
        for file in load::files(path)? {
            let text = file.text()?;
            let name = load::normal(&file.path).display().to_string();
            let (documents, _) =
                manifest::read_leniently(&name, &text).map_err(|errors| load::not_compiled(&errors))?;
            untested.extend(documents.iter().filter_map(|document| missing(document, &reached)));
        }
    }
    Ok(untested)
}

fn missing(document: &Document, reached: &BTreeSet<(String, String)>) -> Option<LoadError> {
    let text = |pointer: &str| pointer::text(&document.value, pointer);
    let has = |part: &str| document.value.to_string().contains(part);
    let has_rules = match text("/kind") {
        "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy" => true,
        "CustomResourceDefinition" => has("\"x-kubernetes-validations\""),
        // Kinds of API server configuration, webhooks and devices.
        "AuthenticationConfiguration" | "AuthorizationConfiguration" => {
            has("\"expression\"") || has("\"valueExpression\"")
        }
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" | "DeviceClass" => {
            has("\"expression\"")
        }
        _ => false,
    };
    let name = text("/metadata/name");
    if !has_rules || reached.iter().any(|(kind, reached)| kind == text("/kind") && reached == name) {
        return None;
    }
    Some(
        document.mistake(format!(
            "{} `{name}` is reached by no case; `admit init` writes a suite",
            text("/kind")
        )),
    )
}
