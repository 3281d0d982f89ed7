//! Row 41: names that look like something else. Kinds of RBAC take anything that can be one segment of a path.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use admit_apiserver::Server;
use admit_apiserver::store::{RedbBackend, Store};
use axum::body::Body;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::support::reliability::Row;

const PATIENCE: Duration = Duration::from_mins(1);
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Names that the four kinds of RBAC take, besides long ones. Some begin like others, some only look alike.
const ODD: &[&str] = &[
    "prod",
    "prod\0",
    "prod\0x",
    "prod\0\0x",
    "\0",
    "\0prod",
    "roles\0victim\0prod",
    "cluster-admin\0x",
    "system:basic-user:\0",
    "...",
    "..a",
    "a..",
    ".a.",
    "A b",
    " ",
    "a\nb",
    "a\rb\u{1b}[2J",
    "a\\b",
    "a?b#c",
    "a+b",
    "a=b,c!=d",
    "a:b",
    "\"quoted\"",
    "{\"$ref\":1}",
    "caf\u{e9}",
    "cafe\u{301}",
    "\u{130}\u{131}\u{17f}\u{212a}",
    "\u{202e}dorp",
    "\u{feff}",
    "\u{10ffff}",
    "日本語",
];
/// What they refuse: each would be another path.
const REFUSED: &[&str] = &[".", "..", "a/b", "/", "a%b", "a%2Fb", "a%00b", "../prod"];

/// The collections, with an object of each.
fn collections() -> Vec<(String, Value)> {
    let reference =
        |kind: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "view"});
    let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
    vec![
        (format!("{RBAC}/namespaces/victim/roles"), json!({"rules": rules})),
        (format!("{RBAC}/namespaces/victim/rolebindings"), json!({"roleRef": reference("ClusterRole")})),
        (format!("{RBAC}/clusterroles"), json!({"rules": rules})),
        (format!("{RBAC}/clusterrolebindings"), json!({"roleRef": reference("ClusterRole")})),
    ]
}

/// Kinds whose names are subdomains, which take the longest and nothing odd.
const PLAIN: &[&str] = &[
    "/api/v1/namespaces/victim/configmaps",
    "/api/v1/namespaces/victim/secrets",
    "/api/v1/namespaces/victim/serviceaccounts",
    "/apis/coordination.k8s.io/v1/namespaces/victim/leases",
];

async fn ask(server: &Server, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
    let content = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = Request::builder().method(method).uri(path).header("content-type", content);
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    let answer = server.router().oneshot(request.body(body).unwrap()).await.unwrap();
    let status = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

async fn start(file: &Path) -> Server {
    // The file is free once the writer of the server before has ended.
    let opened = tokio::time::timeout(PATIENCE, async {
        loop {
            match RedbBackend::open(file) {
                Ok(backend) => return backend,
                Err(error) => assert!(error.to_string().contains("already open"), "{error}"),
            }
            tokio::task::yield_now().await;
        }
    });
    let store = Store::open(Box::new(opened.await.unwrap())).unwrap();
    Server::builder().store(store).build().await.unwrap()
}

fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// All objects of a collection by name.
async fn listed(server: &Server, collection: &str) -> BTreeMap<String, Value> {
    let (status, list) = ask(server, "GET", collection, None).await;
    assert_eq!(status, 200, "{list}");
    let items = list["items"].as_array().unwrap().iter();
    items.map(|item| (item["metadata"]["name"].as_str().unwrap().to_owned(), item.clone())).collect()
}

/// Every object is found under its name, by path and by selector, as it is in the list, and the list is as before.
async fn compare(server: &Server, collection: &str, names: &[String], expected: &BTreeMap<String, Value>) {
    let now = listed(server, collection).await;
    assert!(now == *expected, "{collection}: {:?} and {:?}", now.keys(), expected.keys());
    for name in names {
        let (status, mut found) = ask(server, "GET", &format!("{collection}/{}", escaped(name)), None).await;
        assert_eq!(status, 200, "{collection} {name:?}: {found}");
        for member in ["kind", "apiVersion"] {
            found.as_object_mut().unwrap().shift_remove(member);
        }
        assert_eq!(found, expected[name], "{collection} {name:?}");
        let value = name.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
        let path = format!("{collection}?fieldSelector={}", escaped(&format!("metadata.name={value}")));
        let selected = listed(server, &path).await;
        assert!(selected.len() == 1 && selected.contains_key(name), "{collection} {name:?}: {selected:?}");
    }
}

#[tokio::test]
async fn row_41_odd_names_are_kept_as_they_are_across_restarts() {
    let mut row = Row::short(41, "odd names, three restarts");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.redb");
    let mut server = start(&file).await;
    ask(&server, "POST", "/api/v1/namespaces", Some(&json!({"metadata": {"name": "victim"}}))).await;
    let long = ["x".repeat(253), "y".repeat(1000), "\u{e9}".repeat(126)];
    let odd: Vec<String> = ODD.iter().map(|name| (*name).to_owned()).chain(long).collect();
    let plain = ["x".repeat(253), format!("{}.{}", "a".repeat(63), "b".repeat(189))];

    let mut places: Vec<(String, Vec<String>)> = Vec::new();
    for (collection, body) in collections() {
        create(&server, &collection, &body, &odd, REFUSED).await;
        places.push((collection, odd.clone()));
    }
    for collection in PLAIN {
        create(&server, collection, &json!({}), &plain, ODD.get(1..).unwrap()).await;
        places.push(((*collection).to_owned(), plain.to_vec()));
    }
    let objects: usize = places.iter().map(|(_, names)| names.len()).sum();

    // As made, as changed, and after every second was removed.
    for stage in ["made", "changed", "removed"] {
        for (collection, names) in &mut places {
            match stage {
                "changed" => change(&server, collection, names).await,
                "removed" => remove(&server, collection, names).await,
                _ => {}
            }
        }
        let mut before = Vec::new();
        for (collection, _) in &places {
            before.push(listed(&server, collection).await);
        }
        drop(server);
        server = start(&file).await;
        for ((collection, names), expected) in places.iter().zip(&before) {
            compare(&server, collection, names, expected).await;
        }
    }
    row.measured(json!({"objects": objects, "kinds": places.len(), "restarts": 3, "differences": 0}));
}

async fn create(server: &Server, collection: &str, body: &Value, names: &[String], refused: &[&str]) {
    let named = |name: &str| {
        let mut object = body.clone();
        object["metadata"] = json!({"name": name});
        object
    };
    for name in names {
        let (status, answer) = ask(server, "POST", collection, Some(&named(name))).await;
        assert_eq!(status, 201, "{collection} {name:?}: {answer}");
    }
    for name in refused.iter().filter(|name| !names.contains(&(**name).to_owned())) {
        let (status, answer) = ask(server, "POST", collection, Some(&named(name))).await;
        // The plain ones take some of the odd ones that are not.
        assert!(status == 422 || (PLAIN.contains(&collection) && *name == "prod"), "{name:?}: {answer}");
    }
}

async fn change(server: &Server, collection: &str, names: &[String]) {
    for (at, name) in names.iter().enumerate() {
        let path = format!("{collection}/{}", escaped(name));
        let labelled = json!({"metadata": {"labels": {"at": at.to_string()}}});
        let (status, answer) = ask(server, "PATCH", &path, Some(&labelled)).await;
        assert_eq!(status, 200, "{collection} {name:?}: {answer}");
        let mut whole = answer;
        whole["metadata"]["annotations"] = json!({"by": "put"});
        let (status, answer) = ask(server, "PUT", &path, Some(&whole)).await;
        assert_eq!(status, 200, "{collection} {name:?}: {answer}");
    }
}

async fn remove(server: &Server, collection: &str, names: &mut Vec<String>) {
    let mut at = 0;
    let mut removed = Vec::new();
    names.retain(|name| {
        at += 1;
        if at % 2 == 0 {
            removed.push(name.clone());
        }
        at % 2 == 1
    });
    for name in removed {
        let path = format!("{collection}/{}", escaped(&name));
        let (status, answer) = ask(server, "DELETE", &path, None).await;
        assert_eq!(status, 200, "{collection} {name:?}: {answer}");
        assert_eq!(ask(server, "GET", &path, None).await.0, 404, "{collection} {name:?}");
    }
}
