//! Reconciles the add-on of this cluster: reports the state of its collectors, and aggregates the conditions of its
//! components. The link to the hub watches the result.

use std::fmt;
use std::sync::Arc;

use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};

use super::aggregate::aggregated;
use super::changes::Changes;
use super::counts::Counts;
use super::crd::{NAME, ObservabilityAddon, ObservabilityAddonStatus};
use super::endpoint::{self, Operator};
use super::last_seen::LastSeen;
use super::vocabulary::Vocabulary;
use crate::controllers::kit::clock::Clock;
use crate::controllers::kit::conflict::on_conflict;
use crate::controllers::kit::controller::{Failure, Next, Reconcile};
use crate::controllers::kit::key::Key;
use crate::controllers::kit::retry::{Remedy, remedy};
use crate::telemetry::with_causes;

/// The shared state of all reconciliations of add-ons.
pub struct Reconciler {
    pub(super) client: Client,
    pub(super) vocabulary: &'static Vocabulary,
    /// The endpoint operator's part, unless another program does it.
    pub(super) endpoint: Option<Operator>,
    pub(super) changes: Arc<Changes>,
    pub(super) seen: LastSeen,
    pub(super) counts: Counts,
    pub(super) clock: Clock,
}

impl fmt::Debug for Reconciler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reconciler").field("vocabulary", &self.vocabulary.name).finish_non_exhaustive()
    }
}

/// Why the reconciliation of an add-on failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read or write the status: {}", with_causes(.0))]
    Spoke(#[from] kube::Error),
    #[error(transparent)]
    Endpoint(#[from] endpoint::Error),
}

impl Failure for Error {
    fn remedy(&self) -> Remedy {
        match self {
            Self::Spoke(error) => remedy(error),
            Self::Endpoint(error) => error.remedy(),
        }
    }
}

impl Reconcile for Reconciler {
    type Object = ObservabilityAddon;
    type Error = Error;

    async fn reconcile(&self, object: &ObservabilityAddon) -> Result<Next, Error> {
        let mut looked = Ok(false);
        if let Some(endpoint) = &self.endpoint {
            looked = endpoint.look(object).await;
        }
        // A report changes the conditions to aggregate; a failed report does not prevent the aggregation.
        let said = matches!(looked, Ok(true));
        let stored = self.aggregate(object, said).await?;
        if object.name_any() == NAME {
            self.seen.set(Some(stored.unwrap_or_else(|| object.clone())));
        }
        looked?;
        Ok(Next::Settled)
    }

    fn gone(&self, object: &Key) {
        self.changes.forget(&object.uid);
        self.counts.forget(&object.uid);
        if object.name == NAME {
            self.seen.set(None);
        }
    }
}

impl Reconciler {
    /// Aggregates, and returns the object as written or read; None if nothing had to be written. That needs no request: the watched object
    /// is enough to see that, unless it is `outdated`.
    async fn aggregate(
        &self,
        known: &ObservabilityAddon,
        outdated: bool,
    ) -> Result<Option<ObservabilityAddon>, kube::Error> {
        if !outdated && aggregated(known.conditions(), self.vocabulary, self.clock.now()).is_none() {
            return Ok(None);
        }
        let namespace = known.namespace().unwrap_or_default();
        let api: Api<ObservabilityAddon> = Api::namespaced(self.client.clone(), &namespace);
        on_conflict(|| async {
            let mut object = api.get(&known.name_any()).await?;
            let Some(conditions) = aggregated(object.conditions(), self.vocabulary, self.clock.now()) else {
                return Ok(Some(object));
            };
            object.status = Some(ObservabilityAddonStatus { conditions });
            api.replace_status(&known.name_any(), &PostParams::default(), &object).await.map(Some)
        })
        .await
    }
}
