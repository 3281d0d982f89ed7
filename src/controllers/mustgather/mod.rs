//! Controls MustGathers: runs a Job for each, and reports its progress in the status.
//!
//! A pipeline with I/O only at its ends: [`fetch`] reads, [`plan`] decides, [`apply`] creates the Job, `finish`
//! writes the status and cleans up. The Job does the work, with this program in two of its containers
//! (`gather::must_gather`).
//!
//! Guarantees: one Job for one object, whenever a process is killed; a result is final; nothing is removed that does
//! not belong to the object. Uses kit, gather and telemetry, and no other controller. Left to others: what is
//! gathered, how an archive is uploaded, and who may ask for it (the policies).
//!
//! | module | decides | may use |
//! |---|---|---|
//! | `crd` | MustGather as Rust types | none of these |
//! | `settings` | the settings | none of these |
//! | `counts` | metrics, under the names of upstream | none of these |
//! | `limit` | the time limit. Pure | none of these |
//! | `job` | the Job: manifest, owner, progress. Pure | crd, settings |
//! | `service` | the controller and its watches | counts, crd, job, settings |
//! | `fetch` | first stage: reads what the plan depends on | crd, job, service |
//! | `status` | what the status says. Pure | crd, fetch |
//! | `obfuscation` | what the Job obfuscates. Pure | crd, fetch, job |
//! | `plan` | second stage: the next step. Pure | crd, fetch, job, limit, obfuscation, settings, status |
//! | `apply` | third stage: creates the Job | crd, fetch, job, plan |
//! | `finish` | last stage: writes the status, cleans up | apply, crd, fetch, plan, status |

pub mod apply;
mod counts;
pub mod crd;
pub mod fetch;
mod finish;
pub mod job;
pub mod limit;
mod obfuscation;
pub mod plan;
mod service;
pub mod settings;
pub mod status;

use kube::Client;

use self::crd::MustGather;
use super::kit::controller::{Failure, Next, Reconcile};
use super::kit::events::Events;
use super::kit::finalizer::FinalizerError;
use super::kit::retry::{Remedy, remedy};
use super::kit::status::WriteError;
use crate::telemetry::with_causes;

pub use counts::Counts;
pub use service::{Known, member, run};
pub use settings::{Rules, Settings};

/// The finalizer that keeps an object until its Job and other leftovers are removed.
pub const FINALIZER: &str = "finalizer.mustgathers.operator.openshift.io";
/// The name of the controller.
pub const NAME: &str = "mustgather";

/// The shared state of all reconciliations.
pub struct Context {
    pub client: Client,
    pub settings: Settings,
    pub events: Events,
    pub counts: Counts,
    /// The cached Jobs and Pods.
    pub known: Known,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Why the reconciliation of a MustGather failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("cannot read or write what belongs to the object: {}", with_causes(.0))]
    Api(#[from] kube::Error),
    #[error("a Job of the name was made meanwhile")]
    Again,
    #[error(transparent)]
    Unclean(Box<FinalizerError<Self>>),
}

impl Failure for Error {
    fn remedy(&self) -> Remedy {
        match self {
            Self::Write(error) => error.remedy(),
            Self::Api(error) => remedy(error),
            Self::Again => Remedy::Reread,
            Self::Unclean(left) => left.remedy(),
        }
    }
}

impl Reconcile for Context {
    type Object = MustGather;
    type Error = Error;

    async fn reconcile(&self, object: &MustGather) -> Result<Next, Error> {
        let looked = self.look(object).await;
        match &looked {
            Err(Error::Api(error)) if remedy(error) == Remedy::Refused => {
                finish::tell_refusal(self, object, error).await;
            }
            Err(Error::Unclean(left)) => finish::tell(self, object, &with_causes(left)).await,
            _ => {}
        }
        looked
    }
}

impl Context {
    async fn look(&self, object: &MustGather) -> Result<Next, Error> {
        let fetched = fetch::fetch(self, object).await?;
        let plan = plan::plan(&fetched, &self.settings);
        let applied = apply::apply(self, &fetched, plan).await?;
        finish::write(self, &fetched, applied).await
    }
}
