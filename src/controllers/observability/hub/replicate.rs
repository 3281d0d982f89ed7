//! Reconciles the hub's object: copies its spec to the spoke and the spoke's status to it, and releases it when the
//! spoke has cleaned up.

use std::sync::Arc;
use std::time::Duration;

use kube::api::PostParams;
use kube::{Api, ResourceExt};
use tokio::time::timeout;
use tracing::{info, warn};

use super::error::{Class, HubError};
use super::reach::Heard;
use super::spoke::Spoke;
use crate::controllers::kit::conditions::Truth;
use crate::controllers::kit::conflict::on_conflict;
use crate::controllers::kit::controller::{Next, Reconcile};
use crate::controllers::kit::operator::{Aspect, Says};
use crate::controllers::observability::counts::Counts;
use crate::controllers::observability::crd::{FINALIZER, NAME, ObservabilityAddon};
use crate::telemetry::with_causes;

/// As whose part it says how it is.
pub(super) const PART: &str = "Hub";
/// For one look, conflicts and all. A hub that takes longer is not there.
const ANSWER: Duration = Duration::from_secs(30);
/// Until the spoke is looked at again while it goes; what holds it is told of by no watch of ours where it was never seen.
const CLEANING: Duration = Duration::from_secs(5);

pub(super) struct Replicator {
    pub(super) hub: Api<ObservabilityAddon>,
    pub(super) namespace: String,
    pub(super) heard: Arc<Heard>,
    pub(super) spoke: Spoke,
    pub(super) counts: Counts,
    pub(super) says: Says,
}

/// What a look came to.
enum Looked {
    Written,
    Same,
    /// To be looked at again.
    Cleaning,
    Released,
}

impl Reconcile for Replicator {
    type Object = ObservabilityAddon;
    type Error = HubError;

    async fn reconcile(&self, hub: &ObservabilityAddon) -> Result<Next, HubError> {
        let looked = timeout(ANSWER, self.look(hub)).await.unwrap_or(Err(HubError::Silent(ANSWER)));
        say(&self.says, looked.as_ref().err());
        match looked {
            Ok(looked) => {
                let (result, next) = match looked {
                    Looked::Written => ("written", Next::Settled),
                    Looked::Same => ("unchanged", Next::Settled),
                    Looked::Cleaning => ("cleaning", Next::After(CLEANING)),
                    Looked::Released => ("released", Next::Settled),
                };
                self.heard.worked();
                self.counts.replicated(result);
                Ok(next)
            }
            Err(error) => {
                self.counts.replicated(error.result());
                if error.class() == Class::Credentials {
                    self.heard.wear(&with_causes(&error));
                }
                Err(error)
            }
        }
    }
}

impl Replicator {
    async fn look(&self, hub: &ObservabilityAddon) -> Result<Looked, HubError> {
        if self.spoke.is_own(hub).await? {
            return Err(HubError::Itself { namespace: self.namespace.clone() });
        }
        if hub.metadata.deletion_timestamp.is_some() {
            return self.release(hub).await;
        }
        self.hold(hub).await?;
        match self.spoke.follow(hub).await? {
            Some(spoke) if spoke.conditions() != hub.conditions() => self.show(&spoke).await,
            Some(_) | None => Ok(Looked::Same),
        }
    }

    /// The finalizer comes before anything that would have to be cleaned up. It also tells the hub's objects, which are copies,
    /// from those that components write, to policies on transitions: a copy skips what happened while the hub was away.
    async fn hold(&self, hub: &ObservabilityAddon) -> Result<(), HubError> {
        if is_held(hub) {
            return Ok(());
        }
        let mut held = hub.clone();
        held.finalizers_mut().push(FINALIZER.to_owned());
        held.managed_fields_mut().clear();
        match self.hub.replace(NAME, &PostParams::default(), &held).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 403 => {
                // The hub's own controllers may see to that.
                warn!(
                    reason = status.message,
                    "may not put a finalizer on the hub's add-on, going on without"
                );
                Ok(())
            }
            Err(error) => Err(self.failed("put a finalizer on", error)),
        }
    }

    /// Brings the whole status of the hub's object to that of `spoke`. Read inside of the loop: a conflict says that what was read
    /// is old.
    async fn show(&self, spoke: &ObservabilityAddon) -> Result<Looked, HubError> {
        let shown = on_conflict(|| async {
            let mut there = self.hub.get(NAME).await?;
            if there.conditions() == spoke.conditions() {
                return Ok(Looked::Same);
            }
            there.status.clone_from(&spoke.status);
            there.managed_fields_mut().clear();
            self.hub.replace_status(NAME, &PostParams::default(), &there).await?;
            Ok(Looked::Written)
        });
        shown.await.map_err(|error| self.failed("show the status of", error))
    }

    async fn release(&self, hub: &ObservabilityAddon) -> Result<Looked, HubError> {
        if !is_held(hub) {
            return Ok(Looked::Same);
        }
        if !self.spoke.clean().await? {
            return Ok(Looked::Cleaning);
        }
        let let_go = on_conflict(|| let_go(&self.hub)).await;
        let_go.map_err(|error| self.failed("let go of", error))?;
        info!("the hub's add-on is let go, this cluster is clean");
        Ok(Looked::Released)
    }

    fn failed(&self, verb: &'static str, source: kube::Error) -> HubError {
        let (namespace, asked) = (self.namespace.clone(), self.heard.asked());
        HubError::Api { verb, namespace, source: Box::new(source), asked }
    }
}

fn is_held(object: &ObservabilityAddon) -> bool {
    object.finalizers().iter().any(|finalizer| finalizer == FINALIZER)
}

/// Takes the finalizer off the object of `api`, if it is to go. One that is gone wants nothing.
pub(super) async fn let_go(api: &Api<ObservabilityAddon>) -> Result<(), kube::Error> {
    let Some(mut there) = api.get_opt(NAME).await? else { return Ok(()) };
    if there.metadata.deletion_timestamp.is_none() || !is_held(&there) {
        return Ok(());
    }
    there.finalizers_mut().retain(|finalizer| finalizer != FINALIZER);
    there.managed_fields_mut().clear();
    match api.replace(NAME, &PostParams::default(), &there).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        replaced => replaced.map(drop),
    }
}

/// What a look at the hub's object came to, for people.
fn say(says: &Says, trouble: Option<&HubError>) {
    match trouble {
        Some(error) => {
            says.say(PART, Aspect::Degraded, Truth::True, "NotReplicated", with_causes(error));
        }
        None => says.say(PART, Aspect::Degraded, Truth::False, "AsExpected", ""),
    }
}
