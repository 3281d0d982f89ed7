//! `kubectl logs`, from a kube client and from kubectl itself.

use std::process::Command;

use futures::{AsyncBufReadExt as _, TryStreamExt as _};
use kube::ResourceExt as _;
use kube::api::LogParams;
use serde_json::json;
use tokio::time::timeout;

use super::place::{Place, script};
use crate::support::cluster::PATIENCE;
use crate::tour::has_kubectl;

fn refused(error: kube::Error) -> (u16, String) {
    let kube::Error::Api(status) = error else { panic!("{error}") };
    (status.code, status.message)
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_what_was_asked_for() {
    let place = Place::new().await;
    place.pod("talk", script("for n in 1 2 3; do echo out $n; done; echo err >&2; echo secret-less")).await;
    place.ended("talk").await;
    let logs = |params: LogParams| {
        let pods = place.pods.clone();
        async move { pods.logs("talk", &params).await.unwrap() }
    };
    let all = logs(LogParams::default()).await;
    let mut lines: Vec<&str> = all.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["err", "out 1", "out 2", "out 3", "secret-less"]);
    assert_eq!(logs(LogParams { tail_lines: Some(2), ..LogParams::default() }).await.lines().count(), 2);
    assert_eq!(logs(LogParams { tail_lines: Some(0), ..LogParams::default() }).await, "");
    assert_eq!(logs(LogParams { limit_bytes: Some(3), ..LogParams::default() }).await.len(), 3);
    assert_eq!(logs(LogParams { since_seconds: Some(3600), ..LogParams::default() }).await, all);
    let future = "2100-01-01T00:00:00Z".parse().unwrap();
    assert_eq!(logs(LogParams { since_time: Some(future), ..LogParams::default() }).await, "");
    let stamped = logs(LogParams { timestamps: true, ..LogParams::default() }).await;
    assert!(stamped.lines().all(|line| line.split_once(' ').unwrap().0.parse::<jiff::Timestamp>().is_ok()));

    let previous = LogParams { previous: true, ..LogParams::default() };
    let (code, why) = refused(place.pods.logs("talk", &previous).await.unwrap_err());
    assert_eq!(
        (code, why.as_str()),
        (400, "previous terminated container \"main\" in pod \"talk\" not found")
    );
    let other = LogParams { container: Some("other".to_owned()), ..LogParams::default() };
    assert_eq!(refused(place.pods.logs("talk", &other).await.unwrap_err()).0, 400);
    place.pod("never", json!({"containers": [{"name": "main", "image": "busybox"}]})).await;
    place.until_event("never", |_, text| text.contains("ErrImagePull")).await;
    let (_, why) = refused(place.pods.logs("never", &LogParams::default()).await.unwrap_err());
    assert!(why.starts_with("container \"main\" in pod \"never\" is waiting to start: "), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_followed_to_the_end_of_the_container() {
    let place = Place::new().await;
    let text = "echo first; until [ -e go ]; do sleep 0.05; done; echo last; sleep 600 & exit 0";
    let pod = place.pod("follow", script(text)).await;
    place.until_pod("follow", |status| status.phase.as_deref() == Some("Running")).await;
    let follow = LogParams { follow: true, ..LogParams::default() };
    let mut lines = place.pods.log_stream("follow", &follow).await.unwrap().lines();
    let next = timeout(PATIENCE, lines.try_next()).await.unwrap().unwrap();
    assert_eq!(next.as_deref(), Some("first"));
    std::fs::write(place.folder(&pod).join("home/go"), "").unwrap();
    let rest: Vec<String> = timeout(PATIENCE, lines.try_collect()).await.unwrap().unwrap();
    assert_eq!(rest, ["last"]);
    place.ended("follow").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_of_the_start_before_is_kept() {
    let place = Place::new().await;
    let mut pod = script(
        "if [ -e again ]; then echo second; until [ -e go ]; do sleep 0.05; done; fi; echo first; touch again; exit 1",
    );
    pod["restartPolicy"] = json!("OnFailure");
    place.pod("twice", pod).await;
    place
        .until_pod("twice", |status| {
            status.container_statuses.iter().flatten().any(|one| one.restart_count == 1 && one.ready)
        })
        .await;
    let previous = LogParams { previous: true, ..LogParams::default() };
    assert_eq!(place.pods.logs("twice", &previous).await.unwrap(), "first\n");
    let follow = LogParams { follow: true, ..LogParams::default() };
    let mut lines = place.pods.log_stream("twice", &follow).await.unwrap().lines();
    assert_eq!(timeout(PATIENCE, lines.try_next()).await.unwrap().unwrap().as_deref(), Some("second"));
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_follows_and_waits() {
    if !has_kubectl() {
        return;
    }
    let place = Place::new().await;
    place.job("work", json!({"template": {"spec": script("echo begun; sleep 1; echo done")}})).await;
    let kubeconfig = place.place.kubeconfig();
    let kubectl = |args: &[&str]| {
        let mut command = Command::new("kubectl");
        command.args(args).env("KUBECONFIG", &kubeconfig);
        tokio::task::spawn_blocking(move || command.output().unwrap())
    };
    place.until_job("work", |status| status.ready == Some(1)).await;
    let (logs, waited) = tokio::join!(
        kubectl(&["logs", "-f", "job/work"]),
        kubectl(&["wait", "--for=condition=complete", "job/work", "--timeout=30s"])
    );
    let (logs, waited) = (logs.unwrap(), waited.unwrap());
    assert_eq!(String::from_utf8_lossy(&logs.stdout), "begun\ndone\n", "{logs:?}");
    assert_eq!(String::from_utf8_lossy(&waited.stdout), "job.batch/work condition met\n", "{waited:?}");
    let pod = place.pods_of("work").await.remove(0).name_any();
    let tail = kubectl(&["logs", "--tail=1", "--timestamps", "-c", "main", &pod]).await.unwrap();
    assert!(String::from_utf8_lossy(&tail.stdout).ends_with(" done\n"), "{tail:?}");
    let described = kubectl(&["describe", "job", "work"]).await.unwrap();
    assert!(String::from_utf8_lossy(&described.stdout).contains("Created pod: work-"), "{described:?}");
}
