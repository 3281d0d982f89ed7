//! ResourceClaimTemplates. Read from pkg/apis/resource/validation and pkg/registry/resource/resourceclaimtemplate of
//! Kubernetes 1.36.

use admit_apimachinery::findings::FieldErrors;
use serde_json::{Value, json};

use super::{admin_access, claim_spec};
use crate::kinds::field::Field;
use crate::kinds::shared::{inside, template_metadata};
use crate::kinds::{Habit, Strategy};

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "ResourceClaimTemplate",
    habits: &[Habit::AnswersDeleted, Habit::ObjectAgain],
    default: Some(default),
    validate_placed: Some(|placed, errors| {
        if placed.old.is_none() {
            let spec = Field::root(placed.object).get("spec");
            // The path is that of a claim.
            let devices = spec.get("devices").with(spec.get("spec").get("devices").value());
            admin_access::requested(&devices, placed.namespace, errors);
        }
    }),
    validate: Some(validate),
    validate_update: Some(validate_update),
    ..Strategy::PLAIN
};

fn default(_: &str, template: &mut Value) {
    if let Some(spec) = template.pointer_mut("/spec/spec") {
        claim_spec::default(spec);
    }
}

fn validate(template: &Value, errors: &mut FieldErrors) {
    let spec = Field::root(template).get("spec");
    template_metadata::validate(&spec.get("metadata"), errors);
    claim_spec::validate(&spec.get("spec"), false, errors);
}

fn validate_update(template: &Value, old: &Value, errors: &mut FieldErrors) {
    validate(template, errors);
    let (spec, old) = (Field::root(template).get("spec"), Field::root(old).get("spec"));
    let empty = json!({});
    let given = |spec: &'_ Value| if spec.is_null() { empty.clone() } else { spec.clone() };
    let name = "io.k8s.api.resource.v1.ResourceClaimTemplateSpec";
    let shown = |spec: &Value| inside::shown(name, &given(spec));
    if !inside::alike(name, spec.value(), old.value()) {
        errors.add(|| spec.invalid_as(inside::told(&shown(&spec.as_sent())), "field is immutable"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_get_labels_and_annotations_only() {
        let template = json!({"spec": {"metadata": {"name": "n", "uid": "u", "labels": {"a": "b"}}}});
        let mut errors = FieldErrors::default();
        validate(&template, &mut errors);
        let texts: Vec<String> = errors.into_iter().map(|error| error.to_string()).collect();
        assert_eq!(
            texts,
            ["spec.metadata.name: Forbidden: cannot be set", "spec.metadata.uID: Forbidden: cannot be set"]
        );
    }
}
