//! Runs rows of expressions that do not compile: compares the refusal and its whole message.

use std::sync::LazyLock;

use admit_cel::{Env, Mode, Version};
use serde_json::Value as Json;

use super::cel_expressions::with_libraries;
use super::cel_values::read_type;
use super::{Case, Kind};
use crate::corpus::{CorpusError, Folder};
use crate::report::{Aspect, Check};

pub(super) const KIND: Kind = Kind { recognises, cases };

const KEYS: &[&str] = &["id", "group", "expr", "stage", "error"];

/// The release that the answers were recorded from.
static ENV: LazyLock<Env> = LazyLock::new(|| Env::kubernetes(Version(1, 36), Mode::New));

fn recognises(folder: &Folder) -> bool {
    folder.has_row_with(KEYS)
}

fn cases(folder: &Folder) -> Result<Vec<Box<dyn Case>>, CorpusError> {
    let case = |row: &Json| -> Box<dyn Case> {
        let id = row.get("id").and_then(Json::as_str).unwrap_or_default().to_owned();
        Box::new(Refusal { id, row: row.clone() })
    };
    Ok(folder.rows_with(KEYS).map(case).collect())
}

struct Refusal {
    id: String,
    row: Json,
}

impl Case for Refusal {
    fn id(&self) -> &str {
        &self.id
    }

    fn run(&self) -> Vec<Check> {
        let variables = self.row.get("vars").and_then(Json::as_object);
        let variables = variables.into_iter().flatten().filter_map(|(name, variable)| {
            Some((name.as_str(), read_type(variable.get("type")?.as_str()?)?))
        });
        let env = with_libraries(&ENV, &self.row).with_variables(variables);
        let text = self.row.get("expr").and_then(Json::as_str).unwrap_or_default();
        let refusal = env.compile(text).err().map(|error| error.to_string());
        let expected = self.row.get("error").and_then(Json::as_str);
        let expected = expected.map(|text| text.strip_prefix("compilation failed: ").unwrap_or(text));
        vec![
            Check::new(Aspect::Verdict, true, refusal.is_some()),
            Check::new(Aspect::Text, expected, refusal),
        ]
    }
}
