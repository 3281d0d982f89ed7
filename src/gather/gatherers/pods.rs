//! Inspects Pods for several gatherers.

use std::time::Duration;

use admit_apimachinery::pointer;
use jiff::Timestamp;
use serde_json::Value;

/// How long a Pod may be Pending and still count as healthy.
const MAX_PENDING: Duration = Duration::from_mins(2);

/// Whether a Pod is healthy: it is not Pending for long, none of its containers has ended with an error (now or before its last
/// restart), and none was restarted.
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

/// Returns the statuses of the init containers, then of the others.
pub(super) fn statuses(pod: &Value) -> impl Iterator<Item = &Value> {
    ["/status/initContainerStatuses", "/status/containerStatuses"]
        .into_iter()
        .flat_map(|pointer| items(pod, pointer))
}

/// Returns the items of the list at `pointer`; none if there is no list.
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
