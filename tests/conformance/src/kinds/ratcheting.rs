//! Runs rows of one update each: an object was stored under a permissive schema, and is then updated under the real one.
//! The definitions are in `crds/` beside the rows.

use std::sync::Arc;

use admit_policy::EvalOptions;
use admit_policy::crd::{CompiledCrd, Write, Written};
use admit_policy::manifest;
use serde_json::Value;

use super::Case;
use super::custom_resource::{causes, same_object, warnings};
use crate::corpus::{CorpusError, Folder};
use crate::report::{Aspect, Check};

const KEYS: &[&str] = &["id", "crdKind", "change", "request", "outcome"];

pub(super) fn cases(folder: &Folder) -> Result<Vec<Box<dyn Case>>, CorpusError> {
    if folder.rows_with(KEYS).next().is_none() {
        return Ok(Vec::new());
    }
    let file = "crds/standard-install.yaml";
    let documents = manifest::read(file, &folder.text(file)?).map_err(|errors| CorpusError::Content {
        path: folder.path.join(file),
        problem: errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
    })?;
    let compiled =
        documents.iter().filter_map(|document| CompiledCrd::compile(&document.value).ok()).map(Arc::new);
    let definitions: Vec<Arc<CompiledCrd>> = compiled.collect();
    let case = |row: &Value| -> Box<dyn Case> {
        let kind = row.get("crdKind").and_then(Value::as_str).unwrap_or_default();
        let definition = definitions.iter().find(|compiled| compiled.definition().names.kind == kind);
        Box::new(Update {
            id: row.get("id").and_then(Value::as_str).unwrap_or_default().to_owned(),
            definition: definition.cloned(),
            row: row.clone(),
        })
    };
    Ok(folder.rows_with(KEYS).map(case).collect())
}

struct Update {
    id: String,
    definition: Option<Arc<CompiledCrd>>,
    row: Value,
}

impl Case for Update {
    fn id(&self) -> &str {
        &self.id
    }

    fn run(&self) -> Vec<Check> {
        let body = self.row.get("request").cloned().unwrap_or_default();
        let api_version = body.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        let name = api_version.rsplit('/').next().unwrap_or_default();
        let Some((definition, version)) =
            self.definition.as_deref().and_then(|definition| Some((definition, definition.version(name)?)))
        else {
            return vec![Check::new(Aspect::Verdict, "a definition that compiles", "none")];
        };
        // Reading from the store fills in the defaults of the schema of the day.
        let old = self.row.get("stored").filter(|stored| !stored.is_null()).cloned().map(|mut stored| {
            version.default(&mut stored);
            version.prune(&mut stored);
            stored
        });
        let write = Write {
            crd: definition,
            version,
            old: old.as_ref(),
            status: false,
            eval: EvalOptions::default(),
        };
        let Written { mut object, errors, warnings: told, interrupted: _ } = write.decide(&body);
        let accepted = self.row.get("outcome").and_then(Value::as_u64).is_some_and(|code| code < 300);
        let mut checks = vec![Check::new(Aspect::Verdict, accepted, errors.is_empty())];
        checks.extend(causes(&self.row, &errors));
        checks.extend(warnings(&self.row, &told));
        if let Some(expected) = self.row.get("object") {
            // The answer is read back from the store, which fills in defaults once more.
            version.default(&mut object);
            checks.push(same_object(expected, &object));
        }
        checks
    }
}
