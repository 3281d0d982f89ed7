//! Runs rows of the CEL conformance suite. Rows that apply to Kubernetes are compared with its recorded answer, including
//! type, cost and messages; other rows with the suite's expectation. Rows that need protobuf messages of a schema of
//! their own are not run.

use admit_cel::{Env, EvalError, Mode, Overload, Type, Version};
use serde_json::Value as Json;

use super::cel_expressions::{Stage, answer, answer_in, compare, type_text};
use super::cel_values::{normal, read_type};
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
    let case = |row: &Json| -> Option<Box<dyn Case>> {
        let is_language_only = match row.get("applicable")?.as_str()? {
            "yes" => false,
            "language-only" => true,
            _ => return None,
        };
        let id = row.get("id").and_then(Json::as_str).unwrap_or_default().to_owned();
        Some(Box::new(Row { id, row: row.clone(), is_language_only }))
    };
    Ok(folder.rows_with(KEYS).filter_map(case).collect())
}

struct Row {
    id: String,
    row: Json,
    is_language_only: bool,
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
        if self.is_language_only { self.run_language() } else { self.run_kubernetes() }
    }
}

impl Row {
    /// What the suite expects: an error of any text, where it expects one.
    fn run_language(&self) -> Vec<Check> {
        let env = match with_declared(Env::standard().with_container(self.text("container")), &self.row) {
            Ok(env) => env,
            Err(error) => return vec![Check::new(Aspect::Verdict, Json::Null, error)],
        };
        let stage = if self.row.get("disableCheck").is_some() { Stage::Unchecked } else { Stage::Checked };
        let answer = answer_in(&env, self.text("expr"), &self.variables(), stage);
        let mut checks = Vec::new();
        if self.row.get("checkOnly").is_none() {
            let expected = self.row.pointer("/expect/value");
            checks.push(Check::new(Aspect::Verdict, expected.is_some(), answer.outcome.is_ok()));
            if let (Some(expected), Ok(actual)) = (expected, &answer.outcome) {
                checks.push(Check::new(Aspect::Verdict, normal(expected), actual.clone()));
            }
        }
        if let Some(ty) = self.row.pointer("/expect/type").and_then(Json::as_str) {
            checks.push(Check::new(Aspect::Verdict, type_text(ty), answer.ty.as_deref().map(type_text)));
        }
        checks
    }

    fn run_kubernetes(&self) -> Vec<Check> {
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

/// The environment with the functions that a row declares, and with the abstract types that they name. No row evaluates
/// what it declares. Rows of functions live as long as the process, which reads each row once.
fn with_declared(mut env: Env, row: &Json) -> Result<Env, String> {
    let text = |json: &Json| json.as_str().unwrap_or_default().to_owned();
    let mut rows = Vec::new();
    for function in row.get("declarations").and_then(Json::as_array).into_iter().flatten() {
        for overload in function.get("overloads").and_then(Json::as_array).into_iter().flatten() {
            let params = overload.get("params").and_then(Json::as_array);
            let params: Vec<String> = params.into_iter().flatten().map(text).collect();
            let result = text(&overload["result"]);
            for ty in params.iter().chain([&result]) {
                if let Some((name, arguments)) = ty.split_once('(').filter(|_| env.parse_type(ty).is_none()) {
                    env = env.with_type(name, arguments.split(',').count());
                }
            }
            let signature = format!("{}({}) -> {result}", text(&function["name"]), params.join(", "));
            let (id, signature) = (text(&overload["id"]).leak(), signature.leak());
            rows.push(Overload::new(
                id,
                signature,
                |_, _| Err(EvalError::NoSuchOverload),
                "Declared by a row.",
            ));
        }
    }
    env.with_functions(rows.leak()).map_err(|error| error.to_string())
}
