//! Row 44: the route that never denies, when reviews cannot be decided.

use std::sync::Arc;
use std::thread::available_parallelism;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use serde_json::{Value, json};

use super::support::{Answered, Fault, Faulty, Gate, Post, bound, config_map, server_with};
use crate::soak::{percent, scaled};
use crate::support::reliability::Row;

#[tokio::test(flavor = "multi_thread")]
async fn row_44_the_auditing_route_never_denies() {
    never_denies(100, Row::short(44, "4 kinds of trouble")).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long; scripts/soak runs it"]
async fn row_44_the_auditing_route_in_full() {
    never_denies(scaled(1_000), Row::full(44, "4 kinds of trouble", percent())).await;
}

async fn never_denies(each: usize, mut row: Row) {
    let panics = panics(each).await;
    let late = late(each).await;
    let (malformed, without_uid) = malformed(each).await;
    let (overloaded, all) = overload(each).await;
    row.measured(json!({
        "panics": panics, "late": late, "malformed": malformed, "malformedWithoutUid": without_uid,
        "underOverload": all, "overloaded": overloaded, "denials": 0,
    }));
}

/// A policy that only warns, and asks the cluster.
fn warning() -> Vec<Vec<Value>> {
    let spec = json!({"failurePolicy": "Ignore", "validations": [{"expression": "namespaceObject != null"}]});
    vec![bound("p", &spec, &json!({}), "Warn")]
}

/// Asserts that the review with this uid is let through, and returns the warning.
fn let_through(answer: &Answered, uid: &str) -> String {
    let response = &answer.json["response"];
    assert_eq!((answer.code.as_u16(), &response["uid"]), (200, &json!(uid)), "{}", answer.json);
    assert_eq!(response["allowed"], true, "{}", answer.json);
    assert!(response["status"].is_null(), "{}", answer.json);
    response["warnings"][0].as_str().unwrap_or_default().to_owned()
}

async fn panics(each: usize) -> usize {
    let server = server_with(&warning(), Faulty::every(1, Fault::Panic));
    for number in 0..each {
        let uid = number.to_string();
        let answer = server.post("/audit", &config_map(&uid)).await;
        assert_eq!(let_through(&answer, &uid), "the policies could not be evaluated: panicked: injected");
    }
    let counted = format!("admit_let_through_total{{cause=\"auditing_route\"}} {each}\n");
    assert!(server.metrics().contains(&counted), "{}", server.metrics());
    each
}

async fn late(each: usize) -> usize {
    let server = server_with(&warning(), Faulty::every(1, Fault::Error));
    for number in 0..each {
        let uid = number.to_string();
        let answer = server.send(Post::to("/audit?timeout=1us"), &config_map(&uid)).await;
        let warning = let_through(&answer, &uid);
        assert!(warning.starts_with("the policies could not be evaluated: "), "{warning}");
    }
    each
}

/// Whole reviews with something wrong in them, and reviews that end at every place: let through where the uid was read, a
/// failed call where it was not.
async fn malformed(each: usize) -> (usize, usize) {
    let server = server_with(&warning(), Faulty::every(usize::MAX, Fault::Error));
    let whole = config_map("u1");
    let known = whole.find("\"u1\"").unwrap() + "\"u1\"".len();
    let wrong = [
        whole.replacen("CREATE", "PATCH", 1),
        whole.replacen("admission.k8s.io/v1", "admission.k8s.io/v9", 1),
        whole.replacen(r#""object":{}"#, r#""object":{"a":1,"a":2}"#, 1),
        whole.replacen(r#""object":{}"#, &format!(r#""object":{{"a":{}}}"#, "[".repeat(600)), 1),
    ];
    let mut without_uid = 0;
    for number in 0..each {
        let cut = number % whole.len();
        let (body, found) = match wrong.get(number % (wrong.len() * 2)) {
            Some(body) => (body.as_str(), true),
            None => (&whole[..cut], cut >= known),
        };
        let answer = server.post("/audit", body).await;
        if found {
            let warning = let_through(&answer, "u1");
            assert!(warning.starts_with("the AdmissionReview is malformed: "), "{warning}");
        } else {
            assert_eq!((answer.code.as_u16(), &answer.json["kind"]), (503, &json!("Status")), "{body}");
            without_uid += 1;
        }
    }
    let large = server.post("/audit", &" ".repeat(8 * 1024 * 1024 + 1)).await;
    assert_eq!(large.code.as_u16(), 503);
    let yaml = server.send(Post { content_type: "application/yaml", ..Post::to("/audit") }, "").await;
    assert_eq!(yaml.code.as_u16(), 503);
    (each, without_uid)
}

/// More reviews at once than threads and their queues take, while every thread waits for the cluster.
async fn overload(each: usize) -> (usize, usize) {
    // Of each thread: what it is at, and what waits for it.
    let room = available_parallelism().map_or(2, |count| count.get().max(2)) * 65;
    let all = each + room;
    let gate = Arc::new(Gate::default());
    let server = server_with(&warning(), Faulty::every(1, Fault::Held(Arc::clone(&gate))));
    let asking: FuturesUnordered<_> = (0..all)
        .map(|number| {
            let (server, uid) = (&server, number.to_string());
            async move { let_through(&server.post("/audit", &config_map(&uid)).await, &uid) }
        })
        .collect();
    let mut overloaded = 0;
    let mut answered = asking.enumerate();
    while let Some((number, warning)) = answered.next().await {
        overloaded += usize::from(warning.starts_with("too many requests at once"));
        if number + 1 == each {
            gate.open();
        }
    }
    assert!(overloaded >= each, "{overloaded} of {all}");
    (overloaded, all)
}
