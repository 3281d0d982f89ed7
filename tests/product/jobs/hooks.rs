//! What containers have done right after their start and right before their end, as a kubelet does it.

use std::fs;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodStatus};
use kube::api::DeleteParams;
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::place::{Place, phase, script};
use crate::support::cluster::PATIENCE;

fn container(status: &PodStatus) -> ContainerStatus {
    status.container_statuses.iter().flatten().next().cloned().unwrap_or_default()
}

fn with(text: &str, lifecycle: &Value) -> Value {
    let mut pod = script(text);
    pod["containers"][0]["lifecycle"] = lifecycle.clone();
    pod
}

fn exec(text: &str) -> Value {
    json!({"exec": {"command": ["sh", "-c", text]}})
}

/// Deletes a Pod, and waits until it is gone.
async fn delete(place: &Place, name: &str, grace: u32) {
    place.pods.delete(name, &DeleteParams::default().grace_period(grace)).await.unwrap();
    let gone = await_condition(place.pods.clone(), name, |pod: Option<&Pod>| pod.is_none());
    timeout(PATIENCE, gone).await.unwrap().unwrap();
}

fn said(place: &Place, pod: &Pod) -> String {
    fs::read_to_string(place.folder(pod).join("home/said")).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_runs_once_what_follows_its_start_is_done() {
    let place = Place::new().await;
    let waits = "until [ -e go ]; do sleep 0.02; done; echo followed >> said";
    let text = "until [ -s said ]; do sleep 0.02; done; echo went on >> said; exec sleep 600";
    let pod = place.pod("follows", with(text, &json!({"postStart": exec(waits)}))).await;
    place.until_event("follows", |reason, _| reason == "Started").await;
    let status = place.pods.get("follows").await.unwrap().status.unwrap();
    assert_eq!(container(&status).state.unwrap().running, None, "{status:?}");
    fs::write(place.folder(&pod).join("home/go"), "").unwrap();
    let status = place.until_pod("follows", |status| phase(status) == "Running").await;
    assert!(container(&status).ready && container(&status).restart_count == 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_is_ended_when_what_follows_its_start_fails() {
    let place = Place::new().await;
    let fails = exec("echo canary-4716; exit 3");
    place.pod("fails", with("exec sleep 600", &json!({"postStart": fails}))).await;
    let status = place.ended("fails").await;
    let ended = container(&status).state.unwrap().terminated.unwrap();
    assert_eq!((phase(&status), ended.exit_code, ended.signal), ("Failed", 143, Some(15)));
    place
        .until_event("fails", |reason, text| {
            (reason, text) == ("FailedPostStartHook", "PostStartHook failed")
        })
        .await;
    place.until_event("fails", |reason, text| (reason, text) == ("Killing", "FailedPostStartHook")).await;
    let events = place.events("fails").await;
    assert!(!events.iter().any(|(_, text)| text.contains("canary")), "{events:?}");
    assert!(!serde_json::to_string(&status).unwrap().contains("canary"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_before_the_end_is_done_before_the_container_is_asked_to_end() {
    let place = Place::new().await;
    // The folder of a Pod goes with it.
    let outside = place.place.path().join("ended");
    let text = format!(
        "trap 'echo asked >> said; cp said {}; exit 0' TERM; touch runs; while :; do sleep 0.02; done",
        outside.display()
    );
    let before =
        exec("until [ -e runs ]; do sleep 0.02; done; echo before >> said; sleep 0.2; echo done >> said");
    place.pod("ends", with(&text, &json!({"preStop": before}))).await;
    place.until_pod("ends", |status| phase(status) == "Running").await;
    delete(&place, "ends", 5).await;
    assert_eq!(fs::read_to_string(outside).unwrap(), "before\ndone\nasked\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_before_the_end_has_no_longer_than_the_pod() {
    let place = Place::new().await;
    let fails = json!({"preStop": exec("exit 1")});
    place.pod("fails", with("exec sleep 600", &fails)).await;
    let stalls = json!({"preStop": exec("exec sleep 600")});
    place.pod("stalls", with("exec sleep 600", &stalls)).await;
    for name in ["fails", "stalls"] {
        place.until_pod(name, |status| phase(status) == "Running").await;
        delete(&place, name, 1).await;
    }
    place
        .until_event("fails", |reason, text| (reason, text) == ("FailedPreStopHook", "PreStopHook failed"))
        .await;
    let events = place.events("stalls").await;
    assert!(!events.iter().any(|(reason, _)| reason == "FailedPreStopHook"), "{events:?}");
    // Who ends by itself has nothing done before.
    let pod = place.pod("alone", with("exit 0", &json!({"preStop": exec("echo before >> said")}))).await;
    place.ended("alone").await;
    assert_eq!(said(&place, &pod), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn handlers_ask_over_http_and_sleep() {
    let place = Place::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = tokio::spawn(async move {
        let mut asked = Vec::new();
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = vec![0; 4096];
            let read = stream.read(&mut bytes).await.unwrap();
            // Whatever the answer says.
            stream.write_all(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n").await.unwrap();
            asked.push(String::from_utf8_lossy(&bytes[..read]).into_owned());
        }
        asked
    });
    let get = |path: &str| json!({"httpGet": {"path": path, "port": port}});
    let hooks = json!({"postStart": get("/begun"), "preStop": get("/ends")});
    place.pod("asks", with("exec sleep 600", &hooks)).await;
    place.until_pod("asks", |status| phase(status) == "Running").await;
    delete(&place, "asks", 5).await;
    let asked = asked.await.unwrap();
    assert!(asked[0].starts_with("GET /begun HTTP/1.1\r\n"), "{asked:?}");
    assert!(asked[1].starts_with("GET /ends HTTP/1.1\r\n"), "{asked:?}");
    assert!(asked[1].contains("user-agent: kube-lifecycle/1.36\r\n"), "{asked:?}");

    let sleeps = json!({"postStart": {"sleep": {"seconds": 0}}, "preStop": {"sleep": {"seconds": 1}}});
    place.pod("sleeps", with("exec sleep 600", &sleeps)).await;
    place.until_pod("sleeps", |status| phase(status) == "Running").await;
    let before = std::time::Instant::now();
    delete(&place, "sleeps", 5).await;
    assert!(before.elapsed().as_secs() >= 1);
    let tls = json!({"preStop": {"httpGet": {"port": port, "scheme": "HTTPS"}}});
    place.pod("tls", with("exit 0", &tls)).await;
    place
        .until_event("tls", |reason, text| {
            reason == "IgnoredFields" && text.contains("containers[main].lifecycle.preStop.httpGet.scheme")
        })
        .await;
}
