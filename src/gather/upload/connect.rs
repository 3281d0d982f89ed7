//! Connections to the service: only to addresses that uploads may go to, looked at after each lookup of a name and connected to as they
//! were looked at; with bounded waits.
//!
//! Whoever may configure an upload, or answers for a name, could otherwise have the token and an archive sent to what only this
//! machine reaches: metadata services, other Pods, itself.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// For the lookup and all addresses that it finds.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// For TLS, once there is a connection.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Addresses that uploads may go to although they are not public: a network, or one address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Reach {
    base: IpAddr,
    prefix: u32,
}

#[derive(Debug, thiserror::Error)]
#[error("it is an address or a network such as 10.0.0.0/8")]
pub struct ParseReachError;

impl FromStr for Reach {
    type Err = ParseReachError;

    fn from_str(text: &str) -> Result<Self, ParseReachError> {
        let (base, prefix) = text.split_once('/').map_or((text, None), |(base, prefix)| (base, Some(prefix)));
        let base: IpAddr = base.parse().map_err(|_| ParseReachError)?;
        let width = if base.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Ok(width), str::parse).map_err(|_| ParseReachError)?;
        if prefix > width { Err(ParseReachError) } else { Ok(Self { base, prefix }) }
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.prefix)
    }
}

impl Reach {
    fn contains(self, address: IpAddr) -> bool {
        let leading = |bits: u128, width: u32| bits.checked_shr(width - self.prefix).unwrap_or(0);
        match (self.base, address) {
            (IpAddr::V4(base), IpAddr::V4(address)) => {
                leading(base.to_bits().into(), 32) == leading(address.to_bits().into(), 32)
            }
            (IpAddr::V6(base), IpAddr::V6(address)) => {
                leading(base.to_bits(), 128) == leading(address.to_bits(), 128)
            }
            _ => false,
        }
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error(
        "`{host}` is at {address}, which is not public; if uploads are to go there, give --allow-upload-to {address}"
    )]
    Forbidden { host: String, address: IpAddr },
    #[error("cannot look up `{host}`: {source}")]
    Lookup {
        host: String,
        #[source]
        source: io::Error,
    },
    #[error("`{0}` has no address")]
    Nowhere(String),
    #[error("no certificate can have the name `{0}`")]
    Name(String),
    #[error("no {what} within {} s", within.as_secs())]
    Slow { what: &'static str, within: Duration },
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Connects to the host of `uri`, under TLS if that is https.
pub(super) async fn open(
    uri: Uri,
    tls: Arc<ClientConfig>,
    allowed: Arc<[Reach]>,
) -> Result<Stream, ConnectError> {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let secure = uri.scheme_str() == Some("https");
    let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
    let connected = timeout(CONNECT_TIMEOUT, dial(&host, port, &allowed)).await;
    let tcp = connected.map_err(|_| ConnectError::Slow { what: "connection", within: CONNECT_TIMEOUT })??;
    let tcp = TokioIo::new(tcp);
    if !secure {
        return Ok(MaybeHttpsStream::Http(tcp));
    }
    let name = ServerName::try_from(host.clone()).map_err(|_| ConnectError::Name(host))?;
    let shaken = timeout(HANDSHAKE_TIMEOUT, TlsConnector::from(tls).connect(name, TokioIo::new(tcp))).await;
    let stream =
        shaken.map_err(|_| ConnectError::Slow { what: "TLS handshake", within: HANDSHAKE_TIMEOUT })??;
    Ok(MaybeHttpsStream::Https(TokioIo::new(stream)))
}

async fn dial(host: &str, port: u16, allowed: &[Reach]) -> Result<TcpStream, ConnectError> {
    let found = lookup_host((host, port)).await;
    let found = found.map_err(|source| ConnectError::Lookup { host: host.to_owned(), source })?;
    let mut last = ConnectError::Nowhere(host.to_owned());
    for address in found {
        let ip = address.ip().to_canonical();
        if !is_public(ip) && !allowed.iter().any(|reach| reach.contains(ip)) {
            last = ConnectError::Forbidden { host: host.to_owned(), address: ip };
            continue;
        }
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error.into(),
        }
    }
    Err(last)
}

/// Whether an address is one of the public internet.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let kept_back = match address.octets() {
        // This network, carriers' own, protocol assignments, benchmarks, reserved and broadcast.
        [0, ..] | [192, 0, 0, _] | [198, 18 | 19, ..] | [240..=255, ..] => true,
        [100, second, ..] => (64..128).contains(&second),
        _ => false,
    };
    !(kept_back
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast())
}

/// An address that leads to one of IPv4 is as public as that.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let of = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => is_public_v4(of(high, low)),
        // Global unicast, but for Teredo, which leads to an address that is written otherwise.
        [0x2001, 0, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_public() {
        for text in
            ["8.8.8.8", "100.63.0.1", "100.128.0.1", "2606:4700::1111", "64:ff9b::808:808", "2002:808:808::1"]
        {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
        for text in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "fe80::1",
            "fec0::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::",
            "2001:0:1::1",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
        let mapped: IpAddr = "::ffff:169.254.169.254".parse().unwrap();
        assert!(!is_public(mapped.to_canonical()));
    }

    #[test]
    fn what_is_allowed() {
        let reach = |text: &str| text.parse::<Reach>().unwrap();
        let holds = |network: &str, address: &str| reach(network).contains(address.parse().unwrap());
        assert!(holds("10.0.0.0/8", "10.255.0.1") && !holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("127.0.0.1", "127.0.0.1") && !holds("127.0.0.1", "127.0.0.2"));
        assert!(holds("fd00::/8", "fdff::1") && !holds("fd00::/8", "10.0.0.1"));
        assert!(holds("0.0.0.0/0", "192.168.0.1") && !holds("0.0.0.0/0", "::1"));
        assert_eq!(reach("10.0.0.0/8").to_string(), "10.0.0.0/8");
        for text in ["", "10.0.0.0/33", "::/129", "a/8", "10.0.0.0/-1", "10.0.0.0/"] {
            assert!(text.parse::<Reach>().is_err(), "{text}");
        }
    }
}
