//! Validates numbers that may be percentages of another number (pkg/apis/apps/validation, `ValidatePositiveIntOrPercent`).

use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;

use crate::kinds::field::Field;

const NO_PERCENTAGE: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or \
                             '93%', regex used for validation is '[0-9]+%')";

/// Requires a number of at least 0, or a percentage.
pub(crate) fn not_negative(field: &Field<'_>, errors: &mut FieldErrors) {
    match field.value() {
        Value::String(text) if digits(text).is_none() => errors.add(|| field.invalid(NO_PERCENTAGE)),
        _ => field.not_negative(errors),
    }
}

/// Requires a percentage of at most 100 %.
pub(crate) fn at_most_all(field: &Field<'_>, errors: &mut FieldErrors) {
    if field.value().as_str().and_then(digits).is_some_and(|percentage| percentage > 100) {
        errors.add(|| field.invalid("must not be greater than 100%"));
    }
}

/// Returns the number, or that of the percentage; 0 if it is neither.
pub(crate) fn number(field: &Field<'_>) -> i64 {
    match field.value() {
        // A string without `%` counts as the number in it.
        Value::String(text) => digits(text).or_else(|| text.parse().ok()).unwrap_or_default(),
        _ => field.integer().unwrap_or_default(),
    }
}

/// Returns the number before the `%`; one that is too large is the maximum.
fn digits(text: &str) -> Option<i64> {
    let digits = text.strip_suffix('%')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn percentages_are_digits_and_a_sign() {
        for (given, told) in [
            (json!(3), 0),
            (json!(-3), 1),
            (json!("30%"), 0),
            (json!("101%"), 1),
            (json!("3"), 1),
            (json!("%"), 1),
            (json!("-3%"), 1),
        ] {
            let mut errors = FieldErrors::default();
            not_negative(&Field::root(&given), &mut errors);
            at_most_all(&Field::root(&given), &mut errors);
            assert_eq!(errors.count(), told, "{given}");
        }
        assert_eq!(number(&Field::root(&json!("30%"))), 30);
        assert_eq!(number(&Field::root(&json!("7"))), 7);
    }
}
