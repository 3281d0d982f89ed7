//! `/convert`: ConversionReviews as an API server sends them, and as nobody should.

use serde_json::{Value, json};

use super::support::{Post, server};

const DESIRED: &str = "insights.openshift.io/v1";

fn gathering(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "insights.openshift.io/v1alpha1", "kind": "DataGather", "spec": spec,
        "metadata": {"name": name, "uid": format!("u-{name}"), "managedFields": [{"manager": "m"}], "finalizers": ["a/b"]},
    })
}

fn review(objects: &[Value], desired: &str) -> Value {
    json!({
        "kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1",
        "request": {"uid": "705ab4f5", "desiredAPIVersion": desired, "objects": objects},
        "response": {"uid": "", "convertedObjects": null, "result": {"metadata": {}}},
    })
}

#[tokio::test]
async fn objects_are_converted_in_their_order_and_their_metadata_is_untouched() {
    let server = server(&[]);
    let objects: Vec<Value> = (0..50)
        .map(|number| {
            gathering(
                &format!("g{number}"),
                &json!({"dataPolicy": (["", "ObfuscateNetworking"][number % 2])}),
            )
        })
        .collect();
    let answered = server.post("/convert", &review(&objects, DESIRED).to_string()).await;
    assert_eq!(
        (answered.code.as_u16(), &answered.json["kind"]),
        (200, &json!("ConversionReview")),
        "{:?}",
        answered.json
    );
    let response = &answered.json["response"];
    assert_eq!((&response["uid"], &response["result"]), (&json!("705ab4f5"), &json!({"status": "Success"})));
    let converted = response["convertedObjects"].as_array().unwrap();
    assert_eq!(converted.len(), objects.len());
    for (converted, object) in converted.iter().zip(&objects) {
        assert_eq!(converted["metadata"], object["metadata"]);
        assert_eq!((&converted["apiVersion"], &converted["kind"]), (&json!(DESIRED), &json!("DataGather")));
        let hidden =
            (object["spec"]["dataPolicy"] == "ObfuscateNetworking").then(|| json!(["ObfuscateNetworking"]));
        assert_eq!(converted["spec"].get("dataPolicy"), hidden.as_ref());
    }
    // Objects in several versions at once; nothing at all.
    let mixed = [objects[0].clone(), converted[1].clone()];
    let answered =
        server.post("/convert", &review(&mixed, "insights.openshift.io/v1alpha2").to_string()).await;
    assert_eq!(answered.json["response"]["result"]["status"], "Success");
    let answered = server.post("/convert", &review(&[], DESIRED).to_string()).await;
    assert_eq!(answered.json["response"]["convertedObjects"], json!([]));
    let metrics = server.metrics.text();
    assert!(metrics.contains("admit_requests_total{route=\"convert\",answer=\"converted\"} 3"), "{metrics}");
}

#[tokio::test]
async fn what_cannot_be_converted_is_a_failure_with_a_message() {
    let server = server(&[]);
    let good = gathering("good", &json!({}));
    let with = |field: &str, value: &str| {
        let mut object = good.clone();
        object[field] = value.into();
        object
    };
    let names = json!({"dataPolicy": ["WorkloadNames"]});
    let mut later = gathering("later", &names);
    later["apiVersion"] = DESIRED.into();
    let cases = [
        (
            vec![good.clone(), with("kind", "Pod")],
            DESIRED,
            "object 1: insights.openshift.io/v1alpha1, Kind=Pod is not converted here",
        ),
        (
            vec![with("apiVersion", "insights.openshift.io/v7")],
            DESIRED,
            "object 0: there is no way from insights.openshift.io/v7 to insights.openshift.io/v1 for a DataGather",
        ),
        (
            vec![good.clone()],
            "insights.openshift.io/v2",
            "object 0: there is no way from insights.openshift.io/v1alpha1 to insights.openshift.io/v2 for a DataGather",
        ),
        (
            vec![good.clone()],
            "config.openshift.io/v1",
            "object 0: there is no way from insights.openshift.io/v1alpha1 to config.openshift.io/v1 for a DataGather",
        ),
        (vec![json!(5)], DESIRED, "object 0: , Kind= is not converted here"),
        (
            vec![later],
            "insights.openshift.io/v1alpha1",
            "object 0: spec.dataPolicy: v1alpha1 has no word for WorkloadNames, and names of workloads cannot be hidden",
        ),
    ];
    for (objects, desired, message) in cases {
        let answered = server.post("/convert", &review(&objects, desired).to_string()).await;
        let response = &answered.json["response"];
        assert_eq!((answered.code.as_u16(), &response["uid"]), (200, &json!("705ab4f5")));
        assert_eq!(response["result"], json!({"status": "Failure", "message": message}));
        assert_eq!(response["convertedObjects"], json!([]), "all or nothing");
    }
}

#[tokio::test]
async fn broken_questions_are_answered_as_far_as_it_is_known_whose_they_are() {
    let server = server(&[]);
    let whole = review(&[gathering("g", &json!({}))], DESIRED);
    let without = |pointer: &str, field: &str| {
        let mut review = whole.clone();
        review.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(field);
        review.to_string()
    };
    let text = whole.to_string();
    let known = [
        (without("", "kind"), "expected apiextensions.k8s.io/v1, Kind=ConversionReview"),
        (
            text.replace("extensions.k8s.io/v1\"", "extensions.k8s.io/v1beta1\""),
            "expected apiextensions.k8s.io/v1, Kind=ConversionReview",
        ),
        (without("/request", "desiredAPIVersion"), "`request.desiredAPIVersion` is missing"),
        (
            text.replacen("\"objects\":[", "\"objects\":{\"a\":[", 1).replacen(
                "}]},\"response\"",
                "}]}},\"response\"",
                1,
            ),
            "`request.objects` is no list",
        ),
        (text.replacen("\"spec\":{}", "\"spec\":{},\"spec\":{}", 1), "duplicate field"),
    ];
    for (body, why) in known {
        let answered = server.post("/convert", &body).await;
        let response = &answered.json["response"];
        assert_eq!(
            (answered.code.as_u16(), &response["uid"]),
            (200, &json!("705ab4f5")),
            "{why}: {:?}",
            answered.json
        );
        assert_eq!(response["result"]["status"], "Failure");
        let message = response["result"]["message"].as_str().unwrap();
        assert!(
            message.starts_with("the ConversionReview is malformed: ") && message.contains(why),
            "{message}"
        );
    }
    for (body, code) in
        [("no", 400), ("{}", 400), ("[1]", 400), ("", 400), (&without("/request", "uid"), 400)]
    {
        let answered = server.post("/convert", body).await;
        assert_eq!((answered.code.as_u16(), &answered.json["kind"]), (code, &json!("Status")), "{body}");
    }
    let yaml = server
        .send(Post { content_type: "application/yaml", ..Post::to("/convert?timeout=10s") }, &text)
        .await;
    assert_eq!(yaml.code.as_u16(), 415);
    let large = server.post_bytes("/convert", vec![b' '; 9 << 20]).await;
    assert_eq!((large.code.as_u16(), &large.json["reason"]), (413, &json!("RequestEntityTooLarge")));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(server.post("/convert", &deep).await.code.as_u16(), 400);
    // As many names as fit, each told from all others: in time, one way or the other.
    let many: Vec<Value> = (0..100_000).map(|number| json!({"name": format!("n{number}")})).collect();
    let many = review(&[gathering("many", &json!({"gatherersConfig": many}))], DESIRED);
    let answered = server.post("/convert", &many.to_string()).await;
    let message = answered.json["response"]["result"]["message"].as_str().unwrap();
    assert_eq!(message, "object 0: spec.gatherersConfig: it has more than 10000 items");
    let metrics = server.metrics.text();
    for line in ["answer=\"malformed\"", "answer=\"refused\"", "answer=\"too_large\""] {
        assert!(metrics.contains(&format!("admit_requests_total{{route=\"convert\",{line}}}")), "{metrics}");
    }
}
