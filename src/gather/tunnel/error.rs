//! Defines why a connection fails. No message contains the login of a proxy: a proxy's own text is an [`Outside`].

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::telemetry::Outside;

/// Why a proxy cannot be used, or refused.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
pub enum ProxyError {
    #[error("the proxy is not given as http://host:port or https://host:port")]
    NotAUrl,
    #[error("proxy {proxy}: {reason}")]
    Unreachable { proxy: String, reason: String },
    #[error("proxy {proxy} answers nothing within {} s", .within.as_secs())]
    Silent { proxy: String, within: Duration },
    #[error("proxy {proxy} wants a login, or another (407): write it as http://user:password@host:port")]
    Login { proxy: String },
    #[error("proxy {proxy} does not connect: {code} {words}")]
    Refused { proxy: String, code: u16, words: Outside },
    #[error("proxy {proxy} does not answer as HTTP has it")]
    NotHttp { proxy: String },
}

impl ProxyError {
    /// Whether a later attempt may succeed.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Silent { .. } => true,
            // The proxy cannot reach the server at the moment.
            Self::Refused { code, .. } => *code >= 500,
            Self::NotAUrl | Self::Login { .. } | Self::NotHttp { .. } => false,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TunnelError {
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    #[error(
        "`{host}` is at {address}, which is not public; if uploads are to go there, give --allow-upload-to {address}"
    )]
    Forbidden { host: String, address: IpAddr },
    #[error("cannot look up `{host}`: {reason}")]
    Dns { host: String, reason: String },
    #[error("Connection refused ({0})")]
    Refused(SocketAddr),
    #[error("cannot reach `{host}`: {reason}")]
    Unreachable { host: String, reason: String },
    #[error("no {what} of {host} within {} s", .within.as_secs())]
    TimedOut { host: String, what: &'static str, within: Duration },
}
