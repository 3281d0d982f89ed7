//! `admit up --no-node`: Jobs and Pods stay as somebody writes them, as in a cluster whose controllers are those of the tests.

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{ListParams, LogParams, Patch, PatchParams};
use serde_json::json;

use super::place::{Place, script};

#[tokio::test(flavor = "multi_thread")]
async fn without_a_node_nothing_runs_and_nothing_is_written() {
    let place = Place::with(&["--no-node"]).await;
    place.job("work", json!({"template": {"spec": script("true")}})).await;
    place.pod("alone", script("true")).await;
    let nodes: Api<Node> = Api::all(place.client.clone());
    assert!(nodes.list(&ListParams::default()).await.unwrap().items.is_empty());
    // Whoever would run them would have seen both before this write, which they would see as well.
    let label = Patch::Merge(json!({"metadata": {"labels": {"seen": "yes"}}}));
    place.jobs.patch("work", &PatchParams::default(), &label).await.unwrap();
    let status = Patch::Merge(json!({"status": {"phase": "Running"}}));
    place.pods.patch_status("alone", &PatchParams::default(), &status).await.unwrap();
    let job = place.jobs.get("work").await.unwrap();
    assert!(job.status.is_none_or(|status| status == k8s_openapi::api::batch::v1::JobStatus::default()));
    assert!(place.pods_of("work").await.is_empty());
    let pod = place.pods.get("alone").await.unwrap();
    assert_eq!(pod.spec.unwrap().node_name, None);
    assert_eq!(pod.status.unwrap().phase.as_deref(), Some("Running"), "as somebody wrote it");
    assert!(place.events("alone").await.is_empty() && place.events("work").await.is_empty());
    assert_eq!(place.pods.logs("alone", &LogParams::default()).await.unwrap(), "");
    assert!(!place.place.path().join(".admit/local/pods").exists());
}

/// What says how they run has no meaning then.
#[test]
fn an_image_for_no_node_is_a_mistake() {
    let place = crate::running::Workplace::new();
    let output = place.command().args(["--no-node", "--run-image", "a=."]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--no-node"));
}
