//! The work of a run: gather, record, upload, wait for processing; and the download of a report.
//!
//! Each step tells its outcome and only its outcome; a failed step ends the run. Nothing here writes a status.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::sync::Semaphore;
use tracing::{info, warn};

use super::plan::GatherRequest;
use super::progress::{ProcessOutcome, Recorded, ReportOutcome, UploadOutcome};
use super::runs::Sink;
use super::settings::{ObfuscationSettings, Settings};
use crate::gather::archive::{Archive, ProcessFacts, Row};
use crate::gather::cluster::Names;
use crate::gather::collect::{Outcome, Verdict, collect};
use crate::gather::obfuscate::{Obfuscator, Rules};
use crate::gather::select::{Selection, select};
use crate::gather::store::{ArchiveStore, Published};
use crate::gather::upload::{Endpoints, Ingress, ReportError, TokenSource, Transport};
use crate::gather::{self, GATHERERS, cluster};
use crate::telemetry::{panic_text, with_causes};

const TRANSLATION_SECRET: &str = "obfuscation-translation-table";
/// Runs that hold records in memory at a time; others wait as `Running`.
const GATHERING_AT_ONCE: usize = 2;

/// What runs share.
pub struct Workshop {
    pub client: Client,
    pub settings: Settings,
    pub store: ArchiveStore,
    pub uploads: Option<Uploads>,
    pub started: Instant,
    gathering: Semaphore,
}

impl std::fmt::Debug for Workshop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workshop").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Uploads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Uploads").field("endpoints", &self.endpoints).finish_non_exhaustive()
    }
}

/// The upload settings, checked.
pub struct Uploads {
    pub transport: Transport,
    pub endpoints: Endpoints,
    pub token: TokenSource,
    pub pacing: gather::upload::Pacing,
}

impl Workshop {
    pub fn new(client: Client, settings: Settings, store: ArchiveStore, uploads: Option<Uploads>) -> Self {
        let gathering = Semaphore::new(GATHERING_AT_ONCE);
        Self { client, settings, store, uploads, started: Instant::now(), gathering }
    }

    /// The upload client, once the cluster's id is known.
    async fn ingress(&self, uploads: &Uploads) -> Result<Ingress, cluster::IdError> {
        let cluster_id = match &self.settings.cluster_id {
            Some(id) => id.clone(),
            None => cluster::id(&self.client).await?,
        };
        let Uploads { transport, endpoints, token, pacing } = uploads;
        Ok(Ingress {
            transport: transport.clone(),
            endpoints: endpoints.clone(),
            token: token.clone(),
            cluster_id,
            pacing: *pacing,
        })
    }
}

/// Gathers for the object `uid` and does all that follows. A panic is told like any other failure.
pub async fn gather(workshop: Arc<Workshop>, uid: String, request: GatherRequest, sink: Sink) {
    let steps = AssertUnwindSafe(steps(&workshop, &uid, &request, &sink)).catch_unwind();
    if let Err(panic) = steps.await {
        let reason = format!("the run panicked: {}", panic_text(panic.as_ref()));
        sink.progress(|progress| progress.recorded = Some(Err(reason)));
    }
    let ended = workshop.settings.clock.now();
    sink.progress(|progress| progress.ended = Some(ended));
}

async fn steps(workshop: &Arc<Workshop>, uid: &str, request: &GatherRequest, sink: &Sink) {
    let gathered = workshop.settings.clock.now();
    let (rows, recorded) = record(workshop, uid, request, gathered).await;
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

async fn deliver(workshop: &Workshop, archive: &Published, gathered: Timestamp, sink: &Sink) {
    let Some(uploads) = &workshop.uploads else {
        sink.progress(|progress| {
            progress.uploaded = Some(UploadOutcome::NotConfigured);
            progress.processed = Some(ProcessOutcome::NotConfigured);
        });
        return;
    };
    let ingress = match workshop.ingress(uploads).await {
        Ok(ingress) => ingress,
        Err(error) => {
            let failed = UploadOutcome::Failed { code: 0, message: error.to_string() };
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
async fn record(workshop: &Arc<Workshop>, uid: &str, request: &GatherRequest, now: Timestamp) -> Made {
    let Ok(_turn) = workshop.gathering.acquire().await else {
        return (Vec::new(), Err("shutting down".to_owned()));
    };
    let Hiding { obfuscator, names_unknown } = match hiding(workshop, request).await {
        Ok(hiding) => hiding,
        Err(reason) => return (Vec::new(), Err(reason)),
    };
    let outcomes = collected(workshop, request, now).await;
    let facts = ProcessFacts { memory_bytes: memory_bytes().await, uptime: workshop.started.elapsed() };
    let (shop, owner) = (Arc::clone(workshop), uid.to_owned());
    let written = tokio::task::spawn_blocking(move || {
        let archive = Archive::assemble(outcomes, facts, obfuscator, now);
        let published = shop.store.publish(&owner, archive.newest(), |out| archive.write(out));
        (archive, published)
    });
    let (archive, published) = match written.await {
        Ok(written) => written,
        Err(error) => return (Vec::new(), Err(error.to_string())),
    };
    let published = match published {
        Ok(published) => published,
        Err(error) => return (archive.rows, Err(error.to_string())),
    };
    let recorded = Recorded {
        records: archive.records(),
        file: published.name(),
        translation: keep_translation(workshop, archive.translation).await,
        names_unknown,
    };
    info!(uid, file = recorded.file, records = recorded.records, "archive written");
    (archive.rows, Ok((published, recorded)))
}

async fn collected(workshop: &Workshop, request: &GatherRequest, now: Timestamp) -> Vec<Outcome> {
    let Selection { gatherers, empty_groups, unknown: _ } = select(GATHERERS, &request.choices);
    let Settings { namespace_prefix, config_namespace, gatherer_concurrency, .. } = &workshop.settings;
    let context = gather::Context {
        client: workshop.client.clone(),
        namespace_prefix: namespace_prefix.clone(),
        config_namespace: config_namespace.clone(),
        now,
    };
    let mut outcomes = collect(gatherers, &context, *gatherer_concurrency).await;
    outcomes.extend(empty_groups.into_iter().map(|id| Outcome {
        id,
        duration: Duration::ZERO,
        verdict: Verdict::Failed("all functions of this gatherer are disabled".to_owned()),
        records: Vec::new(),
        warnings: Vec::new(),
    }));
    outcomes
}

/// What a record's network facts are to be hidden with.
#[derive(Default)]
struct Hiding {
    obfuscator: Option<Obfuscator>,
    /// Names were to be hidden, and nobody says what the cluster is called.
    names_unknown: bool,
}

async fn hiding(workshop: &Workshop, request: &GatherRequest) -> Result<Hiding, String> {
    if !request.obfuscate {
        return Ok(Hiding::default());
    }
    let ObfuscationSettings { always: _, networks: further, base_domain, api_host } =
        &workshop.settings.obfuscation;
    let told = match cluster::names(&workshop.client).await {
        Ok(names) => names,
        Err(error) if base_domain.is_some() => {
            warn!(%error, "only the names that were configured are hidden");
            Names::default()
        }
        // The cluster may have names, which an archive would show.
        Err(error) => return Err(format!("{error}; grant the right to get it, or give --base-domain")),
    };
    let mut networks = cluster::networks(&workshop.client).await;
    networks.extend(further);
    let both = |told: Option<String>, given: &Option<String>| told.into_iter().chain(given.clone()).collect();
    let rules = Rules {
        networks,
        base_domains: both(told.base_domain, base_domain),
        api_hosts: both(told.api_host, api_host),
    };
    let names_unknown = rules.base_domains.is_empty();
    let obfuscator = Obfuscator::new(&rules).map_err(|error| error.to_string())?;
    Ok(Hiding { obfuscator: Some(obfuscator), names_unknown })
}

/// Stores the table that leads from stand-ins back to addresses, in place of the last run's. Without it the archive
/// is still good: its readers only cannot ask the cluster's administrators about an address.
async fn keep_translation(workshop: &Workshop, table: BTreeMap<String, String>) -> Option<(String, String)> {
    if table.is_empty() {
        return None;
    }
    let namespace = &workshop.settings.namespace;
    let secrets: Api<Secret> = Api::namespaced(workshop.client.clone(), namespace);
    let secret = Secret {
        metadata: ObjectMeta { name: Some(TRANSLATION_SECRET.to_owned()), ..ObjectMeta::default() },
        string_data: Some(table),
        ..Secret::default()
    };
    match secrets.delete(TRANSLATION_SECRET, &DeleteParams::default()).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        Err(error) => {
            warn!(error = with_causes(&error), namespace, "old table of obfuscated addresses stays")
        }
    }
    match secrets.create(&PostParams::default(), &secret).await {
        Ok(_) => Some((namespace.clone(), TRANSLATION_SECRET.to_owned())),
        Err(error) => {
            warn!(error = with_causes(&error), namespace, "the table of obfuscated addresses is not kept");
            None
        }
    }
}

/// Downloads the report of `request_id`, again while it may still appear.
pub async fn report(workshop: Arc<Workshop>, request_id: String, sink: Sink) {
    let Some(uploads) = &workshop.uploads else {
        return sink.report(ReportOutcome::Missing("no upload URL is configured".to_owned()));
    };
    let ingress = match workshop.ingress(uploads).await {
        Ok(ingress) => ingress,
        Err(error) => return sink.report(ReportOutcome::Missing(error.to_string())),
    };
    let mut left = ingress.pacing.processing_retries;
    let outcome = loop {
        match ingress.report(&request_id).await {
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
