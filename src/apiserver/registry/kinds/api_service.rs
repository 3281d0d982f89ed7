//! APIServices: those that this server serves itself are available from the start.

use serde_json::{Value, json};

use crate::clock::Clock;

pub(super) fn prepare_create(service: &mut Value, clock: &Clock) {
    service["status"] = json!({});
    if service.pointer("/spec/service").is_none_or(Value::is_null) {
        service["status"]["conditions"] = json!([{
            "type": "Available", "status": "True", "lastTransitionTime": clock.stamp(), "reason": "Local",
            "message": "Local APIServices are always available"
        }]);
    }
}
