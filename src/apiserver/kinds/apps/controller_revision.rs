//! Defines the strategy of ControllerRevisions: immutable snapshots of a workload's state.

use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;

use crate::kinds::field::Field;
use crate::kinds::{Habit, Strategy};

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "ControllerRevision",
    habits: &[Habit::ObjectAgain],
    validate: Some(validate),
    validate_create: Some(validate_create),
    validate_update: Some(validate_update),
    ..Strategy::PLAIN
};

fn validate(object: &Value, errors: &mut FieldErrors) {
    Field::root(object).get("revision").not_negative(errors);
}

fn validate_create(object: &Value, errors: &mut FieldErrors) {
    let data = Field::root(object).get("data");
    if !data.is_set() {
        errors.add(|| data.required("data is mandatory"));
    } else if data.map().is_none() {
        errors.add(|| data.required("data must be a valid JSON object"));
    }
}

fn validate_update(object: &Value, old: &Value, errors: &mut FieldErrors) {
    validate(object, errors);
    let data = Field::root(object).get("data");
    if data.value() != Field::root(old).get("data").value() {
        errors.add(|| data.invalid_as(&*data.as_sent(), "field is immutable"));
    }
}
