//! Defines why a Pod waits or a probe fails, with the messages of a kubelet, which Events and statuses repeat.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::env::Missing;
use crate::telemetry::with_causes;

/// Why a volume cannot be filled, or cannot be mounted into a container.
#[derive(Debug, thiserror::Error)]
pub(super) enum VolumeError {
    #[error("MountVolume.SetUp failed for volume {name:?} : {why}")]
    SetUp { name: String, why: Box<Self> },
    #[error("{kind} {name:?} not found")]
    NotFound { kind: &'static str, name: String },
    #[error("references non-existent {kind} key: {key}")]
    MissingKey { kind: &'static str, key: String },
    #[error(transparent)]
    MissingField(#[from] Missing),
    #[error("resourceFieldRef is not known on this machine")]
    UnknownField,
    #[error("this machine does not know its kind; give the Pod an emptyDir or a claim")]
    UnknownKind,
    #[error("this machine does not know the kind of one of its sources")]
    UnknownSource,
    #[error("volume {0:?} is not there")]
    MissingVolume(String),
    #[error("subPath {path:?} of volume {volume:?} leads out of it")]
    InvalidSubPath { path: String, volume: String },
    #[error("subPath {path:?}: {why}")]
    SubPath { path: String, why: io::Error },
    #[error("failed to fetch token: {}", with_causes(.0))]
    Token(kube::Error),
    #[error("MountVolume.SetUp failed for volume \"kube-api-access\": failed to fetch token: {0}")]
    AccountToken(kube::Error),
    #[error("cannot write `{}`: {why}", folder.display())]
    Folder { folder: PathBuf, why: io::Error },
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("{}", with_causes(.0))]
    Server(kube::Error),
}

/// Why the configuration of a container is unknown.
#[derive(Debug, thiserror::Error)]
pub(super) enum ContainerConfigError {
    #[error("{}", with_causes(.0))]
    Server(kube::Error),
    #[error(transparent)]
    Environment(#[from] Missing),
    #[error(transparent)]
    Volume(#[from] VolumeError),
    #[error(transparent)]
    Folder(#[from] io::Error),
}

/// Why a probe, or a lifecycle hook, failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProbeError {
    /// The output of the command.
    #[error("{0}")]
    Output(String),
    #[error("command timed out: {command:?} timed out after {within:?}")]
    CommandTimedOut { command: String, within: Duration },
    #[error("invalid port number: {0}")]
    InvalidPort(i32),
    #[error("couldn't find port: {0}")]
    MissingPort(String),
    #[error("HTTP probe failed with statuscode: {0}")]
    StatusCode(u16),
    #[error("Get {url:?}: {why}")]
    Get { url: String, why: String },
    #[error("Get {0:?}: context deadline exceeded (Client.Timeout exceeded while awaiting headers)")]
    GetTimedOut(String),
    #[error("dial tcp {address}: {why}")]
    Dial { address: String, why: String },
    #[error("dial tcp {0}: i/o timeout")]
    DialTimedOut(String),
    #[error("invalid handler")]
    InvalidHandler,
}
