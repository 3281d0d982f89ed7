//! The work of a run: gather, record, upload, wait for processing; and the download of a report.
//!
//! Each step reports its own outcome only; a failed step ends the run. Nothing here writes a status.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt;
use jiff::Timestamp;
use kube::Client;
use tokio::sync::Semaphore;
use tracing::{info, warn};

use super::active_runs::Sink;
use super::config::{Config, ConfigError};
use super::counts::Counts;
use super::instructions::{self, Instructions};
use super::obfuscation::{self, Obfuscation};
use super::plan::GatherRequest;
use super::run_state::{ProcessOutcome, Recorded, ReportOutcome, UploadOutcome};
use super::settings::{ADVISOR, Settings};
use crate::gather::archive::{Archive, ProcessFacts};
use crate::gather::collect::{Row, Verdict, collect};
use crate::gather::recorder::Recorder;
use crate::gather::select::{Selection, select};
use crate::gather::spool::Spool;
use crate::gather::store::{ArchiveStore, Published, StoreError};
use crate::gather::tunnel::TransportSetupError;
use crate::gather::upload::{
    ConcurrencyLimit, EndpointError, Endpoints, Ingress, Outlet, ReportError, TokenSource,
};
use crate::gather::{self, GATHERERS, cluster};
use crate::telemetry::panic_text;

/// Runs that ask the API server for everything at a time; others wait as `Running`.
const GATHERING_AT_ONCE: usize = 2;

/// Time between gatherings where nobody says it.
pub(super) const INTERVAL: Duration = Duration::from_hours(2);

/// The state that all runs share.
pub struct RunContext {
    pub client: Client,
    pub settings: Settings,
    pub store: ArchiveStore,
    pub uploads: Option<Uploads>,
    pub started: Instant,
    pub counts: Counts,
    gathering: Semaphore,
    /// Shared by the uploads of all runs.
    turns: ConcurrencyLimit,
    /// Values of the cluster's configuration that were complained of last.
    told: Mutex<Vec<String>>,
}

impl std::fmt::Debug for RunContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunContext").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Uploads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Uploads").field("endpoints", &self.endpoints).finish_non_exhaustive()
    }
}

/// The upload settings, checked.
pub struct Uploads {
    pub outlet: Outlet,
    pub endpoints: Endpoints,
    pub token: TokenSource,
    pub pacing: gather::upload::Pacing,
}

impl RunContext {
    pub fn new(
        client: Client,
        settings: Settings,
        store: ArchiveStore,
        uploads: Option<Uploads>,
        counts: Counts,
    ) -> Self {
        let gathering = Semaphore::new(GATHERING_AT_ONCE);
        let (turns, told) = (ConcurrencyLimit::default(), Mutex::default());
        Self { client, settings, store, uploads, started: Instant::now(), counts, gathering, turns, told }
    }

    /// What counts now. What of it is refused is told once.
    pub(super) async fn config(&self) -> Result<Config, ConfigError> {
        let config = Config::read(&self.client, &self.settings).await?;
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if *told != config.refused {
            for refused in &config.refused {
                warn!(refused, "a value of the configuration does not count");
            }
            told.clone_from(&config.refused);
        }
        Ok(config)
    }

    /// Where the token for uploads comes from, if anything is uploaded.
    pub(super) fn token(&self, config: &Config) -> Option<TokenSource> {
        let own = self.uploads.as_ref().map(|uploads| uploads.token.clone());
        own.or_else(|| config.upload.as_ref().map(|_| TokenSource::pull_secret(self.client.clone())))
    }

    /// The upload client, once the cluster's id is known; none where nothing is uploaded.
    pub(super) async fn ingress(&self, config: &Config) -> Result<Option<Ingress>, IngressError> {
        let (Some(url), Some(token)) = (&config.upload, self.token(config)) else { return Ok(None) };
        let settings = self.settings.upload.as_ref();
        let (outlet, pacing) = match &self.uploads {
            Some(Uploads { outlet, pacing, .. }) => (outlet.clone(), *pacing),
            None => (self.settings.outlet(None)?, gather::upload::Pacing::default()),
        };
        let endpoints = match &self.uploads {
            Some(uploads) if settings.is_some_and(|settings| settings.url == *url) => {
                uploads.endpoints.clone()
            }
            _ => {
                let advisor = settings.map_or(ADVISOR, |settings| &settings.advisor_url);
                Endpoints::new(url, settings.and_then(|settings| settings.results_url.as_deref()), advisor)?
            }
        };
        let cluster_id = match &self.settings.cluster_id {
            Some(id) => id.clone(),
            None => cluster::id(&self.client).await?,
        };
        Ok(Some(Ingress {
            transport: outlet.transport(config.proxies.clone()),
            endpoints: endpoints.with(config.status.clone(), config.report.clone()),
            token,
            cluster_id,
            pacing,
            turns: self.turns.clone(),
        }))
    }

    /// The upload client as of now, and what is to be told where there is none to be had.
    async fn current_ingress(&self) -> Result<Option<Ingress>, String> {
        let config = self.config().await.map_err(|error| error.to_string())?;
        self.ingress(&config).await.map_err(|error| error.to_string())
    }
}

/// Why there is no upload client.
#[derive(Debug, thiserror::Error)]
pub(super) enum IngressError {
    #[error(transparent)]
    Id(#[from] cluster::IdError),
    #[error("upload URL: {0}")]
    Endpoint(#[from] EndpointError),
    #[error(transparent)]
    Transport(#[from] TransportSetupError),
}

/// Runs the gathering of the object `uid` and everything that follows it. A panic is reported like any other failure.
pub async fn gather(workshop: Arc<RunContext>, uid: String, request: GatherRequest, sink: Sink) {
    let steps = AssertUnwindSafe(steps(&workshop, &uid, &request, &sink)).catch_unwind();
    if let Err(panic) = steps.await {
        let reason = format!("the run panicked: {}", panic_text(panic.as_ref()));
        sink.progress(|progress| progress.recorded = Some(Err(reason)));
    }
    let ended = workshop.settings.clock.now();
    sink.progress(|progress| progress.ended = Some(ended));
}

async fn steps(workshop: &Arc<RunContext>, uid: &str, request: &GatherRequest, sink: &Sink) {
    let gathered = workshop.settings.clock.now();
    let instructions = instructions::ask(workshop).await;
    sink.progress(|progress| progress.remote.clone_from(&instructions.outcome));
    let (rows, recorded) = record(workshop, uid, request, instructions, gathered).await;
    let published = recorded.map(|(published, recorded)| {
        sink.progress(|progress| {
            progress.rows.clone_from(&rows);
            progress.recorded = Some(Ok(recorded));
        });
        published
    });
    let published = match published {
        Ok(published) => published,
        Err(reason) => {
            warn!(uid, reason, "recording failed");
            sink.progress(|progress| {
                progress.rows = rows;
                progress.recorded = Some(Err(reason));
            });
            return;
        }
    };
    deliver(workshop, &published, gathered, sink).await;
    drop(published);
    if let Err(error) = workshop.store.prune(workshop.settings.keep_archives) {
        warn!(%error, "old archives stay");
    }
}

async fn deliver(workshop: &RunContext, archive: &Published, gathered: Timestamp, sink: &Sink) {
    let ingress = match workshop.current_ingress().await {
        Ok(Some(ingress)) => ingress,
        Ok(None) => {
            return sink.progress(|progress| {
                progress.uploaded = Some(UploadOutcome::NotConfigured);
                progress.processed = Some(ProcessOutcome::NotConfigured);
            });
        }
        Err(message) => {
            let failed = UploadOutcome::Failed { code: 0, message };
            return sink.progress(|progress| progress.uploaded = Some(failed));
        }
    };
    let uploaded = match ingress.upload(archive.path(), gathered).await {
        Ok(uploaded) => uploaded,
        Err(error) => {
            let failed = UploadOutcome::Failed { code: error.code(), message: error.to_string() };
            return sink.progress(|progress| progress.uploaded = Some(failed));
        }
    };
    let request_id = uploaded.request_id;
    let accepted = UploadOutcome::Accepted { code: uploaded.code, request_id: request_id.clone() };
    sink.progress(|progress| progress.uploaded = Some(accepted));
    let processed = match ingress.await_processed(&request_id).await {
        Ok(_) => ProcessOutcome::Processed,
        Err(error) => ProcessOutcome::Failed(error.to_string()),
    };
    sink.progress(|progress| progress.processed = Some(processed));
}

type Made = (Vec<Row>, Result<(Published, Recorded), String>);

/// Collects, assembles and publishes the archive.
async fn record(
    workshop: &Arc<RunContext>,
    uid: &str,
    request: &GatherRequest,
    instructions: Instructions,
    now: Timestamp,
) -> Made {
    let Ok(_turn) = workshop.gathering.acquire().await else {
        return (Vec::new(), Err("shutting down".to_owned()));
    };
    let Obfuscation { obfuscator, names_unknown } = match obfuscation::rules(workshop, request).await {
        Ok(hiding) => hiding,
        Err(reason) => return (Vec::new(), Err(reason)),
    };
    let keeper = match workshop.store.scratch() {
        Ok(file) => Recorder::new(Spool::new(file, obfuscator)),
        Err(error) => return (Vec::new(), Err(error.to_string())),
    };
    let remote = Arc::clone(&instructions.remote);
    let rows = collected(workshop, request, instructions, &keeper, now).await;
    let facts = ProcessFacts { memory_bytes: memory_bytes().await, uptime: workshop.started.elapsed() };
    let (shop, owner) = (Arc::clone(workshop), uid.to_owned());
    let told = rows.clone();
    let written = tokio::task::spawn_blocking(move || {
        let spool = keeper.close().ok_or(StoreError::AlreadyClaimed)?;
        let archive = Archive::new(spool, &told, facts, &remote, now);
        let archive = archive.map_err(|error| shop.store.unusable(error))?;
        let published = shop.store.publish(&owner, archive.newest(), |out| archive.write(out))?;
        Ok::<_, StoreError>((archive, published))
    });
    let (archive, published) = match written.await {
        Ok(Ok(written)) => written,
        Ok(Err(error)) => return (rows, Err(error.to_string())),
        Err(error) => return (rows, Err(error.to_string())),
    };
    let recorded = Recorded {
        records: archive.records(),
        file: published.name(),
        translation: obfuscation::keep_translation(workshop, archive.translation).await,
        names_unknown,
    };
    info!(uid, file = recorded.file, records = recorded.records, "archive written");
    (rows, Ok((published, recorded)))
}

async fn collected(
    workshop: &RunContext,
    request: &GatherRequest,
    instructions: Instructions,
    keeper: &Recorder,
    now: Timestamp,
) -> Vec<Row> {
    let Selection { gatherers, empty_groups, unknown: _ } = select(GATHERERS, &request.choices);
    let Settings { namespace_prefix, config_namespace, gatherer_concurrency, gather_every, .. } =
        &workshop.settings;
    let context = gather::Context {
        client: workshop.client.clone(),
        namespace_prefix: namespace_prefix.clone(),
        config_namespace: config_namespace.clone(),
        now,
        interval: gather_every.unwrap_or(INTERVAL),
        remote: instructions.remote,
        agents: instructions.agents,
        keeper: keeper.clone(),
    };
    let mut rows = collect(gatherers, &context, *gatherer_concurrency).await;
    rows.extend(empty_groups.into_iter().map(|id| Row {
        id,
        duration: Duration::ZERO,
        verdict: Verdict::Failed("all functions of this gatherer are disabled".to_owned()),
        warnings: Vec::new(),
    }));
    rows
}

/// Downloads the report of `request_id`, again while it may still appear.
pub async fn report(workshop: Arc<RunContext>, request_id: String, sink: Sink) {
    let ingress = match workshop.current_ingress().await {
        Ok(Some(ingress)) => ingress,
        Ok(None) => return sink.report(ReportOutcome::Missing("no upload URL is configured".to_owned())),
        Err(reason) => return sink.report(ReportOutcome::Missing(reason)),
    };
    let mut left = ingress.pacing.processing_retries;
    let outcome = loop {
        let answer = ingress.report(&request_id).await;
        workshop.counts.received(answer.as_ref().map_or_else(ReportError::code, |_| 200));
        match answer {
            Ok(report) => break ReportOutcome::Found(report),
            Err(error) if left == 0 || matches!(error, ReportError::Undecodable(_)) => {
                break ReportOutcome::Missing(error.to_string());
            }
            Err(error) => warn!(%error, request_id, left, "report not downloaded yet"),
        }
        left -= 1;
        tokio::time::sleep(ingress.pacing.processing_interval).await;
    };
    sink.report(outcome);
}

/// Memory of the container, where the kernel tells it; else 0.
async fn memory_bytes() -> u64 {
    let text = tokio::fs::read_to_string("/sys/fs/cgroup/memory.current").await;
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}
