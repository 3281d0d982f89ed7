//! Connects to a server: resolves its name, checks the addresses and connects to one of those; or uses a proxy.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use admit_apimachinery::go;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::{Addresses, Host, Proxy, ProxyError, TunnelError};
use crate::telemetry::{Outside, Secrets};

/// The most bytes of a proxy's response up to the empty line.
const MAX_HEAD: u64 = 16 * 1024;

/// A bidirectional byte stream.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// The timeouts of the steps of connecting.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// For name resolution, and for a TCP connection to one address.
    pub connect: Duration,
    /// For the TLS handshake with a proxy.
    pub handshake: Duration,
    /// For the response of a proxy, which connects to the server first.
    pub answer: Duration,
}

/// A proxy, with its TLS configuration.
#[derive(Clone, Debug)]
pub struct Hop {
    proxy: Proxy,
    tls: Option<Arc<ClientConfig>>,
}

impl Hop {
    /// Creates a hop; `tls` is called if the proxy uses TLS.
    ///
    /// # Errors
    /// The errors of `tls`.
    pub fn new<E>(proxy: Proxy, tls: impl FnOnce() -> Result<Arc<ClientConfig>, E>) -> Result<Self, E> {
        let tls = proxy.tls.then(tls).transpose()?;
        Ok(Self { proxy, tls })
    }
}

/// How to reach a server.
#[derive(Debug)]
pub struct Route<'r> {
    pub host: &'r Host,
    /// The proxy, if any.
    pub hop: Option<&'r Hop>,
    pub addresses: &'r Addresses,
    pub waits: Waits,
}

impl Route<'_> {
    /// Opens a connection to the host.
    ///
    /// # Errors
    /// [`TunnelError`]: nothing was sent to the host then.
    pub async fn open(&self) -> Result<Box<dyn Stream>, TunnelError> {
        let Some(hop) = self.hop else {
            return Ok(Box::new(self.dial(self.host).await?));
        };
        self.addresses.let_a_proxy_reach(self.host)?;
        let proxy = &hop.proxy;
        let stream = self.dial(&proxy.host).await.map_err(|error| match error {
            forbidden @ TunnelError::Forbidden { .. } => forbidden,
            error => unreachable(proxy, error.to_string()).into(),
        })?;
        let Some(tls) = &hop.tls else {
            return self.asked(stream, proxy).await;
        };
        let name = ServerName::try_from(proxy.host.name().to_owned())
            .map_err(|_| unreachable(proxy, "no certificate can have its name".to_owned()))?;
        let shaking =
            timeout(self.waits.handshake, TlsConnector::from(Arc::clone(tls)).connect(name, stream));
        let stream = shaking
            .await
            .map_err(|_| silent(proxy, self.waits.handshake))?
            .map_err(|error| unreachable(proxy, Outside::error(&error).into_string()))?;
        self.asked(stream, proxy).await
    }

    /// Connects to the first permitted address of `host` that accepts a connection.
    async fn dial(&self, host: &Host) -> Result<TcpStream, TunnelError> {
        let within = self.waits.connect;
        let timed_out = |what| TunnelError::TimedOut { host: host.to_string(), what, within };
        let dns = |reason: String| TunnelError::Dns { host: host.name().to_owned(), reason };
        let looking = timeout(within, tokio::net::lookup_host((host.name(), host.port()))).await;
        let found = looking.map_err(|_| timed_out("address"))?.map_err(|error| dns(error.to_string()))?;
        let mut last = dns("it has no address".to_owned());
        for address in found {
            let ip = address.ip().to_canonical();
            if !self.addresses.hold(ip) {
                last = TunnelError::Forbidden { host: host.name().to_owned(), address: ip };
                continue;
            }
            last = match timeout(within, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    // Writes are whole messages; small ones must not be delayed.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => failed(host, address, &error, within),
                Err(_) => timed_out("connection"),
            };
        }
        Err(last)
    }

    /// Requests a connection to the host from `proxy` over `stream`.
    async fn asked(
        &self,
        mut stream: impl Stream + 'static,
        proxy: &Proxy,
    ) -> Result<Box<dyn Stream>, TunnelError> {
        let host = self.host;
        let mut request = format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n");
        if let Some(login) = basic(proxy) {
            request.push_str(&format!("Proxy-Authorization: Basic {login}\r\n"));
        }
        request.push_str("\r\n");
        let exchange = async {
            stream.write_all(request.as_bytes()).await?;
            stream.flush().await?;
            // Bytes after the headers are the server's greeting: the reader keeps them.
            let mut stream = BufReader::new(stream);
            let head = head(&mut stream).await?;
            Ok::<_, io::Error>((stream, head))
        };
        let answered =
            timeout(self.waits.answer, exchange).await.map_err(|_| silent(proxy, self.waits.answer))?;
        let (stream, head) =
            answered.map_err(|error| unreachable(proxy, Outside::error(&error).into_string()))?;
        verdict(&head, proxy)?;
        Ok(Box::new(stream))
    }
}

fn unreachable(proxy: &Proxy, reason: String) -> ProxyError {
    ProxyError::Unreachable { proxy: proxy.host.to_string(), reason }
}

fn silent(proxy: &Proxy, within: Duration) -> ProxyError {
    ProxyError::Silent { proxy: proxy.host.to_string(), within }
}

fn failed(host: &Host, address: SocketAddr, error: &io::Error, within: Duration) -> TunnelError {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => TunnelError::Refused(address),
        io::ErrorKind::TimedOut => {
            TunnelError::TimedOut { host: host.to_string(), what: "connection", within }
        }
        _ => TunnelError::Unreachable { host: host.to_string(), reason: error.to_string() },
    }
}

/// Returns the login in base64, as it is sent.
fn basic(proxy: &Proxy) -> Option<String> {
    proxy.login.as_ref().map(|(user, password)| go::base64::encode(format!("{user}:{password}")))
}

/// Reads the lines of a response up to the empty one, at most [`MAX_HEAD`] bytes.
async fn head(stream: &mut BufReader<impl Stream>) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut bounded = stream.take(MAX_HEAD);
    loop {
        let before = head.len();
        bounded.read_until(b'\n', &mut head).await?;
        let line = head.get(before..).unwrap_or_default();
        match line {
            b"\r\n" | b"\n" => return Ok(head),
            line if line.ends_with(b"\n") => {}
            _ => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the answer broke off")),
        }
    }
}

fn verdict(head: &[u8], proxy: &Proxy) -> Result<(), ProxyError> {
    let named = || proxy.host.to_string();
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.trim().splitn(3, ' ');
    let version = words.next().unwrap_or_default();
    let code = words.next().and_then(|code| code.parse::<u16>().ok());
    match code.filter(|_| version.starts_with("HTTP/1.")) {
        None => Err(ProxyError::NotHttp { proxy: named() }),
        Some(200..300) => Ok(()),
        Some(407) => Err(ProxyError::Login { proxy: named() }),
        Some(code) => {
            let login = basic(proxy).unwrap_or_default();
            let words = Outside::of(words.next().unwrap_or_default(), &Secrets::of([login.as_str()]));
            Err(ProxyError::Refused { proxy: named(), code, words })
        }
    }
}
