//! Rows of the language's own suite, with what Kubernetes answers: that answer is asked for, type, cost and texts
//! included. Rows that Kubernetes does not claim to satisfy are not asked.

use admit_cel::{Env, Mode, Type, Version};
use serde_json::Value as Json;

use super::cel_expressions::{answer, compare, type_text};
use super::cel_values::read_type;
use super::{Case, Kind};
use crate::corpus::{CorpusError, Folder};
use crate::report::{Aspect, Check};

pub(super) const KIND: Kind = Kind { recognises, cases };

const KEYS: &[&str] = &["id", "expr", "expect", "applicable"];

const RECORDED: Version = Version(1, 36);

fn recognises(folder: &Folder) -> bool {
    folder.has_row_with(KEYS)
}

fn cases(folder: &Folder) -> Result<Vec<Box<dyn Case>>, CorpusError> {
    let is_asked = |row: &&Json| row.get("applicable").and_then(Json::as_str) == Some("yes");
    let case = |row: &Json| -> Box<dyn Case> {
        let id = row.get("id").and_then(Json::as_str).unwrap_or_default().to_owned();
        Box::new(Row { id, row: row.clone() })
    };
    Ok(folder.rows_with(KEYS).filter(is_asked).map(case).collect())
}

struct Row {
    id: String,
    row: Json,
}

impl Row {
    fn text(&self, key: &str) -> &str {
        self.row.get(key).and_then(Json::as_str).unwrap_or_default()
    }

    /// Declared variables with their values, and bound variables that nobody declared.
    fn variables(&self) -> Vec<(&str, Type, Option<&Json>)> {
        let bindings = self.row.get("bindings").and_then(Json::as_object);
        let declared = self.row.get("declarations").and_then(Json::as_array).into_iter().flatten();
        let mut variables: Vec<_> = declared
            .filter_map(|declaration| {
                let name = declaration.get("name")?.as_str()?;
                let value = bindings.and_then(|bindings| bindings.get(name));
                Some((name, read_type(declaration.get("type")?.as_str()?)?, value))
            })
            .collect();
        for (name, value) in bindings.into_iter().flatten() {
            if !variables.iter().any(|(declared, ..)| declared == name) {
                variables.push((name, Type::Dyn, Some(value)));
            }
        }
        variables
    }
}

impl Case for Row {
    fn id(&self) -> &str {
        &self.id
    }

    fn run(&self) -> Vec<Check> {
        let mut env = Env::kubernetes(RECORDED, Mode::New).with_container(self.text("container"));
        if self.row.get("checkOnly").is_some() {
            // What the suite deduces of mixed literals was never asked of Kubernetes, which refuses them.
            env = env.with_mixed_literals();
        }
        let answer = answer(&env, self.text("expr"), &self.variables());
        let mut checks = Vec::new();
        let recorded = self.row.get("kubernetes");
        if let Some(recorded) = recorded {
            compare(recorded, "value", &answer, &mut checks);
        }
        let ty =
            recorded.and_then(|recorded| recorded.get("type")).or_else(|| self.row.pointer("/expect/type"));
        if let Some(ty) = ty.and_then(Json::as_str) {
            checks.push(Check::new(Aspect::Verdict, type_text(ty), answer.ty.as_deref().map(type_text)));
        }
        checks
    }
}
