//! What a question about a change is about: the rule that is changed and no other, and the kinds of its objects.

use serde_json::{Value, json};
use thiserror::Error;

use super::mutant::Mutant;
use crate::prove::{SideError, Subject};

/// Why it is not known which objects a rule is about.
#[derive(Debug, Error)]
pub(super) enum SubjectError {
    #[error(transparent)]
    Side(#[from] SideError),
    /// The group may be empty.
    #[error(
        "no definition of {plural}{}{group}: --definitions names files that have it",
        if group.is_empty() { "" } else { "." }
    )]
    NoDefinition { plural: String, group: String },
    #[error("the policy matches no kind")]
    NoKind,
}

/// The document with the rule that is changed and no other; none where it is no rule of its own.
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
    // The list may be gone with all others: it is put where it was.
    let (parent, name) = list.rsplit_once('/')?;
    document.pointer_mut(parent)?.as_object_mut()?.insert(name.to_owned(), Value::Array(vec![rule]));
    Some(document)
}

/// Takes the rules out of all schemas.
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

/// The kinds that the rule is about: that of its definition, or all that the constraints of a policy name.
pub(super) fn subjects(
    document: &Value,
    mutant: &Mutant,
    definitions: &[&Value],
) -> Result<Vec<Subject>, SubjectError> {
    if text(document, "/kind") == "CustomResourceDefinition" {
        let version = mutant.pointer.split('/').nth(3).unwrap_or_default();
        let name = text(document, &format!("/spec/versions/{version}/name"));
        return Ok(vec![Subject::new(document, Some(name))?]);
    }
    let rules = document.pointer("/spec/matchConstraints/resourceRules").and_then(Value::as_array);
    let mut found = Vec::new();
    for rule in rules.into_iter().flatten() {
        for (group, resource) in pairs(rule) {
            let plural = resource.split('/').next().unwrap_or_default();
            let is_it = |definition: &&&Value| {
                text(definition, "/spec/group") == group && text(definition, "/spec/names/plural") == plural
            };
            let Some(definition) = definitions.iter().find(is_it) else {
                let (plural, group) = (plural.to_owned(), group.to_owned());
                return Err(SubjectError::NoDefinition { plural, group });
            };
            let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
            let served =
                versions.into_iter().flatten().filter(|version| version.get("served") == Some(&json!(true)));
            for version in served.filter_map(|version| version.get("name").and_then(Value::as_str)) {
                found.push(Subject::new(definition, Some(version))?);
            }
        }
    }
    if found.is_empty() { Err(SubjectError::NoKind) } else { Ok(found) }
}

/// Group and resource of everything that a rule names, each once.
fn pairs(rule: &Value) -> Vec<(&str, &str)> {
    let list = |name: &str| {
        let items = rule.get(name).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(Value::as_str)
    };
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for group in list("apiGroups") {
        for resource in list("resources") {
            let plural = resource.split('/').next().unwrap_or_default();
            if !pairs.iter().any(|(known, other)| *known == group && other.split('/').next() == Some(plural))
            {
                pairs.push((group, resource));
            }
        }
    }
    pairs
}
