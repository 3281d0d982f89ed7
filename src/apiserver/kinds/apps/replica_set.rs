//! Defines the strategy of ReplicaSets.

use admit_apimachinery::findings::FieldErrors;
use serde_json::{Value, json};

use crate::kinds::Strategy;
use crate::kinds::field::Field;
use crate::kinds::shared::defaults::set_absent;
use crate::kinds::shared::{pod_spec, replicas, workload};

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "ReplicaSet",
    default: Some(|_, object| default(object)),
    validate: Some(validate),
    validate_update: Some(validate_update),
    validate_status: Some(validate_status),
    warnings: Some(|object, old| workload::named_warnings(object, old, &["spec", "template"])),
    ..Strategy::PLAIN
};

fn default(set: &mut Value) {
    set_absent(&mut set["spec"], &[("replicas", json!(1))]);
    pod_spec::defaults::fill(&mut set["spec"]["template"]["spec"]);
}

fn validate(object: &Value, errors: &mut FieldErrors) {
    whole(object, None, errors);
}

fn whole(object: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let spec = Field::root(object).get("spec");
    replicas::not_negative(&spec, &["replicas", "minReadySeconds"], errors);
    // Upstream's message says "deployment" here too.
    let usable = super::selector(&spec.get("selector"), "deployment", errors);
    super::kept_template(&spec, old, usable, errors);
}

fn validate_update(object: &Value, old: &Value, errors: &mut FieldErrors) {
    whole(object, Some(old), errors);
    super::same_selector(&Field::root(object).get("spec"), &Field::root(old).get("spec"), errors);
}

fn validate_status(object: &Value, _: &Value, errors: &mut FieldErrors) {
    replicas::kept(&Field::root(object).get("status"), errors);
}
