//! One HTTP exchange over TLS: limits on time and on the size of an answer, no redirects, no connection kept.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::Connect;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tower::util::BoxCloneSyncService;

use super::connect::{self, ConnectError, Reach};
use crate::outside::{self, MAX_PEM};
use crate::telemetry::with_causes;

/// What a request carries, made while it is sent.
pub type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// Anything that turns a request into an answer read to its end.
pub type Transport = BoxCloneSyncService<Request<Body>, Response<Bytes>, TransportError>;

/// Why there is no answer.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
pub enum TransportError {
    #[error("cannot build the request: {0}")]
    Request(String),
    #[error("cannot reach the service: {0}")]
    Connect(String),
    #[error("the service is not reached: {0}")]
    Forbidden(String),
    #[error("no answer within {} s", .0.as_secs())]
    Timeout(Duration),
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the answer broke off: {0}")]
    Broken(String),
}

impl TransportError {
    /// Whether another attempt makes sense.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Request(_) | Self::TooLarge(_) | Self::Forbidden(_) => false,
            Self::Connect(_) | Self::Timeout(_) | Self::Broken(_) => true,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TransportSetupError {
    #[error("cannot use `{}`: {reason}; give the certificates of the authority, PEM", path.display())]
    Ca { path: PathBuf, reason: String },
    #[error("no CA certificate is known: the system has none and none was given")]
    NoRoots,
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

const EXCHANGE_TIMEOUT: Duration = Duration::from_mins(5);
/// Reports of a large cluster stay well below this.
const MAX_ANSWER: usize = 8 * 1024 * 1024;

/// A transport that trusts the system's CAs and those of the PEM file `extra_ca`, and connects to public addresses and those that
/// are `allowed`.
///
/// # Errors
/// [`TransportSetupError`] when the file holds no certificate or no CA is known at all.
pub fn https(extra_ca: Option<&Path>, allowed: &[Reach]) -> Result<Transport, TransportSetupError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots(extra_ca)?)
        .with_no_client_auth();
    let (config, allowed): (_, Arc<[Reach]>) = (Arc::new(config), allowed.into());
    let connector =
        tower::service_fn(move |uri| Box::pin(connect::open(uri, Arc::clone(&config), Arc::clone(&allowed))));
    let client = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector);
    Ok(BoxCloneSyncService::new(tower::service_fn(move |request| {
        let client = client.clone();
        async move { exchange(&client, request).await }
    })))
}

async fn exchange(
    client: &Client<impl Connect + Clone + Send + Sync + 'static, Body>,
    request: Request<Body>,
) -> Result<Response<Bytes>, TransportError> {
    let whole = async {
        let answer = client.request(request).await.map_err(|error| unreached(&error))?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, MAX_ANSWER).collect().await;
        let body = body.map_err(|error| match error.downcast_ref::<LengthLimitError>() {
            Some(_) => TransportError::TooLarge(MAX_ANSWER),
            None => TransportError::Broken(error.to_string()),
        })?;
        Ok(Response::from_parts(head, body.to_bytes()))
    };
    let timeout = TransportError::Timeout(EXCHANGE_TIMEOUT);
    tokio::time::timeout(EXCHANGE_TIMEOUT, whole).await.unwrap_or(Err(timeout))
}

fn unreached(error: &(dyn Error + 'static)) -> TransportError {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(forbidden @ ConnectError::Forbidden { .. }) = cause.downcast_ref() {
            return TransportError::Forbidden(forbidden.to_string());
        }
        next = cause.source();
    }
    TransportError::Connect(with_causes(error))
}

pub(super) fn roots(extra_ca: Option<&Path>) -> Result<RootCertStore, TransportSetupError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = extra_ca {
        let unreadable = |reason: String| TransportSetupError::Ca { path: path.to_owned(), reason };
        let (text, _) = outside::bytes(path, MAX_PEM).map_err(|error| unreadable(error.to_string()))?;
        let certificates = CertificateDer::pem_slice_iter(&text)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| unreadable(error.to_string()))?;
        let (added, _) = roots.add_parsable_certificates(certificates);
        if added == 0 {
            return Err(unreadable("it holds no certificate".to_owned()));
        }
    }
    if roots.is_empty() { Err(TransportSetupError::NoRoots) } else { Ok(roots) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_is_a_file_of_bounded_size() {
        let refusal = |path: &Path| roots(Some(path)).unwrap_err().to_string();
        assert!(refusal(Path::new("/dev/zero")).contains("a device"), "{}", refusal(Path::new("/dev/zero")));
        let folder = tempfile::tempdir().unwrap();
        let large = folder.path().join("ca.pem");
        std::fs::File::create(&large).unwrap().set_len(MAX_PEM + 1).unwrap();
        assert!(refusal(&large).contains("more than 1048576 bytes"), "{}", refusal(&large));
        std::fs::write(&large, "no certificate").unwrap();
        assert!(refusal(&large).contains("it holds no certificate"), "{}", refusal(&large));
    }
}
