//! Requests to a server in process, in few words.

use admit_apiserver::Server;
use axum::body::Body;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tower::ServiceExt as _;

/// An answer that was read to its end.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
    pub warnings: Vec<String>,
}

impl Answer {
    pub fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
}

pub async fn send(
    server: &Server,
    method: &str,
    path: &str,
    content_type: &str,
    body: Option<&Value>,
) -> Response<Body> {
    let mut request = Request::builder().method(method).uri(path);
    if body.is_some() {
        request = request.header("content-type", content_type);
    }
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    server.router().oneshot(request.body(body).unwrap()).await.unwrap()
}

pub async fn answer(response: Response<Body>) -> Answer {
    let (parts, body) = response.into_parts();
    let warnings = parts.headers.get_all("warning").iter();
    let warnings = warnings.map(|value| value.to_str().unwrap().to_owned()).collect();
    let bytes = body.collect().await.unwrap().to_bytes();
    let body = serde_json::from_slice(&bytes)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
    Answer { status: parts.status.as_u16(), body, warnings }
}

pub async fn get(server: &Server, path: &str) -> Answer {
    answer(send(server, "GET", path, "", None).await).await
}

pub async fn post(server: &Server, path: &str, body: &Value) -> Answer {
    answer(send(server, "POST", path, "application/json", Some(body)).await).await
}

pub async fn put(server: &Server, path: &str, body: &Value) -> Answer {
    answer(send(server, "PUT", path, "application/json", Some(body)).await).await
}

pub async fn merge(server: &Server, path: &str, body: &Value) -> Answer {
    answer(send(server, "PATCH", path, "application/merge-patch+json", Some(body)).await).await
}

pub async fn delete(server: &Server, path: &str, body: Option<&Value>) -> Answer {
    answer(send(server, "DELETE", path, "application/json", body).await).await
}
