//! Evaluates a Job's policies: for a failed Pod, and for the succeeded indexes. No I/O.

use k8s_openapi::api::batch::v1::{
    JobSpec, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyOnPodConditionsPattern,
    PodFailurePolicyRule,
};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition};
use kube::ResourceExt as _;

use super::indexes::Indexes;

/// The action of the first rule that matches a failed Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It counts, as without a policy.
    Count,
    /// It is replaced and not counted.
    Ignore,
    /// Its index gets no further Pod.
    FailIndex,
    /// The Job fails with this message.
    FailJob(String),
}

/// Whether terminating Pods neither count as failed nor are replaced until they have ended.
pub(super) fn replaces_failed_alone(spec: &JobSpec) -> bool {
    spec.pod_replacement_policy.as_deref() == Some("Failed") || spec.pod_failure_policy.is_some()
}

/// Evaluates the Job's failure policy for a failed Pod.
pub(super) fn verdict(spec: &JobSpec, pod: &Pod) -> Verdict {
    let rules = spec.pod_failure_policy.iter().flat_map(|policy| &policy.rules).enumerate();
    for (at, rule) in rules {
        let Some(fits) = fitting(rule, pod) else { continue };
        return match rule.action.as_str() {
            "Ignore" => Verdict::Ignore,
            "FailIndex" => Verdict::FailIndex,
            "FailJob" => Verdict::FailJob(format!("{fits} matching FailJob rule at index {at}")),
            _ => Verdict::Count,
        };
    }
    Verdict::Count
}

/// Returns a message about what of the Pod matches a rule.
fn fitting(rule: &PodFailurePolicyRule, pod: &Pod) -> Option<String> {
    let name = format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
    let status = pod.status.as_ref()?;
    if let Some(codes) = &rule.on_exit_codes {
        let lists = [&status.container_statuses, &status.init_container_statuses];
        let (container, code) =
            lists.into_iter().flatten().flatten().find_map(|container| exit(container, codes))?;
        return Some(format!("Container {container} for pod {name} failed with exit code {code}"));
    }
    let patterns = rule.on_pod_conditions.as_deref()?;
    let conditions = status.conditions.iter().flatten();
    let condition = conditions.into_iter().find(|one| patterns.iter().any(|pattern| holds(one, pattern)))?;
    Some(format!("Pod {name} has condition {}", condition.type_))
}

fn holds(condition: &PodCondition, pattern: &PodFailurePolicyOnPodConditionsPattern) -> bool {
    let status = pattern.status.as_deref().filter(|status| !status.is_empty()).unwrap_or("True");
    condition.type_ == pattern.type_ && condition.status == status
}

/// Returns the name and exit code of a container that matches the requirement.
fn exit<'c>(
    container: &'c ContainerStatus,
    asked: &PodFailurePolicyOnExitCodesRequirement,
) -> Option<(&'c str, i32)> {
    let code = container.state.as_ref()?.terminated.as_ref()?.exit_code;
    let named = asked.container_name.as_ref().is_none_or(|name| *name == container.name);
    let among = asked.values.contains(&code);
    let fits = match asked.operator.as_str() {
        "In" => among,
        "NotIn" => !among,
        _ => false,
    };
    (named && code != 0 && fits).then_some((container.name.as_str(), code))
}

/// Returns whether the succeeded indexes satisfy the success policy, as a message that names the rule.
pub(super) fn success(spec: &JobSpec, succeeded: &Indexes, completions: usize) -> Option<String> {
    let rules = spec.success_policy.iter().flat_map(|policy| &policy.rules).enumerate();
    rules.filter(|_| succeeded.total() > 0).find_map(|(at, rule)| {
        let enough = rule.succeeded_count.and_then(|count| usize::try_from(count).ok());
        let met = match &rule.succeeded_indexes {
            Some(text) => {
                let named = Indexes::parse(text, completions);
                let shared = named.shared(succeeded);
                named.total() > 0
                    && (shared == named.total() || enough.is_some_and(|enough| shared >= enough))
            }
            None => enough.is_some_and(|enough| succeeded.total() >= enough),
        };
        met.then(|| format!("Matched rules at index {at}"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn spec(mut value: Value) -> JobSpec {
        value["template"] = json!({"spec": {"containers": []}});
        serde_json::from_value(value).unwrap()
    }

    fn failed(code: i32) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "n"},
            "spec": {"containers": []},
            "status": {
                "phase": "Failed",
                "conditions": [{"type": "DisruptionTarget", "status": "True"}, {"type": "Ready", "status": "False"}],
                "containerStatuses": [
                    {"name": "side", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": {"terminated": {"exitCode": 0}}},
                    {"name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": {"terminated": {"exitCode": code}}},
                ],
            },
        }))
        .unwrap()
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let rules = spec(json!({"podFailurePolicy": {"rules": [
            {"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "In", "values": [42]}},
            {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [7]}},
            {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [8]}},
            {"action": "Count", "onExitCodes": {"operator": "NotIn", "values": [9]}},
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        ]}}));
        for (code, expected) in [
            (
                42,
                Verdict::FailJob(
                    "Container main for pod n/p failed with exit code 42 matching FailJob rule at index 0"
                        .to_owned(),
                ),
            ),
            (7, Verdict::FailIndex),
            (8, Verdict::Ignore),
            (1, Verdict::Count),
            (9, Verdict::Ignore),
        ] {
            assert_eq!(verdict(&rules, &failed(code)), expected, "{code}");
        }
        let by_condition = spec(json!({"podFailurePolicy": {"rules": [
            {"action": "FailJob", "onPodConditions": [{"type": "Ready", "status": "True"}]},
            {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget"}]},
        ]}}));
        let told = "Pod n/p has condition DisruptionTarget matching FailJob rule at index 1".to_owned();
        assert_eq!(verdict(&by_condition, &failed(1)), Verdict::FailJob(told));
        // A container that succeeded matches no rule about exit codes.
        let any = spec(json!({"podFailurePolicy": {"rules": [
            {"action": "FailJob", "onExitCodes": {"containerName": "side", "operator": "NotIn", "values": [1]}},
        ]}}));
        assert_eq!(verdict(&any, &failed(1)), Verdict::Count);
        assert_eq!(verdict(&spec(json!({})), &failed(1)), Verdict::Count);
    }

    #[test]
    fn success_is_by_indexes_or_by_number_or_by_both() {
        let met = |rules: Value, succeeded: &str| {
            let spec = spec(json!({"successPolicy": {"rules": rules}}));
            success(&spec, &Indexes::parse(succeeded, 10), 10)
        };
        let first = Some("Matched rules at index 0".to_owned());
        assert_eq!(met(json!([{"succeededIndexes": "0,2-3"}]), "0,2,3"), first);
        assert_eq!(met(json!([{"succeededIndexes": "0,2-3"}]), "0,2,4-9"), None);
        assert_eq!(met(json!([{"succeededIndexes": "0,2-3", "succeededCount": 2}]), "0,2"), first);
        assert_eq!(met(json!([{"succeededCount": 3}]), "4-6"), first);
        assert_eq!(met(json!([{"succeededCount": 3}]), "4,5"), None);
        assert_eq!(
            met(json!([{"succeededIndexes": "1"}, {"succeededCount": 1}]), "0"),
            Some("Matched rules at index 1".to_owned())
        );
        assert_eq!(met(json!([{"succeededCount": 0}]), ""), None);
    }
}
