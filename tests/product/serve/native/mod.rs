//! `admit serve` beside the native engine: the same policies and the same request, one verdict and one text.

mod errors;
mod recorded;
mod table;

use http::Request;
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::Value;

/// What a server answered: status, the texts of its warnings, body.
struct Told {
    status: u16,
    warnings: Vec<String>,
    body: Value,
}

/// A request to a server, as the user that the headers name.
struct Asked<'a> {
    method: &'a str,
    path: &'a str,
    headers: &'a [(&'a str, &'a str)],
    body: &'a Value,
}

async fn send(client: &Client, asked: &Asked<'_>) -> Told {
    let content_type =
        if asked.method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let mut request =
        Request::builder().method(asked.method).uri(asked.path).header("content-type", content_type);
    for (name, value) in asked.headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::from(asked.body.to_string().into_bytes())).unwrap();
    let (head, body) = client.send(request).await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let warnings = head.headers.get_all("warning").iter().map(|value| unframed(value.to_str().unwrap()));
    let warnings = warnings.collect();
    let body = serde_json::from_slice(&body).unwrap_or_else(|_| String::from_utf8_lossy(&body).into());
    Told { status: head.status.as_u16(), warnings, body }
}

/// The text of a `299` header.
fn unframed(header: &str) -> String {
    let text = header.strip_prefix("299 - \"").and_then(|text| text.strip_suffix('"')).unwrap_or(header);
    text.replace("\\\"", "\"").replace("\\\\", "\\")
}

/// The text of a policy that denies, without the webhook that passed it on.
fn without_webhook(message: &str) -> &str {
    let passed_on = message.strip_prefix("admission webhook \"").and_then(|rest| rest.split_once("\" "));
    passed_on.and_then(|(_, rest)| rest.strip_prefix("denied the request: ")).unwrap_or(message)
}

async fn post(client: &Client, path: &str, body: &Value) {
    let told = send(client, &Asked { method: "POST", path, headers: &[], body }).await;
    assert!(told.status < 300, "{path}: {} {:#}\n{body:#}", told.status, told.body);
}
