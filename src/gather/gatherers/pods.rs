//! What several gatherers ask of a pod.

use std::time::Duration;

use admit_apimachinery::pointer;
use jiff::Timestamp;
use serde_json::Value;

/// A pod may be Pending for so long before somebody should look at it.
const MAX_PENDING: Duration = Duration::from_mins(2);

/// Whether nothing about the pod calls for a look: it is not Pending for long, no container of it has ended in an error, now or the last
/// time, and none was started again.
pub(super) fn is_healthy(pod: &Value, now: Timestamp) -> bool {
    let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str);
    let created = text("/metadata/creationTimestamp").and_then(|created| created.parse::<Timestamp>().ok());
    let age = created.and_then(|created| Duration::try_from(now.duration_since(created)).ok());
    let stuck = text("/status/phase") == Some("Pending") && age.is_some_and(|age| age > MAX_PENDING);
    let failed = |status: &Value| {
        ["/state/terminated/exitCode", "/lastState/terminated/exitCode"]
            .iter()
            .any(|code| status.pointer(code).and_then(Value::as_i64).is_some_and(|code| code != 0))
    };
    !stuck && !was_restarted(pod) && !statuses(pod).any(failed)
}

pub(super) fn was_restarted(pod: &Value) -> bool {
    statuses(pod).any(|status| status.get("restartCount").and_then(Value::as_i64).unwrap_or(0) > 0)
}

/// Statuses of the init containers, then of the others.
pub(super) fn statuses(pod: &Value) -> impl Iterator<Item = &Value> {
    ["/status/initContainerStatuses", "/status/containerStatuses"]
        .into_iter()
        .flat_map(|pointer| items(pod, pointer))
}

/// The items of the list at `pointer`, if there is one.
pub(super) fn items<'v>(object: &'v Value, pointer: &str) -> std::slice::Iter<'v, Value> {
    pointer::items(object, pointer).iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_is_unhealthy_when_it_waits_long_ended_badly_or_was_restarted() {
        let now: Timestamp = "2026-11-22T12:00:00Z".parse().unwrap();
        let pending = |created: &str| json!({"metadata": {"creationTimestamp": created}, "status": {"phase": "Pending"}});
        assert!(is_healthy(&pending("2026-11-22T11:59:00Z"), now));
        assert!(!is_healthy(&pending("2026-11-22T11:57:00Z"), now));
        let with = |list: &str, status: &Value| {
            is_healthy(&json!({"status": {"phase": "Running", list: [status]}}), now)
        };
        for list in ["containerStatuses", "initContainerStatuses"] {
            assert!(with(list, &json!({"state": {"terminated": {"exitCode": 0}}, "restartCount": 0})));
            assert!(!with(list, &json!({"state": {"terminated": {"exitCode": 1}}})));
            assert!(!with(list, &json!({"lastState": {"terminated": {"exitCode": 137}}})));
            assert!(!with(list, &json!({"restartCount": 1})));
        }
    }
}
