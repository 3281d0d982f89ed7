//! Validates the scheduling constraints of a pod: affinity to nodes and to other pods, and tolerations.

use std::collections::{HashMap, HashSet};

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::labels;
use admit_apimachinery::names::NameRule;

use super::Options;
use crate::kinds::field::Field;
use crate::kinds::shared::label_selector;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const NO_OPERATOR: &str = "not a valid selector operator";

/// Validates an affinity.
pub(super) fn affinity(affinity: &Field<'_>, options: &Options<'_>, errors: &mut FieldErrors) {
    let nodes = affinity.get("nodeAffinity");
    let required = nodes.get(REQUIRED);
    if required.is_set() {
        node_selector(&required, options.odd_node_values, errors);
    }
    for term in nodes.get(PREFERRED).items() {
        weight(&term, errors);
        // A preference for an impossible value is harmless.
        node_term(&term.get("preference"), true, errors);
    }
    for pods in ["podAffinity", "podAntiAffinity"].into_iter().map(|name| affinity.get(name)) {
        for term in pods.get(REQUIRED).items() {
            pod_term(&term, options, errors);
        }
        for weighted in pods.get(PREFERRED).items() {
            weight(&weighted, errors);
            pod_term(&weighted.get("podAffinityTerm"), options, errors);
        }
    }
}

fn weight(term: &Field<'_>, errors: &mut FieldErrors) {
    let weight = term.get("weight");
    let number = weight.integer().unwrap_or(0);
    if !(1..=100).contains(&number) {
        errors.add(|| weight.invalid_as(number, "must be in the range 1-100"));
    }
}

/// Validates a node selector. `odd_values`: invalid label values are allowed.
fn node_selector(selector: &Field<'_>, odd_values: bool, errors: &mut FieldErrors) {
    let terms = selector.get("nodeSelectorTerms");
    if terms.is_empty() {
        errors.add(|| terms.required("must have at least one node selector term"));
    }
    for term in terms.items() {
        node_term(&term, odd_values, errors);
    }
}

fn node_term(term: &Field<'_>, odd_values: bool, errors: &mut FieldErrors) {
    for expression in term.get("matchExpressions").items() {
        node_labels(&expression, odd_values, errors);
    }
    for field in term.get("matchFields").items() {
        node_fields(&field, errors);
    }
}

fn node_labels(expression: &Field<'_>, odd_values: bool, errors: &mut FieldErrors) {
    let (key, operator, values) =
        (expression.get("key"), expression.get("operator"), expression.get("values"));
    match operator.text() {
        "In" | "NotIn" if values.is_empty() => {
            errors.add(|| values.required("must be specified when `operator` is 'In' or 'NotIn'"));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.add(|| values.forbidden(why));
        }
        "Gt" | "Lt" if values.len() != 1 => {
            errors.add(|| values.required("must be specified single value when `operator` is 'Lt' or 'Gt'"));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        text => errors.add(|| operator.invalid_as(text, NO_OPERATOR)),
    }
    key.problems(labels::key(key.text()), errors);
    for value in values.items().filter(|_| !odd_values) {
        value.problems(labels::value(value.text()), errors);
    }
}

fn node_fields(expression: &Field<'_>, errors: &mut FieldErrors) {
    let (key, operator, values) =
        (expression.get("key"), expression.get("operator"), expression.get("values"));
    match operator.text() {
        "In" | "NotIn" if values.len() == 1 => {}
        "In" | "NotIn" => errors.add(|| {
            values
                .required("must be only one value when `operator` is 'In' or 'NotIn' for node field selector")
        }),
        text => errors.add(|| operator.invalid_as(text, NO_OPERATOR)),
    }
    if key.text() != "metadata.name" {
        return errors.add(|| key.invalid("not a valid field selector key"));
    }
    for value in values.items() {
        value.named(NameRule::Subdomain, errors);
    }
}

fn pod_term(term: &Field<'_>, options: &Options<'_>, errors: &mut FieldErrors) {
    let selector = term.get("labelSelector");
    for selector in [&selector, &term.get("namespaceSelector")] {
        label_selector::validate(selector, options.selector_values(), errors);
    }
    // The error's path has the singular, and no index.
    let namespace = term.get("namespace");
    for name in term.get("namespaces").items() {
        namespace.with(name.value()).named(NameRule::Label, errors);
    }
    label_keys(term, &selector, errors);
    let topology = term.get("topologyKey");
    if topology.text().is_empty() {
        errors.add(|| topology.required("can not be empty"));
    }
    topology.problems(labels::key(topology.text()), errors);
}

/// Validates the keys whose values are taken from the pod's labels on creation.
pub(super) fn label_keys(term: &Field<'_>, selector: &Field<'_>, errors: &mut FieldErrors) {
    let (same, other) = (term.get("matchLabelKeys"), term.get("mismatchLabelKeys"));
    for keys in [&same, &other].into_iter().filter(|keys| !keys.is_empty()) {
        if !selector.is_set() {
            errors.add(|| keys.forbidden("must not be specified when labelSelector is not set"));
            continue;
        }
        for key in keys.items() {
            key.problems(labels::key(key.text()), errors);
        }
    }
    let places: HashMap<&str, usize> = same.texts().enumerate().map(|(at, key)| (key, at)).collect();
    let mut selected: HashSet<&str> = selector
        .get("matchLabels")
        .map()
        .into_iter()
        .flat_map(|labels| labels.keys().map(String::as_str))
        .collect();
    for expression in selector.get("matchExpressions").items() {
        let key = expression.get("key").text();
        if let (Some(at), true) = (places.get(key), selected.contains(key)) {
            errors.add(|| term.index(*at).invalid_as(key, "exists in both matchLabelKeys and labelSelector"));
        }
        selected.insert(key);
    }
    let others: HashSet<&str> = other.texts().collect();
    for key in same.items().filter(|key| others.contains(key.text())) {
        errors.add(|| key.invalid("exists in both matchLabelKeys and mismatchLabelKeys"));
    }
}

/// Validates the tolerations of a pod.
pub(crate) fn tolerations(list: &Field<'_>, errors: &mut FieldErrors) {
    for toleration in list.items() {
        let [key, operator, value, effect] =
            ["key", "operator", "value", "effect"].map(|name| toleration.get(name));
        if !key.text().is_empty() {
            key.problems(labels::key(key.text()), errors);
        } else if operator.text() != "Exists" {
            let why =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.add(|| operator.invalid(why));
        }
        if toleration.get("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
            errors.add(|| effect.invalid("effect must be 'NoExecute' when `tolerationSeconds` is set"));
        }
        match operator.text() {
            "" | "Equal" => {
                let problems = labels::value(value.text());
                if !problems.is_empty() {
                    errors.add(|| operator.invalid_as(value.text(), problems.join(";")));
                }
            }
            "Exists" if !value.text().is_empty() => errors
                .add(|| operator.invalid_as(value.text(), "value must be empty when `operator` is 'Exists'")),
            "Exists" => {}
            "Lt" | "Gt" => errors.add(|| operator.not_supported(&["Equal", "Exists", "Lt", "Gt"])),
            _ => errors.add(|| operator.not_supported(&["Equal", "Exists"])),
        }
        effect.one_of(&["NoSchedule", "PreferNoSchedule", "NoExecute"], errors);
    }
}
