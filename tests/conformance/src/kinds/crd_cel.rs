//! Runs rows of validation rules in schemas: errors, paths, costs, ratcheting, compilation, correlation.

use std::sync::Arc;

use admit_apimachinery::field_error::FieldError;
use admit_policy::Path;
use admit_policy::crd::rules::{
    Limits, Modes, RuleEnv, RuleTree, Subject, Subscripts, decl_type, resolve_field_path,
};
use admit_policy::schema::{self, MapListIndex, Schema};
use serde_json::{Value, json};

use super::{Case, Kind};
use crate::corpus::{CorpusError, Folder};
use crate::report::{Aspect, Check};

pub(super) const KIND: Kind = Kind { recognises, cases };

const KEYS: &[&str] = &["id", "kind", "expect"];

fn recognises(folder: &Folder) -> bool {
    folder.has_row_with(&["id", "kind", "schema", "isResourceRoot", "expect"])
}

fn cases(folder: &Folder) -> Result<Vec<Box<dyn Case>>, CorpusError> {
    let case = |row: &Value| -> Box<dyn Case> {
        Box::new(Row {
            id: row.get("id").and_then(Value::as_str).unwrap_or_default().to_owned(),
            row: row.clone(),
        })
    };
    // These need functions that no server has.
    let rows = folder.rows_with(KEYS).filter(|row| row.get("needsExtraLibrary").is_none());
    Ok(rows.map(case).collect())
}

struct Row {
    id: String,
    row: Value,
}

impl Case for Row {
    fn id(&self) -> &str {
        &self.id
    }

    fn run(&self) -> Vec<Check> {
        match self.row.get("kind").and_then(Value::as_str) {
            Some("validate") => self.validate(),
            Some("compile") => self.compile(),
            Some("fieldPath") => self.field_path(),
            Some("mapListLookup") => self.lookup(),
            Some("equality") => self.equality(),
            Some("listAdd") => self.list_add(),
            other => vec![Check::new(Aspect::Verdict, "a known kind", format!("{other:?}"))],
        }
    }
}

impl Row {
    fn get(&self, pointer: &str) -> Option<&Value> {
        self.row.pointer(pointer)
    }

    fn schema(&self) -> Arc<Schema> {
        self.get("/schema")
            .and_then(|schema| schema::parse(schema, &Path::Nil).ok())
            .map(Arc::new)
            .unwrap_or_default()
    }

    fn is_root(&self) -> bool {
        self.get("/isResourceRoot") == Some(&Value::Bool(true))
    }

    fn validate(&self) -> Vec<Check> {
        let schema = self.schema();
        // The tests that some rows are taken from, which name their cases, ask the validator itself; a server looks
        // first whether there is a rule outside of `allOf`.
        let rules = match self.get("/case") {
            Some(_) => RuleTree::compile_every_level(&schema, self.is_root()),
            None => RuleTree::compile(&schema, self.is_root()),
        };
        let number = |pointer: &str| self.get(pointer).and_then(Value::as_u64);
        let mut limits = Limits::default();
        if let Some(budget) = number("/costBudget") {
            limits.budget = i64::try_from(budget).unwrap_or(i64::MAX);
        }
        if let Some(per_call) = number("/perCallLimit") {
            limits.per_call = per_call;
        }
        let always = || true;
        if self.get("/cancelled") == Some(&Value::Bool(true)) {
            limits.expired = Some(&always);
        }
        let ratcheting = self.get("/ratcheting") == Some(&Value::Bool(true));
        let new = self.get("/obj").cloned().unwrap_or_default();
        let subject = Subject {
            schema: &schema,
            path: &Path::Root("root"),
            new: &new,
            old: self.get("/oldObj"),
            ratchet: ratcheting,
            recorder: None,
        };
        let found = rules.evaluate(&subject, &limits);
        let (remaining, errors) = (found.remaining, found.errors.into_vec());
        let expected = self.get("/expect/errors").and_then(Value::as_array).cloned().unwrap_or_default();
        let text =
            |error: &Value, key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut checks = vec![
            Check::new(Aspect::Verdict, expected.is_empty(), errors.is_empty()),
            Check::new(
                Aspect::Path,
                sorted(expected.iter().map(|error| text(error, "field"))),
                sorted(errors.iter().map(|error| error.field.clone())),
            ),
            Check::new(
                Aspect::Text,
                sorted(
                    expected.iter().map(|error| format!("{} {}", text(error, "type"), text(error, "text"))),
                ),
                sorted(errors.iter().map(line)),
            ),
            Check::new(
                Aspect::Cost,
                self.get("/expect/remainingBudget").cloned().unwrap_or_default(),
                json!(remaining),
            ),
        ];
        if let Some(warnings) = self.get("/expect/warnings").and_then(Value::as_array) {
            let warnings = warnings.iter().filter_map(Value::as_str).map(ToOwned::to_owned);
            checks.push(Check::new(
                Aspect::Text,
                sorted(warnings),
                sorted(found.forgiven.into_iter().map(|error| error.to_string())),
            ));
        }
        if let Some(estimates) = self.get("/expect/rootRuleEstimates").and_then(Value::as_array) {
            checks.extend(self.estimates(&schema, estimates));
        }
        checks
    }

    fn estimates(&self, schema: &Schema, expected: &[Value]) -> Vec<Check> {
        let Some(decl) = decl_type(schema, self.is_root()) else { return Vec::new() };
        let env = RuleEnv::new(&decl);
        let estimate = |(expected, rule): (&Value, &schema::Rule)| {
            let compiled = env.compile(rule, schema, Modes::STORED);
            let actual = match &compiled.program {
                // An empty rule is never run.
                None => Some(json!(["0", "0"])),
                Some(Ok(program)) => {
                    Some(json!([program.max_cost.to_string(), env.max_cardinality().to_string()]))
                }
                Some(Err(_)) => None,
            };
            let wanted = expected.get("maxCost").zip(expected.get("maxCardinality"));
            let wanted = wanted.map(|(cost, cardinality)| json!([cost, cardinality]));
            Check::new(Aspect::Cost, wanted.unwrap_or_default(), actual.unwrap_or_default())
        };
        expected.iter().zip(&schema.rules).map(estimate).collect()
    }

    fn compile(&self) -> Vec<Check> {
        let schema = self.schema();
        let stored = self.get("/libraries").is_some_and(|libraries| libraries == "stored");
        let results = self.get("/expect/results").and_then(Value::as_array).cloned().unwrap_or_default();
        let Some(decl) = decl_type(&schema, self.is_root()) else {
            return vec![Check::new(Aspect::Verdict, results, "no type for the schema")];
        };
        let env = RuleEnv::new(&decl);
        let mut checks = Vec::new();
        for (expected, rule) in results.iter().zip(&schema.rules) {
            let compiled = env.compile(rule, &schema, if stored { Modes::STORED } else { Modes::NEW });
            let program = compiled.program.as_ref().and_then(|program| program.as_ref().ok());
            let error =
                compiled.program.as_ref().and_then(|program| program.as_ref().err().map(ToString::to_string));
            let message_error =
                compiled.message.as_ref().and_then(|message| message.as_ref().err().map(ToString::to_string));
            let message = compiled.message.as_ref().and_then(|message| message.as_ref().ok());
            let of = |key: &str| expected.get(key).cloned().unwrap_or_default();
            let text_of =
                |key: &str| expected.pointer(&format!("/{key}/detail")).cloned().unwrap_or_default();
            checks.push(Check::new(Aspect::Verdict, of("compiled"), program.is_some()));
            checks.push(Check::new(Aspect::Text, text_of("error"), json!(error)));
            checks.push(Check::new(Aspect::Text, text_of("messageExpressionError"), json!(message_error)));
            if expected.get("usesOldSelf").is_some() {
                checks.push(Check::new(Aspect::Verdict, of("usesOldSelf"), compiled.uses_old_self));
            }
            if let Some(program) = program {
                let cardinality = env.max_cardinality().to_string();
                checks.push(Check::new(Aspect::Cost, of("maxCost"), program.max_cost.to_string()));
                checks.push(Check::new(Aspect::Cost, of("maxCardinality"), cardinality));
            }
            if expected.get("messageExpressionMaxCost").is_some() {
                let cost = message.map(|message| message.max_cost.to_string());
                checks.push(Check::new(Aspect::Cost, of("messageExpressionMaxCost"), json!(cost)));
            }
            if expected.get("normalizedFieldPath").is_some() {
                checks.push(Check::new(Aspect::Path, of("normalizedFieldPath"), json!(compiled.field_path)));
            }
        }
        checks
    }

    fn field_path(&self) -> Vec<Check> {
        let schema = self.schema();
        let path = self.get("/fieldPath").and_then(Value::as_str).unwrap_or_default();
        let (ours, theirs) = match resolve_field_path(path, &schema, Subscripts::Allowed) {
            Ok(resolved) => (json!(resolved.text), self.get("/expect/path")),
            Err(problem) => (json!(problem.to_string()), self.get("/expect/error")),
        };
        vec![Check::new(Aspect::Path, theirs.cloned().unwrap_or_default(), ours)]
    }

    fn lookup(&self) -> Vec<Check> {
        let schema = self.schema();
        let items = self.get("/items").and_then(Value::as_array).cloned().unwrap_or_default();
        let query = self.get("/query").cloned().unwrap_or_default();
        let found = MapListIndex::new(&schema, &items).and_then(|index| index.find(&query).cloned());
        vec![Check::new(
            Aspect::Verdict,
            self.get("/expect/found").cloned().unwrap_or_default(),
            found.unwrap_or_default(),
        )]
    }

    /// Compared by a rule over an object with both values.
    fn equality(&self) -> Vec<Check> {
        let side = |name: &str, key: &str| self.get(&format!("/{name}/{key}")).cloned().unwrap_or_default();
        let object = json!({"left": side("left", "value"), "right": side("right", "value")});
        let ask = |rule: &str| {
            let schema = json!({
                "type": "object",
                "properties": {"left": side("left", "schema"), "right": side("right", "schema")},
                "x-kubernetes-validations": [{"rule": rule}],
            });
            holds(&schema, &object)
        };
        let of = |key: &str| self.get(&format!("/expect/{key}")).cloned().unwrap_or_default();
        vec![
            Check::new(Aspect::Verdict, of("equal"), ask("dyn(self.left) == dyn(self.right)")),
            Check::new(Aspect::Verdict, of("equalReversed"), ask("dyn(self.right) == dyn(self.left)")),
        ]
    }

    fn list_add(&self) -> Vec<Check> {
        let schema = self.get("/schema").cloned().unwrap_or_default();
        let of = |key: &str| self.get(key).cloned().unwrap_or_default();
        // Items of one list have one type, as the two operands must.
        let object = json!({"lists": [of("/value"), of("/addition"), of("/expect/result")]});
        let schema = json!({
            "type": "object",
            "properties": {"lists": {"type": "array", "items": schema}},
            "x-kubernetes-validations": [{"rule": "self.lists[0] + self.lists[1] == self.lists[2]"}],
        });
        vec![Check::new(Aspect::Verdict, true, holds(&schema, &object))]
    }
}

fn holds(schema: &Value, object: &Value) -> Value {
    let Ok(schema) = schema::parse(schema, &Path::Nil) else { return Value::Null };
    let subject =
        Subject { schema: &schema, path: &Path::Nil, new: object, old: None, ratchet: false, recorder: None };
    let found = RuleTree::compile(&schema, false).evaluate(&subject, &Limits::default());
    match found.errors.into_vec().as_slice() {
        [] => json!(true),
        [error] if error.detail.starts_with("failed rule") => json!(false),
        errors => json!(errors.iter().map(ToString::to_string).collect::<Vec<_>>()),
    }
}

fn line(error: &FieldError) -> String {
    format!("{} {error}", error.kind.reason())
}

fn sorted(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut lines: Vec<_> = lines.collect();
    lines.sort();
    lines
}
