//! Sends requests to Kafka Connect, and interprets its responses.
//!
//! | answer | means |
//! |---|---|
//! | 200, 201, 202, 204 | done |
//! | 404 in its own words | there is no such connector |
//! | 409 | its workers are being rebalanced: asked again, later each time |
//! | 400 | the configuration is refused, with the reasons |
//! | 401 | the login is refused: read again, and asked once more where it has changed |
//! | any other, in its own words | it failed |
//! | what is no JSON, or 404 in the words of a server of HTTP | somebody else answers: nothing is concluded from it |

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full};
use kube::Client;
use serde_json::Value;
use tokio::time::{Instant, sleep};
use tower::ServiceExt as _;
use tracing::warn;

use super::login::{Header, Login, LoginError, LoginSource};
use crate::controllers::kit::fence::{Fence, NotLeading};
use crate::controllers::kit::wait::GrowingWait;
use crate::gather::tunnel::{Proxies, TransportSetupError};
use crate::gather::upload::{Body, Bounds, Outlet, Transport, TransportError};
use crate::telemetry::{Outside, Secrets};

/// The time limit for one exchange. Kafka Connect itself gives up after 90 s; if it completes a request after our timeout, the next
/// pass repeats the request.
pub(super) const WITHIN: Duration = Duration::from_secs(30);
/// The largest response in bytes. The longest has the names of all connectors: a megabyte is enough for ten thousand.
const MOST: usize = 1024 * 1024;
/// The wait after the first 409: a rebalance without new workers takes less than a second.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(4);
/// The divisor of an exchange's time limit for waiting for the end of a rebalance. Rebalances of more than 10 s wait minutes for a
/// worker that left: the pass fails then, which is reported once, and others proceed.
const PATIENCE: u32 = 3;
/// The most characters that are shown of a foreign response.
const MAX_STRANGE: usize = 120;
/// The message of Kafka Connect's HTTP server for unknown paths, which says nothing about connectors.
const NO_SUCH_PATH: &str = "HTTP 404 Not Found";

/// Why a request to Kafka Connect failed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("cannot {doing}: Kafka Connect: {error}")]
    Unreached { doing: &'static str, error: TransportError },
    #[error("cannot {doing}: Kafka Connect rebalances its workers (409)")]
    Rebalance { doing: &'static str },
    #[error(transparent)]
    Login(#[from] LoginError),
    #[error(transparent)]
    NotLeading(#[from] NotLeading),
    #[error(
        "cannot {doing}: Kafka Connect wants another login (401): see --connect-login, --connect-token or --connect-secret, and what is there"
    )]
    Unauthorized { doing: &'static str },
    #[error("Kafka Connect refuses the configuration of the connector: {0}")]
    Refused(Outside),
    #[error("cannot {doing}: Kafka Connect answers {code}: {message}")]
    Failed { doing: &'static str, code: u16, message: Outside },
    #[error(
        "cannot {doing}: what answers is not the REST interface of Kafka Connect ({code}: {shown}): see where --connect-url leads"
    )]
    Stranger { doing: &'static str, code: u16, shown: Outside },
}

/// Why these settings for Kafka Connect are invalid.
#[derive(Debug, thiserror::Error)]
pub enum ConnectSetupError {
    #[error("`{0}` is no address of Kafka Connect: write http://host:8083 or https://host")]
    NotAUrl(String),
    #[error("an address of Kafka Connect holds no login: everybody who sees the command would read it")]
    Credentials,
    #[error(transparent)]
    Tls(#[from] TransportSetupError),
    #[error(transparent)]
    Login(#[from] LoginError),
}

/// The REST interface of a Kafka Connect cluster, at any of its workers.
#[derive(Clone, Debug)]
pub(super) struct Rest {
    /// The base URL without a trailing slash.
    base: String,
    transport: Transport,
    patience: Duration,
    login: Option<Login>,
    fence: Option<Fence>,
}

/// A request.
pub(super) struct Question<'q> {
    pub(super) method: Method,
    /// The encoded path after the base URL.
    pub(super) path: String,
    pub(super) body: Option<Value>,
    /// The action for error messages: a verb and its object.
    pub(super) doing: &'static str,
    /// The secrets that no error may contain.
    pub(super) secrets: &'q Secrets,
}

/// Omits the body, which may contain a login.
impl fmt::Debug for Question<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question")
            .field("method", &self.method)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Rest {
    pub(super) fn new(url: &str, ca: Option<&Path>, within: Duration) -> Result<Self, ConnectSetupError> {
        let wrong = || ConnectSetupError::NotAUrl(Outside::of(url, &Secrets::default()).into_string());
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let authority = uri.authority().ok_or_else(wrong)?;
        if authority.as_str().contains('@') {
            return Err(ConnectSetupError::Credentials);
        }
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.query().is_some() {
            return Err(wrong());
        }
        let bounds = Bounds { within, most: MOST };
        let transport = Outlet::to_named_server(&uri, ca, bounds)?.transport(Proxies::default());
        Ok(Self {
            base: url.trim_end_matches('/').to_owned(),
            transport,
            patience: within / PATIENCE,
            login: None,
            fence: None,
        })
    }

    /// Sets the login.
    pub(super) fn entering_by(self, source: LoginSource) -> Result<Self, ConnectSetupError> {
        let plain = self.base.strip_prefix("http://");
        if plain.is_some_and(|rest| !is_loopback(rest)) {
            warn!(
                url = self.base,
                "the login of Kafka Connect is sent over plain HTTP, for all on the way to read: give an https:// address"
            );
        }
        Ok(Self { login: Some(Login::new(source)?), ..self })
    }

    /// Sets the cluster whose Secret has the login; changes are only requested while the fence is open.
    pub(super) fn of(self, client: &Client, fence: Option<Fence>) -> Self {
        Self { login: self.login.map(|login| login.of(client)), fence, ..self }
    }

    /// Returns the Secret with the login.
    pub(super) fn secret(&self) -> Option<(&str, &str)> {
        self.login.as_ref()?.secret()
    }

    /// Sends a request; None if there is no such connector. Waits for a while if there is a rebalance.
    pub(super) async fn ask(&self, question: &Question<'_>) -> Result<Option<Value>, ConnectError> {
        let mut wait = GrowingWait::new(FIRST_WAIT, LONGEST_WAIT);
        let until = Instant::now() + self.patience;
        loop {
            let (answer, header) = self.entering(question).await?;
            if answer.status() != StatusCode::CONFLICT {
                return meaning(question, &answer, header.as_ref());
            }
            let due = wait.grow();
            if Instant::now() + due > until {
                return Err(ConnectError::Rebalance { doing: question.doing });
            }
            sleep(due).await;
        }
    }

    /// Sends a request with the login. If that is rejected and has changed since, sends it again with the new one.
    async fn entering(
        &self,
        question: &Question<'_>,
    ) -> Result<(Response<Bytes>, Option<Header>), ConnectError> {
        let Some(login) = &self.login else { return Ok((self.once(question, None).await?, None)) };
        let header = login.header().await?;
        let answer = self.once(question, Some(&header)).await?;
        if answer.status() != StatusCode::UNAUTHORIZED {
            return Ok((answer, Some(header)));
        }
        match login.other_than(&header).await? {
            Some(other) => Ok((self.once(question, Some(&other)).await?, Some(other))),
            None => Ok((answer, Some(header))),
        }
    }

    async fn once(
        &self,
        question: &Question<'_>,
        header: Option<&Header>,
    ) -> Result<Response<Bytes>, ConnectError> {
        if question.method != Method::GET {
            Fence::leave(self.fence.as_ref())?;
        }
        let mut request = Request::builder()
            .method(question.method.clone())
            .uri(format!("{}{}", self.base, question.path))
            .header(header::ACCEPT, "application/json");
        let body = question.body.as_ref().map(Value::to_string);
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        if let Some(Header(login)) = header {
            request = request.header(header::AUTHORIZATION, login);
        }
        let body = Full::from(body.unwrap_or_default()).map_err(|never| match never {});
        let request = request.body(Body::new(body));
        let unreached = |error| ConnectError::Unreached { doing: question.doing, error };
        let request = request.map_err(|error| unreached(TransportError::Request(error.to_string())))?;
        self.transport.clone().oneshot(request).await.map_err(unreached)
    }
}

fn is_loopback(address: &str) -> bool {
    let host = address.split('/').next().unwrap_or_default();
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host).trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn meaning(
    question: &Question<'_>,
    answer: &Response<Bytes>,
    header: Option<&Header>,
) -> Result<Option<Value>, ConnectError> {
    let (doing, code, body) = (question.doing, answer.status().as_u16(), answer.body());
    let secrets = || header.map(Header::secrets).unwrap_or_default().and(question.secrets);
    let strange =
        || ConnectError::Stranger { doing, code, shown: Outside::at_most(MAX_STRANGE, body, &secrets()) };
    if answer.status() == StatusCode::UNAUTHORIZED {
        return Err(ConnectError::Unauthorized { doing });
    }
    if answer.status().is_success() && body.is_empty() {
        return Ok(Some(Value::Null));
    }
    let told: Value = serde_json::from_slice(body).map_err(|_| strange())?;
    if answer.status().is_success() {
        return Ok(Some(told));
    }
    let words = told["message"].as_str().filter(|_| told["error_code"].as_u64() == Some(code.into()));
    let message = |words: &str| Outside::of(words, &secrets());
    match (code, words) {
        (404, Some(NO_SUCH_PATH)) | (_, None) => Err(strange()),
        (404, Some(_)) => Ok(None),
        (400, Some(words)) => Err(ConnectError::Refused(message(words))),
        (_, Some(words)) => Err(ConnectError::Failed { doing, code, message: message(words) }),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn of(code: u16, body: &str) -> Result<Option<Value>, ConnectError> {
        let secrets = Secrets::of(["canary-4711"]);
        let question = Question {
            method: Method::GET,
            path: "/connectors".to_owned(),
            body: None,
            doing: "look",
            secrets: &secrets,
        };
        let answer = Response::builder().status(code).body(Bytes::from(body.to_owned())).unwrap();
        let login = Header(HeaderValue::from_static("Bearer canary-4712"));
        meaning(&question, &answer, Some(&login))
    }

    fn error(code: u16, body: &str) -> String {
        of(code, body).unwrap_err().to_string()
    }

    #[test]
    fn cy_10_what_answers_mean() {
        assert_eq!(of(204, "").unwrap(), Some(Value::Null));
        assert_eq!(of(202, "").unwrap(), Some(Value::Null));
        assert_eq!(of(200, "[]").unwrap(), Some(Value::Array(vec![])));
        assert_eq!(of(404, r#"{"error_code": 404, "message": "Connector a not found"}"#).unwrap(), None);
        let refused = error(
            400,
            r#"{"error_code": 400, "message": "1 error(s):\nInvalid value canary-4711, canary-4712"}"#,
        );
        assert_eq!(
            refused,
            "Kafka Connect refuses the configuration of the connector: 1 error(s): Invalid value [redacted], [redacted]"
        );
        for words in [
            r#"{"error_code": 401, "message": "User cannot access the resource."}"#,
            "<html>canary-4712</html>",
            "",
        ] {
            assert!(
                error(401, words).starts_with("cannot look: Kafka Connect wants another login (401)"),
                "{words}"
            );
        }
        let failed = error(500, r#"{"error_code": 500, "message": "Request timed out"}"#);
        assert_eq!(failed, "cannot look: Kafka Connect answers 500: Request timed out");
    }

    /// A connector counts as missing only if Kafka Connect itself says so.
    #[test]
    fn cy_10_what_others_answer_means_nothing() {
        for (code, body) in [
            (404, "<html>not found</html>"),
            (404, r#"{"error_code": 404, "message": "HTTP 404 Not Found"}"#),
            (404, r#"{"message": "no Route matched with those values"}"#),
            (404, ""),
            (200, "<!DOCTYPE html><title>Sign in</title>"),
            (200, "[1, "),
            (302, ""),
            (400, "Bad Request"),
            (502, "<html>Bad Gateway</html>"),
            (500, "null"),
        ] {
            assert!(error(code, body).contains("is not the REST interface"), "{code} {body}");
        }
        let long = error(502, &format!("<html>{}", "x".repeat(5_000)));
        assert!(long.len() < 400, "{long}");
    }

    #[test]
    fn addresses_hold_no_login() {
        let refused = |url: &str| Rest::new(url, None, WITHIN).unwrap_err().to_string();
        let login = refused("http://me:canary@connect:8083");
        assert!(login.contains("holds no login") && !login.contains("canary"), "{login}");
        for url in ["connect:8083", "ftp://connect", "http://", "/connect", "http://a/?b=c", ""] {
            assert!(refused(url).contains("is no address of Kafka Connect"), "{url}");
        }
        let rest = Rest::new("http://connect:8083/rest/", None, WITHIN).unwrap();
        assert_eq!(rest.base, "http://connect:8083/rest");
        for (address, expected) in [
            ("localhost:8083", true),
            ("127.0.0.1/rest", true),
            ("[::1]:8083", true),
            ("connect:8083", false),
            ("10.0.0.1:8083", false),
        ] {
            assert_eq!(is_loopback(address), expected, "{address}");
        }
    }
}
