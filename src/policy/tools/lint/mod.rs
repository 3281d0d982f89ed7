//! Finds mistakes, and parts without effect, in policies and CRDs, without any request.
//!
//! ```text
//! documents ──lint──► Report { findings: refusals (errors), what does nothing or is likely a mistake (warnings)
//!                              costs: the estimate of every rule, and the fields whose missing bound causes it }
//! ```
//!
//! | code | finds |
//! |---|---|
//! | `refused` | what kube-apiserver would not store, in its words |
//! | `unused-variable`, `unused-params` | a variable or paramKind that no expression names |
//! | `constant-rule` | a rule or condition whose answer no object changes |
//! | `unknown-field` | a field of a schema that a server drops without a word |
//! | `unchecked-format` | a format that no server checks, in the words of its warning |
//! | `rule-not-run` | a rule that stands where no server looks for it |
//! | `cel-in-message` | an expression written where only text is shown |
//! | `no-binding`, `no-policy`, `binding-matches-nothing`, `params-not-bound` | bindings and policies that miss each other |
//! | `matches-nothing` | a resource that its group does not have; rules and selectors that leave nothing; kinds that no policy is asked about |
//! | `type-check` | expressions that do not fit the types of the objects, in the words of the policy's status |
//! | `not-type-checked` | kinds whose types are not known (a note) |

mod answers;
mod bindings;
mod cost;
mod definitions;
mod examined;
mod logic;
mod meant;
mod message;
mod mutating;
mod nothing;
mod policies;
mod resources;
mod types;
mod unbound;
mod unused;
mod values;

use std::borrow::Borrow;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use self::answers::Answers;
pub use self::cost::{Cause, RULE_LIMIT, RuleCost, VERSION_LIMIT};
use self::examined::Examined;
pub use self::examined::Memory;
use self::meant::ByPlace;
use crate::crd::rules::{self, remembering};
use crate::crd::{CompiledCrd, Definition};
use crate::read::manifest::{Document, LoadError, Position};
use crate::set::PolicySet;
use crate::set::load::LoadOptions;
use crate::vap::{Binding, Policy, Types};

/// The codes of all findings that a server would not reject, each with a short description.
pub const CODES: [(&str, &str); 14] = [
    ("unused-variable", "No expression uses the variable."),
    ("unused-params", "No expression uses the params."),
    ("constant-rule", "The answer is the same for every object."),
    ("unknown-field", "Servers drop the field without a word."),
    ("unchecked-format", "No server checks values against the format."),
    ("rule-not-run", "The rule stands where no server looks for rules."),
    ("cel-in-message", "An expression stands where only text is shown."),
    ("no-binding", "No binding names the policy."),
    ("no-policy", "The binding names no policy."),
    ("binding-matches-nothing", "No request matches both the policy and the binding."),
    ("params-not-bound", "Policy and binding do not agree on params."),
    ("matches-nothing", "No request can match."),
    ("type-check", "The expression does not fit the types of the objects that the policy speaks about."),
    ("not-type-checked", "The types of the objects are not known."),
];

/// The severity of a finding.
///
/// ```
/// assert_eq!(admit_policy::lint::Severity::Warning.as_str(), "warning");
/// ```
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Severity {
    /// For information only; nothing has to be fixed.
    Note,
    Warning,
    /// A server would reject the document.
    Error,
}

/// A mistake, or a part without effect.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    /// Which kind of finding: stable, `unused-variable`.
    pub code: &'static str,
    pub severity: Severity,
    /// Its location and message.
    pub mistake: LoadError,
    /// Advice on how to fix it; may be empty.
    pub help: String,
}

/// The estimate of one rule, with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedCost {
    pub file: Arc<str>,
    pub position: Position,
    /// The definition's name and version.
    pub definition: String,
    pub version: String,
    pub rule: RuleCost,
}

/// The result of a lint run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The findings, by position.
    pub findings: Vec<Finding>,
    /// The costs of rules, in the order of the documents.
    pub costs: Vec<PlacedCost>,
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// What the documents that compile are.
#[derive(Debug, Default)]
struct Compiled<'d> {
    policies: Vec<(&'d Document, Policy)>,
    bindings: Vec<(&'d Document, Binding)>,
    definitions: Vec<&'d Arc<CompiledCrd>>,
    /// All definitions, including those that a server would reject: their names are known anyway.
    named: Vec<&'d Definition>,
}

impl<'d> Compiled<'d> {
    fn of(documents: &[(&'d Document, &'d Examined)]) -> Self {
        let mut compiled = Self::default();
        for (document, examined) in documents {
            match document.value.get("kind").and_then(Value::as_str) {
                Some("ValidatingAdmissionPolicy") => {
                    let made = Policy::compile(&document.value).ok();
                    compiled.policies.extend(made.map(|made| (*document, made)));
                }
                Some("ValidatingAdmissionPolicyBinding") => {
                    let made = Binding::compile(&document.value).ok();
                    compiled.bindings.extend(made.map(|made| (*document, made)));
                }
                _ => {
                    compiled.named.extend(examined.definition());
                    compiled.definitions.extend(examined.compiled());
                }
            }
        }
        compiled
    }
}

/// Checks `documents` together: bindings are looked up among them. `builtin` supplies the types of built-in kinds.
///
/// ```
/// use admit_policy::{Documents, LoadOptions, lint, manifest};
///
/// let policy = "
/// apiVersion: admissionregistration.k8s.io/v1
/// kind: ValidatingAdmissionPolicy
/// metadata: {name: named}
/// spec:
///   matchConstraints:
///     resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
///   variables: [{name: unused, expression: object.metadata.name}]
///   validations: [{expression: object.metadata.name != 'x'}]
/// ";
/// let documents = manifest::read("policy.yaml", policy).unwrap();
/// let report = lint::lint(&documents, LoadOptions::default(), &Documents::default());
/// assert!(report.findings.iter().any(|finding| finding.code == "unused-variable" && finding.mistake.position.line == 8));
/// ```
pub fn lint<D: Borrow<Document>>(documents: &[D], options: LoadOptions, builtin: &dyn Types) -> Report {
    let mut answers = Answers::default();
    // What is remembered of a document helps with that one: of many it would be much, and of no use.
    let one = |document: &D| {
        remembering(&mut rules::Memory::default(), || Examined::of(document.borrow(), &mut answers))
    };
    let examined: Vec<Examined> = documents.iter().map(one).collect();
    let documents: Vec<_> = documents.iter().map(Borrow::borrow).zip(&examined).collect();
    together(&documents, options, builtin)
}

/// Lints like [`lint`], for callers that lint repeatedly: results in `memory` for documents and expressions that have not changed are
/// reused. A document is identified by its address.
///
/// ```
/// use std::sync::Arc;
///
/// use admit_policy::{Documents, LoadOptions, lint, manifest};
///
/// let documents = manifest::read("policy.yaml", "apiVersion: v1\nkind: Namespace\n").unwrap();
/// let shared: Vec<_> = documents.iter().cloned().map(Arc::new).collect();
/// let mut memory = lint::Memory::default();
/// let again = lint::lint_again(&shared, LoadOptions::default(), &Documents::default(), &mut memory);
/// let once = lint::lint(&documents, LoadOptions::default(), &Documents::default());
/// assert_eq!(again.findings, once.findings);
/// ```
pub fn lint_again(
    documents: &[Arc<Document>],
    options: LoadOptions,
    builtin: &dyn Types,
    memory: &mut Memory,
) -> Report {
    let examined = memory.examine(documents);
    let documents = documents.iter().map(|document| &**document).zip(examined.iter().map(|known| &**known));
    let documents: Vec<_> = documents.collect();
    memory.remembering(|| together(&documents, options, builtin))
}

/// Lints documents together, each with its own results.
fn together(documents: &[(&Document, &Examined)], options: LoadOptions, builtin: &dyn Types) -> Report {
    let mut report = Report::default();
    for (_, examined) in documents {
        report.costs.extend(examined.costs.iter().cloned());
        report.findings.extend(examined.dropped.iter().cloned());
    }
    let refusals = PolicySet::mistakes(documents.iter().map(|(one, known)| known.loaded(one)), options);
    let compiled = Compiled::of(documents);
    let all: Vec<&Document> = documents.iter().map(|(document, _)| *document).collect();
    if !refusals.is_empty() {
        let (by_rule, by_place) = (by_rule(&report.costs), ByPlace::of(&all));
        report.findings.extend(refusals.into_iter().map(|mistake| refused(mistake, &by_rule, &by_place)));
    }
    for (document, policy) in &compiled.policies {
        report.findings.extend(policies::lint(document, policy));
    }
    for (_, examined) in documents {
        report.findings.extend(examined.findings.iter().cloned());
    }
    report.findings.extend(bindings::lint(&compiled, &all, builtin));
    report.findings.extend(mutating::lint(&all));
    report.findings.extend(types::lint(&compiled, builtin));
    report.findings.sort_by(|a, b| {
        let key = |finding: &Finding| (finding.mistake.file.clone(), finding.mistake.position);
        key(a).cmp(&key(b))
    });
    report
}

/// The costs by file and rule, as [`below_schema`] names it: of several the first.
fn by_rule(costs: &[PlacedCost]) -> HashMap<(&str, &str), &PlacedCost> {
    let mut by_rule = HashMap::new();
    for cost in costs {
        if let Some(rule) = below_schema(&cost.rule.path) {
            by_rule.entry((&*cost.file, rule)).or_insert(cost);
        }
    }
    by_rule
}

/// Builds a finding for a rejection; one for cost suggests the missing bound.
fn refused(
    mistake: LoadError,
    by_rule: &HashMap<(&str, &str), &PlacedCost>,
    documents: &ByPlace<'_>,
) -> Finding {
    let rule = below_schema(&mistake.field).filter(|_| mistake.message.contains("cost"));
    let cost = rule.and_then(|rule| by_rule.get(&(&*mistake.file, rule)));
    let help = match cost {
        Some(cost) => cost.rule.advice(),
        None => meant::help_for(&mistake, documents),
    };
    Finding { code: "refused", severity: Severity::Error, mistake, help }
}

/// Returns the path of a rule within its schema: a server uses another path for schemas that all versions share.
fn below_schema(path: &str) -> Option<&str> {
    path.split_once("openAPIV3Schema").map(|(_, below)| below)
}

/// A warning about `field` of a document.
fn warning(document: &Document, code: &'static str, field: &str, message: String, help: &str) -> Finding {
    let mistake = LoadError {
        position: document.position(field),
        field: field.to_owned(),
        ..document.mistake(message)
    };
    Finding { code, severity: Severity::Warning, mistake, help: help.to_owned() }
}
