//! Calls webhooks: resolves the address, verifies the certificate, sends one request and reads its response, with the
//! error messages of kube-apiserver's client. What is asked, and what a response means, is up to admission and
//! conversion.

mod client;
mod failure;
mod service;
mod trust;

use std::time::Duration;

use admit_apimachinery::go;
use admit_policy::webhook::{Client, Service};

pub(crate) use client::post;
pub(crate) use failure::CalloutError;

/// A webhook that is to be called.
#[derive(Clone, Debug)]
pub(crate) struct Callee {
    pub(crate) client: Client,
    /// PEM; empty when no authority is named.
    pub(crate) ca_bundle: Vec<u8>,
    pub(crate) timeout: Duration,
}

impl Callee {
    /// `bundle` is in base64, as it is stored.
    pub(crate) fn new(client: Client, bundle: &str, timeout: Duration) -> Self {
        Self { client, ca_bundle: go::json::bytes(bundle).unwrap_or_default(), timeout }
    }

    /// The URL as error messages name it.
    pub(crate) fn url(&self) -> String {
        let seconds = self.timeout.as_secs();
        match &self.client {
            Client::Url(url) if url.contains('?') => format!("{url}&timeout={seconds}s"),
            Client::Url(url) => format!("{url}?timeout={seconds}s"),
            Client::Service(Service { namespace, name, port, path }) => {
                let slash = if path.starts_with('/') { "" } else { "/" };
                format!("https://{name}.{namespace}.svc:{port}{slash}{path}?timeout={seconds}s")
            }
        }
    }

    /// The error for a call that took too long.
    pub(crate) fn timed_out(&self) -> CalloutError {
        CalloutError::TimedOut { url: self.url() }
    }
}
