//! The time that a request may take, and what is left of a change whose time was over.

use std::time::{Duration, Instant};

use admit_apiserver::Server;
use serde_json::{Value, json};

use crate::harness::{get, post};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
/// A bound for a busy machine, not an expectation.
const EVENTUALLY: Duration = Duration::from_secs(60);

/// As many containers as one object may have beside its size limit, each of which has to be defaulted, validated and owned.
fn large(name: &str) -> Value {
    let container = |number: usize| json!({"name": format!("c{number}"), "image": "i"});
    let containers: Vec<Value> = (0..3_000).map(container).collect();
    json!({"metadata": {"name": name}, "spec": {"containers": containers}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_whose_time_is_over_is_refused_and_not_made() {
    let server = Server::builder().build().await.unwrap();
    let mut made = Vec::new();
    for (round, time) in ["1ns", "1ms", "20ms", "100ms"].into_iter().enumerate() {
        let name = format!("p{round}");
        let answer = post(&server, &format!("{PODS}?timeout={time}"), &large(&name)).await;
        // Over before it begins in the first round; later a fast machine may be done in time.
        if round > 0 && answer.status == 201 {
            made.push(json!(name));
            continue;
        }
        assert_eq!(answer.status, 504, "{time}");
        assert_eq!(answer.message(), "Timeout: request did not complete within the allotted timeout");
        assert_eq!((&answer.body["kind"], &answer.body["reason"]), (&json!("Status"), &json!("Timeout")));
    }
    // It gives back its place, and does not go on behind the scenes.
    let began = Instant::now();
    while !get(&server, "/metrics").await.body.as_str().unwrap().contains("changes_under_way 0\n") {
        assert!(began.elapsed() < EVENTUALLY, "work went on after its end");
        tokio::task::yield_now().await;
    }
    let pods = get(&server, PODS).await;
    let names: Vec<_> =
        pods.body["items"].as_array().unwrap().iter().map(|pod| pod["metadata"]["name"].clone()).collect();
    assert_eq!(names, made);
    assert_eq!(post(&server, MAPS, &json!({"metadata": {"name": "m"}})).await.status, 201);
}

#[tokio::test]
async fn the_time_of_a_request_is_read_as_upstream_reads_it() {
    let server = Server::builder().build().await.unwrap();
    for (number, time) in ["", "0", "0s", "-3s", "30s", "1m30s", "400h"].into_iter().enumerate() {
        let map = json!({"metadata": {"name": format!("m{number}")}});
        assert_eq!(post(&server, &format!("{MAPS}?timeout={time}"), &map).await.status, 201, "{time}");
    }
    let wrong = get(&server, &format!("{MAPS}?timeout=3")).await;
    assert_eq!(
        (wrong.status, wrong.message()),
        (400, "invalid timeout specified in the request URL - time: missing unit in duration \"3\"")
    );
    let wrong = post(&server, &format!("{MAPS}?timeout=soon"), &json!({})).await;
    assert_eq!(
        (wrong.status, wrong.message()),
        (400, "invalid timeout specified in the request URL - time: invalid duration \"soon\"")
    );
}
