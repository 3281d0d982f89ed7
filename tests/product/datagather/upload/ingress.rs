//! A strict stand-in for the analysis service: HTTPS with a CA of its own, a multipart reader that takes nothing but
//! what the real one documents, canned answers by path.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// What a service makes of the `Authorization` that it was sent.
pub(crate) type Echo = fn(&str) -> String;

/// What the service answers.
pub(crate) struct Answers {
    pub(crate) upload: (u16, Vec<(&'static str, String)>),
    /// Answers to status questions, in turn; the last one repeats.
    pub(crate) status: Vec<(u16, &'static str)>,
    pub(crate) report: (u16, String),
    /// What is to be gathered besides.
    pub(crate) gathering: (u16, String),
    /// In the place of all bodies.
    pub(crate) echo: Option<Echo>,
}

impl Answers {
    pub(crate) fn accept(request_id: &str) -> Self {
        Self::upload(202, vec![("x-rh-insights-request-id", request_id.to_owned())])
    }

    pub(crate) fn refuse(status: u16) -> Self {
        Self::upload(status, vec![])
    }

    pub(crate) fn redirect(to: &str) -> Self {
        Self::upload(307, vec![("location", to.to_owned())])
    }

    fn upload(status: u16, headers: Vec<(&'static str, String)>) -> Self {
        Self {
            upload: (status, headers),
            status: vec![(200, r#"{"status":"processed"}"#)],
            report: (404, String::new()),
            gathering: (404, String::new()),
            echo: None,
        }
    }
}

/// An upload as received.
#[derive(Clone)]
pub(crate) struct Received {
    pub(crate) authorization: String,
    pub(crate) user_agent: String,
    pub(crate) parts: Vec<Part>,
}

#[derive(Clone)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) file_name: String,
    pub(crate) content_type: String,
    pub(crate) content: Vec<u8>,
}

/// Tells of uploads, and keeps them waiting.
#[derive(Clone, Default)]
struct Gate {
    arrived: watch::Sender<usize>,
    held: watch::Sender<bool>,
}

impl Gate {
    async fn pass(&self, shared: &Mutex<Shared>, received: Received) {
        let count = {
            let mut shared = shared.lock().unwrap();
            shared.uploads.push(received);
            shared.uploads.len()
        };
        self.arrived.send_replace(count);
        drop(self.held.subscribe().wait_for(|held| !held).await.unwrap());
    }
}

struct Shared {
    answers: Answers,
    /// Whose archives it knows.
    cluster: String,
    uploads: Vec<Received>,
    asked: usize,
}

/// A name of the service that only a proxy knows.
pub(crate) const NAME: &str = "ingest.example.test";
/// Where uploads go under that name.
pub(crate) const NAMED_URL: &str = "https://ingest.example.test/api/ingress/v1/upload";

pub(crate) struct FakeIngress {
    pub(crate) address: SocketAddr,
    pub(crate) upload_url: String,
    pub(crate) ca_pem: String,
    shared: Arc<Mutex<Shared>>,
    gate: Gate,
    server: JoinHandle<()>,
}

impl Drop for FakeIngress {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl FakeIngress {
    pub(crate) async fn start(answers: Answers) -> Self {
        let (ca_pem, acceptor) = tls(&["127.0.0.1", NAME]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Mutex::new(Shared {
            answers,
            cluster: "c-1".to_owned(),
            uploads: Vec::new(),
            asked: 0,
        }));
        let gate = Gate::default();
        let server = tokio::spawn(serve(listener, acceptor, Arc::clone(&shared), gate.clone()));
        let upload_url = format!("https://{address}/api/ingress/v1/upload");
        Self { address, upload_url, ca_pem, shared, gate, server }
    }

    /// Knows the archives of this cluster, and of no other.
    pub(crate) fn know(&self, cluster: &str) {
        cluster.clone_into(&mut self.shared.lock().unwrap().cluster);
    }

    /// Uploads are taken and not answered, as long as that is so.
    pub(crate) fn hold(&self, held: bool) {
        self.gate.held.send_replace(held);
    }

    /// Waits until so many uploads have come.
    pub(crate) async fn until(&self, uploads: usize) {
        drop(self.gate.arrived.subscribe().wait_for(|arrived| *arrived >= uploads).await.unwrap());
    }

    pub(crate) fn uploads(&self) -> Vec<Received> {
        self.shared.lock().unwrap().uploads.clone()
    }
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, shared: Arc<Mutex<Shared>>, gate: Gate) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (acceptor, shared, gate) = (acceptor.clone(), Arc::clone(&shared), gate.clone());
        // One client that stands still holds up no other.
        tokio::spawn(async move {
            // A client that does not trust us ends the handshake; that is its right.
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let service = service_fn(move |request| answer(request, Arc::clone(&shared), gate.clone()));
            let connection =
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            let _ = connection.await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    shared: Arc<Mutex<Shared>>,
    gate: Gate,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    // Whoever dies while it sends has sent nothing, and hears nothing.
    let Ok(body) = body.collect().await else {
        return Ok(Response::builder().status(400).body(Full::default()).unwrap());
    };
    let body = body.to_bytes();
    let header = |name: &str| head.headers.get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
    let path = head.uri.path().to_owned();
    let uploads = head.method == "POST" && path == "/api/ingress/v1/upload";
    if uploads {
        let received = Received {
            authorization: header("authorization"),
            user_agent: header("user-agent"),
            parts: parts(&header("content-type"), &body),
        };
        gate.pass(&shared, received).await;
    }
    let mut shared = shared.lock().unwrap();
    if uploads {
        let mut response = Response::builder().status(shared.answers.upload.0);
        for (name, value) in &shared.answers.upload.1 {
            response = response.header(
                *name,
                http::HeaderValue::from_bytes(value.as_bytes()).unwrap_or(http::HeaderValue::from_static("")),
            );
        }
        let body = shared.answers.echo.map_or("no thanks".to_owned(), |echo| echo(&header("authorization")));
        return Ok(response.body(Full::from(body)).unwrap());
    }
    let base = format!("/api/insights-results-aggregator/v2/cluster/{}/request/", shared.cluster);
    let (status, text) = match path
        .strip_prefix(&base)
        .or(path.strip_prefix("/api/gathering"))
        .and_then(|rest| rest.split_once('/'))
    {
        Some((_, "v2/4.18.0/gathering_rules")) => {
            assert_eq!(header("authorization"), "Bearer canary-4711");
            shared.answers.gathering.clone()
        }
        Some((_, "status")) => {
            let turn = shared.asked.min(shared.answers.status.len() - 1);
            shared.asked += 1;
            let (status, text) = shared.answers.status[turn];
            (status, text.to_owned())
        }
        Some((_, "report")) => shared.answers.report.clone(),
        _ => panic!("unexpected request: {} {path}", head.method),
    };
    let text = shared.answers.echo.map_or(text, |echo| echo(&header("authorization")));
    Ok(Response::builder().status(status).body(Full::from(text)).unwrap())
}

/// Parses multipart/form-data as RFC 7578 writes it, with exactly the two headers a part must have.
fn parts(content_type: &str, body: &[u8]) -> Vec<Part> {
    let boundary = content_type.strip_prefix("multipart/form-data; boundary=").unwrap();
    assert!((1..=70).contains(&boundary.len()) && boundary.chars().all(|c| c.is_ascii_alphanumeric()));
    let opening = format!("--{boundary}\r\n");
    let between = format!("\r\n--{boundary}");
    let mut rest = body.strip_prefix(opening.as_bytes()).unwrap();
    let mut parts = Vec::new();
    loop {
        let end = find(rest, between.as_bytes()).unwrap();
        parts.push(part(&rest[..end]));
        rest = &rest[end + between.len()..];
        if rest == b"--\r\n" {
            return parts;
        }
        rest = rest.strip_prefix(b"\r\n").unwrap();
    }
}

fn part(bytes: &[u8]) -> Part {
    let split = find(bytes, b"\r\n\r\n").unwrap();
    let head = std::str::from_utf8(&bytes[..split]).unwrap();
    let (disposition, kind) = head.split_once("\r\n").unwrap();
    let disposition = disposition.strip_prefix("Content-Disposition: form-data; name=\"").unwrap();
    let (name, file) = disposition.split_once("\"; filename=\"").unwrap();
    Part {
        name: name.to_owned(),
        file_name: file.strip_suffix('"').unwrap().to_owned(),
        content_type: kind.strip_prefix("Content-Type: ").unwrap().to_owned(),
        content: bytes[split + 4..].to_vec(),
    }
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}

/// An authority, and a server that it knows under these names.
pub(crate) fn tls(names: &[&str]) -> (String, TlsAcceptor) {
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_certificate = ca.self_signed(&ca_key).unwrap();
    let issuer = Issuer::new(ca, ca_key);
    let key = KeyPair::generate().unwrap();
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let leaf = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
        .unwrap();
    (ca_certificate.pem(), TlsAcceptor::from(Arc::new(config)))
}
