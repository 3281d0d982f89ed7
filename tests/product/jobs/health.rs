//! What containers say when they end, how they fare while they run, and what they find in their volumes meanwhile.

use std::fs;

use k8s_openapi::api::core::v1::{ConfigMap, ContainerStatus, PodStatus, Secret};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::place::{Place, phase, script};

fn container(status: &PodStatus) -> ContainerStatus {
    status.container_statuses.iter().flatten().next().cloned().unwrap_or_default()
}

fn is_ready(status: &PodStatus) -> bool {
    let conditions = status.conditions.iter().flatten();
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn last_words(status: &PodStatus) -> Option<String> {
    container(status).state.unwrap().terminated.unwrap().message
}

fn with(text: &str, more: Value) -> Value {
    let mut pod = script(text);
    if let (Some(container), Value::Object(more)) = (pod["containers"][0].as_object_mut(), more) {
        container.extend(more);
    }
    pod
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_words_of_a_container_are_in_its_status() {
    let place = Place::new().await;
    place.pod("file", script("echo said > /dev/termination-log")).await;
    assert_eq!(last_words(&place.ended("file").await).as_deref(), Some("said\n"));
    let own = json!({"terminationMessagePath": "/tmp/of-mine"});
    place.pod("own", with("echo -n mine > /tmp/of-mine; exit 3", own)).await;
    assert_eq!(last_words(&place.ended("own").await).as_deref(), Some("mine"));
    let falls_back = || json!({"terminationMessagePolicy": "FallbackToLogsOnError"});
    place.pod("log", with("echo trouble; exit 1", falls_back())).await;
    assert_eq!(last_words(&place.ended("log").await).as_deref(), Some("trouble\n"));
    place.pod("fine", with("echo chatter", falls_back())).await;
    assert_eq!(last_words(&place.ended("fine").await), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_is_ready_once_and_for_as_long_as_its_probe_passes() {
    let place = Place::new().await;
    let probe = json!({"exec": {"command": ["sh", "-c", "test -e ready || { echo not yet; exit 1; }"]},
        "periodSeconds": 1, "failureThreshold": 1});
    let pod = place.pod("serves", with("exec sleep 600", json!({"readinessProbe": probe}))).await;
    let status = place.until_pod("serves", |status| phase(status) == "Running").await;
    assert!(!is_ready(&status) && container(&status).started == Some(true), "{status:?}");
    place
        .until_event("serves", |reason, text| {
            (reason, text) == ("Unhealthy", "Readiness probe failed: not yet\n")
        })
        .await;
    let file = place.folder(&pod).join("home/ready");
    fs::write(&file, "").unwrap();
    place.until_pod("serves", is_ready).await;
    fs::remove_file(&file).unwrap();
    let status = place.until_pod("serves", |status| !is_ready(status)).await;
    assert_eq!(container(&status).restart_count, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_is_not_alive_is_ended_and_started_again() {
    let place = Place::new().await;
    // The first start is dead, the second one lives.
    let text = "if [ -e once ]; then touch alive; fi; touch once; exec sleep 600";
    let probe = json!({"exec": {"command": ["test", "-e", "alive"]}, "initialDelaySeconds": 1, "periodSeconds": 1,
        "failureThreshold": 2});
    let mut pod = with(text, json!({"livenessProbe": probe}));
    pod["restartPolicy"] = json!("Always");
    place.pod("lives", pod).await;
    let status =
        place.until_pod("lives", |status| container(status).restart_count == 1 && is_ready(status)).await;
    let last = container(&status).last_state.unwrap().terminated.unwrap();
    assert_eq!((last.exit_code, last.signal), (143, Some(15)));
    let told = "Container main failed liveness probe, will be restarted";
    place.until_event("lives", |reason, text| (reason, text) == ("Killing", told)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_else_is_asked_before_a_container_has_started() {
    let place = Place::new().await;
    let probe = |file: &str| json!({"exec": {"command": ["test", "-e", file]}, "periodSeconds": 1, "failureThreshold": 60});
    let mut liveness = probe("never");
    liveness["failureThreshold"] = json!(1);
    let more = json!({"startupProbe": probe("started"), "livenessProbe": liveness});
    let pod = place.pod("slow", with("exec sleep 600", more)).await;
    place
        .until_event("slow", |reason, text| {
            reason == "Unhealthy" && text.starts_with("Startup probe failed: ")
        })
        .await;
    let status = place.until_pod("slow", |status| phase(status) == "Running").await;
    assert_eq!((container(&status).started, container(&status).ready), (Some(false), false));
    fs::write(place.folder(&pod).join("home/started"), "").unwrap();
    // Now it is found dead, and since it is not started again the Pod has failed.
    let status = place.ended("slow").await;
    assert_eq!((phase(&status), container(&status).started), ("Failed", Some(false)));
    place
        .until_event("slow", |reason, text| {
            (reason, text) == ("Killing", "Container main failed liveness probe")
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_pod_finds_what_its_secrets_and_maps_hold_now() {
    let place = Place::new().await;
    place.put::<Secret>(json!({"metadata": {"name": "s"}, "stringData": {"key": "old"}})).await;
    place.put::<ConfigMap>(json!({"metadata": {"name": "m"}, "data": {"one": "1", "two": "2"}})).await;
    let text = "until [ \"$(cat /secret/key)\" = new ]; do sleep 0.05; done; \
                until [ -e /map/three ]; do sleep 0.05; done; test ! -e /map/one && cat /map/two /map/three";
    let mut pod = with(
        text,
        json!({"volumeMounts": [
            {"name": "secret", "mountPath": "/secret"}, {"name": "map", "mountPath": "/map"},
        ]}),
    );
    pod["volumes"] = json!([
        {"name": "secret", "secret": {"secretName": "s"}},
        {"name": "map", "projected": {"sources": [{"configMap": {"name": "m"}}]}},
    ]);
    place.pod("reads", pod).await;
    place.until_pod("reads", |status| phase(status) == "Running").await;
    let secrets: Api<Secret> = Api::default_namespaced(place.client.clone());
    let new = Patch::Merge(json!({"stringData": {"key": "new"}}));
    secrets.patch("s", &PatchParams::default(), &new).await.unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(place.client.clone());
    let new = Patch::Merge(json!({"data": {"one": null, "two": "zwei", "three": "drei"}}));
    maps.patch("m", &PatchParams::default(), &new).await.unwrap();
    assert_eq!(phase(&place.ended("reads").await), "Succeeded");
    assert_eq!(place.pods.logs("reads", &Default::default()).await.unwrap(), "zweidrei");
}
