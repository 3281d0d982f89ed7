//! Sets up the controller: validates settings, starts and supervises its parts, and takes part in
//! leader election if configured.

mod one;

use std::path::PathBuf;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::core::DeserializeGuard;
use kube::runtime::reflector::Store;
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use tokio_util::sync::CancellationToken;
use tracing::info;

pub use self::one::run_one;
use super::active_runs::{Runs, Wakeups};
use super::configuration_watch::{self, Changes};
use super::crd::DataGather;
use super::health::{Disabled, Health};
use super::job::{self, PodSeen};
use super::operator_status::Copied;
use super::plan::Rules;
use super::run_context::{RunContext, Uploads};
use super::{
    Context, Counts, RunnerKind, Settings, TokenSettings, UploadSettings, periodic, prune, shutdown,
    stale_jobs,
};
use crate::controllers::kit::cache::{Cache, slim_job};
use crate::controllers::kit::controller::{Controller, Surroundings};
use crate::controllers::kit::definition::Definition;
use crate::controllers::kit::events::Events;
use crate::controllers::kit::key::Key;
use crate::controllers::kit::manager::{Member, Term};
use crate::controllers::kit::operator::Operator;
use crate::controllers::kit::periodic::rounds;
use crate::controllers::kit::tasks::{Driver, Supervisor, TaskError, pool};
use crate::gather::GATHERERS;
use crate::gather::store::StoreError;
use crate::gather::tunnel::{Proxy, ProxyError, TransportSetupError};
use crate::gather::upload::{EndpointError, Endpoints, Outlet, TokenSource};
use crate::outside::{self, Unreadable};
use crate::telemetry::with_causes;

/// The name of the controller in metrics, logs and flags.
pub(super) const NAME: &str = "datagather";

/// Why the controller could not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("upload URL: {0}")]
    Endpoint(#[from] EndpointError),
    #[error(transparent)]
    Transport(#[from] TransportSetupError),
    #[error("the environment's {0}: {1}")]
    Proxy(&'static str, ProxyError),
    #[error("cannot read the upload token `{}`: {source}; name a file that holds it", path.display())]
    Token {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("cannot follow the DataGather: {}", with_causes(.0))]
    Watch(#[source] Box<kube::runtime::wait::Error>),
    #[error(
        "there is no DataGather `{0}`: create it first, or name one that `kubectl get datagathers` lists"
    )]
    Missing(String),
    #[error("the DataGather `{0}` was deleted before its gathering had ended")]
    Deleted(String),
    #[error(transparent)]
    Part(#[from] TaskError<std::convert::Infallible>),
}

/// Creates the controller as a member of a manager. Its `client` has the controller's own account.
///
/// # Errors
/// [`RunError`] for an invalid setting.
pub fn member(client: Client, settings: Settings) -> Result<Member, RunError> {
    let store = settings.archives()?;
    uploads(&client, &settings)?;
    let needs = vec![Definition::of::<DataGather>()];
    let own = client.clone();
    let counts = Counts::default();
    let shown = counts.clone();
    let member = Member::new(NAME, client, needs, move |term| {
        let (client, settings, store) = (own.clone(), settings.clone(), store.clone());
        let counts = counts.clone();
        async move {
            let uploads = uploads(&client, &settings)?;
            work(RunContext::new(client, settings, store, uploads, counts), Scope::All, term).await
        }
    });
    let operator = Operator::new("insights").relating("insights.openshift.io", "datagathers");
    Ok(member.counting(|registry| shown.register(registry)).reporting(operator))
}

/// Runs the controller alone, until `shutdown` is cancelled.
///
/// # Errors
/// [`RunError`] at once for an invalid setting, later only when a part of the controller fails.
pub async fn run(client: Client, settings: Settings, shutdown: CancellationToken) -> Result<(), RunError> {
    let store = settings.archives()?;
    let uploads = uploads(&client, &settings)?;
    let run_context = RunContext::new(client, settings, store, uploads, Counts::default());
    work(run_context, Scope::All, Term::alone(shutdown)).await
}

/// Which gatherings this process runs.
enum Scope {
    All,
    One(String),
}

/// Validates `settings`, for callers that do this before there is a client.
///
/// # Errors
/// The errors of [`run`] for invalid settings.
pub fn check(settings: &Settings) -> Result<(), RunError> {
    settings.archives()?;
    settings.upload.as_ref().map(|upload| reachable(upload, settings)).transpose().map(drop)
}

/// Creates the endpoints and transport of uploads. Checked before anything runs, so that an invalid setting is reported at the start and
/// not after the first gathering.
fn reachable(upload: &UploadSettings, settings: &Settings) -> Result<(Endpoints, Outlet), RunError> {
    let UploadSettings { url, results_url, advisor_url, token, ca, status: _, pacing: _ } = upload;
    let endpoints = Endpoints::new(url, results_url.as_deref(), advisor_url)?;
    if let TokenSettings::File(path) = token {
        let readable = outside::bytes(path, outside::MAX_PEM).map_err(Unreadable::into_io);
        readable.map_err(|source| RunError::Token { path: path.clone(), source })?;
    }
    for (variable, url) in [("http_proxy", &settings.proxies.http), ("https_proxy", &settings.proxies.https)]
    {
        let known = if url.is_empty() { Ok(()) } else { Proxy::check(url) };
        known.map_err(|error| RunError::Proxy(variable, error))?;
    }
    Ok((endpoints, settings.outlet(ca.as_deref())?))
}

fn uploads(client: &Client, settings: &Settings) -> Result<Option<Uploads>, RunError> {
    let Some(upload) = &settings.upload else { return Ok(None) };
    let (endpoints, outlet) = reachable(upload, settings)?;
    let token = match &upload.token {
        TokenSettings::File(path) => TokenSource::File(path.clone()),
        TokenSettings::PullSecret => TokenSource::pull_secret(client.clone()),
        TokenSettings::Secret { namespace, name, key } => TokenSource::Secret {
            client: client.clone(),
            namespace: namespace.clone(),
            name: name.clone(),
            key: key.clone(),
            registry: "cloud.openshift.com".to_owned(),
        },
    };
    Ok(Some(Uploads { outlet, endpoints, token, pacing: upload.pacing }))
}

/// Runs one term: from an empty registry of runs to the end of all parts, and the final status of each run.
async fn work(run_context: RunContext, scope: Scope, term: Term) -> Result<(), RunError> {
    let client = run_context.client.clone();
    let (pool, driver) = pool();
    let (runs, wakeups) = Runs::new();
    let settings = &run_context.settings;
    let rules = Rules {
        table: GATHERERS,
        jobs: match settings.runner {
            RunnerKind::InProcess => None,
            RunnerKind::Job(_) => Some(settings.namespace.clone()),
        },
        periodic: settings.gather_every.is_some() || matches!(scope, Scope::One(_)),
        reports: matches!(scope, Scope::All),
        always_obfuscate: settings.obfuscation.always,
    };
    let health = Health::new(term.says.clone(), run_context.counts.clone());
    if settings.gather_every.is_none() {
        health.asked_for(Some(&Disabled::ByFlag));
    }
    let context = Arc::new(Context {
        client: client.clone(),
        health,
        copied: Copied::default(),
        changes: Changes::default(),
        known: Known::default(),
        run_context: Arc::new(run_context),
        rules,
        runs,
        pool,
        events: Events::new(client, "admit-datagather"),
    });
    // With a token of its own: a part that fails stops the others, and the caller reports that before the process stops.
    let stop = term.stop.child_token();
    let mut parts = Supervisor::new(stop.clone());
    parts.part("datagather runs", drive(driver, stop.clone()));
    if let (Scope::All, RunnerKind::Job(_)) = (&scope, &context.settings().runner) {
        stale_jobs::end(&context).await;
    }
    if let Scope::All = scope {
        start_rounds(&mut parts, &context, &stop);
    }
    parts.part(
        "datagather controller",
        watch_objects(Arc::clone(&context), scope, wakeups, Term { stop, ..term }),
    );
    let ended = parts.join().await;
    shutdown::conclude(&context).await;
    ended?;
    info!("datagather controller stopped");
    Ok(())
}

/// Starts the periodic work that is enabled.
fn start_rounds(parts: &mut Supervisor<Never>, context: &Arc<Context>, stop: &CancellationToken) {
    let settings = context.settings();
    if settings.gather_every.is_some() {
        let (rounding, following) = (Arc::clone(context), Arc::clone(context));
        let round = move || periodic::round(Arc::clone(&rounding));
        let woken = Arc::clone(&context.changes.woken);
        parts.part("periodic gathering", rounds("periodic gathering", stop.clone(), woken, round));
        let stop = stop.clone();
        parts.part("changes of the configuration", async move {
            stop.run_until_cancelled(configuration_watch::follow(&following)).await;
            Ok(())
        });
    }
    if let Some(after) = settings.prune_after {
        let context = Arc::clone(context);
        parts.part(
            "pruning",
            rounds("pruning", stop.clone(), Arc::default(), move || {
                prune::round(Arc::clone(&context), after)
            }),
        );
    }
}

type Never = std::convert::Infallible;

async fn drive(driver: Driver, stop: CancellationToken) -> Result<(), Never> {
    driver.run(stop).await;
    Ok(())
}

async fn watch_objects(
    context: Arc<Context>,
    scope: Scope,
    wakeups: Wakeups,
    term: Term,
) -> Result<(), Never> {
    let settings = context.settings();
    let api: Api<DeserializeGuard<DataGather>> = Api::all(context.client.clone());
    let watched = match scope {
        Scope::All => watcher::Config::default(),
        Scope::One(name) => watcher::Config::default().fields(&format!("metadata.name={name}")),
    };
    let woken = futures::stream::unfold(wakeups, |mut wakeups| async {
        wakeups.recv().await.map(|key| (key, wakeups))
    });
    let mut controller = Controller::new(NAME, api, watched).wakes(woken);
    if let RunnerKind::Job(_) = settings.runner {
        let jobs: Api<Job> = Api::namespaced(context.client.clone(), &settings.namespace);
        let pods: Api<Pod> = Api::namespaced(context.client.clone(), &settings.namespace);
        let of_gatherings = watcher::Config::default().labels(job::LABEL);
        let known = &context.known;
        controller = controller
            .keeps(jobs, watcher::Config::default(), (&known.jobs, slim_job), |job, _| {
                Key::owners::<DataGather>(job, false)
            })
            .keeps(pods, of_gatherings, (&known.pods, |pod: Pod| PodSeen::of(&pod)), of_pod);
    }
    let around = Surroundings::of(&term, context.events.clone());
    controller.run(context, around, term.stop).await;
    Ok(())
}

/// The cached Jobs and Pods.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The Jobs without their Pod templates.
    pub(super) jobs: Cache<Job>,
    pub(super) pods: Cache<PodSeen>,
}

/// Returns the DataGather of a Pod: its Job has the same name.
fn of_pod(pod: &PodSeen, objects: &Store<DeserializeGuard<DataGather>>) -> Vec<Key> {
    let found = objects.state();
    let owner = found.iter().find(|object| object.0.as_ref().is_ok_and(|it| it.name_any() == pod.job));
    owner.map(|object| Key::of(object.as_ref())).into_iter().collect()
}
