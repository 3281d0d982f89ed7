//! StorageClasses: how volumes are made. Read from pkg/apis/storage/validation and pkg/registry/storage/storageclass of
//! Kubernetes 1.36.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use admit_apimachinery::findings::{FieldErrors, MAX_FINDINGS};
use serde_json::Value;

use super::parameters::{parameters, provisioner};
use crate::kinds::field::Field;
use crate::kinds::shared::defaults::set_absent;
use crate::kinds::shared::node_selector::old_label;
use crate::kinds::shared::texts::qualified;
use crate::kinds::{Habit, Strategy};

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "StorageClass",
    habits: &[Habit::AnswersDeleted, Habit::ObjectAgain],
    default: Some(default),
    validate: Some(validate),
    validate_update: Some(validate_update),
    warnings: Some(warnings),
    ..Strategy::PLAIN
};

fn default(_: &str, class: &mut Value) {
    set_absent(class, &[("reclaimPolicy", "Delete".into()), ("volumeBindingMode", "Immediate".into())]);
}

fn warnings(class: &Value, _: Option<&Value>) -> Vec<String> {
    let mut warnings = Vec::new();
    let terms = Field::root(class).get("allowedTopologies");
    for term in terms.items() {
        let expressions = term.get("matchLabelExpressions");
        for key in expressions.items().map(|expression| expression.get("key")) {
            warnings.extend(old_label(key.text()).map(|old| format!("{key}: {old}")));
        }
    }
    warnings
}

fn validate(class: &Value, errors: &mut FieldErrors) {
    let class = Field::root(class);
    provisioner(&class.get("provisioner"), errors);
    parameters(&class.get("parameters"), true, errors);
    class.get("reclaimPolicy").one_of(&["Delete", "Retain"], errors);
    let binding = class.get("volumeBindingMode");
    if !["Immediate", "WaitForFirstConsumer"].contains(&binding.text()) {
        errors.add(|| binding.not_supported(&["Immediate", "WaitForFirstConsumer"]));
    }
    topologies(&class.get("allowedTopologies"), errors);
}

/// Terms of which no two say the same: each is told as often as it was said before. One that says nothing is taken for a
/// repetition of as many as there are terms.
fn topologies(terms: &Field<'_>, errors: &mut FieldErrors) {
    let mut known: HashMap<_, usize> = HashMap::new();
    for term in terms.items() {
        let expressions = term.get("matchLabelExpressions");
        let meaning = topology(&expressions, errors);
        let before = if meaning.is_empty() { terms.len() } else { 0 };
        let count = known.entry(meaning).or_default();
        for _ in 0..before.saturating_add(*count).min(MAX_FINDINGS) {
            errors.add(|| {
                let mut error = expressions.duplicate();
                error.bad_value = "".into();
                error
            });
        }
        *count = count.saturating_add(1);
    }
}

/// The values that a term allows for each key.
fn topology<'o>(expressions: &Field<'o>, errors: &mut FieldErrors) -> BTreeMap<&'o str, BTreeSet<&'o str>> {
    let mut meaning = BTreeMap::new();
    for expression in expressions.items() {
        let (key, values) = (expression.get("key"), expression.get("values"));
        if values.is_empty() {
            errors.add(|| values.required(""));
        }
        let mut allowed = BTreeSet::new();
        for value in values.items() {
            if !allowed.insert(value.text()) {
                errors.add(|| value.duplicate());
            }
        }
        qualified(&key, errors);
        if meaning.insert(key.text(), allowed).is_some() {
            errors.add(|| key.duplicate());
        }
    }
    meaning
}

fn validate_update(class: &Value, old: &Value, errors: &mut FieldErrors) {
    validate(class, errors);
    let (class, old) = (Field::root(class), Field::root(old));
    class.get("parameters").immutable_or_null(&old.get("parameters"), errors);
    for field in ["provisioner", "reclaimPolicy", "volumeBindingMode"] {
        class.get(field).immutable(&old.get(field), errors);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn topologies_differ() {
        let expression = |key: &str| json!({"key": key, "values": ["a", "a"]});
        let class = json!({"provisioner": "p", "volumeBindingMode": "Immediate", "allowedTopologies": [
            {"matchLabelExpressions": [expression("zone"), expression("zone")]},
        ]});
        let mut errors = FieldErrors::default();
        validate(&class, &mut errors);
        let texts: Vec<String> = errors.into_iter().map(|error| error.to_string()).collect();
        assert_eq!(
            texts,
            [
                "allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: \"a\"",
                "allowedTopologies[0].matchLabelExpressions[1].values[1]: Duplicate value: \"a\"",
                "allowedTopologies[0].matchLabelExpressions[1].key: Duplicate value: \"zone\"",
            ]
        );
    }

    #[test]
    fn parameters_are_bounded() {
        let many: serde_json::Map<String, Value> = (0..513).map(|at| (at.to_string(), "".into())).collect();
        let class = json!({"provisioner": "p", "volumeBindingMode": "Immediate", "parameters": many});
        let mut errors = FieldErrors::default();
        validate(&class, &mut errors);
        let texts: Vec<String> = errors.into_iter().map(|error| error.to_string()).collect();
        assert_eq!(texts, ["parameters: Too long: may not be more than 512 bytes"]);
    }
}
