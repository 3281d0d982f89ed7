//! The metadata of templates of claims. Read from pkg/apis/core/validation of Kubernetes 1.36.

use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;

use super::label_selector;
use super::texts::annotation_keys;
use crate::kinds::field::Field;

/// What of the metadata of a template is of no use, each with the name by which it is told.
const USELESS: [(&str, &str); 13] = [
    ("name", "name"),
    ("generateName", "generateName"),
    ("namespace", "namespace"),
    ("selfLink", "selfLink"),
    ("uid", "uID"),
    ("resourceVersion", "resourceVersion"),
    ("generation", "generation"),
    ("creationTimestamp", "creationTimestamp"),
    ("deletionTimestamp", "deletionTimestamp"),
    ("deletionGracePeriodSeconds", "deletionGracePeriodSeconds"),
    ("ownerReferences", "ownerReferences"),
    ("finalizers", "finalizers"),
    ("managedFields", "managedFields"),
];

/// Labels and annotations are of use alone. A list with nothing in it has been set all the same.
pub(crate) fn validate(metadata: &Field<'_>, errors: &mut FieldErrors) {
    annotation_keys(&metadata.get("annotations"), errors);
    label_selector::label_pairs(&metadata.get("labels"), errors);
    for (name, told) in USELESS {
        let field = metadata.get(name);
        let is_zero = match &*field.as_sent() {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            value => name == "generation" && *value == 0,
        };
        if !is_zero {
            errors.add(|| metadata.get(told).forbidden("cannot be set"));
        }
    }
}
