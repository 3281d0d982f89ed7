//! Validates the policies by which a Job fails because of its pods' failures, or succeeds before all indexes are done.

use std::collections::HashSet;

use admit_apimachinery::field_error::BadValue;
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::labels;

use super::indexes;
use crate::kinds::field::Field;

const MOST_RULES: usize = 20;
const MOST_CONDITIONS: usize = 20;
const MOST_EXIT_CODES: usize = 255;
const LONGEST_INDEXES: usize = 64 * 1024;

/// Validates `podFailurePolicy`.
pub(super) fn failure(spec: &Field<'_>, errors: &mut FieldErrors) {
    let rules = spec.get("podFailurePolicy").get("rules");
    if rules.len() > MOST_RULES {
        errors.add(|| rules.too_many(20));
    }
    let pods = spec.get("template").get("spec");
    let lists = [pods.get("containers"), pods.get("initContainers")];
    let names: HashSet<&str> =
        lists.iter().flat_map(Field::items).map(|container| container.get("name").text()).collect();
    let per_index = spec.get("backoffLimitPerIndex").is_set();
    for rule in rules.items() {
        failure_rule(&rule, per_index, &names, errors);
    }
}

fn failure_rule(rule: &Field<'_>, per_index: bool, containers: &HashSet<&str>, errors: &mut FieldErrors) {
    let action = rule.get("action");
    match action.text() {
        "FailIndex" if !per_index => {
            errors.add(|| action.invalid("requires the backoffLimitPerIndex to be set"));
        }
        "FailIndex" => {}
        _ => demand_one_of(&action, &["Count", "FailIndex", "FailJob", "Ignore"], errors),
    }
    let (codes, conditions) = (rule.get("onExitCodes"), rule.get("onPodConditions"));
    if codes.is_set() {
        exit_codes(&codes, containers, errors);
    }
    if conditions.len() > MOST_CONDITIONS {
        errors.add(|| conditions.too_many(20));
    }
    for condition in conditions.items() {
        let kind = condition.get("type");
        kind.problems(labels::key(kind.text()), errors);
        demand_one_of(&condition.get("status"), &["False", "True", "Unknown"], errors);
    }
    let why = match (codes.is_set(), !conditions.is_empty()) {
        (true, true) => "specifying both OnExitCodes and OnPodConditions is not supported",
        (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
        _ => return,
    };
    errors.add(|| rule.invalid_as(BadValue::Omitted, why));
}

/// Requires a field with one of the known values.
fn demand_one_of(field: &Field<'_>, known: &[&str], errors: &mut FieldErrors) {
    if field.is_empty() {
        let quoted: Vec<String> = known.iter().map(|name| format!("\"{name}\"")).collect();
        errors.add(|| field.required(format!("valid values: [{}]", quoted.join(" "))));
    } else {
        field.one_of(known, errors);
    }
}

fn exit_codes(codes: &Field<'_>, containers: &HashSet<&str>, errors: &mut FieldErrors) {
    let (operator, container, values) =
        (codes.get("operator"), codes.get("containerName"), codes.get("values"));
    demand_one_of(&operator, &["In", "NotIn"], errors);
    if container.is_set() && !containers.contains(container.text()) {
        let why = "must be one of the container or initContainer names in the pod template";
        errors.add(|| container.invalid(why));
    }
    if values.is_empty() {
        errors.add(|| values.invalid_as(&*values.as_sent(), "at least one value is required"));
    } else if values.len() > MOST_EXIT_CODES {
        errors.add(|| values.too_many(255));
    }
    let (mut seen, mut last, mut is_ordered) = (HashSet::new(), i64::MIN, true);
    for value in values.items() {
        let code = value.integer().unwrap_or_default();
        if code == 0 && operator.text() == "In" {
            errors.add(|| value.invalid_as(0, "must not be 0 for the In operator"));
        }
        if !seen.insert(code) {
            errors.add(|| value.duplicate());
        }
        is_ordered &= last <= code;
        last = code;
    }
    if !is_ordered {
        errors.add(|| values.invalid("must be ordered"));
    }
}

/// Validates `successPolicy` of an indexed Job.
pub(super) fn success(spec: &Field<'_>, errors: &mut FieldErrors) {
    let rules = spec.get("successPolicy").get("rules");
    if rules.is_empty() {
        let why = "at least one rules must be specified when the successPolicy is specified";
        errors.add(|| rules.required(why));
    }
    if rules.len() > MOST_RULES {
        errors.add(|| rules.too_many(20));
    }
    let completions = spec.get("completions").integer().unwrap_or_default();
    for rule in rules.items() {
        success_rule(&rule, completions, errors);
    }
}

fn success_rule(rule: &Field<'_>, completions: i64, errors: &mut FieldErrors) {
    let (listed, count) = (rule.get("succeededIndexes"), rule.get("succeededCount"));
    if !listed.is_set() && !count.is_set() {
        let why = "at least one of succeededCount or succeededIndexes must be specified";
        errors.add(|| rule.required(why));
    }
    let mut total = 0;
    if listed.is_set() {
        if listed.text().len() > LONGEST_INDEXES {
            errors.add(|| listed.too_long(64 * 1024));
        }
        match indexes::count(listed.text(), completions) {
            Ok(found) => total = found,
            Err(why) => errors.add(|| listed.invalid(format!("error parsing succeededIndexes: {why}"))),
        }
    }
    let Some(own) = count.integer() else { return };
    count.not_negative(errors);
    if own > completions {
        let of = "the number of specified completions";
        errors.add(|| count.invalid(format!("must be less than or equal to {completions} ({of})")));
    }
    if listed.is_set() && own > total {
        let of = "the number of indexes in the specified succeededIndexes field";
        errors.add(|| count.invalid(format!("must be less than or equal to {total} ({of})")));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn told(validate: fn(&Field<'_>, &mut FieldErrors), spec: &Value) -> Vec<String> {
        let mut errors = FieldErrors::default();
        validate(&Field::root(spec), &mut errors);
        errors.into_iter().map(|error| error.to_string()).collect()
    }

    #[test]
    fn rules_of_failure_go_by_one_thing() {
        let codes = json!({"operator": "In", "values": [2, 0, 2]});
        let conditions = json!([{"type": "A", "status": "Maybe"}]);
        let spec = json!({"podFailurePolicy": {"rules": [
            {"onExitCodes": codes}, {"action": "FailIndex", "onExitCodes": {"operator": "NotIn", "values": [1]},
            "onPodConditions": conditions}, {"action": "Ignore"}]}});
        assert_eq!(
            told(failure, &spec),
            [
                "podFailurePolicy.rules[0].action: Required value: valid values: [\"Count\" \"FailIndex\" \"FailJob\" \
                 \"Ignore\"]",
                "podFailurePolicy.rules[0].onExitCodes.values[1]: Invalid value: 0: must not be 0 for the In operator",
                "podFailurePolicy.rules[0].onExitCodes.values[2]: Duplicate value: 2",
                "podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [2,0,2]: must be ordered",
                "podFailurePolicy.rules[1].action: Invalid value: \"FailIndex\": requires the backoffLimitPerIndex to be \
                 set",
                "podFailurePolicy.rules[1].onPodConditions[0].status: Unsupported value: \"Maybe\": supported values: \
                 \"False\", \"True\", \"Unknown\"",
                "podFailurePolicy.rules[1]: Invalid value: specifying both OnExitCodes and OnPodConditions is not \
                 supported",
                "podFailurePolicy.rules[2]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required",
            ]
        );
    }

    #[test]
    fn rules_of_success_count_indexes_that_there_are() {
        let rules = json!([{"succeededIndexes": "0-1", "succeededCount": 3}, {"succeededCount": 9}]);
        let spec = json!({"completions": 5, "successPolicy": {"rules": rules}});
        assert_eq!(
            told(success, &spec),
            [
                "successPolicy.rules[0].succeededCount: Invalid value: 3: must be less than or equal to 2 (the number of \
                 indexes in the specified succeededIndexes field)",
                "successPolicy.rules[1].succeededCount: Invalid value: 9: must be less than or equal to 5 (the number of \
                 specified completions)",
            ]
        );
    }
}
