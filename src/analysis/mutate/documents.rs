//! The changes to one document: of a policy its expressions and what it matches, of a binding what it matches and does, of a
//! definition the rules of the versions that are served.

use admit_cel::{Env, Mode};
use admit_policy::release;
use serde_json::Value;

use super::expression;
use super::matching;
use super::mutant::{Mutant, Place};

/// Why there are no changes of a document.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum MutateError {
    /// An expression is none.
    #[error("{field}: {message}")]
    Expression {
        /// Where it is.
        field: String,
        /// In the words of the compiler.
        message: String,
    },
    /// The changed expressions would take too much memory.
    #[error("{field}: the expressions are too large to be changed in every place")]
    TooLarge {
        /// Where the bound was met.
        field: String,
    },
}

/// Bytes of all changed expressions of a document.
const MOST_BYTES: usize = 64 << 20;

/// Every change of a ValidatingAdmissionPolicy, a ValidatingAdmissionPolicyBinding or a CustomResourceDefinition, in the order
/// of the document; none of other documents. What messages say is no part of it.
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
/// When an expression does not parse, or there would be too much of it.
pub fn mutants(document: &Value) -> Result<Vec<Mutant>, MutateError> {
    let mut made = Vec::new();
    match document.get("kind").and_then(Value::as_str).unwrap_or_default() {
        "ValidatingAdmissionPolicy" => {
            made.extend(of_expressions(&of_policy(document))?);
            made.extend(matching::of_policy(document));
        }
        "ValidatingAdmissionPolicyBinding" => made.extend(matching::of_binding(document)),
        "CustomResourceDefinition" => made.extend(of_expressions(&of_definition(document))?),
        _ => {}
    }
    Ok(made)
}

/// An expression, and whether its value is the verdict.
type Rule<'d> = (Place<'d>, bool);

fn of_policy(document: &Value) -> Vec<Rule<'_>> {
    let root = Place::root(document);
    let lists = [("matchConditions", true), ("variables", false), ("validations", true)];
    let each = |(list, decides)| {
        let items = root.descend(&["spec", list]).map(|list| list.parts()).unwrap_or_default();
        items.into_iter().filter_map(move |item| Some((item.child("expression")?, decides)))
    };
    lists.into_iter().flat_map(each).collect()
}

/// The rules of all schemas of the versions that are served, from the top down.
fn of_definition(document: &Value) -> Vec<Rule<'_>> {
    let root = Place::root(document);
    let versions = root.descend(&["spec", "versions"]).map(|list| list.parts()).unwrap_or_default();
    let served =
        versions.into_iter().filter(|version| version.value.get("served") == Some(&Value::Bool(true)));
    let mut open: Vec<Place<'_>> =
        served.filter_map(|version| version.descend(&["schema", "openAPIV3Schema"])).collect();
    open.reverse();
    let mut rules = Vec::new();
    while let Some(schema) = open.pop() {
        let own = schema.child("x-kubernetes-validations").map(|list| list.parts()).unwrap_or_default();
        rules.extend(own.into_iter().filter_map(|rule| Some((rule.child("rule")?, true))));
        let mut below: Vec<Place<'_>> =
            schema.child("properties").map(|properties| properties.parts()).unwrap_or_default();
        below.extend(["items", "additionalProperties"].into_iter().filter_map(|name| schema.child(name)));
        below.reverse();
        open.extend(below);
    }
    rules
}

fn of_expressions(rules: &[Rule<'_>]) -> Result<Vec<Mutant>, MutateError> {
    let env = Env::of_release(release::followed(), Mode::Stored);
    let (mut made, mut bytes) = (Vec::new(), 0_usize);
    for (place, decides) in rules {
        let Some(text) = place.value.as_str() else { continue };
        // Only the tree is of interest: whoever compiles the document checks it.
        let parsed = env.compile_unchecked(text).map_err(|error| MutateError::Expression {
            field: place.field.clone(),
            message: error.to_string(),
        })?;
        // Most changes leave a text that is as long, and there are some for each part.
        let expected = parsed.ast().len().saturating_mul(text.len()).saturating_mul(2);
        bytes = bytes.saturating_add(expected);
        if bytes > MOST_BYTES {
            return Err(MutateError::TooLarge { field: place.field.clone() });
        }
        let changes = expression::changes(parsed.ast(), text, *decides);
        made.extend(changes.into_iter().map(|changed| Mutant {
            operator: changed.operator,
            field: place.field.clone(),
            span: Some(changed.span),
            was: changed.was,
            becomes: changed.becomes,
            pointer: place.pointer.clone(),
            value: Some(Value::String(changed.whole)),
        }));
    }
    Ok(made)
}
