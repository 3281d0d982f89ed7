//! Definitions whose versions a webhook converts. What is refused when it is out of reach is what kube-apiserver v1.36.2 refuses
//! then, in its words.

mod hook;
mod hostile;
mod versions;

use admit_apiserver::Server;
use serde_json::{Value, json};

use crate::harness::{self, Answer, delete, get, merge, post, put, send};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Of Cats, stored in `storage`.
fn definition(storage: &str) -> Value {
    let version = |name: &str| {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        json!({"name": name, "served": true, "storage": name == storage, "schema": {"openAPIV3Schema": schema}})
    };
    let client = json!({"service": {"namespace": "default", "name": "cats"}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "cats.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "cats", "singular": "cat", "kind": "Cat", "listKind": "CatList"},
            "versions": [version("v1"), version("v2")],
            "conversion": {
                "strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client},
            },
        },
    })
}

fn cat(version: &str, name: &str) -> Value {
    json!({"apiVersion": format!("example.com/{version}"), "kind": "Cat", "metadata": {"name": name}, "spec": {"a": 1}})
}

fn cats(version: &str) -> String {
    format!("/apis/example.com/{version}/namespaces/default/cats")
}

/// An object of this version was to be converted.
fn is_refused(answer: &Answer, version: &str, what: &str) {
    let message = format!(
        "conversion webhook for example.com/{version}, Kind=Cat failed: \
         Post \"https://cats.default.svc:443/?timeout=30s\": service \"cats\" not found"
    );
    assert_eq!((answer.status, answer.message()), (500, message.as_str()), "{what}");
    assert_eq!(answer.body.get("reason"), None, "{what}");
}

async fn apply(server: &Server, path: &str, object: &Value) -> Answer {
    let path = format!("{path}?fieldManager=tester");
    harness::answer(send(server, "PATCH", &path, "application/apply-patch+yaml", Some(object)).await).await
}

#[tokio::test]
async fn what_a_webhook_out_of_reach_would_convert_is_refused() {
    let server = Server::builder().build().await.unwrap();
    assert_eq!(post(&server, DEFINITIONS, &definition("v1")).await.status, 201);
    let (v1, v2) = (cats("v1"), cats("v2"));
    let (old_tom, tom) = (format!("{v1}/tom"), format!("{v2}/tom"));

    let empty = get(&server, &v2).await;
    assert_eq!((empty.status, &empty.body["items"]), (200, &json!([])));
    is_refused(&post(&server, &v2, &cat("v2", "tom")).await, "v2", "create");
    let dry_run = format!("{v2}?dryRun=All");
    is_refused(&post(&server, &dry_run, &cat("v2", "tom")).await, "v2", "create, dry run");
    is_refused(&apply(&server, &tom, &cat("v2", "tom")).await, "v2", "apply to nothing");
    assert_eq!(get(&server, &old_tom).await.status, 404);

    let made = post(&server, &v1, &cat("v1", "tom")).await;
    assert_eq!(made.status, 201, "{made:?}");
    is_refused(&get(&server, &tom).await, "v1", "get");
    is_refused(&get(&server, &v2).await, "v1", "list");
    is_refused(&get(&server, &format!("{v2}?labelSelector=a%3Db")).await, "v1", "list of a selection");
    is_refused(&get(&server, &format!("{v2}?watch=1")).await, "v1", "watch of everything");
    is_refused(&merge(&server, &tom, &json!({"spec": {"b": 2}})).await, "v1", "patch");
    is_refused(&put(&server, &tom, &cat("v2", "tom")).await, "v1", "update");
    is_refused(&apply(&server, &tom, &cat("v2", "tom")).await, "v1", "apply");
    is_refused(&delete(&server, &tom, None).await, "v1", "delete");
    is_refused(&delete(&server, &v2, None).await, "v1", "delete of all");
    assert_eq!(get(&server, &old_tom).await.body, made.body);

    // A watch that had nothing to convert until now.
    let version = made.body["metadata"]["resourceVersion"].as_str().unwrap();
    assert_eq!(merge(&server, &old_tom, &json!({"spec": {"b": 2}})).await.status, 200);
    let events = get(&server, &format!("{v2}?watch=1&resourceVersion={version}")).await.body;
    assert_eq!(events["type"], "ERROR", "{events}");
    assert_eq!(events["object"]["code"], 500, "{events}");
}

/// In the version that an object is stored in it can be had, changed only where that is still the one to store in.
#[tokio::test]
async fn objects_stored_in_an_earlier_version_stay_within_reach() {
    let server = Server::builder().build().await.unwrap();
    post(&server, DEFINITIONS, &definition("v1")).await;
    let (v1, v2) = (cats("v1"), cats("v2"));
    for name in ["tom", "felix"] {
        assert_eq!(post(&server, &v1, &cat("v1", name)).await.status, 201);
    }
    let path = format!("{DEFINITIONS}/cats.example.com");
    assert_eq!(merge(&server, &path, &json!({"spec": definition("v2")["spec"]})).await.status, 200);
    assert_eq!(post(&server, &v2, &cat("v2", "garfield")).await.status, 201);

    is_refused(&get(&server, &format!("{v2}/tom")).await, "v1", "get");
    is_refused(&get(&server, &format!("{v1}/garfield")).await, "v2", "get");
    is_refused(&merge(&server, &format!("{v1}/tom"), &json!({"spec": {"b": 2}})).await, "v1", "patch");
    let changed = merge(&server, &format!("{v2}/garfield"), &json!({"spec": {"b": 2}})).await;
    assert_eq!((changed.status, &changed.body["spec"]["b"]), (200, &json!(2)));
    assert_eq!(get(&server, &format!("{v1}/tom")).await.status, 200);
    assert_eq!(delete(&server, &format!("{v1}/tom"), None).await.status, 200);

    // With the definition go those of both versions, served or not.
    let unserved = json!([{"op": "replace", "path": "/spec/versions/0/served", "value": false}]);
    let changed = send(&server, "PATCH", &path, "application/json-patch+json", Some(&unserved)).await;
    assert_eq!(changed.status(), 200);
    assert_eq!(delete(&server, &path, None).await.status, 200);
    assert_eq!(get(&server, &path).await.status, 404);
    let left =
        server.store().list("example.com/cats", admit_apiserver::store::Range::default(), 0, &mut |_| true);
    assert!(left.unwrap().items.is_empty());
}
