//! Determines which invalid values of a webhook configuration are tolerated on update, because the stored one already
//! has them.

use std::collections::HashSet;

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::selector::LabelSelector;
use serde_json::Value;

use super::{NO_SIDE_EFFECTS, REVIEW_VERSIONS};
use crate::matching::{LabelValues, label_selector};
use crate::read::decode::{DecodeError, Fields};
use crate::vap::Stored;

pub(super) struct Allowances {
    pub(super) side_effects: bool,
    /// Whether all review versions may be unknown.
    pub(super) unknown_review_versions: bool,
    pub(super) duplicate_names: bool,
    label_values: LabelValues,
    pub(super) expressions: Stored,
}

impl Allowances {
    /// Returns the allowances for a new object: none.
    pub(super) fn none() -> Self {
        Self {
            side_effects: false,
            unknown_review_versions: false,
            duplicate_names: false,
            label_values: LabelValues::Checked,
            expressions: Stored::None,
        }
    }

    /// Returns the allowances for an object read from storage: all.
    pub(super) fn all() -> Self {
        Self {
            side_effects: true,
            unknown_review_versions: true,
            duplicate_names: true,
            label_values: LabelValues::Unchecked,
            expressions: Stored::All,
        }
    }

    /// Returns the allowances for the update of `stored`.
    pub(super) fn of(stored: &Value) -> Self {
        let webhooks = || stored.get("webhooks").and_then(Value::as_array).into_iter().flatten();
        let text = |webhook: &Value, field| {
            webhook.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let names: Vec<String> = webhooks().map(|webhook| text(webhook, "name")).collect();
        Self {
            side_effects: webhooks()
                .any(|webhook| !NO_SIDE_EFFECTS.contains(&text(webhook, "sideEffects").as_str())),
            unknown_review_versions: webhooks().any(speaks_no_known_version),
            duplicate_names: names.iter().collect::<HashSet<_>>().len() < names.len(),
            label_values: if webhooks().any(has_bad_selector) {
                LabelValues::Unchecked
            } else {
                LabelValues::Checked
            },
            expressions: Stored::of_webhooks(stored),
        }
    }

    pub(super) fn selector(
        &self,
        fields: &Fields<'_>,
        errors: &mut FieldErrors,
    ) -> Result<LabelSelector, DecodeError> {
        label_selector(fields, self.label_values, errors)
    }
}

fn speaks_no_known_version(webhook: &Value) -> bool {
    let versions = webhook.get("admissionReviewVersions").and_then(Value::as_array);
    let mut versions = versions.into_iter().flatten().filter_map(Value::as_str).peekable();
    versions.peek().is_some() && !versions.any(|version| REVIEW_VERSIONS.contains(&version))
}

fn has_bad_selector(webhook: &Value) -> bool {
    ["namespaceSelector", "objectSelector"].into_iter().filter_map(|field| webhook.get(field)).any(
        |selector| {
            let mut errors = FieldErrors::default();
            let read = Fields::of(selector, "")
                .and_then(|fields| label_selector(&fields, LabelValues::Checked, &mut errors));
            read.is_err() || !errors.is_empty()
        },
    )
}
