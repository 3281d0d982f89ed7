//! Implements the client of the service that analyses archives: upload, processing status, report.
//!
//! It uses HTTP through a [`Transport`], a boxed tower service, so that tests can replace the network. Redirects are
//! never followed: a token must not be sent to a host that the operator did not name. Retries and waits are bounded by
//! [`Pacing`]; the meaning of a response for a DataGather is decided elsewhere.

mod concurrency;
mod configuration;
mod connect;
mod error;
mod multipart;
mod processing;
mod report;
pub mod sftp;
mod template;
mod token;
mod transport;

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Empty};
use jiff::Timestamp;
use tokio::fs::File;
use tower::ServiceExt;
use tracing::{info, warn};

use crate::telemetry::{Outside, Secrets};

pub use concurrency::ConcurrencyLimit;
pub use configuration::ConfigurationError;
pub use error::{EndpointError, UploadError};
pub use processing::{Processed, ProcessingError};
pub use report::{HealthCheck, Report, ReportError};
pub use template::{Template, VersionTemplate};
pub use token::{Token, TokenError, TokenSource};
pub use transport::{Body, Bounds, Outlet, Transport, TransportError};

/// The size limit of the service for compressed archives; one of exactly this size is rejected.
pub const MAX_UPLOAD: u64 = 10 * 1024 * 1024;
const REQUEST_ID: &str = "x-rh-insights-request-id";
const RESULTS_PATH: &str = "/api/insights-results-aggregator/v2";

/// The waits between attempts, and their number.
#[derive(Clone, Copy, Debug)]
pub struct Pacing {
    /// The number of upload attempts, including the first.
    pub upload_attempts: u32,
    /// The wait before the second attempt; doubled before each further one.
    pub upload_wait: Duration,
    /// The wait before the first query whether an upload was processed.
    pub processing_delay: Duration,
    /// The wait between queries.
    pub processing_interval: Duration,
    /// The number of queries after the first, counted separately for each kind of failure.
    pub processing_retries: u32,
}

impl Default for Pacing {
    fn default() -> Self {
        let minute = Duration::from_mins(1);
        Self {
            upload_attempts: 4,
            upload_wait: 30 * minute,
            processing_delay: minute,
            processing_interval: minute,
            processing_retries: 3,
        }
    }
}

/// The URLs of the service.
#[derive(Clone, Debug)]
pub struct Endpoints {
    upload: Uri,
    /// The base URL of the results API, without a trailing slash.
    results: String,
    /// The base URL of the page that explains a recommendation, without a trailing slash.
    advisor: String,
    /// The URLs of the processing status and of the report, unless they are below the results API.
    status: Option<Template>,
    report: Option<Template>,
}

impl Endpoints {
    /// Checks `upload`, and derives the results API from its host unless `results` names it.
    ///
    /// # Errors
    /// [`EndpointError`] for anything but https; plain http is accepted for loopback addresses only.
    pub fn new(upload: &str, results: Option<&str>, advisor: &str) -> Result<Self, EndpointError> {
        let upload = endpoint(upload)?;
        let results = match results {
            Some(results) => endpoint(results)?.to_string(),
            None => {
                let scheme = upload.scheme_str().unwrap_or("https");
                let authority = upload.authority().map_or("", |authority| authority.as_str());
                format!("{scheme}://{authority}{RESULTS_PATH}")
            }
        };
        let bare = |text: &str| text.trim_end_matches('/').to_owned();
        Ok(Self { upload, results: bare(&results), advisor: bare(advisor), status: None, report: None })
    }

    /// Sets other URLs for the processing status and the report, if given.
    #[must_use]
    pub fn with(self, status: Option<Template>, report: Option<Template>) -> Self {
        Self { status, report, ..self }
    }

    fn of_request(&self, cluster: &str, request: &str, leaf: &str) -> String {
        let template = match leaf {
            "status" => &self.status,
            _ => &self.report,
        };
        if let Some(template) = template {
            return template.of(cluster, request);
        }
        let (cluster, request) = (percent_encode(cluster), percent_encode(request));
        format!("{}/cluster/{cluster}/request/{request}/{leaf}", self.results)
    }
}

fn endpoint(text: &str) -> Result<Uri, EndpointError> {
    let uri: Uri = text.parse().map_err(|_| EndpointError::NotAUrl(text.to_owned()))?;
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(EndpointError::Credentials);
    }
    let host = uri.host().ok_or_else(|| EndpointError::NotAUrl(text.to_owned()))?;
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    let loopback = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
    match uri.scheme_str() {
        Some("https") => Ok(uri),
        Some("http") if loopback => Ok(uri),
        _ => Err(EndpointError::NotHttps(text.to_owned())),
    }
}

/// A client of the service for one cluster.
#[derive(Clone, Debug)]
pub struct Ingress {
    pub transport: Transport,
    pub endpoints: Endpoints,
    pub token: TokenSource,
    pub cluster_id: String,
    pub pacing: Pacing,
    /// Shared by all clients of a process, to limit their exchanges together.
    pub turns: ConcurrencyLimit,
}

/// An accepted upload.
#[derive(Clone, Debug, PartialEq)]
pub struct Uploaded {
    pub code: u16,
    /// The id under which the service processes the archive.
    pub request_id: String,
}

impl Ingress {
    /// Uploads an archive, with retries after temporary failures.
    ///
    /// # Errors
    /// The last attempt's [`UploadError`].
    pub async fn upload(&self, archive: &Path, gathered: Timestamp) -> Result<Uploaded, UploadError> {
        let mut wait = self.pacing.upload_wait;
        for attempt in 1.. {
            match self.upload_once(archive, gathered).await {
                Err(error) if error.may_pass() && attempt < self.pacing.upload_attempts => {
                    warn!(%error, attempt, ?wait, "upload failed, trying again");
                    tokio::time::sleep(wait).await;
                    wait = wait.saturating_mul(2);
                }
                ended => return ended,
            }
        }
        Err(UploadError::NoAttempt)
    }

    async fn upload_once(&self, archive: &Path, gathered: Timestamp) -> Result<Uploaded, UploadError> {
        // Held for one attempt only: the wait before the next one may be an hour.
        let _turn = self.turns.upload().await;
        // The file is opened for each attempt: a body that was sent cannot be sent again.
        let (content, size) = open_archive(archive).await?;
        let form = multipart::form(content, size, gathered);
        let (request, secrets) = self.request(Method::POST, self.endpoints.upload.clone()).await?;
        let request = request
            .header(header::CONTENT_TYPE, form.content_type)
            .body(form.body)
            .map_err(|error| UploadError::Transport(TransportError::Request(error.to_string())))?;
        let answer = self.transport.clone().oneshot(request).await?;
        let status = answer.status();
        if !status.is_success() {
            return Err(UploadError::of_status(status, Outside::of(answer.body(), &secrets)));
        }
        let request_id = request_id(&answer, &secrets).ok_or(UploadError::NoRequestId(status.as_u16()))?;
        info!(code = status.as_u16(), request_id, "archive uploaded");
        Ok(Uploaded { code: status.as_u16(), request_id })
    }

    async fn get(&self, url: &str) -> Result<Answered, ExchangeError> {
        let _turn = self.turns.question().await;
        let uri: Uri = url.parse().map_err(|_| TransportError::Request(format!("`{url}` is not a URL")))?;
        let (request, secrets) = self.request(Method::GET, uri).await?;
        let nothing = Empty::new().map_err(|never| match never {}).boxed_unsync();
        let request = request.body(nothing).map_err(|error| TransportError::Request(error.to_string()))?;
        let (head, body) = self.transport.clone().oneshot(request).await?.into_parts();
        Ok(Answered { status: head.status, body, secrets })
    }

    /// Creates a request with the current token; also returns the secrets that no message may contain.
    async fn request(
        &self,
        method: Method,
        uri: Uri,
    ) -> Result<(http::request::Builder, Secrets), TokenError> {
        let token = self.token.read().await?;
        let mut authorization = HeaderValue::try_from(format!("Bearer {}", token.expose()))
            .map_err(|_| TokenError::NotAHeader)?;
        authorization.set_sensitive(true);
        let agent = format!("insights-operator/{} cluster/{}", env!("CARGO_PKG_VERSION"), self.cluster_id);
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header(header::AUTHORIZATION, authorization)
            .header(header::USER_AGENT, agent);
        Ok((request, token.secrets()))
    }
}

/// A response of the service, which may contain the token that was sent.
struct Answered {
    status: StatusCode,
    body: Bytes,
    secrets: Secrets,
}

impl Answered {
    /// Returns the body for messages, without secrets.
    fn shown(&self) -> Outside {
        self.tell(&self.body)
    }

    /// Returns a part of the response for messages, without secrets.
    fn tell(&self, text: impl AsRef<[u8]>) -> Outside {
        Outside::of(text, &self.secrets)
    }
}

/// Why a query got no response.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error(transparent)]
    Transport(#[from] TransportError),
}

async fn open_archive(archive: &Path) -> Result<(File, u64), UploadError> {
    let failed = |source| UploadError::Archive { path: PathBuf::from(archive), source };
    let file = File::open(archive).await.map_err(failed)?;
    let size = file.metadata().await.map_err(failed)?.len();
    if size >= MAX_UPLOAD {
        return Err(UploadError::TooLarge { size });
    }
    Ok((file, size))
}

/// Returns the request id, which is shown in the status: an id that contains the token is ignored.
fn request_id(answer: &Response<Bytes>, secrets: &Secrets) -> Option<String> {
    let value = answer.headers().get(REQUEST_ID)?.to_str().ok()?.trim();
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let told = Outside::of(value, secrets).as_str() == value;
    (told && !value.is_empty() && value.len() <= 256 && value.chars().all(legal)).then(|| value.to_owned())
}

/// Percent-encodes all but unreserved characters.
pub fn percent_encode(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
