//! Defines the strategy of IPAddresses: an allocated address, and the object that it belongs to.

use admit_apimachinery::field_error::BadValue;
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names::NameRule;
use serde_json::Value;

use crate::kinds::field::Field;
use crate::kinds::shared::network::{Spelling, address_problems};
use crate::kinds::shared::{go_struct, reference};
use crate::kinds::{Habit, Naming, Strategy};

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "IPAddress",
    habits: &[Habit::ObjectAgain, Habit::PrefixIsName],
    name: Some(Naming::Own(|_, name, _| address_problems(name, Spelling::Canonical))),
    validate: Some(validate),
    validate_update: Some(update),
    ..Strategy::PLAIN
};

fn validate(object: &Value, errors: &mut FieldErrors) {
    let parent = Field::root(object).get("spec").get("parentRef");
    if !parent.is_set() {
        return errors.add(|| parent.required(""));
    }
    // Empty for the core group, to which Services belong.
    let (group, namespace) = (parent.get("group"), parent.get("namespace"));
    if !group.text().is_empty() {
        group.named(NameRule::Subdomain, errors);
    }
    reference::segment(&parent.get("resource"), errors);
    reference::segment(&parent.get("name"), errors);
    if !namespace.text().is_empty() {
        namespace.named(NameRule::PathSegment, errors);
    }
}

fn update(object: &Value, old: &Value, errors: &mut FieldErrors) {
    validate(object, errors);
    let (parent, old) = (in_go(object), in_go(old));
    if parent != old {
        let field = Field::root(object).get("spec").get("parentRef");
        errors.add(|| field.invalid_as(parent, "field is immutable"));
    }
}

/// Formats the reference for error messages.
fn in_go(object: &Value) -> BadValue {
    let parent = Field::root(object).get("spec").get("parentRef");
    let text = |name| parent.get(name).text();
    if !parent.is_set() {
        return Value::Null.into();
    }
    go_struct::of_texts(&[
        ("Group", text("group")),
        ("Resource", text("resource")),
        ("Namespace", text("namespace")),
        ("Name", text("name")),
    ])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::tests::told;

    #[test]
    fn parents_stay() {
        let of = |name: &str| json!({"spec": {"parentRef": {"resource": "services", "name": name}}});
        assert!(told(&STRATEGY, &of("a"), Some(&of("a"))).is_empty());
        assert_eq!(
            told(&STRATEGY, &of("b"), Some(&of("a"))),
            ["spec.parentRef: Invalid value: {\"Group\":\"\",\"Resource\":\"services\",\"Namespace\":\"\",\
                 \"Name\":\"b\"}: field is immutable"]
        );
    }

    #[test]
    fn names_are_canonical_addresses() {
        let problems =
            |name: &str| STRATEGY.name.map(|naming| naming.problems(&Value::Null, name, false).join("; "));
        assert_eq!(problems("10.0.0.1").as_deref(), Some(""));
        assert_eq!(problems("10.0.0.01").as_deref(), Some("must not have leading 0s"));
        assert_eq!(problems("2001:DB8::1").as_deref(), Some("must be in canonical form (\"2001:db8::1\")"));
    }
}
