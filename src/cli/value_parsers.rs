//! Parsers of addresses and names on the command line, with their error messages.

use std::net::SocketAddr;

use admit_apimachinery::names;
use jiff::SignedDuration;

/// An IP address and a port. Names of hosts are not looked up: a server listens where it was told to.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let example = "an IP address and a port are needed, such as 127.0.0.1:8443; port 0 takes a free one";
    text.parse().map_err(|_| example.to_owned())
}

/// A length of time that is more than none.
pub(super) fn duration(text: &str) -> Result<SignedDuration, String> {
    let parsed: Option<SignedDuration> = text.parse().ok();
    parsed.filter(SignedDuration::is_positive).ok_or_else(|| "it is written as 2h, 30m or 1h30m".to_owned())
}

/// How long work may take. None at all would decide nothing: whoever wants no limit is told how to say so.
pub(super) fn limit(text: &str) -> Result<SignedDuration, String> {
    let parsed: Option<SignedDuration> = text.parse().ok();
    match parsed {
        Some(time) if time.is_zero() => {
            Err("nothing can be decided in no time; name a time that is enough, such as 60s, or one \
                                             that is never over, such as 1000h"
                .to_owned())
        }
        Some(time) if time.is_positive() => Ok(time),
        Some(_) | None => Err("it is written as 60s, 30m or 1h30m".to_owned()),
    }
}

/// A name that is a part of a domain name, as those of Services and Namespaces are.
pub(super) fn label(text: &str) -> Result<String, String> {
    if !names::dns1123_label(text).is_empty() {
        return Err("it is made of lower case letters, digits and dashes in between, 63 at most".to_owned());
    }
    Ok(text.to_owned())
}

/// A name of most other objects: labels with dots between them.
pub(super) fn name(text: &str) -> Result<String, String> {
    if !names::dns1123_subdomain(text).is_empty() {
        let form = "it is made of lower case letters and digits, dashes and dots in between, 253 at most";
        return Err(form.to_owned());
    }
    Ok(text.to_owned())
}

/// An object of a namespace, as NAMESPACE/NAME.
pub(super) fn object(text: &str) -> Result<(String, String), String> {
    let needed = "a namespace and a name are needed, such as openshift-monitoring/prometheus-k8s";
    let (namespace, of) = text.split_once('/').ok_or(needed)?;
    Ok((label(namespace)?, name(of)?))
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
            assert!(limit(text).unwrap_err().contains("such as 1000h"), "{text}");
        }
        for text in ["", "-5s", "soon", "60"] {
            assert_eq!(limit(text).unwrap_err(), "it is written as 60s, 30m or 1h30m", "{text}");
        }
    }

    #[test]
    fn addresses_are_of_numbers() {
        assert!(address("[::1]:0").is_ok());
        for text in ["localhost:6443", ":6443", "6443", "127.0.0.1", "127.0.0.1:65536", ""] {
            assert!(address(text).unwrap_err().contains("such as 127.0.0.1:8443"), "{text}");
        }
    }
}
