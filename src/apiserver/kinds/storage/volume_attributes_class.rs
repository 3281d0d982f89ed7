//! Defines the strategy of VolumeAttributesClasses: mutable attributes of volumes. Read from pkg/apis/storage/validation and
//! pkg/registry/storage/volumeattributesclass of Kubernetes 1.36.

use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;

use super::parameters::{parameters, provisioner};
use crate::kinds::field::Field;
use crate::kinds::{Habit, Strategy};

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "VolumeAttributesClass",
    habits: &[Habit::AnswersDeleted, Habit::ObjectAgain],
    validate: Some(validate),
    validate_update: Some(validate_update),
    ..Strategy::PLAIN
};

fn validate(class: &Value, errors: &mut FieldErrors) {
    let class = Field::root(class);
    provisioner(&class.get("driverName"), errors);
    parameters(&class.get("parameters"), false, errors);
}

fn validate_update(class: &Value, old: &Value, errors: &mut FieldErrors) {
    for (field, why) in [
        ("driverName", "updates to driverName are forbidden."),
        ("parameters", "updates to parameters are forbidden."),
    ] {
        let (new, old) = (Field::root(class).get(field), Field::root(old).get(field));
        if new.value() != old.value() {
            errors.add(|| new.forbidden(why));
        }
    }
    validate(class, errors);
}
