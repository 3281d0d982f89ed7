//! The progress of a run in this process, as a value that the run writes and the plan reads.
//!
//! A run never writes a status. It reports what happened, and the next reconciliation turns that into a status.

use jiff::Timestamp;

use crate::gather::collect::Row;
use crate::gather::upload::Report;

/// The current work of this process for one DataGather.
#[derive(Clone, Debug, PartialEq)]
pub enum Activity {
    /// Nothing. A DataGather that is `Running` all the same lost its run.
    Idle,
    /// Gathering, or done with it and waiting for the final status to be seen.
    Gathering(Progress),
    /// Gathered until the controller stopped; so far it had come.
    Interrupted(Progress),
    /// Downloading the report; the outcome once there is one.
    Reporting(Option<ReportOutcome>),
}

/// Steps of a run that have ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    pub rows: Vec<Row>,
    /// The result of asking for the remote configuration, if one is configured.
    pub remote: Option<RemoteOutcome>,
    pub recorded: Option<RecordOutcome>,
    pub uploaded: Option<UploadOutcome>,
    pub processed: Option<ProcessOutcome>,
    /// When nothing more was left to do.
    pub ended: Option<Timestamp>,
}

impl Progress {
    /// Whether a step failed, so that the run as a whole did.
    pub fn failed(&self) -> bool {
        let Self { rows: _, remote: _, recorded, uploaded, processed, ended: _ } = self;
        !matches!(recorded, Some(RecordOutcome::Recorded(_)))
            || matches!(uploaded, Some(UploadOutcome::Failed { .. }))
            || matches!(processed, Some(ProcessOutcome::Failed(_)))
    }
}

/// What came of writing down what was gathered.
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
    /// Secret that translates obfuscated addresses, as `(namespace, name)`.
    pub translation: Option<(String, String)>,
    /// Network data was to be obfuscated, and neither the cluster nor the settings name the cluster's domain.
    pub names_unknown: bool,
}

/// The result of asking for the remote configuration. Without one the built-in one applies, and the gathering goes
/// on.
#[derive(Clone, Debug, PartialEq)]
pub enum RemoteOutcome {
    Followed,
    /// `code` is 0 where there was no answer.
    Unavailable {
        code: u16,
        message: String,
    },
    /// It cannot be followed.
    Invalid(String),
}

#[derive(Clone, Debug, PartialEq)]
pub enum UploadOutcome {
    NotConfigured,
    Accepted {
        code: u16,
        request_id: String,
    },
    /// `code` is 0 where there was no answer.
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
