//! Defines the source of pod logs. This server has no nodes of its own; the code that runs pods beside it provides one.

use std::fmt;
use std::io;

use bytes::Bytes;
use futures::stream::BoxStream;
use jiff::Timestamp;
use serde_json::Value;

/// The requested part of a container's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// The name of a container of the pod.
    pub container: String,
    /// Whether to continue with new output until the container ends.
    pub follow: bool,
    /// Whether the log of the previous instance is requested.
    pub previous: bool,
    /// Whether each line is prefixed with its time.
    pub timestamps: bool,
    /// Only lines since this time.
    pub since: Option<Timestamp>,
    /// The number of lines from the end.
    pub tail: Option<u64>,
    /// The maximum number of bytes.
    pub limit: Option<u64>,
    /// `Stdout` or `Stderr`; None for both.
    pub stream: Option<String>,
}

/// Says why there is no log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogError {
    /// The pod is on a node that this source does not serve.
    OtherNode,
    /// Answered with 400 and this text.
    Refused(String),
}

/// The bytes of a log, as they are read.
pub type LogStream = BoxStream<'static, io::Result<Bytes>>;

/// Provides the logs of pods.
///
/// [`Server`](crate::Server) has an example.
pub trait PodLogs: Send + Sync + fmt::Debug {
    /// Opens the log of a container of `pod`, which is the stored object.
    ///
    /// # Errors
    /// If there is none.
    fn open(&self, pod: &Value, options: LogOptions) -> Result<LogStream, LogError>;
}
