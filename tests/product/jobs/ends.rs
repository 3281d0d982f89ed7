//! How Pods end that do not end by themselves: deleted, left by a node that was killed, told to go by one that stops.

use std::fs;
use std::path::Path;
use std::process::Command;

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::ResourceExt as _;
use kube::api::{DeleteParams, LogParams};
use kube::runtime::conditions::is_deleted;
use kube::runtime::wait::await_condition;
use serde_json::json;
use tokio::time::timeout;

use super::place::{Place, holding, is_over, phase, script};
use crate::support::cluster::PATIENCE;

/// Ends when the process does; no later than 5 s from now.
fn until_ended(process: &str) {
    let mut waiting = Command::new("timeout");
    let ended = waiting.args(["5", "tail", &format!("--pid={process}"), "-f", "/dev/null"]).status().unwrap();
    assert!(ended.success(), "process {process} runs still");
}

/// A script that leaves a process behind in a session of its own, whose number it writes to `at`, and heeds no SIGTERM. Two
/// dollar signs are one in a container's command.
fn stubborn(at: &Path) -> String {
    let at = at.display();
    format!(
        "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$$$ > {at}.new; mv {at}.new {at}; while :; do sleep 1; done' & \
        until [ -e {at} ]; do sleep 0.05; done; echo begun; while :; do sleep 1; done"
    )
}

/// Waits for what the stubborn script says once its process runs, and answers that process.
async fn begun(place: &Place, pod: &str, at: &Path) -> String {
    use futures::{AsyncBufReadExt as _, TryStreamExt as _};
    place.until_pod(pod, |status| phase(status) == "Running").await;
    let follow = LogParams { follow: true, ..LogParams::default() };
    let mut lines = place.pods.log_stream(pod, &follow).await.unwrap().lines();
    assert_eq!(timeout(PATIENCE, lines.try_next()).await.unwrap().unwrap().as_deref(), Some("begun"));
    let process = fs::read_to_string(at).unwrap().trim().to_owned();
    assert!(Path::new("/proc").join(&process).join("stat").exists(), "{process} is no process");
    process
}

async fn gone(place: &Place, pod: &Pod) {
    let (uid, name) = (pod.uid().unwrap(), pod.name_any());
    let gone = await_condition(place.pods.clone(), &name, is_deleted(&uid));
    assert!(timeout(PATIENCE, gone).await.is_ok(), "{}", place.place.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_pod_is_asked_to_end_and_then_made_to() {
    let place = Place::new().await;
    let at = place.place.path().join("said");
    let text = format!("trap 'echo bye > {}; exit 0' TERM; echo; while :; do sleep 0.05; done", at.display());
    let pod = place.pod("kind", script(&text)).await;
    place.until_pod("kind", |status| phase(status) == "Running").await;
    place.pods.delete("kind", &DeleteParams::default()).await.unwrap();
    gone(&place, &pod).await;
    assert_eq!(fs::read_to_string(at).unwrap(), "bye\n");

    let at = place.place.path().join("process");
    let pod = place.pod("stubborn", script(&stubborn(&at))).await;
    let process = begun(&place, "stubborn", &at).await;
    place.pods.delete("stubborn", &DeleteParams::default().grace_period(1)).await.unwrap();
    gone(&place, &pod).await;
    assert!(!Path::new("/proc").join(&process).exists(), "{process} was left");

    let again = place.place.path().join("another");
    let pod = place.pod("forced", script(&stubborn(&again))).await;
    let process = begun(&place, "forced", &again).await;
    place.pods.delete("forced", &DeleteParams::default().grace_period(0)).await.unwrap();
    gone(&place, &pod).await;
    until_ended(&process);
}

/// What was never begun is not asked to end either, and nobody may wait for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_sidecar_that_cannot_start_holds_up_neither_its_deletion_nor_the_end_of_the_node() {
    let place = Place::new().await;
    let mut spec = script("true");
    let side = |name: &str| json!({"name": name, "image": "unknown.example/side", "restartPolicy": "Always"});
    spec["initContainers"] = json!([side("one"), side("two")]);
    let pulling = |status: &PodStatus| {
        let first = status.init_container_statuses.iter().flatten().next();
        let waits = first.and_then(|first| first.state.clone()?.waiting?.reason);
        waits.as_deref() == Some("ImagePullBackOff")
    };
    let pod = place.pod("deleted", spec.clone()).await;
    place.until_pod("deleted", pulling).await;
    place.pods.delete("deleted", &DeleteParams::default()).await.unwrap();
    gone(&place, &pod).await;
    place.pod("left", spec).await;
    place.until_pod("left", pulling).await;
    let place = place.restarted(|running| assert!(running.terminate().success())).await;
    assert_eq!(reason(&place.ended("left").await), ("Failed", "Terminated"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_job_takes_its_pods_along() {
    let place = Place::new().await;
    let at = place.place.path().join("process");
    let mut pod = script(&stubborn(&at));
    pod["terminationGracePeriodSeconds"] = json!(1);
    place.job("work", json!({"template": {"spec": pod}})).await;
    let pod = place.pod_of("work").await;
    let process = begun(&place, &pod.name_any(), &at).await;
    place.jobs.delete("work", &DeleteParams::background()).await.unwrap();
    gone(&place, &pod).await;
    assert!(!Path::new("/proc").join(&process).exists(), "{process} was left");
}

fn reason(status: &PodStatus) -> (&str, &str) {
    (phase(status), status.reason.as_deref().unwrap_or_default())
}

fn disruption(status: &PodStatus) -> Option<&str> {
    let conditions = status.conditions.iter().flatten();
    conditions.into_iter().find(|one| one.type_ == "DisruptionTarget")?.reason.as_deref()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_process_outlives_a_killed_node_and_its_pods_fail() {
    let place = Place::new().await;
    let at = place.place.path().join("process");
    place.job("work", json!({"backoffLimit": 0, "template": {"spec": script(&stubborn(&at))}})).await;
    let pod = place.pod_of("work").await.name_any();
    let process = begun(&place, &pod, &at).await;
    let place = place
        .restarted(|running| {
            running.kill();
            until_ended(&process);
        })
        .await;
    let over = place.until_job("work", is_over).await;
    assert!(holding(&over).contains(&("Failed", "BackoffLimitExceeded")), "{over:?}");
    let status = place.ended(&pod).await;
    assert_eq!(reason(&status), ("Failed", "NodeLost"));
    assert_eq!(disruption(&status), Some("DeletionByPodGC"));
    let ended = status.container_statuses.unwrap()[0].state.clone().unwrap().terminated.unwrap();
    assert_eq!((ended.exit_code, ended.reason.as_deref()), (137, Some("ContainerStatusUnknown")));
    assert_eq!(place.pods.logs(&pod, &LogParams::default()).await.unwrap(), "begun\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stops_ends_its_pods_first() {
    let place = Place::new().await;
    let at = place.place.path().join("process");
    let mut spec = script(&stubborn(&at));
    spec["terminationGracePeriodSeconds"] = json!(1);
    place.pod("work", spec).await;
    let process = begun(&place, "work", &at).await;
    let place = place
        .restarted(|running| {
            assert!(running.terminate().success());
            assert!(!Path::new("/proc").join(&process).exists(), "{process} was left");
        })
        .await;
    let status = place.ended("work").await;
    assert_eq!(reason(&status), ("Failed", "Terminated"));
    assert_eq!(disruption(&status), Some("TerminationByKubelet"));
}

/// A supervisor that somebody kills takes nothing of its container with it; the node does.
#[tokio::test(flavor = "multi_thread")]
async fn a_container_does_not_outlive_its_supervisor() {
    let place = Place::new().await;
    let pod = script("cat /proc/$PPID/stat | cut -d' ' -f1; echo $$$$; while :; do sleep 1; done");
    place.pod("work", pod).await;
    place.until_pod("work", |status| phase(status) == "Running").await;
    use futures::{AsyncBufReadExt as _, TryStreamExt as _};
    let follow = LogParams { follow: true, ..LogParams::default() };
    let mut lines = place.pods.log_stream("work", &follow).await.unwrap().lines();
    let mut next = async || timeout(PATIENCE, lines.try_next()).await.unwrap().unwrap().unwrap();
    let (supervisor, process) = (next().await, next().await);
    assert!(Command::new("kill").args(["-KILL", &supervisor]).status().unwrap().success());
    let status = place.ended("work").await;
    let ended = status.container_statuses.unwrap()[0].state.clone().unwrap().terminated.unwrap();
    assert_eq!(ended.exit_code, 137);
    until_ended(&process);
}
