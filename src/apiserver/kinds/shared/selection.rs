//! Evaluates the pod selectors of workloads.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::selector::LabelSelector;
use serde_json::Value;

use super::label_selector::{self, LabelValues};
use crate::kinds::field::Field;

/// Validates a selector, if there is one. Returns whether it is valid.
pub(crate) fn is_usable(selector: &Field<'_>, errors: &mut FieldErrors) -> bool {
    let before = errors.count();
    label_selector::validate(selector, LabelValues::Checked, errors);
    errors.count() == before
}

/// Whether a selector is present and empty.
pub(crate) fn asks_nothing(selector: &Field<'_>) -> bool {
    selector.is_set() && selector.get("matchLabels").is_empty() && selector.get("matchExpressions").is_empty()
}

/// Whether a valid selector matches these labels. An absent one matches nothing.
pub(crate) fn chooses(selector: &Field<'_>, labels: &Value) -> bool {
    selector.is_set()
        && LabelSelector::read(selector.value()).selects(|key| labels.get(key).and_then(Value::as_str))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_selector_that_is_not_there_chooses_nothing() {
        let (none, all) = (json!(null), json!({}));
        assert!(!chooses(&Field::root(&none), &json!({"a": "b"})));
        assert!(chooses(&Field::root(&all), &json!({"a": "b"})));
        assert!(asks_nothing(&Field::root(&all)) && !asks_nothing(&Field::root(&none)));
    }
}
