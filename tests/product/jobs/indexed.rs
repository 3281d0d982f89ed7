//! Jobs whose Pods have an index each, Jobs with policies, and Jobs whose Pods are refused.

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::place::{Place, holding, is_over, script};

fn index_of(pod: &Pod) -> &str {
    &pod.annotations()["batch.kubernetes.io/job-completion-index"]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_index_of_a_job_runs_once_and_knows_itself() {
    let place = Place::new().await;
    let spec = json!({"completionMode": "Indexed", "completions": 4, "parallelism": 2,
        "template": {"spec": script("echo index $JOB_COMPLETION_INDEX; test -n \"$JOB_COMPLETION_INDEX\"")}});
    place.job("indexed", spec).await;
    let over = place.until_job("indexed", is_over).await;
    assert_eq!(
        holding(&over),
        [("SuccessCriteriaMet", "CompletionsReached"), ("Complete", "CompletionsReached")]
    );
    assert_eq!((over.completed_indexes.as_deref(), over.succeeded), (Some("0-3"), Some(4)));
    let pods = place.pods_of("indexed").await;
    let mut indexes: Vec<&str> = pods.iter().map(index_of).collect();
    indexes.sort_unstable();
    assert_eq!(indexes, ["0", "1", "2", "3"]);
    for pod in &pods {
        let index = index_of(pod);
        assert!(pod.name_any().starts_with(&format!("indexed-{index}-")), "{}", pod.name_any());
        assert_eq!(pod.spec.as_ref().unwrap().hostname.as_deref(), Some(format!("indexed-{index}").as_str()));
        assert_eq!(
            place.pods.logs(&pod.name_any(), &Default::default()).await.unwrap(),
            format!("index {index}\n")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_fails_for_itself_and_then_the_job() {
    let place = Place::new().await;
    let text = "test \"$JOB_COMPLETION_INDEX\" != 1";
    let spec = json!({"completionMode": "Indexed", "completions": 3, "parallelism": 3, "backoffLimitPerIndex": 0,
        "template": {"spec": script(text)}});
    place.job("own", spec).await;
    let over = place.until_job("own", is_over).await;
    assert_eq!(holding(&over), [("FailureTarget", "FailedIndexes"), ("Failed", "FailedIndexes")]);
    assert_eq!((over.completed_indexes.as_deref(), over.failed_indexes.as_deref()), (Some("0,2"), Some("1")));
    assert_eq!((over.succeeded, over.failed), (Some(2), Some(1)));
    place
        .until_event("own", |reason, text| (reason, text) == ("FailedIndexes", "Job has failed indexes"))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_decide_what_a_failure_and_what_a_success_is_worth() {
    let place = Place::new().await;
    let rules = json!({"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]});
    let spec = json!({"backoffLimit": 5, "podFailurePolicy": rules, "template": {"spec": script("exit 42")}});
    place.job("fatal", spec).await;
    let over = place.until_job("fatal", is_over).await;
    assert_eq!(holding(&over), [("FailureTarget", "PodFailurePolicy"), ("Failed", "PodFailurePolicy")]);
    let text = over.conditions.unwrap()[1].message.clone().unwrap();
    assert!(text.ends_with("failed with exit code 42 matching FailJob rule at index 0"), "{text}");
    assert_eq!(over.failed, Some(1));

    let text = "test \"$JOB_COMPLETION_INDEX\" = 0 || exec sleep 600";
    let spec = json!({"completionMode": "Indexed", "completions": 3, "parallelism": 3,
        "successPolicy": {"rules": [{"succeededIndexes": "0"}]}, "template": {"spec": script(text)}});
    place.job("enough", spec).await;
    let over = place.until_job("enough", is_over).await;
    assert_eq!(holding(&over), [("SuccessCriteriaMet", "SuccessPolicy"), ("Complete", "SuccessPolicy")]);
    assert_eq!((over.completed_indexes.as_deref(), over.failed), (Some("0"), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_job_ends_its_pods_and_none_of_them_failed() {
    let place = Place::new().await;
    place.job("held", json!({"template": {"spec": script("exec sleep 600")}})).await;
    place.until_job("held", |status| status.ready == Some(1)).await;
    let suspend = Patch::Merge(json!({"spec": {"suspend": true}}));
    place.jobs.patch("held", &PatchParams::default(), &suspend).await.unwrap();
    let at_rest = |status: &k8s_openapi::api::batch::v1::JobStatus| {
        status.active.is_none()
            && status.terminating == Some(0)
            && holding(status) == [("Suspended", "JobSuspended")]
    };
    let status = place.until_job("held", at_rest).await;
    assert_eq!(status.failed, None);
    assert!(place.pods_of("held").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_that_a_policy_refuses_are_told_of_and_made_once_it_lets_them() {
    let place = Place::new().await;
    let rule =
        json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]});
    let policy = json!({"metadata": {"name": "no-pods"}, "spec": {
        "matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "false", "message": "no room"}]}});
    let binding = json!({"metadata": {"name": "no-pods"}, "spec": {"policyName": "no-pods", "validationActions": ["Deny"]}});
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(place.client.clone());
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(place.client.clone());
    policies.create(&PostParams::default(), &serde_json::from_value(policy).unwrap()).await.unwrap();
    bindings.create(&PostParams::default(), &serde_json::from_value(binding).unwrap()).await.unwrap();
    place.job("refused", json!({"template": {"spec": script("true")}})).await;
    place
        .until_event("refused", |reason, text| {
            reason == "FailedCreate" && text.starts_with("Error creating: ") && text.contains("no room")
        })
        .await;
    assert!(place.pods_of("refused").await.is_empty());
    bindings.delete("no-pods", &DeleteParams::default()).await.unwrap();
    let over = place.until_job("refused", is_over).await;
    assert_eq!(over.succeeded, Some(1));
}
