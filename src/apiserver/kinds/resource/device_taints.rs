//! Validates taints of devices, and tolerations of them.

use admit_apimachinery::findings::FieldErrors;

use crate::kinds::field::Field;
use crate::kinds::shared::texts::{label_value, qualified};

const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];

/// Validates one taint of a device.
pub(super) fn taint(taint: &Field<'_>, errors: &mut FieldErrors) {
    let (value, effect) = (taint.get("value"), taint.get("effect"));
    qualified(&taint.get("key"), errors);
    if !value.is_empty() {
        label_value(&value, errors);
    }
    if effect.is_empty() {
        errors.add(|| effect.required(""));
    }
    effect.one_of(&EFFECTS, errors);
}

/// Validates the tolerations of a request.
pub(super) fn tolerations(list: &Field<'_>, errors: &mut FieldErrors) {
    if list.len() > 16 {
        errors.add(|| list.too_many(16));
        return;
    }
    for toleration in list.items() {
        let (key, value, operator) =
            (toleration.get("key"), toleration.get("value"), toleration.get("operator"));
        if !key.is_empty() {
            qualified(&key, errors);
        }
        match operator.text() {
            "Exists" if !value.is_empty() => {
                errors.add(|| value.invalid("must be empty for operator `Exists`"))
            }
            "Exists" => {}
            "Equal" => label_value(&value, errors),
            "" => errors.add(|| operator.required("")),
            _ => errors.add(|| operator.not_supported(&["Equal", "Exists"])),
        }
        toleration.get("effect").one_of(&EFFECTS, errors);
    }
}
