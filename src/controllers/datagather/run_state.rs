//! Defines the progress of a run in this process, as a value that the run writes and the plan reads.
//!
//! A run never writes a status. It reports what happened, and the next reconciliation turns that into a status.

use jiff::Timestamp;

use crate::gather::collect::Row;
use crate::gather::upload::Report;

/// The current work of this process for one DataGather.
#[derive(Clone, Debug, PartialEq)]
pub enum Activity {
    /// No work. If the DataGather is `Running` all the same, its run was lost.
    Idle,
    /// Gathering; or done, until the final status is written.
    Gathering(Progress),
    /// The gathering was stopped with the controller, with this progress.
    Interrupted(Progress),
    /// Downloading the report; with the result when there is one.
    Reporting(Option<ReportOutcome>),
}

/// The completed steps of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    pub rows: Vec<Row>,
    /// The result of requesting the remote configuration, if one is configured.
    pub remote: Option<RemoteOutcome>,
    pub recorded: Option<RecordOutcome>,
    pub uploaded: Option<UploadOutcome>,
    pub processed: Option<ProcessOutcome>,
    /// When the run ended.
    pub ended: Option<Timestamp>,
}

impl Progress {
    /// Whether a step failed, and with it the run.
    pub fn failed(&self) -> bool {
        let Self { rows: _, remote: _, recorded, uploaded, processed, ended: _ } = self;
        !matches!(recorded, Some(RecordOutcome::Recorded(_)))
            || matches!(uploaded, Some(UploadOutcome::Failed { .. }))
            || matches!(processed, Some(ProcessOutcome::Failed(_)))
    }
}

/// The result of writing the archive.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordOutcome {
    Recorded(Recorded),
    Failed(String),
}

/// An archive on disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    pub records: usize,
    pub file: String,
    /// The Secret that translates obfuscated addresses, as `(namespace, name)`.
    pub translation: Option<(String, String)>,
    /// Whether network data should be obfuscated, but neither the cluster nor the settings name the cluster's domain.
    pub names_unknown: bool,
}

/// The result of requesting the remote configuration. If it fails, the built-in one applies, and the gathering
/// continues.
#[derive(Clone, Debug, PartialEq)]
pub enum RemoteOutcome {
    Followed,
    /// `code` is 0 if there was no response.
    Unavailable {
        code: u16,
        message: String,
    },
    /// The configuration is invalid.
    Invalid(String),
}

#[derive(Clone, Debug, PartialEq)]
pub enum UploadOutcome {
    NotConfigured,
    Accepted {
        code: u16,
        request_id: String,
    },
    /// `code` is 0 if there was no response.
    Failed {
        code: u16,
        message: String,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum ProcessOutcome {
    NotConfigured,
    Processed,
    Failed(String),
}

#[derive(Clone, Debug, PartialEq)]
pub enum ReportOutcome {
    Found(Report),
    Missing(String),
}
