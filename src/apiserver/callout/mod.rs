//! Calls webhooks: resolves the address, verifies the certificate, sends one request and reads its response, with the
//! error messages of kube-apiserver's client. What is asked, and what a response means, is up to admission and
//! conversion.

mod client;
mod credentials;
mod delegate;
mod failure;
mod packed;
mod redirect;
mod service;
mod trust;

use std::time::Duration;

use admit_apimachinery::go::{self, url};
use admit_policy::webhook::{Client, Service};

pub(crate) use client::post;
pub(crate) use credentials::Credentials;
pub(crate) use delegate::{Backend, introduce};
pub(crate) use failure::{CalloutError, NotSent};
pub(crate) use service::SERVICE_NAME;
use trust::Trust;
pub(crate) use trust::TrustError;

/// A webhook that is to be called.
#[derive(Clone, Debug)]
pub(crate) struct Callee {
    pub(crate) client: Client,
    /// PEM; empty when no authority is named.
    pub(crate) ca_bundle: Vec<u8>,
    pub(crate) timeout: Duration,
    pub(crate) credentials: Credentials,
    /// Whether any certificate is taken.
    pub(crate) is_insecure: bool,
}

impl Callee {
    /// Creates a callee; `bundle` is in base64, as it is stored.
    pub(crate) fn new(client: Client, bundle: &str, timeout: Duration) -> Self {
        let ca_bundle = go::json::bytes(bundle).unwrap_or_default();
        Self { client, ca_bundle, timeout, credentials: Credentials::default(), is_insecure: false }
    }

    /// Checks that its CA bundle and credentials can be read.
    ///
    /// # Errors
    /// If one of them is invalid.
    pub(crate) fn check(&self) -> Result<(), TrustError> {
        trust::client_config(&self.trust(), &self.credentials).map(drop)
    }

    fn trust(&self) -> Trust<'_> {
        if self.is_insecure { Trust::Anything } else { Trust::Bundle(&self.ca_bundle) }
    }

    /// Returns the URL as error messages name it.
    pub(crate) fn url(&self) -> String {
        let (origin, path) = match &self.client {
            Client::Url(text) => match url::parse(text) {
                Ok(url) => (format!("{}://{}", url.scheme, url.host()), url.escaped_path()),
                // Validation refuses such URLs.
                Err(_) => (text.clone(), String::new()),
            },
            Client::Service(Service { namespace, name, port, path }) => {
                (format!("https://{name}.{namespace}.svc:{port}"), path.clone())
            }
        };
        format!("{origin}{}?timeout={}s", joined(&path), self.timeout.as_secs())
    }

    /// Returns the error for a call that took too long.
    pub(crate) fn timed_out(&self) -> CalloutError {
        CalloutError::TimedOut { url: self.url() }
    }
}

/// Checks that credentials can be read.
///
/// # Errors
/// If one of them is invalid.
pub(crate) fn check(credentials: &Credentials) -> Result<(), TrustError> {
    trust::client_config(&Trust::Bundle(&[]), credentials).map(drop)
}

/// Normalizes a path as client-go does: one leading slash, without empty segments, `.`, `..` and trailing slash.
fn joined(path: &str) -> String {
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    format!("/{}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_called_as_client_go_joins_them() {
        let called = |url: &str| Callee::new(Client::Url(url.to_owned()), "", Duration::from_secs(10)).url();
        for (url, path) in [
            ("https://127.0.0.1:9443//validate-v1-pod", "/validate-v1-pod"),
            ("https://127.0.0.1:9443/a//b/./../c/", "/a/c"),
            ("https://127.0.0.1:9443/..", "/"),
            ("https://127.0.0.1:9443", "/"),
            ("https://127.0.0.1:9443/a?", "/a"),
            ("https://127.0.0.1:9443/a%20b", "/a%20b"),
        ] {
            assert_eq!(called(url), format!("https://127.0.0.1:9443{path}?timeout=10s"), "{url}");
        }
        let service = |path: &str| {
            let (name, namespace) = ("hook".to_owned(), "demo".to_owned());
            let service = Service { name, namespace, path: path.to_owned(), port: 443 };
            Callee::new(Client::Service(service), "", Duration::from_secs(1)).url()
        };
        assert_eq!(service(""), "https://hook.demo.svc:443/?timeout=1s");
        assert_eq!(service("/convert/"), "https://hook.demo.svc:443/convert?timeout=1s");
    }
}
