//! Where the logs of pods come from. This server has no nodes of its own; whoever runs pods beside it hands this in.

use std::fmt;
use std::io;

use bytes::Bytes;
use futures::stream::BoxStream;
use jiff::Timestamp;
use serde_json::Value;

/// What of a container's log is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// One of the pod's.
    pub container: String,
    /// Go on with what is yet to be written, until the container ends.
    pub follow: bool,
    /// The log of the start before this one.
    pub previous: bool,
    /// Each line after the time at which it was written.
    pub timestamps: bool,
    /// Nothing that is older.
    pub since: Option<Timestamp>,
    /// So many lines from the end.
    pub tail: Option<u64>,
    /// So many bytes.
    pub limit: Option<u64>,
    /// `Stdout` or `Stderr`; both where it is none.
    pub stream: Option<String>,
}

/// Why there is no log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogError {
    /// The pod is on a node that nobody here speaks for.
    OtherNode,
    /// 400 with this text.
    Refused(String),
}

/// A log, as it comes.
pub type LogStream = BoxStream<'static, io::Result<Bytes>>;

/// Gives the logs of pods.
pub trait PodLogs: Send + Sync + fmt::Debug {
    /// The log of a container of `pod`, which is as it is stored.
    ///
    /// # Errors
    /// When there is none.
    fn open(&self, pod: &Value, options: LogOptions) -> Result<LogStream, LogError>;
}
