//! Validates pool and attribute names, UIDs, selectors and parameters for the kinds of `resource.k8s.io`.

use std::collections::HashSet;

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names;
use admit_policy::{SelectorProblem, selector_problem};
use serde_json::Value;

use crate::kinds::field::Field;
use crate::kinds::shared::texts::driver_name;

const POOL_NAME_LENGTH: i64 = 253;
const IDENTIFIER_LENGTH: i64 = 32;
const EXPRESSION_LENGTH: i64 = 10 << 10;
/// Most bytes of parameters.
pub(super) const PARAMETERS_LENGTH: usize = 10 << 10;

fn is_longer(text: &str, length: i64) -> bool {
    i64::try_from(text.len()).is_ok_and(|own| own > length)
}

/// Validates a pool's name: subdomains separated by slashes.
pub(super) fn pool_name(field: &Field<'_>, errors: &mut FieldErrors) {
    if field.is_empty() {
        errors.add(|| field.required(""));
        return;
    }
    if is_longer(field.text(), POOL_NAME_LENGTH) {
        errors.add(|| field.too_long(POOL_NAME_LENGTH));
    }
    for part in field.text().split('/') {
        for problem in names::dns1123_subdomain(part) {
            errors.add(|| field.invalid_as(part, problem));
        }
    }
}

/// Validates a C identifier, optionally with a driver name and a slash before it. Errors are reported for `field`.
pub(super) fn qualified_name(name: &str, field: &Field<'_>, errors: &mut FieldErrors) {
    let parts: Vec<&str> = name.split('/').collect();
    match parts.as_slice() {
        [identifier] => c_identifier(identifier, field, errors),
        [domain, identifier] => {
            if domain.is_empty() {
                errors.add(|| field.invalid_as("", "the domain must not be empty"));
            } else {
                driver_name(&field.with(&Value::from(*domain)), errors);
            }
            if identifier.is_empty() {
                errors.add(|| field.invalid_as("", "the name must not be empty"));
            } else {
                c_identifier(identifier, field, errors);
            }
        }
        // Names with more slashes are not validated.
        _ => {}
    }
}

/// Validates a qualified name, which must have a domain.
pub(super) fn fully_qualified_name(field: &Field<'_>, errors: &mut FieldErrors) {
    qualified_name(field.text(), field, errors);
    if !field.text().contains('/') {
        errors
            .add(|| field.invalid("a fully qualified name must be a domain and a name separated by a slash"));
    }
}

fn c_identifier(text: &str, field: &Field<'_>, errors: &mut FieldErrors) {
    const FORM: &str = "a valid C identifier must start with alphabetic character or '_', followed by a string of \
                        alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for \
                        validation is '[A-Za-z_][A-Za-z0-9_]*')";
    if is_longer(text, IDENTIFIER_LENGTH) {
        errors.add(|| field.too_long(IDENTIFIER_LENGTH));
    }
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !starts || !text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        errors.add(|| field.invalid_as(text, FORM));
    }
}

/// Validates the UID of a share.
pub(super) fn uid(field: &Field<'_>, errors: &mut FieldErrors) {
    let text = field.text();
    let form = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase \
                hexadecimal characters";
    match uuid::Uuid::parse_str(text) {
        Err(_) => {
            let length = text.len();
            let why = if [36, 45, 38, 32].contains(&length) {
                "error validating uid: invalid UUID format".to_owned()
            } else {
                format!("error validating uid: invalid UUID length: {length}")
            };
            errors.add(|| field.invalid(why));
        }
        Ok(_) if text.len() != 36 || text.bytes().any(|b| b.is_ascii_uppercase()) => {
            errors.add(|| field.invalid(form));
        }
        Ok(_) => {}
    }
}

/// Validates selectors, and their CEL expressions unless these are unchanged.
pub(super) fn selectors(list: &Field<'_>, stored: bool, errors: &mut FieldErrors) {
    if list.len() > 32 {
        errors.add(|| list.too_many(32));
        return;
    }
    for selector in list.items() {
        let cel = selector.get("cel");
        if cel.is_set() {
            if !stored {
                expression(&cel.get("expression"), errors);
            }
        } else {
            errors.add(|| cel.required(""));
        }
    }
}

fn expression(field: &Field<'_>, errors: &mut FieldErrors) {
    if is_longer(field.text(), EXPRESSION_LENGTH) {
        errors.add(|| field.too_long(EXPRESSION_LENGTH));
        return;
    }
    match selector_problem(field.text()) {
        None => {}
        Some(SelectorProblem::Invalid(why)) => errors.add(|| field.invalid(why.to_string())),
        Some(SelectorProblem::TooComplex) => {
            errors.add(|| field.forbidden("too complex, exceeds cost limit"))
        }
    }
}

/// Validates a driver's configuration: the driver's name and its parameters.
pub(super) fn configuration(config: &Field<'_>, stored: bool, errors: &mut FieldErrors) {
    let opaque = config.get("opaque");
    if !opaque.is_set() {
        errors.add(|| opaque.required(""));
        return;
    }
    driver_name(&opaque.get("driver"), errors);
    raw_object(&opaque.get("parameters"), stored, PARAMETERS_LENGTH, errors);
}

/// Validates an arbitrary JSON object, and its length unless it is unchanged.
pub(super) fn raw_object(field: &Field<'_>, stored: bool, length: usize, errors: &mut FieldErrors) {
    if !field.is_set() {
        errors.add(|| field.required(""));
    } else if !stored && field.value().to_string().len() > length {
        errors.add(|| field.too_long(i64::try_from(length).unwrap_or(i64::MAX)));
    } else if field.map().is_none() {
        errors.add(|| field.invalid_as("<value omitted>", "must be a valid JSON object"));
    }
}

/// Validates a list of at most `most` items with unique keys; `item` validates each.
pub(super) fn distinct<'o>(
    list: &Field<'o>,
    most: Option<usize>,
    key: impl Fn(&Field<'o>) -> String,
    mut item: impl FnMut(&Field<'o>, &mut FieldErrors),
    errors: &mut FieldErrors,
) {
    if let Some(most) = most.filter(|most| list.len() > *most) {
        errors.add(|| list.too_many(i64::try_from(most).unwrap_or(i64::MAX)));
        return;
    }
    list.items().for_each(|own| item(&own, errors));
    let mut known = HashSet::new();
    for own in list.items() {
        let key = key(&own);
        if !known.insert(key.clone()) {
            errors.add(|| {
                let mut error = own.duplicate();
                error.bad_value = key.as_str().into();
                error
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_have_domains_and_forms() {
        let texts = |check: fn(&Field<'_>, &mut FieldErrors), text: &str| {
            let value = json!({"f": text});
            let mut errors = FieldErrors::default();
            check(&Field::root(&value).get("f"), &mut errors);
            errors.into_iter().map(|error| error.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(texts(fully_qualified_name, "d.example.com/a_b"), Vec::<String>::new());
        assert_eq!(
            texts(fully_qualified_name, "/a"),
            ["f: Invalid value: \"\": the domain must not be empty"]
        );
        assert_eq!(texts(pool_name, "a/b"), Vec::<String>::new());
        assert_eq!(
            texts(uid, "x"),
            ["f: Invalid value: \"x\": error validating uid: invalid UUID length: 1"]
        );
        assert_eq!(texts(uid, "2B7A8E50-31D8-4B7B-8A5C-1C7E2E1D7A11").len(), 1);
        assert_eq!(texts(qualified_name_of, &"a".repeat(33)), ["f: Too long: may not be more than 32 bytes"]);
    }

    fn qualified_name_of(field: &Field<'_>, errors: &mut FieldErrors) {
        qualified_name(field.text(), field, errors);
    }
}
