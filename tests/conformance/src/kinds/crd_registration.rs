//! Runs rows of definitions: whether they may be stored, with every error.

use admit_apimachinery::field_error::FieldError;
use admit_policy::crd::CompiledCrd;
use serde_json::Value;

use super::{Case, Kind};
use crate::corpus::{CorpusError, Folder};
use crate::report::{Aspect, Check};

pub(super) const KIND: Kind = Kind { recognises, cases };

const KEYS: &[&str] = &["id", "crd", "expect"];

fn recognises(folder: &Folder) -> bool {
    folder.has_row_with(KEYS)
}

fn cases(folder: &Folder) -> Result<Vec<Box<dyn Case>>, CorpusError> {
    let case = |row: &Value| -> Box<dyn Case> {
        Box::new(Registration {
            id: row.get("id").and_then(Value::as_str).unwrap_or_default().to_owned(),
            row: row.clone(),
        })
    };
    Ok(folder.rows_with(KEYS).map(case).collect())
}

struct Registration {
    id: String,
    row: Value,
}

impl Case for Registration {
    fn id(&self) -> &str {
        &self.id
    }

    fn run(&self) -> Vec<Check> {
        let definition = self.row.get("crd").unwrap_or(&Value::Null);
        let result = match self.row.get("oldCrd") {
            None => CompiledCrd::compile(definition),
            Some(old) => CompiledCrd::compile_update(definition, old),
        };
        let errors = result.as_ref().err().map_or(&[][..], Vec::as_slice);
        let expected =
            self.row.pointer("/expect/errors").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let text =
            |error: &Value, key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut checks = vec![Check::new(
            Aspect::Verdict,
            self.row.pointer("/expect/accepted").cloned().unwrap_or_default(),
            errors.is_empty(),
        )];
        // Which of equally expensive rules are named is a matter of chance.
        if self.row.get("unstable").is_some_and(|unstable| unstable != &Value::Bool(false)) {
            let details = |details: Vec<String>| sorted(details);
            checks.push(Check::new(
                Aspect::Text,
                details(expected.iter().map(|error| text(error, "detail")).collect()),
                details(errors.iter().map(|error| error.detail.clone()).collect()),
            ));
            return checks;
        }
        let line = |error: &FieldError| format!("{} {error}", error.kind.reason());
        checks.push(Check::new(
            Aspect::Path,
            sorted(expected.iter().map(|error| text(error, "field")).collect()),
            sorted(errors.iter().map(|error| error.field.clone()).collect()),
        ));
        checks.push(Check::new(
            Aspect::Text,
            sorted(
                expected
                    .iter()
                    .map(|error| format!("{} {}", text(error, "type"), text(error, "text")))
                    .collect(),
            ),
            sorted(errors.iter().map(line).collect()),
        ));
        checks
    }
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}
