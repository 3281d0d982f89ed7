//! Defines the strategy of CSINodes: the drivers of a node. Read from pkg/apis/storage/validation and
//! pkg/registry/storage/csinode of Kubernetes 1.36.

use std::collections::{HashMap, HashSet};

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::labels;
use serde_json::Value;

use crate::kinds::field::Field;
use crate::kinds::shared::inside;
use crate::kinds::shared::texts::driver_name;
use crate::kinds::{Habit, Strategy};
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "CSINode",
    habits: &[Habit::NeedsVersion, Habit::AnswersDeleted, Habit::ChangeOnce, Habit::ObjectAgain],
    validate: Some(validate),
    validate_update: Some(validate_update),
    ..Strategy::PLAIN
};

const NODE_ID_LENGTH: usize = 256;

fn validate(node: &Value, errors: &mut FieldErrors) {
    let mut known = HashSet::new();
    for driver in Field::root(node).get("spec").get("drivers").items() {
        let (name, id) = (driver.get("name"), driver.get("nodeID"));
        driver_name(&name, errors);
        if id.text().is_empty() {
            errors.add(|| id.required(""));
        }
        if id.text().len() > NODE_ID_LENGTH {
            errors.add(|| id.invalid(format!("must be {NODE_ID_LENGTH} characters or less")));
        }
        driver.get("allocatable").get("count").not_negative(errors);
        if !known.insert(name.text()) {
            errors.add(|| name.duplicate());
        }
        topology_keys(&driver, errors);
    }
}

/// Validates label keys; errors are reported for the driver.
fn topology_keys(driver: &Field<'_>, errors: &mut FieldErrors) {
    let mut known = HashSet::new();
    for key in driver.get("topologyKeys").items().map(|key| key.text()) {
        if key.is_empty() {
            errors.add(|| driver.required(""));
        }
        if !known.insert(key) {
            errors.add(|| {
                let mut error = driver.duplicate();
                error.bad_value = key.into();
                error
            });
        }
        for problem in labels::key(key) {
            errors.add(|| driver.invalid_as(key, problem));
        }
    }
}

/// Drivers may be added and removed; those that stay are immutable except for the number of volumes.
fn validate_update(node: &Value, old: &Value, errors: &mut FieldErrors) {
    validate(node, errors);
    let drivers = Field::root(node).get("spec").get("drivers");
    let before: HashMap<&str, &Value> =
        drivers_of(old).map(|driver| (driver.get("name").text(), driver.value())).collect();
    for driver in drivers.items() {
        let Some(old) = before.get(driver.get("name").text()) else { continue };
        let [new, old] = [driver.value(), old].map(|driver| {
            let mut counted_out = driver.clone();
            object::set_field(&mut counted_out, "allocatable", None);
            inside::shown("io.k8s.api.storage.v1.CSINodeDriver", &counted_out)
        });
        if new != old {
            errors.add(|| drivers.invalid_as(inside::told(&new), "field is immutable"));
        }
    }
}

fn drivers_of(node: &Value) -> impl Iterator<Item = Field<'_>> {
    Field::root(node).get("spec").get("drivers").items()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_change_and_ids_do_not() {
        let node = |id: &str, count: i64| json!({"spec": {"drivers": [{"name": "d", "nodeID": id, "allocatable": {"count": count}}]}});
        let texts = |new: &Value, old: &Value| {
            let mut errors = FieldErrors::default();
            validate_update(new, old, &mut errors);
            errors.into_iter().map(|error| error.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(texts(&node("a", 2), &node("a", 1)), Vec::<String>::new());
        assert_eq!(
            texts(&node("a", -1), &node("a", 1)),
            ["spec.drivers[0].allocatable.count: Invalid value: -1: must be greater than or equal to 0"]
        );
        assert_eq!(
            texts(&node("b", 1), &node("a", 1)),
            [
                "spec.drivers: Invalid value: {\"Name\":\"d\",\"NodeID\":\"b\",\"TopologyKeys\":null,\"Allocatable\":null}: \
              field is immutable"
            ]
        );
    }
}
