//! What runs in a Pod, and what its status says of it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use k8s_openapi::api::core::v1::{ConfigMap, PodStatus, Secret};
use kube::ResourceExt as _;
use serde_json::json;

use super::place::{Place, phase, script};

fn waiting(status: &PodStatus) -> (String, String) {
    let state = status.container_statuses.iter().flatten().next().and_then(|one| one.state.clone());
    let waiting = state.and_then(|state| state.waiting).unwrap_or_default();
    (waiting.reason.unwrap_or_default(), waiting.message.unwrap_or_default())
}

fn condition(status: &PodStatus, kind: &str) -> (String, String) {
    let found = status.conditions.iter().flatten().find(|one| one.type_ == kind).unwrap();
    (found.status.clone(), found.reason.clone().unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn our_own_image_is_this_program() {
    let place = Place::new().await;
    let pod = json!({"restartPolicy": "Never", "containers": [
        {"name": "main", "image": "registry.example/admit:1", "args": ["version"]},
    ]});
    place.pod("own", pod).await;
    let status = place.ended("own").await;
    assert_eq!(phase(&status), "Succeeded");
    assert_eq!(condition(&status, "Ready"), ("False".to_owned(), "PodCompleted".to_owned()));
    assert_eq!(condition(&status, "PodScheduled").0, "True");
    let container = &status.container_statuses.unwrap()[0];
    let ended = container.state.clone().unwrap().terminated.unwrap();
    assert_eq!(
        (ended.exit_code, ended.reason.as_deref(), container.restart_count),
        (0, Some("Completed"), 0)
    );
    assert!(container.container_id.as_deref().unwrap().starts_with("admit://"));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_image_waits_with_the_remedy_and_runs_from_a_folder() {
    let image = tempfile::tempdir().unwrap();
    let gather = image.path().join("usr/bin/gather");
    fs::create_dir_all(gather.parent().unwrap()).unwrap();
    fs::write(&gather, "#!/bin/sh\nexit 7\n").unwrap();
    fs::set_permissions(&gather, fs::Permissions::from_mode(0o755)).unwrap();
    let named = format!("quay.io/x/gather={}", image.path().display());
    let place = Place::with(&["--run-image", &named]).await;
    let of =
        |image: &str| json!({"restartPolicy": "Never", "containers": [{"name": "main", "image": image}]});

    place.pod("other", of("busybox:1")).await;
    let status = place.until_pod("other", |status| waiting(status).0 == "ImagePullBackOff").await;
    assert_eq!(phase(&status), "Pending");
    assert!(waiting(&status).1.contains("--run-image busybox:1=DIR"), "{:?}", waiting(&status));
    place.until_event("other", |reason, text| reason == "Failed" && text.contains("--run-image")).await;

    place.pod("named", of("quay.io/x/gather:v1")).await;
    let status = place.ended("named").await;
    let ended = status.container_statuses.unwrap()[0].state.clone().unwrap().terminated.unwrap();
    assert_eq!(ended.exit_code, 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_is_what_the_pod_asks_for_and_nothing_of_the_host() {
    let place = Place::new().await;
    let mut pod = script(
        "test \"$A-$B-$C-$D\" = \"plain-hush-seen-the-pod\" && test \"$REF\" = \"<plain>\" && test -z \"$CARGO_MANIFEST_DIR\" \
         && test -n \"$KUBERNETES_SERVICE_HOST\"",
    );
    pod["containers"][0]["env"] = json!([
        {"name": "A", "value": "plain"}, {"name": "REF", "value": "<$(A)>"},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "b"}}},
        {"name": "D", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ]);
    pod["containers"][0]["envFrom"] = json!([{"configMapRef": {"name": "m"}}]);
    place.pod("the-pod", pod).await;
    let status = place.until_pod("the-pod", |status| waiting(status).0 == "CreateContainerConfigError").await;
    assert!(waiting(&status).1.contains("\"m\" not found") || waiting(&status).1.contains("\"s\" not found"));
    place.put::<Secret>(json!({"metadata": {"name": "s"}, "stringData": {"b": "hush"}})).await;
    place.put::<ConfigMap>(json!({"metadata": {"name": "m"}, "data": {"C": "seen"}})).await;
    assert_eq!(phase(&place.ended("the-pod").await), "Succeeded");
    assert!(!place.place.log().contains("hush"));
}

#[tokio::test(flavor = "multi_thread")]
async fn init_containers_run_in_order_and_sidecars_beside_the_main_ones() {
    let place = Place::new().await;
    let container =
        |name: &str, text: &str| json!({"name": name, "image": "admit", "command": ["/bin/sh", "-c", text]});
    let mut side =
        container("side", "touch side; trap 'touch ended; exit 0' TERM; while :; do sleep 0.05; done");
    side["restartPolicy"] = json!("Always");
    let pod = json!({
        "restartPolicy": "Never", "terminationGracePeriodSeconds": 5,
        "initContainers": [
            container("first", "test ! -e side && touch first"), side,
            container("last", "until [ -e side ]; do sleep 0.05; done; test -e first && touch last"),
        ],
        "containers": [
            container("one", "test -e last && test ! -e ended"),
            container("two", "test -e last && test -e side"),
        ],
    });
    let pod = place.pod("order", pod).await;
    let status = place.ended("order").await;
    assert_eq!(phase(&status), "Succeeded", "{status:?}");
    assert!(place.folder(&pod).join("home/ended").exists());
    let init = status.init_container_statuses.unwrap();
    let codes: Vec<_> =
        init.iter().map(|one| one.state.clone().unwrap().terminated.unwrap().exit_code).collect();
    assert_eq!(codes, [0, 0, 0]);

    let failing = json!({"restartPolicy": "Never",
        "initContainers": [container("first", "exit 4")], "containers": [container("one", "true")]});
    place.pod("never", failing).await;
    let status = place.ended("never").await;
    assert_eq!(phase(&status), "Failed");
    assert_eq!(waiting(&status).0, "PodInitializing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_start_and_a_restart_are_told() {
    let place = Place::new().await;
    let mut pod = script("");
    pod["containers"][0]["command"] = json!(["/no/such/program"]);
    place.pod("no-start", pod).await;
    let status = place.ended("no-start").await;
    let ended = status.container_statuses.unwrap()[0].state.clone().unwrap().terminated.unwrap();
    assert_eq!((ended.exit_code, ended.reason.as_deref()), (128, Some("StartError")));
    assert!(ended.message.unwrap().contains("/no/such/program"));

    let mut pod = script("test -e again || { touch again; exit 9; }");
    pod["restartPolicy"] = json!("OnFailure");
    let created = place.pod("again", pod).await;
    let status = place.until_pod("again", |status| waiting(status).0 == "CrashLoopBackOff").await;
    assert_eq!(phase(&status), "Running");
    let last = status.container_statuses.unwrap()[0].last_state.clone().unwrap().terminated.unwrap();
    assert_eq!(last.exit_code, 9);
    let status = place.ended(&created.name_any()).await;
    let restarts = status.container_statuses.as_ref().unwrap()[0].restart_count;
    assert_eq!((phase(&status), restarts), ("Succeeded", 1));
}
