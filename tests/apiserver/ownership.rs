//! What becomes of objects by what has become of their owners, as kube-controller-manager's garbage collector decides it.

use std::time::Duration;

use admit_apiserver::Server;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::harness::{delete, get, merge, post};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

/// Long enough for a busy machine; the tests end as soon as they may.
const PATIENCE: Duration = Duration::from_secs(60);

fn owner(api_version: &str, kind: &str, name: &str, uid: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "blockOwnerDeletion": true})
}

fn map(name: &str, owners: &[Value]) -> Value {
    let metadata = json!({"name": name, "ownerReferences": owners});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
}

async fn server() -> Server {
    Server::builder().build().await.unwrap()
}

/// Stores an object; its uid.
async fn stored(server: &Server, path: &str, object: &Value) -> String {
    let answer = post(server, path, object).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    answer.body["metadata"]["uid"].as_str().unwrap().to_owned()
}

/// Looks until there is nothing more to collect.
async fn sweep(server: &Server) {
    for _ in 0..4 {
        server.sweep().await.unwrap();
    }
}

async fn is_there(server: &Server, path: &str) -> bool {
    get(server, path).await.status == 200
}

/// Nobody can look such an owner up, so that nobody can say that it is gone.
#[tokio::test]
async fn an_owner_of_a_kind_that_is_not_served_takes_nobody_along() {
    let server = server().await;
    for (name, api_version, kind) in [
        ("kind", "v1", "Gadget"),
        ("group", "example.com/v1", "Thing"),
        ("version", "apps/v1beta1", "Deployment"),
    ] {
        stored(&server, MAPS, &map(name, &[owner(api_version, kind, "a", NOBODY)])).await;
    }
    sweep(&server).await;
    for name in ["kind", "group", "version"] {
        assert!(is_there(&server, &format!("{MAPS}/{name}")).await, "{name}");
    }
}

/// Of which namespace would it be?
#[tokio::test]
async fn an_owner_in_a_namespace_has_nothing_that_is_in_none() {
    let server = server().await;
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": [],
        "metadata": {"name": "owned", "ownerReferences": [owner("v1", "ConfigMap", "a", NOBODY)]}});
    stored(&server, ROLES, &role).await;
    sweep(&server).await;
    assert!(is_there(&server, &format!("{ROLES}/owned")).await);
}

#[tokio::test]
async fn whoever_keeps_an_owner_forgets_the_others() {
    let server = server().await;
    let stays = stored(&server, MAPS, &map("stays", &[])).await;
    let goes = stored(&server, MAPS, &map("goes", &[])).await;
    let [stays, goes] =
        [("stays", stays), ("goes", goes)].map(|(name, uid)| owner("v1", "ConfigMap", name, &uid));
    stored(&server, MAPS, &map("child", &[goes.clone(), stays.clone()])).await;
    delete(&server, &format!("{MAPS}/goes"), Some(&json!({"propagationPolicy": "Foreground"}))).await;
    sweep(&server).await;
    assert!(!is_there(&server, &format!("{MAPS}/goes")).await);
    let child = get(&server, &format!("{MAPS}/child")).await;
    assert_eq!(child.body["metadata"]["ownerReferences"], json!([stays]));
}

#[tokio::test]
async fn an_owner_is_looked_for_where_the_reference_says() {
    let server = server().await;
    let uid = stored(&server, MAPS, &map("owner", &[])).await;
    let other = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}});
    stored(&server, "/api/v1/namespaces", &other).await;
    let elsewhere = "/api/v1/namespaces/other/configmaps";
    stored(&server, MAPS, &map("child", &[owner("v1", "ConfigMap", "owner", &uid)])).await;
    stored(&server, MAPS, &map("name", &[owner("v1", "ConfigMap", "renamed", &uid)])).await;
    stored(&server, MAPS, &map("kind", &[owner("v1", "Secret", "owner", &uid)])).await;
    stored(&server, elsewhere, &map("namespace", &[owner("v1", "ConfigMap", "owner", &uid)])).await;
    sweep(&server).await;
    assert!(is_there(&server, &format!("{MAPS}/child")).await);
    for path in [format!("{MAPS}/name"), format!("{MAPS}/kind"), format!("{elsewhere}/namespace")] {
        assert!(!is_there(&server, &path).await, "{path}");
    }
}

#[tokio::test]
async fn owners_in_a_circle_do_not_wait_for_each_other() {
    let server = server().await;
    let first = stored(&server, MAPS, &map("first", &[])).await;
    let second = stored(&server, MAPS, &map("second", &[owner("v1", "ConfigMap", "first", &first)])).await;
    let circle = json!({"metadata": {"ownerReferences": [owner("v1", "ConfigMap", "second", &second)]}});
    assert_eq!(merge(&server, &format!("{MAPS}/first"), &circle).await.status, 200);
    delete(&server, &format!("{MAPS}/first"), Some(&json!({"propagationPolicy": "Foreground"}))).await;
    sweep(&server).await;
    for name in ["first", "second"] {
        assert!(!is_there(&server, &format!("{MAPS}/{name}")).await, "{name}");
    }
}

/// Kinds were listed one after the other, so that an owner that came meanwhile, or went after it let go, seemed gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_or_goes_while_it_is_looked_loses_nothing() {
    const ROUNDS: usize = 200;
    let server = server().await;
    let housekeeper = server.clone();
    let sweeping = tokio::spawn(async move {
        loop {
            housekeeper.sweep().await.unwrap();
            tokio::task::yield_now().await;
        }
    });
    let families = async {
        for n in 0..ROUNDS {
            let uid = stored(&server, MAPS, &map(&format!("owner-{n}"), &[])).await;
            let mut child =
                map(&format!("child-{n}"), &[owner("v1", "ConfigMap", &format!("owner-{n}"), &uid)]);
            child["kind"] = "Secret".into();
            stored(&server, SECRETS, &child).await;
            if n % 2 == 0 {
                let alone = json!({"metadata": {"ownerReferences": null}});
                assert_eq!(merge(&server, &format!("{SECRETS}/child-{n}"), &alone).await.status, 200);
                delete(&server, &format!("{MAPS}/owner-{n}"), None).await;
            }
        }
    };
    timeout(PATIENCE, families).await.unwrap();
    sweeping.abort();
    for n in 0..ROUNDS {
        assert!(is_there(&server, &format!("{SECRETS}/child-{n}")).await, "child-{n}");
    }
}
