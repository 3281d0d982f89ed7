//! The ClusterOperator `insights`, under the shipped roles and policies: nothing that the controller writes is refused.

use admit::controllers::datagather::member;
use admit::controllers::kit::manager::Manager;
use admit::controllers::kit::observe::Observed;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::runs::{Bench, uploading};
use super::upload::ingress::{Answers, FakeIngress};
use crate::support::testcluster::{NAMESPACE, TestCluster};

fn said(object: &Value, type_: &str) -> String {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == type_);
    found.map_or_else(String::new, |condition| {
        format!(
            "{}/{}",
            condition["status"].as_str().unwrap(),
            condition["reason"].as_str().unwrap_or_default()
        )
    })
}

#[tokio::test]
async fn dg_03_insights_reports_as_a_cluster_operator() {
    let cluster = TestCluster::new().await;
    let service = FakeIngress::start(Answers::refuse(500)).await;
    let process = cluster.process("admit-datagather");
    let bench = Bench::new();
    let mut settings = uploading(&bench, &service);
    settings.namespace = NAMESPACE.to_owned();
    settings.upload.as_mut().unwrap().pacing.upload_attempts = 1;
    let manager =
        Manager::new(process.client.clone(), None).with(member(process.client.clone(), settings).unwrap());
    let observed = Observed::of(&manager);
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    let operators = cluster.objects("config.openshift.io", "v1", "ClusterOperator");
    let object = cluster.until(&operators, "insights", |it| said(it, "Available") == "True/AsExpected").await;
    for (type_, expected) in [
        ("Progressing", "False/AsExpected"),
        ("Degraded", "False/AsExpected"),
        ("Disabled", "True/ByFlag"),
        ("UploadDegraded", "False/AsExpected"),
        ("InsightsDownloadDegraded", "False/AsExpected"),
    ] {
        assert_eq!(said(&object, type_), expected, "{type_}: {object:#}");
    }
    assert_eq!(object["status"]["versions"][0]["name"], "operator", "{object:#}");
    for number in 0..5 {
        cluster
            .create(&json!({"apiVersion": "insights.openshift.io/v1alpha1", "kind": "DataGather",
                "metadata": {"name": format!("g{number}")}, "spec": {}}))
            .await;
    }
    let told = |it: &Value| said(it, "UploadDegraded") == "True/HttpStatus500";
    let object = cluster.until(&operators, "insights", told).await;
    // Nobody is called before two minutes have gone by.
    assert_eq!(said(&object, "Degraded"), "False/AsExpected");
    let text = observed.text();
    assert!(
        text.contains("insightsclient_request_send_total{client=\"insights\",status_code=\"500\"} 5\n"),
        "{text}"
    );
    assert!(text.contains("health_statuses_insights{metric=\"total\"} -1\n"), "{text}");
    assert_eq!(process.wire.denied(), Vec::<String>::new());
    stop.cancel();
    running.await.unwrap().unwrap();
}
