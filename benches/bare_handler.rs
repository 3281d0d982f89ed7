//! The least an admission webhook can do: axum over rustls, the body parsed with `serde_json`, everything allowed. What
//! `admit serve` is measured against; `scripts/bench-serve` runs both.
//!
//! ```text
//! bare_handler ADDRESS CERTIFICATE KEY
//! ```
//!
//! With port 0 it takes a free one; which, it says on standard error, as `admit serve --log-format json` does.

use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;

use admit::admission::tls::{Identity, server_config};
use axum::body::Bytes;
use axum::routing::post;
use axum::{Json, Router};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, certificate, key] = arguments.as_slice() else {
        return Err("usage: bare_handler ADDRESS CERTIFICATE KEY".into());
    };
    let identity = Identity {
        certificate_pem: std::fs::read_to_string(certificate)?,
        key_pem: std::fs::read_to_string(key)?,
    };
    let acceptor = TlsAcceptor::from(Arc::new(server_config(&identity, None)?));
    let service = TowerToHyperService::new(Router::new().route("/validate", post(allow)));
    let listener = TcpListener::bind(address).await?;
    let told = json!({"fields": {"address": listener.local_addr()?.to_string()}});
    writeln!(std::io::stderr(), "{told}")?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (acceptor, service) = (acceptor.clone(), service.clone());
        tokio::spawn(async move {
            if let Ok(stream) = acceptor.accept(stream).await {
                // Trouble with one connection ends that connection.
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            }
        });
    }
}

async fn allow(body: Bytes) -> Json<Value> {
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    Json(json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": review["request"]["uid"], "allowed": true},
    }))
}
