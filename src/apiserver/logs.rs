//! The source of pod logs. This server has no nodes of its own; the code that runs pods beside it provides one.

use std::fmt;
use std::io;

use bytes::Bytes;
use futures::stream::BoxStream;
use jiff::Timestamp;
use serde_json::Value;

/// Which part of a container's log is requested.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// The name of a container of the pod.
    pub container: String,
    /// Go on with what is yet to be written, until the container ends.
    pub follow: bool,
    /// The log of the start before this one.
    pub previous: bool,
    /// Whether each line is prefixed with its time.
    pub timestamps: bool,
    /// Only lines since this time.
    pub since: Option<Timestamp>,
    /// The number of lines from the end.
    pub tail: Option<u64>,
    /// The maximum number of bytes.
    pub limit: Option<u64>,
    /// `Stdout` or `Stderr`; both where it is none.
    pub stream: Option<String>,
}

/// Why there is no log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogError {
    /// The pod is on a node that this source does not serve.
    OtherNode,
    /// 400 with this text.
    Refused(String),
}

/// A log, as it comes.
pub type LogStream = BoxStream<'static, io::Result<Bytes>>;

/// Gives the logs of pods.
///
/// [`Server`](crate::Server) has an example.
pub trait PodLogs: Send + Sync + fmt::Debug {
    /// The log of a container of `pod`, which is as it is stored.
    ///
    /// # Errors
    /// When there is none.
    fn open(&self, pod: &Value, options: LogOptions) -> Result<LogStream, LogError>;
}
