//! Webhooks that answer wrongly, too much, or not at all: what is refused, in the words of kube-apiserver, and who waits.

use std::time::Duration;

use axum::Json;
use axum::http::Response as Raw;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

use super::cats;
use super::hook::{Twist, cattery};
use crate::harness::{get, post};

fn raw(code: u16, body: &str) -> Response {
    let body = body.to_owned().into();
    Raw::builder().status(code).header("content-type", "application/json").body(body).unwrap()
}

fn with(mut answer: Value, pointer: &str, value: Value) -> Response {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    answer.pointer_mut(parent).unwrap()[name] = value;
    Json(answer).into_response()
}

fn cat(name: &str) -> Value {
    let metadata = json!({"name": name, "finalizers": ["example.com/kept"]});
    json!({"apiVersion": "example.com/v1", "kind": "Cat", "metadata": metadata, "spec": {"fullName": "A B"}})
}

const FIRST: &str = "/response/convertedObjects/0";

/// What is answered, and the end of the refusal of a GET.
const ANSWERS: [(Twist, &str); 18] = [
    (
        |_| raw(200, "no"),
        "failed: couldn't get version/kind; json parse error: invalid character 'o' in literal null (expecting 'u')",
    ),
    (|_| raw(503, ""), "failed: the server is currently unable to handle the request"),
    (
        |_| raw(200, "{\"kind\":\"ConversionReview\",\"apiVersion\":\"apiextensions.k8s.io/v1\"}"),
        "failed: no response provided",
    ),
    (
        |_| raw(200, "{}"),
        "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind=",
    ),
    (
        |answer| with(answer, "/kind", json!("Pod")),
        "failed: no kind \"Pod\" is registered for version \"apiextensions.k8s.io/v1\" in scheme \"pkg/runtime/scheme.go:111\"",
    ),
    (|answer| with(answer, "/response/uid", json!("another")), "got \"another\""),
    (
        |answer| with(answer, "/response/result", json!({"status": "Failure", "message": "no, sorry"})),
        "failed: no, sorry",
    ),
    (
        |answer| with(answer, "/response/result", json!({})),
        "failed: response.result.status was '', not 'Success'",
    ),
    (|answer| with(answer, "/response/convertedObjects", json!([])), "returned 0 objects, expected 1"),
    (|answer| with(answer, "/response/convertedObjects", json!([{}, {}])), "returned 2 objects, expected 1"),
    (
        |answer| with(answer, &format!("{FIRST}/apiVersion"), json!("example.com/v1")),
        "returned invalid object at index 0: invalid groupVersion (expected example.com/v2, received example.com/v1)",
    ),
    (
        |answer| with(answer, &format!("{FIRST}/kind"), json!("Dog")),
        "returned invalid object at index 0: invalid kind (expected Cat, received Dog)",
    ),
    (
        |answer| with(answer, &format!("{FIRST}/metadata/name"), json!("jerry")),
        "returned invalid object: must have the same name: tom != jerry",
    ),
    (
        |answer| with(answer, &format!("{FIRST}/metadata/namespace"), json!("kube-system")),
        "returned invalid object: must have the same namespace: default != kube-system",
    ),
    (|answer| with(answer, &format!("{FIRST}/metadata/uid"), json!("1")), "!= 1"),
    (
        |answer| with(answer, &format!("{FIRST}/metadata/labels"), json!({"a": 1})),
        "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object",
    ),
    (
        |answer| with(answer, &format!("{FIRST}/metadata/labels"), json!({"a b": "c"})),
        "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ),
    (|_| raw(200, &" ".repeat(17 << 20)), "failed: unexpected"),
];

#[tokio::test]
async fn an_answer_that_is_none_is_not_believed() {
    let (server, hook, _) = cattery().await;
    assert_eq!(post(&server, &cats("v1"), &cat("tom")).await.status, 201);
    let (one, all) = (format!("{}/tom", cats("v2")), cats("v2"));
    for (twist, end) in ANSWERS {
        hook.twists(twist);
        for path in [&one, &all] {
            let refused = get(&server, path).await;
            let message = refused.message().to_owned();
            assert_eq!(refused.status, 500, "{end}: {refused:?}");
            assert!(message.starts_with("conversion webhook for example.com/v1, Kind=Cat "), "{message}");
            let huge = end == "failed: unexpected";
            assert!(
                message.ends_with(end)
                    || (huge && message.contains("unexpected error when reading response body")),
                "{message} / {end}"
            );
        }
    }
    // What nobody may change stays as it was, and the rest is the webhook's.
    hook.twists(|answer| {
        with(answer, &format!("{FIRST}/metadata"), json!({
            "name": "tom", "namespace": "default", "uid": "somebody else's", "finalizers": ["foo"], "labels": {"a": "b"},
        }))
    });
    let refused = get(&server, &one).await;
    assert!(refused.message().contains("must have the same UID"), "{refused:?}");
    hook.twists(|mut answer| {
        let metadata = answer.pointer_mut(&format!("{FIRST}/metadata")).unwrap();
        metadata["finalizers"] = json!(["foo"]);
        metadata["generation"] = json!(42);
        metadata["labels"] = json!({"a": "b"});
        Json(answer).into_response()
    });
    let seen = get(&server, &one).await;
    assert_eq!(seen.status, 200, "{seen:?}");
    let metadata = &seen.body["metadata"];
    assert_eq!(metadata["finalizers"], json!(["example.com/kept"]));
    assert_eq!((&metadata["generation"], &metadata["labels"]), (&json!(1), &json!({"a": "b"})));
    let counted = get(&server, "/metrics").await;
    let counted = counted.body.as_str().unwrap();
    for line in [
        "{result=\"failure\",failure_type=\"conversion_webhook_partial_response_failure\"} 4",
        "{result=\"success\",failure_type=\"\"} 1",
    ] {
        assert!(
            counted.contains(&format!("apiserver_conversion_webhook_request_total{line}\n")),
            "{counted}"
        );
    }
}

#[tokio::test]
async fn of_several_objects_the_wrong_one_is_named_and_nothing_is_shown() {
    let (server, hook, _) = cattery().await;
    for name in ["a", "b", "c"] {
        assert_eq!(post(&server, &cats("v1"), &cat(name)).await.status, 201);
    }
    hook.twists(|mut answer| {
        answer.pointer_mut("/response/convertedObjects").unwrap().as_array_mut().unwrap().swap(1, 2);
        Json(answer).into_response()
    });
    let refused = get(&server, &cats("v2")).await;
    let message = "conversion webhook for example.com/v1, Kind=Cat returned invalid converted object at index 1: \
                   must have the same name: b != c";
    assert_eq!((refused.status, refused.message()), (500, message));
    // Nothing is stored that was not converted.
    let mut new = cat("new");
    new["apiVersion"] = "example.com/v2".into();
    new["spec"] = json!({"first": "A"});
    hook.twists(|answer| with(answer, "/response/convertedObjects", json!([])));
    let refused = post(&server, &cats("v2"), &new).await;
    let message = "conversion webhook for example.com/v2, Kind=Cat returned 0 objects, expected 1";
    assert_eq!((refused.status, refused.message()), (500, message));
    assert_eq!(get(&server, &format!("{}/new", cats("v1"))).await.status, 404);
}

#[tokio::test]
async fn a_silent_webhook_is_given_up_and_delays_nobody_else() {
    const MANY: usize = 40;
    let (server, hook, _) = cattery().await;
    assert_eq!(post(&server, &cats("v1"), &cat("tom")).await.status, 201);
    hook.is_silent(true);
    let path = format!("{}/tom", cats("v2"));
    let asking = |path: String| {
        let server = server.clone();
        tokio::spawn(async move { get(&server, &path).await })
    };
    let mut waiting: Vec<_> = (0..MANY).map(|_| asking(path.clone())).collect();
    waiting.extend((0..MANY).map(|_| asking(cats("v2"))));
    hook.came.notified().await;
    // Whoever needs nothing of it is answered: other kinds, and the version that is stored.
    let others = async {
        let map = json!({"metadata": {"name": "m"}});
        assert_eq!(post(&server, "/api/v1/namespaces/default/configmaps", &map).await.status, 201);
        assert_eq!(get(&server, "/api/v1/namespaces/default/configmaps").await.status, 200);
        assert_eq!(get(&server, &cats("v1")).await.status, 200);
        assert_eq!(post(&server, &cats("v1"), &cat("felix")).await.status, 201);
    };
    tokio::time::timeout(Duration::from_secs(20), others).await.expect("nobody waits for the webhook");
    assert!(waiting.iter().all(|asked| !asked.is_finished()));
    // From here on the clock runs as fast as nothing happens.
    tokio::time::pause();
    for asked in waiting {
        let refused = asked.await.unwrap();
        assert_eq!(refused.status, 500, "{refused:?}");
        let message = refused.message();
        assert!(message.ends_with("?timeout=30s\": context deadline exceeded"), "{message}");
    }
}
