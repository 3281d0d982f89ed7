//! Runs rows of expressions with the values of their variables: compares the type, the value or the error with its stage,
//! the cost and the static estimate.

use admit_cel::{Bindings, Env, Evaluation, Extra, Mode, SizeHints, Type, Version};
use bumpalo::Bump;
use serde_json::{Value as Json, json};

use super::cel_values::{as_set, normal, read_type, read_value, write_value};
use super::{Case, Kind};
use crate::corpus::{CorpusError, Folder};
use crate::report::{Aspect, Check};

pub(super) const KIND: Kind = Kind { recognises, cases };

const KEYS: &[&str] = &["id", "group", "expr", "type"];

/// The release that the answers were recorded from.
const RECORDED: Version = Version(1, 36);

fn recognises(folder: &Folder) -> bool {
    folder.has_row_with(KEYS)
}

fn cases(folder: &Folder) -> Result<Vec<Box<dyn Case>>, CorpusError> {
    let case = |row: &Json| -> Box<dyn Case> {
        let id = row.get("id").and_then(Json::as_str).unwrap_or_default().to_owned();
        Box::new(Expression { id, row: row.clone() })
    };
    Ok(folder.rows_with(KEYS).map(case).collect())
}

struct Expression {
    id: String,
    row: Json,
}

/// What became of an expression.
pub(super) struct Answer {
    pub(super) ty: Option<String>,
    pub(super) estimate: Option<Json>,
    /// The value, or the stage and text of an error.
    pub(super) outcome: Result<Json, (&'static str, String)>,
    pub(super) cost: Option<u64>,
}

/// The environment with the libraries that a row names.
pub(super) fn with_libraries(env: &Env, row: &Json) -> Env {
    let libraries = row.get("extraLibraries").and_then(Json::as_array);
    if libraries.is_some_and(|names| names.contains(&json!("jsonpatch"))) {
        env.with_library(Extra::JsonPatch)
    } else {
        env.clone()
    }
}

/// Whether an expression is checked before it is evaluated.
#[derive(Clone, Copy)]
pub(super) enum Stage {
    Checked,
    Unchecked,
}

/// Compiles and evaluates; `variables` are name, type and, where bound, value.
pub(super) fn answer(env: &Env, text: &str, variables: &[(&str, Type, Option<&Json>)]) -> Answer {
    answer_in(env, text, variables, Stage::Checked)
}

pub(super) fn answer_in(
    env: &Env,
    text: &str,
    variables: &[(&str, Type, Option<&Json>)],
    stage: Stage,
) -> Answer {
    let env = env.with_variables(variables.iter().map(|(name, ty, _)| (*name, ty.clone())));
    let mut answer = Answer { ty: None, estimate: None, outcome: Ok(Json::Null), cost: None };
    let compiled = match stage {
        Stage::Checked => env.compile(text),
        Stage::Unchecked => env.compile_unchecked(text),
    };
    let checked = match compiled {
        Ok(checked) => checked,
        Err(error) => {
            answer.outcome = Err(("compile", error.to_string()));
            return answer;
        }
    };
    answer.ty = Some(checked.output_type().to_string());
    let bounds = checked.estimate(&SizeHints::default());
    answer.estimate = Some(json!({"min": bounds.min.to_string(), "max": bounds.max.to_string()}));
    let program = match env.program(&checked) {
        Ok(program) => program,
        Err(error) => {
            answer.outcome = Err(("program", error.to_string()));
            return answer;
        }
    };
    let arena = Bump::new();
    let mut bindings = Bindings::new(&program);
    for (name, _, value) in variables {
        if let Some(value) = value.and_then(|value| read_value(&arena, value)) {
            bindings.set(name, value);
        }
    }
    let mut cx = Evaluation::new(&arena);
    answer.outcome = match program.eval(&bindings, &mut cx) {
        Ok(value) => Ok(write_value(&value)),
        Err(error) => Err(("runtime", error.to_string())),
    };
    answer.cost = Some(cx.cost());
    answer
}

/// A type in one spelling: the engine's messages have short names for some.
pub(super) fn type_text(text: &str) -> String {
    let spellings = [
        ("google.protobuf.Duration", "duration"),
        ("google.protobuf.Timestamp", "timestamp"),
        ("null_type", "null"),
        (" ", ""),
    ];
    spellings.iter().fold(text.to_owned(), |text, (long, short)| text.replace(long, short))
}

/// Compares outcomes: the stage of an error is the verdict, its words are text.
pub(super) fn compare(row: &Json, value_key: &str, answer: &Answer, checks: &mut Vec<Check>) {
    let stage = row.get("stage").cloned().unwrap_or_else(|| json!("value"));
    let actual_stage = answer.outcome.as_ref().map_or_else(|(stage, _)| *stage, |_| "value");
    checks.push(Check::new(Aspect::Verdict, stage, actual_stage));
    let is_unstable = row.get("unstable").is_some();
    match (row.get(value_key), row.get("error"), &answer.outcome) {
        (Some(value), _, Ok(actual)) => {
            let form = if is_unstable { as_set } else { Json::clone };
            checks.push(Check::new(Aspect::Verdict, form(&normal(value)), form(actual)));
        }
        (_, Some(text), Err((_, actual))) => {
            let text = text.as_str().map(|text| text.strip_prefix("compilation failed: ").unwrap_or(text));
            checks.push(Check::new(Aspect::Text, text, actual.clone()));
        }
        (_, _, Ok(actual)) => checks.push(Check::new(Aspect::Verdict, Json::Null, actual.clone())),
        (Some(_), _, Err((_, actual))) => checks.push(Check::new(Aspect::Text, Json::Null, actual.clone())),
        (None, None, Err(_)) => {}
    }
    if let (Some(cost), false) = (row.get("cost"), is_unstable) {
        checks.push(Check::new(Aspect::Cost, cost.clone(), answer.cost));
    }
}

impl Case for Expression {
    fn id(&self) -> &str {
        &self.id
    }

    fn run(&self) -> Vec<Check> {
        // What the recorded code does by crashing is not asked of us.
        if self.row.get("panic").is_some() {
            return Vec::new();
        }
        let text = self.row.get("expr").and_then(Json::as_str).unwrap_or_default();
        let none = serde_json::Map::new();
        let variables = self.row.get("vars").and_then(Json::as_object).unwrap_or(&none);
        let variables: Vec<_> = variables
            .iter()
            .filter_map(|(name, variable)| {
                let ty = read_type(variable.get("type")?.as_str()?)?;
                Some((name.as_str(), ty, variable.get("value")))
            })
            .collect();
        let env = with_libraries(&Env::kubernetes(RECORDED, Mode::New), &self.row);
        let answer = answer(&env, text, &variables);
        let mut checks = Vec::new();
        compare(&self.row, "result", &answer, &mut checks);
        if let Some(ty) = self.row.get("type") {
            checks.push(Check::new(
                Aspect::Verdict,
                type_text(ty.as_str().unwrap_or_default()),
                answer.ty.as_deref().map(type_text),
            ));
        }
        if let Some(estimate) = self.row.get("estimate") {
            checks.push(Check::new(Aspect::Cost, estimate.clone(), answer.estimate));
        }
        checks
    }
}
