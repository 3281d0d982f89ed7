//! Defines the strategy of CSIDrivers: capabilities of volume drivers. Read from pkg/apis/storage/validation and
//! pkg/registry/storage/csidriver of Kubernetes 1.36.

use std::collections::HashSet;

use admit_apimachinery::findings::FieldErrors;
use serde_json::{Value, json};

use crate::kinds::field::Field;
use crate::kinds::shared::defaults::set_absent;
use crate::kinds::{Habit, Strategy};
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "CSIDriver",
    habits: &[Habit::NeedsVersion, Habit::AnswersDeleted],
    default: Some(default),
    prepare_create: Some(drop_switched_off),
    prepare_update: Some(prepare_update),
    validate: Some(validate),
    validate_update: Some(validate_update),
    warnings: Some(warnings),
    ..Strategy::PLAIN
};

const SHORTEST_TOKEN: i64 = 600;
const LONGEST_TOKEN: i64 = 1 << 32;
const SHORTEST_PERIOD: i64 = 10;

fn default(_: &str, driver: &mut Value) {
    let spec = &mut driver["spec"];
    let flags = ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"];
    set_absent(spec, &[("attachRequired", true.into()), ("fsGroupPolicy", "ReadWriteOnceWithFSType".into())]);
    for flag in flags {
        set_absent(spec, &[(flag, false.into())]);
    }
    if spec.get("volumeLifecycleModes").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        object::set_field(spec, "volumeLifecycleModes", Some(json!(["Persistent"])));
    }
}

/// Removes a field of a feature that is off by default: by default pods are scheduled even if a node lacks
/// the driver.
fn drop_switched_off(driver: &mut Value) {
    if let Some(spec) = driver.get_mut("spec").filter(|spec| spec.is_object()) {
        object::set_field(spec, "preventPodSchedulingIfMissing", None);
    }
}

/// A new driver has no generation; each change of the specification increments it.
fn prepare_update(driver: &mut Value, old: &Value) {
    drop_switched_off(driver);
    if driver.get("spec") != old.get("spec") {
        let generation = object::generation(old).saturating_add(1);
        object::set_meta(driver, "generation", Some(generation.into()));
    }
}

fn validate(driver: &Value, errors: &mut FieldErrors) {
    let spec = Field::root(driver).get("spec");
    let policy = spec.get("fsGroupPolicy");
    if policy.is_set() {
        const POLICIES: [&str; 3] = ["File", "None", "ReadWriteOnceWithFSType"];
        if !POLICIES.contains(&policy.text()) {
            errors.add(|| policy.not_supported(&POLICIES));
        }
    }
    tokens(&spec.get("tokenRequests"), errors);
    let modes = spec.get("volumeLifecycleModes");
    for mode in modes.items() {
        const MODES: [&str; 2] = ["Persistent", "Ephemeral"];
        if !MODES.contains(&mode.text()) {
            // The error names the list, not the item.
            errors.add(|| modes.with(mode.value()).not_supported(&MODES));
        }
    }
    let period = spec.get("nodeAllocatableUpdatePeriodSeconds");
    if period.integer().is_some_and(|seconds| seconds < SHORTEST_PERIOD) {
        errors.add(|| period.invalid("must be greater than or equal to 10 seconds"));
    }
    let secret = spec.get("serviceAccountTokenInSecrets");
    if secret.is_set() && spec.get("tokenRequests").is_empty() {
        errors
            .add(|| secret.invalid("serviceAccountTokenInSecrets is set but no tokenRequests are specified"));
    }
}

fn tokens(requests: &Field<'_>, errors: &mut FieldErrors) {
    let mut audiences = HashSet::new();
    for request in requests.items() {
        let (audience, seconds) = (request.get("audience"), request.get("expirationSeconds"));
        if !audiences.insert(audience.text()) {
            errors.add(|| audience.duplicate());
            continue;
        }
        match seconds.integer() {
            Some(..SHORTEST_TOKEN) => {
                errors.add(|| seconds.invalid("may not specify a duration less than 10 minutes"));
            }
            Some(length) if length > LONGEST_TOKEN => {
                errors.add(|| seconds.invalid("may not specify a duration larger than 2^32 seconds"));
            }
            _ => {}
        }
    }
}

fn validate_update(driver: &Value, old: &Value, errors: &mut FieldErrors) {
    validate(driver, errors);
    let (spec, old) = (Field::root(driver).get("spec"), Field::root(old).get("spec"));
    let (attach, was) = (spec.get("attachRequired"), old.get("attachRequired"));
    // Upstream spells the path differently from the field.
    spec.get("attachedRequired").with(attach.value()).immutable(&was, errors);
    let modes = spec.get("volumeLifecycleModes");
    modes.immutable_or_null(&old.get("volumeLifecycleModes"), errors);
}

/// Warns, if token requests are new or changed, that some drivers log tokens in volume attributes.
fn warnings(driver: &Value, old: Option<&Value>) -> Vec<String> {
    let spec = Field::root(driver).get("spec");
    let requests = spec.get("tokenRequests");
    let is_new =
        old.is_none_or(|old| Field::root(old).get("spec").get("tokenRequests").value() != requests.value());
    let warns = is_new && !requests.is_empty() && !spec.get("serviceAccountTokenInSecrets").is_set();
    let why = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent \
               possible logging of tokens in volume attributes";
    warns.then(|| why.to_owned()).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_last_and_periods_are_long_enough() {
        let driver = json!({"spec": {
            "tokenRequests": [{"audience": "a", "expirationSeconds": 4_294_967_297_i64}, {}, {"audience": ""}],
            "nodeAllocatableUpdatePeriodSeconds": 9,
        }});
        let mut errors = FieldErrors::default();
        validate(&driver, &mut errors);
        let texts: Vec<String> = errors.into_iter().map(|error| error.to_string()).collect();
        assert_eq!(
            texts,
            [
                "spec.tokenRequests[0].expirationSeconds: Invalid value: 4294967297: may not specify a duration larger \
                 than 2^32 seconds",
                "spec.tokenRequests[2].audience: Duplicate value: \"\"",
                "spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 9: must be greater than or equal to 10 seconds",
            ]
        );
    }
}
