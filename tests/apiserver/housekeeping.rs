//! Garbage collection, the end of namespaces and definitions, and what survives a restart.

use std::time::Duration;

use admit_apiserver::Server;
use admit_apiserver::store::{RedbBackend, Store};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::harness::{delete, get, merge, post};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Long enough for a busy machine; the tests end as soon as they may.
const PATIENCE: Duration = Duration::from_secs(20);

fn map(name: &str, owner: Option<&str>) -> Value {
    let mut map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    if let Some(uid) = owner {
        map["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "blockOwnerDeletion": true
        }]);
    }
    map
}

/// A server that keeps house until the test ends.
async fn kept() -> Server {
    let server = Server::builder().build().await.unwrap();
    let housekeeper = server.clone();
    tokio::spawn(async move { housekeeper.housekeeping().await });
    server
}

async fn family(server: &Server) -> String {
    let owner = post(server, MAPS, &map("owner", None)).await.body;
    let uid = owner["metadata"]["uid"].as_str().unwrap().to_owned();
    assert_eq!(post(server, MAPS, &map("child", Some(&uid))).await.status, 201);
    uid
}

async fn gone(server: &Server, path: &str) {
    let waited = timeout(PATIENCE, async {
        while get(server, path).await.status != 404 {
            tokio::task::yield_now().await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("{path} is still there"));
}

#[tokio::test]
async fn dependents_go_after_their_owner() {
    let server = kept().await;
    family(&server).await;
    delete(&server, &format!("{MAPS}/owner"), None).await;
    gone(&server, &format!("{MAPS}/child")).await;
}

#[tokio::test]
async fn foreground_deletion_ends_with_the_owner() {
    let server = kept().await;
    family(&server).await;
    let answer =
        delete(&server, &format!("{MAPS}/owner"), Some(&json!({"propagationPolicy": "Foreground"}))).await;
    assert_eq!(answer.body["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    gone(&server, &format!("{MAPS}/owner")).await;
    assert_eq!(get(&server, &format!("{MAPS}/child")).await.status, 404);
}

#[tokio::test]
async fn orphans_stay_and_forget_their_owner() {
    let server = kept().await;
    family(&server).await;
    delete(&server, &format!("{MAPS}/owner"), Some(&json!({"propagationPolicy": "Orphan"}))).await;
    gone(&server, &format!("{MAPS}/owner")).await;
    let child = get(&server, &format!("{MAPS}/child")).await;
    assert_eq!(child.status, 200);
    assert_eq!(child.body["metadata"].get("ownerReferences"), None);
}

#[tokio::test]
async fn a_namespace_takes_its_content_along() {
    let server = kept().await;
    let made = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}});
    assert_eq!(post(&server, "/api/v1/namespaces", &made).await.status, 201);
    let maps = "/api/v1/namespaces/demo/configmaps";
    for n in 0..1000 {
        assert_eq!(post(&server, maps, &map(&format!("m{n}"), None)).await.status, 201);
    }
    let mut held = map("held", None);
    held["metadata"]["finalizers"] = json!(["example.dev/hold"]);
    post(&server, maps, &held).await;
    let answer = delete(&server, "/api/v1/namespaces/demo", None).await;
    assert_eq!(answer.body["status"]["phase"], "Terminating");
    let refused = post(&server, maps, &map("late", None)).await;
    assert_eq!(refused.status, 403);
    assert_eq!(
        refused.message(),
        "configmaps \"late\" is forbidden: unable to create new content in namespace demo because it is being terminated"
    );
    let waited = timeout(PATIENCE, async {
        while get(&server, maps).await.body["items"].as_array().unwrap().len() > 1 {
            tokio::task::yield_now().await;
        }
    });
    waited.await.unwrap();
    assert_eq!(get(&server, "/api/v1/namespaces/demo").await.status, 200);
    merge(&server, &format!("{maps}/held"), &json!({"metadata": {"finalizers": null}})).await;
    gone(&server, "/api/v1/namespaces/demo").await;
}

#[tokio::test]
async fn content_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.redb");
    let open = || Store::open(Box::new(RedbBackend::open(&file).unwrap())).unwrap();
    let server = Server::builder().store(open()).build().await.unwrap();
    let made = post(&server, MAPS, &map("kept", None)).await.body;
    post(&server, MAPS, &map("dropped", None)).await;
    delete(&server, &format!("{MAPS}/dropped"), None).await;
    let newest = server.store().revision();
    drop(server);
    let server = timeout(PATIENCE, async {
        loop {
            // The file is free once the writer of the first server has ended.
            match RedbBackend::open(&file) {
                Ok(backend) => {
                    return Server::builder().store(Store::open(Box::new(backend)).unwrap()).build().await;
                }
                Err(_) => tokio::task::yield_now().await,
            }
        }
    });
    let server = server.await.unwrap().unwrap();
    assert_eq!(get(&server, &format!("{MAPS}/kept")).await.body, made);
    assert_eq!(get(&server, &format!("{MAPS}/dropped")).await.status, 404);
    assert!(server.store().revision() >= newest);
}
