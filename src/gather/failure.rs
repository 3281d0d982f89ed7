//! Defines the errors of gatherers.

use std::time::Duration;

use crate::telemetry::with_causes;

/// Why a gatherer failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("the server does not serve {0}")]
    MissingApi(String),
    #[error("cannot read {what}: {}", with_causes(source))]
    Api {
        what: String,
        #[source]
        source: Box<kube::Error>,
    },
    #[error("cannot read {what}: {why}")]
    Unreadable { what: String, why: String },
    #[error("cannot write a record: {0}; give the archive folder room, or choose another")]
    Disk(String),
    #[error("no answer within {} s", .0.as_secs())]
    Timeout(Duration),
}
