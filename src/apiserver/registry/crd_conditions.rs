//! Reads and writes the conditions in the status of a CRD.

use serde_json::{Value, json};

use crate::clock::Clock;

pub(super) fn condition<'v>(definition: &'v Value, kind: &str) -> Option<&'v str> {
    let conditions = definition.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|condition| condition["type"] == kind)?.get("status")?.as_str()
}

pub(super) fn set_condition(
    definition: &mut Value,
    clock: &Clock,
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
) {
    let conditions = &mut definition["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    let current = conditions.iter_mut().find(|condition| condition["type"] == kind);
    // The time of the last transition is that of the last change of the status.
    let since = current.as_ref().filter(|current| current["status"] == status);
    let since = since.map_or_else(|| clock.stamp().into(), |current| current["lastTransitionTime"].clone());
    let entry = json!({
        "type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message
    });
    match current {
        Some(current) => *current = entry,
        None => conditions.push(entry),
    }
}
