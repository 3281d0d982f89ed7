//! Templates of pods, which workloads hold.

use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;

use super::texts::annotation_keys;
use super::{label_selector, pod_spec};
use crate::kinds::field::Field;

/// What is wrong with a template, which replaces `old` if there is one (`ValidatePodTemplateSpec`).
pub(crate) fn validate(template: &Field<'_>, old: Option<&Value>, errors: &mut FieldErrors) {
    let metadata = template.get("metadata");
    // The paths leave the metadata out.
    label_selector::label_pairs(&template.get("labels").with(metadata.get("labels").value()), errors);
    let annotations = annotations(template, errors);
    let spec = template.get("spec");
    let options = pod_spec::Options::template(old.and_then(|old| old.get("spec")));
    pod_spec::validate(&spec, &options, errors);
    pod_spec::annotations::seccomp_agrees(&annotations, &spec, errors);
    let debugging = spec.get("ephemeralContainers");
    if !debugging.is_empty() {
        errors.add(|| debugging.forbidden("ephemeral containers not allowed in pod template"));
    }
}

/// What is wrong with the annotations of a template, at a path that leaves the metadata out.
pub(crate) fn annotations<'o>(template: &Field<'o>, errors: &mut FieldErrors) -> Field<'o> {
    let annotations = template.get("annotations").with(template.get("metadata").get("annotations").value());
    annotation_keys(&annotations, errors);
    pod_spec::annotations::validate(&annotations, &template.get("spec"), errors);
    annotations
}
