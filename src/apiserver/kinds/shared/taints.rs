//! Taints of nodes, and what tolerates them.

use std::collections::HashSet;

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::labels;

use super::inside;
use super::pod_spec::scheduling::tolerations;
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

/// Tolerations of which none stands there twice; how long they tolerate makes no difference.
pub(crate) fn distinct_tolerations(list: &Field<'_>, errors: &mut FieldErrors) {
    tolerations(list, errors);
    let mut known = HashSet::new();
    for toleration in list.items() {
        if !known.insert(["key", "operator", "value", "effect"].map(|name| toleration.get(name).text())) {
            errors.add(|| {
                let mut error = toleration.duplicate();
                error.bad_value = inside::told(&shown(&toleration));
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
    fn tolerations_fit_together_and_stand_there_once() {
        let one = json!({"key": "k", "operator": "Exists", "value": "v", "effect": "NoExecute"});
        let longer = json!({"key": "k", "operator": "Exists", "value": "v", "effect": "NoExecute", "tolerationSeconds": 5});
        let object = json!({"list": [one, longer]});
        let mut errors = FieldErrors::default();
        distinct_tolerations(&Field::root(&object).get("list"), &mut errors);
        let texts: Vec<String> = errors.into_iter().map(|error| error.to_string()).collect();
        let odd = |at| {
            format!(
                "list[{at}].operator: Invalid value: \"v\": value must be empty when `operator` is 'Exists'"
            )
        };
        let twice = "list[1]: Duplicate value: {\"Key\":\"k\",\"Operator\":\"Exists\",\"Value\":\"v\",\
                     \"Effect\":\"NoExecute\",\"TolerationSeconds\":5}";
        assert_eq!(texts, [odd(0), odd(1), twice.to_owned()]);
    }
}
