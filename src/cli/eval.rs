//! `admit eval`: evaluates one CEL expression and prints its value, its type and its cost.

use std::path::PathBuf;

use admit_analysis::releases::facts::unknown_of;
use admit_policy::{AdhocError, Answer, evaluate, release};
use clap::Args;
use serde_json::Value;
use thiserror::Error;

use super::Exit;
use super::load;
use super::process::{self, Fault};
use super::releases::{Limited, ReleaseArgs};
use super::render::{self, Output, eval};

/// Arguments of `admit eval`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  admit eval '[1, 2, 3].sum() > 5'
  admit eval 'self.spec.replicas <= 3' --self deployment.yaml
  admit eval 'self.size == oldSelf.size' --self new.yaml --old old.yaml
  kubectl get pod p -o yaml | admit eval 'object.spec.containers.map(c, c.image)' --self -
  admit eval --kube-versions 1.29..1.37 'isIP(self)' --self address.json
  admit eval 'object.spec.replicas <= params.max' --self d.yaml --var 'params={\"max\": 3}'

With --kube-versions, the result and the cost in each of the releases are shown; releases that agree are grouped.

Exit codes: 0 the expression has a value (whatever it is), 2 usage or unreadable input, 3 the expression does not \
compile, 4 it has no value: evaluation failed")]
pub(super) struct EvalArgs {
    /// The expression, in the CEL of Kubernetes 1.36
    #[arg(value_name = "EXPR", allow_hyphen_values = true)]
    expression: String,

    /// Value of `self`, and of `object` as policies call it: a YAML or JSON file, `-` for standard input
    #[arg(long = "self", value_name = "FILE")]
    new: Option<PathBuf>,

    /// Value of `oldSelf`, and of `oldObject`: a YAML or JSON file [default: null, as for a creation]
    #[arg(long, value_name = "FILE")]
    old: Option<PathBuf>,

    /// Additional variable; may be given several times
    #[arg(long = "var", value_name = "NAME=JSON", value_parser = variable)]
    variables: Vec<(String, Value)>,

    #[command(flatten)]
    releases: ReleaseArgs,

    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

impl EvalArgs {
    pub(super) fn run(self) -> Exit {
        let variables = match self.bindings() {
            Ok(variables) => variables,
            Err(fault) => return process::fail(&fault),
        };
        if let Some(asked) = self.releases.asked() {
            return self.by_release(&variables, &asked);
        }
        let outcome = evaluate(&self.expression, &variables);
        if let Err(error) = &outcome {
            process::fail(&fault(error));
        }
        match self.output {
            Output::Text => render::print(&outcome.as_ref().map(eval::text).unwrap_or_default()),
            Output::Json => render::print(&eval::json(&outcome)),
        }
        outcome.as_ref().map_or_else(exit, |_: &Answer| Exit::Expected)
    }

    /// Evaluates the expression in each release, and groups releases with the same result.
    fn by_release(&self, variables: &[(String, Value)], asked: &Limited<'_>) -> Exit {
        let mut answers: Vec<eval::ByRelease> = Vec::new();
        for release in asked.releases.iter() {
            let evaluated = || release::following(release.0, || evaluate(&self.expression, variables));
            let outcome = (!asked.is_over()).then(evaluated);
            match answers.last_mut() {
                Some((before, known)) if eval::outcome(known) == eval::outcome(&outcome) => {
                    before.push(release);
                }
                _ => answers.push((vec![release], outcome)),
            }
        }
        let unknown: Vec<_> = unknown_of(asked.releases).collect();
        render::print(&match self.output {
            Output::Text => eval::text_by_release(&answers, &asked.late(), &unknown),
            Output::Json => eval::json_by_release(&answers, &unknown),
        });
        let exits = answers.iter().filter_map(|(_, outcome)| match outcome {
            Some(outcome) => outcome.as_ref().err().map(exit),
            None => Some(Exit::Undecided),
        });
        exits.min_by_key(|exit| *exit != Exit::NotCompiled).unwrap_or(Exit::Expected)
    }

    /// Returns both names of each document. `self` and `oldSelf` are bound only if given, so that an expression that needs
    /// them is an error; `object` and `oldObject` are null otherwise, as in policies.
    fn bindings(&self) -> Result<Vec<(String, Value)>, Fault> {
        if self.new.as_deref() == self.old.as_deref() && self.new.as_deref().is_some_and(load::is_stdin) {
            return Err(Fault::usage("--self and --old cannot both be standard input"));
        }
        let mut bindings = Vec::new();
        for (file, names) in [(&self.new, ["self", "object"]), (&self.old, ["oldSelf", "oldObject"])] {
            let value = file.as_deref().map(load::value).transpose()?;
            let [bare, policy] = names;
            if let Some(value) = &value {
                bindings.push((bare.to_owned(), value.clone()));
            }
            bindings.push((policy.to_owned(), value.unwrap_or_default()));
        }
        // A named variable overrides that of a document.
        bindings.extend(self.variables.iter().cloned());
        Ok(bindings)
    }
}

/// Why a `--var` value is invalid.
#[derive(Debug, Error)]
enum VariableError {
    #[error("must be NAME=JSON")]
    Form,
    #[error("`{0}` is no name of a variable")]
    Name(String),
    #[error("`{json}` is not JSON: {error} (a text needs its quotes: {name}='\"text\"')")]
    Json { name: String, json: String, error: serde_json::Error },
}

fn variable(text: &str) -> Result<(String, Value), VariableError> {
    let (name, json) = text.split_once('=').ok_or(VariableError::Form)?;
    if !is_identifier(name) {
        return Err(VariableError::Name(name.to_owned()));
    }
    let value = serde_json::from_str(json).map_err(|error| VariableError::Json {
        name: name.to_owned(),
        json: json.to_owned(),
        error,
    })?;
    Ok((name.to_owned(), value))
}

/// Whether `name` is an identifier of CEL.
pub(super) fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())
        && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
}

fn fault(error: &AdhocError) -> Fault {
    let message = match error {
        AdhocError::Compile(_) => {
            format!("the expression does not compile\n{error}{}", hint(&error.to_string()))
        }
        AdhocError::Program(_) => error.to_string(),
        AdhocError::Evaluation { .. } => format!("evaluation failed: {error}"),
    };
    Fault { exit: exit(error), ..Fault::usage(message) }
}

/// Returns a hint about the flag that binds an undeclared name.
fn hint(message: &str) -> &'static str {
    const HINTS: [(&str, &str); 6] = [
        ("self", "\n`self` is what --self FILE holds"),
        ("oldSelf", "\n`oldSelf` is what --old FILE holds"),
        ("params", "\n`params` is given with --var 'params={…}'"),
        ("request", "\n`request` is given with --var 'request={…}'"),
        ("namespaceObject", "\n`namespaceObject` is given with --var 'namespaceObject={…}'"),
        ("authorizer", "\n`authorizer` is asked in suites and by `admit check --authorizer FILE` alone"),
    ];
    let missing = |name: &str| message.contains(&format!("undeclared reference to '{name}'"));
    HINTS.into_iter().find(|(name, _)| missing(name)).map_or("", |(_, hint)| hint)
}

fn exit(error: &AdhocError) -> Exit {
    match error {
        AdhocError::Compile(_) | AdhocError::Program(_) => Exit::NotCompiled,
        AdhocError::Evaluation { .. } => Exit::Internal,
    }
}
