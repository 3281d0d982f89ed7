//! Connects an HTTP client to the service: directly or through a proxy, with TLS for https, with timeouts.

use std::io::{self, IoSlice};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use admit_serving::EndsClosed;
use http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::gather::tunnel::{
    Addresses, Hop, Host, Proxies, Route, Stream, TransportSetupError, TunnelError, Waits, client_tls,
};

const WAITS: Waits =
    Waits { connect: Duration::from_secs(30), handshake: HANDSHAKE_TIMEOUT, answer: Duration::from_secs(30) };
/// The timeout of the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The default ports of https and http.
const PORTS: (u16, u16) = (443, 80);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error(transparent)]
    Tunnel(#[from] TunnelError),
    #[error("no certificate can have the name `{0}`")]
    Name(String),
    #[error("cannot set up TLS to the proxy: {0}")]
    Setup(#[from] TransportSetupError),
    #[error("TLS was not set up for this server")]
    NoTls,
    #[error("no TLS handshake within {} s", HANDSHAKE_TIMEOUT.as_secs())]
    Slow,
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// The settings for reaching the service.
#[derive(Clone, Debug)]
pub(super) struct Ways {
    /// None if no URL is https.
    pub(super) tls: Option<Arc<ClientConfig>>,
    /// The PEM file of authorities to trust for TLS proxies, besides the system's.
    pub(super) proxy_ca: Option<PathBuf>,
    pub(super) addresses: Addresses,
    pub(super) proxies: Proxies,
}

impl Ways {
    /// Connects to the host of `uri`, with TLS if it is https.
    pub(super) async fn open(&self, uri: Uri) -> Result<TokioIo<Carried>, ConnectError> {
        let secure = uri.scheme_str() == Some("https");
        let name = uri.host().unwrap_or_default();
        let host = Host::parse(name, uri.port_u16().unwrap_or(if secure { PORTS.0 } else { PORTS.1 }));
        let host = host.map_err(|_| ConnectError::Name(name.to_owned()))?;
        let proxy = self.proxies.to_web(&host, secure).map_err(TunnelError::from)?;
        let tls = || client_tls(self.proxy_ca.as_deref());
        let hop = proxy.map(|proxy| Hop::new(proxy, tls)).transpose()?;
        let route = Route { host: &host, hop: hop.as_ref(), addresses: &self.addresses, waits: WAITS };
        let stream = route.open().await?;
        if !secure {
            return Ok(TokioIo::new(Carried(stream)));
        }
        let name = ServerName::try_from(host.name().to_owned());
        let name = name.map_err(|_| ConnectError::Name(host.name().to_owned()))?;
        let tls = TlsConnector::from(self.tls.clone().ok_or(ConnectError::NoTls)?);
        let shaking = timeout(HANDSHAKE_TIMEOUT, tls.connect(name, stream));
        let stream = shaking.await.map_err(|_| ConnectError::Slow)??;
        Ok(TokioIo::new(Carried(Box::new(EndsClosed(stream)))))
    }
}

/// A connection of any kind, as HTTP clients need it.
pub(super) struct Carried(Box<dyn Stream>);

impl Connection for Carried {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Carried {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, into)
    }
}

impl AsyncWrite for Carried {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, from)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }
}
