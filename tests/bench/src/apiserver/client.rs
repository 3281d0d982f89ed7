//! Sends requests one after the other over one kept connection.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::Trouble;

/// The address of a server, and the credentials for it.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) address: SocketAddr,
    pub(crate) tls: Arc<rustls::ClientConfig>,
}

impl Access {
    async fn stream(&self, protocol: &[u8]) -> Result<TokioIo<TlsStream<TcpStream>>, Trouble> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let mut tls = rustls::ClientConfig::clone(&self.tls);
        tls.alpn_protocols = vec![protocol.to_vec()];
        let name = ServerName::IpAddress(self.address.ip().into());
        Ok(TokioIo::new(TlsConnector::from(Arc::new(tls)).connect(name, stream).await?))
    }

    /// Opens an HTTP/1.1 connection.
    pub(crate) async fn connect(&self) -> Result<Client, Trouble> {
        let (sender, connection) = http1::handshake(self.stream(b"http/1.1").await?).await?;
        tokio::spawn(connection);
        Ok(Client { sender, gzip: false })
    }

    /// Opens an HTTP/2 connection, for concurrent requests.
    pub(crate) async fn connect_many(&self) -> Result<http2::SendRequest<Full<Bytes>>, Trouble> {
        let stream = self.stream(b"h2").await?;
        let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await?;
        tokio::spawn(connection);
        Ok(sender)
    }
}

/// A client that sends one request after the other.
#[derive(Debug)]
pub(crate) struct Client {
    sender: http1::SendRequest<Full<Bytes>>,
    /// Whether compressed responses are requested.
    pub(crate) gzip: bool,
}

impl Client {
    async fn answer(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<http::Response<Incoming>, Trouble> {
        let mut request = Request::builder().method(method).uri(path).header("host", "127.0.0.1");
        request = request.header("accept", "application/json").header("content-type", "application/json");
        if self.gzip {
            request = request.header("accept-encoding", "gzip");
        }
        self.sender.ready().await?;
        Ok(self.sender.send_request(request.body(Full::new(body))?).await?)
    }

    /// Sends a request; returns the status code and the length of the body.
    pub(crate) async fn length(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<(StatusCode, usize), Trouble> {
        let response = self.answer(method, path, body).await?;
        let (code, mut body, mut length) = (response.status(), response.into_body(), 0);
        while let Some(frame) = body.frame().await {
            length += frame?.data_ref().map_or(0, Bytes::len);
        }
        Ok((code, length))
    }

    /// Sends a request; returns the status code and the document.
    pub(crate) async fn send(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<(StatusCode, Value), Trouble> {
        let response = self.answer(method, path, body).await?;
        let code = response.status();
        let text = response.into_body().collect().await?.to_bytes();
        Ok((code, serde_json::from_slice(&text).unwrap_or(Value::Null)))
    }

    /// Like [`Self::length`], but only a success is Ok.
    pub(crate) async fn done(&mut self, method: Method, path: &str, body: Bytes) -> Result<usize, Trouble> {
        let (code, length) = self.length(method.clone(), path, body).await?;
        if code.is_success() { Ok(length) } else { Err(format!("{method} {path}: {code}").into()) }
    }

    pub(crate) async fn create(&mut self, path: &str, object: &Value) -> Result<usize, Trouble> {
        self.done(Method::POST, path, object.to_string().into()).await
    }
}
