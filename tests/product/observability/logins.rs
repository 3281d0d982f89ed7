//! Row 38 for add-ons: each kind of login at the hub, in every kind of failure that it may be in the middle of. None of it is in a log at its
//! most talkative, an event, a status, a metric, or what a panic would print, also where the hub quotes it.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use admit::controllers::observability::Settings;
use admit::controllers::observability::hub::HubSettings;
use admit::controllers::observability::vocabulary::{Meaning, SEED};
use admit::telemetry::Readiness;
use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{StatusCode, header};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use serde_json::json;

use super::place::Place;
use super::{HUB, Running, SPOKE, addon};
use crate::support::canaries::{hit, shows};
use crate::support::cluster::PATIENCE;
use crate::support::logs;
use crate::support::reliability::Row;

const TOKEN: &str = "canary-hub-token-4731";
const RECONNECTED: &str = "observability_addon_hub_replication_total{result=\"reconnected\"}";

/// Requests to all hubs so far.
static ASKED: AtomicUsize = AtomicUsize::new(0);

/// A hub that refuses everything with this code, and quotes what it was shown, as a Status or as plain text. Its address.
async fn quoting(code: u16, as_status: bool) -> String {
    let answer = move |request: Request| async move { quote(&request, code, as_status) };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
    address
}

fn quote(request: &Request, code: u16, as_status: bool) -> Response {
    ASKED.fetch_add(1, Ordering::SeqCst);
    let shown = request.headers().get(header::AUTHORIZATION).map_or("", |it| it.to_str().unwrap());
    let bare = shown.rsplit(' ').next().unwrap();
    let told = format!("no to {bare}, \"{bare}\", {}, {shown}", STANDARD.encode(bare));
    let status = StatusCode::from_u16(code).unwrap();
    if as_status {
        let body = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": told, "message": told});
        return (status, axum::Json(body)).into_response();
    }
    (status, told).into_response()
}

fn kubeconfig(server: &str, user: &serde_json::Value) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user}],
    })
    .to_string()
}

/// Kubeconfigs that lead nowhere.
async fn useless(folder: &Path) -> Vec<String> {
    let token = json!({"token": TOKEN});
    let mut all = Vec::new();
    for (code, as_status) in
        [(400, true), (401, true), (403, true), (403, false), (500, true), (500, false), (503, false)]
    {
        all.push(kubeconfig(&quoting(code, as_status).await, &token));
    }
    let login = json!({"username": "robot", "password": "canary-hub-4732"});
    all.push(kubeconfig(&quoting(401, true).await, &login));
    all.push(kubeconfig("http://127.0.0.1:1", &token));
    all.push(kubeconfig("http://robot:canary-url-4733@127.0.0.1:1", &json!({})));
    all.push(kubeconfig("https://127.0.0.1:1", &json!({"client-certificate-data": STANDARD.encode("canary"), "client-key-data": STANDARD.encode("canary-key-4734")})));
    all.push(kubeconfig("http://127.0.0.1:1", &json!({"token": "canary-lines\n-4735"})));
    let file = folder.join("token");
    std::fs::write(&file, "canary-file-4736\n").unwrap();
    all.push(kubeconfig(&quoting(401, true).await, &json!({"tokenFile": file})));
    all.push(format!("users: [{{name: u, user: {{token: {TOKEN}}}}}]\nclusters: [{TOKEN}\n"));
    all.push(format!("{TOKEN}: {TOKEN}"));
    all
}

#[tokio::test]
async fn row_38_no_failure_of_a_hub_tells_the_login() {
    let mut row = Row::short(38, "logins at hubs, in every kind of failure");
    let logs = logs::capture();
    let (place, folder) = (Place::new().await, tempfile::tempdir().unwrap());
    place.create(&addon(SPOKE)).await;
    place.report(SEED.collector, Meaning::UpdateSuccessful).await;
    let (mut told, mut failures) = (Vec::new(), 0);
    for text in useless(folder.path()).await {
        failures += 1;
        let path = folder.path().join(format!("hub-{failures}"));
        std::fs::write(&path, text).unwrap();
        let hub = HubSettings { namespace: HUB.to_owned(), kubeconfig: Some(path) };
        let settings = Settings { hub: Some(hub), ..Settings::new(&SEED) };
        told.push(format!("{settings:?}"));
        let keeper = Running::start(place.account().client, settings);
        // A hub that answers, and badly, is asked again; what cannot be used is told.
        let before = ASKED.load(Ordering::SeqCst);
        let tried = async {
            while ASKED.load(Ordering::SeqCst) < before + 2
                && keeper.counted(RECONNECTED).unwrap_or_default() == 0
            {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, tried).await.unwrap();
        told.push(keeper.metrics.text(&Readiness::default()));
        keeper.end().await;
    }
    let logged = logs.take();
    let events: Api<Event> = Api::all(place.cluster.admin.clone());
    let events = events.list(&ListParams::default()).await.unwrap().items;
    told.extend(events.iter().map(|event| json!(event).to_string()));
    told.push(json!(place.addons(SPOKE).list(&ListParams::default()).await.unwrap().items).to_string());
    assert!(logged.contains("TRACE") && logged.contains("trying again"), "logs were captured");
    assert!(shows(TOKEN) && shows(&STANDARD.encode(TOKEN)), "what is looked for is found");
    assert_eq!(hit(told.iter().chain([&logged])), None, "a login shows");
    row.measured(json!({"failuresOfHubs": failures, "logLines": logged.lines().count(), "hits": 0}));
}
