//! Builds the audit annotations of webhooks: which of them changed the object, and how; which failed open; and the
//! annotations in their responses. Keys and values are those of kube-apiserver.

use admit_apimachinery::labels;
use admit_policy::webhook::Kind;
use serde_json::{Value, json};

use super::hook::Hook;

/// Key and value.
type Annotation = (String, String);

/// Identifies a call of a webhook: each has its own annotations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) of: Kind,
    /// 0, or 1 in the reinvocation.
    pub(super) round: u8,
    /// The index among all webhooks of the kind.
    pub(super) at: usize,
}

impl Place {
    fn key(self, prefix: &str) -> String {
        format!("{prefix}.webhook.admission.k8s.io/round_{}_index_{}", self.round, self.at)
    }

    /// Reports that a webhook with failure policy `Ignore` failed.
    pub(super) fn failed_open(self, webhook: &str) -> Annotation {
        let prefix = match self.of {
            Kind::Validating => "failed-open.validating",
            Kind::Mutating => "failed-open.mutation",
        };
        (self.key(prefix), webhook.to_owned())
    }

    /// Reports whether the webhook changed the object.
    pub(super) fn mutation(self, hook: &Hook, mutated: bool) -> Annotation {
        let value = json!({"configuration": hook.configuration, "webhook": hook.name(), "mutated": mutated});
        (self.key("mutation"), value.to_string())
    }

    /// Reports the patch, which is dropped if the audit level does not include the request body.
    pub(super) fn patch(self, hook: &Hook, operations: &[Value]) -> Annotation {
        let mut operations = json!(operations);
        operations
            .as_array_mut()
            .into_iter()
            .flatten()
            .filter_map(Value::as_object_mut)
            .for_each(|it| it.sort_keys());
        let value = json!({
            "configuration": hook.configuration, "webhook": hook.name(), "patch": operations, "patchType": "JSONPatch"
        });
        (self.key("patch"), value.to_string())
    }
}

/// Returns the annotations of a response, prefixed with the webhook's name. Invalid keys are skipped.
pub(super) fn of_answer(webhook: &str, given: &[Annotation]) -> Vec<Annotation> {
    let given = given.iter().map(|(key, value)| (format!("{webhook}/{key}"), value.clone()));
    given.filter(|(key, _)| labels::key(key).is_empty()).collect()
}
