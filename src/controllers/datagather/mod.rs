//! Controls DataGathers: runs a data gathering for each, and reports its progress in the status.
//!
//! A pipeline with I/O only at its ends: [`fetch`] reads, [`plan`] decides, [`apply`] prepares the work, [`status`]
//! writes and starts the work. The work itself (`execute`) is a supervised task whose results the next plan reads as
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
//!
//! | module | decides | may use |
//! |---|---|---|
//! | `crd` | DataGather as Rust types | none of these |
//! | `settings` | the settings, and their defaults | none of these |
//! | `run_state` | how far a run has come, as a value | none of these |
//! | `active_runs` | the runs of this process, and how each is stopped | run_state |
//! | `config` | what the configuration of the cluster says, over the settings | settings |
//! | `defaults` | what periodic gatherings ask for | crd |
//! | `counts` | metrics | crd |
//! | `job_inputs` | what a gathering Job is given | config, crd, settings |
//! | `job` | the Job of a gathering: manifest, owner, progress. Pure | crd, job_inputs, settings |
//! | `run_conditions` | what a run and its report mean for the status. Pure | crd, run_state |
//! | `health` | whether gathering works, for the ClusterOperator | counts, crd, job, run_conditions |
//! | `periodic` | when the next DataGather is created | config, crd, defaults, health |
//! | `fetch` | first stage: reads what the plan depends on | crd, job, run_state, settings |
//! | `plan` | second stage: the next step. Pure | crd, fetch, job, periodic, run_conditions, run_state |
//! | `run_context` | what all runs share | config, counts, settings |
//! | `instructions` | what the remote configuration wants gathered | config, run_context, run_state |
//! | `obfuscation` | what is obfuscated, and where its translation goes | config, plan, run_context, settings |
//! | `execute` | the work of a run: gather, record, upload, wait, download | active_runs, instructions, obfuscation, plan, run_context, run_state, settings |
//! | `stale_jobs` | which Jobs of a previous process are deleted | job, periodic |
//! | `apply` | third stage: prepares the work | active_runs, execute, fetch, job, job_inputs, plan, run_state, settings, stale_jobs |
//! | `status` | last stage: writes the status, then releases the work | apply, fetch, plan |
//! | `operator_status` | the copy of the newest gathering in the InsightsOperator | crd, run_conditions |
//! | `configuration_watch` | what counts as a change of the configuration | config, defaults |
//! | `prune` | which DataGathers and Jobs are too old | crd, job, settings |
//! | `shutdown` | how gatherings end with the process | crd |
//! | `service` | the parts of the controller and their watches | active_runs, configuration_watch, counts, crd, health, job, operator_status, periodic, plan, prune, run_context, settings, shutdown, stale_jobs |
//! | `versions` | the conversion between API versions | run_conditions |

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
pub mod run_context;
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
use self::health::Health;
use self::operator_status::Copied;
use self::plan::Rules;
use self::run_context::RunContext;
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
    pub run_context: Arc<RunContext>,
    pub rules: Rules,
    pub runs: Runs,
    pub pool: Pool,
    pub events: Events,
    pub health: Health,
    /// The last copy into the InsightsOperator.
    pub copied: Copied,
    /// Triggers checks of periodic gatherings.
    pub changes: Changes,
    /// The cached Jobs and Pods.
    known: Known,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("rules", &self.rules).finish_non_exhaustive()
    }
}

impl Context {
    fn settings(&self) -> &Settings {
        &self.run_context.settings
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

    /// Reconciles one DataGather. After an error, no work was started.
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
