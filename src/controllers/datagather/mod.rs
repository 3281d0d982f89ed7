//! The controller of DataGathers: runs a data gathering for each, and reports its progress in the status.
//!
//! A pipeline with I/O only at its ends: [`fetch`] reads, [`plan`] decides, [`apply`] prepares the work, [`status`]
//! writes and starts the work. The work itself (`run`) is a supervised task whose results the next plan reads as
//! values.
//!
//! ```text
//!  watch ──► reconcile: fetch ──► plan ──► apply ──► status write (fenced) ──► permit
//!    ▲                    ▲                  │ prepares                          │ releases
//!    └── status changes   └── Progress ── run: gather, record, upload, processing ◄┘
//! ```
//!
//! Guarantees: a DataGather is run at most once and has at most one archive, whenever a process is killed; one that
//! is `Running` always comes to an end, at the latest with the next process. The reasons are with [`plan`] and with
//! [`crate::gather::store`]. Left to others: what is gathered and how it is uploaded (`gather`), and which states may
//! follow which (the policies).

pub mod active_runs;
pub mod apply;
pub mod config;
pub mod configuration_watch;
mod counts;
pub mod crd;
mod defaults;
pub mod execute;
pub mod fetch;
pub mod health;
mod instructions;
pub mod job;
pub mod job_inputs;
mod obfuscation;
pub mod operator_status;
mod periodic;
pub mod plan;
mod prune;
mod run_conditions;
pub mod run_state;
mod service;
pub mod settings;
mod shutdown;
mod stale_jobs;
pub mod status;
pub mod versions;

use std::sync::Arc;

use kube::{Client, ResourceExt as _};

use self::active_runs::Runs;
use self::configuration_watch::Changes;
use self::crd::DataGather;
use self::execute::RunContext;
use self::health::Health;
use self::operator_status::Copied;
use self::plan::Rules;
use self::service::Known;
use super::kit::controller::{Failure, Next, Reconcile};
use super::kit::events::Events;
use super::kit::key::Key;
use super::kit::retry::{Remedy, remedy};
use super::kit::status::WriteError;
use super::kit::tasks::{Closed, Pool};
use crate::telemetry::with_causes;

pub use counts::Counts;
pub use service::{RunError, check, member, run, run_one};
pub use settings::{JobSettings, ObfuscationSettings, RunnerKind, Settings, TokenSettings, UploadSettings};

/// The shared state of all reconciliations.
pub struct Context {
    pub client: Client,
    pub workshop: Arc<RunContext>,
    pub rules: Rules,
    pub runs: Runs,
    pub pool: Pool,
    pub events: Events,
    pub health: Health,
    /// The last copy into the InsightsOperator.
    pub copied: Copied,
    /// Triggers checks of periodic gatherings.
    pub changes: Changes,
    /// What the watches have told.
    known: Known,
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

/// Why the reconciliation of a DataGather failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("cannot read the object, its Job or its copy, or write them: {}", with_causes(.0))]
    Api(#[from] kube::Error),
    #[error("cannot build a Job: {0}")]
    Manifest(#[from] serde_json::Error),
    #[error(transparent)]
    Stopping(#[from] Closed),
}

impl Failure for Error {
    fn remedy(&self) -> Remedy {
        match self {
            Self::Write(error) => error.remedy(),
            Self::Api(error) => remedy(error),
            Self::Manifest(_) | Self::Stopping(_) => Remedy::Change,
        }
    }
}

impl Reconcile for Context {
    type Object = DataGather;
    type Error = Error;

    /// Looks at one DataGather and brings it one step on. Nothing was begun where that fails.
    async fn reconcile(&self, object: &DataGather) -> Result<Next, Error> {
        self.health.see(&Key::of(object), object);
        if object.has_ended() {
            self.changes.ended(&object.name_any());
        }
        let fetched = fetch::fetch(self, object).await?;
        let plan = plan::plan(&fetched, &self.rules);
        let applied = apply::apply(self, &fetched, plan).await?;
        let next = status::write(self, &fetched, applied).await?;
        if self.rules.reports {
            operator_status::keep(self, object).await?;
        }
        Ok(next)
    }

    fn gone(&self, object: &Key) {
        self.health.gone(object);
        self.changes.ended(&object.name);
        self.runs.forget(object);
    }
}
