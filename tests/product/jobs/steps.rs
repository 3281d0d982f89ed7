//! What a Job's status goes through.

use std::fs;

use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::place::{Place, holding, is_over, phase, script};

/// What a step of a status is about: how many are active, ready and terminating, and have succeeded and failed.
fn numbers(status: &k8s_openapi::api::batch::v1::JobStatus) -> [i32; 5] {
    [status.active, status.ready, status.terminating, status.succeeded, status.failed]
        .map(Option::unwrap_or_default)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_completes_in_the_steps_of_kubernetes() {
    let place = Place::new().await;
    let seen = tokio::spawn(place.statuses("steps"));
    place.job("steps", json!({"template": {"spec": script("until [ -e go ]; do sleep 0.05; done")}})).await;
    place.until_job("steps", |status| status.ready == Some(1)).await;
    let pod = place.pod_of("steps").await;
    assert!(pod.finalizers().iter().any(|one| one == "batch.kubernetes.io/job-tracking"));
    assert!(pod.name_any().starts_with("steps-"));
    let owner = &pod.owner_references()[0];
    assert_eq!((owner.controller, owner.block_owner_deletion), (Some(true), Some(true)));
    let uid = pod.uid().unwrap();
    fs::write(place.folder(&pod).join("home/go"), "").unwrap();

    let seen = seen.await.unwrap();
    let steps: Vec<_> = seen.iter().map(|status| (numbers(status), holding(status))).collect();
    let met = ("SuccessCriteriaMet", "CompletionsReached");
    let expected = [
        ([0, 0, 0, 0, 0], vec![]),
        ([1, 0, 0, 0, 0], vec![]),
        ([1, 1, 0, 0, 0], vec![]),
        ([0, 0, 0, 0, 0], vec![met]),
        ([0, 0, 0, 1, 0], vec![met, ("Complete", "CompletionsReached")]),
    ];
    assert_eq!(steps, expected);
    let uncounted = |at: usize| seen[at].uncounted_terminated_pods.clone().unwrap_or_default();
    assert_eq!(uncounted(3).succeeded, Some(vec![uid]));
    assert_eq!(uncounted(4), Default::default());
    assert!(seen[1].start_time.is_some() && seen[3].completion_time.is_none());
    assert!(seen[4].completion_time.is_some());
    assert_eq!((seen[1].ready, seen[1].terminating), (Some(0), Some(0)));

    let pod = place.pods_of("steps").await.remove(0);
    assert_eq!(pod.finalizers(), [""; 0]);
    assert_eq!(pod.status.as_ref().map(phase), Some("Succeeded"));
    place.until_event("steps", |reason, text| (reason, text) == ("Completed", "Job completed")).await;
    let told = place.events("steps").await;
    assert_eq!(told[0], ("SuccessfulCreate".to_owned(), format!("Created pod: {}", pod.name_any())));
    let told: Vec<String> =
        place.events(&pod.name_any()).await.into_iter().map(|(reason, _)| reason).collect();
    for reason in ["Scheduled", "Created", "Started"] {
        assert!(told.iter().any(|one| one == reason), "{told:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_fails_at_its_limit_and_at_its_deadline() {
    let place = Place::new().await;
    let seen = tokio::spawn(place.statuses("limit"));
    place.job("limit", json!({"backoffLimit": 0, "template": {"spec": script("exit 3")}})).await;
    let over = place.until_job("limit", is_over).await;
    let why = "BackoffLimitExceeded";
    assert_eq!(holding(&over), [("FailureTarget", why), ("Failed", why)]);
    assert_eq!(numbers(&over), [0, 0, 0, 0, 1]);
    let seen = seen.await.unwrap();
    let last: Vec<_> = seen.iter().rev().take(2).map(|status| holding(status).len()).collect();
    assert_eq!(last, [2, 1]);
    let message = over.conditions.unwrap()[1].message.clone();
    assert_eq!(message.as_deref(), Some("Job has reached the specified backoff limit"));
    let pod = place.pods_of("limit").await.remove(0).status.unwrap();
    let state = pod.container_statuses.unwrap()[0].state.clone().unwrap().terminated.unwrap();
    assert_eq!((state.exit_code, state.reason.as_deref()), (3, Some("Error")));

    let late = json!({"activeDeadlineSeconds": 1, "template": {"spec": script("exec sleep 600")}});
    place.job("late", late).await;
    let over = place.until_job("late", is_over).await;
    assert_eq!(holding(&over), [("FailureTarget", "DeadlineExceeded"), ("Failed", "DeadlineExceeded")]);
    assert_eq!(numbers(&over), [0, 0, 0, 0, 1]);
    let message = over.conditions.unwrap()[1].message.clone();
    assert_eq!(message.as_deref(), Some("Job was active longer than specified deadline"));
    assert_eq!(place.pods_of("late").await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_runs_so_many_pods_at_a_time_and_so_often() {
    let place = Place::new().await;
    let seen = tokio::spawn(place.statuses("many"));
    place
        .job("many", json!({"parallelism": 2, "completions": 5, "template": {"spec": script("true")}}))
        .await;
    let over = place.until_job("many", is_over).await;
    assert_eq!(numbers(&over), [0, 0, 0, 5, 0]);
    assert_eq!(place.pods_of("many").await.len(), 5);
    let most = seen.await.unwrap().iter().filter_map(|status| status.active).max();
    assert_eq!(most, Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_job_waits_and_a_finished_one_goes_when_it_says() {
    let place = Place::new().await;
    let spec = json!({"suspend": true, "ttlSecondsAfterFinished": 0, "template": {"spec": script("true")}});
    let job = place.job("later", spec).await;
    let waiting = place.until_job("later", |status| holding(status) == [("Suspended", "JobSuspended")]).await;
    assert!(waiting.start_time.is_none() && place.pods_of("later").await.is_empty());
    place.until_event("later", |reason, _| reason == "Suspended").await;
    let resume = Patch::Merge(json!({"spec": {"suspend": false}}));
    place.jobs.patch("later", &PatchParams::default(), &resume).await.unwrap();
    let uid = job.uid().unwrap();
    let gone = kube::runtime::conditions::is_deleted(&uid);
    let gone = kube::runtime::wait::await_condition(place.jobs.clone(), "later", gone);
    tokio::time::timeout(crate::support::cluster::PATIENCE, gone).await.unwrap().unwrap();
    assert!(place.pods_of("later").await.is_empty(), "{:?}", place.pods_of("later").await);
}
