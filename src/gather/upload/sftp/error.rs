//! Defines how an upload by SFTP can fail, in words for the owner of the account. No message contains a password: text of a server or
//! a proxy is an [`Outside`].

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::name::NameError;
use crate::gather::tunnel::{ProxyError, TransportSetupError, TunnelError};
use crate::telemetry::Outside;

/// Why a host key is not trusted.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
pub enum HostKeyError {
    #[error(
        "known_hosts has no key of {0}: add the line that `ssh-keyscan` prints for it, once the key is checked with its owner"
    )]
    Unknown(String),
    #[error(
        "the host key of {host} is {presented}, and known_hosts has another: somebody may listen in, or the server has a \
         new key; nothing was sent"
    )]
    Differs { host: String, presented: String },
    #[error(
        "known_hosts, line {line}: the host key of {host}, {presented}, is marked @revoked; nothing was sent"
    )]
    Revoked { line: usize, host: String, presented: String },
    #[error(
        "known_hosts, line {line}: {host} is known by a @cert-authority alone, which is not supported: add the server's own key"
    )]
    CertAuthority { line: usize, host: String },
    #[error("known_hosts, line {line}: {reason}")]
    Line { line: usize, reason: &'static str },
}

#[derive(Debug, thiserror::Error)]
pub enum SftpError {
    #[error("`{0}` is no host: write a name or an address, with `:port` behind it where that is not 22")]
    Host(String),
    #[error(transparent)]
    Name(#[from] NameError),
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    #[error("cannot set up TLS to the proxy: {0}")]
    Tls(#[from] TransportSetupError),
    #[error("DNS resolution failed: {host}: {reason}")]
    Dns { host: String, reason: String },
    #[error("Connection refused: SFTP server is not running or port is blocked ({0})")]
    ConnectionRefused(String),
    #[error("Host unreachable: {host}: {reason}")]
    Unreachable { host: String, reason: String },
    #[error("Connection timed out: {host}: no {what} within {} s", .within.as_secs())]
    TimedOut { host: String, what: &'static str, within: Duration },
    #[error(transparent)]
    HostKey(#[from] HostKeyError),
    #[error("{host} and this program have no algorithm in common: {reason}")]
    Algorithms { host: String, reason: Outside },
    #[error("Authentication failed: username or password is incorrect")]
    Authentication,
    #[error("Authentication failed: the server takes no password, but {0}")]
    NoMethod(String),
    #[error("SFTP subsystem not available on the server")]
    NoSubsystem,
    #[error("the connection to {host} was lost: {reason}")]
    Lost { host: String, reason: Outside },
    #[error("the server does not {doing} `{name}`: {answer}")]
    Refused { doing: &'static str, name: String, answer: Outside },
    #[error(
        "the server takes no more of `{name}` than {sent} of {size} bytes: {answer}; its disk may be full"
    )]
    Full { name: String, sent: u64, size: u64, answer: Outside },
    #[error("`{name}` has {found} bytes on the server instead of {size}: it is not what was sent")]
    Size { name: String, found: u64, size: u64 },
    #[error("cannot read {}: {source}", path.display())]
    Local {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} was changed while it was sent", path.display())]
    Changed { path: PathBuf },
}

impl From<TunnelError> for SftpError {
    fn from(error: TunnelError) -> Self {
        match error {
            TunnelError::Proxy(error) => Self::Proxy(error),
            TunnelError::Dns { host, reason } => Self::Dns { host, reason },
            TunnelError::Refused(address) => Self::ConnectionRefused(address.to_string()),
            TunnelError::Unreachable { host, reason } => Self::Unreachable { host, reason },
            TunnelError::TimedOut { host, what, within } => Self::TimedOut { host, what, within },
            forbidden @ TunnelError::Forbidden { .. } => {
                Self::Unreachable { reason: forbidden.to_string(), host: "the server".to_owned() }
            }
        }
    }
}

impl SftpError {
    /// Whether a later attempt may succeed.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Proxy(error) => error.may_pass(),
            Self::Dns { .. }
            | Self::ConnectionRefused(_)
            | Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::Lost { .. } => true,
            Self::Host(_)
            | Self::Name(_)
            | Self::Tls(_)
            | Self::HostKey(_)
            | Self::Algorithms { .. }
            | Self::Authentication
            | Self::NoMethod(_)
            | Self::NoSubsystem
            | Self::Refused { .. }
            | Self::Full { .. }
            | Self::Size { .. }
            | Self::Local { .. }
            | Self::Changed { .. } => false,
        }
    }
}
