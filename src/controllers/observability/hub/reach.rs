//! Connects to the hub with a kubeconfig, and replaces the connection when the file changes, when the hub rejects the
//! credentials, or when the hub does not respond.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode, header};
use kube::client::{Body, ClientBuilder};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::{Layer, Service};

use super::HubSettings;
use super::error::HubError;
use super::redact::Redactor;
use crate::controllers::kit::client::{BadLogin, straight};
use crate::outside::{self, Unreadable};
use crate::telemetry::{Outside, Secrets};

/// The largest kubeconfig in bytes: with inline certificates it has some ten thousand.
const MAX_KUBECONFIG: u64 = 1024 * 1024;
/// How often the files are polled, since replaced mounts cause no reliable event.
const LOOK: Duration = Duration::from_secs(2);
/// The time limit for connecting: a distant hub needs one second.
const CONNECT: Duration = Duration::from_secs(10);
/// The largest token file in bytes.
const MAX_TOKEN: u64 = 64 * 1024;

/// A client of the hub that is usable until [`Heard::worn`].
pub(super) struct Reached {
    pub(super) client: Client,
    pub(super) heard: Arc<Heard>,
    /// A hash of the kubeconfig and the files that it names.
    print: Option<u64>,
}

/// What responses of the hub say about the connection.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) worn: CancellationToken,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    worked: bool,
    asked: Option<Instant>,
    why: Option<String>,
}

impl Heard {
    /// Marks the connection as unusable.
    pub(super) fn wear(&self, why: &str) {
        self.state().why.get_or_insert_with(|| why.to_owned());
        self.worn.cancel();
    }

    /// Returns why it is unusable, if it is.
    pub(super) fn why(&self) -> Option<String> {
        self.state().why.clone()
    }

    /// Records that a reconciliation was completed with the connection.
    pub(super) fn worked(&self) {
        self.state().worked = true;
    }

    /// Whether a reconciliation was completed with it.
    pub(super) fn has_worked(&self) -> bool {
        self.state().worked
    }

    /// Returns how long the hub asked to wait.
    pub(super) fn asked(&self) -> Option<Duration> {
        let until = self.state().asked?;
        Some(until.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Evaluates a response. Rejected reads mean invalid credentials. Rejected writes may be due to a rule that applies to any credentials:
    /// their caller decides.
    fn hear(&self, reads: bool, status: StatusCode, retry_after: Option<Duration>) {
        if status.is_success() {
            self.state().asked = None;
        } else if let Some(after) = retry_after {
            self.state().asked = Some(Instant::now() + after);
        }
        let refused = status == StatusCode::UNAUTHORIZED || reads && status == StatusCode::FORBIDDEN;
        if refused {
            self.wear(&format!("the hub answers {status}"));
        }
    }
}

/// A layer that evaluates the responses of a service.
#[derive(Clone)]
struct Hearing(Arc<Heard>);

#[derive(Clone)]
struct Heeding<S> {
    inner: S,
    heard: Arc<Heard>,
}

impl<S> Layer<S> for Hearing {
    type Service = Heeding<S>;

    fn layer(&self, inner: S) -> Heeding<S> {
        Heeding { inner, heard: Arc::clone(&self.0) }
    }
}

impl<S, B> Service<Request<Body>> for Heeding<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error: std::fmt::Display, Future: Send + 'static>,
    B: 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<B>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let reads = request.method() == Method::GET;
        let (heard, answering) = (Arc::clone(&self.heard), self.inner.call(request));
        Box::pin(async move {
            let answer = answering.await;
            match &answer {
                Ok(answer) => heard.hear(reads, answer.status(), retry_after(answer)),
                Err(error) => heard.wear(&format!("the hub cannot be reached: {error}")),
            }
            answer
        })
    }
}

fn retry_after<B>(answer: &Response<B>) -> Option<Duration> {
    let seconds = answer.headers().get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

impl Reached {
    /// Connects with the current `settings`; to the server of `own` if they name no other.
    ///
    /// # Errors
    /// [`HubError::Kubeconfig`]
    pub(super) async fn new(settings: &HubSettings, own: &Client) -> Result<Self, HubError> {
        let heard = Arc::new(Heard::default());
        let Some(path) = &settings.kubeconfig else {
            return Ok(Self { client: own.clone(), heard, print: None });
        };
        let unusable = |error: ConnectError| HubError::Kubeconfig {
            path: path.clone(),
            // Only the first line: the rest quotes the file with its secrets.
            reason: Outside::of(error.to_string().lines().next().unwrap_or_default(), &Secrets::default()),
        };
        let Read { print, kubeconfig, secrets } = read(path).await.map_err(unusable)?;
        let client = connect(kubeconfig, &heard, secrets).await.map_err(unusable)?;
        Ok(Self { client, heard, print: Some(print) })
    }

    /// Returns when the files have changed since the connection was created.
    pub(super) async fn until_changed(&self, settings: &HubSettings) {
        let Some(path) = &settings.kubeconfig else { return std::future::pending().await };
        loop {
            tokio::time::sleep(LOOK).await;
            let print = read(path).await.ok().map(|read| read.print);
            // A file that cannot be read may be in the middle of being written.
            if print.is_some() && print != self.print {
                return self.heard.wear("the kubeconfig of the hub has changed");
            }
        }
    }
}

/// The contents of the files.
struct Read {
    /// A hash of the kubeconfig and the files that it names.
    print: u64,
    kubeconfig: Kubeconfig,
    /// The credentials that are sent to the hub, which it could quote.
    secrets: Secrets,
}

/// Why no client can be created from a kubeconfig.
#[derive(Debug, thiserror::Error)]
enum ConnectError {
    #[error(transparent)]
    File(#[from] Unreadable),
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    #[error(transparent)]
    Login(#[from] BadLogin),
    #[error(transparent)]
    Client(#[from] kube::Error),
}

async fn read(path: &Path) -> Result<Read, ConnectError> {
    let path = path.to_owned();
    let reading = outside::in_time(move || {
        let (text, _) = outside::bytes(&path, MAX_KUBECONFIG)?;
        // This reads the file again, and resolves relative paths in it.
        let kubeconfig = Kubeconfig::read_from(&path)?;
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        for file in named(&kubeconfig) {
            outside::bytes(&file, outside::MAX_PEM).ok().map(|(bytes, _)| bytes).hash(&mut hasher);
        }
        let shown = logins(&kubeconfig);
        let secrets = Secrets::of(shown.iter().map(|text| text.trim()));
        Ok(Read { print: hasher.finish(), kubeconfig, secrets })
    });
    reading.await?
}

/// Returns tokens and passwords, also those in separate files.
fn logins(kubeconfig: &Kubeconfig) -> Vec<String> {
    let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
    let users = kubeconfig.auth_infos.iter().filter_map(|named| serde_json::to_value(named).ok());
    let of = |user: Value| {
        let user = &user["user"];
        let file = user["tokenFile"].as_str().and_then(|path| outside::text(Path::new(path), MAX_TOKEN).ok());
        [text(&user["token"]), text(&user["password"]), file]
    };
    users.flat_map(of).flatten().collect()
}

/// Returns the separate files with certificates, keys and tokens.
fn named(kubeconfig: &Kubeconfig) -> Vec<PathBuf> {
    let clusters = kubeconfig.clusters.iter().filter_map(|named| named.cluster.as_ref());
    let users = kubeconfig.auth_infos.iter().filter_map(|named| named.auth_info.as_ref());
    let authorities = clusters.filter_map(|cluster| cluster.certificate_authority.as_ref());
    let of_users = users.flat_map(|user| [&user.client_certificate, &user.client_key, &user.token_file]);
    authorities.chain(of_users.flatten()).map(PathBuf::from).collect()
}

async fn connect(
    kubeconfig: Kubeconfig,
    heard: &Arc<Heard>,
    secrets: Secrets,
) -> Result<Client, ConnectError> {
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let mut config = straight(config?)?;
    config.connect_timeout = Some(CONNECT);
    // Waits are handled here, where they are bounded and visible in metrics.
    config.default_retry = false;
    let builder = ClientBuilder::try_from(config)?;
    Ok(builder.with_layer(&Hearing(Arc::clone(heard))).with_layer(&Redactor(secrets)).build())
}
