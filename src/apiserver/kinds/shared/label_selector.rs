//! Validates label selectors (staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go).

use admit_apimachinery::field_error::BadValue;
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::{go, labels};
use serde_json::Value;

use crate::kinds::field::Field;

/// Whether the values of a selector's expressions must be valid label values. This is not checked if the
/// stored object has invalid values already.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LabelValues {
    Checked,
    Unchecked,
}

/// Validates a selector, if there is one.
pub(crate) fn validate(selector: &Field<'_>, values: LabelValues, errors: &mut FieldErrors) {
    label_pairs(&selector.get("matchLabels"), errors);
    for expression in selector.get("matchExpressions").items() {
        requirement(&expression, values, errors);
    }
}

/// Formats a selector for errors: labels sorted by key, fields in the order of their type.
pub(crate) fn shown(selector: &Field<'_>) -> BadValue {
    let (labels, expressions) = (selector.get("matchLabels"), selector.get("matchExpressions"));
    let mut parts = Vec::new();
    if !labels.is_empty() {
        parts.push(format!("\"matchLabels\":{}", go::json::text(labels.value())));
    }
    if !expressions.is_empty() {
        let all = expressions.items().map(|expression| {
            let fields = ["key", "operator", "values"].map(|name| (name, expression.get(name)));
            let given = fields.iter().filter(|(name, field)| *name != "values" || !field.is_empty());
            let written = given.map(|(name, field)| format!("\"{name}\":{}", go::json::text(field.value())));
            format!("{{{}}}", written.collect::<Vec<_>>().join(","))
        });
        parts.push(format!("\"matchExpressions\":[{}]", all.collect::<Vec<_>>().join(",")));
    }
    if selector.is_set() {
        BadValue::Verbatim(format!("{{{}}}", parts.join(",")))
    } else {
        Value::Null.into()
    }
}

/// Validates keys and values of labels; errors name the map, not the entry.
pub(crate) fn label_pairs(pairs: &Field<'_>, errors: &mut FieldErrors) {
    for (key, value) in pairs.entries() {
        for problem in labels::key(key) {
            errors.add(|| pairs.invalid_as(key, problem));
        }
        for problem in labels::value(value.text()) {
            errors.add(|| pairs.invalid_as(value.text(), problem));
        }
    }
}

fn requirement(expression: &Field<'_>, checked: LabelValues, errors: &mut FieldErrors) {
    let values = expression.get("values");
    match expression.get("operator").text() {
        "In" | "NotIn" if values.is_empty() => {
            errors.add(|| values.required("must be specified when `operator` is 'In' or 'NotIn'"));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            errors.add(|| {
                values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
            });
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        _ => errors.add(|| expression.get("operator").invalid("not a valid selector operator")),
    }
    let key = expression.get("key");
    key.problems(labels::key(key.text()), errors);
    for value in values.items().filter(|_| checked == LabelValues::Checked) {
        value.problems(labels::value(value.text()), errors);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_are_of_labels_that_can_be() {
        let selector = json!({"matchLabels": {"a": "b c"}, "matchExpressions": [
            {"key": "a", "operator": "In"}, {"key": "a", "operator": "Exists", "values": ["x"]},
            {"key": "a", "operator": "Is"}, {"key": "a", "operator": "In", "values": ["-"]}
        ]});
        let told = |values| {
            let mut errors = FieldErrors::default();
            validate(&Field::root(&selector), values, &mut errors);
            errors.into_iter().map(|error| error.to_string()).collect::<Vec<_>>()
        };
        let all = told(LabelValues::Checked);
        assert!(
            all[0].starts_with("matchLabels: Invalid value: \"b c\": a valid label must be"),
            "{}",
            all[0]
        );
        assert_eq!(
            all[1..4],
            [
                "matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
                "matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or \
                 'DoesNotExist'",
                "matchExpressions[2].operator: Invalid value: \"Is\": not a valid selector operator",
            ]
        );
        assert!(all[4].starts_with("matchExpressions[3].values[0]: Invalid value: \"-\""), "{}", all[4]);
        assert_eq!((all.len(), told(LabelValues::Unchecked).len()), (5, 4));
    }
}
