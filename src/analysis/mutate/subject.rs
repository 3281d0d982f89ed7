//! Reduces a solver query to the mutated rule alone, and finds the kinds of its objects.

use admit_policy::Builtins;
use serde_json::Value;

use super::mutant::Mutant;
use crate::prove::{Kinds, KindsError, SideError, Subject};

/// Returns the document with only the mutated rule; `None` if the mutation is not in a single rule.
pub(super) fn alone(document: &Value, mutant: &Mutant) -> Option<Value> {
    const OF_SCHEMAS: &str = "/x-kubernetes-validations";
    const OF_POLICIES: &str = "/spec/validations";
    let (list, number) = match mutant.pointer.split_once(OF_POLICIES) {
        Some(("", below)) => (OF_POLICIES.to_owned(), below),
        _ => {
            let (above, below) = mutant.pointer.rsplit_once(OF_SCHEMAS)?;
            (format!("{above}{OF_SCHEMAS}"), below)
        }
    };
    let at: usize = number.split('/').nth(1)?.parse().ok()?;
    let rule = document.pointer(&list)?.get(at)?.clone();
    let mut document = document.clone();
    strip(&mut document);
    // All rules may have been removed with the list: it is created again.
    let (parent, name) = list.rsplit_once('/')?;
    document.pointer_mut(parent)?.as_object_mut()?.insert(name.to_owned(), Value::Array(vec![rule]));
    Some(document)
}

/// Removes the rules from all schemas.
fn strip(document: &mut Value) {
    let mut open = vec![document];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(map) => {
                if map.get("x-kubernetes-validations").is_some_and(Value::is_array) {
                    map.shift_remove("x-kubernetes-validations");
                }
                open.extend(map.values_mut());
            }
            Value::Array(items) => open.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

pub(super) fn text<'d>(document: &'d Value, pointer: &str) -> &'d str {
    document.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the kinds that the rule applies to: that of its definition, or all that the policy's constraints name.
pub(super) fn subjects(
    document: &Value,
    mutant: &Mutant,
    definitions: &[&Value],
    builtins: Option<&'static dyn Builtins>,
) -> Result<Vec<Subject>, NoSubjects> {
    if text(document, "/kind") == "CustomResourceDefinition" {
        let version = mutant.pointer.split('/').nth(3).unwrap_or_default();
        let name = text(document, &format!("/spec/versions/{version}/name"));
        return Ok(vec![Subject::new(document, Some(name))?]);
    }
    let kinds = Kinds::of(document, definitions, builtins)?;
    match kinds.unknown.into_iter().next() {
        Some(unknown) => Err(NoSubjects::Unknown(unknown)),
        None if kinds.subjects.is_empty() => Err(NoSubjects::None),
        None => Ok(kinds.subjects),
    }
}

/// Why the objects of a rule are unknown.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoSubjects {
    #[error(transparent)]
    Side(#[from] SideError),
    #[error(transparent)]
    Kinds(#[from] KindsError),
    #[error("no definition of {0}: --definitions names files that have it")]
    Unknown(String),
    #[error("the policy matches no kind")]
    None,
}
