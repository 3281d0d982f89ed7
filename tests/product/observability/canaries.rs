//! Row 38 for add-ons: the token of the hub, which every answer of the hub quotes. It is in no log at its most talkative, no event, no
//! status and no metric.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use admit::controllers::observability::Settings;
use admit::controllers::observability::hub::HubSettings;
use admit::controllers::observability::vocabulary::{Meaning, SEED};
use admit::telemetry::Readiness;
use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use http::{StatusCode, header};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::ListParams;
use serde_json::json;
use tokio::net::TcpListener;

use super::place::{NAME, Place};
use super::{HUB, Running, SPOKE, addon};
use crate::support::canaries::{hit, shows};
use crate::support::cluster::PATIENCE;
use crate::support::logs;
use crate::support::reliability::Row;

const TOKEN: &str = "canary-hub-4731";

/// How a hub answers whoever shows `sent`.
type Answer = fn(sent: &str) -> Response;

const ANSWERS: [Answer; 6] = [
    |sent| (StatusCode::UNAUTHORIZED, format!("no {sent}")).into_response(),
    |sent| (StatusCode::FORBIDDEN, format!("<html>no {sent}</html>")).into_response(),
    |sent| {
        let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden",
            "message": format!("not with {sent}"), "details": {"causes": [{"message": sent}]}});
        (StatusCode::FORBIDDEN, axum::Json(status)).into_response()
    },
    |sent| (StatusCode::INTERNAL_SERVER_ERROR, sent.to_owned()).into_response(),
    |sent| (StatusCode::OK, format!("<html>{sent}</html>")).into_response(),
    |sent| axum::Json(json!({"kind": sent, "metadata": sent, "items": sent, "spec": sent})).into_response(),
];

/// A hub that answers so, where it is, and how often it was asked.
async fn hub(answer: Answer) -> (String, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let router = Router::new().fallback(async move |request: Request| {
        counted.fetch_add(1, Ordering::SeqCst);
        let sent = request.headers().get(header::AUTHORIZATION);
        answer(sent.and_then(|sent| sent.to_str().ok()).unwrap_or_default())
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    (format!("http://{address}"), asked)
}

#[tokio::test]
async fn row_38_no_answer_of_a_hub_tells_its_token() {
    let mut row = Row::short(38, "the token of a hub, quoted in every answer");
    let logs = logs::capture();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("hub");
    let mut told = Vec::new();
    for answer in ANSWERS {
        let spoke = Place::new().await;
        spoke.create(&addon(SPOKE)).await;
        let (server, asked) = hub(answer).await;
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": {"token": TOKEN}}],
        });
        std::fs::write(&kubeconfig, text.to_string()).unwrap();
        let hub = HubSettings { namespace: HUB.to_owned(), kubeconfig: Some(kubeconfig.clone()) };
        let settings = Settings { hub: Some(hub), ..Settings::new(&SEED) };
        told.push(format!("{settings:?}"));
        let keeper = Running::start(spoke.account().client, settings);
        spoke.report(SEED.collector, Meaning::UpdateSuccessful).await;
        spoke.until_told(SPOKE, "Progressing/UpdateSuccesful").await;
        let asking = async {
            while asked.load(Ordering::SeqCst) < 4 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, asking).await.expect("the hub is not asked");
        told.push(keeper.metrics.text(&Readiness::default()));
        keeper.end().await;
        told.push(json!(spoke.addons(SPOKE).get(NAME).await.unwrap()).to_string());
        let events: Api<Event> = Api::all(spoke.cluster.admin.clone());
        let events = events.list(&ListParams::default()).await.unwrap().items;
        told.extend(events.iter().map(|event| json!(event).to_string()));
    }
    let logged = logs.take();
    assert!(logged.contains("TRACE") && shows(TOKEN), "logs were captured");
    assert_eq!(hit(told.iter().chain([&logged])), None, "the token shows");
    row.measured(json!({"answersOfHubs": ANSWERS.len()}));
}
