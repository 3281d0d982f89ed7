//! Runs creations of policies and bindings: accepted, or refused with a Status and its causes.

use admit_apimachinery::field_error::{FieldError, aggregate};
use admit_policy::{Binding, Policy};
use serde_json::{Value, json};

use super::Case;
use crate::report::{Aspect, Check};

/// One creation.
pub(crate) struct Creation {
    id: String,
    body: Value,
    recorded: Value,
}

impl Creation {
    pub(crate) fn new(id: &str, body: &Value, recorded: &Value) -> Self {
        Self { id: id.to_owned(), body: body.clone(), recorded: recorded.clone() }
    }

    /// A row of a refused policy.
    pub(crate) fn of_refused(row: &Value) -> Option<Self> {
        let name = row.get("policy").and_then(Value::as_str)?;
        Some(Self::new(&format!("{name} refused"), row.get("body")?, row.get("recorded")?))
    }
}

impl Case for Creation {
    fn id(&self) -> &str {
        &self.id
    }

    fn run(&self) -> Vec<Check> {
        let is_binding =
            self.body.get("kind").and_then(Value::as_str) == Some("ValidatingAdmissionPolicyBinding");
        let found =
            if is_binding { Binding::compile(&self.body).err() } else { Policy::compile(&self.body).err() };
        let found = found.unwrap_or_default();
        let refused = self.recorded.pointer("/status/status").and_then(Value::as_str) == Some("Failure");
        let word = |refused: bool| if refused { "refused" } else { "accepted" };
        let causes = self.recorded.pointer("/status/details/causes").cloned().unwrap_or_else(|| json!([]));
        let causes = if refused { causes } else { json!([]) };
        let message =
            self.recorded.pointer("/status/message").filter(|_| refused).cloned().unwrap_or_default();
        vec![
            Check::new(Aspect::Verdict, word(refused), word(!found.is_empty())),
            Check::new(
                Aspect::Path,
                fields(&causes),
                json!(found.iter().map(|e| &e.field).collect::<Vec<_>>()),
            ),
            Check::new(Aspect::Text, causes, found.iter().map(cause).collect::<Vec<_>>()),
            Check::new(Aspect::Text, message, self.message(&found)),
        ]
    }
}

impl Creation {
    /// The message of the Status that answers the creation.
    fn message(&self, found: &[FieldError]) -> Value {
        if found.is_empty() {
            return Value::Null;
        }
        let text = |pointer: &str| self.body.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let group = text("/apiVersion").split('/').next().unwrap_or_default();
        json!(format!(
            "{}.{group} \"{}\" is invalid: {}",
            text("/kind"),
            text("/metadata/name"),
            aggregate(found)
        ))
    }
}

fn fields(causes: &Value) -> Value {
    let causes = causes.as_array().map(Vec::as_slice).unwrap_or_default();
    json!(causes.iter().map(|cause| cause.get("field")).collect::<Vec<_>>())
}

fn cause(error: &FieldError) -> Value {
    let cause = error.cause();
    json!({"reason": cause.reason, "message": cause.message, "field": cause.field})
}
