//! Executes a run: gathers, writes the archive, uploads, waits for processing; and downloads a report.
//!
//! Each step reports its own outcome only; a failed step ends the run. Nothing here writes a status.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use jiff::Timestamp;
use tokio::task::JoinError;
use tracing::{info, warn};

use super::active_runs::Sink;
use super::instructions::{self, Instructions};
use super::obfuscation::{self, Obfuscation, ObfuscationError};
use super::plan::GatherRequest;
use super::run_context::RunContext;
use super::run_state::{ProcessOutcome, RecordOutcome, Recorded, ReportOutcome, UploadOutcome};
use super::settings::{INTERVAL, Settings};
use crate::gather::archive::{Archive, ProcessFacts};
use crate::gather::collect::{Row, Verdict, collect};
use crate::gather::recorder::Recorder;
use crate::gather::select::{Selection, select};
use crate::gather::spool::Spool;
use crate::gather::store::{Published, StoreError};
use crate::gather::upload::ReportError;
use crate::gather::{self, GATHERERS};
use crate::telemetry::panic_text;

/// Runs the gathering of the object `uid` with all later steps. A panic is reported like any other failure.
pub async fn gather(run_context: Arc<RunContext>, uid: String, request: GatherRequest, sink: Sink) {
    let steps = AssertUnwindSafe(steps(&run_context, &uid, &request, &sink)).catch_unwind();
    if let Err(panic) = steps.await {
        let reason = format!("the run panicked: {}", panic_text(panic.as_ref()));
        sink.progress(|progress| progress.recorded = Some(RecordOutcome::Failed(reason)));
    }
    let ended = run_context.settings.clock.now();
    sink.progress(|progress| progress.ended = Some(ended));
}

async fn steps(run_context: &Arc<RunContext>, uid: &str, request: &GatherRequest, sink: &Sink) {
    let gathered = run_context.settings.clock.now();
    let instructions = instructions::ask(run_context).await;
    sink.progress(|progress| progress.remote.clone_from(&instructions.outcome));
    let (rows, recorded) = record(run_context, uid, request, instructions, gathered).await;
    let published = recorded.map(|(published, recorded)| {
        sink.progress(|progress| {
            progress.rows.clone_from(&rows);
            progress.recorded = Some(RecordOutcome::Recorded(recorded));
        });
        published
    });
    let published = match published {
        Ok(published) => published,
        Err(error) => {
            warn!(uid, %error, "recording failed");
            sink.progress(|progress| {
                progress.rows = rows;
                progress.recorded = Some(RecordOutcome::Failed(error.to_string()));
            });
            return;
        }
    };
    deliver(run_context, &published, gathered, sink).await;
    drop(published);
    if let Err(error) = run_context.store.prune(run_context.settings.keep_archives) {
        warn!(%error, "old archives stay");
    }
}

async fn deliver(run_context: &RunContext, archive: &Published, gathered: Timestamp, sink: &Sink) {
    let ingress = match run_context.current_ingress().await {
        Ok(Some(ingress)) => ingress,
        Ok(None) => {
            return sink.progress(|progress| {
                progress.uploaded = Some(UploadOutcome::NotConfigured);
                progress.processed = Some(ProcessOutcome::NotConfigured);
            });
        }
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

/// Why there is no archive.
#[derive(Debug, thiserror::Error)]
enum RecordError {
    #[error("shutting down")]
    Stopped,
    #[error(transparent)]
    Obfuscation(#[from] ObfuscationError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Task(#[from] JoinError),
}

type Made = (Vec<Row>, Result<(Published, Recorded), RecordError>);

/// Gathers, and publishes the archive.
async fn record(
    run_context: &Arc<RunContext>,
    uid: &str,
    request: &GatherRequest,
    instructions: Instructions,
    now: Timestamp,
) -> Made {
    let Ok(_turn) = run_context.gathering.acquire().await else {
        return (Vec::new(), Err(RecordError::Stopped));
    };
    let Obfuscation { obfuscator, names_unknown } = match obfuscation::rules(run_context, request).await {
        Ok(obfuscation) => obfuscation,
        Err(error) => return (Vec::new(), Err(error.into())),
    };
    let recorder = match run_context.store.scratch() {
        Ok(file) => Recorder::new(Spool::new(file, obfuscator)),
        Err(error) => return (Vec::new(), Err(error.into())),
    };
    let remote = Arc::clone(&instructions.remote);
    let rows = collected(run_context, request, instructions, &recorder, now).await;
    let facts = ProcessFacts { memory_bytes: memory_bytes().await, uptime: run_context.started.elapsed() };
    let (shop, owner) = (Arc::clone(run_context), uid.to_owned());
    let told = rows.clone();
    let written = tokio::task::spawn_blocking(move || {
        let spool = recorder.close().ok_or(StoreError::AlreadyClaimed)?;
        let archive = Archive::new(spool, &told, facts, &remote, now);
        let archive = archive.map_err(|error| shop.store.unusable(error))?;
        let published = shop.store.publish(&owner, archive.newest(), |out| archive.write(out))?;
        Ok::<_, StoreError>((archive, published))
    });
    let (archive, published) = match written.await {
        Ok(Ok(written)) => written,
        Ok(Err(error)) => return (rows, Err(error.into())),
        Err(error) => return (rows, Err(error.into())),
    };
    let recorded = Recorded {
        records: archive.records(),
        file: published.name(),
        translation: obfuscation::keep_translation(run_context, archive.translation).await,
        names_unknown,
    };
    info!(uid, file = recorded.file, records = recorded.records, "archive written");
    (rows, Ok((published, recorded)))
}

async fn collected(
    run_context: &RunContext,
    request: &GatherRequest,
    instructions: Instructions,
    recorder: &Recorder,
    now: Timestamp,
) -> Vec<Row> {
    let Selection { gatherers, empty_groups, unknown: _ } = select(GATHERERS, &request.choices);
    let Settings { namespace_prefix, config_namespace, gatherer_concurrency, gather_every, .. } =
        &run_context.settings;
    let context = gather::Context {
        client: run_context.client.clone(),
        namespace_prefix: namespace_prefix.clone(),
        config_namespace: config_namespace.clone(),
        now,
        interval: gather_every.unwrap_or(INTERVAL),
        remote: instructions.remote,
        agents: instructions.agents,
        recorder: recorder.clone(),
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

/// Downloads the report of `request_id`, with retries while it may still appear.
pub async fn report(run_context: Arc<RunContext>, request_id: String, sink: Sink) {
    let ingress = match run_context.current_ingress().await {
        Ok(Some(ingress)) => ingress,
        Ok(None) => return sink.report(ReportOutcome::Missing("no upload URL is configured".to_owned())),
        Err(error) => return sink.report(ReportOutcome::Missing(error.to_string())),
    };
    let mut left = ingress.pacing.processing_retries;
    let outcome = loop {
        let answer = ingress.report(&request_id).await;
        run_context.counts.received(answer.as_ref().map_or_else(ReportError::code, |_| 200));
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

/// Returns the memory use of the container, if the kernel reports it; else 0.
async fn memory_bytes() -> u64 {
    let text = tokio::fs::read_to_string("/sys/fs/cgroup/memory.current").await;
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}
