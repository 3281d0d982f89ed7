//! Our own collector against the embedded API server, with the nodes' part of it (logs) answered by the test.

use std::fs;
use std::path::Path;

use admit::gather::must_gather::collect::{CollectError, Collected, Teller, Wanted, collect};
use admit_apiserver::Server;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse as _;
use kube::{Api, Client};
use serde_json::{Value, json};

use super::Bench;

const CANARY: &str = "canary-4714";

/// What a node answers; the rest is the server's.
async fn node(request: Request, next: Next) -> axum::response::Response {
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    if path.ends_with("/pods/broken/log") {
        return (StatusCode::BAD_REQUEST, "container is waiting to start").into_response();
    }
    if path.ends_with("/log") {
        let what = if query.contains("previous=true") { "before" } else { "now" };
        let since = if query.contains("sinceTime=2026-01-02") { " since" } else { "" };
        return format!("{what} {path}{since}\n").into_response();
    }
    match path.split_once("/proxy/logs/") {
        Some((_, "kube-apiserver/")) => "<a href=\"audit.log\">audit.log</a>".into_response(),
        Some((_, "kube-apiserver/audit.log")) => "{\"kind\":\"Event\"}\n".into_response(),
        // A kubelet of Kubernetes, one of OpenShift, and one that knows of no journal.
        Some((front, ""))
            if front.ends_with("/n1")
                && query.starts_with("query=kubelet&sinceTime=2026-01-02T03:04:05Z") =>
        {
            "n1 kubelet\n".into_response()
        }
        Some((front, "journal")) if front.ends_with("/n2") && query.starts_with("unit=kubelet&since=") => {
            "n2 kubelet\n".into_response()
        }
        Some((_, "")) => "<pre>\n<a href=\"audit/\">audit/</a>\n</pre>".into_response(),
        Some(_) => StatusCode::NOT_FOUND.into_response(),
        None => next.run(request).await,
    }
}

async fn cluster() -> Bench {
    let bench = Bench::new().await;
    for at in 0..1_100 {
        let data = json!({"metadata": {"name": format!("map-{at}")}, "data": {"at": at.to_string()}});
        bench.put("", "ConfigMap", "configmaps", "support", data).await;
    }
    let annotations =
        json!({"kubectl.kubernetes.io/last-applied-configuration": format!("{{\"data\":\"{CANARY}\"}}")});
    let secret = json!({"metadata": {"name": "s", "annotations": annotations}, "stringData": {"k": CANARY}});
    bench.put("", "Secret", "secrets", "support", secret).await;
    for name in ["sound", "broken"] {
        let container = json!({"name": "main", "image": "i"});
        let pod = json!({"metadata": {"name": name}, "spec": {"initContainers": [{"name": "first", "image": "i"}], "containers": [container]}});
        bench.put("", "Pod", "pods", "support", pod).await;
    }
    let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::namespaced(bench.client.clone(), "support");
    let status = json!({"status": {"containerStatuses": [
        {"name": "main", "image": "i", "imageID": "", "ready": true, "restartCount": 2, "state": {}, "lastState": {}},
    ]}});
    let patch = kube::api::Patch::Merge(status);
    pods.patch_status("sound", &kube::api::PatchParams::default(), &patch).await.unwrap();
    let labels = json!({"node-role.kubernetes.io/control-plane": "", "node-role.kubernetes.io/master": ""});
    for name in ["n1", "n2"] {
        bench.put("", "Node", "nodes", "", json!({"metadata": {"name": name, "labels": labels}})).await;
    }
    bench
}

fn read(folder: &Path, path: &str) -> String {
    fs::read_to_string(folder.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[tokio::test]
async fn a_cluster_is_collected_in_the_layout_of_must_gathers() {
    let bench = cluster().await;
    let server = bench.router.clone().layer(from_fn(node));
    let client = Client::new(server, "default");
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("admit");
    let wanted =
        Wanted { folder: folder.clone(), audit: true, since: Some("2026-01-02T03:04:05Z".parse().unwrap()) };
    let log = fs::File::create(dir.path().join("must-gather.log")).unwrap();
    let Collected { kinds, objects, logs, missed } =
        collect(&client, &wanted, &Teller::new(log)).await.unwrap();
    assert!(kinds > 20 && objects > 1_100, "{kinds} kinds, {objects} objects");
    assert_eq!((logs, missed), (7, 2), "{}", read(dir.path(), "must-gather.log"));

    assert_eq!(read(&folder, "version"), format!("admit\n{}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(read(&folder, "timestamp").lines().count(), 2);
    let maps: Value =
        serde_saphyr::from_str(&read(&folder, "namespaces/support/core/configmaps.yaml")).unwrap();
    assert_eq!((&maps["kind"], &maps["apiVersion"]), (&json!("ConfigMapList"), &json!("v1")));
    let maps = maps["items"].as_array().unwrap();
    assert!(maps.len() >= 1_100, "{}", maps.len());
    assert!(maps.iter().all(|map| map["kind"] == "ConfigMap" && map["metadata"]["uid"].is_string()));
    let node: Value =
        serde_saphyr::from_str(&read(&folder, "cluster-scoped-resources/core/nodes/n1.yaml")).unwrap();
    assert_eq!((&node["kind"], &node["metadata"]["name"]), (&json!("Node"), &json!("n1")));
    let crd = "cluster-scoped-resources/apiextensions.k8s.io/customresourcedefinitions/mustgathers.operator.openshift.io.yaml";
    assert!(read(&folder, crd).contains("MustGatherList"));

    let logs = "namespaces/support/pods/sound/main/main/logs";
    assert_eq!(
        read(&folder, &format!("{logs}/current.log")),
        "now /api/v1/namespaces/support/pods/sound/log since\n"
    );
    assert!(read(&folder, &format!("{logs}/previous.log")).starts_with("before "));
    assert!(read(&folder, "namespaces/support/pods/sound/first/first/logs/current.log").starts_with("now "));
    assert!(!folder.join("namespaces/support/pods/sound/first/first/logs/previous.log").exists());
    assert_eq!(read(&folder, "audit_logs/kube-apiserver/n1-audit.log"), "{\"kind\":\"Event\"}\n");
    assert_eq!(read(&folder, "host_service_logs/masters/kubelet_service.log"), "n1 kubelet\nn2 kubelet\n");
    assert_eq!(fs::read_dir(folder.join("host_service_logs/masters")).unwrap().count(), 1);
    let told = read(dir.path(), "must-gather.log");
    assert!(told.contains("left out: current.log of support/broken, container main"), "{told}");

    let secrets = read(&folder, "namespaces/support/core/secrets.yaml");
    assert!(secrets.contains("name: s") || secrets.contains("name: \"s\""), "{secrets}");
    let grep = std::process::Command::new("grep").args(["-r", CANARY]).arg(dir.path()).output().unwrap();
    assert!(grep.stdout.is_empty(), "{}", String::from_utf8_lossy(&grep.stdout));
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_no_collection() {
    let refusing = axum::Router::new().fallback(async || StatusCode::SERVICE_UNAVAILABLE);
    let client = Client::new(refusing, "default");
    let dir = tempfile::tempdir().unwrap();
    let wanted = Wanted { folder: dir.path().join("a"), audit: false, since: None };
    let error = collect(&client, &wanted, &Teller::new(std::io::sink())).await.unwrap_err();
    assert!(matches!(error, CollectError::Discovery(_)), "{error}");
}

/// The folder cannot be written.
#[tokio::test]
async fn a_disk_that_takes_nothing_ends_the_collection() {
    let server = Server::builder().build().await.unwrap();
    let client = Client::new(server.router(), "default");
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let wanted = Wanted { folder: dir.path().join("file"), audit: false, since: None };
    let error = collect(&client, &wanted, &Teller::new(std::io::sink())).await.unwrap_err();
    assert!(matches!(error, CollectError::Disk { .. }), "{error}");
}
