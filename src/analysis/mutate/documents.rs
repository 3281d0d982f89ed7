//! Generates the mutants of one document: for a policy its expressions and match constraints, for a binding its match resources and
//! actions, for a CustomResourceDefinition the rules of served versions; and message expressions of all of these.

use admit_cel::{Env, Mode};
use admit_policy::release;
use serde_json::Value;

use super::expression::{self, Purpose};
use super::matching;
use super::mutant::{Effect, Mutant, Place};

/// Why a document has no mutants.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum MutateError {
    /// An expression is invalid.
    #[error("{field}: {message}")]
    Expression {
        /// The path of its field.
        field: String,
        /// The message of the compiler.
        message: String,
    },
    /// The changed expressions would take too much memory.
    #[error("{field}: the expressions are too large to be changed in every place")]
    TooLarge {
        /// The path of the field at which the limit was reached.
        field: String,
    },
}

/// The maximum size of all mutated expressions of a document, in bytes.
const MOST_BYTES: usize = 64 << 20;

/// Returns every mutant of a policy, a binding or a CustomResourceDefinition, in document order; none for other documents. Literal
/// messages are not mutated, message expressions are.
///
/// ```
/// use admit_analysis::mutate::{Operator, mutants};
/// use serde_json::json;
///
/// let policy = json!({
///     "apiVersion": "admissionregistration.k8s.io/v1",
///     "kind": "ValidatingAdmissionPolicy",
///     "metadata": {"name": "few"},
///     "spec": {
///         "matchConstraints": {"resourceRules": [
///             {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["deployments"]},
///         ]},
///         "validations": [{"expression": "object.spec.replicas <= 3"}],
///     },
/// });
/// let all = mutants(&policy)?;
/// let told: Vec<(Operator, &str)> = all.iter().map(|mutant| (mutant.operator, mutant.becomes.as_str())).collect();
/// assert_eq!(told, [
///     (Operator::Clause, "true"),
///     (Operator::Comparison, "object.spec.replicas < 3"),
///     (Operator::Comparison, "object.spec.replicas > 3"),
///     (Operator::Constant, "4"),
///     (Operator::Constant, "2"),
///     (Operator::Operation, ""),
///     (Operator::Operation, ""),
/// ]);
/// let stricter = all[1].of(&policy);
/// assert_eq!(stricter["spec"]["validations"][0]["expression"], "object.spec.replicas < 3");
/// assert_eq!(all[1].expression(&policy), Some("object.spec.replicas <= 3"));
/// assert!(all[1].is_of_expression() && !all[5].is_of_expression());
/// assert_eq!(all[5].of(&policy).pointer("/spec/matchConstraints/resourceRules/0/operations"), Some(&json!(["UPDATE"])));
/// # Ok::<(), admit_analysis::mutate::MutateError>(())
/// ```
///
/// # Errors
/// If an expression does not parse, or the mutants would take too much memory.
pub fn mutants(document: &Value) -> Result<Vec<Mutant>, MutateError> {
    let mut made = Vec::new();
    match document.get("kind").and_then(Value::as_str).unwrap_or_default() {
        "ValidatingAdmissionPolicy" => {
            made.extend(of_expressions(&of_policy(document))?);
            made.extend(unsaid(document));
            made.extend(matching::of_policy(document));
        }
        "MutatingAdmissionPolicy" => {
            made.extend(of_expressions(&of_mutations(document))?);
            made.extend(matching::of_policy(document));
        }
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => {
            made.extend(matching::of_binding(document));
        }
        "CustomResourceDefinition" => {
            let rules = of_definition(document);
            made.extend(of_expressions(&rules)?);
            made.extend(messages(&rules).map(Place::unsaid));
        }
        _ => {}
    }
    Ok(made)
}

/// An expression for an empty list of a type that servers accept in patches.
const NO_OPERATIONS: &str = "[JSONPatch{}].filter(patch, false)";

/// An expression of a document, with its use and effect.
struct Rule<'d> {
    place: Place<'d>,
    purpose: Purpose,
    effect: Effect,
}

/// Returns the items of a list of the specification.
fn items<'d>(document: &'d Value, list: &str) -> Vec<Place<'d>> {
    Place::root(document).descend(&["spec", list]).map(|list| list.parts()).unwrap_or_default()
}

fn rules<'d>(
    items: Vec<Place<'d>>,
    way: &'static [&'static str],
    purpose: Purpose,
    effect: Effect,
) -> impl Iterator<Item = Rule<'d>> {
    items.into_iter().filter_map(move |item| Some(Rule { place: item.descend(way)?, purpose, effect }))
}

fn of_policy(document: &Value) -> Vec<Rule<'_>> {
    let of = |list, way, purpose, effect| rules(items(document, list), way, purpose, effect);
    of("matchConditions", &["expression"], Purpose::Rule, Effect::Verdict)
        .chain(of("variables", &["expression"], Purpose::Value, Effect::Verdict))
        .chain(of("validations", &["expression"], Purpose::Rule, Effect::Verdict))
        .chain(of("validations", &["messageExpression"], Purpose::Value, Effect::Said))
        .chain(of("auditAnnotations", &["valueExpression"], Purpose::Value, Effect::Said))
        .collect()
}

fn of_mutations(document: &Value) -> Vec<Rule<'_>> {
    let of = |list, way, purpose| rules(items(document, list), way, purpose, Effect::Object);
    of("matchConditions", &["expression"], Purpose::Rule)
        .chain(of("variables", &["expression"], Purpose::Value))
        .chain(of("mutations", &["applyConfiguration", "expression"], Purpose::Mutation("Object{}")))
        .chain(of("mutations", &["jsonPatch", "expression"], Purpose::Mutation(NO_OPERATIONS)))
        .collect()
}

/// Generates the mutants of a policy that remove message expressions and audit annotations.
fn unsaid(document: &Value) -> Vec<Mutant> {
    let messages =
        items(document, "validations").into_iter().filter_map(|item| item.child("messageExpression"));
    let mut made: Vec<Mutant> = messages.map(|message| message.unsaid()).collect();
    let annotations = items(document, "auditAnnotations");
    // A policy needs at least one validation or audit annotation.
    if annotations.len() > 1 || !items(document, "validations").is_empty() {
        made.extend(annotations.iter().map(Place::unsaid));
    }
    made
}

fn messages<'r, 'd>(rules: &'r [Rule<'d>]) -> impl Iterator<Item = &'r Place<'d>> {
    rules.iter().filter(|rule| rule.effect == Effect::Said).map(|rule| &rule.place)
}

/// Lists the rules of all schemas of served versions, top down, each with its message expression.
fn of_definition(document: &Value) -> Vec<Rule<'_>> {
    let served = items(document, "versions")
        .into_iter()
        .filter(|version| version.value.get("served") == Some(&Value::Bool(true)));
    let mut open: Vec<Place<'_>> =
        served.filter_map(|version| version.descend(&["schema", "openAPIV3Schema"])).collect();
    open.reverse();
    let mut found = Vec::new();
    while let Some(schema) = open.pop() {
        for own in schema.child("x-kubernetes-validations").map(|list| list.parts()).unwrap_or_default() {
            found.extend(rules(vec![own.clone()], &["rule"], Purpose::Rule, Effect::Verdict));
            found.extend(rules(vec![own], &["messageExpression"], Purpose::Value, Effect::Said));
        }
        let mut below: Vec<Place<'_>> =
            schema.child("properties").map(|properties| properties.parts()).unwrap_or_default();
        below.extend(["items", "additionalProperties"].into_iter().filter_map(|name| schema.child(name)));
        below.reverse();
        open.extend(below);
    }
    found
}

fn of_expressions(rules: &[Rule<'_>]) -> Result<Vec<Mutant>, MutateError> {
    let env = Env::of_release(release::followed(), Mode::Stored);
    let (mut made, mut bytes) = (Vec::new(), 0_usize);
    for Rule { place, purpose, effect } in rules {
        let Some(text) = place.value.as_str() else { continue };
        // Only the syntax tree matters: loading the document type-checks it.
        let parsed = env.compile_unchecked(text).map_err(|error| MutateError::Expression {
            field: place.field.clone(),
            message: error.to_string(),
        })?;
        // Most mutants have about the same length, and each subexpression has a few.
        let expected = parsed.ast().len().saturating_mul(text.len()).saturating_mul(2);
        bytes = bytes.saturating_add(expected);
        if bytes > MOST_BYTES {
            return Err(MutateError::TooLarge { field: place.field.clone() });
        }
        let changes = expression::changes(parsed.ast(), text, *purpose);
        made.extend(changes.into_iter().map(|changed| Mutant {
            operator: changed.operator,
            field: place.field.clone(),
            span: Some(changed.span),
            was: changed.was,
            becomes: changed.becomes,
            pointer: place.pointer.clone(),
            value: Some(Value::String(changed.whole)),
            effect: *effect,
        }));
    }
    Ok(made)
}
