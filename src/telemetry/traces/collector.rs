//! Sends traces to a collector: with HTTP/1.1 over persistent connections, with or without TLS, on the process' runtime. The
//! exporter that calls it has a thread of its own, and no runtime.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry_http::{HttpClient, HttpError};
use rustls::{ClientConfig, RootCertStore};
use tokio::runtime::Handle;
use tokio::time::timeout;

/// The time limit of one delivery.
const PATIENCE: Duration = Duration::from_secs(10);
/// The largest response of a collector in bytes: it says what was rejected.
const MAX_ANSWER: usize = 64 * 1024;

#[derive(Clone, Debug)]
pub(super) struct Collector {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    runtime: Handle,
    url: Arc<str>,
    /// Whether the last delivery failed, so that this is logged once and not for every batch.
    away: Arc<AtomicBool>,
}

impl Collector {
    /// Creates a client that uses the current runtime.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub(super) fn new(url: &str) -> Result<Self, rustls::Error> {
        let mut roots = RootCertStore::empty();
        if url.starts_with("https:") {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let tls = tls.with_root_certificates(roots).with_no_client_auth();
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().build();
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).build(connector),
            runtime: Handle::current(),
            url: url.into(),
            away: Arc::default(),
        })
    }

    async fn deliver(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = self.client.request(request.map(Full::new)).await?.into_parts();
        let body = Limited::new(body, MAX_ANSWER).collect().await?.to_bytes();
        Ok(Response::from_parts(head, body))
    }

    /// Logs when the collector becomes unavailable, and when it is back.
    fn tell(&self, delivered: &Result<Response<Bytes>, HttpError>) {
        let trouble = match delivered {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!("it answers {}", response.status())),
            Err(error) => Some(innermost(error.as_ref())),
        };
        let was_away = self.away.swap(trouble.is_some(), Ordering::Relaxed);
        match trouble {
            Some(why) if !was_away => {
                tracing::warn!(url = &*self.url, why, "traces cannot be delivered and are dropped");
            }
            None if was_away => tracing::info!(url = &*self.url, "traces are delivered again"),
            Some(_) | None => {}
        }
    }
}

/// Returns the root cause, which other errors only pass on.
fn innermost(error: &dyn Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

impl HttpClient for Collector {
    fn send_bytes<'s, 'f>(
        &'s self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'f>>
    where
        's: 'f,
        Self: 'f,
    {
        let collector = self.clone();
        let sent = self.runtime.spawn(async move {
            let delivered = match timeout(PATIENCE, collector.deliver(request)).await {
                Ok(delivered) => delivered,
                Err(late) => Err(late.into()),
            };
            collector.tell(&delivered);
            delivered
        });
        Box::pin(async move { sent.await? })
    }
}
