//! Validates conditions of a status in their common form (apimachinery's `ValidateConditions`).

use std::collections::HashSet;

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::labels;

use crate::kinds::field::Field;

const LONGEST_REASON: usize = 1024;
const LONGEST_MESSAGE: usize = 32 * 1024;
const NO_REASON: &str = "a condition reason must start with alphabetic character, optionally followed by a string of \
                         alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. \
                         'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex \
                         used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";

/// Validates a list of conditions with unique types.
pub(crate) fn validate(conditions: &Field<'_>, errors: &mut FieldErrors) {
    let mut types = HashSet::new();
    for condition in conditions.items() {
        let kind = condition.get("type");
        if !types.insert(kind.text()) {
            errors.add(|| kind.duplicate());
        }
        one(&condition, errors);
    }
}

fn one(condition: &Field<'_>, errors: &mut FieldErrors) {
    let kind = condition.get("type");
    kind.problems(labels::key(kind.text()), errors);
    let status = condition.get("status");
    let known = ["False", "True", "Unknown"];
    if !known.contains(&status.text()) {
        errors.add(|| status.not_supported(&known));
    }
    let generation = condition.get("observedGeneration");
    if generation.integer().is_some_and(|generation| generation < 0) {
        errors.add(|| generation.invalid("must be greater than or equal to zero"));
    }
    let since = condition.get("lastTransitionTime");
    if !since.is_set() {
        errors.add(|| since.required(""));
    }
    let reason = condition.get("reason");
    match reason.text() {
        "" => errors.add(|| reason.required("")),
        text => {
            if !is_reason(text) {
                errors.add(|| reason.invalid(NO_REASON));
            }
            if text.len() > LONGEST_REASON {
                errors.add(|| reason.too_long(1024));
            }
        }
    }
    let message = condition.get("message");
    if message.text().len() > LONGEST_MESSAGE {
        errors.add(|| message.too_long(32 * 1024));
    }
}

fn is_reason(text: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.ends_with(word)
        && text.chars().all(|c| word(c) || c == ',' || c == ':')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reasons_are_words() {
        for (text, fine) in [("A", true), ("Aa,b:C_", true), ("_a", false), ("a,", false), ("1", false)] {
            assert_eq!(is_reason(text), fine, "{text}");
        }
    }

    #[test]
    fn every_condition_has_a_type_of_its_own() {
        let one = json!({"type": "A", "status": "True", "reason": "R", "lastTransitionTime": "t"});
        let mut errors = FieldErrors::default();
        validate(&Field::root(&json!([one, one])), &mut errors);
        let texts: Vec<String> = errors.into_iter().map(|error| error.to_string()).collect();
        assert_eq!(texts, ["[1].type: Duplicate value: \"A\""]);
    }
}
