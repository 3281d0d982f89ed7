//! Looks at one add-on: aggregates what its components say, and shows the result on the hub.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};

use super::aggregate::aggregated;
use super::crd::{ObservabilityAddon, ObservabilityAddonStatus};
use super::hub::{Hub, HubError};
use super::vocabulary::Vocabulary;
use crate::controllers::kit::clock::Clock;
use crate::controllers::kit::conflict::on_conflict;
use crate::controllers::kit::controller::{Failure, Next, Reconcile};
use crate::controllers::kit::retry::{Remedy, remedy};
use crate::telemetry::with_causes;

/// What every look is given.
pub struct Keeper {
    pub(super) client: Client,
    pub(super) vocabulary: &'static Vocabulary,
    pub(super) hub: Option<Hub>,
    pub(super) clock: Clock,
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").field("vocabulary", &self.vocabulary.name).finish_non_exhaustive()
    }
}

/// Why a look at an add-on came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read or write the status: {}", with_causes(.0))]
    Spoke(#[from] kube::Error),
    #[error(transparent)]
    Hub(#[from] HubError),
}

impl Failure for Error {
    fn remedy(&self) -> Remedy {
        match self {
            Self::Spoke(error) => remedy(error),
            Self::Hub(error) => error.remedy(),
        }
    }
}

impl Reconcile for Keeper {
    type Object = ObservabilityAddon;
    type Error = Error;

    async fn reconcile(&self, object: &ObservabilityAddon) -> Result<Next, Error> {
        let stored = self.aggregate(object).await?;
        if let Some(hub) = &self.hub {
            hub.show(stored.as_ref().unwrap_or(object)).await?;
        }
        Ok(Next::Settled)
    }
}

impl Keeper {
    /// The object as it was written, none where nothing was to be written. Without a request then: what the watch told is enough to
    /// see that.
    async fn aggregate(&self, known: &ObservabilityAddon) -> Result<Option<ObservabilityAddon>, kube::Error> {
        if aggregated(known.conditions(), self.vocabulary, self.clock.now()).is_none() {
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

/// Changes whenever a component says something else: what the keeper itself writes is not looked at.
pub(super) fn said_by_components(object: &ObservabilityAddon, vocabulary: &Vocabulary) -> u64 {
    let mut hasher = DefaultHasher::new();
    for condition in object.conditions() {
        if !vocabulary.is_standard(condition) {
            (&condition.type_, &condition.status, &condition.reason, &condition.message).hash(&mut hasher);
        }
    }
    object.metadata.deletion_timestamp.is_some().hash(&mut hasher);
    hasher.finish()
}
