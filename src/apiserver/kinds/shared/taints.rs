//! Taints of nodes, and what tolerates them.

use std::collections::HashSet;

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::labels;

use super::inside;
use super::texts::qualified;
use crate::kinds::field::Field;

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// The taints of a node: each key and effect once.
pub(crate) fn taints(taints: &Field<'_>, errors: &mut FieldErrors) {
    let mut known = HashSet::new();
    for taint in taints.items() {
        let (key, value, effect) = (taint.get("key"), taint.get("value"), taint.get("effect"));
        qualified(&key, errors);
        if let Some(problem) = joined(&labels::value(value.text())) {
            errors.add(|| value.invalid(problem));
        }
        if effect.text().is_empty() {
            errors.add(|| effect.required(""));
        }
        effect.one_of(&EFFECTS, errors);
        if !known.insert((key.text(), effect.text())) {
            errors.add(|| {
                let mut error = taint.duplicate();
                error.bad_value = inside::told(&inside::shown("io.k8s.api.core.v1.Taint", &taint.as_sent()));
                error.detail = "taints must be unique by key and effect pair".to_owned();
                error
            });
        }
    }
}

/// Tolerations.
pub(crate) fn tolerations(tolerations: &Field<'_>, errors: &mut FieldErrors) {
    for toleration in tolerations.items() {
        let (key, value) = (toleration.get("key"), toleration.get("value"));
        let (operator, effect) = (toleration.get("operator"), toleration.get("effect"));
        if key.text().is_empty() {
            if operator.text() != "Exists" {
                let why = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
                errors.add(|| operator.invalid(why));
            }
        } else {
            qualified(&key, errors);
        }
        if toleration.get("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
            errors.add(|| effect.invalid("effect must be 'NoExecute' when `tolerationSeconds` is set"));
        }
        match operator.text() {
            "" | "Equal" => {
                if let Some(problem) = joined(&labels::value(value.text())) {
                    errors.add(|| operator.invalid_as(value.text(), problem));
                }
            }
            "Exists" if !value.text().is_empty() => errors.add(|| {
                operator.invalid_as(
                    inside::told(&shown(&toleration)),
                    "value must be empty when `operator` is 'Exists'",
                )
            }),
            "Exists" => {}
            "Lt" | "Gt" => errors.add(|| operator.not_supported(&["Equal", "Exists", "Lt", "Gt"])),
            _ => errors.add(|| operator.not_supported(&["Equal", "Exists"])),
        }
        effect.one_of(&EFFECTS, errors);
    }
}

/// Tolerations of which none stands there twice.
pub(crate) fn distinct_tolerations(list: &Field<'_>, errors: &mut FieldErrors) {
    tolerations(list, errors);
    let mut known = HashSet::new();
    for toleration in list.items() {
        let own = shown(&toleration);
        if !known.insert(own.to_string()) {
            errors.add(|| {
                let mut error = toleration.duplicate();
                error.bad_value = inside::told(&own);
                error
            });
        }
    }
}

fn shown(toleration: &Field<'_>) -> serde_json::Value {
    inside::shown("io.k8s.api.core.v1.Toleration", &toleration.as_sent())
}

fn joined(problems: &[String]) -> Option<String> {
    (!problems.is_empty()).then(|| problems.join(";"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tolerations_fit_together() {
        let object = json!({"list": [
            {"operator": "Equal"},
            {"key": "k", "operator": "Exists", "value": "v", "tolerationSeconds": 1},
        ]});
        let mut errors = FieldErrors::default();
        tolerations(&Field::root(&object).get("list"), &mut errors);
        let texts: Vec<String> = errors.into_iter().map(|error| error.to_string()).collect();
        assert_eq!(
            texts,
            [
                "list[0].operator: Invalid value: \"Equal\": operator must be Exists when `key` is empty, which means \
                 \"match all values and all keys\"",
                "list[1].effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set",
                "list[1].operator: Invalid value: {\"Key\":\"k\",\"Operator\":\"Exists\",\"Value\":\"v\",\"Effect\":\"\",\
                 \"TolerationSeconds\":1}: value must be empty when `operator` is 'Exists'",
            ]
        );
    }
}
