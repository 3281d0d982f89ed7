//! What the objects of a namespace take together stays within its quotas, and is what their statuses say.

use admit_apiserver::Server;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::harness::{delete, get, merge, post};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const QUOTA: &str = "/api/v1/namespaces/default/resourcequotas/q";

async fn limited(hard: &Value) -> Server {
    let server = Server::builder().build().await.unwrap();
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": hard}});
    assert_eq!(post(&server, "/api/v1/namespaces/default/resourcequotas", &quota).await.status, 201);
    server.sweep().await.unwrap();
    server
}

async fn used(server: &Server) -> Value {
    get(server, QUOTA).await.body["status"]["used"].clone()
}

#[tokio::test]
async fn a_quota_says_what_is_there_from_the_beginning() {
    let server = Server::builder().build().await.unwrap();
    post(&server, MAPS, &json!({"metadata": {"name": "a"}})).await;
    let quota =
        json!({"metadata": {"name": "q"}, "spec": {"hard": {"count/configmaps": "5", "secrets": "1"}}});
    post(&server, "/api/v1/namespaces/default/resourcequotas", &quota).await;
    server.sweep().await.unwrap();
    let stored = get(&server, QUOTA).await.body;
    assert_eq!(
        stored["status"],
        json!({"hard": {"count/configmaps": "5", "secrets": "1"},
        "used": {"count/configmaps": "1", "secrets": "0"}})
    );
    let other = json!({"spec": {"hard": {"count/configmaps": "1"}}});
    merge(&server, QUOTA, &other).await;
    server.sweep().await.unwrap();
    assert_eq!(get(&server, QUOTA).await.body["status"]["hard"]["count/configmaps"], "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_writers_do_not_get_more_than_there_is() {
    let server = limited(&json!({"configmaps": "10"})).await;
    let create = |at: usize| {
        let server = server.clone();
        tokio::spawn(async move {
            post(&server, MAPS, &json!({"metadata": {"name": format!("m{at}")}})).await.status
        })
    };
    let statuses = join_all((0..40).map(create)).await;
    let made = statuses.iter().filter(|status| matches!(status, Ok(201))).count();
    let refused = statuses.iter().filter(|status| matches!(status, Ok(403))).count();
    assert_eq!((made, refused), (10, 30));
    assert_eq!(used(&server).await, json!({"configmaps": "10"}));
    let maps = get(&server, MAPS).await.body["items"].as_array().unwrap().len();
    assert_eq!(maps, 10);
}

#[tokio::test]
async fn what_is_let_go_can_be_had_again() {
    let server = limited(&json!({"configmaps": "1", "pods": "1", "requests.cpu": "1"})).await;
    let map = |name: &str| json!({"metadata": {"name": name}});
    assert_eq!(post(&server, MAPS, &map("a")).await.status, 201);
    let refused = post(&server, MAPS, &map("b")).await;
    assert_eq!(
        refused.message(),
        "configmaps \"b\" is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=1, limited: \
         configmaps=1"
    );
    delete(&server, &format!("{MAPS}/a"), None).await;
    // Nobody has to wait until it is counted.
    assert_eq!(post(&server, MAPS, &map("b")).await.status, 201);
    let pod = |name: &str| {
        json!({"metadata": {"name": name}, "spec": {"restartPolicy": "Never",
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "600m"}}}]}})
    };
    assert_eq!(post(&server, PODS, &pod("a")).await.status, 201);
    assert_eq!(used(&server).await, json!({"configmaps": "1", "pods": "1", "requests.cpu": "600m"}));
    assert_eq!(post(&server, PODS, &pod("b")).await.status, 403);
    let ended = json!({"status": {"phase": "Succeeded"}});
    assert_eq!(merge(&server, &format!("{PODS}/a/status"), &ended).await.status, 200);
    assert_eq!(post(&server, PODS, &pod("b")).await.status, 201);
    let silent = json!({"metadata": {"name": "s"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    assert_eq!(
        post(&server, PODS, &silent).await.message(),
        "pods \"s\" is forbidden: failed quota: q: must specify requests.cpu for: c"
    );
}

#[tokio::test]
async fn what_was_not_stored_is_not_charged() {
    let server = limited(&json!({"configmaps": "2"})).await;
    let map = json!({"metadata": {"name": "a"}});
    assert_eq!(post(&server, &format!("{MAPS}?dryRun=All"), &map).await.status, 201);
    assert_eq!(used(&server).await, json!({"configmaps": "0"}));
    assert_eq!(post(&server, MAPS, &map).await.status, 201);
    assert_eq!(post(&server, MAPS, &map).await.status, 409);
    server.sweep().await.unwrap();
    assert_eq!(used(&server).await, json!({"configmaps": "1"}));
    assert_eq!(post(&server, MAPS, &json!({"metadata": {"name": "b"}})).await.status, 201);
}

#[tokio::test]
async fn what_the_server_makes_by_itself_is_counted() {
    let server = Server::builder().build().await.unwrap();
    post(&server, "/api/v1/namespaces", &json!({"metadata": {"name": "n"}})).await;
    let (quotas, quota) = ("/api/v1/namespaces/n/resourcequotas", "/api/v1/namespaces/n/resourcequotas/q");
    post(
        &server,
        quotas,
        &json!({"metadata": {"name": "q"}, "spec": {"hard": {"count/serviceaccounts": "5"}}}),
    )
    .await;
    server.sweep().await.unwrap();
    let used = async || get(&server, quota).await.body["status"]["used"]["count/serviceaccounts"].clone();
    assert_eq!(used().await, "1");
    // The account is made again.
    delete(&server, "/api/v1/namespaces/n/serviceaccounts/default", None).await;
    server.sweep().await.unwrap();
    assert_eq!(used().await, "1");
}
