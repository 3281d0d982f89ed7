//! Validates the status of a ValidatingAdmissionPolicy: the warnings from type checking its expressions.

use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;

use crate::kinds::field::Field;
use crate::kinds::shared::conditions;

pub(super) fn validate(object: &Value, _old: &Value, errors: &mut FieldErrors) {
    let status = Field::root(object).get("status");
    for warning in status.get("typeChecking").get("expressionWarnings").items() {
        for name in ["warning", "fieldRef"] {
            let field = warning.get(name);
            if field.text().is_empty() || (name == "fieldRef" && field.text().trim().is_empty()) {
                errors.add(|| field.required(""));
            }
        }
    }
    conditions::validate(&status.get("conditions"), errors);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn warnings_name_an_expression() {
        let object = json!({"status": {"typeChecking": {"expressionWarnings": [{"fieldRef": " "}]}}});
        let mut errors = FieldErrors::default();
        validate(&object, &object, &mut errors);
        let texts: Vec<String> = errors.into_iter().map(|error| error.to_string()).collect();
        let at = "status.typeChecking.expressionWarnings[0]";
        assert_eq!(
            texts,
            [format!("{at}.warning: Required value"), format!("{at}.fieldRef: Required value")]
        );
    }
}
