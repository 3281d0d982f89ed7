//! Runs a data gathering for each DataGather and says in its status how it went.
//!
//! A pipeline with I/O only at its ends: [`fetch`] reads, [`plan`] decides, [`apply`] sets work up, [`status`] writes
//! and lets it begin. The work itself (`run`) is a supervised task whose outcomes the next plan reads as values.
//!
//! ```text
//!  watch ──► reconcile: fetch ──► plan ──► apply ──► status write (fenced) ──► permit
//!    ▲                    ▲                  │ prepares                          │ releases
//!    └── status changes   └── Progress ── run: gather, record, upload, processing ◄┘
//! ```
//!
//! What is promised: a DataGather is run at most once and has at most one archive, whatever is killed when; one that
//! is `Running` always comes to an end, at the latest with the next process. The reasons are with [`plan`] and with [`crate::gather::store`].
//! Left to others: what is gathered and how it travels (`gather`), which states may follow which (the policies).

pub mod apply;
pub mod crd;
mod defaults;
pub mod fetch;
pub mod job;
mod outcome;
mod periodic;
pub mod plan;
pub mod progress;
mod prune;
pub mod run;
pub mod runs;
mod service;
pub mod settings;
pub mod status;
mod stop;

use std::sync::Arc;

use kube::core::DeserializeGuard;
use kube::runtime::controller::Action;
use kube::{Client, ResourceExt};
use tracing::{error, warn};

use self::crd::DataGather;
use self::plan::Rules;
use self::run::Workshop;
use self::runs::Runs;
use super::kit::events::Events;
use super::kit::retry::{Backoff, Remedy, remedy};
use super::kit::status::WriteError;
use super::kit::tasks::{Closed, Pool};
use crate::telemetry::{Outside, Secrets, with_causes};

pub use service::{RunError, check, run, run_one};
pub use settings::{JobSettings, ObfuscationSettings, RunnerKind, Settings, TokenSettings, UploadSettings};

/// What every reconciliation is given.
pub struct Context {
    pub client: Client,
    pub workshop: Arc<Workshop>,
    pub rules: Rules,
    pub runs: Runs,
    pub pool: Pool,
    pub events: Events,
    pub backoff: Backoff,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("rules", &self.rules).finish_non_exhaustive()
    }
}

impl Context {
    fn settings(&self) -> &Settings {
        &self.workshop.settings
    }
}

/// Why one look at a DataGather came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("cannot read the object, or read or create its Job: {}", with_causes(.0))]
    Api(#[from] kube::Error),
    #[error("cannot build a Job: {0}")]
    Manifest(#[from] serde_json::Error),
    #[error(transparent)]
    Stopping(#[from] Closed),
}

impl Error {
    fn remedy(&self) -> Remedy {
        match self {
            Self::Write(WriteError::Api { source, .. }) => remedy(source),
            Self::Api(error) => remedy(error),
            Self::Write(WriteError::Unfenced(_)) | Self::Manifest(_) | Self::Stopping(_) => Remedy::Change,
        }
    }
}

/// Looks at one DataGather and brings it one step on.
///
/// # Errors
/// [`Error`]; nothing was begun then.
pub async fn reconcile(
    object: Arc<DeserializeGuard<DataGather>>,
    context: Arc<Context>,
) -> Result<Action, Error> {
    let object = match &object.0 {
        Ok(object) => object,
        Err(invalid) => {
            // It quotes what the object says.
            let error = Outside::of(&invalid.error, &Secrets::default());
            error!(name = invalid.metadata.name, %error, "DataGather does not decode");
            return Ok(Action::await_change());
        }
    };
    let fetched = fetch::fetch(&context, object).await?;
    let plan = plan::plan(&fetched, &context.rules);
    let applied = apply::apply(&context, &fetched, plan).await?;
    let action = status::write(&context, &fetched, applied).await?;
    context.backoff.reset(&object.name_any());
    Ok(action)
}

#[expect(clippy::needless_pass_by_value, reason = "the signature is that of kube's error policy")]
fn on_error(object: Arc<DeserializeGuard<DataGather>>, error: &Error, context: Arc<Context>) -> Action {
    let (name, remedy) = (object.name_any(), error.remedy());
    match remedy {
        Remedy::Reread => tracing::debug!(name, %error, "written by another, looking again"),
        Remedy::Change | Remedy::Wait => warn!(name, %error, ?remedy, "reconciliation failed"),
    }
    context.backoff.after(&name, remedy)
}
