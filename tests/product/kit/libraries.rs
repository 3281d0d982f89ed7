//! Row 38: what libraries would log of what passes over their connections, whatever the level is.

use admit::telemetry::with_causes;
use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client};
use serde_json::json;

use crate::support::canaries::{hit, shows};
use crate::support::logs;
use crate::support::reliability::Row;

/// A Secret that cannot be read as one, refusals that quote what was sent, and pages of whoever stands in front.
fn server() -> Router {
    let metadata = json!({"name": "unreadable", "namespace": "n"});
    let unreadable = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"password": "canary: no base64"}});
    let refused = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden",
        "message": "not with that password", "details": {"causes": [{"message": "canary-4741"}]}});
    let page = (StatusCode::FORBIDDEN, "<html>you sent canary-4742</html>");
    Router::new()
        .route("/api/v1/namespaces/n/secrets/unreadable", get(async move || axum::Json(unreadable)))
        .route(
            "/api/v1/namespaces/n/secrets/refused",
            get(async move || (StatusCode::FORBIDDEN, axum::Json(refused))),
        )
        .fallback(async move || page)
}

#[tokio::test]
async fn row_38_libraries_log_nothing_of_what_is_sent_and_answered() {
    let mut row =
        Row::short(38, "answers of API servers that hold secrets, beside what libraries log of them");
    let logs = logs::capture();
    let secrets: Api<Secret> = Api::namespaced(Client::new(server(), "n"), "n");
    let unread = secrets.get("unreadable").await.unwrap_err();
    let refused = secrets.get("refused").await.unwrap_err();
    tracing::trace!(target: "admit::tests", unread = with_causes(&unread), refused = with_causes(&refused), "answers came");
    let mut watching = std::pin::pin!(watcher(secrets, watcher::Config::default()));
    let broken = loop {
        if let Err(broken) = watching.next().await.unwrap() {
            break broken;
        }
    };
    assert!(shows(&format!("{broken:?}")), "what is looked for is there");
    let logged = logs.take();
    assert!(
        logged.contains("TRACE") && logged.contains("not with that password"),
        "logs were captured: {logged}"
    );
    assert_eq!(hit([&logged]), None, "a secret shows");
    row.measured(json!({"answersOfServers": 3}));
}
