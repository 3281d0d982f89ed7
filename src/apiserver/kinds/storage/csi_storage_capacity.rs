//! CSIStorageCapacities: how much room a driver has where. Read from pkg/apis/storage/validation and
//! pkg/registry/storage/csistoragecapacity of Kubernetes 1.36.

use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;

use crate::kinds::field::Field;
use crate::kinds::shared::amount::not_negative;
use crate::kinds::shared::label_selector::{self, LabelValues};
use crate::kinds::shared::node_selector::{node_term_warnings, old_label};
use crate::kinds::shared::texts::subdomain;
use crate::kinds::{Habit, Strategy};

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "CSIStorageCapacity",
    habits: &[Habit::NeedsVersion, Habit::ObjectAgain],
    validate: Some(validate),
    validate_update: Some(validate_update),
    warnings: Some(warnings),
    ..Strategy::PLAIN
};

fn warnings(capacity: &Value, _: Option<&Value>) -> Vec<String> {
    let topology = Field::root(capacity).get("nodeTopology");
    let mut warnings = Vec::new();
    node_term_warnings(&topology, &mut warnings);
    let labels = topology.get("matchLabels");
    for (label, _) in labels.entries() {
        warnings.extend(old_label(label).map(|old| format!("{labels}.{label}: {old}")));
    }
    warnings
}

fn validate(capacity: &Value, errors: &mut FieldErrors) {
    let capacity = Field::root(capacity);
    label_selector::validate(&capacity.get("nodeTopology"), LabelValues::Checked, errors);
    subdomain(&capacity.get("storageClassName"), errors);
    not_negative(&capacity.get("capacity"), errors);
}

fn validate_update(capacity: &Value, old: &Value, errors: &mut FieldErrors) {
    validate(capacity, errors);
    let (capacity, old) = (Field::root(capacity), Field::root(old));
    capacity.get("nodeTopology").immutable_or_null(&old.get("nodeTopology"), errors);
    capacity.get("storageClassName").immutable(&old.get("storageClassName"), errors);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn capacities_are_not_negative() {
        let capacity = json!({"storageClassName": "c", "capacity": "-1"});
        let mut errors = FieldErrors::default();
        validate_update(&capacity, &json!({"storageClassName": "d"}), &mut errors);
        let texts: Vec<String> = errors.into_iter().map(|error| error.to_string()).collect();
        assert_eq!(
            texts,
            [
                "capacity: Invalid value: \"-1\": must be greater than or equal to 0",
                "storageClassName: Invalid value: \"c\": field is immutable",
            ]
        );
    }
}
