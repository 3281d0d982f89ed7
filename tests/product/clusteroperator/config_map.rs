//! Manifests in the keys of a ConfigMap (CO §4).

use admit::controllers::clusteroperator::Settings;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use super::bench::{Bench, manifest};

fn named() -> Option<(String, String)> {
    Some(("admit-system".to_owned(), "clusteroperator-payload".to_owned()))
}

#[tokio::test]
async fn co_04_the_keys_of_a_config_map_are_manifests_from_the_moment_that_they_are_there() {
    let bench = Bench::new().await;
    let settings = Settings::of_config_map(named());
    let primer = Bench::start_on(bench.router(), settings);
    let data = json!({
        "1-dns.yaml": manifest("dns").to_string(), "notes.txt": "none of ours", "2-bad.yaml": "kind: [",
    });
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "clusteroperator-payload", "namespace": "admit-system"}, "data": data});
    bench.create(&map).await;
    bench.until_primed("dns").await;
    primer.until_counted("cluster_operator_primed_total{result=\"bad_manifest\"} 1").await;
    let maps: Api<k8s_openapi::api::core::v1::ConfigMap> =
        Api::namespaced(bench.admin.clone(), "admit-system");
    let more = Patch::Merge(json!({"data": {"3-ingress.json": manifest("ingress").to_string()}}));
    maps.patch("clusteroperator-payload", &PatchParams::default(), &more).await.unwrap();
    bench.until_primed("ingress").await;
    primer.stop().await;
}

/// The folder's manifest of a name counts, and the ConfigMap's is told as there twice.
#[tokio::test]
async fn co_04_a_folder_and_a_config_map_are_one_payload() {
    let bench = Bench::new().await;
    bench.announce("dns");
    let mut second = manifest("dns");
    second["status"]["relatedObjects"] = json!([]);
    let data = json!({"dns.json": second.to_string(), "network.json": manifest("network").to_string()});
    bench
        .create(&json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "clusteroperator-payload", "namespace": "admit-system"}, "data": data}))
        .await;
    let payload = Some(bench.payload.path().to_owned());
    let settings = Settings { payload, ..Settings::of_config_map(named()) };
    let primer = Bench::start_on(bench.router(), settings);
    bench.until_primed("network").await;
    assert_eq!(bench.until_primed("dns").await.report().related_objects.len(), 1);
    primer.until_counted("cluster_operator_primed_total{result=\"bad_manifest\"} 1").await;
    primer.stop().await;
}
