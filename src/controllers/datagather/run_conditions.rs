//! Translates the results of runs and reports into status: conditions with reasons and messages, results of
//! gatherers, events. Pure, used by the plan alone.

use std::time::Duration;

use admit_apimachinery::go;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::crd::{
    DataGatherStatus, GathererStatus, HealthCheck, HealthCheckState, InsightsReport, RelatedObject,
};
use super::run_state::{
    ProcessOutcome, Progress, RecordOutcome, Recorded, RemoteOutcome, ReportOutcome, UploadOutcome,
};
use crate::controllers::kit::conditions::{self, Statement, Truth};
use crate::controllers::kit::events::Notice;
use crate::gather::collect::{Row, Verdict};
use crate::gather::upload::Report;

pub(super) const RECORDED: &str = "DataRecorded";
pub(super) const UPLOADED: &str = "DataUploaded";
pub(super) const PROCESSED: &str = "DataProcessed";
pub(super) const ANALYSIS: &str = "AnalysisAvailable";
pub(super) const REMOTE_AVAILABLE: &str = "RemoteConfigurationAvailable";
pub(super) const REMOTE_VALID: &str = "RemoteConfigurationValid";

/// The most rows and related objects that the schema allows.
const MAX_ROWS: usize = 100;
const NOT_CONFIGURED: &str = "UploadNotConfigured";

/// Returns the status of a running object with the results in `progress`. State and finish time are set by the plan.
pub(super) fn of_progress(
    old: &DataGatherStatus,
    progress: &Progress,
    generation: Option<i64>,
    now: Timestamp,
) -> DataGatherStatus {
    let Progress { rows, remote, recorded, uploaded, processed, ended: _ } = progress;
    let mut status = old.clone();
    if status.gatherers.is_empty() {
        status.gatherers = gatherer_rows(rows, now);
    }
    let mut state = |statement| conditions::set(&mut status.conditions, statement, generation, now);
    remote.iter().flat_map(remote_statements).for_each(&mut state);
    if let Some(recorded) = recorded {
        state(recorded_statement(recorded));
    }
    if let Some(uploaded) = uploaded {
        state(uploaded_statement(uploaded));
    }
    if let Some(processed) = processed {
        state(processed_statement(processed));
    }
    if let Some(UploadOutcome::Accepted { request_id, code: _ }) = uploaded {
        status.insights_request_id.get_or_insert_with(|| request_id.clone());
    }
    if let Some(RecordOutcome::Recorded(Recorded { translation: Some((namespace, name)), .. })) = recorded {
        relate(&mut status, secret(namespace, name));
    }
    status
}

fn remote_statements(remote: &RemoteOutcome) -> [Statement; 2] {
    let available =
        |truth, reason: &str, message: &str| Statement::new(REMOTE_AVAILABLE, truth, reason, message);
    let valid = |truth, reason: &str, message: &str| Statement::new(REMOTE_VALID, truth, reason, message);
    let came = available(Truth::True, "AsExpected", "the remote configuration was downloaded");
    match remote {
        RemoteOutcome::Followed => {
            [came, valid(Truth::True, "AsExpected", "the remote configuration was followed")]
        }
        RemoteOutcome::Invalid(why) => {
            let message = format!("the built-in configuration counted instead of the remote one: {why}");
            [came, valid(Truth::False, "Invalid", &message)]
        }
        RemoteOutcome::Unavailable { code, message } => {
            let message = format!("the built-in configuration counted instead of the remote one: {message}");
            [
                available(Truth::False, &format!("HttpStatus{code}"), &message),
                valid(Truth::Unknown, "NoValidationYet", "there is no remote configuration to follow"),
            ]
        }
    }
}

fn recorded_statement(recorded: &RecordOutcome) -> Statement {
    match recorded {
        RecordOutcome::Recorded(Recorded { records, file, translation: _, names_unknown: true }) => {
            Statement::new(
                RECORDED,
                Truth::True,
                "NamesUnknown",
                format!(
                    "recorded {records} records in {file}, with addresses obfuscated but not the cluster's names: there is no DNS \
                 `cluster` of config.openshift.io/v1 that says its base domain; if it has one, give --base-domain and --api-host"
                ),
            )
        }
        RecordOutcome::Recorded(Recorded { records, file, translation: _, names_unknown: false }) => {
            Statement::new(
                RECORDED,
                Truth::True,
                "AsExpected",
                format!("recorded {records} records in {file}"),
            )
        }
        RecordOutcome::Failed(reason) => Statement::new(
            RECORDED,
            Truth::False,
            "RecordingFailed",
            format!("Failed to record data: {reason}"),
        ),
    }
}

fn uploaded_statement(uploaded: &UploadOutcome) -> Statement {
    match uploaded {
        UploadOutcome::NotConfigured => Statement::new(
            UPLOADED,
            Truth::False,
            NOT_CONFIGURED,
            "no upload URL is configured: the archive stays in the archive folder",
        ),
        UploadOutcome::Accepted { code, request_id: _ } => {
            Statement::new(UPLOADED, Truth::True, &format!("HttpStatus{code}"), "the archive was uploaded")
        }
        UploadOutcome::Failed { code, message } => {
            Statement::new(UPLOADED, Truth::False, &format!("HttpStatus{code}"), message.as_str())
        }
    }
}

/// Whether the archive is not uploaded because no upload is configured.
pub(super) fn stays_here(status: &DataGatherStatus) -> bool {
    let uploaded = status.conditions.iter().find(|condition| condition.type_ == UPLOADED);
    uploaded.is_some_and(|condition| condition.reason == NOT_CONFIGURED)
}

fn processed_statement(processed: &ProcessOutcome) -> Statement {
    match processed {
        ProcessOutcome::NotConfigured => Statement::new(
            PROCESSED,
            Truth::False,
            NOT_CONFIGURED,
            "no upload URL is configured: nothing was sent for processing",
        ),
        ProcessOutcome::Processed => {
            Statement::new(PROCESSED, Truth::True, "Processed", "the archive was processed")
        }
        ProcessOutcome::Failed(reason) => Statement::new(
            PROCESSED,
            Truth::False,
            "Failure",
            format!("failed to process data in the given time: {reason}"),
        ),
    }
}

/// Sets the condition that nothing will be uploaded.
pub(super) fn not_uploaded(
    status: &mut DataGatherStatus,
    why: &str,
    generation: Option<i64>,
    now: Timestamp,
) {
    let failed = UploadOutcome::Failed { code: 0, message: why.to_owned() };
    conditions::set(&mut status.conditions, uploaded_statement(&failed), generation, now);
}

/// Sets `why` on the first step that has not ended, which never will.
pub(super) fn blame(status: &mut DataGatherStatus, why: &str, generation: Option<i64>, now: Timestamp) {
    let open = |type_: &str| !conditions::is(&status.conditions, type_, Truth::True);
    let step = [RECORDED, UPLOADED, PROCESSED].into_iter().find(|type_| open(type_)).unwrap_or(PROCESSED);
    let statement = match step {
        RECORDED => recorded_statement(&RecordOutcome::Failed(why.to_owned())),
        UPLOADED => uploaded_statement(&UploadOutcome::Failed { code: 0, message: why.to_owned() }),
        _ => processed_statement(&ProcessOutcome::Failed(why.to_owned())),
    };
    conditions::set(&mut status.conditions, statement, generation, now);
}

/// Returns the status with the downloaded report. A report of another upload is not copied.
pub(super) fn of_report(
    mut status: DataGatherStatus,
    outcome: &ReportOutcome,
    wanted: &str,
    generation: Option<i64>,
    now: Timestamp,
) -> DataGatherStatus {
    let statement = match outcome {
        ReportOutcome::Found(report) if report.request_id == wanted => {
            status.insights_report = Some(copied(report, now));
            Statement::new(ANALYSIS, Truth::True, "ReportMatches", "the report of this upload was downloaded")
        }
        ReportOutcome::Found(report) => Statement::new(
            ANALYSIS,
            Truth::False,
            "RequestIDMismatch",
            format!("the downloaded report belongs to the upload {}", report.request_id),
        ),
        ReportOutcome::Missing(reason) => {
            Statement::new(ANALYSIS, Truth::False, "ReportNotFound", reason.as_str())
        }
    };
    conditions::set(&mut status.conditions, statement, generation, now);
    status
}

fn copied(report: &Report, now: Timestamp) -> InsightsReport {
    let Report { request_id: _, checks, uri } = report;
    let health_checks = checks.iter().map(|check| HealthCheck {
        description: check.description.clone(),
        total_risk: check.total_risk,
        advisor_uri: check.advisor_uri.clone(),
        state: HealthCheckState::Enabled,
    });
    InsightsReport {
        downloaded_at: Some(Time(now)),
        health_checks: health_checks.collect(),
        uri: uri.clone(),
    }
}

pub(super) fn success_notice(progress: &Progress) -> Notice {
    let (records, file) = match &progress.recorded {
        Some(RecordOutcome::Recorded(recorded)) => (recorded.records, recorded.file.as_str()),
        Some(RecordOutcome::Failed(_)) | None => (0, "no archive"),
    };
    Notice {
        warning: false,
        reason: "DataGatherCompleted",
        action: "Gather",
        note: format!("data gathering completed: {records} records in {file}"),
    }
}

pub(super) fn failure_notice(progress: &Progress) -> Notice {
    let Progress { rows: _, remote: _, recorded, uploaded, processed, ended: _ } = progress;
    let note = match (recorded, uploaded, processed) {
        (Some(RecordOutcome::Failed(reason)), _, _) => format!("recording failed: {reason}"),
        (_, Some(UploadOutcome::Failed { message, code: _ }), _) => format!("upload failed: {message}"),
        (_, _, Some(ProcessOutcome::Failed(reason))) => format!("processing failed: {reason}"),
        _ => "the gathering ended before it had recorded anything".to_owned(),
    };
    Notice { warning: true, reason: "DataGatherFailed", action: "Gather", note }
}

/// Returns one row per gatherer, at most as many as the schema allows: those with problems have priority.
fn gatherer_rows(rows: &[Row], now: Timestamp) -> Vec<GathererStatus> {
    let mut kept: Vec<_> = rows.iter().filter(|row| (5..=256).contains(&row.id.len())).collect();
    if kept.len() > MAX_ROWS {
        kept.sort_by_key(|row| matches!(row.verdict, Verdict::Gathered { .. } | Verdict::NoData(_)));
        kept.truncate(MAX_ROWS);
    }
    kept.into_iter().map(|row| gatherer_row(row, now)).collect()
}

fn gatherer_row(row: &Row, now: Timestamp) -> GathererStatus {
    let created = |records: &usize| format!("Created {records} records in the archive.");
    let (truth, reason, message) = match &row.verdict {
        Verdict::Gathered { records } => (Truth::True, "GatheredOK", created(records)),
        Verdict::GatheredWithErrors { records, errors } => {
            (Truth::True, "GatheredWithError", format!("{} {}", created(records), errors.join("; ")))
        }
        Verdict::NoData(reason) => (Truth::False, "NoData", reason.clone()),
        Verdict::Failed(reason) => (Truth::False, "GatherError", reason.clone()),
        Verdict::Panicked(reason) => (Truth::False, "GatherPanic", reason.clone()),
    };
    let mut conditions: Vec<Condition> = Vec::new();
    conditions::set(&mut conditions, Statement::new("DataGathered", truth, reason, message), None, now);
    GathererStatus { conditions, name: row.id.clone(), last_gather_duration: go_duration(row.duration) }
}

/// Formats a duration as Go does, rounded down to a microsecond: `0s`, `350µs`, `12.5ms`, `1m0.25s`, `1h0m0s`.
pub(super) fn go_duration(duration: Duration) -> String {
    let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    go::duration::format(micros.saturating_mul(1_000))
}

/// Parses a duration in Go's format. None if it is invalid or negative.
pub(super) fn read_go_duration(text: &str) -> Option<Duration> {
    go::duration::parse(text).ok()?.try_into().ok().map(Duration::from_nanos)
}

fn secret(namespace: &str, name: &str) -> RelatedObject {
    RelatedObject {
        group: String::new(),
        resource: "secrets".to_owned(),
        name: name.to_owned(),
        namespace: Some(namespace.to_owned()),
    }
}

/// Adds a related object, if it is not in the list yet.
pub(super) fn relate(status: &mut DataGatherStatus, related: RelatedObject) {
    if !status.related_objects.contains(&related) {
        status.related_objects.push(related);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_go_writes_them() {
        for (micros, text) in [
            (0, "0s"),
            (350, "350µs"),
            (1_000, "1ms"),
            (12_500, "12.5ms"),
            (1_000_000, "1s"),
            (1_250_000, "1.25s"),
            (60_250_000, "1m0.25s"),
            (3_600_000_000, "1h0m0s"),
        ] {
            assert_eq!(go_duration(Duration::from_micros(micros)), text);
            assert_eq!(read_go_duration(text), Some(Duration::from_micros(micros)), "{text}");
        }
        for none in ["", "1", "s", "1d", "-1s", "1.2.3s", "99999999999999999999h"] {
            assert_eq!(read_go_duration(none), None, "{none}");
        }
    }

    #[test]
    fn too_many_rows_keep_the_problems() {
        let row = |n: usize, verdict| Row {
            id: format!("group/f{n}"),
            duration: Duration::ZERO,
            verdict,
            warnings: Vec::new(),
        };
        let mut rows: Vec<_> = (0..120).map(|n| row(n, Verdict::Gathered { records: 1 })).collect();
        rows.push(row(120, Verdict::Panicked("boom".to_owned())));
        let kept = gatherer_rows(&rows, Timestamp::UNIX_EPOCH);
        assert_eq!(kept.len(), MAX_ROWS);
        assert_eq!(kept[0].name, "group/f120");
    }
}
