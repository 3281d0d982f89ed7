//! The HTTPS call of a webhook: one connection, one POST, HTTP/1.1, no redirects, a bounded answer.

use std::sync::Arc;

use admit_policy::webhook::{Client, Service};
use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::hook::Hook;
use super::{CallFailed, Resolver};

/// An AdmissionReview with a refusal is small; more than this is no answer.
const ANSWER_LIMIT: usize = 3 << 20;

/// Sends `body` and answers the body of a 200.
///
/// # Errors
/// Everything else, in the words of kube-apiserver's client.
pub(super) async fn post(
    hook: &Hook,
    resolver: Option<&dyn Resolver>,
    body: Bytes,
) -> Result<Bytes, CallFailed> {
    let url = hook.url();
    let failed = |why: String| CallFailed(format!("failed to call webhook: Post \"{url}\": {why}"));
    let uri: Uri = url.parse().map_err(|error| failed(format!("invalid URL: {error}")))?;
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = uri.port_u16().unwrap_or(443);
    let stream = connect(hook, resolver, &host, port).await.map_err(&failed)?;
    let stream = secured(hook, &host, stream).await.map_err(&failed)?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| failed(error.to_string()))?;
    let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let request = Request::builder()
        .method(Method::POST)
        .uri(target)
        .header(header::HOST, authority)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json, */*")
        .header(header::USER_AGENT, "kube-apiserver-admission")
        .body(Full::new(body))
        .map_err(|error| failed(error.to_string()))?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(|error| failed(error.to_string()))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_LIMIT)
            .collect()
            .await
            .map_err(|error| failed(format!("the answer cannot be read: {error}")))?
            .to_bytes();
        if status == StatusCode::OK { Ok(body) } else { Err(not_ok(status, &body)) }
    };
    tokio::pin!(connection, exchange);
    tokio::select! {
        answer = &mut exchange => answer,
        // The connection may end before the answer is taken out of it.
        _ = &mut connection => exchange.await,
    }
}

async fn connect(
    hook: &Hook,
    resolver: Option<&dyn Resolver>,
    host: &str,
    port: u16,
) -> Result<TcpStream, String> {
    let refused = |at: String, error: &std::io::Error| {
        let why = match error.kind() {
            std::io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
            _ => error.to_string(),
        };
        format!("dial tcp {at}: connect: {why}")
    };
    match hook.client() {
        Client::Service(Service { namespace, name, port, .. }) => {
            let port = u16::try_from(*port).map_err(|_| format!("address {port}: invalid port"))?;
            let address = resolver
                .and_then(|resolver| resolver.resolve(namespace, name, port))
                .ok_or_else(|| format!("service \"{name}\" not found"))?;
            TcpStream::connect(address).await.map_err(|error| refused(address.to_string(), &error))
        }
        Client::Url(_) => {
            TcpStream::connect((host, port)).await.map_err(|error| refused(format!("{host}:{port}"), &error))
        }
    }
}

async fn secured(
    hook: &Hook,
    host: &str,
    stream: TcpStream,
) -> Result<tokio_rustls::client::TlsStream<TcpStream>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&hook.ca_bundle) {
        let certificate = certificate.map_err(|error| format!("caBundle: {error}"))?;
        roots.add(certificate).map_err(|error| format!("caBundle: {error}"))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await.map_err(|error| unverified(&error))
}

fn unverified(error: &std::io::Error) -> String {
    let text = error.to_string();
    if text.contains("UnknownIssuer") {
        return "tls: failed to verify certificate: x509: certificate signed by unknown authority".to_owned();
    }
    format!("tls: {text}")
}

/// What client-go makes of an answer that is no 200.
fn not_ok(status: StatusCode, body: &[u8]) -> CallFailed {
    let text = String::from_utf8_lossy(body.get(..1024).unwrap_or(body)).trim().to_owned();
    let why = match status.as_u16() {
        404 => "the server could not find the requested resource".to_owned(),
        500.. => {
            let shown = if text.is_empty() { "unknown".to_owned() } else { text };
            format!("an error on the server ({shown:?}) has prevented the request from succeeding")
        }
        _ => "the server rejected our request for an unknown reason".to_owned(),
    };
    CallFailed(format!("failed to call webhook: {why}"))
}
