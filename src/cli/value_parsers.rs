//! Parses values on the command line, with their error messages.

use std::net::SocketAddr;

use admit_apimachinery::names;
use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

/// Why a value is rejected: the message says what is needed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum ValueError {
    #[error("an IP address and a port are needed, such as 127.0.0.1:8443; port 0 takes a free one")]
    Address,
    #[error("it is written as 2h, 30m or 1h30m")]
    Duration,
    #[error("it is written as 60s, 30m or 1h30m")]
    Limit,
    #[error(
        "nothing can be decided in no time; name a time that is enough, such as 60s, or one that is never over, such as 1000h"
    )]
    NoTime,
    #[error("it is written as 2026-01-02T03:04:05Z")]
    Time,
    #[error("it is made of lower case letters, digits and dashes in between, 63 at most")]
    Label,
    #[error("it is made of lower case letters and digits, dashes and dots in between, 253 at most")]
    Name,
    #[error("a namespace and a name are needed, such as openshift-monitoring/prometheus-k8s")]
    Object,
    #[error("must be KEY=VALUE")]
    Pair,
    #[error("it is made of letters, digits, dashes, dots and underscores, and begins with no dot")]
    Folder,
    #[error("it is a whole path without a colon, of 1024 characters at most")]
    Mount,
}

/// Parses an IP address and a port. Host names are not resolved: a server listens on exactly one address.
pub(super) fn address(text: &str) -> Result<SocketAddr, ValueError> {
    text.parse().map_err(|_| ValueError::Address)
}

/// Parses a duration greater than zero.
pub(super) fn duration(text: &str) -> Result<SignedDuration, ValueError> {
    let parsed: Option<SignedDuration> = text.parse().ok();
    parsed.filter(SignedDuration::is_positive).ok_or(ValueError::Duration)
}

/// Parses a time limit. Zero would decide nothing, so the error says how to disable the limit.
pub(super) fn limit(text: &str) -> Result<SignedDuration, ValueError> {
    let parsed: Option<SignedDuration> = text.parse().ok();
    match parsed {
        Some(time) if time.is_zero() => Err(ValueError::NoTime),
        Some(time) if time.is_positive() => Ok(time),
        Some(_) | None => Err(ValueError::Limit),
    }
}

/// Parses a DNS label, the form of the names of Services and Namespaces.
pub(super) fn label(text: &str) -> Result<String, ValueError> {
    if !names::dns1123_label(text).is_empty() {
        return Err(ValueError::Label);
    }
    Ok(text.to_owned())
}

/// Parses a DNS subdomain, the form of most other names: labels separated by dots.
pub(super) fn name(text: &str) -> Result<String, ValueError> {
    if !names::dns1123_subdomain(text).is_empty() {
        return Err(ValueError::Name);
    }
    Ok(text.to_owned())
}

/// Parses a namespaced object, as NAMESPACE/NAME.
pub(super) fn object(text: &str) -> Result<(String, String), ValueError> {
    let (namespace, of) = text.split_once('/').ok_or(ValueError::Object)?;
    Ok((label(namespace)?, name(of)?))
}

/// Parses a key and its value, as KEY=VALUE.
pub(super) fn pair(text: &str) -> Result<(String, String), ValueError> {
    let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or(ValueError::Pair)?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Parses a timestamp.
pub(super) fn time(text: &str) -> Result<Timestamp, ValueError> {
    text.parse().map_err(|_| ValueError::Time)
}

/// Parses the name of a folder that is not hidden.
pub(super) fn folder(text: &str) -> Result<String, ValueError> {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let fits = !text.is_empty() && !text.starts_with('.') && text.chars().all(legal);
    fits.then(|| text.to_owned()).ok_or(ValueError::Folder)
}

/// Parses an absolute path where a container can mount a volume.
pub(super) fn mount(text: &str) -> Result<String, ValueError> {
    let fits = text.starts_with('/') && text.len() <= 1024 && !text.contains(':');
    fits.then(|| text.to_owned()).ok_or(ValueError::Mount)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_objects_may_have() {
        let long = "a".repeat(64);
        for (text, is_a_label, is_a_name) in [
            ("a-1", true, true),
            ("10.0.0.1", false, true),
            ("a.b-c", false, true),
            (&long, false, true),
            ("", false, false),
            ("-a", false, false),
            ("a.-b", false, false),
            ("a..b", false, false),
            ("A", false, false),
            ("a b", false, false),
            (&"a.".repeat(127), false, false),
            (&"a".repeat(254), false, false),
        ] {
            assert_eq!((label(text).is_ok(), name(text).is_ok()), (is_a_label, is_a_name), "{text}");
        }
    }

    #[test]
    fn a_limit_of_no_time_is_met_with_its_remedy() {
        assert!(limit("60s").is_ok() && limit("1000h").is_ok());
        for text in ["0s", "0h0m"] {
            assert_eq!(limit(text), Err(ValueError::NoTime), "{text}");
        }
        for text in ["", "-5s", "soon", "60"] {
            assert_eq!(limit(text), Err(ValueError::Limit), "{text}");
        }
    }

    #[test]
    fn addresses_are_of_numbers() {
        assert!(address("[::1]:0").is_ok());
        for text in ["localhost:6443", ":6443", "6443", "127.0.0.1", "127.0.0.1:65536", ""] {
            assert_eq!(address(text), Err(ValueError::Address), "{text}");
        }
    }
}
