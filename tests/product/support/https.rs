//! A client of a webhook: one connection, TLS as a test wants it, requests one after the other.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use admit::admission::tls::Identity;

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// An open connection.
pub(crate) struct Client {
    sender: SendRequest<Full<Bytes>>,
    /// Sent with every request, besides those that it needs.
    pub(crate) headers: Vec<(String, String)>,
    /// What the server showed, DER; empty without TLS.
    pub(crate) certificate: Vec<u8>,
}

pub(crate) struct Answered {
    pub(crate) code: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answered {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A client's settings: whom it trusts, what it shows, which versions it speaks.
pub(crate) fn tls(
    ca_pem: &str,
    identity: Option<&Identity>,
    versions: &[&'static SupportedProtocolVersion],
) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca_pem.as_bytes()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions).unwrap();
    let builder = builder.with_root_certificates(roots);
    Arc::new(match identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let chain = CertificateDer::pem_slice_iter(identity.certificate_pem.as_bytes());
            let key = PrivateKeyDer::from_pem_slice(identity.key_pem.as_bytes()).unwrap();
            builder.with_client_auth_cert(chain.map(Result::unwrap).collect(), key).unwrap()
        }
    })
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr, tls: &Arc<ClientConfig>) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from("localhost")?;
        let stream = TlsConnector::from(Arc::clone(tls)).connect(name, stream).await?;
        let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let certificate = shown.map(|certificate| certificate.to_vec()).unwrap_or_default();
        Self::over(TokioIo::new(stream), certificate).await
    }

    /// Without TLS.
    pub(crate) async fn plain(address: SocketAddr) -> Result<Self, Failure> {
        Self::over(TokioIo::new(TcpStream::connect(address).await?), Vec::new()).await
    }

    async fn over<S>(stream: S, certificate: Vec<u8>) -> Result<Self, Failure>
    where
        S: hyper::rt::Read + hyper::rt::Write + Send + Unpin + 'static,
    {
        let (sender, connection) = handshake(stream).await?;
        tokio::spawn(connection);
        Ok(Self { sender, headers: Vec::new(), certificate })
    }

    pub(crate) async fn post(&mut self, path: &str, body: impl Into<Bytes>) -> Result<Answered, Failure> {
        let request = Request::post(path)
            .header("host", "localhost")
            .header("content-type", "application/json")
            .body(Full::new(body.into()))?;
        self.send(request).await
    }

    pub(crate) async fn get(&mut self, path: &str) -> Result<Answered, Failure> {
        self.send(Request::get(path).header("host", "localhost").body(Full::default())?).await
    }

    async fn send(&mut self, mut request: Request<Full<Bytes>>) -> Result<Answered, Failure> {
        for (name, value) in &self.headers {
            request.headers_mut().insert(http::HeaderName::from_bytes(name.as_bytes())?, value.parse()?);
        }
        self.sender.ready().await?;
        let (head, body) = self.sender.send_request(request).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(Answered { code: head.status, headers: head.headers, body })
    }
}
