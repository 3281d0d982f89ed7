//! A connection to a server: straight, or through a proxy that is asked to `CONNECT`, in the clear or under TLS.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::super::TransportSetupError;
use super::super::transport::roots;
use super::{Host, Patience, Proxy, ProxyError, Sftp, SftpError};
use crate::telemetry::{Outside, Secrets};

/// Bytes of a proxy's answer up to the empty line.
const MAX_HEAD: u64 = 16 * 1024;

/// Anything that carries bytes both ways.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Connects to the host of `sftp`, by its proxy where it has one.
pub(super) async fn open(sftp: &Sftp) -> Result<Box<dyn Stream>, SftpError> {
    let Some(proxy) = &sftp.proxy else {
        return Ok(Box::new(dial(&sftp.host, sftp.patience.connect).await?));
    };
    let stream = dial(&proxy.host, sftp.patience.connect).await.map_err(|error| ProxyError::Unreachable {
        proxy: proxy.host.to_string(),
        reason: error.to_string(),
    })?;
    if !proxy.tls {
        return asked(stream, proxy, sftp).await;
    }
    let connector = TlsConnector::from(Arc::new(tls(sftp.proxy_ca.as_deref())?));
    let unreachable = |reason: String| ProxyError::Unreachable { proxy: proxy.host.to_string(), reason };
    let name = ServerName::try_from(proxy.host.name().to_owned())
        .map_err(|_| unreachable("no certificate can have its name".to_owned()))?;
    let shaking = timeout(sftp.patience.handshake, connector.connect(name, stream)).await;
    let stream = shaking
        .map_err(|_| silent(proxy, sftp.patience))?
        .map_err(|error| unreachable(Outside::error(&error).into_string()))?;
    asked(stream, proxy, sftp).await
}

fn silent(proxy: &Proxy, patience: Patience) -> ProxyError {
    ProxyError::Silent { proxy: proxy.host.to_string(), within: patience.handshake }
}

fn tls(ca: Option<&Path>) -> Result<ClientConfig, TransportSetupError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots(ca)?)
        .with_no_client_auth())
}

/// Connects to the first address of `host` that takes a connection.
async fn dial(host: &Host, within: Duration) -> Result<TcpStream, SftpError> {
    let timed_out = |what| SftpError::TimedOut { host: host.to_string(), what, within };
    let dns = |reason: String| SftpError::Dns { host: host.name().to_owned(), reason };
    let looking = timeout(within, tokio::net::lookup_host((host.name(), host.port()))).await;
    let found = looking.map_err(|_| timed_out("answer of DNS"))?.map_err(|error| dns(error.to_string()))?;
    let mut last = dns("no address".to_owned());
    for address in found {
        last = match timeout(within, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // Packets are written whole; what is small is an answer that somebody waits for.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => failed(host, address, &error, within),
            Err(_) => timed_out("connection"),
        };
    }
    Err(last)
}

fn failed(host: &Host, address: SocketAddr, error: &io::Error, within: Duration) -> SftpError {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => SftpError::ConnectionRefused(address.to_string()),
        io::ErrorKind::TimedOut => SftpError::TimedOut { host: host.to_string(), what: "connection", within },
        _ => SftpError::Unreachable { host: host.to_string(), reason: error.to_string() },
    }
}

/// Asks `proxy`, at the other end of `stream`, for a connection to the host.
async fn asked(
    mut stream: impl Stream + 'static,
    proxy: &Proxy,
    sftp: &Sftp,
) -> Result<Box<dyn Stream>, SftpError> {
    let host = &sftp.host;
    let mut request = format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n");
    if let Some((user, password)) = &proxy.login {
        let login = STANDARD.encode(format!("{user}:{password}"));
        request.push_str(&format!("Proxy-Authorization: Basic {login}\r\n"));
    }
    request.push_str("\r\n");
    let exchange = async {
        stream.write_all(request.as_bytes()).await?;
        stream.flush().await?;
        // What stands behind the head is the server's greeting already: the reader keeps it.
        let mut stream = BufReader::new(stream);
        let head = head(&mut stream).await?;
        Ok::<_, io::Error>((stream, head))
    };
    let (stream, head) = match timeout(sftp.patience.handshake, exchange).await {
        Ok(Ok(answered)) => answered,
        Ok(Err(error)) => {
            let reason = Outside::error(&error).into_string();
            return Err(ProxyError::Unreachable { proxy: proxy.host.to_string(), reason }.into());
        }
        Err(_) => return Err(silent(proxy, sftp.patience).into()),
    };
    verdict(&head, proxy)?;
    Ok(Box::new(stream))
}

/// The lines of an answer up to the empty one, at most [`MAX_HEAD`] bytes of them.
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
            let secret = proxy.login.as_ref().map_or("", |(_, password)| password);
            let words = Outside::of(words.next().unwrap_or_default(), &Secrets::of([secret]));
            Err(ProxyError::Refused { proxy: named(), code, words })
        }
    }
}
