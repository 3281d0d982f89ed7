//! Defines the strategy of ResourceClaims. Read from pkg/apis/resource/validation and pkg/registry/resource/resourceclaim of
//! Kubernetes 1.36.

use admit_apimachinery::findings::FieldErrors;
use serde_json::{Value, json};

use super::{admin_access, allocation, claim_spec};
use crate::kinds::field::Field;
use crate::kinds::shared::inside;
use crate::kinds::{Habit, Strategy};
use crate::resources::Subresource;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "ResourceClaim",
    habits: &[Habit::AnswersDeleted, Habit::ObjectAgain, Habit::StatusHasNoTable],
    default: Some(default),
    prepare_status: Some(|claim, old, _| allocation::drop_deallocated(claim, old)),
    validate_placed: Some(|placed, errors| match (placed.subresource, placed.old) {
        (Some(Subresource::Status), Some(old)) => {
            admin_access::granted(placed.object, old, placed.namespace, errors);
        }
        (None, None) => {
            let devices = Field::root(placed.object).get("spec").get("devices");
            admin_access::requested(&devices, placed.namespace, errors);
        }
        // Updates do not change the specification.
        _ => {}
    }),
    validate: Some(validate),
    validate_update: Some(validate_update),
    validate_status: Some(allocation::validate_status),
    ..Strategy::PLAIN
};

fn default(_: &str, claim: &mut Value) {
    if let Some(spec) = claim.get_mut("spec") {
        claim_spec::default(spec);
    }
}

fn validate(claim: &Value, errors: &mut FieldErrors) {
    claim_spec::validate(&Field::root(claim).get("spec"), false, errors);
}

/// The specification is immutable, so it is not validated again.
fn validate_update(claim: &Value, old: &Value, errors: &mut FieldErrors) {
    let (spec, old) = (Field::root(claim).get("spec"), Field::root(old).get("spec"));
    let empty = json!({});
    let given = |spec: &'_ Value| if spec.is_null() { empty.clone() } else { spec.clone() };
    let name = "io.k8s.api.resource.v1.ResourceClaimSpec";
    let shown = |spec: &Value| inside::shown(name, &given(spec));
    if !inside::alike(name, spec.value(), old.value()) {
        errors.add(|| spec.invalid_as(inside::told(&shown(&spec.as_sent())), "field is immutable"));
    }
}
