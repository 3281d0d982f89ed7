//! Rows of priming (CO §8, §9).

use admit::controllers::clusteroperator::crd::{ClusterOperator, ClusterOperatorSpec};
use admit::controllers::kit::clock::Clock;
use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::bench::{Bench, MINUTE, available, manifest};
use super::requests::{passes, until};
use crate::support::cluster::PATIENCE;

#[tokio::test]
async fn co_08_01_three_of_a_payload_are_created_with_unknown_conditions_and_related_objects() {
    let bench = Bench::new().await;
    ["network", "dns", "ingress"].iter().for_each(|name| bench.announce(name));
    let primer = bench.start();
    for name in ["network", "dns", "ingress"] {
        let found = bench.until_primed(name).await;
        let status = found.status.clone().unwrap();
        let told: Vec<_> = status
            .conditions
            .iter()
            .map(|it| (it.type_.as_str(), it.status.as_str(), it.reason.as_deref().unwrap_or_default()))
            .collect();
        let unknown = |type_| (type_, "Unknown", "Primed");
        assert_eq!(told, ["Available", "Progressing", "Degraded"].map(unknown));
        assert_eq!((status.related_objects.len(), status.versions.len()), (1, 0));
        assert_eq!(status.related_objects[0].name, name);
        assert_eq!(found.metadata.annotations.unwrap()["example.dev/from"], "payload");
    }
    primer.stop().await;
}

#[tokio::test]
async fn co_08_02_what_reports_already_is_not_touched() {
    let bench = Bench::new().await;
    let named = ClusterOperator::new("dns", ClusterOperatorSpec {});
    bench.operators().create(&PostParams::default(), &named).await.unwrap();
    let before = bench.report("dns", available()).await;
    bench.announce("dns");
    bench.announce("other");
    let primer = bench.start();
    bench.until_primed("other").await;
    primer.stop().await;
    let after = bench.operators().get("dns").await.unwrap();
    assert_eq!(after.metadata.resource_version, before.metadata.resource_version);
}

#[tokio::test]
async fn co_08_05_one_left_between_creation_and_status_is_primed_when_it_is_ours_or_old() {
    let bench = Bench::new().await;
    let bare = |name: &str| ClusterOperator::new(name, ClusterOperatorSpec {});
    // As a primer leaves it that was killed between its two writes.
    let ours =
        PostParams { field_manager: Some("admit-clusteroperator".to_owned()), ..PostParams::default() };
    bench.operators().create(&ours, &bare("ours")).await.unwrap();
    bench.operators().create(&PostParams::default(), &bare("theirs")).await.unwrap();
    for name in ["ours", "theirs", "third"] {
        bench.announce(name);
    }
    let primer = bench.start();
    bench.until_primed("ours").await;
    bench.until_primed("third").await;
    assert_eq!(
        bench.operators().get("theirs").await.unwrap().status,
        None,
        "its operator may be about to report"
    );
    primer.stop().await;

    let later = bench.start_at(Clock::new(|| Timestamp::now() + 3 * MINUTE));
    bench.until_primed("theirs").await;
    later.stop().await;
}

#[tokio::test]
async fn co_08_06_one_that_is_deleted_comes_back() {
    let bench = Bench::new().await;
    bench.announce("dns");
    let primer = bench.start();
    let first = bench.until_primed("dns").await;
    bench.operators().delete("dns", &DeleteParams::default()).await.unwrap();
    let again = |found: &ClusterOperator| {
        found.metadata.uid != first.metadata.uid && found.condition("Available") == Some("Unknown")
    };
    bench.until("dns", again).await;
    primer.stop().await;
}

#[tokio::test]
async fn co_08_07_one_that_leaves_the_payload_stays() {
    let bench = Bench::new().await;
    bench.announce("gone");
    let primer = bench.start();
    let before = bench.until_primed("gone").await;
    primer.stop().await;
    std::fs::remove_file(bench.payload.path().join("0000_50_gone_07-clusteroperator.yaml")).unwrap();
    bench.announce("new");
    let primer = bench.start();
    bench.until_primed("new").await;
    primer.stop().await;
    let after = bench.operators().get("gone").await.unwrap();
    assert_eq!(after.metadata.resource_version, before.metadata.resource_version);
}

#[tokio::test]
async fn co_08_09_without_the_definition_it_waits_and_begins_when_that_comes() {
    let bench = Bench::undefined().await;
    bench.announce("dns");
    let primer = bench.start();
    tokio::task::yield_now().await;
    bench.define().await;
    bench.until_primed("dns").await;
    primer.stop().await;
}

/// Long after all of them report, with a payload that does not change, and after a restart.
#[tokio::test]
async fn co_09_03_one_that_is_deleted_in_a_steady_state_comes_back() {
    let bench = Bench::new().await;
    bench.announce("dns");
    let first = bench.start();
    bench.until_primed("dns").await;
    first.stop().await;
    let reported = bench.report("dns", available()).await;
    let primer = bench.start();
    until("a pass", || passes(&primer) > 0).await;
    let there = bench.operators().get("dns").await.unwrap();
    assert_eq!(there.metadata.resource_version, reported.metadata.resource_version);
    bench.operators().delete("dns", &DeleteParams::default()).await.unwrap();
    let again = bench.until_primed("dns").await;
    assert_ne!(again.metadata.uid, reported.metadata.uid);
    assert!(again.report().versions.is_empty(), "nobody has reported of this one");
    primer.stop().await;
}

/// What somebody takes away does not come back, and what they add stays: the manifest counts when it is made, and never again.
#[tokio::test]
async fn co_09_04_labels_and_annotations_of_one_that_is_there_are_its_own() {
    let bench = Bench::new().await;
    bench.announce("dns");
    let first = bench.start();
    bench.until_primed("dns").await;
    first.stop().await;
    let own = Patch::Merge(json!({"metadata": {
        "annotations": {"example.dev/from": null, "example.dev/own": "kept"}, "labels": {"team": "a"},
    }}));
    let before = bench.operators().patch("dns", &PatchParams::default(), &own).await.unwrap();
    let mut changed = manifest("dns");
    changed["metadata"]["annotations"] = json!({"example.dev/from": "payload", "example.dev/new": "1"});
    changed["metadata"]["labels"] = json!({"team": "b"});
    bench.write("0000_50_dns_07-clusteroperator.yaml", &changed.to_string());
    bench.announce("other");
    let primer = bench.start();
    bench.until_primed("other").await;
    primer.stop().await;
    assert_eq!(bench.operators().get("dns").await.unwrap().metadata, before.metadata);
}

/// A manifest that breaks, has no name or is there twice keeps no other, and the first of two counts.
#[tokio::test]
async fn co_09_05_bad_manifests_hinder_no_other() {
    let bench = Bench::new().await;
    bench.write("0-broken.yaml", "kind: [");
    bench.write(
        "1-nameless.yaml",
        "apiVersion: config.openshift.io/v1\nkind: ClusterOperator\nmetadata: {}\n",
    );
    bench.announce("dns");
    let second = json!({"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator",
        "metadata": {"name": "dns"}, "status": {"relatedObjects": []}});
    bench.write("9-twice.json", &second.to_string());
    let primer = bench.start();
    assert_eq!(bench.until_primed("dns").await.report().related_objects.len(), 1);
    primer.stop().await;
}

/// An operator that builds its status from nothing wipes what was primed; the primer does not fight back.
#[tokio::test]
async fn co_09_06_a_report_that_drops_related_objects_is_left() {
    let bench = Bench::new().await;
    bench.announce("dns");
    let primer = bench.start();
    bench.until_primed("dns").await;
    let mut status = available();
    status["relatedObjects"] = Value::Null;
    let reported = bench.report("dns", status).await;
    // The next one has gone through the same passes.
    bench.announce("other");
    bench.operators().delete("dns-is-not-this-one", &DeleteParams::default()).await.unwrap_err();
    primer.stop().await;
    let primer = bench.start();
    bench.until_primed("other").await;
    primer.stop().await;
    let after = bench.operators().get("dns").await.unwrap();
    assert_eq!(after.metadata.resource_version, reported.metadata.resource_version);
}

#[tokio::test]
async fn each_priming_is_told_in_one_event() {
    let bench = Bench::new().await;
    bench.announce("dns");
    let primer = bench.start();
    bench.until_primed("dns").await;
    let events: Api<Event> = Api::namespaced(bench.admin.clone(), "default");
    let told = async {
        loop {
            let found = events.list(&ListParams::default()).await.unwrap().items;
            if let Some(event) =
                found.into_iter().find(|it| it.reason.as_deref() == Some("ClusterOperatorPrimed"))
            {
                return event;
            }
            tokio::task::yield_now().await;
        }
    };
    let event = tokio::time::timeout(PATIENCE, told).await.unwrap();
    assert_eq!(event.regarding.unwrap().name.as_deref(), Some("dns"));
    primer.stop().await;
}
