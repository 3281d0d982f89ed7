//! A hub behind a socket, which takes one token, can be killed, and breaks off in the middle of an answer.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use admit_apiserver::Identity;
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tower::ServiceExt as _;

use super::place::Place;
use super::{HUB, addon};
use crate::support::testcluster::TestCluster;

pub(super) struct HubServer {
    pub(super) place: Place,
    token: Arc<Mutex<String>>,
    /// Whether the answer to the next write is cut off in its middle.
    cuts: Arc<AtomicBool>,
    address: SocketAddr,
    serving: Option<JoinHandle<()>>,
}

impl HubServer {
    pub(super) async fn start() -> Self {
        let place = Place { cluster: TestCluster::new().await };
        place.create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HUB}})).await;
        place.create(&addon(HUB)).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let token = Arc::new(Mutex::new("first".to_owned()));
        let mut hub = Self { place, token, cuts: Arc::default(), address, serving: None };
        hub.serve(listener);
        hub
    }

    fn serve(&mut self, listener: TcpListener) {
        let groups = ["system:serviceaccounts", "system:authenticated"].map(ToOwned::to_owned);
        let spoke = Identity::new("system:serviceaccount:admit-system:admit-observability", groups);
        let (router, token) = (self.place.cluster.router_as(spoke), Arc::clone(&self.token));
        let cuts = Arc::clone(&self.cuts);
        let service = tower::service_fn(move |mut request: http::Request<hyper::body::Incoming>| {
            let (router, wanted) = (router.clone(), format!("Bearer {}", token.lock().unwrap()));
            let cut = *request.method() == Method::PUT && cuts.swap(false, Ordering::SeqCst);
            async move {
                // The server itself knows no such tokens.
                let shown = request.headers_mut().remove(header::AUTHORIZATION);
                if shown.as_ref().map(HeaderValue::as_bytes) != Some(wanted.as_bytes()) {
                    return Ok((StatusCode::UNAUTHORIZED, "who are you?").into_response());
                }
                let answer = router.oneshot(request.map(Body::new)).await?;
                Ok::<_, Infallible>(if cut { halved(answer) } else { answer })
            }
        });
        self.serving = Some(tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let Ok((stream, _)) = listener.accept().await else { return };
                let service = hyper_util::service::TowerToHyperService::new(service.clone());
                let stream = hyper_util::rt::TokioIo::new(stream);
                connections.spawn(async move {
                    let serving =
                        hyper::server::conn::http1::Builder::new().serve_connection(stream, service);
                    drop(serving.await);
                });
            }
        }));
    }

    /// Ends it with all its connections.
    pub(super) async fn kill(&mut self) {
        let serving = self.serving.take().unwrap();
        serving.abort();
        drop(serving.await);
    }

    pub(super) async fn restart(&mut self) {
        self.serve(TcpListener::bind(self.address).await.unwrap());
    }

    /// Does the next write, and breaks off in the middle of the answer.
    pub(super) fn cut_next_write(&self) {
        self.cuts.store(true, Ordering::SeqCst);
    }

    /// Takes another token from now on.
    pub(super) fn rotate(&self, token: &str) {
        token.clone_into(&mut self.token.lock().unwrap());
    }

    pub(super) fn write_kubeconfig(&self, path: &Path, token: &str) {
        write_kubeconfig(path, self.address, token);
    }
}

/// A kubeconfig with a token for the hub at `address`.
pub(super) fn write_kubeconfig(path: &Path, address: SocketAddr, token: &str) {
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": format!("http://{address}")}}],
        "users": [{"name": "u", "user": {"token": token}}],
    });
    std::fs::write(path, text.to_string()).unwrap();
}

impl Drop for HubServer {
    fn drop(&mut self) {
        if let Some(serving) = &self.serving {
            serving.abort();
        }
    }
}

/// The beginning of `answer`, and then the end of the connection.
fn halved(answer: Response) -> Response {
    let parts = [Ok(Bytes::from_static(b"{\"kind\":")), Err(std::io::Error::other("cut"))];
    answer.map(|_| Body::from_stream(futures::stream::iter(parts)))
}
