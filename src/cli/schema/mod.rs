//! `admit schema`: prints the JSON Schemas of suites and of command output. Those of all commands but `test` are
//! parts of one document, since they share definitions.

use std::collections::BTreeSet;

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use super::process::{self, Fault};
use super::{Exit, render};

/// Arguments of `admit schema`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  admit schema suite > suite.schema.json
  admit schema check")]
pub(super) struct SchemaArgs {
    /// Format to print the schema of
    #[arg(value_enum, value_name = "OF")]
    of: Subject,
}

/// The formats that have a schema.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Subject {
    /// The files that `admit test` reads
    Suite,
    /// What `admit test -o json` prints
    Test,
    /// What `admit check -o json` prints
    Check,
    /// What `admit lint -o json` prints
    Lint,
    /// What `admit explain -o json` prints
    Explain,
    /// What `admit eval -o json` prints
    Eval,
    /// What `admit states -o json` prints
    States,
    /// What `admit prove -o json` prints
    Prove,
    /// What `admit mutate -o json` prints
    Mutate,
    /// What `admit attack -o json` prints
    Attack,
    /// What `admit test` and `admit check` print with `--kube-versions -o json`
    ByRelease,
    /// What `admit replay -o json` prints
    Replay,
    /// What `admit scan -o json` prints
    Scan,
    /// What the server of `admit play` answers
    Play,
    /// What `admit bench -o json` prints
    Bench,
    /// What `admit wait-operators -o json` prints
    WaitOperators,
    /// What `admit cyndi plan -o json` prints
    CyndiPlan,
    /// What `admit cyndi validate -o json` prints
    CyndiValidate,
}

impl SchemaArgs {
    pub(super) fn run(self) -> Exit {
        print(self.of)
    }
}

pub(super) fn print(of: Subject) -> Exit {
    let name = match of {
        Subject::Suite => return whole(include_str!("suite.json")),
        Subject::Test => return whole(include_str!("test.json")),
        Subject::Check => "check",
        Subject::Lint => "lint",
        Subject::Explain => "explain",
        Subject::Eval => "eval",
        Subject::States => "states",
        Subject::Prove => "prove",
        Subject::Mutate => "mutate",
        Subject::Attack => "attack",
        Subject::ByRelease => "by-release",
        Subject::Replay => "replay",
        Subject::Scan => "scan",
        Subject::Play => "play",
        Subject::Bench => "bench",
        Subject::WaitOperators => "wait-operators",
        Subject::CyndiPlan => "cyndi-plan",
        Subject::CyndiValidate => "cyndi-validate",
    };
    match serde_json::from_str(include_str!("output.json")) {
        Ok(all) => whole(&render::json(&part(&all, name))),
        Err(error) => process::fail(&Fault::internal(error)),
    }
}

fn whole(schema: &str) -> Exit {
    render::print(schema);
    Exit::Expected
}

/// Extracts one definition as a document of its own, with the definitions that it refers to.
fn part(all: &Value, name: &str) -> Value {
    let definitions = &all["$defs"];
    let (mut needed, mut open) = (BTreeSet::new(), vec![definitions[name].clone()]);
    while let Some(schema) = open.pop() {
        for name in references(&schema) {
            if needed.insert(name.clone()) {
                open.push(definitions[&name].clone());
            }
        }
    }
    let mut schema = Map::from_iter([("$schema".to_owned(), all["$schema"].clone())]);
    schema.extend(definitions[name].as_object().cloned().unwrap_or_default());
    let shared: Map<String, Value> =
        needed.into_iter().map(|name| (name.clone(), definitions[&name].clone())).collect();
    schema.insert("$defs".to_owned(), json!(shared));
    Value::Object(schema)
}

/// Returns the names of the definitions that a schema refers to.
fn references(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(members) => {
            let own = members.get("$ref").and_then(Value::as_str);
            let own = own.and_then(|reference| reference.strip_prefix("#/$defs/")).map(ToOwned::to_owned);
            own.into_iter().chain(members.values().flat_map(references)).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}
