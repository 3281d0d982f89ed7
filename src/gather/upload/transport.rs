//! Performs one HTTP exchange over TLS: limits its time and the size of the response, follows no redirect, keeps no connection.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::Scheme;
use http::{Request, Response, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::Connect;
use hyper_util::rt::TokioExecutor;
use rustls::ClientConfig;
use tower::util::BoxCloneSyncService;

use super::connect::{ConnectError, Ways};
use crate::gather::tunnel::{
    Addresses, Proxies, ProxyError, Reach, TransportSetupError, TunnelError, client_tls,
};
use crate::telemetry::with_causes;

/// The body of a request, produced while it is sent.
pub type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// A service that maps a request to a complete response.
pub type Transport = BoxCloneSyncService<Request<Body>, Response<Bytes>, TransportError>;

/// Why there is no response.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
pub enum TransportError {
    #[error("cannot build the request: {0}")]
    Request(String),
    #[error("cannot reach the service: {0}")]
    Connect(String),
    #[error("the service is not reached: {0}")]
    Forbidden(String),
    #[error("cannot reach the service: {0}")]
    Proxy(ProxyError),
    #[error("no answer within {} s", .0.as_secs())]
    Timeout(Duration),
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the answer broke off: {0}")]
    Broken(String),
}

impl TransportError {
    /// Whether a later attempt may succeed.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Proxy(error) => error.may_pass(),
            Self::Request(_) | Self::TooLarge(_) | Self::Forbidden(_) => false,
            Self::Connect(_) | Self::Timeout(_) | Self::Broken(_) => true,
        }
    }
}

const EXCHANGE_TIMEOUT: Duration = Duration::from_mins(5);
/// The largest response in bytes: reports of large clusters stay well below.
const MAX_ANSWER: usize = 8 * 1024 * 1024;

/// The limits of one exchange.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The time from name resolution to the end of the response.
    pub within: Duration,
    /// The largest response in bytes.
    pub most: usize,
}

/// The settings of all transports of a process: trusted authorities, and permitted addresses.
#[derive(Clone, Debug)]
pub struct Outlet {
    /// None if TLS is not needed.
    tls: Option<Arc<ClientConfig>>,
    proxy_ca: Option<PathBuf>,
    addresses: Addresses,
    bounds: Bounds,
}

impl Outlet {
    /// Trusts the system's CAs and, for the service, those of the PEM file `ca`; for TLS proxies those of `proxy_ca`. Connects
    /// to public addresses and those that are `allowed`.
    ///
    /// # Errors
    /// [`TransportSetupError`] when a file has no certificate or no CA is known at all.
    pub fn new(
        ca: Option<&Path>,
        proxy_ca: Option<&Path>,
        allowed: &[Reach],
    ) -> Result<Self, TransportSetupError> {
        // It is read again for each connection to such a proxy; this check reports a bad file at the start.
        proxy_ca.map(|path| client_tls(Some(path))).transpose()?;
        let (tls, proxy_ca) = (Some(client_tls(ca)?), proxy_ca.map(PathBuf::from));
        let bounds = Bounds { within: EXCHANGE_TIMEOUT, most: MAX_ANSWER };
        Ok(Self { tls, proxy_ca, addresses: Addresses::PublicAnd(allowed.into()), bounds })
    }

    /// Creates the settings for a server at any address, since `uri` comes from whoever starts the process; usually it is a Service of the
    /// cluster. For https, trusts the system's CAs and those of the PEM file `ca`.
    ///
    /// # Errors
    /// As [`Self::new`], for https.
    pub fn to_named_server(
        uri: &Uri,
        ca: Option<&Path>,
        bounds: Bounds,
    ) -> Result<Self, TransportSetupError> {
        let secure = uri.scheme() == Some(&Scheme::HTTPS);
        let tls = if secure { Some(client_tls(ca)?) } else { None };
        Ok(Self { tls, proxy_ca: None, addresses: Addresses::All, bounds })
    }

    /// Creates a transport with these proxies; a direct one if no proxy is set for the service.
    pub fn transport(&self, proxies: Proxies) -> Transport {
        let Self { tls, proxy_ca, addresses, bounds } = self.clone();
        let ways = Arc::new(Ways { tls, proxy_ca, addresses, proxies });
        let connector = tower::service_fn(move |uri| {
            let ways = Arc::clone(&ways);
            Box::pin(async move { ways.open(uri).await })
        });
        let client = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector);
        BoxCloneSyncService::new(tower::service_fn(move |request| {
            let client = client.clone();
            async move { exchange(&client, request, bounds).await }
        }))
    }
}

async fn exchange(
    client: &Client<impl Connect + Clone + Send + Sync + 'static, Body>,
    request: Request<Body>,
    Bounds { within, most }: Bounds,
) -> Result<Response<Bytes>, TransportError> {
    let whole = async {
        let answer = client.request(request).await.map_err(|error| unreached(&error))?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, most).collect().await;
        let body = body.map_err(|error| match error.downcast_ref::<LengthLimitError>() {
            Some(_) => TransportError::TooLarge(most),
            None => TransportError::Broken(error.to_string()),
        })?;
        Ok(Response::from_parts(head, body.to_bytes()))
    };
    let timeout = TransportError::Timeout(within);
    tokio::time::timeout(within, whole).await.unwrap_or(Err(timeout))
}

fn unreached(error: &(dyn Error + 'static)) -> TransportError {
    let mut next = Some(error);
    while let Some(cause) = next {
        match cause.downcast_ref() {
            Some(ConnectError::Tunnel(forbidden @ TunnelError::Forbidden { .. })) => {
                return TransportError::Forbidden(forbidden.to_string());
            }
            Some(ConnectError::Tunnel(TunnelError::Proxy(error))) => {
                return TransportError::Proxy(error.clone());
            }
            _ => {}
        }
        next = cause.source();
    }
    TransportError::Connect(with_causes(error))
}
