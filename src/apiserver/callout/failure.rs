//! Builds the error messages of failed calls (connections, certificates, error responses), in the words of Go's HTTP client and
//! client-go.

use std::io;
use std::net::{IpAddr, SocketAddr};

use admit_apimachinery::go;
use http::StatusCode;
use jiff::Timestamp;
use rustls::pki_types::{InvalidDnsNameError, UnixTime};
use rustls::{CertificateError, OtherError};
use serde_json::Value;
use thiserror::Error;

use super::service::Unresolved;
use super::trust::TrustError;

/// How many bytes of a response that is not a Status are shown.
const SHOWN: usize = 2048;

/// Says why a webhook gave no usable response.
#[derive(Debug, Error)]
pub(crate) enum CalloutError {
    #[error("Post \"{url}\": {why}")]
    NotSent { url: String, why: Box<NotSent> },
    #[error("{0}")]
    BrokenOff(Box<NotSent>),
    #[error("Post \"{url}\": context deadline exceeded")]
    TimedOut { url: String },
    /// The status is not a success, or the body is empty; the reason is in the words of client-go.
    #[error("{why}")]
    Unsuccessful { status: u16, why: String },
}

impl CalloutError {
    /// Returns whether a retry may succeed, as client-go decides it.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::TimedOut { .. } => false,
            Self::Unsuccessful { status, .. } => matches!(status, 429 | 500 | 504),
            Self::NotSent { why, .. } | Self::BrokenOff(why) => {
                let mut error: Option<&dyn std::error::Error> = Some(&**why);
                while let Some(known) = error {
                    let io = known.downcast_ref::<io::Error>();
                    if io.is_some_and(|io| io.kind() == io::ErrorKind::ConnectionReset) {
                        return true;
                    }
                    error = known.source();
                }
                false
            }
        }
    }
}

/// Says what failed before there was a response.
#[derive(Debug, Error)]
pub(crate) enum NotSent {
    #[error("invalid URL: {0}")]
    Url(#[from] http::uri::InvalidUri),
    #[error("{0}")]
    Service(#[from] Unresolved),
    #[error("dial tcp: lookup {0}: no such host")]
    UnknownHost(String),
    #[error("{}", dialled(.at, .source))]
    Dial { at: SocketAddr, source: io::Error },
    #[error("{0}")]
    Trust(#[from] TrustError),
    #[error("{0}")]
    ServerName(#[from] InvalidDnsNameError),
    #[error("{}", unsecured(.host, .source))]
    Handshake { host: String, source: io::Error },
    #[error("{0}")]
    Request(#[from] http::Error),
    #[error("stopped after 10 redirects")]
    TooManyRedirects,
    /// kube-apiserver would follow: whoever reads along would learn what is asked, and could answer.
    #[error("stopped at a redirect to a URL without TLS")]
    LeavesTls,
    #[error("{}", broken(.0))]
    Http(#[from] hyper::Error),
    #[error("{}", broken_off(.0.as_ref()))]
    Answer(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Describes why there is no response.
fn broken(error: &hyper::Error) -> String {
    if error.is_incomplete_message() { "EOF".to_owned() } else { error.to_string() }
}

/// Describes why the response ended early.
fn broken_off(error: &(dyn std::error::Error + Send + Sync + 'static)) -> String {
    // The client reports that the connection ended, Go that the text did.
    let ended = error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_incomplete_message)
        || error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_body_write_aborted)
        || error.to_string() == "error reading a body from connection";
    let why = if ended { "unexpected EOF".to_owned() } else { error.to_string() };
    format!("unexpected error when reading response body. Please retry. Original error: {why}")
}

/// Describes why the connection to `at` failed.
fn dialled(at: &SocketAddr, error: &io::Error) -> String {
    let why = match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::HostUnreachable => "no route to host".to_owned(),
        io::ErrorKind::NetworkUnreachable => "network is unreachable".to_owned(),
        io::ErrorKind::TimedOut => "connection timed out".to_owned(),
        _ => error.to_string(),
    };
    format!("dial tcp {at}: connect: {why}")
}

/// Describes why the TLS connection to `host` failed.
fn unsecured(host: &str, error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return "EOF".to_owned();
    }
    let cause = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let why = match cause {
        Some(rustls::Error::InvalidCertificate(why)) => unverified(host, why),
        Some(rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)) => {
            return "tls: first record does not look like a TLS handshake".to_owned();
        }
        _ => None,
    };
    why.map_or_else(
        || format!("tls: {error}"),
        |why| format!("tls: failed to verify certificate: x509: {why}"),
    )
}

fn unverified(host: &str, why: &CertificateError) -> Option<String> {
    let lifetime = |now: &UnixTime, word: &str, bound: &UnixTime| {
        let time = |time: &UnixTime| {
            i64::try_from(time.as_secs()).ok().and_then(|seconds| Timestamp::from_second(seconds).ok())
        };
        let (now, bound) = (time(now)?, time(bound)?);
        Some(format!("certificate has expired or is not yet valid: current time {now} is {word} {bound}"))
    };
    match why {
        CertificateError::UnknownIssuer => Some("certificate signed by unknown authority".to_owned()),
        // Without any authority this is asked of certificates first.
        CertificateError::Other(OtherError(why))
            if why.downcast_ref() == Some(&webpki::Error::CaUsedAsEndEntity) =>
        {
            Some("certificate signed by unknown authority".to_owned())
        }
        CertificateError::ExpiredContext { time, not_after } => lifetime(time, "after", not_after),
        CertificateError::NotValidYetContext { time, not_before } => lifetime(time, "before", not_before),
        CertificateError::NotValidForNameContext { presented, .. } => Some(misnamed(host, presented)),
        _ => None,
    }
}

/// Describes a name mismatch; `presented` are names as the verifier shows them: `DnsName("a")`, `IpAddress(127.0.0.1)`.
fn misnamed(host: &str, presented: &[String]) -> String {
    let of = |kind: &str| {
        let names = presented.iter().filter_map(|name| name.strip_prefix(kind)?.strip_suffix(')'));
        names.map(|name| name.trim_matches(['(', '"'])).collect::<Vec<_>>().join(", ")
    };
    let is_address = host.parse::<IpAddr>().is_ok();
    match of(if is_address { "IpAddress" } else { "DnsName" }).as_str() {
        "" if is_address => {
            format!("cannot validate certificate for {host} because it doesn't contain any IP SANs")
        }
        "" => format!("certificate is not valid for any names, but wanted to match {host}"),
        names => format!("certificate is valid for {names}, not {host}"),
    }
}

/// Describes why a response is a failure; None if it is a success with content.
pub(super) fn unsuccessful(status: StatusCode, content_type: Option<&str>, body: &[u8]) -> Option<String> {
    if (200..=206).contains(&status.as_u16()) {
        let kind = content_type.unwrap_or("application/json");
        return body.is_empty().then(|| {
            format!("0-length response with status code: {} and content type: {kind}", status.as_u16())
        });
    }
    // A Status says more than the code.
    let told = serde_json::from_slice::<Value>(body).ok().filter(|told| {
        told.get("kind").is_some_and(|kind| kind == "Status")
            && told.get("apiVersion").is_some_and(|version| version == "v1")
    });
    if let Some(told) = told {
        return Some(told.get("message").and_then(Value::as_str).unwrap_or_default().to_owned());
    }
    let text = String::from_utf8_lossy(body.get(..SHOWN).unwrap_or(body)).trim().to_owned();
    let text =
        if content_type.is_none_or(|kind| kind.starts_with("text/")) { text } else { "unknown".to_owned() };
    Some(match status.as_u16() {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 | 415 => text,
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        406 if text.is_empty() || text == "unknown" => {
            "the server was unable to respond with a content type that the client supports".to_owned()
        }
        406 => text,
        409 => "the server reported a conflict".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => "the server was unable to return a response in the time allotted, but may still be processing the \
                request"
            .to_owned(),
        500.. => {
            format!("an error on the server ({}) has prevented the request from succeeding", go::quote(&text))
        }
        code => format!("the server responded with the status code {code} but did not return more information"),
    })
}
