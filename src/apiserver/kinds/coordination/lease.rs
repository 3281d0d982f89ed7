//! Defines the strategy of Leases: who holds a lease, and for how long.

use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;

use crate::kinds::field::Field;
use crate::kinds::{Habit, Strategy};
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "Lease",
    habits: &[Habit::CreatedByUpdate, Habit::NeedsVersion],
    prepare_create: Some(uncoordinated),
    prepare_update: Some(|lease, _| uncoordinated(lease)),
    validate: Some(validate),
    ..Strategy::PLAIN
};

/// Removes the fields for coordinated leader election, a feature that is off by default.
fn uncoordinated(lease: &mut Value) {
    if let Some(spec) = lease.get_mut("spec").filter(|spec| spec.is_object()) {
        for field in ["strategy", "preferredHolder"] {
            object::set_field(spec, field, None);
        }
    }
}

fn validate(object: &Value, errors: &mut FieldErrors) {
    let spec = Field::root(object).get("spec");
    let duration = spec.get("leaseDurationSeconds");
    if duration.integer().is_some_and(|seconds| seconds <= 0) {
        errors.add(|| duration.invalid("must be greater than 0"));
    }
    spec.get("leaseTransitions").not_negative(errors);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::tests::told;

    #[test]
    fn leases_last_a_while() {
        assert_eq!(
            told(&STRATEGY, &json!({"spec": {"leaseDurationSeconds": 0, "leaseTransitions": -1}}), None),
            [
                "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
                "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
            ]
        );
        let mut lease = json!({"spec": {"strategy": "x", "preferredHolder": "y", "holderIdentity": "z"}});
        uncoordinated(&mut lease);
        assert_eq!(lease, json!({"spec": {"holderIdentity": "z"}}));
    }
}
