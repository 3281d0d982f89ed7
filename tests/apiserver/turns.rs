//! The time that a request may take, and what is left of a change whose time was over.

use std::time::{Duration, Instant};

use admit_apiserver::Server;
use serde_json::{Value, json};

use crate::harness::{get, post};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
/// A bound for a busy machine, not an expectation.
const EVENTUALLY: Duration = Duration::from_secs(60);

/// Some megabytes of containers, each of which has to be defaulted, validated and owned.
fn large(name: &str) -> Value {
    let container = |number: usize| json!({"name": format!("c{number}"), "image": "i"});
    let containers: Vec<Value> = (0..20_000).map(container).collect();
    json!({"metadata": {"name": name}, "spec": {"containers": containers}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_whose_time_is_over_is_refused_and_not_made() {
    let server = Server::builder().build().await.unwrap();
    for round in 0..4 {
        // Over before, at the start, and somewhere on the way.
        let time = ["1ns", "1ms", "20ms", "100ms"][round];
        let answer = post(&server, &format!("{PODS}?timeout={time}"), &large(&format!("p{round}"))).await;
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
    assert_eq!(get(&server, PODS).await.body["items"], json!([]));
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
