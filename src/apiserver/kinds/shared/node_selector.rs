//! Validates node selectors.

use admit_apimachinery::findings::FieldErrors;

use super::texts::{label_value, qualified, subdomain};
use crate::kinds::field::Field;

fn some_values(values: &Field<'_>, errors: &mut FieldErrors) {
    if values.is_empty() {
        errors.add(|| values.required("must be specified when `operator` is 'In' or 'NotIn'"));
    }
}

fn no_values(values: &Field<'_>, errors: &mut FieldErrors) {
    if !values.is_empty() {
        errors.add(|| values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
    }
}

/// Validates a node selector.
pub(crate) fn node_selector(selector: &Field<'_>, errors: &mut FieldErrors) {
    let terms = selector.get("nodeSelectorTerms");
    if terms.is_empty() {
        errors.add(|| terms.required("must have at least one node selector term"));
    }
    for term in terms.items() {
        term.get("matchExpressions").items().for_each(|expression| node_expression(&expression, errors));
        term.get("matchFields").items().for_each(|expression| node_field(&expression, errors));
    }
}

fn node_expression(expression: &Field<'_>, errors: &mut FieldErrors) {
    let (operator, values) = (expression.get("operator"), expression.get("values"));
    match operator.text() {
        "In" | "NotIn" => some_values(&values, errors),
        "Exists" | "DoesNotExist" => no_values(&values, errors),
        "Gt" | "Lt" if values.len() != 1 => {
            errors.add(|| values.required("must be specified single value when `operator` is 'Lt' or 'Gt'"));
        }
        "Gt" | "Lt" => {}
        _ => errors.add(|| operator.invalid("not a valid selector operator")),
    }
    qualified(&expression.get("key"), errors);
    values.items().for_each(|value| label_value(&value, errors));
}

fn node_field(expression: &Field<'_>, errors: &mut FieldErrors) {
    let (operator, values, key) =
        (expression.get("operator"), expression.get("values"), expression.get("key"));
    match operator.text() {
        "In" | "NotIn" if values.len() != 1 => errors.add(|| {
            values
                .required("must be only one value when `operator` is 'In' or 'NotIn' for node field selector")
        }),
        "In" | "NotIn" => {}
        _ => errors.add(|| operator.invalid("not a valid selector operator")),
    }
    if key.text() == "metadata.name" {
        values.items().for_each(|value| subdomain(&value, errors));
    } else {
        errors.add(|| key.invalid("not a valid field selector key"));
    }
}

/// Renamed node labels, the version of the change, and the new names.
const OLD_LABELS: [(&str, &str, &str); 5] = [
    ("beta.kubernetes.io/arch", "v1.14", "kubernetes.io/arch"),
    ("beta.kubernetes.io/os", "v1.14", "kubernetes.io/os"),
    ("failure-domain.beta.kubernetes.io/region", "v1.17", "topology.kubernetes.io/region"),
    ("failure-domain.beta.kubernetes.io/zone", "v1.17", "topology.kubernetes.io/zone"),
    ("beta.kubernetes.io/instance-type", "v1.17", "node.kubernetes.io/instance-type"),
];

/// Returns the new name of a renamed node label.
pub(crate) fn renamed_label(key: &str) -> Option<&'static str> {
    OLD_LABELS.iter().find(|(old, ..)| *old == key).map(|(_, _, new)| *new)
}

/// Returns the deprecation message for a renamed node label.
pub(crate) fn old_label(key: &str) -> Option<String> {
    let (_, since, new) = OLD_LABELS.iter().find(|(old, ..)| *old == key)?;
    Some(format!("deprecated since {since}; use \"{new}\" instead"))
}

/// Adds warnings about a node selector term.
pub(crate) fn node_term_warnings(term: &Field<'_>, warnings: &mut Vec<String>) {
    for expression in term.get("matchExpressions").items() {
        let key = expression.get("key");
        if let Some(old) = old_label(key.text()) {
            warnings.push(format!("{key}: {} is {old}", key.text()));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn terms_are_whole() {
        let object = json!({"nodeSelectorTerms": [{
            "matchExpressions": [{"key": "a", "operator": "Gt"}, {"key": "b", "operator": "Exists", "values": ["v"]}],
            "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["A"]}, {"key": "x", "operator": "In"}]
        }]});
        let mut errors = FieldErrors::default();
        node_selector(&Field::root(&object), &mut errors);
        let texts: Vec<String> = errors.into_iter().map(|error| error.to_string()).collect();
        let at = |rest: &str| format!("nodeSelectorTerms[0].{rest}");
        assert_eq!(texts.len(), 5, "{texts:?}");
        assert_eq!(
            texts[0],
            at(
                "matchExpressions[0].values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"
            )
        );
        assert_eq!(
            texts[1],
            at(
                "matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            )
        );
        assert!(texts[2].starts_with(&at(
            "matchFields[0].values[0]: Invalid value: \"A\": a lowercase RFC 1123 subdomain"
        )));
        assert_eq!(texts[4], at("matchFields[1].key: Invalid value: \"x\": not a valid field selector key"));
    }
}
