//! Tests single syncs of Indexed Jobs, and of Jobs with policies.

use serde_json::{Value, json};

use super::*;

/// Adds the members `more` to an object.
fn with(mut object: Value, more: Value) -> Value {
    if let (Some(members), Value::Object(more)) = (object.as_object_mut(), more) {
        members.extend(more);
    }
    object
}

fn job(spec: Value, status: Value) -> Job {
    let usual = json!({"parallelism": 3, "completions": 3, "completionMode": "Indexed", "backoffLimit": 6,
        "template": {"spec": {"restartPolicy": "Never", "containers": []}}});
    let mut job = json!({"metadata": {"name": "j", "uid": "u"}});
    job["spec"] = with(usual, spec);
    job["status"] = status;
    serde_json::from_value(job).unwrap()
}

/// Creates a Pod of an index, named after it and its phase, with annotations.
fn pod(index: usize, phase: &str, more: Value) -> Pod {
    let mut pod = json!({
        "metadata": {
            "name": format!("{index}-{phase}"), "namespace": "n", "uid": format!("{index}-{phase}"),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["batch.kubernetes.io/job-tracking"],
        },
        "spec": {"containers": []},
        "status": {"phase": phase},
    });
    let index = json!({"batch.kubernetes.io/job-completion-index": index.to_string()});
    pod["metadata"]["annotations"] = with(index, more);
    serde_json::from_value(pod).unwrap()
}

fn exited(mut pod: Pod, code: i32, at: &str) -> Pod {
    let container = json!({"name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": code, "finishedAt": at}}});
    pod.status.as_mut().unwrap().container_statuses = Some(vec![serde_json::from_value(container).unwrap()]);
    pod
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Plans a sync at noon, with the default backoff.
fn looked(job: &Job, pods: &[Pod]) -> Plan {
    plan(job, pods, at("2026-01-01T12:00:00Z"), Duration::from_secs(10))
}

fn indexes(plan: &Plan) -> Vec<usize> {
    plan.create.iter().map(|new| new.index.unwrap()).collect()
}

fn ending(plan: &Plan) -> Option<(bool, &str, &str)> {
    plan.ending.as_ref().map(|end| (end.succeeded, end.reason.as_str(), end.message.as_str()))
}

const NONE: fn() -> Value = || json!({});

#[test]
fn each_index_has_one_pod_until_it_succeeds() {
    let spec = json!({"completions": 5, "parallelism": 3});
    let begun = looked(&job(spec.clone(), NONE()), &[]);
    assert_eq!(indexes(&begun), [0, 1, 2]);
    let pods = [pod(0, "Succeeded", NONE()), pod(1, "Running", NONE()), pod(2, "Succeeded", NONE())];
    let status = json!({"startTime": "2026-01-01T11:00:00Z", "uncountedTerminatedPods": {}});
    let next = looked(&job(spec.clone(), status.clone()), &pods);
    assert_eq!(indexes(&next), [3, 4]);
    assert_eq!((next.status.completed_indexes.as_deref(), next.status.succeeded), (Some("0,2"), Some(2)));
    // Indexes are counted by number, so no succeeded Pod is listed.
    assert_eq!(next.status.uncounted_terminated_pods, Some(UncountedTerminatedPods::default()));
    assert_eq!(next.release, ["0-Succeeded", "2-Succeeded"]);
    // Indexes in the status are not created again once their Pods are gone.
    let mut later = status;
    later["completedIndexes"] = json!("0,2-4");
    let later = looked(&job(spec, later), &[pod(1, "Succeeded", NONE())]);
    assert_eq!((later.status.completed_indexes.as_deref(), later.status.succeeded), (Some("0-4"), Some(5)));
    assert_eq!(
        ending(&later),
        Some((true, "CompletionsReached", "Reached expected number of succeeded pods"))
    );
}

#[test]
fn pods_that_share_an_index_or_have_none_that_is_asked_for_go_first() {
    let pods = [
        pod(0, "Running", NONE()),
        pod(0, "Pending", NONE()),
        pod(1, "Running", NONE()),
        pod(7, "Running", NONE()),
    ];
    let found = looked(&job(NONE(), NONE()), &pods);
    let names: Vec<&str> = found.delete.iter().map(|pod| pod.name.as_str()).collect();
    assert_eq!(names, ["7-Running", "0-Pending"]);
    assert!(found.delete.iter().all(|pod| pod.is_untold) && found.create.is_empty());
}

#[test]
fn an_index_has_a_limit_of_its_own() {
    let spec = json!({"backoffLimitPerIndex": 1, "backoffLimit": i32::MAX});
    let failed = || exited(pod(1, "Failed", NONE()), 1, "2026-01-01T11:59:55Z");
    let others = [pod(0, "Running", NONE()), pod(2, "Running", NONE())];
    let status =
        json!({"startTime": "2026-01-01T11:00:00Z", "uncountedTerminatedPods": {}, "failedIndexes": ""});

    // Five seconds of the backoff have passed, and the Pod stays, because it has the number of failures.
    let waiting = looked(&job(spec.clone(), status.clone()), &[&[failed()], &others[..]].concat());
    assert_eq!((indexes(&waiting), waiting.again), (vec![], Some(Duration::from_secs(5))));
    assert_eq!((waiting.release.len(), waiting.status.failed_indexes.as_deref()), (0, Some("")));

    let earlier = exited(failed(), 1, "2026-01-01T11:00:00Z");
    let again = looked(&job(spec.clone(), status.clone()), &[&[earlier], &others[..]].concat());
    assert_eq!(
        again.create,
        [New { index: Some(1), failures: Some(super::super::pods::Failures { counted: 1, ignored: 0 }) }]
    );

    // The second failure is the last. The other indexes continue, and then the Job fails.
    let second = || {
        let more = json!({"batch.kubernetes.io/job-index-failure-count": "1"});
        exited(pod(1, "Failed", more), 1, "2026-01-01T11:59:55Z")
    };
    let last = looked(&job(spec.clone(), status.clone()), &[&[second()], &others[..]].concat());
    assert_eq!((indexes(&last), ending(&last)), (vec![], None));
    assert_eq!(
        (last.status.failed_indexes.as_deref(), &last.release[..]),
        (Some("1"), &["1-Failed".to_owned()][..])
    );
    let mut over = status.clone();
    over["completedIndexes"] = json!("0,2");
    let over = looked(&job(spec, over), &[second()]);
    assert_eq!(ending(&over), Some((false, "FailedIndexes", "Job has failed indexes")));

    let strict = json!({"backoffLimitPerIndex": 1, "maxFailedIndexes": 0, "backoffLimit": i32::MAX});
    let strict = looked(&job(strict, status), &[&[second()], &others[..]].concat());
    let text = "Job has exceeded the specified maximal number of failed indexes";
    assert_eq!(ending(&strict), Some((false, "MaxFailedIndexesExceeded", text)));
    assert_eq!(strict.delete.len(), 2);
}

#[test]
fn a_policy_says_which_failures_count_which_end_their_index_and_which_the_job() {
    let rule = |action: &str| {
        json!({"backoffLimit": 0, "podFailurePolicy": {"rules": [
            {"action": action, "onExitCodes": {"operator": "In", "values": [42]}},
        ]}})
    };
    let failed = || [exited(pod(0, "Failed", NONE()), 42, "2026-01-01T10:00:00Z")];
    let ignored = looked(&job(rule("Ignore"), NONE()), &failed());
    assert_eq!((indexes(&ignored), ending(&ignored)), (vec![0, 1, 2], None));
    assert_eq!(ignored.status.uncounted_terminated_pods, Some(UncountedTerminatedPods::default()));
    assert_eq!(ignored.release, ["0-Failed"]);
    let fatal = looked(&job(rule("FailJob"), NONE()), &failed());
    let text = "Container main for pod n/0-Failed failed with exit code 42 matching FailJob rule at index 0";
    assert_eq!(ending(&fatal), Some((false, "PodFailurePolicy", text)));
    let counted = looked(&job(rule("Count"), NONE()), &failed());
    assert_eq!(ending(&counted).unwrap().1, "BackoffLimitExceeded");
    let by_index = with(rule("FailIndex"), json!({"backoffLimitPerIndex": 5, "backoffLimit": 9}));
    let by_index = looked(&job(by_index, NONE()), &failed());
    assert_eq!((indexes(&by_index), by_index.status.failed_indexes.as_deref()), (vec![1, 2], Some("0")));
}

#[test]
fn enough_successes_end_a_job_and_those_that_still_run_do_not_fail() {
    let spec = json!({"successPolicy": {"rules": [{"succeededIndexes": "0"}]}});
    let pods = [pod(0, "Succeeded", NONE()), pod(1, "Running", NONE()), pod(2, "Running", NONE())];
    let met = looked(&job(spec, NONE()), &pods);
    assert_eq!(ending(&met), Some((true, "SuccessPolicy", "Matched rules at index 0")));
    assert_eq!((met.delete.len(), met.release.len()), (2, 3));
    assert_eq!(met.status.uncounted_terminated_pods, Some(UncountedTerminatedPods::default()));
}

#[test]
fn pods_that_a_job_wants_no_more_are_not_counted_as_failed() {
    let spec = json!({"completionMode": "NonIndexed", "suspend": true});
    let suspended = looked(&job(spec, NONE()), &[pod(0, "Running", NONE()), pod(1, "Running", NONE())]);
    assert_eq!(suspended.delete.iter().filter(|pod| pod.is_untold).count(), 2);
    assert_eq!(suspended.status.uncounted_terminated_pods, Some(UncountedTerminatedPods::default()));
}

#[test]
fn only_pods_that_have_ended_are_replaced_where_the_job_says_so() {
    let going = |policy: &str| {
        let mut going = pod(1, "Running", NONE());
        going.metadata.deletion_timestamp = Some(Time(at("2026-01-01T10:00:00Z")));
        let pods = [pod(0, "Running", NONE()), going, pod(2, "Running", NONE())];
        indexes(&looked(&job(json!({"podReplacementPolicy": policy}), NONE()), &pods))
    };
    assert_eq!(going("Failed"), [0usize; 0]);
    assert_eq!(going("TerminatingOrFailed"), [1]);
}
